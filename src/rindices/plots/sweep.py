"""Figures of a search: agreement over the settings, and agreement where there is no disease."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rindices.plots.style import BLUE, GREY, MARKERS, SERIES_COLOURS, STYLE, VERMILLION
from rindices.plots.training import CHANCE_CONCORDANCE, CHANCE_CORRELATION, mark_chance

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
    figure = Figure(figsize=(6.8, 6.4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(1.5, 1, 1))
    numbers = sorted({int(number) for number in best["n_patterns"]})
    every_series = _series(best)
    for axes, (column, chance, label) in zip(panels, _PANELS, strict=True):
        for series in every_series:
            _draw_series(axes, series, column)
        mark_chance(axes, chance, _floor(best, column, chance), label)
        _mark_chosen(axes, best[best["chosen"].astype(bool)].iloc[0], column)
        for left in numbers[1::2]:
            axes.axvspan(left - 0.5, left + 0.5, color=GREY, alpha=0.08, linewidth=0, zorder=0)
    panels[0].annotate(
        "chosen", (_chosen_place(best), 1.0), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points"
    ).set_horizontalalignment("center")
    panels[-1].set_xlabel("Number of patterns")
    panels[-1].set_xticks(numbers)
    panels[-1].set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)
    figure.legend(handles=_legend(best, every_series), loc="outside upper center", ncols=2)
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
        axes.plot(row["place"], row[column], series.marker, **_marker(series.colour, row["fewer"], row["no_rival"]))


def _marker(colour: str, fewer: bool, no_rival: bool) -> dict[str, Any]:
    hollow = fewer or no_rival
    size = SMALL_MARKER if fewer else MARKER
    return {
        "color": colour,
        "markersize": size,
        "markerfacecolor": "white" if hollow else colour,
        "markeredgewidth": 1.1,
        "zorder": 3,
    }


def _floor(best: pd.DataFrame, column: str, chance: float) -> float:
    values, low = best[column].dropna(), best[f"{column}_low"].dropna()
    lowest = min([chance, *values])
    return max(min([lowest, *low]), lowest - MOST_BELOW)


def _chosen_place(best: pd.DataFrame) -> float:
    return float(best.loc[best["chosen"].astype(bool), "place"].iloc[0])


def _mark_chosen(axes: Axes, chosen: pd.Series, column: str) -> None:
    axes.axvline(chosen["place"], color="black", linewidth=0.7, linestyle=(0, (1, 3)), zorder=1)
    if pd.notna(chosen[column]):
        axes.plot(chosen["place"], chosen[column], **_ring())


def _ring() -> dict[str, Any]:
    return {"marker": "o", "markersize": 13, "color": "black", "markerfacecolor": "none", "linestyle": "none"}


def _legend(best: pd.DataFrame, every_series: list[Series]) -> list[Line2D]:
    chosen = best[best["chosen"].astype(bool)].iloc[0]
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, linestyle=one.line, label=one.label, markersize=MARKER - 1)
        for one in every_series
    ]
    number = int(chosen["n_patterns"])
    words = f"chosen: {number} {'pattern' if number == 1 else 'patterns'}, orthogonality {chosen['orthogonality']:g}"
    handles.append(Line2D([], [], **{**_ring(), "markersize": 9}, label=words))
    hollow: dict[str, Any] = {"marker": "o", "color": GREY, "markerfacecolor": "white", "linestyle": "none"}
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
