"""Figures with one row per region or variable: patterns, subgroups of patients, and clinical associations."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import (
    GREY,
    INK,
    LONGEST_LABEL,
    SHADES,
    STYLE,
    WIDTH,
    farthest,
    hover,
    look_of,
    mark_legend,
    panels_in,
    safe_label,
)
from rindices.regions import pair_sides, split_measure

MOST_VARIABLES = 40
LEAST_REACH = 0.2  # a panel of tiny correlations must not look like one of strong ones
SIGNIFICANT = 0.05
ASIDE = 0.17  # of a row: left and right with equal changes must not hide each other
_DOTS_HEIGHT, _LEVELS_HEIGHT, _PANEL_EXTRAS = 0.24, 0.26, 0.5  # inches: heights of rows; extra height of a panel
_FONT = 8.5  # points
_BESIDE_ONE, _BESIDE_TWO = 48, 92  # points
_LEGEND_COLUMNS = 5
_LEVELS = {"low": (-0.25, (SHADES[2], "o")), "middle": (0.0, (SHADES[1], "s")), "high": (0.25, (INK, "^"))}
_SIDES = {"left": (-ASIDE, "<"), "right": (ASIDE, ">"), "": (0.0, "o")}


@matplotlib.rc_context(STYLE)
def forest(associations: pd.DataFrame, *, people: str = "patients") -> Figure:
    """Draw the association of each variable with each pattern, with its 95 % interval.

    Parameters
    ----------
    associations
        Columns ``people``, ``pattern``, ``variable``, ``level``, ``kind``, ``n``, ``coefficient``, ``low``, ``high``
        and ``q``. Categorical variables (eta²) get a panel of their own. If there are more than 40 variables, the 40
        strongest are drawn.
    people
        Group of people whose associations are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"people": "patients", "pattern": 1, "level": "", "kind": "continuous", "n": 90, "q": 0.01}
    >>> table = pd.DataFrame([{**row, "variable": "mmse", "coefficient": -0.4, "low": -0.6, "high": -0.2}])
    >>> [tick.get_text() for tick in forest(table).axes[0].get_yticklabels()]
    ['mmse']
    """
    rows = associations[associations["people"] == people]
    rows = rows.assign(name=[_named(*pair) for pair in zip(rows["variable"], rows["level"], strict=True)])
    told = [f"Pattern {row.pattern}, {row.name}: {row.coefficient:.2f}, q = {row.q:.3f}" for row in rows.itertuples()]
    rows = rows.assign(value=rows["coefficient"], filled=rows["q"] < SIGNIFICANT, told=told)
    total = rows["name"].nunique()
    kept = rows[rows["name"].isin(farthest(rows["value"].fillna(0.0), rows["name"], MOST_VARIABLES))]
    parts = [part for _, part in kept.groupby(kept["kind"] == "categorical")]
    figure, panels = _pattern_panels(parts)
    for axes, part in zip(panels, parts, strict=True):
        _count_people(axes, part)
        _scale(axes, part, people.replace("everybody", "all participants"))
    if total > MOST_VARIABLES:
        figure.supxlabel(
            f"The {MOST_VARIABLES} most strongly associated of {total:,} variables; the table lists all.", fontsize=9
        )
    return figure


def _named(variable: Any, level: Any) -> str:
    """Return a variable with the level coded as 1, which may be a number or missing when read from a file."""
    if pd.isna(level) or level == "":
        return str(variable)
    return f"{variable}: {level:g}" if isinstance(level, float) else f"{variable}: {level}"


def _pattern_panels(parts: Sequence[pd.DataFrame]) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per table, a row per name in it, and a mark with its interval per pattern.

    The tables have the columns ``name`` and ``pattern``, and those of `_draw_estimates` except ``row``.
    """
    patterns = sorted({int(pattern) for part in parts for pattern in part["pattern"]})
    figure, panels = _row_panels([part["name"].nunique() for part in parts], 0.12 + 0.09 * len(patterns))
    step = min(0.8 / len(patterns), 0.3)
    for axes, part in zip(panels, parts, strict=True):
        places, names = pd.factorize(part["name"])
        _name_rows(axes, list(names))
        for rank, pattern in enumerate(patterns):
            own = part.assign(row=places + (rank - (len(patterns) - 1) / 2) * step)[part["pattern"] == pattern]
            _draw_estimates(axes, own, look_of(pattern))
    # A legend fills its columns one after another, but is read row by row.
    by_column = [pattern for column in range(_LEGEND_COLUMNS) for pattern in patterns[column::_LEGEND_COLUMNS]]
    mark_legend(figure, [(*look_of(pattern), f"Pattern {pattern}") for pattern in by_column], _LEGEND_COLUMNS)
    return figure, panels


