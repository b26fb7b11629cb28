"""The elements of sections: pictures, tables and formatted numbers.

Besides its text, a table cell holds the value with all digits, for sorting and for the download.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from rindices import plots
from rindices.files import atomic_file, guarded_text, write_text
from rindices.plots.brain_drawing import BrainDrawing
from rindices.plots.style import INK, PALETTE, STRIP

MOST_ROWS = 600
_LETTER, _LINE = 8, 17  # pixels: width of a letter and height of a line in a strip
_NAMES = {light: name for name, (light, _) in PALETTE.items()} | dict(
    zip(STRIP, ("bad-back", "bad", "bad-ink"), strict=True)
)
_COLOUR = re.compile(rf"((?:fill|stroke): )({'|'.join(_NAMES)})(?![0-9a-f])")
# Escaped, these cannot end the script element or begin a tag, wherever they occur in a name.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
GROUPS = {"all": "Everyone"} | {group.key: group.label for group in plots.style.GROUPS}


class Picture(NamedTuple):
    """An SVG embedded in the page, and its name."""

    name: str
    svg: Markup


@dataclass
class Gallery:
    """All figures of a report in order, so that they can also be saved as files.

    Attributes
    ----------
    strip
        A warning shown above every figure of a result; empty if the results need none.
    figures
        Name, figure and SVG of each.
    """

    strip: str = ""
    figures: list[tuple[str, Figure, str]] = field(default_factory=list)

    def draw(self, name: str, drawing: Figure | BrainDrawing, alt: str, *, result: bool = True) -> Picture:
        """Keep a figure under a name and return it as a picture; `alt` describes it in words."""
        strip = self.strip if result else ""
        figure = drawing.figure() if isinstance(drawing, BrainDrawing) else drawing
        if strip:
            plots.strip_above(figure, strip)
        svg = (
            _with_strip(drawing.svg(name), strip)  # smaller than Matplotlib's
            if isinstance(drawing, BrainDrawing)
            else plots.figure_svg(figure, f"{name}-")
        )
        self.figures.append((name, figure, svg))
        return Picture(name, for_page(svg, alt))

    def save(self, folder: Path) -> list[Path]:
        """Write each figure as SVG and PNG, ``01_r_indices.svg`` and so on, and return the paths."""
        paths = []
        for place, (name, figure, text) in enumerate(self.figures, start=1):
            path = write_page(folder / f"{place:02d}_{name}.svg", text)
            with atomic_file(path.with_suffix(".png")) as beside:
                plots.figure_png(figure, beside)
            paths += [path, path.with_suffix(".png")]
        return paths


def write_page(out: Path, text: str) -> Path:
    """Write a page or a drawing, completely or not at all, and return its path."""
    # A name may contain a lone surrogate, which UTF-8 cannot encode.
    write_text(out, text.encode("utf-8", errors="replace").decode("utf-8"))
    return out


def _with_strip(svg: str, strip: str) -> str:
    """Return an SVG of a brain with a warning above it; as it is if there is none."""
    if not strip:
        return svg
    before, *size, after = re.split(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg, maxsplit=1)
    width, height = map(float, size)
    lines = textwrap.wrap(strip, int(width / _LETTER))
    room = _LINE * len(lines) + 8
    end, rest = after.split(">", 1)
    back, edge, ink = STRIP
    box = f'<rect x="1" y="{-room - 9}" width="{width - 2}" height="{room}" style="fill: {back}; stroke: {edge}"/>'
    look = f'x="{width / 2}" text-anchor="middle" style="fill: {ink}"'
    texts = [f'<text y="{_LINE * k - room + 6}" {look}>{escape(line)}</text>' for k, line in enumerate(lines)]
    view = f'viewBox="0 {-room - 10} {width} {height + room + 10}"'
    return f"{before}{view}{end}>{box}{''.join(texts)}{rest}"


def for_page(text: str, alt: str) -> Markup:
    """Return an SVG whose colours follow the page and whose text never gets too small to read."""
    opening, rest = text.split(">", 1)
    width = re.search(r' width="([\d.]+)(pt)?"', opening)
    pixels = float(width[1]) / (0.75 if width[2] else 1) if width else 0.0
    # The page sets size, role and label itself.
    opening = re.sub(r' (?:width|height|role|aria-label)="[^"]*"', "", opening)
    # Matplotlib writes no colour for black, so black takes the colour of the page's text.
    size = f"min-width: {pixels:.0f}px; max-width: {1.3 * pixels:.0f}px; fill: var(--{_NAMES[INK]}, {INK})"
    body = _COLOUR.sub(lambda found: f"{found[1]}var(--{_NAMES[found[2]]}, {found[2]})", rest)
    return Markup(f'{opening} role="img" aria-label="{escape(alt)}" style="{size}">{body}')


def number(value: float | None, digits: int = 2, sign: str = "", unit: str = "") -> str:
    """Return a number with the given digits, or a dash if it is missing."""
    if value is None or pd.isna(value):
        return "–"
    # Adding zero turns a rounded "-0.00" into "0.00"; screen readers read a true minus, but may skip a hyphen.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}{unit}".replace("-", "−")


def interval(low: float, high: float, digits: int = 2) -> str:
    """Return an interval, or a dash if it is unknown; "to" separates its ends if the first is negative."""
    if pd.isna(low) or pd.isna(high):
        return "–"
    first, last = number(low, digits), number(high, digits)
    return f"{first}{' to ' if first.startswith('−') else '–'}{last}"


def p_value(value: float | None) -> str:
    """Return a p value as written in a paper, or a dash if it is missing."""
    return "< 0.001" if value is not None and value < 0.001 else number(value, 3)


def p_words(letter: str, value: float | None) -> str:
    """Return a p or q value as an equation: ``q = 0.012`` or ``q < 0.001``."""
    text = p_value(value)
    return f"{letter} {text}" if text.startswith("<") else f"{letter} = {text}"


def listed(names: Iterable[object]) -> str:
    """Return names joined for a sentence: ``a, b and c``."""
    *first, last = [str(name) for name in names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


class Cell(NamedTuple):
    """The text of a cell, and its value for sorting and the download if that differs."""

    text: str
    value: str | None = None


class Column(NamedTuple):
    """A column: title, cells, whether they are numbers, and the names of its parts in the download, if it has any."""

    title: str
    cells: list[Cell]
    is_number: bool = True
    parts: tuple[str, ...] = ()

    def shown_as(self, texts: Iterable[str]) -> Column:
        """Return the column with the same values shown as other texts."""
        return self._replace(cells=[Cell(text, cell.value) for text, cell in zip(texts, self.cells, strict=True)])


class Table(NamedTuple):
    """A table with a caption and, optionally, a marked row.

    With a `source`, the file that has all rows, only the first `MOST_ROWS` are shown to keep the page small.

    Examples
    --------
    >>> Table("Sizes", [words("Group", ["Controls"]), counts("n", [1200])]).rows
    [(Cell(text='Controls', value=None), Cell(text='1,200', value='1200'))]
    """

    caption: str
    columns: Sequence[Column]
    source: str = ""
    marked: int | None = None

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The rows that are shown."""
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        return rows[:MOST_ROWS] if self.source else rows


