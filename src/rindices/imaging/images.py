"""Image files, opened with nibabel, and the table of the people they belong to: grids, masks and voxel values."""

from __future__ import annotations

import importlib
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.ndimage import map_coordinates

from rindices.files import plain
from rindices.problems import InputError, Remedy, counted, did_you_mean, listed, shown

_NEAR = 1e-3  # mm: affines are stored in single precision
_ROUNDING = 1e-6  # of a voxel
_LEAST_COVERED = 0.5  # of the standard brain; below this, the maps are probably not in its space
_DAMAGED = (OSError, EOFError, zlib.error, ValueError)
_ALIGNED, _MNI = 2, 4  # NIfTI's space codes


class Grid(NamedTuple):
    """The voxel grid of an image: the number of voxels along each axis, and their positions in mm."""

    shape: tuple[int, ...]
    affine: np.ndarray

    @property
    def key(self) -> tuple[tuple[int, ...], bytes]:
        """A key that most equal grids share; grids that hardly differ may have different keys."""
        return self.shape, np.round(self.affine, 3).tobytes()

    @property
    def voxel_mm3(self) -> float:
        """Volume of a voxel."""
        return float(abs(np.linalg.det(self.affine[:3, :3])))

    def same_as(self, other: Grid) -> bool:
        """Return whether the voxels are at the same positions."""
        return self.shape == other.shape and np.allclose(self.affine, other.affine, rtol=0, atol=_NEAR)


