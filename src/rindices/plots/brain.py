"""Images on glass brains and slices; patterns as filled outlines are in `brain_drawing`.

Needs nilearn. Nothing is fetched: the brain behind the slices is nilearn's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from rindices.plots.style import GREY, STYLE, WIDTH, plain_text

__all__ = ["COLOURS", "colour_limit", "glass", "stat_mosaic"]

COLOURS = matplotlib.colormaps["RdBu_r"]  # told apart with every common kind of colour blindness
MILLIMETRES = 2  # a picture shows no finer voxels, and its file grows with them
AXIAL = (-50, -42, -34, -26, -18, -10, -2, 6, 14, 22, 30, 40, 50, 62)
SAGITTAL = (-54, -40, -24, -6, 6, 24, 40)
_PER_ROW = len(SAGITTAL)
_ROW_HEIGHTS = (1.4, 1.4, 1.08)  # of the width of a slice
_VIEWS = {"l": "left side", "r": "right side", "y": "from behind", "z": "from above"}
_HIGH = {"l": 0.79, "r": 0.79, "y": 1.0, "z": 1.2}  # of its width
_AXES = {"l": (1, 2, 0), "r": (1, 2, 0), "y": (0, 2, 1), "z": (0, 1, 2)}  # across, up, away from the eye
_SMALL = 8  # points, of small text
_TITLE, _HEAD, _BAR, _LINE = 0.26, 0.22, 0.52, 0.155  # inches
_EDGE, _WIDEST = 0.22, 2.1  # inches: room for the names of rows, and a column

Rect = tuple[float, float, float, float]


@matplotlib.rc_context(STYLE)
def glass(
    images: Any, unit: str, *, title: str = "", threshold: float = 0.0, limit: float | None = None, note: str = ""
) -> Figure:
    """Draw images on a glass brain: of all voxels behind one another the strongest is seen.

    Parameters
    ----------
    images
        A nibabel image, or several by what stands above each, such as ``{"severity 0.5": image}``; these share one
        scale.
    unit
        What the colours mean, with its unit.
    title
        What the figure shows.
    threshold
        Values nearer to zero are left out.
    limit
        Where the colours end; by default at the largest value.
    note
        A line of text below.

    Examples
    --------
    >>> import nibabel
    >>> affine = np.diag([4.0, 4, 4, 1])
    >>> affine[:3, 3] = -80, -110, -70
    >>> image = nibabel.Nifti1Image(np.ones((40, 47, 38), dtype=np.float32), affine)
    >>> len(glass({"severity 0.5": image, "severity 1": image}, "t").axes)
    7
    """
    heads = list(images) if isinstance(images, Mapping) else None
    shown = [_for_display(image, threshold) for image in (images.values() if heads else [images])]
    largest = max(map(_largest, shown))
    limit = limit or colour_limit([threshold, largest])
    figure, panels = _glass_sheet(heads, title, _foot(largest, threshold, note), (unit, limit))
    for column, view, axes in panels:
        _project(axes, view, shown[column if heads else 0], limit)
    return figure


@matplotlib.rc_context(STYLE)
def stat_mosaic(
    image: Any, threshold: float, unit: str, *, title: str = "", limit: float | None = None, note: str = ""
) -> Figure:
    """Draw an image on slices of a brain: two rows from below to above, one from left to right.

    The slices are always the same ones, so that pictures of several images can be compared.

    Parameters
    ----------
    image
        A nibabel image in MNI space.
    threshold
        Values nearer to zero are left out; 0 leaves out zeros only.
    unit
        What the colours mean, with its unit.
    title
        What the figure shows.
    limit
        Where the colours end; by default at the largest value.
    note
        A line of text below.
    """
    from nilearn.datasets import load_mni152_template
    from nilearn.plotting import plot_anat

    shown = _for_display(image, threshold)
    largest = _largest(shown)
    limit = limit or colour_limit([largest, threshold])
    behind = load_mni152_template(resolution=MILLIMETRES)
    figure, every_place = _sheet(_ROW_HEIGHTS, [""] * _PER_ROW, title, _foot(largest, threshold, note), (unit, limit))
    rows = (("z", AXIAL[:_PER_ROW]), ("z", AXIAL[_PER_ROW:]), ("x", SAGITTAL))
    for (view, cuts), places in zip(rows, every_place, strict=True):
        left, bottom, width, height = places[0]
        room = 0.13 * height  # for what is written below
        display = plot_anat(
            behind,
            display_mode=view,
            cut_coords=list(cuts),
            figure=figure,
            axes=(left, bottom + room, width * _PER_ROW, height - room),
            threshold=1e-6,  # outside of the brain nothing is drawn
            colorbar=False,
            annotate=False,
            draw_cross=False,
            black_bg=False,
        )
        if largest:  # nilearn warns of an empty image
            # What is left out at a threshold of 0 differs between its versions.
            display.add_overlay(shown, threshold=1e-6 * limit, cmap=COLOURS, vmin=-limit, vmax=limit)
        for cut, panel in display.axes.items():
            _name_slice(panel.ax, view, float(cut))
    return figure


def colour_limit(values: Any) -> float:
    """Return where a symmetric scale of colours ends: at the largest value, rounded up."""
    sizes = np.abs(np.asarray(values, dtype=float))
    largest = np.max(sizes[np.isfinite(sizes)], initial=0.0)
    if not largest:
        return 1.0
    step = 10.0 ** (np.floor(np.log10(largest)) - 1)
    return float(np.ceil(round(largest / step, 6)) * step)


def _for_display(image: Any, threshold: float) -> Any:
    """Return an image as it is drawn: no gaps, nothing below the threshold, no finer than it can be seen."""
    from nibabel.affines import voxel_sizes
    from nilearn.image import new_img_like, resample_img

    data = np.nan_to_num(image.get_fdata(dtype=np.float32), posinf=0, neginf=0)
    strong = new_img_like(image, np.where(np.abs(data) >= threshold, data, np.float32(0)))
    sizes = np.maximum(voxel_sizes(image.affine), MILLIMETRES)
    return resample_img(strong, np.diag(sizes), interpolation="nearest", copy_header=True, force_resample=True)


def _largest(image: Any) -> float:
    return float(np.abs(image.get_fdata(dtype=np.float32)).max(initial=0.0))


def _foot(largest: float, threshold: float, note: str) -> list[str]:
    if largest:
        line = f"Shown: values of {threshold:.3g} or more in either direction." if threshold else ""
    else:
        why = f"no value reaches {threshold:.3g} in either direction" if threshold else "all values are zero"
        line = f"Nothing to show: {why}."
    return [text for text in (line, note) if text]


def _sheet(
    heights: Sequence[float], heads: Sequence[str], title: str, foot: Sequence[str], scale: tuple[str, float]
) -> tuple[Figure, list[list[Rect]]]:
    """Return a figure with a title, a scale of colours and text, and the place of each picture, row by row.

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
    top = _TITLE + (_HEAD if any(heads) else 0.0)
    below = _BAR + _LINE * len(foot) + 0.06
    total = top + sum(heights) * column + below
    figure = Figure(figsize=(WIDTH, total))
    figure.text(0.01, 1 - 0.06 / total, plain_text(title), fontweight="bold", va="top")
    across = [(left + place * column) / WIDTH for place in range(len(heads))]
    for start, head in zip(across, heads, strict=True):
        height = 1 - (_TITLE + 0.5 * _HEAD) / total
        figure.text(start + 0.5 * column / WIDTH, height, plain_text(head), ha="center", va="center")
    _draw_scale(figure, *scale, (below - 0.2) / total, 0.09 / total)
    for place, line in enumerate(reversed(foot)):
        figure.text(0.01, (_LINE * place + 0.05) / total, plain_text(line), fontsize=_SMALL, color=GREY, va="bottom")
    bottoms = 1 - (top + np.cumsum(heights) * column) / total
    return figure, [
        [(start, float(bottom), column / WIDTH, height * column / total) for start in across]
        for bottom, height in zip(bottoms, heights, strict=True)
    ]


