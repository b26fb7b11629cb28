"""Figures of what happens to regions: in a pattern, with growing severity, and in subgroups of patients."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rindices.plots.region_names import pair_sides
from rindices.plots.style import (
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    SERIES_COLOURS,
    SIGNIFICANT,
    SKY,
    STYLE,
    VERMILLION,
    WIDTH,
    draw_intervals,
    draw_marks,
    farthest,
    mark_legend,
    name_rows,
    row_panels,
    safe_label,
    write_beside,
)

DOTS_HEIGHT, LEVELS_HEIGHT, LINES_HEIGHT = 0.24, 0.26, 2.3  # inches: of a row, and of a panel
BESIDE_ONE, BESIDE_TWO = 48, 92
MOST_LINES, LINE_ASIDE = 6, 0.006  # bars of one bin must not hide each other
LABEL_DISTANCE = 0.085  # of a panel's height: labels of lines that end together still stand apart
_LEVELS = {"low": (-0.25, SKY, "o"), "middle": (0.0, BLUE, "s"), "high": (0.25, "black", "^")}
ASIDE = 0.17  # of a row: twins of equal change must not hide each other
_SIDES = {"left": (-ASIDE, BLUE, "o"), "right": (ASIDE, VERMILLION, "D"), "": (0.0, GREEN, "s")}
LINE_LOOKS = tuple(zip(SERIES_COLOURS, MARKERS, strict=False))


@matplotlib.rc_context(STYLE)
def pattern_dots(patterns: pd.DataFrame, only: int | None = None, top: int = 20) -> Figure:
    """Draw the regions that change most at severity 1, both hemispheres on one row, patterns on a common scale.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern``, ``change_sd``, ``change_percent`` and ``spread_sd``; where ``decomposed_sd``
        is there and known, faint marks show it.
    only
        Draw this pattern alone, still on the scale that is common to all.
    top
        How many rows of each pattern.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "spread_sd": 0.1, "change_percent": -5.0, "change_sd": -1.0}
    >>> table = pd.DataFrame([{**row, "region": name} for name in ("lHip", "rHip", "Vermis")])
    >>> [tick.get_text() for tick in pattern_dots(table).axes[0].get_yticklabels()]
    ['Hip', 'Vermis']
    """
    if "decomposed_sd" not in patterns:
        patterns = patterns.assign(decomposed_sd=np.nan)
    strongest = {int(str(number)): _strongest(rows, top) for number, rows in patterns.groupby("pattern")}
    drawn = [only] if only is not None else list(strongest)
    if not drawn or drawn[0] not in strongest:
        raise ValueError(f"Expected a pattern among {sorted(strongest)}, found {only}. Choose one that the table has.")
    figure, panels = row_panels([strongest[number]["row"].nunique() for number in drawn], DOTS_HEIGHT)
    limits = _limits(pd.concat(strongest.values()))
    for axes, number in zip(panels, drawn, strict=True):
        _draw_pattern(axes, strongest[number])
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_xlim(*limits)
    shown = pd.concat([strongest[number] for number in drawn])
    label = "Change at severity 1 (sd of controls)"
    panels[-1].set_xlabel(label + ("\nlines: spread over repetitions" if shown["spread_sd"].notna().any() else ""))
    _explain(figure, shown)
    return figure


def _strongest(rows: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return one pattern's strongest regions with their side, name and row; twins share a row."""
    pairs = pair_sides(rows["region"].astype(str))
    found = [pairs.get(str(region), ("", str(region))) for region in rows["region"]]
    rows = rows.assign(side=[side for side, _ in found], name=[name for _, name in found])
    # A region without a twin has a row of its own, even where two have the same name.
    alone = [name if side else place for place, (side, name) in enumerate(found)]
    strength = rows["change_sd"].abs().groupby(alone).transform("max") if len(rows) else rows["change_sd"]
    rows = rows.assign(key=alone, strength=strength.to_numpy())
    rows = rows.iloc[np.argsort(-rows["strength"].to_numpy(dtype=float), kind="stable")]
    rows = rows.assign(row=pd.factorize(rows["key"].astype(object))[0])
    return rows[rows["row"] < top]


def _limits(shown: pd.DataFrame) -> tuple[float, float]:
    change, spread = shown["change_sd"], shown["spread_sd"].fillna(0.0)
    ends = pd.concat([change - spread, change + spread, shown["decomposed_sd"]]).dropna()
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_pattern(axes: Axes, rows: pd.DataFrame) -> None:
    by_row = list(rows.groupby("row", sort=True))
    name_rows(axes, [pair["name"].iloc[0] for _, pair in by_row])
    for place, (_, pair) in enumerate(by_row):
        if len(pair) == 2:
            ends = pair.set_index("side")["change_sd"].loc[["left", "right"]]
            axes.plot(ends, [place - ASIDE, place + ASIDE], color=GREY, linewidth=1, zorder=2)
    for side, (aside, colour, marker) in _SIDES.items():
        here = rows[rows["side"] == side]
        change, places = here["change_sd"], here["row"] + aside
        axes.plot(here["decomposed_sd"], places, marker, color=colour, alpha=0.35, markersize=5, markeredgewidth=0)
        draw_intervals(axes, places, change - here["spread_sd"], change + here["spread_sd"], colour)
        draw_marks(axes, change, places, np.ones(len(here)), colour, marker)
    percent = [_percent(pair.sort_values("side")["change_percent"]) for _, pair in by_row]
    sided = (rows["side"] != "").any()
    write_beside(axes, percent, BESIDE_TWO if sided else BESIDE_ONE, "left / right" if sided else "")