def library(name: str) -> ModuleType:
    """Import nibabel or nilearn, which only images need.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"Brain images require the {name.split('.')[0]} package, which is not installed.\n"
            "Install it with: pip install 'rindices[imaging]'"
        ) from error


def open_image(path: Path, what: str) -> Any:
    """Open a three-dimensional image; its values are not read yet.

    Parameters
    ----------
    path
        The file.
    what
        Its name in messages: ``Row 5 of maps.csv``, ``The mask``.

    Raises
    ------
    InputError
        If there is no such file, or it is not a three-dimensional image.
    """
    nibabel = library("nibabel")
    if not path.is_file():
        raise InputError(
            f"{what}: no file was found at {path}.\n"
            "Check the name; paths in a table are relative to the table's folder."
        )
    try:
        image = nibabel.load(path)
    except (*_DAMAGED, nibabel.filebasedimages.ImageFileError, nibabel.spatialimages.HeaderDataError) as error:
        raise InputError(f"{what}: {path} cannot be read as an image: {error}.\nProvide a NIfTI file.") from error
    if len(image.shape) < 3 or set(image.shape[3:]) - {1}:
        raise InputError(
            f"{what}: {path} has {image.ndim} dimensions ({_times(image.shape)}), but a single volume has 3.\n"
            "Provide one file per person, each containing one volume."
        )
    if image.get_data_dtype().kind not in "biuf":
        raise InputError(
            f"{what}: {path} contains values of type {image.get_data_dtype()}.\nProvide an image of real numbers."
        )
    return image


def grid_of(image: Any) -> Grid:
    """Return the grid of an opened image."""
    return Grid(tuple(map(int, image.shape[:3])), np.asarray(image.affine, float))


def volume_of(image: Any, path: Path, what: str) -> np.ndarray:
    """Read the values of an opened image ``(x, y, z)``, in their stored type unless they are scaled."""
    try:
        return np.asanyarray(image.dataobj).reshape(image.shape[:3], order="F")
    except _DAMAGED as error:
        raise InputError(f"{what}: {path} is incomplete: {error}.\nCopy the file again or recreate it.") from error


def sampled(volume: np.ndarray, source: Grid, target: Grid, voxels: np.ndarray, *, linear: bool) -> np.ndarray:
    """Return the values of an image at voxels of another grid, NaN outside its field of view.

    Parameters
    ----------
    volume, source
        The image and its grid.
    target, voxels
        The other grid, and which of its voxels: positions in the volume raveled in Fortran order.
    linear
        Whether to interpolate; otherwise the nearest voxel is used, as masks require.
    """
    places = np.stack(np.unravel_index(voxels, target.shape, order="F")).astype(float)
    move = np.linalg.inv(source.affine) @ target.affine
    places = move[:3, :3] @ places + move[:3, 3:]
    last = np.array(source.shape)[:, None] - 1
    outside = ((places < -0.5 - _ROUNDING) | (places > last + 0.5 + _ROUNDING)).any(axis=0)
    values = map_coordinates(np.asarray(volume, float), places, order=int(linear), mode="nearest")
    values[outside] = np.nan
    return values


def differences(grid: Grid, expected: Grid) -> str:
    """Describe how a grid differs: ``shape 79 × 95 × 79 instead of 91 × 109 × 91``."""
    ours, theirs = _grid_text(grid), _grid_text(expected)
    differing = [f"{name} {ours[name]} instead of {theirs[name]}" for name in ours if ours[name] != theirs[name]]
    return (
        ", ".join(differing)
        or f"entries of the affine matrix differ by up to {shown(float(abs(grid.affine - expected.affine).max()))}"
    )


def _grid_text(grid: Grid) -> dict[str, str]:
    sizes, origin = np.linalg.norm(grid.affine[:3, :3], axis=0), grid.affine[:3, 3]
    return {
        "shape": _times(grid.shape),
        "voxels of": f"{_times(shown(float(size)) for size in sizes)} mm",
        "axes": "".join(axis or "?" for axis in library("nibabel").aff2axcodes(grid.affine)),
        "first voxel at": f"({', '.join(shown(float(x)) for x in origin)}) mm",
    }


def _times(sizes: Any) -> str:
    return " × ".join(map(str, sizes))


class Space(NamedTuple):
    """Voxels of a grid.

    Attributes
    ----------
    grid
        Grid of the maps.
    voxels
        Positions of the voxels inside the mask, in the volume raveled in Fortran order, as NIfTI stores it.
    code
        NIfTI's code for the space.
    """

    grid: Grid
    voxels: np.ndarray
    code: int = _ALIGNED

    def volume(self, values: np.ndarray, outside: float) -> np.ndarray:
        """Put values of the voxels into a volume; all other voxels, and missing values, become `outside`."""
        whole = np.full(np.prod(self.grid.shape), outside, values.dtype)
        whole[self.voxels] = np.where(np.isnan(values), outside, values)
        return whole.reshape(self.grid.shape, order="F")


class MapFile(NamedTuple):
    """A person's map: its path, its name in messages, its grid, and NIfTI's code for its space."""

    path: Path
    name: str
    grid: Grid
    code: int

    def values(self, space: Space) -> np.ndarray:
        """Read the values at the voxels of a space, as float64; NaN where the map has none."""
        volume = volume_of(open_image(self.path, self.name), self.path, self.name)
        if self.grid.same_as(space.grid):
            return volume.ravel(order="F")[space.voxels].astype(float)
        return sampled(volume, self.grid, space.grid, space.voxels, linear=True)


def open_map(path: Path, name: str) -> MapFile:
    """Read the header of a map."""
    image = open_image(path, name)
    nifti = isinstance(image, library("nibabel").Nifti1Pair)
    code = int(image.header["sform_code"] or image.header["qform_code"]) if nifti else 0
    return MapFile(path, name, grid_of(image), code)


def common_space(maps: Sequence[MapFile], mask: str | Path | None, *, resample: bool) -> Space:
    """Find the grid of most maps and the voxels inside the mask.

    Parameters
    ----------
    maps
        At least one.
    mask
        An image with two values, the smaller one outside, or with ones everywhere; by default the standard (MNI) brain.
    resample
        Whether maps and masks on other grids are allowed.

    Raises
    ------
    InputError
        If grids differ and `resample` is false, or no voxel is left.
    """
    kinds = Counter(one.grid.key for one in maps)
    reference = max(maps, key=lambda one: kinds[one.grid.key])
    others = [one for one in maps if not one.grid.same_as(reference.grid)]
    if others and not resample:
        raise InputError(
            f"All maps should be on the same grid, but {len(others)} of {len(maps)} maps "
            f"{'differs' if len(others) == 1 else 'differ'} from the others.\n"
            f"{others[0].name} ({others[0].path.name}): {differences(others[0].grid, reference.grid)}.\n"
            f"Create all maps on the same grid, or resample them with ",
            Remedy("resample", True),
            ".",
        )
    if mask is None:
        return Space(reference.grid, _standard_brain(reference.grid), reference.code or _MNI)
    return Space(reference.grid, _inside(Path(mask), reference.grid, resample), reference.code or _ALIGNED)


def _standard_brain(grid: Grid) -> np.ndarray:
    image = library("nilearn.datasets").load_mni152_brain_mask(resolution=1)
    brain, own = np.asanyarray(image.dataobj), grid_of(image)
    inside = np.flatnonzero(sampled(brain, own, grid, np.arange(np.prod(grid.shape)), linear=False) > 0)
    covered = len(inside) * grid.voxel_mm3 / (np.count_nonzero(brain) * own.voxel_mm3)
    if covered < _LEAST_COVERED:
        raise InputError(
            f"The maps cover only {100 * covered:.0f} % of the standard (MNI) brain, so they are probably not in MNI "
            "space.\n"
            "Use ",
            Remedy("mask"),
            " to provide a mask on the same grid as the maps.",
        )
    return inside


def _inside(path: Path, grid: Grid, resample: bool) -> np.ndarray:
    image = open_image(path, "The mask")
    own, volume = grid_of(image), volume_of(image, path, "The mask")
    values = np.unique(volume[~np.isnan(volume)])
    if len(values) != 2 and values.tolist() != [1]:  # a mask of ones takes every voxel
        raise InputError(
            f"The mask {path} should contain exactly two values, such as 0 and 1, but it contains "
            f"{counted(len(values), 'value')}.\n"
            "Threshold the image to create a mask."
        )
    if not (own.same_as(grid) or resample):
        raise InputError(
            f"The mask {path} is not on the same grid as the maps: {differences(own, grid)}.\n"
            "Create the mask on the maps' grid, or resample it with ",
            Remedy("resample", True),
            ".",
        )
    voxels = np.flatnonzero(sampled(volume, own, grid, np.arange(np.prod(grid.shape)), linear=False) == values[-1])
    if not len(voxels):
        raise InputError(
            f"The mask {path} covers none of the maps' voxels.\nProvide a mask in the same space as the maps."
        )
    return voxels


ID, VISIT, PATH = "participant_id", "visit", "path"
_MISSING = {"", "na", "n/a", "nan", "none"}


class MapTable(NamedTuple):
    """A checked table of people and their maps, and its name in messages."""

    table: pd.DataFrame
    name: str

    def file(self, position: int) -> tuple[Path, str]:
        """Return the path in a row, and the row's name in messages."""
        return Path(self.table[PATH].iloc[position]), f"Row {self.table.index[position]} of {self.name}"


