"""Patterns painted on a user's atlas, as images."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

from rindices.errors import InputError
from rindices.files import atomic_file
from rindices.imaging.images import library

__all__ = ["paint_patterns"]


def paint_patterns(patterns: pd.DataFrame, atlas: Path, names: pd.DataFrame, folder: Path) -> tuple[list[Path], str]:
    """Write one image a pattern and severity: the atlas with each region's change, in sd of controls.

    Parameters
    ----------
    patterns
        Columns region, pattern and change_sd; severity where there are several, otherwise it is 1.
    atlas
        Image of whole numbers, one for each region.
    names
        Which number is which region: columns ``label`` and ``region``.
    folder
        Where ``pattern-1_severity-0.5.nii.gz`` and so on go; those of an earlier time are removed.

    Returns
    -------
    tuple of (list of Path, str)
        The images, and what had no partner, in words.

    Raises
    ------
    InputError
        If the image or the table cannot be used.
    """
    nibabel = library("nibabel")
    from rindices.plots.brain import paint_labels

    table = patterns if "severity" in patterns else patterns.assign(severity=1.0)
    painted = {}
    try:
        image = nibabel.load(atlas)
        for number, severity in sorted(set(zip(table["pattern"], table["severity"], strict=True))):
            rows = table[(table["pattern"] == number) & (table["severity"] == severity)]
            name = f"pattern-{number:g}_severity-{severity:g}.nii.gz"
            painted[folder / name] = paint_labels(image, names, rows.set_index("region")["change_sd"])
    except FileNotFoundError as error:
        raise InputError(f"There is no image {atlas}.\nCheck the name and the folder.") from error
    except (OSError, ValueError, nibabel.filebasedimages.ImageFileError) as error:
        raise InputError(
            f"{atlas} with its table of names cannot be painted: {error}.\n"
            "Give a label image (NIfTI) with --atlas, and its table with columns label and region with --atlas-table."
        ) from error
    for path, of in painted.items():
        with atomic_file(path) as beside:
            beside.write_bytes(gzip.compress(of.image.to_bytes(), mtime=0))
    for path in set(folder.glob("pattern-*.nii.gz")) - set(painted):
        path.unlink()
    return list(painted), next(iter(painted.values())).note
