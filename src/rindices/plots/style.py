"""The look and output of every figure: colours, labels and panels; SVG with hover texts, and PNG."""

import io
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# What each colour stands for, on light and dark pages; groups, patterns and signs never share one, and colours of one
# kind differ with every common form of colour blindness. Hemispheres have shapes, not colours.
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
    "higher": ("#c4300a", "#ff7a5c"),  # yellowish: without red vision, crimson would look grey
}
INK, PAPER, GREY, CONTROL, PATIENT, OTHER, *PATTERN_COLOURS, LOWER, HIGHER = (light for light, _ in PALETTE.values())
STRIP = ("#fdecea", "#b3261e", "#7a150f")  # a warning: background, edge, text
SHADES = (INK, "#5f6a73", "#9aa3ab")  # for anything but groups, patterns and signs
# Possible ends of the colour scale of changes: the smallest that covers this percentile of all changes.
COLOUR_ENDS, _CENTILE = (1.0, 2.0, 4.0), 98
MARKERS = ("o", "s", "^", "D", "v", "<", ">")
WIDTH = 9.6  # inches: a figure of full page width
LONGEST_LABEL = 46  # opercular part of the inferior frontal gyrus
CROWD = 2000  # above this a group's points are drawn smaller and fainter
COLUMNS = 3

# Text stays text, so that readers can search it and browsers can supply a font for any script.
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
    """The look of one group of people in every figure."""

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
    """Return a line of text without formulas or control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)).replace("$", r"\$")


def safe_label(text: object, longest: int = LONGEST_LABEL) -> str:
    """Make any text safe to draw: no formulas, no control characters, not too long (the middle is cut)."""
    shown = str(text)
    if len(shown) > longest:
        half = longest // 2
        shown = f"{shown[:half]}…{shown[1 - half :]}"
    # East Asian characters are wider than the box measured when the font lacks them; browsers drop these spaces.
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in shown)
    return "  " * wide + plain_text(shown)


def score_columns(table: pd.DataFrame) -> list[str]:
    """Return the severity columns of a table (severity1, ...) or, if there are none, its R-indices (r1, ...)."""
    severities, r_indices = (table.filter(regex=rf"^{name}\d+$") for name in ("severity", "r"))
    return [str(name) for name in (severities if severities.shape[1] else r_indices)]


def measure_of(name: object) -> str:
    """Return the name of a column's measure: severity or R-index."""
    return "severity" if str(name).startswith("severity") else "R-index"


def look_of(pattern: int) -> tuple[str, str]:
    """Return the colour and marker of a pattern, the same in every figure; 42 patterns have different pairs."""
    return PATTERN_COLOURS[(pattern - 1) % len(PATTERN_COLOURS)], MARKERS[(pattern - 1) % len(MARKERS)]


def colour_end(changes: Iterable[float], limits: Sequence[float] = COLOUR_ENDS) -> float:
    """Return the end of the colour scale: the smallest of 1, 2 and 4 that covers nearly all changes; others saturate.

    Examples
    --------
    >>> colour_end([-0.7, 0.2]), colour_end([-1.5, 0.2]), colour_end([-9.0])
    (1.0, 2.0, 4.0)
    """
    sizes = np.abs(np.asarray([*changes], dtype=float))
    reached = np.percentile(sizes[np.isfinite(sizes)], _CENTILE) if np.isfinite(sizes).any() else 0.0
    return next((limit for limit in limits if reached <= limit), limits[-1])


def signed(value: float) -> str:
    """Return a change with its sign, a true minus, and two significant digits."""
    return f"{value:+.2g}".replace("-", "−") if value else "0"


def mark_legend(figure: Figure, marks: Sequence[tuple[Any, str, str]], columns: int) -> None:
    """Add a legend above a figure, with each mark given as colour, marker and label."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=label)
        for colour, marker, label in marks
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def farthest(values: pd.Series, names: pd.Series, most: int) -> list[Any]:
    """Return the names whose values reach farthest from zero, the farthest first."""
    return list(values.abs().groupby(names).max().sort_values(ascending=False, kind="stable").index[:most])


def panels_in(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    *,
    sharex: bool = False,
    sharey: bool = False,
    heights: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the given size in inches with panels in rows, of equal or relative `heights`, and columns."""
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey, height_ratios=heights)
    return figure, list(panels.ravel())


def present_groups(people: pd.DataFrame) -> list[Group]:
    """Return the groups that are not empty."""
    return [group for group in GROUPS if (people["group"] == group.key).any()]