def words(title: str, values: Iterable[object]) -> Column:
    """Return a column of text."""
    return Column(title, [Cell(text, harmless(text)) for text in map(str, values)], is_number=False)


def harmless(text: str) -> str | None:
    """Return a text that no spreadsheet takes for a formula, for the download; None if it is the same."""
    guarded = guarded_text(text)
    return None if guarded == text else guarded


def counts(title: str, values: Iterable[float]) -> Column:
    """Return a column of whole numbers."""
    return Column(title, [Cell(f"{int(value):,}", str(int(value))) for value in values])


def measures(title: str, values: Iterable[float | None], digits: int = 2, sign: str = "") -> Column:
    """Return a column of numbers with the given digits."""
    return Column(title, [Cell(number(value, digits, sign), _whole(value)) for value in values])


def probabilities(title: str, values: Iterable[float | None]) -> Column:
    """Return a column of p or q values."""
    return Column(title, [Cell(p_value(value), _whole(value)) for value in values])


def limits(
    low: Iterable[float], high: Iterable[float], digits: int = 2, *, title: str = "95 % interval", of: str = ""
) -> Column:
    """Return a column of intervals; in the download, it is two columns named after what it is `of`."""
    pairs = list(zip(low, high, strict=True))
    cells = [Cell(interval(*pair, digits), "|".join(map(_whole, pair))) for pair in pairs]
    return Column(title, cells, parts=(f"{of or title}, low", f"{of or title}, high"))


def _whole(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{float(value):.15g}"


def script_json(data: Mapping[str, object]) -> Markup:
    """Return data as JSON for a script element, in which HTML escapes are not decoded."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))
