"""Compute the tables of docs/results.md and results/README.md from the committed ones: claims, and kinds of cohorts.

    python experiments/numbers/claims.py             # prints them
    python experiments/numbers/claims.py --write     # writes them into the pages
    python experiments/numbers/claims.py --kinds     # prints every kind of cohort, not only the extremes

Intervals are Wilson's for proportions and Student's t over cohorts for means. Proportions of people are means over
cohorts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from scipy.stats import t as student_t

from rindices.core.inference import MOST_AT_ZERO

RESULTS = Path(__file__).parents[2] / "results"
PAGES = (RESULTS.parent / "docs" / "results.md", RESULTS / "README.md")
NONE, LINEAR, FAST = "none", "`linear`", "`fast`"
_NOT_FOUND = 0.6  # agreement below which the verdict is *not reproducible*
_SIZES = {100: "100 + 200", 492: "492 + 900"}
_COMMAND = "`{}.py`"


class Claim(NamedTuple):
    """A row of a table of claims."""

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
    """Return a claim about a proportion of studies."""
    found = binomtest(int(of.sum()), len(of)).proportion_ci(method="wilson")
    limits = f"{100 * found.low:.1f}–{_percent(found.high)}"
    return Claim(claim, cohorts, len(of), f"{_percent(of.mean())} ({int(of.sum())})", limits, script, training)


def mean(claim: str, cohorts: str, of: pd.Series, script: str, training: str, *, percent: bool = True) -> Claim:
    """Return a claim about a mean over cohorts."""
    half = student_t.isf(0.025, len(of) - 1) * of.std(ddof=1) / np.sqrt(len(of))
    ends = of.mean() - half, of.mean() + half
    if percent:
        limits = f"{100 * ends[0]:.1f}–{_percent(ends[1])}"
        return Claim(claim, cohorts, len(of), _percent(of.mean()), limits, script, training)
    told, low, high = (f"{value:.3f}".replace("-", "−") for value in (of.mean(), *ends))
    return Claim(claim, cohorts, len(of), told, f"{low} to {high}", script, training)


def claims() -> list[Claim]:
    """Return all rows."""
    return [*_verdicts(), *_counts(), *_numbers(), *_severities(), *_groups(), *_visits(), *_elsewhere()]


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv")


def _verdicts() -> list[Claim]:
    table, script = _read("verdicts"), _COMMAND.format("verdicts")
    positive = table["state"].isin(["reproducible", "weak"])
    null, ill = table["true"] == 0, table["true"] > 0
    shown, demo = _read("demonstration"), _COMMAND.format("demonstration")
    trained, again = _read("linear_start"), _COMMAND.format("linear_start")
    rows = [
        share("cohorts without disease called *reproducible* or *weak*", "seven kinds", positive[null], script, LINEAR),
        share("cohorts with disease called *reproducible* or *weak*", "twelve kinds", positive[ill], script, LINEAR),
    ]
    for number in (3, 10):
        least = trained[[f"agree_{number}", f"with_linear_{number}"]].min(axis=1).dropna()
        claim = f"{number} repetitions reach the agreement that the verdict requires"
        rows.append(share(claim, "30 kinds", least >= _NOT_FOUND, again, FAST))
    for device, of in shown.groupby("device"):
        claim = f"demonstrations called *reproducible* with three patterns, {device}"
        rows.append(share(claim, "basic", (of["verdict"] == "reproducible") & (of["n_patterns"] == 3), demo, FAST))
    return rows


def _counts() -> list[Claim]:
    table, script = _read("verdicts").query("true > 0"), _COMMAND.format("verdicts")
    table = pd.concat([table, _read("counts")])
    right, more = table["counted"] == table["true"], table["counted"] > table["true"]
    easy = table["cohort"].isin(["basic", "mild", "scarce", "overlap", "half absent"])
    noise = table["cohort"] == "noise within patterns"
    script, hard = f"{script[:-1]} --counts`", "small, correlated, Beta(1, 3), hard basic, hard mild, real"
    return [
        share(
            "number of patterns (1 to 4) estimated correctly",
            "basic, mild, scarce, overlap, half absent",
            right[easy],
            script,
            NONE,
        ),
        share("the same", hard, right[~easy & ~noise], script, NONE),
        share("the same", "noise within patterns", right[noise], script, NONE),
        share("too many patterns counted", "eleven kinds", more[~noise], script, NONE),
        share("too many patterns counted", "noise within patterns", more[noise], script, NONE),
    ]


def _numbers() -> list[Claim]:
    table, script = _read("linear_start"), _COMMAND.format("linear_start")
    kinds, rows = "30 kinds", []
    for name, other in (
        ("ridge regression trained on the truth", 0),
        ("linear models alone", "linear"),
        ("`blind`", "blind"),
    ):
        less = table["less_ridge"] - (table[other] if other else 0)
        rows.append(mean(f"concordance minus that of {name}", kinds, less, script, FAST, percent=False))
    simulated = ~table["cohort"].str.startswith(("real", "the authors'")) & table["fresh_cover95"].notna()
    unusual = table["cohort"].isin(["dense", "half", "signed"])
    inside = table["fresh_cover95"]
    claim = "true severities inside"
    rows.append(mean(claim, "21 simulated kinds", inside[simulated & ~unusual], script, FAST))
    for kind in ("signed", "dense", "half"):
        rows.append(mean(claim, kind, inside[table["cohort"] == kind].dropna(), script, FAST))
    real = table[table["cohort"].str.startswith("real")]["cover95"].dropna()
    rows.append(mean("true severities inside, training patients", "patterns in real people", real, script, FAST))
    above = table["above_95"]
    few = table["cohort"].str.contains("150")
    claim = "new controls above the 95th centile"
    rows.append(mean(claim, "22 simulated kinds, 492 + 900", above[simulated & ~few], script, FAST))
    return [*rows, mean(claim, "150 + 300", above[few].dropna(), script, FAST)]


_FAILING = 0.85


def _severities() -> list[Claim]:
    table, script = _read("severe"), _COMMAND.format("severe")
    claim, severe = "true severities inside, four repetitions", table["cohort"].str.contains(r"Beta\(3, 1\)")
    worst = table["cohort"] == table.groupby("cohort")["inside"].mean().idxmin()
    sets = {"Beta(3, 1)": severe, "other severities": ~severe}
    named = {f"{table['cohort'][who].nunique()} kinds, {name}": who for name, who in sets.items()}
    named[f"lowest: {table['cohort'][worst].iloc[0]}"] = worst
    few, of_few, with_few = _read("few_people"), f"{claim}, few people", "`severe.py --few`"
    sizes, kinds = "four kinds, 60 to 200 of each", f"{table['cohort'].nunique()} kinds, 300 + 600"
    recognised, failing = table["at_zero"] > MOST_AT_ZERO, table["f_inside"] < _FAILING
    return [
        share(
            "networks' intervals with coverage below 85 %, recognised and replaced",
            kinds,
            recognised[failing],
            script,
            FAST,
        ),
        share(
            "networks' intervals with coverage above 85 %, replaced nevertheless",
            kinds,
            recognised[~failing],
            script,
            FAST,
        ),
        share("reported intervals with coverage below 85 %", kinds, table["inside"] < _FAILING, script, FAST),
        *(mean(claim, name, table["inside"][who], script, FAST) for name, who in named.items()),
        mean(of_few, sizes, few["inside"], with_few, FAST),
        share("reported intervals with coverage below 85 %", sizes, few["inside"] < _FAILING, with_few, FAST),
    ]


def _groups() -> list[Claim]:
    balance, auc, gaps = _read("balance"), _read("separation"), _read("gaps")
    plain, several = balance["sites"] == 1, balance["sites"] > 1
    random, older = balance["older_sd"] == 0, balance["older_sd"] > 0
    called, script = balance["confounded"], _COMMAND.format("balance")
    rows = [
        share("randomised studies called *confounded*", "1 to 20 variables", called[plain & random], script, NONE),
        share("the same at four sites", "20 variables", called[several & random], script, NONE),
        share(
            "studies with an age difference of 0.5 sd called *confounded*",
            "6 or 20 variables",
            called[plain & older],
            script,
            NONE,
        ),
    ]
    for aim, of in auc.groupby("aim")["inside"]:
        claim = f"intervals that contain an AUC of {aim:g} in new people"
        rows.append(share(claim, "three sizes", of, _COMMAND.format("separation"), NONE))
    rows += _fits_with_gaps()
    script = _COMMAND.format("gaps")
    states = gaps[gaps["what"] == "state"]["state"].isin(["reproducible", "weak"])
    rows.append(
        share(
            "cohorts without disease called *reproducible* or *weak*, 20 % of cells missing",
            "100 + 200",
            states,
            script,
            LINEAR,
        )
    )
    for n_controls, of in gaps[gaps["what"] == "auc"].groupby("n_controls"):
        null = of.pivot(index="seed", columns="gaps", values="value").dropna()
        for amount in null.columns[2:] if len(null) > 1 else ():  # the smallest amount is only in the table of gaps
            claim = f"AUC without disease, {100 * amount:.0f} % of cells missing minus none missing"
            rows.append(mean(claim, _SIZES[n_controls], null[amount] - null[0.0], script, NONE, percent=False))
    return rows


def _fits_with_gaps() -> list[Claim]:
    table, script = _read("gaps_fits").query("missing == 0"), "`gaps.py --fits`"
    rows = []
    found = table.pivot(index=["kind", "seed"], columns="gaps", values=["concordance", "inside"])
    for gaps in (0.1, 0.2):
        claim = f"{100 * gaps:.0f} % of training cells missing:"
        lost = found["concordance", gaps] - found["concordance", 0.0]
        rows.append(mean(f"{claim} change in concordance", "basic, mild", lost, script, FAST, percent=False))
        rows.append(mean(f"{claim} true severities inside", "basic, mild", found["inside", gaps], script, FAST))
    return rows


def _visits() -> list[Claim]:
    true, groups, script = _read("true_change"), _read("group_change"), _COMMAND.format("true_change")
    rows = []
    for noise, of in true.groupby("noise"):
        by_cohort = of.groupby(["kind", "seed"])["inside"].mean()
        rows.append(mean(f"true changes inside, scan noise {noise:g}", "basic, mild", by_cohort, script, FAST))
    for kind, of in groups.groupby("kind")["least_q"]:  # both kinds have the same people and the same noise
        claim = "studies without change in which any q is below 0.05"
        rows.append(share(claim, f"{kind}, 40 + 40, two visits", of < 0.05, script, FAST))
    return rows


def _elsewhere() -> list[Claim]:
    table, script = _read("elsewhere"), _COMMAND.format("elsewhere")
    rows = []
    for (what, size), of in table.groupby(["what", "size"]):
        name = {"new site": f"new site, {size} controls", "known site": "training site"}.get(what, what)
        by_cohort = of.groupby(["kind", "seed"])["inside"].mean()
        rows.append(mean(f"true severities inside, {name}", "basic, mild", by_cohort, script, FAST))
    script = f"{script[:-1]} --real abide1_volumes.csv`"
    for size, of in _read("real_sites").groupby("size"):
        by_site = of.groupby("site")["inside"].mean()
        if len(by_site) < 3:
            continue
        claim = f"true severities inside, real new site, {size} controls"
        rows.append(mean(claim, "sites of ABIDE I", by_site, script, LINEAR))
    return rows


_KINDS = {"less_ridge": 3, "networks": 3, "linear": 3, "blind": 3, "rmse": 3, "inside": 0, "raw": 0, "width95": 2}
_SHARES = ("inside", "raw", "above_95")


def kinds_of_cohorts(*, every: bool = False) -> list[str]:
    """Return two common kinds, the authors' sample and every kind that is worst in some column; or `every` kind."""
    table = _read("linear_start")
    for name, own in (("inside", "cover95"), ("raw", "raw_cover95")):
        table[name] = table[f"fresh_{own}"].fillna(table[own])
    table[list(_SHARES)] *= 100
    digits = {"ridge": 3, **_KINDS, "above_95": 1}
    means = table.groupby("cohort", sort=False)[list(digits)].mean()
    means.loc["the authors' sample", "rmse":] = np.nan  # its full change is unknown, so it has no unit
    shown = {"basic, uniform", "mild, uniform", "the authors' sample", *means.iloc[:, 1:5].idxmin()}
    shown |= {*means[["inside", "raw"]].idxmin(), *means[["rmse", "inside", "width95", "above_95"]].idxmax()}
    means.loc["mean of all kinds"] = means.mean()
    rows = []
    for kind, row in means.iterrows():
        if every or kind in shown or kind == "mean of all kinds":
            cells = ["–" if np.isnan(row[name]) else f"{row[name]:.{n}f}" for name, n in digits.items()]
            rows.append(f"| {kind} | {' | '.join(cells)} |".replace("-", "−"))
    return rows