def make_panels(n_panels: int, width: float, height: float, label: str = "") -> tuple[Figure, list[Axes]]:
    """Return a figure with this many panels, each of the given size in inches.

    With a label of the vertical axis, they have this axis in common, and it is written beside each row.
    """
    columns = min(COLUMNS, n_panels)
    rows = -(-n_panels // columns)
    # A single narrow panel still needs room for its legend.
    figure, panels = panels_in(max(columns * width, 3.4), rows * height, rows, columns, sharey=bool(label))
    for first in panels[::columns]:
        first.set_ylabel(label)
    for unused in panels[n_panels:]:
        unused.remove()
    return figure, panels[:n_panels]


def draw_points(
    axes: Axes,
    across: Any,
    up: Any,
    *,
    area: float,
    colour: str,
    marker: str = "o",
    alpha: float = 1.0,
) -> None:
    """Draw people as points, smaller and fainter in a crowd so that they do not merge into one block."""
    share = min(1.0, (CROWD / max(len(up), 1)) ** 0.5)
    edge = 1.4 if marker == "x" else 0.0  # a cross is nothing but lines
    size, opacity = max(area * share, 1.0), max(alpha * share, min(alpha, 0.12))
    axes.scatter(across, up, s=size, alpha=opacity, color=colour, marker=marker, linewidths=edge)


MANY_POINTS = 2000  # above this, points are drawn as images; otherwise the file would grow with the cohort
FINE_DPI, COARSE_DPI, FINE_IMAGES = 200, 80, 3
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HOVER, _BETWEEN = "hover:", "\u241f"
_STRIP, _LETTERS = "strip", 11  # characters per inch
_LINK, _REFERENCE = re.compile("^#(.*)"), re.compile(r"url\(#([^)]*)\)")
_FINE = re.compile(r"-?\d+\.\d{3,}")  # no screen shows a hundredth of a point


def hover(artist: Any, texts: Iterable[object]) -> None:
    """Attach a hover text to each mark of an artist; as many texts as marks, in the same order."""
    words = ["".join(letter for letter in str(text) if letter.isprintable()) for text in texts]
    if words and len(words) <= MANY_POINTS:
        artist.set_gid(_HOVER + _BETWEEN.join(word.replace(_BETWEEN, " ") for word in words))


def strip_above(figure: Figure, text: str) -> None:
    """Write a warning above a figure, as part of it wherever it is shown or saved."""
    with _any_letter():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it would move anything outside the figure
    for legend in figure.legends:  # they would move up to the strip when the page is cropped around both
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
    ground, edge, ink = STRIP
    look: Any = {"facecolor": ground, "edgecolor": edge, "boxstyle": "square,pad=0.5", "linewidth": 0.8}
    lines = textwrap.fill(text, int(_LETTERS * figure.get_figwidth()))
    figure.text(0.5, 1.0 + 0.2 / figure.get_figheight(), lines, ha="center", va="bottom", color=ink, bbox=look)
    figure.set_label(_STRIP)


def figure_svg(fig: Figure, name: str = "") -> str:
    """Return a figure as SVG text. The same figure always gives the same text; many points are embedded as an image.

    Parameters
    ----------
    fig
        The figure.
    name
        Prefix of the ids, so that several figures can be on one page.

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
    # With many images, each is coarser, which keeps the file small.
    dpi = FINE_DPI * min(1.0, (FINE_IMAGES / max(len(clouds), 1)) ** 0.5)
    return _tidy(_rendered(fig, "svg", max(round(dpi), COARSE_DPI), ("Date", "Creator", "Format", "Type")), name)


def figure_png(fig: Figure, path: Path) -> Path:
    """Write a figure as a PNG file at 300 dots per inch and return its path.

    The file is not written atomically.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figure_png(Figure(), Path(folder) / "empty.png").name
    'empty.png'
    """
    path.write_bytes(_rendered(fig, "png", 300, ("Software",)))
    return path


@contextmanager
def _any_letter() -> Iterator[None]:
    """Silence warnings about characters that the measuring font lacks: the reader's browser draws them."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", r"Glyph \d+ .* missing from|Matplotlib currently does not support .* natively"
        )
        yield


@matplotlib.rc_context(STYLE)
def _rendered(figure: Figure, kind: str, dpi: int, unsaid: Sequence[str]) -> bytes:
    """Return a figure as a file of a kind, without the metadata in `unsaid`, which matplotlib would add."""
    buffer = io.BytesIO()
    with _any_letter():
        around = "tight" if figure.get_label() == _STRIP else None  # the strip lies outside the figure
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=dict.fromkeys(unsaid), bbox_inches=around)
    return buffer.getvalue()


def _tidy(data: bytes, name: str) -> str:
    """Return an SVG without what only matplotlib needs, with prefixed ids and with hover texts on marks."""
    root = ElementTree.fromstring(data)
    for styled in root.findall(f"{{{_SVG}}}defs[{{{_SVG}}}style]"):  # it would apply to the whole page
        root.remove(styled)
    root.set("stroke-linejoin", "round")
    used = set[str]()
    for node in root.iter():
        for key, value in node.attrib.items():
            if found := (_LINK if key == f"{{{_XLINK}}}href" else _REFERENCE).search(value):
                used.add(found[1])
                node.set(key, value.replace(f"#{found[1]}", f"#{name}{found[1]}"))
    for node in list(root.iter()):
        own = node.attrib.pop("id", "")
        for name_of_lines in ("d", "x", "y"):
            if lines := node.get(name_of_lines):
                node.set(name_of_lines, _FINE.sub(_coarse, " ".join(lines.split())))
        if own in used:
            node.set("id", name + own)
        elif own.startswith(_HOVER):
            _add_titles(node, own.removeprefix(_HOVER).split(_BETWEEN))
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _coarse(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _add_titles(group: ElementTree.Element, texts: list[str]) -> None:
    defined = {inner for defs in group.iter(f"{{{_SVG}}}defs") for inner in defs.iter()}
    marks = [node for node in group.iter() if node.tag in (f"{{{_SVG}}}use", f"{{{_SVG}}}path") and node not in defined]
    for mark, text in zip(marks, texts, strict=False):  # marks outside the panel are not drawn
        ElementTree.SubElement(mark, f"{{{_SVG}}}title").text = text
