"""How every figure looks: colours, markers and labels, panels, and files."""

from __future__ import annotations

import io
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
LONGEST_LABEL = 42
MANY_POINTS = 2000  # above this a figure's points are drawn as images, or the file grows with the cohort
CROWD = 2000  # above this a group's points are drawn smaller and fainter
FINE_DPI, COARSE_DPI, FINE_IMAGES = 200, 80, 3
COLUMNS = 3

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


def score_columns(table: pd.DataFrame) -> list[str]:
    """Return the names severity1, severity2, ... in a table; where there are none, r1, r2, ... of its R-indices."""
    severities, r_indices = (table.filter(regex=rf"^{name}\d+$") for name in ("severity", "r"))
    return [str(name) for name in (severities if severities.shape[1] else r_indices)]


def measure_of(name: object) -> str:
    """Return what a column is called: severity or R-index."""
    return "severity" if str(name).startswith("severity") else "R-index"


def short_name(name: str) -> str:
    """Return a column as it stands beside an axis: ``Severity 1`` or ``R1``."""
    return name.replace("severity", "Severity ").replace("r", "R", name[0] == "r")


def look_of(pattern: int) -> tuple[str, str]:
    """Return colour and marker of a pattern, the same in every figure; 42 patterns differ in the pair of both."""
    return SERIES_COLOURS[(pattern - 1) % len(SERIES_COLOURS)], MARKERS[(pattern - 1) % len(MARKERS)]


def mark_legend(figure: Figure, marks: Sequence[tuple[Any, str, str]], columns: int) -> None:
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
