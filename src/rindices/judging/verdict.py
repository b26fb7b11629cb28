"""Is there anything to find? Agreement of repetitions, against what it is where groups do not differ.

Either way the test is of one thing: that patients and controls differ in a way that training finds again. Where they
differ in age, site or scanner, training finds that again too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from rindices.judging.agreement_threshold import N_SD, highest_threshold
from rindices.judging.selection import FIRST_LOOK, Study, Swept, judge, members_of, train_members
from rindices.preprocessing.covariates import TOO_UNCERTAIN
from rindices.problems import Message, Remedy, Text, counted, joined, listed, worded
from rindices.settings import Preset, State, fast
from rindices.training.execution import Execution

LEVEL = 0.05
FEWEST_REFITS = 19  # with fewer, no p value can reach the level
FEWEST_MODELS = 3  # for an interval of their agreement
_CHANCE = 0.5
# From which on a difference makes it doubtful that a pattern is disease: a standardised difference of 0.25 is where
# regression no longer adjusts for it safely (Rubin, 2001), a Cramér's V of 0.2 is 40 % women against 60 %.
_COUNTS_FROM = {"number": 0.25, "category": 0.2}


@dataclass(frozen=True)
class Verdict:
    """Whether patterns are reproducible, and why.

    Refits of the table decide where there are any, else the threshold does; what cannot be tested by it is *not
    testable*. What differs between the groups besides the disease comes last: it only qualifies what is reproducible,
    and no refit overrules it.

    Attributes
    ----------
    state
        ``reproducible``: repetitions agree better than they would without a difference between the groups;
        ``confounded``: they do, but the groups also differ in age, site or a covariate; ``not reproducible``;
        ``not testable``: the threshold was made for other cases, or the agreement is too uncertain to tell.
    message
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

    state: State
    message: Text
    method: Literal["calibrated", "refits", "none"]
    statistic: float
    threshold: float | None = None
    p: float | None = None
    n: int = 0
    repetitions: int = 0
    values: tuple[float, ...] = ()

    @property
    def reason(self) -> str:
        """Why, in words that speak of settings as Python does."""
        return worded(self.message)

    @property
    def reliable(self) -> bool | None:
        """True for reproducible patterns, whatever else the groups differ in; None where that cannot be tested."""
        return {"not reproducible": False, "not testable": None}.get(self.state, True)

    def with_differences(self, names: Sequence[str]) -> Verdict:
        """Return the verdict where the groups differ in these variables, too."""
        if self.state != "reproducible" or not names:
            return self
        said = listed(list(names), joiner=" and ")
        but = f" But patients and controls also differ in {said}: what is reproducible may be that."
        return replace(self, state="confounded", message=Message(self.message, but))


def differences_that_count(balance: pd.DataFrame) -> list[str]:
    """Return the variables in which the groups differ so much that it may explain the patterns: *confounded*.

    Examples
    --------
    >>> from rindices.analysis import group_balance
    >>> people = pd.DataFrame({"age": [60, 62, 64, 70, 72, 74], "iq": [100, 101, 102, 100, 101, 102]})
    >>> differences_that_count(group_balance(people, [False, False, False, True, True, True]))
    ['age']
    """
    large = balance["difference"].abs() >= balance["kind"].map(_COUNTS_FROM).astype(float)
    return balance["variable"][balance["imbalanced"].astype(bool) & large].tolist()


def calibrated(swept: Swept, study: Study) -> Verdict:
    """Compare the agreement of the chosen setting with a threshold from simulated cohorts without disease."""
    look, statistic = swept.chosen.look, swept.chosen.value
    if look.n_models < FEWEST_MODELS:
        return _too_few(look.n_models, swept.chosen.n_repetitions, statistic)
    sizes = (int((~study.patient).sum()), int(study.patient.sum()))
    tried = _in_question(swept)
    limit, outside = highest_threshold(tried, sizes, study.residuals.shape[1])
    unlike, low, high = [*outside, *_unlike(study, swept)], look.low.pattern_agreement, look.high.pattern_agreement
    words: list[Text] = [
        f"Repeated trainings agree at {statistic:.3f} (95 % interval {low:.3f} to {high:.3f}), where 0.5 is chance. "
        f"The threshold is {limit:.3f}: {N_SD} sd above the mean of simulated cohorts without disease that have about "
        "as many people and regions, and the same number of patterns."
    ]
    if len(tried) > 1:
        words.append(f"Of {tried[0]} to {tried[-1]} patterns one was chosen, so it is the highest of their thresholds.")
    state: State = "reproducible" if low > limit else "not reproducible" if high < limit else "not testable"
    if unlike:
        but = f"But the threshold was made for other cases ({'; '.join(unlike)}): test with refits ("
        words.append(Message(but, Remedy("n_null", FEWEST_REFITS), ")."))
        state = "not testable"
    elif state == "not testable":
        more = Message("The interval holds the threshold: more repetitions can tell (", Remedy("n_repetitions"), ").")
        words.append(more)
    elif state == "not reproducible":
        words.append("There may be nothing to find, the number of patterns may not fit, or training was too short.")
    return Verdict(state, joined(words, " "), "calibrated", statistic, threshold=limit, repetitions=look.n_models)


