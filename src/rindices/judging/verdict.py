"""Is there anything to find? Agreement of repetitions, against what it is where groups do not differ.

Either way the test is of one thing: that patients and controls differ in a way that training finds again. Where they
differ in age, site or scanner, training finds that again too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import numpy as np
import pandas as pd

from rindices.errors import setting, worded
from rindices.judging.selection import FIRST_LOOK, Study, Swept, judge, members_of, train_members
from rindices.preprocessing.covariates import TOO_UNCERTAIN
from rindices.settings import fast
from rindices.training.chunks import Point
from rindices.training.execution import Execution

LEVEL = 0.05
# Tails are heavier than normal: of 1,154 simulated cohorts 0.6 % lie above, of 60 fresh ones, searched over, none; true
# patterns lie far above. In sd, because twenty cohorts a case are too few to tell a share.
N_SD = 4
_LEAST_SD = 0.005
FEWEST_REFITS = 19  # with fewer, no p value can reach the level
_CHANCE = 0.5


@dataclass(frozen=True)
class Verdict:
    """Whether patterns are reliable, and why.

    Attributes
    ----------
    reliable
        Whether repetitions agree better than they would without a difference between the groups.
    reason
        The same in words.
    method
        ``calibrated``: against a threshold from simulated cohorts; ``refits``: against refits of this very table with
        people dealt out anew; ``none``: there is nothing to compare.
    statistic
        Mean pattern agreement of the repetitions.
    threshold
        That a calibrated statistic must exceed.
    p
        Share of refits, and of the data, that agree at least as well as the data.
    n
        Number of refits.
    repetitions
        Repetitions behind the statistic.
    values
        Statistics of the refits.
    """

    reliable: bool
    reason: str
    method: Literal["calibrated", "refits", "none"]
    statistic: float
    threshold: float | None = None
    p: float | None = None
    n: int = 0
    repetitions: int = 0
    values: tuple[float, ...] = ()


def calibrated(swept: Swept, study: Study) -> Verdict:
    """Compare the agreement of the chosen setting with a threshold from simulated cohorts without disease."""
    n_models, statistic = swept.chosen.look.n_models, swept.chosen.value
    if n_models < 2:
        return Verdict(False, _too_few(n_models, swept.chosen.n_repetitions), "none", statistic)
    sizes = (int((~study.patient).sum()), int(study.patient.sum()))
    tried = sorted({point.n_patterns for point in _in_question([one.point for one in swept.judged])})
    limit, outside = highest_threshold(tried, sizes, study.scaled.shape[1], n_models)
    reliable, unlike = statistic > limit, [*outside, *_unlike(study, swept)]
    words = (
        f"Repeated trainings agree at {statistic:.3f}, where 0.5 is chance. The threshold is {limit:.3f}: {N_SD} sd "
        "above the mean of simulated cohorts without disease that have about as many people and regions, and the same "
        "number of patterns and repetitions."
    )
    best = f"Of {tried[0]} to {tried[-1]} patterns the best was taken, so it is the highest of their thresholds."
    test = worded(f"test with refits ({setting('n_null', FEWEST_REFITS)})")
    more = {
        best: len(tried) > 1,
        "There may be nothing to find, the number of patterns may not fit, or training was too short.": not reliable,
        f"The threshold was made for other cases ({'; '.join(unlike)}): {test}.": unlike,
    }
    words = " ".join([words, *(sentence for sentence, holds in more.items() if holds)])
    return Verdict(reliable, words, "calibrated", statistic, threshold=limit, repetitions=n_models)


def _too_few(n_models: int, n_repetitions: int) -> str:
    if n_models == 0:
        return (
            "Training failed: in every repetition an R-index is nearly the same for all patients (it collapsed). Do "
            "not use these R-indices. Look for fewer patterns, or give more regions: with few, training rarely learns."
        )
    left = "there is only one repetition" if n_repetitions == 1 else f"only {n_models} of them can be used"
    return f"Nobody can tell whether trainings agree: {left}."


def threshold(n_patterns: int, sizes: tuple[int, int], n_regions: int, n_repetitions: int) -> tuple[float, list[str]]:
    """Return the agreement that cohorts without disease hardly reach, and in what the case is unlike them.

    Parameters
    ----------
    n_patterns, sizes, n_regions, n_repetitions
        Patterns, controls and patients, regions, repetitions.
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
        # More regions than there were make agreement by chance rarer.
        if value < known.min() or (value > known.max() and name != "regions")
    ]
    # More repetitions make the mean over pairs steadier: the next smaller number is on the safe side.
    known = sorted(table["n_repetitions"].unique())
    table = table[table["n_repetitions"] == max([k for k in known if k <= n_repetitions] or known[:1])]
    limits = {of: _by_people(rows, n_patterns, n_people) for of, rows in table.groupby("n_regions")}
    return float(np.interp(np.log(n_regions), np.log(list(limits)), list(limits.values()))), outside


