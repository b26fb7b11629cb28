"""Figures of what happens to regions as an R-index grows."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rindices.plots.rows import SIGNIFICANT, draw_intervals, draw_marks, name_rows, row_panels
from rindices.plots.style import BLUE, GREY, MARKERS, SERIES_COLOURS, SKY, STYLE, WIDTH, safe_label

MOST_LINES = 6
PANEL_HEIGHT = 2.3
LABEL_DISTANCE = 0.085  # of a panel's height: labels of lines that end together still stand apart
ROW_HEIGHT = 0.26
_LEVELS = {"low": (-0.25, SKY, "o"), "middle": (0.0, BLUE, "s"), "high": (0.25, "black", "^")}


@matplotlib.rc_context(STYLE)
def dose_response(table: pd.DataFrame) -> Figure:
    """Draw the mean z score of regions against severity, one panel per pattern, each line with its name.

    Parameters
    ----------
    table
        Columns ``pattern``, ``region``, ``n``, ``severity``, ``mean``, ``mean_low`` and ``mean_high``. Of each
        pattern the six regions are drawn that reach farthest from zero.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "region": "lHip", "n": 20, "mean": -0.5, "mean_low": -0.7, "mean_high": -0.3}
    >>> table = pd.DataFrame([{**row, "severity": severity} for severity in (0.1, 0.5)])
    >>> dose_response(table).axes[0].get_title(loc="left")
    'Pattern 1 (20 people per point)'
    """
    if table.empty:
        raise ValueError("Expected at least one bin of severity, found none. Leave this figure out.")
    drawn = {int(str(number)): _farthest(rows) for number, rows in table.groupby("pattern")}
    figure = Figure(figsize=(WIDTH, PANEL_HEIGHT * len(drawn) + 0.2), layout="constrained")
    panels = figure.subplots(len(drawn), 1, squeeze=False, sharey=True, sharex=True).ravel()
    for axes, (number, rows) in zip(panels, drawn.items(), strict=True):
        axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
        for place, (region, line) in enumerate(rows.groupby("region", sort=False)):
            _draw_line(axes, place, line.sort_values("severity"), str(region))
        axes.set_title(f"Pattern {number} ({_per_point(rows['n'])})", loc="left", fontweight="bold")
        axes.set_ylabel("z score (sd of controls)")
        axes.tick_params(labelbottom=True)
    for axes, rows in zip(panels, drawn.values(), strict=True):
        _name_lines(axes, rows)
    panels[-1].set_xlabel("R-index (mean of the people at each point; bars: 95 % interval)")
    return figure


def _farthest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the regions that reach farthest from zero, the farthest first."""
    reach = rows["mean"].abs().groupby(rows["region"]).max().sort_values(ascending=False, kind="stable")
    order = {region: place for place, region in enumerate(reach.index[:MOST_LINES])}
    return rows[rows["region"].isin(order)].sort_values("region", key=lambda names: names.map(order), kind="stable")


def _per_point(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{high:,} people per point" if low == high else f"{low:,} to {high:,} people per point"


def _draw_line(axes: Axes, place: int, line: pd.DataFrame, region: str) -> None:
    colour, marker = SERIES_COLOURS[place % len(SERIES_COLOURS)], MARKERS[place % len(MARKERS)]
    across = line["severity"] + (place - (MOST_LINES - 1) / 2) * 0.006  # or bars of one bin hide each other
    axes.plot(across, line["mean"], color=colour, marker=marker, markersize=4, linewidth=1.3, zorder=3)
    known = line["mean_low"].notna() & line["mean_high"].notna()
    limits = line["mean_low"][known], line["mean_high"][known]
    axes.vlines(across[known], *limits, colors=colour, linewidth=1, alpha=0.6, zorder=2)


def _name_lines(axes: Axes, rows: pd.DataFrame) -> None:
    """Write the name of each line at its right end, apart from each other."""
    ends = [line.iloc[int(line["severity"].argmax())] for _, line in rows.groupby("region", sort=False)]
    low, high = axes.get_ylim()
    wanted = np.asarray([(end["mean"] - low) / (high - low) for end in ends], dtype=float)
    heights = _apart(wanted, LABEL_DISTANCE)
    for place, (end, height) in enumerate(zip(ends, heights, strict=True)):
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        across = end["severity"] + (place - (MOST_LINES - 1) / 2) * 0.006
        leader: Any = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 1.0,
            "shrinkA": 1,
            "shrinkB": 3,
            "relpos": (0, 0.5),
        }
        where: Any = {"textcoords": "axes fraction", "va": "center", "fontsize": 8, "annotation_clip": False}
        text = safe_label(end["region"])
        axes.annotate(text, (across, end["mean"]), (1.05, height), arrowprops=leader, **where)


