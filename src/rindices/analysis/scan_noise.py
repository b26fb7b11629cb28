"""How much regions differ between scans of people who have not changed: from controls who came again.

It is regions whose noise is learned, and not severities: those of controls lie near 0, where noise moves them less than
elsewhere (two thirds as much in simulated people), so that unchanged patients would be taken for changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import helmert

from rindices.analysis.coding import in_group, same_people

SHORT_YEARS = 1.05  # healthy people hardly change in a year, whatever its days; in several, some age faster than others
FEWEST_SHORT = 10  # degrees of freedom; with fewer, later visits are used too
FEWEST = 5


class ScanNoise(NamedTuple):
    """Noise of the regions of one scan.

    Attributes
    ----------
    vectors
        Contrasts between scans of the same control ``(contrasts, regions)``, in the units of the regions: each has the
        variance of one scan, and they keep how regions go together.
    freedom
        Degrees of freedom of a variance made of them; 0 where there are too few controls.
    n_controls
        How many controls came again.
    years
        Longest time between two scans of a control that are compared.
    """

    vectors: np.ndarray
    freedom: int
    n_controls: int
    years: float


def scan_noise(regions: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> ScanNoise:
    """Learn the noise of regions from the visits of controls, less what controls change in the mean.

    Visits within a year of a control's first are used, because healthy people hardly change in a year; all visits where
    these are too few, which makes the noise greater by what controls change differently from each other.

    Parameters
    ----------
    regions
        One column per region, one row per visit.
    participant_id, years, group
        As in `change_per_year`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = 10 * rng.standard_normal((300, 1))[np.repeat(np.arange(300), 2)]
    >>> table = pd.DataFrame(people + 2 * rng.standard_normal((600, 4)))
    >>> found = scan_noise(table, np.repeat(np.arange(300), 2), np.tile([0.0, 0.5], 300), ["control"] * 600)
    >>> found.freedom, round(np.sqrt(np.sum(found.vectors**2) / found.freedom / 4), 1)
    (299, np.float64(2.0))
    """
    same_people(len(regions), participant_id=pd.Series(participant_id), group=pd.Series(group))
    visits = pd.DataFrame({"id": pd.Series(participant_id).to_numpy(), "years": np.asarray(years, float)})
    values = regions.to_numpy(float)
    known = np.isfinite(visits["years"]) & visits["id"].notna() & np.isfinite(values).all(axis=1)
    visits = visits[known & in_group(group, "control")]
    soon = visits["years"] - visits.groupby("id")["years"].transform("min") <= SHORT_YEARS
    found = _contrasts(visits[soon], values)
    return found if found.freedom >= FEWEST_SHORT else _contrasts(visits, values)


def _contrasts(visits: pd.DataFrame, values: np.ndarray) -> ScanNoise:
    visits = visits[visits["id"].duplicated(keep=False)].sort_values(["id", "years"], kind="stable")
    parts, times = [np.empty((0, values.shape[1]))], [np.empty(0)]
    for _, own in visits.groupby("id", sort=False):
        matrix = helmert(len(own))  # orthonormal: the mean is out, and variances stay
        parts.append(matrix @ values[own.index])
        times.append(matrix @ own["years"].to_numpy())
    vectors, time, n_controls = np.vstack(parts), np.concatenate(times), len(parts) - 1
    span = visits.groupby("id")["years"].agg(np.ptp).max() if n_controls else np.nan
    if (time**2).sum() > 0:
        vectors = vectors - np.outer(time, time @ vectors / (time**2).sum())
    freedom = len(vectors) - bool((time**2).sum() > 0)
    return ScanNoise(vectors, freedom if freedom >= FEWEST else 0, n_controls, float(span))
