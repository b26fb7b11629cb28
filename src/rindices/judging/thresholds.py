"""The agreement that cohorts without disease hardly reach: simulated ones, by people, regions and patterns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources

import numpy as np
import pandas as pd

# Tails are heavier than normal; true patterns lie far above. In sd, because so few cohorts a case cannot tell a share.
N_SD = 4
_LEAST_SD = 0.005


def threshold(n_patterns: int, sizes: tuple[int, int], n_regions: int) -> tuple[float, list[str]]:
    """Return the agreement that cohorts without disease hardly reach, and in what the case is unlike them.

    It does not depend on the number of repetitions: how sure their agreement is, its interval says.

    Parameters
    ----------
    n_patterns, sizes, n_regions
        Patterns, controls and patients, regions.
    """
    table = calibration()
    n_people = 2 / (1 / sizes[0] + 1 / sizes[1])  # the smaller group counts more
    cases = {
        "patterns": (n_patterns, table["n_patterns"]),
        "people in a group": (n_people, table["n_people"]),
        "regions": (n_regions, table["n_regions"]),
    }
    outside = [
        f"{known.min():.0f} to {known.max():.0f} {name}, here {value:.0f}"
        for name, (value, known) in cases.items()
        # Larger cohorts than there were make agreement by chance rarer.
        if value < known.min() or (value > known.max() and name != "people in a group")
    ]
    nearest = int(np.clip(n_patterns, table["n_patterns"].min(), table["n_patterns"].max()))
    rows = table[table["n_patterns"] == _known_number(table, nearest)]
    known = np.sort(rows["n_regions"].unique())
    limits = [_by_people(rows[rows["n_regions"] == of], n_people) for of in known]
    return float(np.interp(np.log(n_regions), np.log(known), limits)), outside


def highest_threshold(patterns: Iterable[int], sizes: tuple[int, int], n_regions: int) -> tuple[float, list[str]]:
    """Return what the best of several numbers of patterns has to pass: what any of them would have to."""
    found = [threshold(n_patterns, sizes, n_regions) for n_patterns in patterns]
    return max(limit for limit, _ in found), list(dict.fromkeys(case for _, cases in found for case in cases))


def _known_number(table: pd.DataFrame, n_patterns: int) -> int:
    """Return the next number of patterns that was simulated, not above: fewer agree better by chance."""
    known = sorted(table["n_patterns"].unique())
    return max(number for number in known if number <= n_patterns)


def _by_people(rows: pd.DataFrame, n_people: float) -> float:
    """Return the threshold between the sizes that were simulated."""
    rows = rows.sort_values("n_people")
    limits = rows["mean"] + N_SD * rows["sd"].clip(lower=_LEAST_SD)
    return float(np.interp(np.log(n_people), np.log(rows["n_people"]), limits))


@cache
def calibration() -> pd.DataFrame:
    """Agreement in simulated cohorts without disease, by patterns, people and regions."""
    with resources.files("rindices.judging").joinpath("null_thresholds.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")
