"""A sheet of brain pictures: places for the views, outlines, one scale of colours, and what is said below."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from rindices.plots.style import GREY, WIDTH, plain_text

COLOURS = matplotlib.colormaps["RdBu_r"]  # told apart with every common kind of colour blindness
VIEWS = {"l": "left side", "r": "right side", "y": "from behind", "z": "from above"}
SMALL = 8
_OUTLINE = "#8c8c8c"
_HIGH = {"l": 0.79, "r": 0.79, "y": 1.0, "z": 1.2}  # of its width
_TITLE, _HEAD, _BAR, _LINE = 0.26, 0.22, 0.52, 0.155  # inches
_EDGE, _WIDEST = 0.22, 2.1  # inches: room for the names of rows, and a column

Rect = tuple[float, float, float, float]


class Sheet(NamedTuple):
    """A figure, and for each row and column the place of a picture as fractions of the figure."""

    figure: Figure
    places: list[list[Rect]]


def imaging_library() -> Any:
    """Return nilearn's plotting functions, or say how to get them."""
    try:
        from nilearn import plotting
    except ImportError as error:
        raise ImportError(
            "Pictures of the brain need nilearn.\nInstall it with: pip install 'rindices[imaging]'."
        ) from error
    return plotting


def colour_limit(values: Any, limit: float | None = None) -> float:
    """Return where a symmetric scale of colours ends: at the given limit, or at the largest value, rounded up."""
    if limit is not None:
        if not (np.isfinite(limit) and limit > 0):
            raise ValueError(f"Expected a limit of the colours above 0, found {limit}.")
        return float(limit)
    sizes = np.abs(np.asarray(values, dtype=float))
    largest = float(np.max(sizes[np.isfinite(sizes)], initial=0.0))
    if not largest:
        return 1.0
    step = 10.0 ** (np.floor(np.log10(largest)) - 1)
    return float(np.ceil(round(largest / step, 6)) * step)


def make_sheet(
    heights: Sequence[float], heads: Sequence[str], title: str, foot: Sequence[str], scale: tuple[str, float]
) -> Sheet:
    """Return a figure with a title, heads above its columns, a scale of colours and lines of text below.

    Parameters
    ----------
    heights
        Of each row, as a share of a column's width.
    heads
        What stands above each column.
    title
        What the figure shows.
    foot
        Lines of text below the scale.
    scale
        Label and limit of the colours.
    """
    column = min((WIDTH - _EDGE) / len(heads), _WIDEST)
    left = _EDGE + (WIDTH - _EDGE - column * len(heads)) / 2
    rows = [height * column for height in heights]
    top = _TITLE + (_HEAD if any(heads) else 0.0)
    below = _BAR + _LINE * len(foot) + 0.06
    total = top + sum(rows) + below
    figure = Figure(figsize=(WIDTH, total))
    figure.text(0.01, 1 - 0.06 / total, plain_text(title), fontweight="bold", va="top")
    for place, head in enumerate(heads):
        across = (left + (place + 0.5) * column) / WIDTH
        figure.text(across, 1 - (_TITLE + 0.5 * _HEAD) / total, plain_text(head), ha="center", va="center")
    tops = total - top - np.cumsum([0.0, *rows[:-1]])
    places = [
        [
            ((left + place * column) / WIDTH, float(upper - row) / total, column / WIDTH, row / total)
            for place in range(len(heads))
        ]
        for upper, row in zip(tops, rows, strict=True)
    ]
    _draw_scale(figure, *scale, (below - 0.2) / total, 0.09 / total)
    for place, line in enumerate(foot):
        height = (_LINE * (len(foot) - place - 1) + 0.05) / total
        figure.text(0.01, height, plain_text(line), fontsize=SMALL, color=GREY, va="bottom")
    return Sheet(figure, places)


def _draw_scale(figure: Figure, label: str, limit: float, bottom: float, height: float) -> None:
    axes = figure.add_axes((0.3, bottom, 0.4, height), label="scale")
    bar = figure.colorbar(
        ScalarMappable(Normalize(-limit, limit), COLOURS), cax=axes, orientation="horizontal", ticks=[-limit, 0, limit]
    )
    bar.ax.set_xticklabels([f"−{limit:.3g}", "0", f"+{limit:.3g}"], fontsize=SMALL)
    bar.ax.tick_params(length=2, pad=1)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    bar.set_label(plain_text(label), fontsize=SMALL, labelpad=1)


class Outline(NamedTuple):
    """The lines of a glass brain in millimetres, and the limits of a panel around them."""

    lines: Path
    across: tuple[float, float]
    up: tuple[float, float]


@cache
def _outline(view: str) -> Outline:
    """Return nilearn's outline as one line; the fine grey pieces, which hide marks and fill files, are left out."""
    options: Any = {"figure": Figure(), "axes": (0, 0, 1, 1), "annotate": False, "colorbar": False}
    panel = imaging_library().plot_glass_brain(None, display_mode=view, **options).axes[view].ax
    pieces = [patch for patch in panel.patches if max(to_rgb(patch.get_edgecolor())) < 0.5]
    lines = [(patch.get_transform() - panel.transData).transform_path(patch.get_path()) for patch in pieces]
    return Outline(Path.make_compound_path(*lines), panel.get_xlim(), panel.get_ylim())


def glass_panel(figure: Figure, place: Rect, view: str) -> Axes:
    """Draw the outline of a brain, with left and right marked where both are seen; the axes are in millimetres."""
    outline = _outline(view)
    axes = figure.add_axes(place, xlim=outline.across, ylim=outline.up, aspect="equal", label=f"glass {view}")
    axes.axis("off")
    # Above images, below marks.
    axes.add_patch(PathPatch(outline.lines, edgecolor=_OUTLINE, facecolor="none", linewidth=0.6, zorder=2))
    axes.autoscale(False)
    if view in "yz":
        mark_sides(axes)
    return axes


def mark_sides(axes: Axes) -> None:
    """Write L and R into the corners of a view in which left is left."""
    for across, text in ((0.03, "L"), (0.97, "R")):
        where: Any = {"transform": axes.transAxes, "ha": "left" if text == "L" else "right", "va": "top"}
        axes.text(across, 0.98, text, fontsize=SMALL, color="black", **where)


def glass_sheet(
    heads: Sequence[str] | None, title: str, foot: Sequence[str], scale: tuple[str, float]
) -> tuple[Figure, list[tuple[int, str, Axes]]]:
    """Return a sheet of glass brains, with three views below each head; without heads, four views side by side.

    Each panel comes as its column, its view and its axes. Other arguments are those of `make_sheet`.
    """
    if heads is None:
        sheet = make_sheet([max(_HIGH.values())], list(VIEWS.values()), title, foot, scale)
        places = [(column, view, sheet.places[0][column]) for column, view in enumerate(VIEWS)]
    else:
        rows = ("l", "r", "z")
        sheet = make_sheet([_HIGH[view] for view in rows], heads, title, foot, scale)
        for view, ((left, bottom, _, height), *_) in zip(rows, sheet.places, strict=True):
            look: Any = {"rotation": "vertical", "ha": "left", "va": "center", "fontsize": SMALL}
            sheet.figure.text(left - 0.97 * _EDGE / WIDTH, bottom + height / 2, VIEWS[view], **look)
        places = [
            (column, view, place)
            for view, row in zip(rows, sheet.places, strict=True)
            for column, place in enumerate(row)
        ]
    return sheet.figure, [(column, view, glass_panel(sheet.figure, place, view)) for column, view, place in places]
