"""Comparisons of maps and painted patterns as files: NIfTI images and tables; clusters of voxels that differ."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import ndimage

from rindices.errors import InputError, setting
from rindices.files import atomic_file, write_csv
from rindices.imaging.images import Space, library
from rindices.imaging.voxelwise import REGRESSION, THRESHOLD, Comparison, Result


def comparison_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return one row a comparison.

    Parameters
    ----------
    comparisons
        From `compare_maps`.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``rule``, ``n_patients``, ``n_controls``, ``without_map``, ``without_covariates``,
        ``freedom``, ``n_voxels`` (tested), ``n_significant`` (q < 0.05), ``t_map`` and ``q_map`` (names of files; ""
        where there are none) and ``note``.
    """
    rows = []
    for comparison in comparisons:
        row = {name: value for name, value in comparison._asdict().items() if name not in ("note", "result")}
        found = comparison.result
        row["freedom"] = np.nan if found is None else found.freedom
        row["n_voxels"] = 0 if found is None else int(np.isfinite(found.t).sum())
        row["n_significant"] = 0 if found is None else int((found.q < THRESHOLD).sum())
        row |= {f"{kind}_map": "" if found is None else _name(comparison, kind) for kind in "tq"}
        rows.append(row | {"note": comparison.note})
    return pd.DataFrame(rows)


def write_comparisons(folder: str | Path, comparisons: Sequence[Comparison]) -> list[Path]:
    """Write images of t and q, the table of comparisons and that of clusters; images of an earlier time are removed.

    Outside the mask, and where nothing could be computed, t is 0 and q is 1, so that no viewer shows it as a finding.

    Parameters
    ----------
    folder
        Made where it does not exist.
    comparisons
        From `compare_maps`.

    Returns
    -------
    list of Path
        The files: ``comparisons.csv``, ``clusters.csv`` and images such as ``pattern-1_high_t.nii.gz``.
    """
    folder = Path(folder)
    written = []
    for comparison in comparisons:
        found = comparison.result
        if found is None:
            continue
        for kind, values, outside in (("t", found.t, 0.0), ("q", found.q, 1.0)):
            path = folder / _name(comparison, kind)
            _write_image(path, values, outside, found.space, _told(comparison, kind), found.freedom)
            written.append(path)
    for path in set(folder.glob("pattern-*_[tq].nii.gz")) - set(written):
        path.unlink()
    tables = {"comparisons.csv": comparison_table(comparisons), "clusters.csv": cluster_table(comparisons)}
    for name, table in tables.items():
        write_csv(table, folder / name, index=False)
    return [*(folder / name for name in tables), *written]


def _name(comparison: Comparison, kind: str) -> str:
    return f"pattern-{comparison.pattern}_{comparison.level}_{kind}.nii.gz"


def _told(comparison: Comparison, kind: str) -> str:
    """Return a description; NIfTI has room for 79 letters."""
    if comparison.level == REGRESSION:
        return f"{kind}: regression on r{comparison.pattern}, {comparison.n_patients} patients"
    sizes = f"{comparison.n_patients} patients v {comparison.n_controls} controls"
    return f"{kind}: pattern {comparison.pattern} {comparison.level}, {sizes}"


def _write_image(path: Path, values: np.ndarray, outside: float, space: Space, told: str, freedom: int) -> None:
    nibabel = library("nibabel")
    image = nibabel.Nifti1Image(space.volume(values.astype(np.float32), outside), space.grid.affine)
    image.set_sform(space.grid.affine, space.code)
    image.set_qform(space.grid.affine, space.code)
    image.header.set_xyzt_units("mm")
    image.header["descrip"] = told.encode("ascii")
    if told.startswith("t:"):
        image.header.set_intent("t test", (freedom,))
    _save(image, path)


def _save(image: Any, path: Path) -> None:
    with atomic_file(path) as beside:
        beside.write_bytes(gzip.compress(image.to_bytes(), compresslevel=6, mtime=0))


_COLUMNS = ["pattern", "level", "cluster", "x", "y", "z", "peak_t", "peak_q", "n_voxels", "size_mm3"]


def cluster_table(comparisons: Sequence[Comparison], *, threshold: float = THRESHOLD) -> pd.DataFrame:
    """List the clusters of voxels with q below a threshold, the largest first.

    Voxels of a cluster touch with their faces, and t has the same sign in all of them.

    Parameters
    ----------
    comparisons
        From `compare_maps`.
    threshold
        Of q.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``cluster`` (1 is the largest), ``x``, ``y`` and ``z`` of the peak in mm (MNI where the
        maps are), ``peak_t``, ``peak_q``, ``n_voxels`` and ``size_mm3``.
    """
    rows = []
    for comparison in comparisons:
        if comparison.result is not None:
            found = _clusters(comparison.result, threshold)
            rows += [[comparison.pattern, comparison.level, n, *row] for n, row in enumerate(found, start=1)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _clusters(result: Result, threshold: float) -> list[list[float]]:
    space = result.space
    t, q = space.volume(result.t, 0.0), space.volume(result.q, 1.0)
    rows: list[list[float]] = []
    for sign in (-1, 1):
        labels, number = ndimage.label((q < threshold) & (sign * t > 0))
        if not number:
            continue
        sizes = np.bincount(labels.ravel(), minlength=number + 1)[1:]
        peaks = ndimage.maximum_position(sign * t, labels, range(1, number + 1))
        for size, peak in zip(sizes, peaks, strict=True):
            position = space.grid.affine[:3, :3] @ np.array(peak) + space.grid.affine[:3, 3]
            rows.append([*position, t[peak], q[peak], int(size), size * space.grid.voxel_mm3])
    return sorted(rows, key=lambda row: (-row[5], -abs(row[3])))


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
            f"Give a label image (NIfTI) with {setting('atlas')}, and its table with columns label and region with "
            f"{setting('atlas_table')}."
        ) from error
    for path, of in painted.items():
        _save(of.image, path)
    for path in set(folder.glob("pattern-*.nii.gz")) - set(painted):
        path.unlink()
    return list(painted), next(iter(painted.values())).note
