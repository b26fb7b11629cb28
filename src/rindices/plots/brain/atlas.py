"""A user's atlas painted with values: each label of the image becomes the change of its region."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rindices.plots.brain.sheet import imaging_library

_LABELS, _NAMES = ("label", "index", "number"), ("region", "name")


class Painted(NamedTuple):
    """An atlas painted with values, and what had no partner."""

    image: Any
    without_label: list[str]
    without_region: list[int]

    @property
    def note(self) -> str:
        """Say how many regions have no label and how many labels no region; nothing where all have."""
        parts = [
            f"{len(found):,} {words[0] if len(found) == 1 else words[1]} without a {other}"
            for found, words, other in (
                (self.without_label, ("region", "regions"), "label in the image"),
                (self.without_region, ("label of the image", "labels of the image"), "region"),
            )
            if found
        ]
        return ", ".join(parts)


def paint_labels(atlas: Any, names: pd.DataFrame, change: pd.Series) -> Painted:
    """Return an atlas in which each region has its value instead of its number.

    Parameters
    ----------
    atlas
        Image of whole numbers, one for each region, 0 outside.
    names
        Which number is which region: columns ``label`` (or ``index``, ``number``) and ``region`` (or ``name``). Several
        labels may belong to one region.
    change
        A value for each region, indexed by the regions' names.

    Returns
    -------
    Painted
        The image (0 where nothing is known), the regions without a label and the labels without a region.

    Raises
    ------
    ValueError
        The image is no atlas, the table is not as described, or the two share no region with the values.

    Examples
    --------
    >>> import nibabel
    >>> atlas = nibabel.Nifti1Image(np.array([[[0, 1], [2, 2]]], dtype=np.int16), np.eye(4))
    >>> names = pd.DataFrame({"label": [1, 2], "region": ["lHip", "rHip"]})
    >>> painted = paint_labels(atlas, names, pd.Series({"lHip": -1.0, "rHip": -0.5, "lAmy": 0.0}))
    >>> painted.image.get_fdata().tolist(), painted.note
    ([[[0.0, -1.0], [-0.5, -0.5]]], '1 region without a label in the image')
    """
    imaging_library()
    from nibabel import Nifti1Image

    image = three_dimensions(atlas)
    labels = _whole_numbers(image)
    region_of = _regions_of(names)
    values = change.dropna()
    values = pd.Series(values.to_numpy(dtype=float), index=values.index.astype(str))
    if not values.index.is_unique:
        raise ValueError(f"Region {values.index[values.index.duplicated()][0]!r} has two values. Give one pattern.")
    present = [int(label) for label in np.unique(labels) if label]
    painted = {label: region_of[label] for label in present if region_of.get(label) in values.index}
    if not painted:
        raise ValueError(
            "No region of the table of results has a label in the image.\n"
            f"The results name for example {values.index[0]!r}, the table of the atlas "
            f"{next(iter(region_of.values()), None)!r}. Name regions alike in both."
        )
    # Labels may be large and negative, so the positions of the sorted ones stand for them.
    known = np.array(sorted(painted), dtype=np.int64)
    place = np.clip(np.searchsorted(known, labels), 0, len(known) - 1)
    numbers = values.loc[[painted[int(label)] for label in known]].to_numpy(dtype=np.float32)
    data = np.where(known[place] == labels, numbers[place], np.float32(0))
    shown = set(painted.values())
    return Painted(
        Nifti1Image(data, image.affine),
        [name for name in values.index if name not in shown],
        [label for label in present if label not in painted],
    )


def three_dimensions(source: Any) -> Any:
    """Return an image in memory, read from a file where it is a path, with three dimensions."""
    import nibabel

    name = repr(str(source)) if isinstance(source, str | Path) else "The image"
    if isinstance(source, str | Path):
        try:
            source = nibabel.load(source)
        except (OSError, nibabel.filebasedimages.ImageFileError) as error:
            raise ValueError(
                f"{name} cannot be read as an image: {error}\nGive a NIfTI file (.nii, .nii.gz)."
            ) from error
    shape = tuple(source.shape)
    if len(shape) < 3 or any(size != 1 for size in shape[3:]):
        sizes = " × ".join(map(str, shape))
        raise ValueError(f"{name} should have three dimensions, found {sizes}. Give one volume.")
    return (
        source
        if len(shape) == 3
        else nibabel.Nifti1Image(np.asanyarray(source.dataobj).reshape(shape[:3]), source.affine)
    )


def _whole_numbers(image: Any) -> np.ndarray:
    data = np.asanyarray(image.dataobj)
    labels = np.round(data).astype(np.int64) if np.isfinite(data).all() else None
    if labels is None or np.abs(labels - data).max() > 1e-3:
        odd = data[~np.isfinite(data)] if labels is None else data[np.abs(labels - data) > 1e-3]
        raise ValueError(
            f"The atlas should have whole numbers, one for each region; found {odd[0]:.4g} in {odd.size:,} voxels.\n"
            "Give the label image, resampled with nearest neighbours if at all."
        )
    return labels


def _column(names: pd.DataFrame, options: Sequence[str]) -> str:
    for option in options:
        if option in names:
            return option
    raise ValueError(
        f"The table of the atlas needs a column {options[0]!r} (or {' or '.join(map(repr, options[1:]))}), "
        f"found {', '.join(map(str, names.columns))}."
    )


def _regions_of(names: pd.DataFrame) -> dict[int, str]:
    """Return the region of each label."""
    label, region = _column(names, _LABELS), _column(names, _NAMES)
    numbers = pd.to_numeric(names[label], errors="coerce")
    if not (numbers % 1 == 0).all():
        row = int(np.flatnonzero(~(numbers % 1 == 0))[0])
        raise ValueError(
            f"Column {label!r} of the atlas's table has {names[label].iloc[row]!r} in row {row + 1}: no number."
        )
    if numbers.duplicated().any():
        raise ValueError(f"Label {int(numbers[numbers.duplicated()].iloc[0])} is twice in the table of the atlas.")
    known = names[region].notna().to_numpy()
    return dict(zip(numbers[known].astype(int), names[region][known].astype(str), strict=True))
