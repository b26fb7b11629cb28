"""Draw the figures of docs/results.md from the tables behind them.

python experiments/numbers/draw.py

Dots are means over cohorts; lines extend from the lowest to the highest cohort.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import GREY, INK, STYLE

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
OURS, MUTED = "#0072b2", "#56b4e9"  # the consensus, and a single model or a smaller cohort, as in the other figures
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.4, 1.0), "ncols": 2, "fontsize": 8}
KEPT = {"metadata": {"Date": None}, "bbox_inches": "tight", "pad_inches": 0.08}


def span(axes: Axes, groups: pd.core.groupby.SeriesGroupBy, colour: str = OURS, shift: float = 0.0, **look) -> None:
    """Draw each group in a row: its mean, and a line from its lowest to its highest value."""
    found = groups.agg(["mean", "min", "max"])
    rows = [row + shift for row in range(len(found))]
    axes.hlines(rows, found["min"], found["max"], color=colour, linewidth=1)
    axes.plot(found["mean"], rows, "o", color=colour, markersize=5, **look)
    axes.set_yticks(range(len(found)), [str(name) for name in found.index])
    axes.set_ylim(len(found) - 0.5, -0.5)


def mark(axes: Axes, value: float, words: str) -> None:
    """Draw a vertical line at a value, labelled at its top."""
    axes.axvline(value, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    axes.annotate(
        words, (value, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", color=INK, fontsize=8
    )


def severities() -> Figure:
    """Draw accuracy, errors, coverage and width by kind of cohort."""
    table = pd.read_csv(RESULTS / "linear_start.csv")
    table = table[table["unit"] != 0]  # the unit of the authors' sample is unknown
    figure = Figure(figsize=(11, 7.6), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    titles = {
        "less_ridge": "concordance minus that of ridge\nregression trained on the truth",
        "rmse": "error of severities\n(root mean square)",
        "cover95": "true severities inside\nthe 95 % interval",
        "width95": "width of the interval",
    }
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        span(axes, table.groupby("cohort", sort=False)[name])
        axes.set_xlabel(title)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        axes.locator_params(axis="x", nbins=4)
    mark(panels[0], 0, "as good")
    mark(panels[2], 0.95, "95 %")
    return figure


def choice() -> Figure:
    """Draw how often the number of patterns is correct."""
    table = pd.concat([pd.read_csv(RESULTS / f"{name}.csv") for name in ("verdicts", "counts")]).query("true > 0")
    figure = Figure(figsize=(6.5, 4.4), layout="constrained")
    axes = figure.subplots()
    shares = (table["counted"] == table["true"]).groupby(table["cohort"], sort=False).agg(["mean", "sum", "size"])
    axes.barh(range(len(shares)), shares["mean"], color=OURS, height=0.65)
    axes.set_yticks(range(len(shares)), list(map(str, shares.index)))
    for row, (right, size) in enumerate(zip(shares["sum"], shares["size"], strict=True)):
        axes.annotate(f" {right} of {size}", (right / size, row), va="center", fontsize=8)
    axes.set_xlabel("proportion of cohorts with the correct number of patterns")
    axes.set(ylim=(len(shares) - 0.5, -0.5), xlim=(0, 1.15))
    return figure


def everyday() -> Figure:
    """Draw the cost of missing regions, the bias at new sites, and how often strangers are flagged."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    gaps, sites, strangers = figure.subplots(1, 3)
    table = pd.read_csv(RESULTS / "missing_regions.csv").query("gaps == 0")
    whole = table[table["missing"] == "complete"].set_index("cohort")["concordance"]
    table = table[table["missing"] != "complete"].assign(lost=lambda t: t["cohort"].map(whole) - t["concordance"])
    for n_controls, colour, shift, label in ((492, OURS, -0.15, "492 + 900 people"), (150, MUTED, 0.15, "150 + 300")):
        own = table[table["n_controls"] == n_controls]
        span(gaps, own.groupby("missing", sort=False)["lost"], colour, shift, label=label)
    gaps.set_xlabel("concordance lost\nby missing regions")
    gaps.legend(**ABOVE | {"ncols": 1})
    _draw_sites(sites)
    found = pd.read_csv(RESULTS / "strangers.csv")
    span(strangers, found.groupby("people", sort=False)["strangers"])
    strangers.set_xlabel("proportion flagged as strangers")
    return figure


def _draw_sites(axes: Axes) -> None:
    table = pd.read_csv(RESULTS / "new_sites.csv")
    table = table[table["way"].isin(["uncorrected", "adapted"]) & (table["n_used"] != 50)]
    for purpose, colour, marker, label in (
        ("sites", OURS, "o", "simulated sites"),
        ("abide", MUTED, "s", "sites of ABIDE"),
    ):
        own = table[table["purpose"] == purpose]
        left = (own["bias"] ** 2 - own["chance"] ** 2).groupby(own["n_used"]).mean().clip(lower=0) ** 0.5
        axes.plot(left.index, left, color=colour, marker=marker, label=label)
    axes.set(
        xlabel="local controls from which\na new site is learned",
        ylabel="remaining bias of severities",
        ylim=(0, None),
    )
    axes.legend(**ABOVE | {"ncols": 1})


def main() -> None:
    """Draw all figures."""
    mpl.rcParams.update(STYLE)
    for make in (severities, choice, everyday):
        make().savefig(RESULTS / f"measured_{make.__name__}.svg", **KEPT)


if __name__ == "__main__":
    main()
