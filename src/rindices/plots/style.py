"""How every figure looks: colours, markers and labels, and panels."""

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# What each colour stands for, on a light and on a dark page; groups, patterns and signs never share one, and those of
# one kind differ with every common kind of colour blindness. Sides have shapes, not colours.
PALETTE = {
    "ink": ("#000000", "#e8e8e8"),
    "paper": ("#ffffff", "#16191c"),
    "grey": ("#767676", "#9aa3ab"),
    "control": ("#66717c", "#a9b5c0"),
    "patient": ("#d97b00", "#ffa63d"),
    "other": ("#00a878", "#3fd6a8"),
    "pattern1": ("#54278f", "#b591f0"),
    "pattern2": ("#17a2b8", "#4dd0e1"),
    "pattern3": ("#7a7300", "#d6cd4a"),
    "pattern4": ("#b03a83", "#f08cc4"),
    "pattern5": ("#4a3728", "#cfae94"),
    "pattern6": ("#9d8ad6", "#d9cffb"),
    "lower": ("#2166ac", "#6cb4f5"),
    "higher": ("#c4300a", "#ff7a5c"),  # with yellow in it: who does not see red would take crimson for grey
}
INK, PAPER, GREY, CONTROL, PATIENT, OTHER, *PATTERN_COLOURS, LOWER, HIGHER = (light for light, _ in PALETTE.values())
STRIP = ("#fdecea", "#b3261e", "#7a150f")  # a warning: ground, edge, letters
SHADES = (INK, "#5f6a73", "#9aa3ab")  # of what is neither group, pattern nor sign
MARKERS = ("o", "s", "^", "D", "v", "<", ">")
WIDTH = 9.6  # inches: a figure over the whole width of the page
LONGEST_LABEL = 42
CROWD = 2000  # above this a group's points are drawn smaller and fainter
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
    Group("control", "Controls", CONTROL, "o"),
    Group("patient", "Patients", PATIENT, "^"),
    Group("other", "Others", OTHER, "s"),
)


def plain_text(text: object) -> str:
    """Return a line of text without formulas and control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)).replace("$", r"\$")


def safe_label(text: object, longest: int = LONGEST_LABEL) -> str:
    """Make any text safe to draw: no formulas, no control characters, not too long (the middle goes)."""
    shown = str(text)
    if len(shown) > longest:
        half = longest // 2
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
    return PATTERN_COLOURS[(pattern - 1) % len(PATTERN_COLOURS)], MARKERS[(pattern - 1) % len(MARKERS)]


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
    label: str | None = None,
) -> None:
    """Draw people as points, a crowd so small and faint that it does not become one block."""
    share = min(1.0, (CROWD / max(len(up), 1)) ** 0.5)
    edge = 1.4 if marker == "x" else 0.0  # a cross is nothing but lines
    size, opacity = max(area * share, 1.0), max(alpha * share, min(alpha, 0.12))
    axes.scatter(across, up, s=size, alpha=opacity, color=colour, marker=marker, linewidths=edge, label=label)
