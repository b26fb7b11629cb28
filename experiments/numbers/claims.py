"""The table on top of docs/results.md, computed from the committed tables: claim, cohorts, n, estimate, interval.

    python experiments/numbers/claims.py

Intervals of shares are Wilson's, of means those of Student's t over cohorts. Shares of people are means over cohorts.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from scipy.stats import t as student_t

RESULTS = Path(__file__).parents[2] / "results"
NONE, LINEAR, FAST = "none", "`linear`", "`fast`"
_COMMAND = "`python experiments/numbers/{}.py`"


class Claim(NamedTuple):
    """A row of the table."""

    claim: str
    cohorts: str
    n: int
    estimate: str
    interval: str
    command: str
    training: str

    def __str__(self) -> str:
        """Return the row in Markdown."""
        return f"| {' | '.join(str(part) for part in self)} |"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def share(claim: str, cohorts: str, of: pd.Series, script: str, training: str) -> Claim:
    """Return a share of studies."""
    found = binomtest(int(of.sum()), len(of)).proportion_ci(method="wilson")
    limits = f"{100 * found.low:.1f} to {_percent(found.high)}"
    return Claim(claim, cohorts, len(of), f"{_percent(of.mean())} ({int(of.sum())})", limits, script, training)


def mean(claim: str, cohorts: str, of: pd.Series, script: str, training: str, *, percent: bool = True) -> Claim:
    """Return a mean over cohorts."""
    half = student_t.isf(0.025, len(of) - 1) * of.std(ddof=1) / np.sqrt(len(of))
    ends = of.mean() - half, of.mean() + half
    if percent:
        limits = f"{100 * ends[0]:.1f} to {_percent(ends[1])}"
        return Claim(claim, cohorts, len(of), _percent(of.mean()), limits, script, training)
    told, low, high = (f"{value:.3f}".replace("-", "−") for value in (of.mean(), *ends))
    return Claim(claim, cohorts, len(of), told, f"{low} to {high}", script, training)


def claims() -> list[Claim]:
    """Return all rows."""
    return [*_verdicts(), *_numbers(), *_severities(), *_groups(), *_visits(), *_elsewhere()]


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv")


def _verdicts() -> list[Claim]:
    table, script = _read("verdicts"), _COMMAND.format("verdicts")
    positive = table["state"].isin(["reproducible", "weak"])
    null, ill = table["true"] == 0, table["true"] > 0
    return [
        share("*reproducible* or *weak* without disease", "seven kinds", positive[null], script, LINEAR),
        share("*reproducible* or *weak* with disease", "twelve kinds", positive[ill], script, LINEAR),
        *_counts(),
    ]


def _counts() -> list[Claim]:
    table, script = _read("counts"), "`python experiments/numbers/verdicts.py --counts`"
    right, more = table["counted"] == table["true"], table["counted"] > table["true"]
    easy = table["cohort"].isin(["basic", "mild", "scarce", "overlap", "half absent"])
    return [
        share("right number, 1 to 4 patterns", "basic, mild, scarce, overlap, half absent", right[easy], script, NONE),
        share("the same", "hard, small, correlated, Beta(1, 3), noise, real", right[~easy], script, NONE),
        share("more patterns counted than there are", "twelve kinds", more, script, NONE),
    ]


def _numbers() -> list[Claim]:
    table, script = _read("linear_start"), _COMMAND.format("linear_start")
    kinds = f"{table['cohort'].nunique()} kinds"
    return [
        mean("concordance less that of ridge regression", kinds, table["less_ridge"], script, FAST, percent=False),
    ]


def _severities() -> list[Claim]:
    table, script = _read("severe"), _COMMAND.format("severe")
    rows = []
    for cohort, of in table.groupby("cohort", sort=False):
        told, low, high = (_percent(value) for value in (of["inside"].mean(), of["inside"].min(), of["inside"].max()))
        limits = f"{low} and {high}"  # of two cohorts an interval says nothing
        claim = f"true severities inside, {cohort}"
        rows.append(Claim(claim, "300 + 600, fresh patients", len(of), told, limits, script, FAST))
    return rows


def _groups() -> list[Claim]:
    balance, auc, gaps = _read("balance"), _read("separation"), pd.concat([_read("gaps"), _read("gaps_auc")])
    plain, several = balance["sites"] == 1, balance["sites"] > 1
    random, older = balance["older_sd"] == 0, balance["older_sd"] > 0
    called, script = balance["confounded"], _COMMAND.format("balance")
    rows = [
        share("randomised, called *confounded*", "1 to 20 variables", called[plain & random], script, NONE),
        share("the same at four sites", "20 variables", called[several & random], script, NONE),
        share("age different by 0.5 sd, called so", "6 or 20 variables", called[plain & older], script, NONE),
    ]
    for aim, of in auc.groupby("aim")["inside"]:
        claim = f"interval of the AUC holds that of fresh people, AUC {aim:g}"
        rows.append(share(claim, "60 + 60", of, _COMMAND.format("separation"), NONE))
    script = "`python experiments/numbers/gaps.py`, also with `--auc`"
    for n_controls, of in gaps[gaps["what"] == "auc"].groupby("n_controls"):
        null = of.pivot(index="seed", columns="gaps", values="value").dropna()
        for amount in null.columns[1:] if len(null) > 1 else ():
            claim = f"AUC without disease, {100 * amount:.0f} % gaps less none"
            size = {100: "100 + 200", 492: "492 + 900"}[n_controls]
            rows.append(mean(claim, size, null[amount] - null[0.0], script, NONE, percent=False))
    return rows


def _visits() -> list[Claim]:
    true, groups, script = _read("true_change"), _read("group_change"), _COMMAND.format("true_change")
    rows = []
    for noise, of in true.groupby("noise"):
        by_cohort = of.groupby(["kind", "seed"])["inside"].mean()
        rows.append(mean(f"true changes inside, scan noise {noise:g}", "basic, mild", by_cohort, script, LINEAR))
    null = groups["least_q"] < 0.05
    return [*rows, share("groups without change, any q < 0.05", "40 + 40, two visits", null, script, LINEAR)]


def _elsewhere() -> list[Claim]:
    table, script = _read("elsewhere"), _COMMAND.format("elsewhere")
    rows = []
    for (what, size), of in table.groupby(["what", "size"]):
        name = f"{what}, {size} controls" if what == "new site" else what
        by_cohort = of.groupby(["kind", "seed"])["inside"].mean()
        rows.append(mean(f"true severities inside, {name}", "basic, mild", by_cohort, script, LINEAR))
    return rows


if __name__ == "__main__":
    print("\n".join(map(str, claims())))
