"""The table and the figure of docs/peers.md, from results/peers.csv.

python benchmarks/peers/peers_page.py            # prints the table
python benchmarks/peers/peers_page.py --write    # writes it into the page, and docs/pictures/peers.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import GREY, INK, MARKERS, OTHER, PATTERN_COLOURS, STYLE

ROOT = Path(__file__).parents[2]
LINEAR, BOUND, AUTHORS = "rindices, linear", "regression told the truth", "authors' sample"
RESULTS, PAGE, PICTURE = ROOT / "results" / "peers.csv", ROOT / "docs" / "peers.md", ROOT / "docs/pictures/peers.svg"
METHODS = (
    "regression told the truth",
    "rindices",
    "rindices, linear",
    "Surreal-GAN",
    "Smile-GAN",
    "HYDRA",
    "SuStaIn",
    "NMF",
    "opNMF",
    "PCA of z-scores",
)
CONTINUOUS = tuple(
    name
    for name in ("basic", "overlap", "scarce", "noise", "mild", "real people", AUTHORS, "one pattern")
    if name in set(pd.read_csv(RESULTS)["cohort"])
)
DISCRETE = ("subtypes", "sequence", "sequence, independent")
HEAD = (
    f"| method | {' | '.join(CONTINUOUS)} | {' | '.join(f'{name}; ARI' for name in DISCRETE)} | halves: mild | "
    "halves: no disease | minutes | GiB |"
)
WHICH_HEAD = "| you ask | use | measured below |"
ABSENT = "–"


def read() -> pd.DataFrame:
    """Return all measurements."""
    return pd.read_csv(RESULTS, keep_default_na=False, na_values=[""])


def cell(table: pd.DataFrame, method: str, cohort: str, column: str, part: str = "whole") -> float:
    """Return the mean over seeds; NaN where nothing was measured."""
    own = (table["method"] == method) & (table["cohort"] == cohort) & (table["part"] == part)
    return float(table.loc[own, column].mean())


def told(value: float, digits: int = 2) -> str:
    """Return a number of the table."""
    return ABSENT if np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no −0.00


def rows() -> list[str]:
    """Return the rows of the table in Markdown."""
    table, lines = read(), []
    for method in METHODS:
        own = table[(table["method"] == method) & (table["part"] == "whole")]
        if own.empty:
            continue
        cells = [told(cell(table, method, cohort, "concordance")) for cohort in CONTINUOUS]
        for cohort in DISCRETE:
            both = [told(cell(table, method, cohort, column)) for column in ("concordance", "ari")]
            cells.append(ABSENT if both[0] == ABSENT else "; ".join(both))
        cells += [told(cell(table, method, cohort, "agreement", "halves")) for cohort in ("mild", "no disease")]
        minutes, gib = own["minutes"].mean(), own["gib"].max()
        stopped = "" if own["finished"].all() else " (stopped)"
        cells += [told(minutes, 1 if minutes >= 0.1 else 2) + stopped, told(gib, 1)]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return ["| --- |" + " --- |" * (HEAD.count("|") - 2), *lines]


def which() -> list[str]:
    """Return the rows of "which method when" in Markdown."""
    table = read()

    def found(method: str, *cohorts: str, column: str = "concordance", part: str = "whole") -> str:
        return " and ".join(told(cell(table, method, cohort, column, part)) for cohort in cohorts)

    both, agreement = ("basic", "mild"), {"column": "agreement", "part": "halves"}
    labels = {name: found(name, "subtypes", column="ari") for name in (LINEAR, "rindices", "HYDRA", "Smile-GAN", "NMF")}
    verdict = table[(table["method"] == LINEAR) & (table["cohort"] == "no disease") & (table["part"] == "whole")]
    minutes = table[(table["method"] == LINEAR) & (table["part"] == "whole")]["minutes"].mean()
    answers = {
        "How far has each of several patterns gone in each person?": (
            "rindices",
            f"{found('rindices', *both)} on *basic* and *mild*; regression told the truth {found(BOUND, *both)}, "
            f"NMF {found('NMF', *both)}",
        ),
        "The same in seconds, or for hundreds of tables?": (
            "rindices with `--method linear`",
            f"{found(LINEAR, *both)}, in {minutes:.1f} minutes with the verdict",
        ),
        "Which one of several distinct subtypes does each patient have?": (
            "the largest severity of `--method linear`",
            f"ARI {labels[LINEAR]} on *subtypes*; rindices {labels['rindices']}, NMF {labels['NMF']}, HYDRA (one "
            f"repetition) {labels['HYDRA']}, Smile-GAN (stopped early) {labels['Smile-GAN']}",
        ),
        "In which order do regions become abnormal, and at which stage is each person?": (
            "SuStaIn, on a few regional means",
            f"only SuStaIn gives an order; concordance with the stage {found('SuStaIn', 'sequence')} on *sequence*, "
            f"rindices {found('rindices', 'sequence')}",
        ),
        "Do patients differ from controls in a way that is found again?": (
            "the verdict of rindices",
            f"without disease: *{verdict['verdict'].iloc[0]}*. The others have no test; halves agree all the same: "
            f"PCA {found('PCA of z-scores', 'no disease', **agreement)}, NMF {found('NMF', 'no disease', **agreement)}",
        ),
        "Strong, separate patterns, and healthy people who vary little?": (
            "NMF or opNMF will do",
            f"{found('NMF', AUTHORS)} and {found('opNMF', AUTHORS)} on the authors' sample; regression told the truth "
            f"{found(BOUND, AUTHORS)}, `--method linear` {found(LINEAR, AUTHORS)}",
        ),
    }
    return ["| --- | --- | --- |", *(f"| {asked} | {use} | {why} |" for asked, (use, why) in answers.items())]


def draw() -> Figure:
    """Draw concordance, subtypes and cost of each method."""
    table = read()
    methods = [name for name in METHODS if name in set(table["method"])][::-1]
    with rc_context({**STYLE, "font.size": 11, "axes.titlesize": 11, "axes.labelsize": 11}):
        figure = Figure(figsize=(9.4, 5.2))  # as wide as the site's column, with letters of 10 pixels or more
        figure.subplots_adjust(left=0.235, right=0.98, bottom=0.33, top=0.98, wspace=0.1)
        first, second, third = figure.subplots(1, 3, sharey=True, width_ratios=(5, 4, 3))
        n_kinds = CONTINUOUS.index("mild") + 1
        colours = [*[GREY] * n_kinds, *PATTERN_COLOURS]
        _panel(first, table, methods, "concordance", dict(zip(CONTINUOUS, colours, strict=False)))
        first.set(xlabel="concordance with\ntrue severities", xlim=(0.48, 1))
        first.axvline(0.5, color=GREY, lw=0.8, ls=":")
        _panel(second, table, methods, "ari", dict(zip(DISCRETE, (OTHER, INK, PATTERN_COLOURS[0]), strict=True)))
        second.set(xlabel="agreement with\ntrue subtypes (ARI)", xlim=(-0.05, 1), xticks=(0, 0.5, 1))
        whole = table[table["part"] == "whole"].groupby("method")["minutes"].mean()
        third.scatter([whole[name] for name in methods], range(len(methods)), s=34, color=GREY)
        third.grid(axis="y", color="#dddddd", lw=0.6)
        third.set_axisbelow(True)
        third.set(xscale="log", xlabel="processor time\n(minutes)")
        third.xaxis.set_major_formatter("{x:g}")  # a power would have small letters
        first.set_yticks(range(len(methods)), methods)
        for axes, columns in ((first, 2), (second, 1)):
            axes.legend(loc="upper left", bbox_to_anchor=(-0.05, -0.19), ncols=columns, fontsize=10, handletextpad=0.1)
    return figure


TABLES = {WHICH_HEAD: which, HEAD: rows}


def _panel(axes: Axes, table: pd.DataFrame, methods: list[str], column: str, cohorts: dict[str, str]) -> None:
    for place, (cohort, colour) in enumerate(cohorts.items()):
        values = np.array([cell(table, method, cohort, column) for method in methods])
        if np.isnan(values).all():
            continue
        marker = MARKERS[place % len(MARKERS)]
        axes.scatter(values, range(len(methods)), s=34, marker=marker, color=colour, label=cohort, alpha=0.85)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        print("\n\n".join("\n".join([head, *lines()]) for head, lines in TABLES.items()))
        return
    page = PAGE.read_text(encoding="utf-8")
    for head, lines in TABLES.items():
        before, after = page.split(head.split(" | ")[0] + " | ", 1)
        page = before + "\n".join([head, *lines()]) + "\n\n" + after.split("\n\n", 1)[1]
    PAGE.write_text(page, encoding="utf-8")
    with rc_context(STYLE):
        draw().savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
