"""How every figure looks: colours, markers and labels, panels, rows with names, and files."""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

BLUE, ORANGE, GREEN, VERMILLION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#767676"  # Okabe and Ito
PURPLE, SKY = "#CC79A7", "#56B4E9"  # theirs, too
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "<", ">")
WIDTH = 6.8  # inches: a figure over the whole width of the page
MOST_PAIRED_PATTERNS = 4
LONGEST_LABEL = 42
MANY_POINTS = 2000  # above this a figure's points are drawn as images, or the file grows with the cohort
CROWD = 2000  # above this a group's points are drawn smaller and fainter
FINE_DPI, COARSE_DPI, FINE_IMAGES = 200, 80, 3
COLUMNS = 3
ROW_FONT, PANEL_EXTRAS = 8, 0.5  # points; inches that title, ticks and label take beside the rows
SIGNIFICANT = 0.05

# Text stays text, so that a reader can search it and a browser can bring a font for any script.
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "rindices",
    "text.usetex": False,
    "savefig.facecolor": "white",
}


class Group(NamedTuple):
    """How one group of people looks in every figure."""

    key: str
    label: str
    colour: str
    marker: str


GROUPS = (
    Group("control", "Controls", BLUE, "o"),
    Group("patient", "Patients", VERMILLION, "^"),
    Group("other", "Others", GREEN, "s"),
)


def plain_text(text: object) -> str:
    """Return a line of text without formulas and control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)).replace("$", r"\$")


def safe_label(text: object) -> str:
    """Make any text safe to draw: no formulas, no control characters, not too long (the middle goes)."""
    shown = str(text)
    if len(shown) > LONGEST_LABEL:
        half = LONGEST_LABEL // 2
        shown = f"{shown[:half]}…{shown[1 - half :]}"
    # East Asian letters are wider than the box that is measured when the font lacks them; browsers drop these spaces.
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in shown)
    return "  " * wide + plain_text(shown)


def r_columns(r_indices: pd.DataFrame) -> list[str]:
    """Return the names r1, r2, ... of the R-indices in a table."""
    columns = [str(column) for column in r_indices.columns if re.fullmatch(r"r\d+", str(column))]
    if not columns:
        raise ValueError("Expected columns r1, r2, ... with R-indices; found none. Pass the table of r_indices.csv.")
    return sorted(columns, key=lambda column: int(column[1:]))


def look_of(pattern: int) -> tuple[str, str]:
    """Return colour and marker of a pattern, the same in every figure; 42 patterns differ in the pair of both."""
    return SERIES_COLOURS[(pattern - 1) % len(SERIES_COLOURS)], MARKERS[(pattern - 1) % len(MARKERS)]


def pattern_legend(figure: Figure, patterns: list[int], columns: int = 5) -> None:
    """Write above a figure which colour and marker is which pattern, in rows."""
    # A legend fills its columns one after another, but is read row by row.
    by_column = [pattern for column in range(columns) for pattern in patterns[column::columns]]
    mark_legend(figure, [(*look_of(pattern), f"Pattern {pattern}") for pattern in by_column], columns)


def mark_legend(figure: Figure, marks: Sequence[tuple[str, str, str]], columns: int) -> None:
    """Write above a figure what each mark means, given as colour, marker and label."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=label)
        for colour, marker, label in marks
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def farthest(values: pd.Series, names: pd.Series, most: int) -> list[Any]:
    """Return the names whose values reach farthest from zero, the farthest first."""
    reach = values.abs().groupby(names).max().sort_values(ascending=False, kind="stable")
    return list(reach.index[:most])


