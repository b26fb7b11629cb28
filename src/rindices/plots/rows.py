"""Figures with one row per name: panels of many rows, their names, and what is written beside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import GREY, WIDTH, safe_label

ROW_FONT = 8
PANEL_EXTRAS = 0.5  # inches that title, ticks and label take beside the rows
SIGNIFICANT = 0.05


def row_panels(counts: Sequence[int], row_height: float, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel per count of rows, one below another, every row equally high (inches)."""
    # A panel of one row still has a title and an axis to show.
    heights = [max(count, 2) * row_height for count in counts]
    total = sum(heights) + PANEL_EXTRAS * len(counts) + 0.5
    figure = Figure(figsize=(WIDTH, total), layout="constrained")
    panels = figure.subplots(len(counts), 1, squeeze=False, height_ratios=heights, **shared)
    return figure, list(panels.ravel())


def name_rows(axes: Axes, names: Sequence[object], zero: bool = True) -> None:
    """Write a name at each row, the first on top, with every second row shaded."""
    axes.set_yticks(range(len(names)), [safe_label(name) for name in names], fontsize=ROW_FONT)
    axes.set_ylim(max(len(names), 2) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row in range(0, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.09, linewidth=0, zorder=0)
    if zero:
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)


def write_beside(axes: Axes, row: float, text: str, offset: float) -> None:
    """Write right of the panel, so many points away and right-aligned, where no mark or name can be."""
    place: Any = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right", "va": "center"}
    axes.annotate(text, (1, row), (offset, 0), fontsize=ROW_FONT, annotation_clip=False, **place)


def write_head(axes: Axes, text: str, offset: float) -> None:
    """Write the head of the column beside the panel."""
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "bottom"}
    axes.annotate(text, (1, 1), (offset, 2), fontsize=ROW_FONT, color=GREY, annotation_clip=False, **place)


def draw_intervals(axes: Axes, rows: Any, low: Any, high: Any, colour: str, **style: Any) -> None:
    """Draw intervals along rows, nothing where a limit is unknown."""
    places, left, right = (np.asarray(values, dtype=float) for values in (rows, low, high))
    known = np.isfinite(left) & np.isfinite(right)
    axes.hlines(places[known], left[known], right[known], colors=colour, **{"linewidth": 1.1, "zorder": 2} | style)


def draw_marks(axes: Axes, across: Any, rows: Any, filled: Any, colour: str, marker: str, size: float = 5.0) -> None:
    """Draw marks on rows, hollow where they are not filled."""
    places, values, full = np.asarray(rows, float), np.asarray(across, float), np.asarray(filled, dtype=bool)
    for chosen, face in ((full, colour), (~full, "white")):
        look: Any = {"markerfacecolor": face, "markeredgewidth": 1.1, "markersize": size, "linestyle": "none"}
        axes.plot(values[chosen], places[chosen], marker=marker, color=colour, zorder=3, **look)