def _draw_scale(figure: Figure, label: str, limit: float, bottom: float, height: float) -> None:
    axes = figure.add_axes((0.3, bottom, 0.4, height), label="scale")
    colours = ScalarMappable(Normalize(-limit, limit), COLOURS)
    bar = figure.colorbar(colours, cax=axes, orientation="horizontal", ticks=[-limit, 0, limit])
    bar.ax.set_xticklabels([f"−{limit:.3g}", "0", f"+{limit:.3g}"], fontsize=_SMALL)
    bar.ax.tick_params(length=2, pad=1)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    bar.set_label(plain_text(label), fontsize=_SMALL, labelpad=1)


def _glass_sheet(
    heads: Sequence[str] | None, title: str, foot: Sequence[str], scale: tuple[str, float]
) -> tuple[Figure, list[tuple[int, str, Axes]]]:
    """Return a sheet of glass brains, with three views below each head; without heads, four views side by side.

    Each panel comes as its column, its view and its axes. Other arguments are those of `_sheet`.
    """
    if heads is None:
        figure, [row] = _sheet([max(_HIGH.values())], list(_VIEWS.values()), title, foot, scale)
        return figure, [(column, view, _panel(figure, row[column], view)) for column, view in enumerate(_VIEWS)]
    views, panels = ("l", "r", "z"), []
    figure, places = _sheet([_HIGH[view] for view in views], heads, title, foot, scale)
    for view, row in zip(views, places, strict=True):
        left, bottom, _, height = row[0]
        look: Any = {"rotation": "vertical", "ha": "left", "va": "center", "fontsize": _SMALL}
        figure.text(left - 0.97 * _EDGE / WIDTH, bottom + height / 2, _VIEWS[view], **look)
        panels += [(column, view, _panel(figure, place, view)) for column, place in enumerate(row)]
    return figure, panels


