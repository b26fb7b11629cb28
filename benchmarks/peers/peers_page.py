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
CONTINUOUS = ("basic", "overlap", "scarce", "noise", "mild", "real people", "authors' sample", "one pattern")
DISCRETE = ("subtypes", "sequence")
HEAD = (
    f"| method | {' | '.join(CONTINUOUS)} | {' | '.join(f'{name}; ARI' for name in DISCRETE)} | halves: mild | "
    "halves: no disease | minutes | GiB |"
)
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
    return ABSENT if np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


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


def draw() -> Figure:
    """Draw concordance, subtypes and cost of each method."""
    table = read()
    methods = [name for name in METHODS if name in set(table["method"])][::-1]
    with rc_context({**STYLE, "font.size": 11, "axes.titlesize": 11, "axes.labelsize": 11}):
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        first, second, third = figure.subplots(1, 3, sharey=True, width_ratios=(5, 4, 3))
        kinds = dict.fromkeys(CONTINUOUS[:5], GREY) | dict(zip(CONTINUOUS[5:], PATTERN_COLOURS, strict=False))
        _panel(first, table, methods, [(kind, "concordance", colour, kind) for kind, colour in kinds.items()])
        first.set(xlabel="concordance with true severities", xlim=(0.48, 1))
        first.axvline(0.5, color=GREY, lw=0.8, ls=":")
        shown = [(kind, "ari", colour, kind) for kind, colour in zip(DISCRETE, (OTHER, INK), strict=True)]
        _panel(second, table, methods, shown)
        second.set(xlabel="agreement with true subtypes (ARI)", xlim=(-0.05, 1))
        whole = table[table["part"] == "whole"].groupby("method")["minutes"].mean()
        third.barh(range(len(methods)), [whole[name] for name in methods], color=GREY, height=0.5)
        third.set(xscale="log", xlabel="minutes of processor time")
        first.set_yticks(range(len(methods)), methods)
        for axes in (first, second):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, fontsize=10, handletextpad=0.1)
    return figure


def _panel(axes: Axes, table: pd.DataFrame, methods: list[str], shown: list[tuple[str, str, str, str]]) -> None:
    for place, (cohort, column, colour, label) in enumerate(shown):
        values = [cell(table, method, cohort, column) for method in methods]
        marker = MARKERS[place % len(MARKERS)]
        axes.scatter(values, range(len(methods)), s=34, marker=marker, color=colour, label=label, alpha=0.85)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        print("\n".join([HEAD, *rows()]))
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split("| method | basic", 1)
    rest = after.split("\n\n", 1)[1]
    PAGE.write_text(before + "\n".join([HEAD, *rows()]) + "\n\n" + rest, encoding="utf-8")
    with rc_context(STYLE):
        draw().savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
