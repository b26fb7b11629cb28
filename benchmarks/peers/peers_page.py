"""Write the tables, the findings and the figure of docs/peers.md from results/peers.csv.

python benchmarks/peers/peers_page.py            # prints them
python benchmarks/peers/peers_page.py --write    # writes them into the page, and docs/pictures/peers.svg
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from peers_findings import (
    ABSENT,
    BOUND,
    CONTINUOUS,
    DISCRETE,
    KINDS,
    METHODS,
    NAMED,
    OLDER,
    SMILE,
    SURREAL,
    answers,
    cell,
    findings,
    rows_of,
    told,
)

from rindices.plots.style import GREY, INK, MARKERS, OTHER, PATTERN_COLOURS, STYLE

ROOT = Path(__file__).parents[2]
PAGE, PICTURE = ROOT / "docs" / "peers.md", ROOT / "docs" / "pictures" / "peers.svg"
UNIT = {SURREAL: "steps", SMILE: "epochs"}


def table_of(columns: list[str], cells: Callable[[str], list[str]], methods: Iterable[str] = METHODS) -> list[str]:
    """Return a table in Markdown with a row for each method that has any values."""
    rows = {method: cells(method) for method in methods}
    kept = [f"| {named(method)} | {' | '.join(row)} |" for method, row in rows.items() if set(row) != {ABSENT}]
    return [f"| method | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns), *kept]


def named(method: str) -> str:
    """Return a method's name on the page."""
    return NAMED if method == BOUND else method


def severities() -> list[str]:
    """Tabulate concordance for continuous severities."""
    return table_of(list(CONTINUOUS), lambda method: [told(cell(method, cohort)) for cohort in CONTINUOUS])


def discrete() -> list[str]:
    """Tabulate concordance and agreement with labels if each patient has one pattern."""

    def cells(method: str) -> list[str]:
        both = [[told(cell(method, cohort, column)) for column in ("concordance", "ari")] for cohort in DISCRETE]
        return [ABSENT if pair[0] == ABSENT else "; ".join(pair) for pair in both]

    return table_of(list(DISCRETE), cells)


def halves() -> list[str]:
    """Tabulate the agreement of disjoint halves, and false positives without disease."""
    cohorts = ("basic", "mild", "real people", "authors' sample", "subtypes", "sequence", "one pattern", "no disease")

    def cells(method: str) -> list[str]:
        agreements = [told(cell(method, cohort, "agreement", "halves")) for cohort in cohorts]
        said = pd.concat([rows_of(method, "no disease", part)["verdict"] for part in ("whole", "halves")]).dropna()
        verdicts = [one for text in said for one in text.split("; ")]
        wrong = sum(one in ("reproducible", "weak") for one in verdicts)
        return [*agreements, f"{wrong} of {len(verdicts)}" if verdicts else "no test"]

    return table_of(
        [*cohorts, "false positives"], cells, [method for method in METHODS if method not in (BOUND, *OLDER)]
    )


def numbers() -> list[str]:
    """Tabulate the numbers of patterns that methods choose, and their accuracy with these."""
    cohorts = ("basic", "mild", "subtypes", "sequence", "one pattern", "no disease")
    true = dict(zip(cohorts, (3, 3, 3, 2, 1, 0), strict=True))

    def cells(method: str) -> list[str]:
        made = []
        for cohort in cohorts:
            number, *reached = (cell(method, cohort, name, "chosen") for name in ("number", "concordance", "ari"))
            known = "; ".join(told(value) for value in reached if not np.isnan(value))
            made.append(ABSENT if np.isnan(number) else f"{number:.0f}" + f" ({known})" * bool(known))
        return made

    return table_of([f"{cohort}: {true[cohort]}" for cohort in cohorts], cells)


def costs() -> list[str]:
    """Tabulate processor time and memory of a fit, and the extent of the run."""

    def cells(method: str) -> list[str]:
        timed, whole = rows_of(method, part="timing"), rows_of(method)
        timed = whole if timed.empty else timed  # methods that take seconds were fully measured on two cores
        minutes, notes = timed["minutes"].mean(), whole["note"].dropna()
        here = told(minutes, 1 if minutes >= 0.1 else 2)
        if method in UNIT:
            here = f"{minutes / amount(timed['note'].iloc[0]) * notes.map(amount).mean():,.0f} per model"
        elif timed["note"].notna().any():
            here += f" ({timed['note'].dropna().iloc[0]})"
        there = whole[whole["machine"] == "H200"]["minutes"].mean()
        run = sorted({re.sub(r", the one kept.*|, 0 stopped.*", "", note) for note in notes})
        far = "complete" if not run else run[0]
        if method in UNIT:
            models, done = amount(run[0], "repetitions|folds"), notes.map(amount)
            far = f"{models:.0f} models of {done.min():,.0f} to {done.max():,.0f} {UNIT[method]}"
        memory = timed["gib"].max() if timed["gib"].notna().any() else whole["gib"].max()
        return [here, told(there, 1 if there >= 0.1 else 2), told(memory, 1), far]

    return table_of(
        ["minutes, two cores", "minutes, one core with the H200", "GiB", "extent of the run"],
        cells,
        [one for one in METHODS if one not in OLDER],
    )


def amount(note: str, unit: str = "steps|epochs") -> float:
    """Return the number of steps or epochs in a note."""
    return float(re.findall(rf"([\d,]+) (?:{unit})", note)[0].replace(",", ""))


def draw() -> Figure:
    """Draw concordance, subtypes and reproducibility of each method."""
    methods = METHODS[::-1]
    with rc_context({**STYLE, "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8}):
        figure = Figure(figsize=(7, 4.4))
        figure.subplots_adjust(left=0.21, right=0.985, bottom=0.285, top=0.985, wspace=0.08)
        first, second, third = figure.subplots(1, 3, sharey=True, width_ratios=(5, 3.3, 2.7))
        colours = [*[GREY] * len(KINDS), *PATTERN_COLOURS]
        panel(first, "concordance", "whole", dict(zip(CONTINUOUS, colours, strict=False)))
        first.set(xlabel="concordance with true severities", xlim=(0.48, 1))
        panel(second, "ari", "whole", dict(zip(DISCRETE, (OTHER, INK, PATTERN_COLOURS[0]), strict=True)))
        second.set(xlabel="true subtypes (ARI)", xlim=(-0.06, 1.02))
        panel(third, "agreement", "halves", {"mild": GREY, "subtypes": OTHER, "no disease": INK})
        third.set(xlabel="agreement of halves", xlim=(0.42, 1.02))
        for axes in (first, third):
            axes.axvline(0.5, color=GREY, lw=0.8, ls=":")
        first.set_yticks(range(len(methods)), [named(method).replace(" trained", "\ntrained") for method in methods])
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
    head = ["| question | recommended method | evidence from the tables below |", "| --- | --- | --- |"]
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
    """Return the page with all parts updated."""
    for name, lines in PARTS.items():
        before, rest = page.split(f"<!-- {name} -->\n", 1)
        _, after = rest.split("<!-- end -->", 1)
        page = f"{before}<!-- {name} -->\n\n" + "\n".join(lines()) + f"\n\n<!-- end -->{after}"
    return page


def main() -> None:
    """Print the parts, or write the page and its figure."""
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