def highest_threshold(
    patterns: Iterable[int], sizes: tuple[int, int], n_regions: int, n_repetitions: int
) -> tuple[float, list[str]]:
    """Return what the best of several numbers of patterns has to pass: what any of them would have to."""
    found = [threshold(n_patterns, sizes, n_regions, n_repetitions) for n_patterns in patterns]
    return max(limit for limit, _ in found), list(dict.fromkeys(case for _, cases in found for case in cases))


def _by_people(rows: pd.DataFrame, n_patterns: int, n_people: float) -> float:
    """Return the threshold for the nearest number of patterns, between the sizes that were simulated."""
    nearest = int(np.clip(n_patterns, rows["n_patterns"].min(), rows["n_patterns"].max()))
    rows = rows[rows["n_patterns"] == nearest].sort_values("n_people")
    limits = rows["mean"] + N_SD * rows["sd"].clip(lower=_LEAST_SD)
    return float(np.interp(np.log(n_people), np.log(rows["n_people"]), limits))


@cache
def calibration() -> pd.DataFrame:
    """Agreement in simulated cohorts without disease, by patterns, people and repetitions."""
    with resources.files("rindices.judging").joinpath("null_thresholds.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


def _unlike(study: Study, swept: Swept) -> list[str]:
    here, made = study.settings.preset, fast()
    same, weights = here.name == made.name, sorted({one.point.orthogonality for one in swept.judged})
    told = ", ".join(f"{weight:g}" for weight in weights)
    cases = {
        "groups with covariates alike, here few controls are like the patients": study.uncertainty > TOO_UNCERTAIN,
        f"preset {made.name}, here {here.name}": not same,
        f"{made.schedule.max_steps:,} steps, here {here.schedule.max_steps:,}": same
        and here.schedule.max_steps != made.schedule.max_steps,
        "independent severities, here correlated": same and here.training.latent != made.training.latent,
        f"orthogonality {made.weights.orthogonality:g}, here {told}": same and weights != [made.weights.orthogonality],
    }
    return [case for case, found in cases.items() if found]


def refits(swept: Swept, study: Study, n_refits: int, execution: Execution) -> Verdict:
    """Search again in cohorts whose people were dealt out to the groups anew, and see how often they agree as well.

    The data and these cohorts are compared by the same statistic: the best agreement over all settings, of the
    same number of repetitions of each.
    """
    points = [one.point for one in swept.judged]
    n_repetitions = min(FIRST_LOOK, swept.n_repetitions)
    members = [
        member for cohort in range(1, n_refits + 1) for member in members_of(points, range(n_repetitions), cohort)
    ]
    chunks = train_members(study, members, execution, "Cohorts without disease")

    def statistic(cohort: int) -> float:
        judged = [
            judge(study, point, n_repetitions, chunks if cohort else swept.chunks, execution, cohort).value
            for point in _in_question(points)
        ]
        return max((value for value in judged if not np.isnan(value)), default=_CHANCE)

    data, values = statistic(0), tuple(statistic(cohort) for cohort in range(1, n_refits + 1))
    p = (1 + sum(value >= data for value in values)) / (n_refits + 1)
    n_models = swept.chosen.look.n_models
    reliable = p <= LEVEL and n_models > 1
    words = (
        f"Repeated trainings agree at {data:.3f} ({n_repetitions} repetitions of each setting). With people "
        f"dealt out to the groups at random, {n_refits} refits of the same search agree at {np.median(values):.3f} "
        f"(median) and at most at {max(values):.3f}: p = {p:.3g}."
    )
    if n_models < 2:
        words = f"{_too_few(n_models, swept.chosen.n_repetitions)} {words}"
    elif not reliable:
        words += " The groups differ no more than groups of the same people put together at random."
    return Verdict(reliable, words, "refits", data, p=p, n=n_refits, repetitions=n_repetitions, values=values)


def _in_question(points: list[Point]) -> list[Point]:
    """Return the settings that can be chosen: those of one pattern only if there are no others."""
    return [point for point in points if point.n_patterns > 1] or points


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return what was compared, in plain JSON types."""
    kept = {name: value for name, value in vars(verdict).items() if name not in ("reliable", "reason")}
    return json.loads(json.dumps(kept | {"values": list(verdict.values)}))