def make_panels(n_panels: int, width: float, height: float, *, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure with this many panels of a size in inches."""
    columns = min(COLUMNS, n_panels)
    rows = -(-n_panels // columns)
    # A single narrow panel still needs room for its legend.
    figure = Figure(figsize=(max(columns * width, 3.4), rows * height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel())
    for unused in axes[n_panels:]:
        unused.remove()
    return figure, axes[:n_panels]


def draw_points(
    axes: Axes,
    across: Any,
    up: Any,
    *,
    area: float,
    colour: str,
    marker: str = "o",
    alpha: float = 1.0,
    linewidths: float = 0.0,
    label: str | None = None,
) -> None:
    """Draw people as points, a crowd so small and faint that it does not become one block."""
    share = min(1.0, (CROWD / max(len(up), 1)) ** 0.5)
    size, opacity = max(area * share, 1.0), max(alpha * share, min(alpha, 0.12))
    axes.scatter(across, up, s=size, alpha=opacity, color=colour, marker=marker, linewidths=linewidths, label=label)


@matplotlib.rc_context(STYLE)
def _rendered(figure: Figure, kind: str, dpi: int, unnamed: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the measuring font lacks is drawn by the reader's browser.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        figure.savefig(buffer, format=kind, dpi=dpi, metadata={unnamed: None})
    return buffer.getvalue()


def figure_svg(fig: Figure) -> str:
    """Return a figure as SVG text: the same figure always gives the same text, many points become images.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure_svg(Figure()).rstrip().endswith("</svg>")
    True
    """
    clouds = [cloud for axes in fig.axes for cloud in axes.collections if isinstance(cloud, PathCollection)]
    many = sum(np.shape(cloud.get_offsets())[0] for cloud in clouds) > MANY_POINTS
    for cloud in clouds:
        cloud.set_rasterized(many)
    # With many images each is coarser, so that the file stays small.
    dpi = FINE_DPI * min(1.0, (FINE_IMAGES / max(len(clouds), 1)) ** 0.5)
    return _rendered(fig, "svg", max(round(dpi), COARSE_DPI), "Date").decode("utf-8")


def figure_png(fig: Figure, path: Path) -> Path:
    """Write a figure as a PNG file of 300 dots per inch and return its path.

    Whoever needs it whole or not at all gives a path beside.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figure_png(Figure(), Path(folder) / "empty.png").name
    'empty.png'
    """
    path.write_bytes(_rendered(fig, "png", 300, "Software"))
    return path


def row_panels(counts: Sequence[int], row_height: float, *, sharex: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel per count of rows, one below another, every row equally high (inches)."""
    # A panel of one row still has a title and an axis to show.
    heights = [max(count, 2) * row_height for count in counts]
    total = sum(heights) + PANEL_EXTRAS * len(counts) + 0.5
    figure = Figure(figsize=(WIDTH, total), layout="constrained")
    panels = figure.subplots(len(counts), 1, squeeze=False, height_ratios=heights, sharex=sharex)
    return figure, list(panels.ravel())


def name_rows(axes: Axes, names: Sequence[object]) -> None:
    """Write a name at each row, the first on top, with every second row shaded."""
    axes.set_yticks(range(len(names)), [safe_label(name) for name in names], fontsize=ROW_FONT)
    axes.set_ylim(max(len(names), 2) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row in range(0, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.09, linewidth=0, zorder=0)
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)


def write_beside(axes: Axes, texts: Sequence[str], offset: float, head: str = "") -> None:
    """Write a text right of each row and a head above, so many points away, where no mark or name can be."""
    place: Any = {"textcoords": "offset points", "fontsize": ROW_FONT, "annotation_clip": False, "ha": "right"}
    if head:
        axes.annotate(head, (1, 1), (offset, 2), xycoords="axes fraction", color=GREY, va="bottom", **place)
    for row, text in enumerate(texts):
        axes.annotate(text, (1, row), (offset, 0), xycoords=axes.get_yaxis_transform(), va="center", **place)


def draw_intervals(axes: Axes, rows: Any, low: Any, high: Any, colour: str) -> None:
    """Draw intervals along rows, nothing where a limit is unknown."""
    places, left, right = (np.asarray(values, dtype=float) for values in (rows, low, high))
    known = np.isfinite(left) & np.isfinite(right)
    axes.hlines(places[known], left[known], right[known], colors=colour, linewidth=1.1, zorder=2)


def draw_marks(axes: Axes, across: Any, rows: Any, filled: Any, colour: str, marker: str) -> None:
    """Draw marks on rows, hollow where they are not filled."""
    places, values, full = np.asarray(rows, float), np.asarray(across, float), np.asarray(filled, dtype=bool)
    for chosen, face in ((full, colour), (~full, "white")):
        look: Any = {"markerfacecolor": face, "markeredgewidth": 1.1, "markersize": 4.5, "linestyle": "none"}
        axes.plot(values[chosen], places[chosen], marker=marker, color=colour, zorder=3, **look)
