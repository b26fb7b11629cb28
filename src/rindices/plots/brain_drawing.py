"""Brains drawn as filled outlines: the effect of a pattern on regions, each with its name and value.

A page can include ``draw_brain(table, pattern).svg(key)`` as it is, with a different key for each drawing; ``limit`` is
the end of its colour scale, and ``regions[name].title`` the full name of a region. Opacity grows linearly with the
change, and scales end at 1, 2 or 4, so that two reports can be compared side by side.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Line

from rindices.plots.brain import VIEWS, Panel, Piece, Rect, panels_of, points_of, strongest
from rindices.plots.style import COLOUR_ENDS, HIGHER, LOWER, STYLE, colour_end, hover, signed
from rindices.regions import KnownColumn, known_regions, split_measure

WIDTH = 960  # pixels
_LARGEST = 0.7  # pixels per half millimetre, the unit of outlines
_GAP, _HEAD, _TEXT = 10, 22, 13  # pixels: gaps between pictures, view labels, font size
_SCALE, _LEFT, _BAR, _SCALE_WIDTH = 58, 14, 12, 300  # pixels: colour scale: height, left, height and width of its bar
_EDGE, _FAINT = 0.45, 0.16  # opacity of lines, and of regions whose sign is uncertain
_ENDS_OF_AMOUNTS = (0.25, 0.5, *COLOUR_ENDS)  # possible ends of the scale: amounts are smaller than changes
_KEYS = {"unsure": "uncertain", "unknown": "no value"}
UNIT = "change (sd of controls)"


class Placed(NamedTuple):
    """A piece in the drawing: the origin of its view, its look, and its name with its value.

    The look is ``whole``, ``unknown``, ``unsure``, ``lower``, ``higher`` or ``amount``; the latter three have an
    opacity.
    """

    piece: Piece
    across: float
    down: float
    zoom: tuple[float, float]
    look: str
    opacity: float | None
    title: str


@dataclass(frozen=True)
class BrainDrawing:
    """A pattern on the brain, as SVG text or as a matplotlib figure.

    Attributes
    ----------
    pattern
        Number of the pattern.
    regions
        Known regions by their name in the table, with their full names as titles.
    lines
        The views of the brain, line by line.
    changes
        The change of each region in sd of controls.
    limit
        Largest value of the colour scale.
    missing
        Names in the table that are not drawn: not in a known atlas, or without an outline.
    width
        Width in pixels.
    unsure
        Names in the table that are drawn in grey because the sign of their change is uncertain.
    unit
        Meaning of the colours.
    is_amount
        Whether the values are unsigned; they are then drawn from 0, in the colour of the surrounding text.
    """

    pattern: int
    regions: Mapping[str, KnownColumn]
    lines: tuple[tuple[Panel, ...], ...]
    changes: Mapping[str, float]
    limit: float
    missing: tuple[str, ...]
    width: float = WIDTH
    unsure: frozenset[str] = frozenset()
    unit: str = UNIT
    is_amount: bool = False

    def with_amounts(self, amounts: Mapping[str, float], unit: str) -> "BrainDrawing":
        """Return the same views of the brain, coloured by unsigned values such as a spread.

        Parameters
        ----------
        amounts
            Values by the region's name in the table.
        unit
            Meaning of the colours.

        Examples
        --------
        >>> table = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
        >>> drawing = draw_brain(table, 1).with_amounts({"lHip": 0.1, "rHip": 0.3}, "spread (sd of controls)")
        >>> drawing.limit, "<title>left hippocampus (lHip): 0.1 sd</title>" in drawing.svg()
        (0.5, True)
        """
        own = {name: amount for name, amount in amounts.items() if name in self.drawn}
        limit = colour_end(own.values(), _ENDS_OF_AMOUNTS)
        return replace(self, changes=own, limit=limit, unsure=frozenset(), unit=unit, is_amount=True)

    @property
    def drawn(self) -> set[str]:
        """The names in the table that are drawn."""
        return {name for line in self.lines for panel in line for name in panel.names}

    @property
    def piece_names(self) -> list[tuple[str, ...]]:
        """The names in the table that each piece shows, in the order in which the SVG uses them."""
        return [one.piece.names for one in self._placed()]

    @property
    def height(self) -> float:
        """The height in pixels."""
        return round(sum(_HEAD + height for _, height in self._zooms()) + _GAP + _SCALE, 1)

    def _zooms(self) -> list[tuple[float, float]]:
        """Return the pixels per unit of outlines and the height of each line; lines of one kind share a scale."""
        fits: dict[bool, list[float]] = defaultdict(lambda: [_LARGEST])
        for line in self.lines:
            fits[line[0].side != ""].append((self.width - _GAP * len(line)) / sum(panel.size[0] for panel in line))
        fits[False] += fits[True]  # slices are not scaled up more than the cortex
        zooms = [min(fits[line[0].side != ""]) for line in self.lines]
        tallest = [max(panel.size[1] for panel in line) for line in self.lines]
        return [(zoom, zoom * size + _GAP) for zoom, size in zip(zooms, tallest, strict=True)]

    def _views(self) -> Iterator[tuple[Panel, float, float, float, float]]:
        """Yield each view with its position across and down, its zoom, and its width in pixels."""
        down, zooms = float(_GAP), self._zooms()
        for line, (zoom, height) in zip(self.lines, zooms, strict=True):
            down, across = down + _HEAD, 0.0
            for panel in line:
                width = panel.size[0] * zoom
                yield panel, across, down, zoom, width
                across += width + _GAP
            down += height

    def _placed(self) -> Iterator[Placed]:
        change = {name: value for name, value in self.changes.items() if np.isfinite(value)}
        levels = {name: f"{value:.2g}" if self.is_amount else signed(value) for name, value in change.items()}
        for panel, across, down, zoom, width in self._views():
            for piece in panel.pieces:
                values = [change[name] for name in piece.names if name in change]
                mean = float(np.mean(values)) / self.limit if values else 0.0
                unsure = bool(values) and self.unsure.issuperset(name for name in piece.names if name in change)
                sign = "amount" if self.is_amount else "lower" if mean < 0 else "higher"
                look = "unsure" if unsure else sign if values else "unknown"
                opacity = round(min(1.0, abs(mean)), 3) if values and not unsure else None
                told = (
                    f"{self.regions[name].title} ({name}): {f'{levels[name]} sd' if name in levels else 'no value'}"
                    for name in piece.names
                )
                yield Placed(
                    piece,
                    across + piece.mirrored * width,
                    down,
                    (-zoom if piece.mirrored else zoom, zoom),
                    "whole" if piece is panel.pieces[0] else look,
                    opacity,
                    "; ".join(told),
                )

    def _texts(self) -> Iterator[tuple[float, float, str, str]]:
        """Yield each text with its position across and down, and whether it starts, ends or is centred there."""
        for panel, across, down, _, width in self._views():
            yield across + width / 2, down - 8, VIEWS[panel.view, panel.side], "middle"
            if panel.view.startswith("coronal"):
                yield across, down - 8, "L", "start"
                yield across + width, down - 8, "R", "end"
        left, top, width, height = self._bar
        for share in (0, 0.5, 1) if self.is_amount else (0, 0.25, 0.5, 0.75, 1):
            words = f"{share * self.limit:g}" if self.is_amount else signed((2 * share - 1) * self.limit)
            yield left + share * width, top + height + 15, words, "middle"
        yield left + width / 2, top + height + 33, self.unit, "middle"
        for look, (across, down, wide, _) in self._swatches.items():
            yield across + wide + 6, down + height - 1, _KEYS[look], "start"

    @property
    def _bar(self) -> Rect:
        """The bar of colours: left, top, width and height."""
        return _LEFT, self.height - _SCALE, min(_SCALE_WIDTH, self.width / 2), _BAR

    @property
    def _swatches(self) -> dict[str, Rect]:
        """The legend beside the bar: looks in the drawing that are not on the colour scale."""
        (left, top, width, height), looks = self._bar, {one.look for one in self._placed()}
        others = [look for look in _KEYS if look in looks]
        return {look: (left + width + 30, top + 20 * place, 18, height) for place, look in enumerate(others)}

    def svg(self, key: str = "") -> str:
        """Return SVG text for a page or a file; browsers show the name of the region under the pointer.

        Lines and text take the colour of the surrounding text. A page can set the other colours with the ``fill`` and
        ``stop-color`` of ``svg.brain .lower`` and ``svg.brain .higher``, for example in dark mode.

        Parameters
        ----------
        key
            Prefix of the ids inside; two drawings of the same pattern on a page need different ones.
        """
        placed, key = list(self._placed()), key or f"brain{self.pattern}"
        return _template().render(
            drawing=self,
            key=key,
            paths={
                rings: f"{key}-{place}" for place, rings in enumerate(dict.fromkeys(one.piece.rings for one in placed))
            },
            placed=placed,
            texts=self._texts(),
            scale=self._bar,
            swatches=self._swatches.items(),
            letters=_TEXT,
            lower=LOWER,
            higher=HIGHER,
            faint=_FAINT,
            edge=_EDGE,
        )

    @matplotlib.rc_context(STYLE)
    def figure(self) -> Figure:
        """Return the drawing as a matplotlib figure."""
        figure = Figure(figsize=(self.width / 96, self.height / 96))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.axis("off")
        fills = {
            "whole": "none",
            "unknown": "none",
            "unsure": ("black", _FAINT),
            "lower": LOWER,
            "higher": HIGHER,
            "amount": "black",
        }
        edge: Any = {"edgecolor": ("black", _EDGE), "linewidth": 0.4}
        for one in self._placed():
            fill = fills[one.look] if one.opacity is None else (fills[one.look], one.opacity)
            rings = [points * one.zoom + (one.across, one.down) for points in points_of(one.piece.rings)]
            lines = Line.make_compound_path(*(Line([*ring, ring[0]], closed=True) for ring in rings))
            patch = PathPatch(lines, facecolor=fill, hatch="////" if one.look == "unknown" else None, **edge)
            hover(axes.add_artist(patch), [one.title] if one.title else [])
        sides = {"start": "left", "end": "right", "middle": "center"}
        for across, down, words, anchor in self._texts():
            axes.text(across, down, words, ha=sides[anchor], va="baseline", fontsize=_TEXT * 72 / 96)
        left, top, width, height = self._bar
        above, shares = "black" if self.is_amount else HIGHER, np.linspace(0 if self.is_amount else -1, 1, 257)
        shades = [to_rgba(LOWER if share < 0 else above, abs(share)) for share in shares]
        axes.imshow(np.array([shades]), extent=(left, left + width, top + height, top), aspect="auto")
        for look, swatch in self._swatches.items():
            hatch = "////" if look == "unknown" else None
            axes.add_artist(Rectangle(swatch[:2], *swatch[2:], facecolor=fills[look], hatch=hatch, **edge))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0), aspect="equal")
        return figure


class Layout(NamedTuple):
    """Size and arrangement of a drawing.

    Attributes
    ----------
    per_line
        Maximum number of views side by side; with fewer, the brain is larger and slices are placed below.
    width
        Width in pixels; text has a size of 13.
    most_slices
        Maximum number of slices, chosen to show the strongest regions of the pattern; by default, all slices that show
        something.
    """

    per_line: int = len(VIEWS)
    width: float = WIDTH
    most_slices: int | None = None


def draw_brain(
    patterns: pd.DataFrame,
    only: int,
    *,
    measure: str = "",
    unsure: Collection[str] = (),
    unit: str = UNIT,
    layout: Layout = Layout(),  # noqa: B008 (it cannot be changed)
) -> BrainDrawing | None:
    """Draw the effect of one pattern on the regions as filled outlines of a brain.

    The colour scale is common to all patterns of the table and symmetric about zero. If a midline region has values for
    both sides, their mean is drawn.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern`` and ``change_sd``.
    only
        The pattern to draw.
    measure
        The measure to draw, one of `measures_of`, if the same regions have several.
    unsure, unit
        See `BrainDrawing`.
    layout
        Size and arrangement.

    Returns
    -------
    BrainDrawing or None
        Use ``svg()`` for pages, ``figure()`` for files, and ``missing`` for the caption. None if no region has an
        outline.

    Examples
    --------
    >>> table = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
    >>> drawing = draw_brain(table, 1)
    >>> "<title>left hippocampus (lHip): −1 sd</title>" in drawing.svg()
    True
    """
    table = patterns.assign(region=patterns["region"].astype(str))
    if measure:
        table = table[[split_measure(name)[1] in ("", measure) for name in table["region"]]]
    regions = known_regions(table["region"])
    own = table[table["pattern"] == only]
    sure = own[own["change_sd"].notna() & ~own["region"].isin(unsure)]
    sizes = dict(zip(sure["region"], sure["change_sd"].abs(), strict=True))
    panels = strongest(panels_of(regions), sizes, layout.most_slices)
    names = {name for panel in panels for name in panel.names}
    if not names:
        return None
    changes = dict(zip(own["region"], own["change_sd"], strict=True))
    kinds, per_line = [panels], layout.per_line
    if len(panels) > per_line:
        kinds = [[panel for panel in panels if bool(panel.side) == cortex] for cortex in (True, False)]
    lines = tuple(tuple(kind[start : start + per_line]) for kind in kinds for start in range(0, len(kind), per_line))
    missing, end = tuple(name for name in table["region"].unique() if name not in names), colour_end(table["change_sd"])
    return BrainDrawing(only, regions, lines, changes, end, missing, layout.width, frozenset(unsure), unit)


@cache
def _template() -> jinja2.Template:
    text = (Path(__file__).parent / "templates" / "brain.svg.j2").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined).from_string(text)