def filled_gaps() -> list[str]:
    """Return how well imputed cells predict the diagnosis, and how much of a group difference they retain."""
    table = _read("gaps")
    rows = []
    for n_controls, of in table[table["what"] == "auc"].groupby("n_controls"):
        found = of.groupby("gaps")["value"].agg(["mean", "sem"])
        cells = [f"{mean:.3f} ({error:.3f})" for mean, error in zip(found["mean"], found["sem"], strict=True)]
        rows.append(f"| AUC without disease, {_SIZES[n_controls]} (standard error) | {' | '.join(cells)} |")
    kept = table[(table["what"] == "kept") & (table["gaps"] > 0)].groupby("gaps")["value"].mean()
    told = " | ".join(f"{100 * value:.0f} %" for value in kept)
    return [*rows, f"| group difference retained | | {told} |"]


def counted_from() -> list[str]:
    """Return coverage if nearly all patients are severe, as reported and if f synthesised people regardless."""
    rows = []
    for cohort, row in _read("severe").groupby("cohort", sort=False).mean(numeric_only=True).iterrows():
        ours, by_f = ([f"{100 * row[part + 'inside']:.0f} %", f"{row[part + 'rmse']:.3f}"] for part in ("", "f_"))
        cells = [str(cohort), f"{row['at_zero']:.2f}", *ours, f"{100 * row['raw']:.0f} %", *by_f]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def few_people() -> list[str]:
    """Return coverage with few people, as reported and for intervals from the repetitions alone."""
    rows = []
    for (n_controls, n_patients), own in _read("few_people").groupby(["n_controls", "n_patients"], sort=False):
        row = own.mean(numeric_only=True)
        worst = [f"{100 * own[column].min():.0f} %" for column in ("inside", "alone_inside")]
        cells = [f"{n_controls} + {n_patients}", f"{row['concordance']:.3f}"]
        for part, least in zip(("", "alone_"), worst, strict=True):
            cells += [f"{100 * row[part + 'inside']:.0f} % ({least})", f"{row[part + 'width']:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


# Rows that the pages summarise in a sentence: their table is in results/README.md.
_BESIDE = (
    *(
        "demonstration",
        "3 repetitions",
        "10 repetitions",
        "intervals that",
        "AUC without",
        "10 % of training",
        "20 % of training",
    ),
    *(
        "true severities inside, four",
        "true severities inside, without",
        "networks' intervals",
        "reported intervals",
        "true severities inside, training site",
        "true severities inside, new site, 20",
        "true severities inside, new site, 40",
        "true severities inside, real new site, 20",
        "concordance minus that of linear",
        "concordance minus that of `blind`",
        "too many",
        "randomised",
        "the same at",
        "studies with",
    ),
)

HEADS = {
    "| people | concordance | inside (lowest) | width | inside, repetitions alone (lowest) | width |": few_people,
    "| claim | cohorts | n | estimate | interval | command | training |": (
        lambda: [str(row) for row in claims() if not row.claim.startswith(_BESIDE)]
    ),
    "| further claim | cohorts | n | estimate | interval | command | training |": (
        lambda: [str(row) for row in claims() if row.claim.startswith(_BESIDE)]
    ),
    "| cohorts | ridge | rule | networks | linear | blind | error | inside, % | raw, % | width | above, % |": (
        kinds_of_cohorts
    ),
    "| cohort | at 0 | inside, model's unit | error | inside, true severity | inside, f alone | error, f alone |": (
        counted_from
    ),
    "| cells missing | none | 10 % | 20 % | 35 % |": filled_gaps,
}


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kinds", action="store_true")
    options, texts = parser.parse_args(), {path: path.read_text(encoding="utf-8") for path in PAGES}
    if options.kinds:
        print("\n".join(kinds_of_cohorts(every=True)))
        return
    for head, rows in HEADS.items():
        print("\n".join([head, *rows()]))
        path = next(path for path, text in texts.items() if f"{head}\n" in text)
        before, after = texts[path].split(f"{head}\n")
        line, rest = after.split("\n", 1)
        texts[path] = "\n".join([f"{before}{head}", line, *rows(), "", rest.split("\n\n", 1)[1]])
    for path, text in texts.items() if options.write else ():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
