"""The tables, the findings and the figure of docs/peers.md, from results/peers.csv.

python benchmarks/peers/peers_page.py            # prints them
python benchmarks/peers/peers_page.py --write    # writes them into the page, and docs/pictures/peers.svg
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import GREY, INK, MARKERS, OTHER, PATTERN_COLOURS, STYLE

ROOT = Path(__file__).parents[2]
RESULTS, PAGE, PICTURE = ROOT / "results" / "peers.csv", ROOT / "docs" / "peers.md", ROOT / "docs/pictures/peers.svg"
BOUND, LINEAR, OURS, PCA = "regression told the truth", "rindices, linear", "rindices", "PCA of z-scores"
METHODS = (BOUND, OURS, LINEAR, "Surreal-GAN", "Smile-GAN", "HYDRA", "SuStaIn", "NMF", "opNMF", PCA)
PEERS = METHODS[3:]
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
CONTINUOUS = (*KINDS, "real people", "authors' sample", "one pattern")
DISCRETE = ("subtypes", "sequence", "sequence, independent")
ABSENT, AUTHORS = "–", "authors' sample"
TABLE = pd.read_csv(RESULTS, keep_default_na=False, na_values=[""])


class Claim(NamedTuple):
    """A sentence of the page and whether the measurements bear it out."""

    text: str
    holds: bool


def cell(method: str, cohort: str, column: str = "concordance", part: str = "whole") -> float:
    """Return the mean over cohorts of a kind; NaN where nothing was measured."""
    return float(rows_of(method, cohort, part)[column].mean())


def rows_of(method: str, cohort: str | None = None, part: str = "whole") -> pd.DataFrame:
    """Return the measurements of a method."""
    own = (TABLE["method"] == method) & (TABLE["part"] == part)
    return TABLE[own & ((TABLE["cohort"] == cohort) | (cohort is None))]


def mean(method: str, cohorts: Iterable[str], column: str = "concordance", part: str = "whole") -> float:
    """Return the mean over kinds of cohorts."""
    return float(np.mean([cell(method, cohort, column, part) for cohort in cohorts]))


def told(value: float, digits: int = 2) -> str:
    """Return a number of the page."""
    return ABSENT if np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no −0.00


def table_of(columns: list[str], cells: Callable[[str], list[str]], methods: Iterable[str] = METHODS) -> list[str]:
    """Return a table in Markdown with a row for each method that has anything to say."""
    rows = {method: cells(method) for method in methods}
    kept = [f"| {method} | {' | '.join(row)} |" for method, row in rows.items() if set(row) != {ABSENT}]
    return [f"| method | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns), *kept]


def severities() -> list[str]:
    """Concordance where severities are continuous."""
    return table_of(list(CONTINUOUS), lambda method: [told(cell(method, cohort)) for cohort in CONTINUOUS])


def discrete() -> list[str]:
    """Concordance and agreement with labels where each patient has one pattern."""

    def cells(method: str) -> list[str]:
        both = [[told(cell(method, cohort, column)) for column in ("concordance", "ari")] for cohort in DISCRETE]
        return [ABSENT if pair[0] == ABSENT else "; ".join(pair) for pair in both]

    return table_of(list(DISCRETE), cells)


def halves() -> list[str]:
    """Agreement of disjoint halves, and what is said where there is no disease."""
    cohorts = ("basic", "mild", "real people", "authors' sample", "subtypes", "sequence", "one pattern", "no disease")

    def cells(method: str) -> list[str]:
        agreements = [told(cell(method, cohort, "agreement", "halves")) for cohort in cohorts]
        said = pd.concat([rows_of(method, "no disease", part)["verdict"] for part in ("whole", "halves")]).dropna()
        verdicts = [one for text in said for one in text.split("; ")]
        wrong = sum(one in ("reproducible", "weak") for one in verdicts)
        return [*agreements, f"{wrong} of {len(verdicts)}" if verdicts else "no test"]

    return table_of([*cohorts, "false positives"], cells, [method for method in METHODS if method != BOUND])


def numbers() -> list[str]:
    """The number of patterns that a method chooses, and what it then reaches."""
    cohorts = ("basic", "mild", "subtypes", "sequence", "one pattern", "no disease")
    true = dict(zip(cohorts, (3, 3, 3, 2, 1, 0), strict=True))

    def cells(method: str) -> list[str]:
        made = []
        for cohort in cohorts:
            number, reached = (cell(method, cohort, name, "chosen") for name in ("number", "concordance"))
            made.append(ABSENT if np.isnan(number) else f"{number:.0f}" + f" ({told(reached)})" * (reached == reached))
        return made

    return table_of([f"{cohort}: {true[cohort]}" for cohort in cohorts], cells)


def costs() -> list[str]:
    """Processor time and memory of a fit, and how far the method was run."""

    def cells(method: str) -> list[str]:
        timed, whole = rows_of(method, part="timing"), rows_of(method)
        minutes, notes = timed["minutes"].mean(), whole["note"].dropna()
        here = told(minutes, 1 if minutes >= 0.1 else 2)
        if method in ("Surreal-GAN", "Smile-GAN"):
            here = f"{minutes / amount(timed['note'].iloc[0]) * notes.map(amount).mean():,.0f} a model"
        elif timed["note"].notna().any():
            here += f" ({timed['note'].dropna().iloc[0]})"
        there = whole["minutes"].mean()
        run = sorted({re.sub(r", the one kept.*|, 0 stopped.*", "", note) for note in notes})
        far = "all of it" if not run else run[0]
        if method in ("Surreal-GAN", "Smile-GAN"):
            done = notes.map(amount)
            far = f"{int(amount(run[0], 'repetitions|folds'))} models of {done.min():,.0f} to {done.max():,.0f} {UNIT[method]}"
        return [here, told(there, 1 if there >= 0.1 else 2), told(timed["gib"].max(), 1), far]

    return table_of(
        ["minutes, two cores", "minutes, one core of the H200's machine", "GiB", "how far it was run"], cells
    )


UNIT = {"Surreal-GAN": "steps", "Smile-GAN": "epochs"}


def amount(note: str, unit: str = "steps|epochs") -> float:
    """Return the steps or epochs that a note names."""
    return float(re.findall(rf"([\d,]+) (?:{unit})", note)[0].replace(",", ""))


def best_peer(cohort: str, column: str = "concordance") -> tuple[str, float]:
    """Return the best method of others, and what it reaches."""
    values = {method: cell(method, cohort, column) for method in PEERS}
    name = max(values, key=lambda method: np.nan_to_num(values[method], nan=-1))
    return name, values[name]


def answers() -> dict[str, tuple[str, Claim]]:
    """Return what to use for which question, with what speaks for it."""
    both, agreement = ("basic", "mild"), {"column": "agreement", "part": "halves"}

    def found(method: str, *cohorts: str, **more: str) -> str:
        return " and ".join(told(cell(method, cohort, **more)) for cohort in cohorts)

    labels = {name: cell(name, "subtypes", "ari") for name in (LINEAR, OURS, "Smile-GAN", "HYDRA", "NMF")}
    second = best_peer("basic")[0]
    close = [cell(name, "authors' sample") for name in (OURS, LINEAR, "NMF", "opNMF", "Surreal-GAN")]
    verdicts = pd.concat([rows_of(name, "no disease")["verdict"] for name in (OURS, LINEAR)])
    return {
        "How far has each of several patterns gone in each person?": (
            "rindices",
            Claim(
                f"{found(OURS, *both)} on *basic* and *mild*; regression told the truth {found(BOUND, *both)}, the best "
                f"of the others ({second}) {found(second, *both)}",
                all(cell(OURS, name) > best_peer(name)[1] for name in both),
            ),
        ),
        "The same in seconds, or for hundreds of tables?": (
            "rindices with `--method linear`",
            Claim(
                f"{found(LINEAR, *both)}, in {told(rows_of(LINEAR, part='timing')['minutes'].mean(), 1)} minutes of one "
                "core with the verdict",
                all(cell(OURS, name) - cell(LINEAR, name) < 0.01 for name in both),
            ),
        ),
        "Which one of several distinct subtypes does each patient have?": (
            "the largest severity of rindices, if you know how many subtypes there are",
            Claim(
                f"ARI {told(labels[OURS])} on *subtypes*, `--method linear` {told(labels[LINEAR])}, Smile-GAN (stopped "
                f"early) {told(labels['Smile-GAN'])}, NMF {told(labels['NMF'])}, HYDRA (one repetition) "
                f"{told(labels['HYDRA'])}",
                min(labels[OURS], labels[LINEAR]) > best_peer("subtypes", "ari")[1],
            ),
        ),
        "In which order do regions become abnormal, and at which stage is each person?": (
            "SuStaIn, on a few regional means",
            Claim(
                f"only SuStaIn gives an order; concordance with the stage {found('SuStaIn', *DISCRETE[1:])} on the two "
                f"kinds of *sequence*, rindices {found(OURS, *DISCRETE[1:])}",
                all(cell("SuStaIn", name) > cell(OURS, name) for name in DISCRETE[1:]),
            ),
        ),
        "Do patients differ from controls in a way that is found again?": (
            "the verdict of rindices",
            Claim(
                f"without disease: *{verdicts.iloc[0]}*. The others have no test, and halves agree all the same: opNMF "
                f"{found('opNMF', 'no disease', **agreement)}, SuStaIn {found('SuStaIn', 'no disease', **agreement)}, "
                f"NMF {found('NMF', 'no disease', **agreement)}",
                set(verdicts) == {"no difference"},
            ),
        ),
        "Strong, separate patterns, and healthy people who vary little?": (
            "any of rindices, NMF, opNMF and Surreal-GAN",
            Claim(
                f"{told(min(close))} to {told(max(close))} on the authors' sample; regression told the truth "
                f"{found(BOUND, AUTHORS)}",
                max(close) - min(close) < 0.03,
            ),
        ),
    }


def findings() -> list[Claim]:
    """Return what the measurements show, with the comparisons that each sentence makes."""
    ours = {name: cell(OURS, name) for name in (*CONTINUOUS, *DISCRETE)}
    gaps = [cell(BOUND, name) - ours[name] for name in CONTINUOUS]
    nearest = min(ours[name] - best_peer(name)[1] for name in (*KINDS, "real people", "one pattern"))
    ari = {name: {method: cell(method, name, "ari") for method in METHODS} for name in DISCRETE}
    agree = {
        method: {name: cell(method, name, "agreement", "halves") for name in ("mild", "no disease")}
        for method in METHODS
    }
    steady = ("NMF", "opNMF", "SuStaIn")
    chosen = rows_of(LINEAR, "subtypes", "chosen").iloc[0]
    right = [rows_of(LINEAR, name, "chosen")["number"].iloc[0] == 3 for name in (*KINDS, "real people", AUTHORS)]
    surreal = [ours[name] - cell("Surreal-GAN", name) for name in (*KINDS, "real people", "one pattern")]
    return [
        Claim(
            f"**Where severities are continuous**, rindices is at most {told(max(gaps), 3)} below regression that is told "
            f"the truth, and at least {told(nearest)} above every other method wherever healthy people vary as much as the "
            "paper's or as real people do. NMF, opNMF, PCA and SuStaIn mostly describe how healthy people differ, which "
            "is more than what the disease does to them.",
            max(gaps) < 0.03 and nearest > 0.03,
        ),
        Claim(
            f"**Surreal-GAN** comes next on most of these, {told(min(surreal))} to "
            f"{told(max(surreal))} behind, at fewer steps than its authors ask for.",
            min(surreal) > 0
            and sum(best_peer(name)[0] == "Surreal-GAN" for name in (*KINDS, "real people", "one pattern")) >= 4,
        ),
        Claim(
            f"**The linear model alone** is within {told(max(abs(ours[n] - cell(LINEAR, n)) for n in CONTINUOUS), 3)} of "
            f"the networks there, and as good at labels of subtypes (ARI {told(ari['subtypes'][LINEAR])} and "
            f"{told(ari['subtypes'][OURS])}).",
            max(abs(ours[n] - cell(LINEAR, n)) for n in CONTINUOUS) < 0.02
            and abs(ari["subtypes"][LINEAR] - ari["subtypes"][OURS]) < 0.05,
        ),
        Claim(
            f"**Where the truth is a sequence, we lose.** SuStaIn's expected stage follows the true one better "
            f"({told(cell('SuStaIn', 'sequence'))} against {told(ours['sequence'])}; where regions vary independently, as "
            f"it assumes, {told(cell('SuStaIn', DISCRETE[2]))} against {told(ours[DISCRETE[2]])}), and only SuStaIn says "
            f"in which order lobes change. Where regions vary independently NMF is ahead of us, too "
            f"({told(cell('NMF', DISCRETE[2]))}), and labels of SuStaIn and NMF are better (ARI "
            f"{told(ari[DISCRETE[2]]['SuStaIn'])} and {told(ari[DISCRETE[2]]['NMF'])}, ours {told(ari[DISCRETE[2]][OURS])}); "
            f"where they do not, ours are (ARI {told(ari['sequence'][OURS])}, SuStaIn {told(ari['sequence']['SuStaIn'])}). "
            "SuStaIn saw eight lobar means where the others saw 128 regions.",
            cell("SuStaIn", "sequence") > ours["sequence"]
            and min(cell(name, DISCRETE[2]) for name in ("SuStaIn", "NMF")) > ours[DISCRETE[2]]
            and min(ari[DISCRETE[2]][name] for name in ("SuStaIn", "NMF")) > ari[DISCRETE[2]][OURS]
            and ari["sequence"][OURS] > ari["sequence"]["SuStaIn"],
        ),
        Claim(
            f"**Where the truth is a subtype**, told how many there are, rindices gives the best labels (ARI "
            f"{told(ari['subtypes'][OURS])}; the best of the others, {best_peer('subtypes', 'ari')[0]}, "
            f"{told(best_peer('subtypes', 'ari')[1])}). Left to itself it counts {chosen['number']:.0f} of the three: "
            f"subtypes of one strength differ in two directions, not in three, and the ARI falls to "
            f"{told(chosen['ari'])}. So give `--patterns` where you expect subtypes. On all "
            f"{len(right)} kinds with three continuous patterns it counts three.",
            ari["subtypes"][OURS] > best_peer("subtypes", "ari")[1] and chosen["number"] == 2 and all(right),
        ),
        Claim(
            f"**Agreement of halves is no evidence of a disease.** Two halves of the people who share nobody agree about "
            f"what NMF, opNMF and SuStaIn find at {told(min(agree[n]['mild'] for n in steady))} or more on *mild*, better "
            f"than about our patterns ({told(agree[OURS]['mild'])}, linear {told(agree[LINEAR]['mild'])}), and at "
            f"{told(min(agree[n]['no disease'] for n in steady))} or more without a disease: healthy variation is "
            f"reproducible, too. Our linear model's halves agree at {told(agree[LINEAR]['no disease'])} then, Surreal-GAN's "
            f"at {told(agree['Surreal-GAN']['no disease'])}, close to chance.",
            min(agree[n]["mild"] for n in steady) > agree[OURS]["mild"]
            and min(agree[n]["no disease"] for n in steady) > 0.85
            and max(agree[n]["no disease"] for n in (LINEAR, "Surreal-GAN")) < 0.55,
        ),
    ]


def draw() -> Figure:
    """Draw concordance, subtypes and reproducibility of each method."""
    methods = METHODS[::-1]
    with rc_context({**STYLE, "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8}):
        figure = Figure(figsize=(7, 4.4))
        figure.subplots_adjust(left=0.215, right=0.985, bottom=0.285, top=0.985, wspace=0.08)
        first, second, third = figure.subplots(1, 3, sharey=True, width_ratios=(5, 3, 3))
        colours = [*[GREY] * len(KINDS), *PATTERN_COLOURS]
        panel(first, "concordance", "whole", dict(zip(CONTINUOUS, colours, strict=False)))
        first.set(xlabel="concordance with true severities", xlim=(0.48, 1))
        panel(second, "ari", "whole", dict(zip(DISCRETE, (OTHER, INK, PATTERN_COLOURS[0]), strict=True)))
        second.set(xlabel="true subtypes (ARI)", xlim=(-0.06, 1.02))
        panel(third, "agreement", "halves", {"mild": GREY, "subtypes": OTHER, "no disease": INK})
        third.set(xlabel="agreement of halves", xlim=(0.42, 1.02))
        for axes in (first, third):
            axes.axvline(0.5, color=GREY, lw=0.8, ls=":")
        first.set_yticks(range(len(methods)), methods)
        for axes, columns in ((first, 2), (second, 1), (third, 1)):
            axes.legend(loc="upper left", bbox_to_anchor=(-0.06, -0.15), ncols=columns, fontsize=8, handletextpad=0.1)
    return figure


def panel(axes: Axes, column: str, part: str, cohorts: dict[str, str]) -> None:
    """Draw the means of some kinds of cohorts."""
    for place, (cohort, colour) in enumerate(cohorts.items()):
        values = np.array([cell(method, cohort, column, part) for method in METHODS[::-1]])
        marker = MARKERS[place % len(MARKERS)]
        axes.scatter(values, range(len(METHODS)), s=26, marker=marker, color=colour, label=cohort, alpha=0.85)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def which() -> list[str]:
    """Return the rows of "which method when" in Markdown."""
    head = ["| you ask | use | measured below |", "| --- | --- | --- |"]
    return [*head, *(f"| {asked} | {use} | {claim.text} |" for asked, (use, claim) in answers().items())]


def shows() -> list[str]:
    """Return the findings."""
    return [f"- {claim.text}" for claim in findings()]


PARTS = {
    "which": which,
    "severities": severities,
    "discrete": discrete,
    "halves": halves,
    "numbers": numbers,
    "costs": costs,
    "shows": shows,
}


def filled(page: str) -> str:
    """Return the page with all parts as they are measured."""
    for name, lines in PARTS.items():
        before, rest = page.split(f"<!-- {name} -->\n", 1)
        _, after = rest.split("<!-- end -->", 1)
        page = f"{before}<!-- {name} -->\n" + "\n".join(lines()) + f"\n<!-- end -->{after}"
    return page


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        print("\n\n".join("\n".join(lines()) for lines in PARTS.values()))
        return
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    with rc_context(STYLE):
        draw().savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