def _too_few(n_models: int, n_repetitions: int, statistic: float) -> Verdict:
    if n_models == 0:
        words = (
            "Training failed: in every repetition an R-index is nearly the same for all patients (it collapsed). Do "
            "not use these R-indices. Look for fewer patterns, or give more regions: with few, training rarely learns."
        )
        return Verdict("not reproducible", words, "none", statistic)
    left = counted(n_models, "repetition") if n_repetitions == n_models else f"only {n_models} that can be used"
    words = f"Nobody can tell how well trainings agree: there are {left}, and {FEWEST_MODELS} are needed."
    return Verdict("not testable", words.replace("are 1 rep", "is 1 rep"), "none", statistic, repetitions=n_models)


def _unlike(study: Study, swept: Swept) -> list[str]:
    here, made = study.settings.preset, fast()
    same, weights = here.name == made.name, sorted({one.point.orthogonality for one in swept.judged})
    told = ", ".join(f"{weight:g}" for weight in weights)
    cases = {
        "groups with covariates alike, here few controls are like the patients": study.uncertainty > TOO_UNCERTAIN,
        f"preset {made.name}, here {here.name}": not same,
        f"{made.schedule.max_steps:,} steps, here {here.schedule.max_steps:,}": same
        and here.schedule.max_steps != made.schedule.max_steps,
        f"{_severities(made)} severities, here {_severities(here)}": same
        and here.training.latent != made.training.latent,
        f"orthogonality {made.weights.orthogonality:g}, here {told}": same and weights != [made.weights.orthogonality],
    }
    return [case for case, found in cases.items() if found]


def _severities(preset: Preset) -> str:
    return "independent" if preset.training.latent == "independent" else "correlated"


def refits(swept: Swept, study: Study, n_refits: int, execution: Execution) -> Verdict:
    """Search again in cohorts whose people were dealt out to the groups anew, and see how often they agree as well.

    The data and these cohorts are compared by the same statistic: the best agreement over the settings that are tried
    whatever the data are, of the same number of repetitions of each.
    """
    points = swept.at_first
    n_repetitions = min(FIRST_LOOK, swept.n_repetitions)
    members = [
        member for cohort in range(1, n_refits + 1) for member in members_of(points, range(n_repetitions), cohort)
    ]
    chunks = train_members(study, members, execution, "Cohorts without disease")

    def statistic(cohort: int) -> float:
        judged = [
            judge(study, point, n_repetitions, chunks if cohort else swept.chunks, execution, cohort).value
            for point in points
        ]
        return max((value for value in judged if not np.isnan(value)), default=_CHANCE)

    data, values = statistic(0), tuple(statistic(cohort) for cohort in range(1, n_refits + 1))
    p = (1 + sum(value >= data for value in values)) / (n_refits + 1)
    n_models = swept.chosen.look.n_models
    words = (
        f"Repeated trainings agree at {data:.3f} ({n_repetitions} repetitions of each setting). With people "
        f"dealt out to the groups at random, {n_refits} refits of the same search agree at {np.median(values):.3f} "
        f"(median) and at most at {max(values):.3f}: p = {p:.3g}."
    )
    state: State = "reproducible" if p <= LEVEL else "not reproducible"
    if n_models < 2:
        few = _too_few(n_models, swept.chosen.n_repetitions, data)
        state, words = few.state, f"{few.reason} {words}"
    elif state == "not reproducible":
        words += " The groups differ no more than groups of the same people put together at random."
    return Verdict(state, words, "refits", data, p=p, n=n_refits, repetitions=n_repetitions, values=values)


def _in_question(swept: Swept) -> list[int]:
    """Return the numbers of patterns that were tried against the one that was chosen; one pattern stands alone."""
    if swept.chosen.point.n_patterns == 1:
        return [1]
    return sorted({one.point.n_patterns for one in swept.judged} - {1})


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return what was compared, in plain JSON types."""
    kept = {name: value for name, value in vars(verdict).items() if name not in ("state", "message")}
    return json.loads(json.dumps(kept | {"values": list(verdict.values)}))
