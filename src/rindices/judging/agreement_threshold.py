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
    numbers, regions = (np.sort(table[name].unique()) for name in ("n_patterns", "n_regions"))
    # Beyond the numbers of patterns that were simulated the nearest, and the case is told.
    rows = table[table["n_patterns"] == numbers[numbers <= max(n_patterns, numbers[0])][-1]]
    known = np.sort(rows["n_regions"].unique())
    around = {*known[known <= n_regions][-1:], *known[known >= n_regions][:1]}
    fewest = max(rows["n_people"][rows["n_regions"] == of].min() for of in around)
    cases = {
        f"{numbers[0]} to {numbers[-1]} patterns, here {n_patterns}": not numbers[0] <= n_patterns <= numbers[-1],
        f"{fewest:.0f} people in a group or more, here {n_people:.0f}": n_people < fewest,
        f"{regions[0]} to {regions[-1]} regions, here {n_regions}": not regions[0] <= n_regions <= regions[-1],
    }
    limits = [_by_people(rows[rows["n_regions"] == of], n_people) for of in known]
    limit = float(np.interp(np.log(n_regions), np.log(known), limits))
    return limit, [case for case, is_outside in cases.items() if is_outside]


def highest_threshold(patterns: Iterable[int], sizes: tuple[int, int], n_regions: int) -> tuple[float, list[str]]:
    """Return what the best of several numbers of patterns has to pass: what any of them would have to."""
    found = [threshold(n_patterns, sizes, n_regions) for n_patterns in patterns]
    return max(limit for limit, _ in found), list(dict.fromkeys(case for _, cases in found for case in cases))


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