def read_map_table(path: str | Path) -> pd.DataFrame:
    r"""Read a table of people and their maps from a .csv or .tsv file.

    Parameters
    ----------
    path
        File with the columns ``participant_id``, ``visit`` (optional) and ``path``, relative to the folder of the
        table. Other columns are ignored.

    Returns
    -------
    DataFrame
        ``participant_id``, ``visit`` (if there is one) and ``path``, as text; "" for people without a map. The index is
        the row number in the file; the header is row 1.

    Raises
    ------
    InputError
        If the file or a column is missing, or a person has two maps.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "maps.csv")
    ...     _ = table.write_text("participant_id;path\n007;grey/007.nii.gz\n")
    ...     found = read_map_table(table)
    >>> found["participant_id"].tolist(), Path(found["path"][2]).name
    (['007'], '007.nii.gz')
    """
    path = Path(path)
    try:
        header = path.read_text(encoding="utf-8-sig").partition("\n")[0]
        separator = max(",", ";", "\t", key=header.count)
        table = plain(pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a table of images.\nCheck the file given with ",
            Remedy("maps"),
            "; it should be a .csv file.",
        ) from error
    return _checked(table, path.parent, path.name)


def map_table(maps: pd.DataFrame | str | Path) -> MapTable:
    """Return the table in a file, or check a given one, whose paths are relative to the working directory."""
    if isinstance(maps, pd.DataFrame):
        return MapTable(_checked(maps, Path(), "maps"), "maps")
    return MapTable(read_map_table(maps), Path(maps).name)


def _checked(table: pd.DataFrame, folder: Path, name: str) -> pd.DataFrame:
    problems = [
        *(f"has no column {one!r}.{did_you_mean(one, [*map(str, table)])}" for one in (PATH, ID) if one not in table),
        *([] if len(table) else ["has no rows below the header."]),
    ]
    if problems:
        raise InputError(
            f"{name} {problems[0]}\nIt should have a column {ID!r}, a column {PATH!r}, and a row for each image."
        )
    columns = [column for column in (ID, VISIT, PATH) if column in table]
    checked = pd.DataFrame({column: as_text(table[column]) for column in columns}, index=range(2, len(table) + 2))
    repeated = checked.duplicated(columns[:-1], keep=False)
    if repeated.any():
        rows = checked.index[repeated & (checked[ID] == checked.loc[repeated, ID].iloc[0])]
        raise InputError(
            f"{name} should have one map per person{' and visit' if VISIT in columns else ''}, but rows "
            f"{listed(rows, joiner=' and ')} belong to {checked[ID][rows[0]]!r}.\nKeep only one of these rows."
        )
    checked[PATH] = ["" if cell.lower() in _MISSING else str(folder / cell) for cell in checked[PATH]]
    paths = checked[PATH][checked[PATH] != ""]
    if paths.duplicated().any():
        rows = paths.index[paths == paths[paths.duplicated()].iloc[0]]
        raise InputError(
            f"{name} has the same image in rows {listed(rows, joiner=' and ')}: {paths[rows[0]]}.\n"
            "Provide a separate image for each person."
        )
    return checked


def as_text(values: pd.Series) -> list[str]:
    """Return identifiers as text without surrounding spaces; a visit 1.0 becomes 1."""
    whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return ["" if pd.isna(value) else str(value).strip() for value in whole]
