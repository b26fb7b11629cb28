"""Pictures of the brain: patterns as marks on a glass brain, and images on glass brains and slices.

Needs nilearn. Nothing is fetched: the brain behind the slices is nilearn's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from rindices.plots.region_names import full_name, place_regions
from rindices.plots.rendering import hover
from rindices.plots.style import GREY, STYLE, WIDTH, plain_text

__all__ = [
    *("COLOURS", "SEVERITIES", "Placed", "colour_limit", "draw_scale", "glass", "pattern_glass", "pattern_views"),
    *("place_regions", "stat_mosaic"),
]

SEVERITIES = (0.25, 0.5, 0.75, 1.0)
COLOURS = matplotlib.colormaps["RdBu_r"]  # told apart with every common kind of colour blindness
MILLIMETRES = 2  # a picture shows no finer voxels, and its file grows with them
AXIAL = (-50, -42, -34, -26, -18, -10, -2, 6, 14, 22, 30, 40, 50, 62)
SAGITTAL = (-54, -40, -24, -6, 6, 24, 40)
_PER_ROW = len(SAGITTAL)
_ROW_HEIGHTS = (1.4, 1.4, 1.08)  # of the width of a slice
_VIEWS = {"l": "left side", "r": "right side", "y": "from behind", "z": "from above"}
_HIGH = {"l": 0.79, "r": 0.79, "y": 1.0, "z": 1.2}  # of its width
_AXES = {"l": (1, 2, 0), "r": (1, 2, 0), "y": (0, 2, 1), "z": (0, 1, 2)}  # across, up, away from the eye
_SMALLEST, _LARGEST, _SIZES = 3.0, 80.0, 10  # area of a mark in points², and how many sizes there are
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


@matplotlib.rc_context(STYLE)
def pattern_glass(patterns: pd.DataFrame, only: int, severities: Sequence[float] = SEVERITIES) -> Figure:
    """Draw what one pattern does to regions, with growing severity, as marks on a glass brain.

    Positions are schematic. The scale of colours is common to all patterns of the table, and symmetric about zero.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern`` and ``change_sd``. With a column ``severity`` its severities are drawn; without
        one the changes are those of severity 1, and smaller severities are scaled from them, which the figure says.
    only
        The pattern to draw.
    severities
        Which severities to draw where the table tells only severity 1.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
    >>> pattern_glass(table, 1).texts[1].get_text()
    'severity 0.25'
    """
    centres, missing = place_regions(patterns["region"])
    shown = patterns.astype({"region": str}).dropna(subset="change_sd")
    shown = shown[shown["region"].isin(centres["region"])]
    limit = colour_limit(shown["change_sd"])
    rows = shown[shown["pattern"] == only]
    if "severity" not in patterns:
        rows = pd.concat([rows.assign(severity=step, change_sd=step * rows["change_sd"]) for step in severities])
    steps = [(f"severity {step:g}", own) for step, own in rows[rows["severity"] > 0].groupby("severity")]
    foot = _positions(centres, len(missing), "severity" in patterns)
    common = "; the same scale for all patterns" if patterns["pattern"].nunique() > 1 else ""
    scale = f"Change (sd of controls){common}", limit
    figure, panels = _glass_sheet([head for head, _ in steps], f"Pattern {only}", foot, scale)
    for column, view, axes in panels:
        _draw_marks(axes, view, centres.merge(steps[column][1], on="region"), limit)
    return figure


def pattern_views(figure: Figure, place: Rect, own: pd.DataFrame, limit: float, views: Sequence[str]) -> None:
    """Draw one pattern at severity 1 into a place of a figure (left, bottom, width, height in inches), views side by side.

    Parameters
    ----------
    figure, place
        Where.
    own
        Columns ``region`` and ``change_sd`` of one pattern.
    limit
        Where the colours end.
    views
        Of ``"l"``, ``"r"``, ``"y"`` and ``"z"``.
    """
    left, bottom, width, height = place
    across, up = figure.get_size_inches()
    shares = [1 / _HIGH[view] for view in views]  # of their height
    height = min(height, width / sum(shares))
    left += (width - height * sum(shares)) / 2
    marks = place_regions(own["region"]).centres.merge(
        own.astype({"region": str}).dropna(subset="change_sd"), on="region"
    )
    for view, share in zip(views, shares, strict=True):
        axes = _panel(figure, (left / across, bottom / up, height * share / across, height / up), view)
        _draw_marks(axes, view, marks, limit)
        left += height * share


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


def _positions(centres: pd.DataFrame, n_missing: int, told: bool) -> list[str]:
    n_placed = centres["region"].nunique()
    shown = f"{n_placed:,} of {n_placed + n_missing:,} regions" if n_missing else f"all {n_placed:,} regions"
    both = centres["region"].duplicated().any()
    lines = {
        f"Schematic positions: approximate centres, {shown}. Larger marks: larger changes.": True,
        "A region of both sides together has a mark on each.": both,
        "Severities below 1 are scaled linearly from severity 1.": not told,
    }
    return [line for line, holds in lines.items() if holds]


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
    draw_scale(figure, *scale, (below - 0.2) / total, 0.09 / total)
    for place, line in enumerate(reversed(foot)):
        figure.text(0.01, (_LINE * place + 0.05) / total, plain_text(line), fontsize=_SMALL, color=GREY, va="bottom")
    bottoms = 1 - (top + np.cumsum(heights) * column) / total
    return figure, [
        [(start, float(bottom), column / WIDTH, height * column / total) for start in across]
        for bottom, height in zip(bottoms, heights, strict=True)
    ]


def draw_scale(
    figure: Figure, label: str, limit: float, bottom: float, height: float, across: tuple[float, float] = (0.3, 0.4)
) -> None:
    """Draw the scale of colours; `bottom`, `height` and `across` (left, width) are shares of the figure."""
    axes = figure.add_axes((across[0], bottom, across[1], height), label="scale")
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
    # Above images, below marks.
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


def _draw_marks(axes: Axes, view: str, marks: pd.DataFrame, limit: float) -> None:
    """Draw the changes of regions at their centres."""
    if view in "lr":
        marks = marks[(marks["x"] >= 0) if view == "r" else (marks["x"] <= 0)]  # the middle is seen from both sides
    marks = marks.sort_values("change_sd", key=abs, kind="stable")  # the strongest lies on top
    level = np.minimum(np.ceil(marks["change_sd"].abs() / limit * _SIZES - 0.5), _SIZES)
    across, up = ("xyz"[axis] for axis in _AXES[view][:2])
    # Marks of one size share their shape in a file; each with its own would make it three times as large.
    for size, own in marks.groupby(level):
        area = _SMALLEST + (_LARGEST - _SMALLEST) * float(str(size)) / _SIZES
        colours: Any = {"c": own["change_sd"], "cmap": COLOURS, "vmin": -limit, "vmax": limit}
        look: Any = {"edgecolors": GREY, "linewidths": 0.4, "clip_on": False, "zorder": 3}
        points = axes.scatter(own[across], own[up], s=area, **colours, **look)
        told = zip(own["region"], own["change_sd"], strict=True)
        hover(points, [f"{full_name(region)}: {change:+.2f} sd" for region, change in told])
