"""Patterns on a glass brain: regions as marks at their approximate centres."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.brain.regions import place_regions
from rindices.plots.brain.sheet import (
    COLOURS,
    VIEWS,
    colour_limit,
    glass_panel,
    imaging_library,
    make_sheet,
    name_rows,
    per_severity,
    view_heights,
)
from rindices.plots.style import GREY, STYLE

SEVERITIES = (0.25, 0.5, 0.75, 1.0)
UNIT = "sd of controls"
_ROWS = ("l", "r", "z")
_AXES = {"l": "yz", "r": "yz", "z": "xy"}  # what runs across and up
_SIDES = {"l": -1, "r": 1}
_SMALLEST, _LARGEST = 3.0, 80.0  # area of a mark in points²
_SIZES = 10


@matplotlib.rc_context(STYLE)
def pattern_glass(patterns: pd.DataFrame, only: int, severities: Sequence[float] = SEVERITIES) -> Figure:
    """Draw what one pattern does to regions, with growing severity, as marks on a glass brain.

    Positions are schematic. The scale of colours is common to all patterns of the table, and symmetric about zero.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern`` and ``change_sd``. With a column ``severity`` its severities are drawn; without
        one the changes are those of severity 1, and smaller severities are scaled from them, which the figure says.
    only
        The pattern to draw.
    severities
        Which severities to draw where the table tells only severity 1.

    Raises
    ------
    ValueError
        The table lacks the pattern, or none of its regions can be placed.
    ImportError
        nilearn is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
    >>> pattern_glass(table, 1).texts[1].get_text()
    'severity 0.25'
    """
    known = sorted({int(str(number)) for number in patterns["pattern"]})
    if only not in known:
        raise ValueError(f"Expected a pattern among {known}, found {only}. Choose one that the table has.")
    imaging_library()
    centres, missing = place_regions(patterns["region"].astype(str))
    if centres.empty:
        raise ValueError(
            f"None of {len(missing)} regions can be placed on the brain, for example {missing[0]!r}.\n"
            "Give a label image of the atlas and a table of its names."
        )
    shown = patterns[patterns["region"].astype(str).isin(centres["region"])]
    limit = colour_limit(shown["change_sd"])
    steps = _steps(shown[shown["pattern"] == only], severities)
    foot = _foot(centres, len(missing), "severity" in patterns)
    label = f"Change ({UNIT})" + ("; the same scale for all patterns" if len(known) > 1 else "")
    sheet = make_sheet(view_heights(_ROWS), per_severity(steps), f"Pattern {only}", foot, (label, limit))
    name_rows(sheet, [VIEWS[view] for view in _ROWS])
    for view, row in zip(_ROWS, sheet.places, strict=True):
        for place, changes in zip(row, steps.values(), strict=True):
            _draw_marks(glass_panel(sheet.figure, place, view), view, centres, changes, limit)
    return sheet.figure


def _steps(rows: pd.DataFrame, severities: Sequence[float]) -> dict[float, pd.Series]:
    """Return the change of each region at each severity."""
    if "severity" in rows:
        known = rows[rows["severity"] > 0].groupby("severity", sort=True)
        return {float(str(severity)): _by_region(here) for severity, here in known}
    whole = _by_region(rows)
    return {severity: severity * whole for severity in severities}


def _by_region(rows: pd.DataFrame) -> pd.Series:
    return pd.Series(rows["change_sd"].to_numpy(dtype=float), index=rows["region"].astype(str)).dropna()


def _foot(centres: pd.DataFrame, n_missing: int, told: bool) -> list[str]:
    n_placed = centres["region"].nunique()
    shown = f"{n_placed:,} of {n_placed + n_missing:,} regions" if n_missing else f"all {n_placed:,} regions"
    lines = [f"Schematic positions: approximate centres, {shown}. Larger marks: larger changes."]
    if centres["region"].duplicated().any():
        lines.append("A region of both sides together has a mark on each.")
    return lines if told else [*lines, "Severities below 1 are scaled linearly from severity 1."]


def _draw_marks(axes: Axes, view: str, centres: pd.DataFrame, changes: pd.Series, limit: float) -> None:
    here = centres[centres["region"].isin(changes.index)]
    if view in _SIDES:
        here = here[here["x"] * _SIDES[view] >= 0]  # the middle is seen from both sides
    values = changes.loc[here["region"]].to_numpy()
    order = np.argsort(np.abs(values), kind="stable")  # the strongest lies on top
    values, places = values[order], here[list(_AXES[view])].to_numpy()[order]
    level = np.minimum(np.ceil(np.abs(values) / limit * _SIZES - 0.5), _SIZES)
    # Marks of one size share their shape in a file; each with its own would make it three times as large.
    for size in np.unique(level):
        chosen = level == size
        area = _SMALLEST + (_LARGEST - _SMALLEST) * float(size) / _SIZES
        colours: Any = {"c": values[chosen], "cmap": COLOURS, "vmin": -limit, "vmax": limit}
        look: Any = {"edgecolors": GREY, "linewidths": 0.4, "clip_on": False, "zorder": 3}
        axes.scatter(places[chosen, 0], places[chosen, 1], s=area, **colours, **look)
