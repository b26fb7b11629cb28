"""Clusters of voxels that differ, and where their peaks are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import ndimage

from rindices.imaging.voxelwise import THRESHOLD, Comparison, Result

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