class Outline(NamedTuple):
    """The lines of a glass brain in millimetres, and the limits of a panel around them."""

    lines: Path
    across: tuple[float, float]
    up: tuple[float, float]


@cache
def _outline(view: str) -> Outline:
    """Return nilearn's outline as one line; the fine grey pieces, which hide marks and fill files, are left out."""
    from nilearn.plotting import plot_glass_brain

    options: Any = {"figure": Figure(), "axes": (0, 0, 1, 1), "annotate": False, "colorbar": False}
    panel = plot_glass_brain(None, display_mode=view, **options).axes[view].ax
    pieces = [patch for patch in panel.patches if max(to_rgb(patch.get_edgecolor())) < 0.5]
    lines = [(patch.get_transform() - panel.transData).transform_path(patch.get_path()) for patch in pieces]
    return Outline(Path.make_compound_path(*lines), panel.get_xlim(), panel.get_ylim())


def _panel(figure: Figure, place: Rect, view: str) -> Axes:
    """Draw the outline of a brain, with left and right marked where both are seen; the axes are in millimetres."""
    outline = _outline(view)
    axes = figure.add_axes(place, xlim=outline.across, ylim=outline.up, aspect="equal", label=f"glass {view}")
    axes.axis("off")
    # Above images.
    axes.add_patch(PathPatch(outline.lines, edgecolor="#8c8c8c", facecolor="none", linewidth=0.6, zorder=2))
    axes.autoscale(False)
    if view in "yz":
        _mark_sides(axes)
    return axes


def _mark_sides(axes: Axes) -> None:
    """Write L and R into the corners of a view in which left is left."""
    where: Any = {"transform": axes.transAxes, "va": "top", "fontsize": _SMALL, "color": "black"}
    axes.text(0.03, 0.98, "L", ha="left", **where)
    axes.text(0.97, 0.98, "R", ha="right", **where)


def _name_slice(axes: Axes, view: str, cut: float) -> None:
    """Write at a slice where it lies and which side is which."""
    for picture in axes.images:
        picture.set_interpolation("none")  # files keep the voxels, and the reader's screen enlarges them
    side = (" (left)" if cut < 0 else " (right)") if view == "x" else ""
    text = f"{view} = {cut:+.0f}".replace("-", "−") + side
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=_SMALL - 1)
    if view == "z":
        _mark_sides(axes)


def _project(axes: Axes, view: str, image: Any, limit: float) -> None:
    """Draw of all voxels behind one another the strongest."""
    data, size, start = image.get_fdata(dtype=np.float32), np.diag(image.affine)[:3], image.affine[:3, 3]
    across, up, through = _AXES[view]
    if view in "lr":
        sides = (start[0] + size[0] * np.arange(data.shape[0])) * (1 if view == "r" else -1)
        data = data[sides >= 0]
    if not data.any():
        return
    strongest = np.abs(data).argmax(axis=through, keepdims=True)
    values = np.take_along_axis(data, strongest, axis=through).squeeze(axis=through)
    low, high = start - size / 2, start + size * (np.array(image.shape) - 0.5)
    axes.imshow(
        np.ma.masked_equal(values.T, 0),
        cmap=COLOURS,
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=(low[across], high[across], low[up], high[up]),
        interpolation="none",
        zorder=1,
    )
