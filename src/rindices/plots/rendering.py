"""Figures as files: SVG whose marks say what they are, PNG, and a strip above what must not be taken at face value."""

import io
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from rindices.plots.style import STRIP, STYLE

MANY_POINTS = 2000  # above this a figure's points are drawn as images, or the file grows with the cohort
FINE_DPI, COARSE_DPI, FINE_IMAGES = 200, 80, 3
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HOVER, _BETWEEN = "hover:", "\u241f"
_STRIP, _LETTERS = "strip", 11  # letters an inch
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_FINE = re.compile(r"-?\d+\.\d{3,}")  # no screen shows a hundredth of a point


def hover(artist: Any, texts: Iterable[object]) -> None:
    """Let a reader point at each mark of an artist and be told a text; as many texts as marks, in their order."""
    words = ["".join(letter for letter in str(text) if letter.isprintable()) for text in texts]
    if words and len(words) <= MANY_POINTS:
        artist.set_gid(_HOVER + _BETWEEN.join(word.replace(_BETWEEN, " ") for word in words))


def strip_above(figure: Figure, text: str) -> None:
    """Write a warning above a figure, which is part of it wherever it is shown or saved."""
    with _any_letter():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # which would move what lies outside
    for legend in figure.legends:  # which would move up to the strip when the page is cut around both
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
    ground, edge, ink = STRIP
    look: Any = {"facecolor": ground, "edgecolor": edge, "boxstyle": "square,pad=0.5", "linewidth": 0.8}
    lines = textwrap.fill(text, int(_LETTERS * figure.get_figwidth()))
    figure.text(0.5, 1.0 + 0.2 / figure.get_figheight(), lines, ha="center", va="bottom", color=ink, bbox=look)
    figure.set_label(_STRIP)


def figure_svg(fig: Figure, name: str = "") -> str:
    """Return a figure as SVG text: the same figure always gives the same text, many points become images.

    Parameters
    ----------
    fig
        The figure.
    name
        What the ids in it begin with, so that several figures can stand in one page.

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
    return _tidy(_rendered(fig, "svg", max(round(dpi), COARSE_DPI), "Date"), name)


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


@contextmanager
def _any_letter() -> Iterator[None]:
    """Be silent about a letter that the measuring font lacks: the reader's browser draws it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


@matplotlib.rc_context(STYLE)
def _rendered(figure: Figure, kind: str, dpi: int, unnamed: str) -> bytes:
    buffer = io.BytesIO()
    with _any_letter():
        around = "tight" if figure.get_label() == _STRIP else None  # the strip lies outside
        figure.savefig(buffer, format=kind, dpi=dpi, metadata={unnamed: None}, bbox_inches=around)
    return buffer.getvalue()


def _tidy(data: bytes, name: str) -> str:
    """Return an SVG without what only matplotlib needs, its ids under a name, and with texts of marks."""
    root = ElementTree.fromstring(data)
    for parent in root.findall(f".//{{{_SVG}}}style/.."):  # it would reach the whole page
        for style in parent.findall(f"{{{_SVG}}}style"):
            parent.remove(style)
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    root.set("stroke-linejoin", "round")
    used = set[str]()
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == f"{{{_XLINK}}}href" and value.startswith("#"):
                used.add(value[1:])
                node.set(key, f"#{name}{value[1:]}")
            elif found := _REFERENCE.search(value):
                used.add(found[1])
                node.set(key, _REFERENCE.sub(rf"url(#{name}\1)", value))
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
