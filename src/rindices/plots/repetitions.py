"""Figures of how well repeated trainings agree: over training, over the settings, and where there is no disease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rindices.plots.style import BLUE, GREEN, GREY, MARKERS, SERIES_COLOURS, STYLE, VERMILLION

CHANCE_CONCORDANCE, CHANCE_CORRELATION = 0.5, 0.0


@matplotlib.rc_context(STYLE)
def agreement_over_training(selection: pd.DataFrame) -> Figure:
    """Draw how well repeated trainings agree at each checkpoint, with the chosen one marked.

    Parameters
    ----------
    selection
        Columns ``n_patterns``, ``orthogonality``, ``step``, ``pattern_agreement``, ``dimension_correlation``,
        ``difference_correlation`` and ``chosen`` (true in one row). Only rows with the chosen
        number of patterns and orthogonality are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"n_patterns": 2, "orthogonality": 0.8, "pattern_agreement": 0.9, "dimension_correlation": 0.8}
    >>> rows = [{**row, "step": step, "difference_correlation": 0.7, "chosen": step == 200} for step in (100, 200)]
    >>> len(agreement_over_training(pd.DataFrame(rows)).axes)
    2
    """
    chosen = selection.loc[selection["chosen"].astype(bool)].iloc[0]
    same = (selection["n_patterns"] == chosen["n_patterns"]) & (selection["orthogonality"] == chosen["orthogonality"])
    rows = selection[same].sort_values("step")
    figure = Figure(figsize=(6.8, 4.8), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    curves = (
        (upper, "pattern_agreement", "pattern agreement", BLUE, "o-"),
        (lower, "dimension_correlation", "dimension correlation", VERMILLION, "s--"),
        (lower, "difference_correlation", "difference correlation", GREEN, "^:"),
    )
    for axes, column, label, colour, line in curves:
        if rows[column].notna().any():
            axes.plot(rows["step"], rows[column], line, color=colour, label=label, markersize=4)
            axes.plot(chosen["step"], chosen[column], line[0], color=colour, markersize=9, markeredgecolor="black")
    mark_chance(upper, CHANCE_CONCORDANCE, _lowest(upper), "Concordance\n(0.5 = chance, 1 = same)")
    mark_chance(lower, CHANCE_CORRELATION, _lowest(lower), "Correlation\n(0 = chance, 1 = same)")
    for axes in (upper, lower):
        axes.axvline(chosen["step"], color="black", linewidth=1, linestyle="-.", zorder=0)
    upper.lines[-1].set_label(f"chosen: step {int(chosen['step']):,}")
    lower.set_xlabel("Training steps")
    lower.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def mark_chance(axes: Axes, chance: float, lowest: float, label: str) -> None:
    """Draw the line of chance and give room from it, or from the lowest value, up to perfect agreement."""
    axes.axhline(chance, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(min(chance, lowest) - 0.05, 1.04)
    axes.set_ylabel(label)


def _lowest(axes: Axes) -> float:
    values = [float(np.nanmin(line.get_ydata())) for line in axes.lines]  # type: ignore[arg-type]
    return min(values, default=1.0)


WIDEST_DODGE = 0.72  # of the distance between two numbers of patterns
MARKER, SMALL_MARKER = 6.0, 3.6
# An interval from three models can reach far below anything seen; it must not flatten the rest.
MOST_BELOW = 0.25
DOT_COLUMNS = 60

_LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (2, 1)))
_PANELS = (
    ("pattern_agreement", CHANCE_CONCORDANCE, "Pattern agreement\n(dotted: chance)"),
    ("dimension_correlation", CHANCE_CORRELATION, "Dimension\ncorrelation"),
    ("difference_correlation", CHANCE_CORRELATION, "Difference\ncorrelation"),
)


_RING: Any = {"marker": "o", "color": "black", "markerfacecolor": "none", "linestyle": "none"}


class Series(NamedTuple):
    """The settings of one orthogonality: its best rows, and how they look."""

    rows: pd.DataFrame
    label: str
    colour: str
    marker: str
    line: Any


@matplotlib.rc_context(STYLE)
def agreement_over_settings(selection: pd.DataFrame) -> Figure:
    """Draw how well repeated trainings agree at the best checkpoint of each setting, with the chosen one marked.

    Parameters
    ----------
    selection
        Columns ``n_patterns``, ``orthogonality``, ``n_models``, ``best`` (true once per setting), ``chosen`` (true in
        one row, a best one), ``pattern_agreement``, ``dimension_correlation``, ``difference_correlation``, and each
        of these three with ``_low`` and ``_high`` for its interval. Only the best rows are drawn. An interval that
        reaches far below all values leaves the panel.

    Examples
    --------
    >>> import pandas as pd
    >>> names = ("pattern_agreement", "dimension_correlation", "difference_correlation")
    >>> values = {name + suffix: 0.9 for name in names for suffix in ("", "_low", "_high")}
    >>> row = {"orthogonality": 0.8, "n_models": 10, "best": True, **values}
    >>> rows = [{**row, "n_patterns": number, "chosen": number == 3} for number in (2, 3, 4)]
    >>> len(agreement_over_settings(pd.DataFrame(rows)).axes)
    3
    """
    best = _placed(selection[selection["best"].astype(bool)])
    chosen = best[best["chosen"].astype(bool)].iloc[0]
    figure = Figure(figsize=(6.8, 6.4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(1.5, 1, 1))
    numbers = sorted({int(number) for number in best["n_patterns"]})
    every_series = _series(best)
    for axes, (column, chance, label) in zip(panels, _PANELS, strict=True):
        for series in every_series:
            _draw_series(axes, series, column)
        mark_chance(axes, chance, _floor(best, column, chance), label)
        axes.axvline(chosen["place"], color="black", linewidth=0.7, linestyle=(0, (1, 3)), zorder=1)
        if pd.notna(chosen[column]):
            axes.plot(chosen["place"], chosen[column], markersize=13, **_RING)
        for left in numbers[1::2]:
            axes.axvspan(left - 0.5, left + 0.5, color=GREY, alpha=0.08, linewidth=0, zorder=0)
    panels[0].annotate(
        "chosen", (chosen["place"], 1.0), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points"
    ).set_horizontalalignment("center")
    panels[-1].set_xlabel("Number of patterns")
    panels[-1].set_xticks(numbers)
    panels[-1].set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)
    figure.legend(handles=_legend(best, chosen, every_series), loc="outside upper center", ncols=2)
    return figure


def _placed(best: pd.DataFrame) -> pd.DataFrame:
    """Add the place along the axis, each orthogonality a little aside, and who counts as hollow."""
    weights = sorted(best["orthogonality"].unique())
    distance = min(0.14, WIDEST_DODGE / len(weights))
    rank = best["orthogonality"].map(weights.index)
    return best.assign(
        place=best["n_patterns"] + (rank - (len(weights) - 1) / 2) * distance,
        fewer=best["n_models"] < best["n_models"].max(),
        no_rival=(best["n_patterns"] == 1) & (best["n_patterns"].max() > 1),
    )


def _series(best: pd.DataFrame) -> list[Series]:
    found = []
    for number, (weight, rows) in enumerate(best.groupby("orthogonality", sort=True)):
        # Seven markers and six colours: settings beyond the sixth still differ in the pair of both.
        look = [looks[number % len(looks)] for looks in (SERIES_COLOURS, MARKERS, _LINES)]
        found.append(Series(rows.sort_values("n_patterns"), f"orthogonality {weight:g}", *look))
    return found


def _draw_series(axes: Axes, series: Series, column: str) -> None:
    rows = series.rows[series.rows[column].notna()]
    rivals = rows[~rows["no_rival"]]
    axes.plot(rivals["place"], rivals[column], color=series.colour, linestyle=series.line, linewidth=1, alpha=0.6)
    known = rows[rows[f"{column}_low"].notna() & rows[f"{column}_high"].notna()]
    reach = [known[column] - known[f"{column}_low"], known[f"{column}_high"] - known[column]]
    # A rounded limit may lie a hair on the wrong side of its value.
    around = np.clip(np.asarray(reach, dtype=float), 0, None)
    axes.errorbar(known["place"], known[column], around, fmt="none", ecolor=series.colour, elinewidth=1, capsize=2)
    for _, row in rows.iterrows():
        size = SMALL_MARKER if row["fewer"] else MARKER
        face = "white" if row["fewer"] or row["no_rival"] else series.colour
        look: Any = {"color": series.colour, "markersize": size, "markerfacecolor": face, "markeredgewidth": 1.1}
        axes.plot(row["place"], row[column], series.marker, zorder=3, **look)


def _floor(best: pd.DataFrame, column: str, chance: float) -> float:
    values, low = best[column].dropna(), best[f"{column}_low"].dropna()
    lowest = min([chance, *values])
    return max(min([lowest, *low]), lowest - MOST_BELOW)


def _legend(best: pd.DataFrame, chosen: pd.Series, every_series: list[Series]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, linestyle=one.line, label=one.label, markersize=MARKER - 1)
        for one in every_series
    ]
    number = int(chosen["n_patterns"])
    words = f"chosen: {number} {'pattern' if number == 1 else 'patterns'}, orthogonality {chosen['orthogonality']:g}"
    handles.append(Line2D([], [], **_RING, markersize=9, label=words))
    hollow = _RING | {"color": GREY, "markerfacecolor": "white"}
    if best["fewer"].any():
        handles.append(Line2D([], [], **hollow, markersize=SMALL_MARKER, label="small and hollow: fewer models"))
    if best["no_rival"].any():
        handles.append(Line2D([], [], **hollow, markersize=MARKER, label="M = 1 is never chosen by agreement"))
    return handles


@matplotlib.rc_context(STYLE)
def null_statistics(values: Sequence[float], statistic: float) -> Figure:
    """Draw the agreement in cohorts without disease as dots, and that of the data as a line.

    Parameters
    ----------
    values
        Pattern agreement in each cohort without disease, at least one.
    statistic
        The same in the data.

    Examples
    --------
    >>> len(null_statistics([0.51, 0.53, 0.52], 0.93).axes)
    1
    """
    dots = np.sort(np.asarray(values, dtype=float))
    if not len(dots):
        raise ValueError("Expected the agreement of at least one cohort without disease, found none.")
    low, high = min(CHANCE_CONCORDANCE, dots[0], statistic) - 0.02, max(dots[-1], statistic, 0.6) + 0.02
    heights = _stacked(dots, (high - low) / DOT_COLUMNS)
    figure = Figure(figsize=(6.8, 1.9), layout="constrained")
    axes = figure.subplots()
    cohorts = "1 cohort" if len(dots) == 1 else f"{len(dots):,} cohorts"
    axes.plot(dots, heights, "o", color=BLUE, markersize=4.5, label=f"{cohorts} without disease")
    axes.axvline(statistic, color=VERMILLION, linewidth=2, linestyle="--", label=f"these data: {statistic:.3f}")
    axes.axvline(CHANCE_CONCORDANCE, color=GREY, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(0, max(heights.max() + 1, 6))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Pattern agreement (0.5 = chance, 1 = same)")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _stacked(ordered: np.ndarray, width: float) -> np.ndarray:
    """Return heights that put dots of nearly the same value on top of each other."""
    column = np.floor(ordered / width).astype(int)
    first = np.searchsorted(column, column, side="left")
    return np.arange(len(ordered)) - first + 1.0