def _percent(values: pd.Series) -> str:
    # Adding zero turns a rounded "-0.0" into "+0.0".
    words = ["–" if pd.isna(value) else f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") for value in values]
    return " / ".join(words) + (" %" if values.notna().any() else "")


def _explain(figure: Figure, shown: pd.DataFrame) -> None:
    """Say what the marks mean, where there is more than one kind."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=side or "without a twin")
        for side, (_, colour, marker) in _SIDES.items()
        if (shown["side"] == side).any()
    ]
    if shown["decomposed_sd"].notna().any():
        faint = {"marker": "o", "color": GREY, "alpha": 0.5, "linestyle": "none", "markeredgewidth": 0}
        handles.append(Line2D([], [], **faint, markersize=5, label="faint: as seen in real patients"))  # type: ignore[arg-type]
    if len(handles) > 1:
        figure.legend(handles=handles, loc="outside upper center", ncols=4)


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
    drawn = {int(str(number)): _lines(rows) for number, rows in table.groupby("pattern")}
    figure = Figure(figsize=(WIDTH, LINES_HEIGHT * len(drawn) + 0.2), layout="constrained")
    panels = figure.subplots(len(drawn), 1, squeeze=False, sharey=True, sharex=True).ravel()
    for axes, (number, lines) in zip(panels, drawn.items(), strict=True):
        axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
        for (colour, marker), line in zip(LINE_LOOKS, lines.values(), strict=False):
            axes.plot(line["across"], line["mean"], color=colour, marker=marker, markersize=4, linewidth=1.3, zorder=3)
            known = line[line["mean_low"].notna() & line["mean_high"].notna()]
            limits = known["mean_low"], known["mean_high"]
            axes.vlines(known["across"], *limits, colors=colour, linewidth=1, alpha=0.6, zorder=2)
        counts = _per_point(pd.concat(lines.values())["n"])
        axes.set_title(f"Pattern {number} ({counts})", loc="left", fontweight="bold")
        axes.set_ylabel("z score (sd of controls)")
        axes.tick_params(labelbottom=True)
    for axes, lines in zip(panels, drawn.values(), strict=True):
        _name_lines(axes, lines)
    panels[-1].set_xlabel("R-index (mean of the people at each point; bars: 95 % interval)")
    return figure


def _lines(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the line of each of the regions that reach farthest from zero, a little aside of the others."""
    regions = farthest(rows["mean"], rows["region"], MOST_LINES)
    lines = {str(region): rows[rows["region"] == region].sort_values("severity") for region in regions}
    return {
        name: line.assign(across=line["severity"] + (place - (MOST_LINES - 1) / 2) * LINE_ASIDE)
        for place, (name, line) in enumerate(lines.items())
    }


def _per_point(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{high:,} people per point" if low == high else f"{low:,} to {high:,} people per point"


def _name_lines(axes: Axes, lines: dict[str, pd.DataFrame]) -> None:
    """Write the name of each line at its right end, apart from each other."""
    ends = np.asarray([line[["across", "mean"]].to_numpy(float)[-1] for line in lines.values()])
    low, high = axes.get_ylim()
    heights = _apart((ends[:, 1] - low) / (high - low), LABEL_DISTANCE)
    leader: Any = {"arrowstyle": "-", "linewidth": 1.0, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
    where: Any = {"textcoords": "axes fraction", "va": "center", "fontsize": 8, "annotation_clip": False}
    for (colour, _), name, end, height in zip(LINE_LOOKS, lines, ends, heights, strict=False):
        axes.annotate(safe_label(name), end, (1.05, height), arrowprops=leader | {"color": colour}, **where)


def _apart(wanted: np.ndarray, distance: float) -> np.ndarray:
    """Return heights near the wanted ones, in the same order, at least so far apart and inside the panel."""
    order = np.argsort(wanted, kind="stable")
    rank = np.arange(len(wanted)) * distance
    # Going up and going down each give a spacing that holds; so does their mean, which pushes to neither side.
    loose = wanted[order] - rank
    even = (np.maximum.accumulate(loose) + np.minimum.accumulate(loose[::-1])[::-1]) / 2
    placed = np.clip(even, 0.02, 0.98 - rank[-1]) + rank
    return placed[np.argsort(order)]


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
    strongest = {
        int(str(number)): (rows, farthest(rows["effect"], rows["region"], top))
        for number, rows in known.groupby("pattern")
    }
    figure, panels = row_panels([len(regions) for _, regions in strongest.values()], LEVELS_HEIGHT, sharex=True)
    for axes, (number, (rows, regions)) in zip(panels, strongest.items(), strict=True):
        name_rows(axes, regions)
        _draw_levels(axes, rows[rows["region"].isin(regions)], regions)
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_title(_sizes(sizes[sizes["pattern"] == number]), loc="right", fontsize=8)
        axes.tick_params(labelbottom=True)
    panels[-1].set_xlabel(f"Cohen's d against controls\n(lines: 95 % interval; filled: q < {SIGNIFICANT:g})")
    marks = [(colour, marker, f"patients, {level} R-index") for level, (_, colour, marker) in _LEVELS.items()]
    mark_legend(figure, marks, 3)
    return figure


def _draw_levels(axes: Axes, rows: pd.DataFrame, regions: list[Any]) -> None:
    for level, (aside, colour, marker) in _LEVELS.items():
        here = rows[rows["level"] == level]
        places = np.asarray([regions.index(region) for region in here["region"]], dtype=float) + aside
        draw_intervals(axes, places, here["low"], here["high"], colour)
        draw_marks(axes, here["effect"], places, here["q"] < SIGNIFICANT, colour, marker)


def _sizes(sizes: pd.DataFrame) -> str:
    words = [
        f"{int(row['n']):,} {level}" + ("" if row["used"] else " (not tested)")
        for level in _LEVELS
        for row in sizes[sizes["level"] == level].to_dict("records")
    ]
    return ", ".join(words)