def _apart(wanted: np.ndarray, distance: float) -> np.ndarray:
    """Return heights near the wanted ones, in the same order, at least so far apart and inside the panel."""
    order = np.argsort(wanted, kind="stable")
    rank = np.arange(len(wanted)) * distance
    # Going up and going down each give a spacing that holds; so does their mean, which pushes to neither side.
    loose = wanted[order] - rank
    even = (np.maximum.accumulate(loose) + np.minimum.accumulate(loose[::-1])[::-1]) / 2
    placed = np.clip(even, 0.02, 0.98 - rank[-1]) + rank
    heights = np.empty_like(wanted)
    heights[order] = placed
    return heights


@matplotlib.rc_context(STYLE)
def subgroup_dots(subgroups: pd.DataFrame, sizes: pd.DataFrame, top: int = 12) -> Figure:
    """Draw how patients with a low, middle and high R-index differ from controls, region by region.

    Parameters
    ----------
    subgroups
        Columns ``pattern``, ``level``, ``region``, ``effect`` (Cohen's d), ``low``, ``high`` and ``q``.
    sizes
        Columns ``pattern``, ``level``, ``n`` and ``used``.
    top
        How many regions of each pattern, those with the largest effect at any level.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "level": "high", "effect": -0.9, "low": -1.2, "high": -0.6, "q": 0.01}
    >>> sizes = pd.DataFrame([{"pattern": 1, "level": "high", "n": 34, "used": True}])
    >>> subgroup_dots(pd.DataFrame([{**row, "region": "lHip"}]), sizes).axes[0].get_title(loc="right")
    '34 high'
    """
    known = subgroups[subgroups["effect"].notna()]
    if known.empty:
        raise ValueError("Expected the effect of at least one subgroup, found none. Leave this figure out.")
    strongest = {}
    for number, rows in known.groupby("pattern"):
        reach = rows["effect"].abs().groupby(rows["region"]).max().sort_values(ascending=False, kind="stable")
        strongest[int(str(number))] = (rows, list(reach.index[:top]))
    figure, panels = row_panels([len(regions) for _, regions in strongest.values()], ROW_HEIGHT, sharex=True)
    for axes, (number, (rows, regions)) in zip(panels, strongest.items(), strict=True):
        name_rows(axes, regions)
        _draw_levels(axes, rows[rows["region"].isin(regions)], regions)
        counted = _sizes(sizes[sizes["pattern"] == number])
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_title(counted, loc="right", fontsize=8)
        axes.tick_params(labelbottom=True)
    panels[-1].set_xlabel(f"Cohen's d against controls\n(lines: 95 % interval; filled: q < {SIGNIFICANT:g})")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=f"patients, {level} R-index")
        for level, (_, colour, marker) in _LEVELS.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _draw_levels(axes: Axes, rows: pd.DataFrame, regions: list[Any]) -> None:
    for level, (aside, colour, marker) in _LEVELS.items():
        here = rows[rows["level"] == level]
        places = np.asarray([regions.index(region) for region in here["region"]], dtype=float) + aside
        draw_intervals(axes, places, here["low"], here["high"], colour)
        draw_marks(axes, here["effect"], places, here["q"] < SIGNIFICANT, colour, marker, 4.5)


def _sizes(sizes: pd.DataFrame) -> str:
    words = [
        f"{int(row['n']):,} {level}" + ("" if row["used"] else " (not tested)")
        for level in _LEVELS
        for row in sizes[sizes["level"] == level].to_dict("records")
    ]
    return ", ".join(words)
