"""The voxels that are compared: the grid that the maps share, and a mask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rindices.errors import InputError, counted
from rindices.imaging.images import Grid, differences, grid_of, library, open_image, sampled, volume_of

_LEAST_COVERED = 0.5  # of the standard brain; below this, the maps are hardly in its space
_ALIGNED, _MNI = 2, 4  # NIfTI's codes of spaces


class Space(NamedTuple):
    """Voxels of a grid.

    Attributes
    ----------
    grid
        That of the maps.
    voxels
        Places of the voxels inside the mask, in the volume raveled in Fortran's order, as NIfTI stores it.
    code
        NIfTI's code for the space.
    """

    grid: Grid
    voxels: np.ndarray
    code: int = _ALIGNED

    def volume(self, values: np.ndarray, outside: float) -> np.ndarray:
        """Put values of the voxels into a volume; `outside` is the value of all others and of those without one."""
        whole = np.full(int(np.prod(self.grid.shape)), outside, np.asarray(values).dtype)
        whole[self.voxels] = np.where(np.isnan(values), outside, values)
        return whole.reshape(self.grid.shape, order="F")


class MapFile(NamedTuple):
    """A person's map: where it is, how messages call it, and its grid."""

    path: Path
    name: str
    grid: Grid
    code: int

    def values(self, space: Space) -> np.ndarray:
        """Read the values at the voxels of a space, as float64; NaN where the map has none."""
        image = open_image(self.path, self.name)
        volume = volume_of(image, self.path, self.name)
        if self.grid.same_as(space.grid):
            return volume.ravel(order="F")[space.voxels].astype(float)
        return sampled(volume, self.grid, space.grid, space.voxels, linear=True)


def open_map(path: Path, name: str) -> MapFile:
    """Read the header of a map."""
    image = open_image(path, name)
    return MapFile(path, name, grid_of(image), _code(image))


def common_space(maps: Sequence[MapFile], mask: str | Path | None, *, resample: bool) -> Space:
    """Find the grid of most maps and the voxels inside the mask.

    Parameters
    ----------
    maps
        At least one.
    mask
        An image of two values, the smaller outside; the standard (MNI) brain where none is given.
    resample
        Whether maps and masks of other grids are allowed.

    Raises
    ------
    InputError
        If grids differ and `resample` is false, or no voxel is left.
    """
    reference = _commonest(maps)
    others = [found for found in maps if not found.grid.same_as(reference.grid)]
    if others and not resample:
        raise InputError(
            f"The maps should share one grid, but {counted(len(others), 'map')} of {len(maps)} "
            f"{'differs' if len(others) == 1 else 'differ'} from the others.\n"
            f"{others[0].name} ({others[0].path.name}): {differences(others[0].grid, reference.grid)}.\n"
            "Make the maps on one grid, or let them be resampled with --resample."
        )
    if mask is None:
        return Space(reference.grid, _standard_brain(reference.grid), reference.code or _MNI)
    return Space(reference.grid, _inside(Path(mask), reference.grid, resample), reference.code or _ALIGNED)


def _commonest(maps: Sequence[MapFile]) -> MapFile:
    kinds: list[tuple[MapFile, int]] = []
    for found in maps:
        for place, (kind, number) in enumerate(kinds):
            if found.grid.same_as(kind.grid):
                kinds[place] = kind, number + 1
                break
        else:
            kinds.append((found, 1))
    return max(kinds, key=lambda kind: kind[1])[0]


def _standard_brain(grid: Grid) -> np.ndarray:
    image = library("nilearn.datasets").load_mni152_brain_mask(resolution=1)
    brain, everywhere = np.asanyarray(image.dataobj), np.arange(int(np.prod(grid.shape)))
    inside = np.flatnonzero(sampled(brain, grid_of(image), grid, everywhere, linear=False) > 0)
    covered = len(inside) * grid.voxel_mm3 / (np.count_nonzero(brain) * grid_of(image).voxel_mm3)
    if covered < _LEAST_COVERED:
        raise InputError(
            f"The maps cover {100 * covered:.0f} % of the standard (MNI) brain, so they are hardly in its space.\n"
            "Give a mask on the grid of the maps with --mask."
        )
    return inside


def _inside(path: Path, grid: Grid, resample: bool) -> np.ndarray:
    image = open_image(path, "The mask")
    own, volume = grid_of(image), volume_of(image, path, "The mask")
    values = np.unique(volume[~np.isnan(volume)])
    if len(values) != 2:
        raise InputError(
            f"The mask {path} should hold two values, such as 0 and 1; it holds {len(values)}.\n"
            "Make a mask of it by a threshold."
        )
    if not (own.same_as(grid) or resample):
        raise InputError(
            f"The mask {path} should have the grid of the maps: {differences(own, grid)}.\n"
            "Make it on that grid, or let it be resampled with --resample."
        )
    everywhere = np.arange(int(np.prod(grid.shape)))
    voxels = np.flatnonzero(sampled(volume, own, grid, everywhere, linear=False) == values[1])
    if not len(voxels):
        raise InputError(f"No voxel of the maps is inside the mask {path}.\nGive a mask in the maps' space.")
    return voxels


def _code(image: Any) -> int:
    header: Any = image.header
    is_nifti = isinstance(image, library("nibabel").Nifti1Pair)
    return int(header["sform_code"] or header["qform_code"]) if is_nifti else 0
