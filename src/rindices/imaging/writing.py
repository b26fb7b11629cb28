"""Comparisons of maps as files: NIfTI images of t and q, and tables."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.files import atomic_file, write_csv
from rindices.imaging.clusters import cluster_table
from rindices.imaging.images import library
from rindices.imaging.space import Space
from rindices.imaging.voxelwise import REGRESSION, THRESHOLD, Comparison

_COMPARISONS, _CLUSTERS = "comparisons.csv", "clusters.csv"
_OURS = "pattern-*_[tq].nii.gz"


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
    for path in set(folder.glob(_OURS)) - set(written):
        path.unlink()
    tables = {_COMPARISONS: comparison_table(comparisons), _CLUSTERS: cluster_table(comparisons)}
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
    with atomic_file(path) as beside:
        beside.write_bytes(gzip.compress(image.to_bytes(), compresslevel=6, mtime=0))