def _count_people(axes: Axes, part: pd.DataFrame) -> None:
    """Write the number of people beside each variable, and where there is no value."""
    counts = part.assign(n=part["n"].fillna(0).astype(int)).groupby("name", sort=False)["n"].agg(["min", "max"])
    _write_beside(axes, [f"{'≤ ' if low < high else ''}{high:,}" for low, high in counts.to_numpy()], 40, "n")
    known = part.groupby("name", sort=False)["coefficient"].count()
    for place in np.flatnonzero(known == 0).tolist():
        axes.text(
            0.01, place, "no value", transform=axes.get_yaxis_transform(), va="center", color=GREY, fontsize=_FONT
        )


def _scale(axes: Axes, part: pd.DataFrame, people: str) -> None:
    what, limits = "Proportion of variance explained (eta²)", (-0.02, 1.02)
    if part["kind"].iloc[0] != "categorical":
        values = part[["coefficient", "low", "high"]].abs().to_numpy(dtype=float)
        reach = min(1.06 * np.nanmax(values, initial=LEAST_REACH), 1.02)
        what, limits = "Correlation with the pattern", (-reach, reach)
    axes.set(xlabel=f"{what} in {people}\n(lines: 95 % interval; filled: q < {SIGNIFICANT:g})", xlim=limits)


@matplotlib.rc_context(STYLE)
def disorder_dots(resemblance: pd.DataFrame) -> Figure:
    """Draw the correlation of each pattern's map with the case-control map of each disorder, one panel per measure.

    Parameters
    ----------
    resemblance
        Columns ``pattern``, ``measure``, ``disorder``, ``r``, ``p_corrected`` and ``chance``; dotted lines mark
        ``chance``.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "measure": "thickness", "disorder": "autism", "r": 0.3, "p_corrected": 0.2, "chance": 0.5}
    >>> disorder_dots(pd.DataFrame([row])).axes[0].get_title(loc="left")
    'Thickness'
    """
    told = [f"Pattern {row.pattern}, {row.disorder}: {row.r:.2f}" for row in resemblance.itertuples()]
    filled = resemblance["r"] > resemblance["chance"]
    rows = resemblance.rename(columns={"disorder": "name", "r": "value"})
    rows = rows.assign(low=np.nan, high=np.nan, filled=filled, told=told)
    parts = {str(measure): part for measure, part in rows.groupby("measure", sort=False)}
    figure, panels = _pattern_panels([*parts.values()])
    for axes, (measure, part) in zip(panels, parts.items(), strict=True):
        for pattern, chance in part.groupby("pattern")["chance"].first().dropna().items():
            axes.axvline(chance, color=look_of(int(str(pattern)))[0], linestyle=":", linewidth=1.2)
        axes.set_title(measure.capitalize(), loc="left")
        axes.set(xlabel="Correlation across regions", xlim=(-1.04, 1.04))
    return figure


@matplotlib.rc_context(STYLE)
def pattern_dots(
    patterns: pd.DataFrame,
    only: int | None = None,
    top: int = 20,
    names: Mapping[str, str] | None = None,
    width: float = WIDTH,
) -> Figure:
    """Draw the regions that change most at severity 1, both hemispheres in one row, patterns on a common scale.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern``, ``change_sd``, ``change_percent`` and ``spread_sd``; ``decomposed_sd``, if
        present and known, is shown as faint marks.
    only
        Draw only this pattern, on the scale shared by all.
    top
        Number of rows per pattern; regions without any change are left out.
    names
        Full names of regions, if known.
    width
        Width of the figure, in inches.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "spread_sd": 0.1, "change_percent": -5.0, "change_sd": -1.0}
    >>> table = pd.DataFrame([{**row, "region": name} for name in ("lHip", "rHip", "Vermis", "Pons")])
    >>> table.loc[3, "change_sd"] = 0.0
    >>> [tick.get_text() for tick in pattern_dots(table).axes[0].get_yticklabels()]
    ['Hip', 'Vermis']
    """
    if "decomposed_sd" not in patterns:
        patterns = patterns.assign(decomposed_sd=np.nan)
    strongest = {int(str(number)): _strongest(rows, top, names or {}) for number, rows in patterns.groupby("pattern")}
    limits = _limits(pd.concat(strongest.values()))
    drawn = strongest if only is None else {only: strongest[only]}
    shown = pd.concat(drawn.values())
    figure, panels = _row_panels([rows["row"].nunique() for rows in drawn.values()], _DOTS_HEIGHT, width=width)
    for axes, (number, rows) in zip(panels, drawn.items(), strict=True):
        _draw_pattern(axes, rows, look_of(number)[0])
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_xlim(*limits)
    spread = "\nlines: spread across repetitions" if shown["spread_sd"].notna().any() else ""
    panels[-1].set_xlabel(f"Change at severity 1 (sd of controls){spread}")
    marks: list[tuple[Any, str, str]] = [
        (INK, marker, side or "no counterpart") for side, (_, marker) in _SIDES.items() if (shown["side"] == side).any()
    ]
    if shown["decomposed_sd"].notna().any():
        marks.append(((GREY, 0.5), "o", "faint: as observed in patients"))
    if len(marks) > 1:
        mark_legend(figure, marks, 4)
    return figure


