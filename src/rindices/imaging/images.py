"""Image files: opening them with nibabel, their grids, and their values at the voxels of another grid."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates

from rindices.errors import InputError, shown

_NEAR = 1e-3  # mm: affines are stored with single precision
_ROUNDING = 1e-6  # of a voxel


class Grid(NamedTuple):
    """Where the voxels of an image are: how many along each axis, and their positions in mm."""

    shape: tuple[int, ...]
    affine: np.ndarray

    @property
    def voxel_mm3(self) -> float:
        """Volume of a voxel."""
        return float(abs(np.linalg.det(self.affine[:3, :3])))

    def same_as(self, other: Grid) -> bool:
        """Tell whether voxels are at the same places."""
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
            f"Brain images need the package {name.split('.')[0]}, which is not installed.\n"
            "Install it with: pip install 'rindices[imaging]'"
        ) from error


def open_image(path: Path, what: str) -> Any:
    """Open an image of three dimensions; its values are not read yet.

    Parameters
    ----------
    path
        The file.
    what
        How messages call it: ``Row 5 of maps.csv``, ``The mask``.

    Raises
    ------
    InputError
        If there is no such file, or it is no image of three dimensions.
    """
    nibabel = library("nibabel")
    if not path.is_file():
        raise InputError(f"{what}: there is no file {path}.\nPaths are relative to the folder of the table.")
    broken = nibabel.filebasedimages.ImageFileError, nibabel.spatialimages.HeaderDataError
    try:
        image = nibabel.load(path)
    except (OSError, EOFError, zlib.error, ValueError, *broken) as error:
        raise InputError(f"{what}: {path} cannot be read as an image: {error}.\nGive NIfTI files.") from error
    shape = tuple(map(int, image.shape))
    if len(shape) != 3 and not (len(shape) > 3 and set(shape[3:]) == {1}):
        raise InputError(
            f"{what}: {path} has {len(shape)} dimensions ({_times(shape)}), but an image of one brain has 3.\n"
            "Give one file for each person, with one volume."
        )
    if image.get_data_dtype().kind not in "biuf":
        raise InputError(f"{what}: {path} holds {image.get_data_dtype()}, not numbers.\nGive an image of numbers.")
    return image


def grid_of(image: Any) -> Grid:
    """Return the grid of an opened image."""
    return Grid(tuple(map(int, image.shape[:3])), np.asarray(image.affine, float))


def volume_of(image: Any, path: Path, what: str) -> np.ndarray:
    """Read the values of an opened image ``(x, y, z)``, as they are stored where no scale is applied."""
    try:
        return np.asanyarray(image.dataobj).reshape(image.shape[:3], order="F")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InputError(f"{what}: {path} is incomplete: {error}.\nCopy or make the file again.") from error


def sampled(volume: np.ndarray, source: Grid, target: Grid, voxels: np.ndarray, *, linear: bool) -> np.ndarray:
    """Return the values of an image at voxels of another grid, NaN outside its field of view.

    Parameters
    ----------
    volume, source
        The image and its grid.
    target, voxels
        The other grid, and which of its voxels: places in the volume raveled in Fortran's order.
    linear
        Whether to interpolate; otherwise the nearest voxel counts, as masks need it.
    """
    places = np.stack(np.unravel_index(voxels, target.shape, order="F")).astype(float)
    move = np.linalg.inv(source.affine) @ target.affine
    places = move[:3, :3] @ places + move[:3, 3:]
    last = np.array(source.shape)[:, None] - 1
    outside = ((places < -0.5 - _ROUNDING) | (places > last + 0.5 + _ROUNDING)).any(axis=0)
    values = map_coordinates(np.asarray(volume, float), places, order=int(linear), mode="nearest")
    values[outside] = np.nan
    return values


def differences(found: Grid, expected: Grid) -> str:
    """Say how a grid differs: ``shape 79 × 95 × 79 instead of 91 × 109 × 91``."""
    pairs = [(name, one, two) for (name, one), (_, two) in zip(_told(found), _told(expected), strict=True)]
    told = [f"{name} {one} instead of {two}" for name, one, two in pairs if one != two]
    return ", ".join(told) or f"axes turned by up to {shown(float(abs(found.affine - expected.affine).max()))}"


def _told(grid: Grid) -> list[tuple[str, str]]:
    sizes = [shown(float(size)) for size in np.linalg.norm(grid.affine[:3, :3], axis=0)]
    origin = ", ".join(shown(float(x)) for x in grid.affine[:3, 3])
    axes = "".join(axis or "?" for axis in library("nibabel").aff2axcodes(grid.affine))
    return [
        ("shape", _times(grid.shape)),
        ("voxels of", f"{_times(sizes)} mm"),
        ("axes", axes),
        ("first voxel at", f"({origin}) mm"),
    ]


def _times(sizes: Any) -> str:
    return " × ".join(map(str, sizes))