def _strongest(rows: pd.DataFrame, top: int, known: Mapping[str, str]) -> pd.DataFrame:
    """Return one pattern's strongest regions with their side, name and row; left and right share a row."""
    regions = rows["region"].astype(str)
    pairs = pair_sides(regions)
    sides, names = zip(*(pairs.get(region, ("", region)) for region in regions), strict=True)
    # A region without a counterpart has a row of its own, even if another has the same name.
    keys = [name if side else place for place, (side, name) in enumerate(zip(sides, names, strict=True))]
    strength = rows["change_sd"].abs().groupby(keys).transform("max")
    labels = {name: region_label(name, pairs, known) for name in set(names)}
    names = tuple(
        f"{full} ({short})" if short and len(full + short) + 3 <= LONGEST_LABEL else full
        for full, short in map(labels.__getitem__, names)
    )
    change, spread = rows["change_sd"], rows["spread_sd"]
    rows = rows.assign(value=change, low=change - spread, high=change + spread, filled=change.notna())
    rows = rows.assign(side=sides, name=names, key=pd.Series(keys, rows.index, object), strength=strength)
    rows = rows.sort_values("strength", ascending=False, kind="stable")
    rows["row"] = pd.factorize(rows["key"])[0]
    return rows[(rows["row"] < top) & ((rows["strength"] > 0) | (rows["row"] == 0))]


def region_label(short: str, pairs: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> tuple[str, str]:
    """Return the full name of a region, or of both sides together, and the name in the table to show beside it.

    If no full name is known, the name in the table is returned alone.

    Examples
    --------
    >>> region_label("Hip", pair_sides(["lHip", "rHip"]), {"lHip": "left hippocampus", "rHip": "right hippocampus"})
    ('hippocampus', 'Hip')
    """
    sided = next((region for region, (_, base) in pairs.items() if base == short), None)
    full = names.get(short if sided is None else sided, "")
    if sided is not None:
        full = full.removeprefix(f"{pairs[sided][0]} ")
    return (full, split_measure(short)[0]) if full and full not in (short, sided) else (short, "")


def _limits(shown: pd.DataFrame) -> tuple[float, float]:
    ends = shown[["value", "low", "high", "decomposed_sd"]].to_numpy(dtype=float)
    low, high = np.nanmin(ends, initial=0.0), np.nanmax(ends, initial=0.0)
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_pattern(axes: Axes, rows: pd.DataFrame, colour: str) -> None:
    by_row = [pair.sort_values("side") for _, pair in rows.groupby("row")]
    _name_rows(axes, [pair["name"].iloc[0] for pair in by_row])
    for place, pair in enumerate(by_row):
        if len(pair) == 2:
            axes.plot(pair["change_sd"], [place - ASIDE, place + ASIDE], color=GREY, linewidth=1, zorder=2)
    told = [f"{row.side} {row.name}: {row.value:+.2f} sd" for row in rows.itertuples()]
    for side, (aside, marker) in _SIDES.items():
        here = rows.assign(row=rows["row"] + aside, told=told)[rows["side"] == side]
        axes.plot(here["decomposed_sd"], here["row"], marker, color=colour, alpha=0.35, markersize=5, markeredgewidth=0)
        _draw_estimates(axes, here, (colour, marker))
    sided = (rows["side"] != "").any()
    offset, head = (_BESIDE_TWO, "left / right") if sided else (_BESIDE_ONE, "")
    _write_beside(axes, [_percent(pair["change_percent"]) for pair in by_row], offset, head)


def _percent(values: pd.Series) -> str:
    # Adding zero turns a rounded "-0.0" into "+0.0".
    words = ["–" if pd.isna(value) else f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") for value in values]
    return " / ".join(words) + (" %" if values.notna().any() else "")


@matplotlib.rc_context(STYLE)
def subgroup_dots(subgroups: pd.DataFrame, sizes: pd.DataFrame, top: int = 12) -> Figure:
    """Draw how patients with a low, middle and high severity differ from controls, region by region.

    Parameters
    ----------
    subgroups
        Columns ``pattern``, ``level``, ``region``, ``effect`` (Cohen's d), ``low``, ``high`` and ``q``.
    sizes
        Columns ``pattern``, ``level``, ``n`` and ``used``.
    top
        Number of regions per pattern: those with the largest effect at any level.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "level": "high", "effect": -0.9, "low": -1.2, "high": -0.6, "q": 0.01}
    >>> sizes = pd.DataFrame([{"pattern": 1, "level": "high", "n": 34, "used": True}])
    >>> subgroup_dots(pd.DataFrame([{**row, "region": "lHip"}]), sizes).axes[0].get_title(loc="right")
    '34 high'
    """
    parts = [
        (number, rows, farthest(rows["effect"], rows["region"], top))
        for number, rows in subgroups.dropna(subset="effect").groupby("pattern")
    ]
    figure, panels = _row_panels([len(regions) for *_, regions in parts], _LEVELS_HEIGHT, sharex=True)
    for axes, (number, rows, regions) in zip(panels, parts, strict=True):
        _name_rows(axes, regions)
        shown = rows[rows["region"].isin(regions)]
        shown = shown.assign(row=shown["region"].map(regions.index), value=shown["effect"], told="")
        for level, (aside, look) in _LEVELS.items():
            own = shown[shown["level"] == level]
            _draw_estimates(axes, own.assign(row=own["row"] + aside, filled=own["q"] < SIGNIFICANT), look)
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_title(_sizes(sizes[sizes["pattern"] == number]), loc="right", fontsize=8.5)
        axes.tick_params(labelbottom=True)
    panels[-1].set_xlabel(f"Cohen's d relative to controls\n(lines: 95 % interval; filled: q < {SIGNIFICANT:g})")
    marks = [(colour, marker, f"patients, {level} severity") for level, (_, (colour, marker)) in _LEVELS.items()]
    mark_legend(figure, marks, 3)
    return figure


def _sizes(sizes: pd.DataFrame) -> str:
    found = sizes.set_index("level").reindex(list(_LEVELS)).dropna(subset="n")
    return ", ".join(f"{row.n:,.0f} {row.Index}{'' if row.used else ' (not tested)'}" for row in found.itertuples())


def _row_panels(
    counts: Sequence[int], row_height: float, *, sharex: bool = False, width: float = WIDTH
) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per count of rows, stacked, with rows of equal height (inches)."""
    # A panel of one row still has a title and an axis to show.
    heights = [max(count, 2) * row_height for count in counts]
    return panels_in(
        width, sum(heights) + _PANEL_EXTRAS * len(counts) + 0.5, len(counts), heights=heights, sharex=sharex
    )


def _name_rows(axes: Axes, names: Sequence[object]) -> None:
    """Label the rows, the first at the top, and shade every second one."""
    axes.set_yticks(range(len(names)), [safe_label(name) for name in names], fontsize=_FONT)
    axes.set_ylim(max(len(names), 2) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row in range(0, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.09, linewidth=0, zorder=0)
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)


def _write_beside(axes: Axes, texts: Sequence[str], offset: float, head: str) -> None:
    """Write a text to the right of each row and a heading above, `offset` points away, clear of marks and names."""
    place: Any = {"textcoords": "offset points", "fontsize": _FONT, "annotation_clip": False, "ha": "right"}
    if head:
        axes.annotate(head, (1, 1), (offset, 2), xycoords="axes fraction", color=GREY, va="bottom", **place)
    for row, text in enumerate(texts):
        axes.annotate(text, (1, row), (offset, 0), xycoords=axes.get_yaxis_transform(), va="center", **place)


def _draw_estimates(axes: Axes, table: pd.DataFrame, look: tuple[str, str]) -> None:
    """Draw marks on rows, hollow where they are not filled, with their intervals where both limits are known.

    The table has the columns ``row``, ``value``, ``low``, ``high``, ``filled`` and ``told``, the hover text; `look` is
    the colour and marker.
    """
    colour, marker = look
    known = table.dropna(subset=["low", "high"])
    axes.hlines(known["row"], known["low"], known["high"], colors=colour, linewidth=1.1, zorder=2)
    for filled, own in [*table.groupby("filled")][::-1]:
        [marks] = axes.plot(
            own["value"],
            own["row"],
            marker,
            color=colour,
            zorder=3,
            markerfacecolor=colour if filled else "white",
            markeredgewidth=1.1,
            markersize=4.5,
        )
        hover(marks, own.loc[own["value"].notna(), "told"])
