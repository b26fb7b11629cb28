"""Brains: images on glass brains and slices, and the outlines of regions that `brain_drawing` fills.

Images need nilearn. Nothing is fetched: the brain behind the slices is nilearn's own, and the outlines lie beside in
``region_outlines.csv``, made by ``experiments/outlines.py``.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure

from rindices.plots.style import GREY, STYLE, WIDTH, plain_text
from rindices.regions import Region, known_regions, split_measure

VIEWS = {  # the side is empty where both are seen
    ("lateral", "left"): "left lateral",
    ("medial", "left"): "left medial",
    ("medial", "right"): "right medial",
    ("lateral", "right"): "right lateral",
    ("coronal 10", ""): "y 10",
    ("coronal -5", ""): "y −5",
    ("coronal -22", ""): "y −22",
    ("coronal -60", ""): "y −60",
    ("middle", ""): "midsagittal",
}
_LEAST = 0.02  # of all squared changes: a slice that shows less is left out


class Piece(NamedTuple):
    """An outline: its lines, whether it is mirrored, and the columns of the table that it shows."""

    rings: str
    mirrored: bool = False
    names: tuple[str, ...] = ()


class Panel(NamedTuple):
    """A view of the brain; the first of its pieces is the whole."""

    view: str
    side: str
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return _size(self.pieces[0].rings)

    @property
    def names(self) -> set[str]:
        """The columns of the table that are shown."""
        return {name for piece in self.pieces for name in piece.names}


def outlined_regions(names: Iterable[str]) -> dict[str, Region]:
    """Return the regions that can be drawn, by name.

    Examples
    --------
    >>> list(outlined_regions(["lHip", "5th-Ventricle", "age"]))
    ['lHip']
    """
    regions = known_regions(names)
    drawn = {name for panel in panels_of(regions) for name in panel.names}
    return {name: region for name, region in regions.items() if name in drawn}


def measures_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the measures that need separate drawings: several if a region has several, otherwise one without a name.

    Examples
    --------
    >>> measures_of(["lh_insula_thickness", "lh_insula_area", "Left-Amygdala"])
    ('thickness', 'area')
    >>> measures_of(["lh_insula_thickness", "Left-Amygdala"])
    ('',)
    """
    found = {name: split_measure(name)[1] for name in known_regions(names)}
    several = len({split_measure(name)[0] for name in found}) < len(found)
    return tuple(dict.fromkeys(filter(None, found.values()))) if several else ("",)


def panels_of(regions: Mapping[str, Region]) -> list[Panel]:
    """Return the views that show the regions: all four of the cortex or none, and as few slices as are needed."""
    atlas = next((region.atlas for region in regions.values() if region.atlas != "aseg"), "aseg")
    holders: dict[tuple[str, str], list[str]] = defaultdict(list)
    # Where a region and its parts are in a table, the parts are drawn: each outline shows the finest that has it.
    for name, region in sorted(regions.items(), key=lambda item: len(item[1].outlines)):
        for side in region.sides:
            for outline in region.outlines:
                finest = holders[outline, side]
                if not finest or len(regions[finest[0]].outlines) == len(region.outlines):
                    finest.append(name)
    panels = []
    for view, side in VIEWS:
        outlines = _outlines(view)
        pieces = [Piece(outlines[""][""], side == "right")]
        overlays = outlines.get("overlay") or {}  # above the others, where the table has them
        for outline, rings in [*(outlines.get(atlas) or outlines.get("aseg") or {}).items(), *overlays.items()]:
            left, right = holders[outline, "left"], holders[outline, "right"]
            if outline in overlays and not (left or right):
                continue
            if view == "middle":
                pieces.append(Piece(rings, False, tuple(dict.fromkeys([*left, *right]))))
            else:
                halves = [("left", left), ("right", right)]
                pieces += [Piece(rings, half == "right", tuple(own)) for half, own in halves if side in ("", half)]
        panels.append(Panel(view, side, tuple(pieces)))
    cortex, slices = [one for one in panels if one.side], [one for one in panels if not one.side]
    for panel in reversed(slices.copy()):
        if panel.names <= {name for one in slices if one is not panel for name in one.names}:
            slices.remove(panel)
    return [*(cortex if any(panel.names for panel in cortex) else ()), *slices]


def strongest(panels: list[Panel], sizes: Mapping[str, float], most_slices: int | None) -> list[Panel]:
    """Return the views of the cortex, and so many slices, each with the largest changes that no view before has."""
    if most_slices is None:
        return panels
    kept, slices = [one for one in panels if one.side], [one for one in panels if not one.side]
    for _ in range(min(most_slices, len(slices))):
        seen = {name for panel in kept for name in panel.names}
        gains = [sum(sizes.get(name, 0.0) ** 2 for name in one.names - seen) for one in slices]
        if kept and max(gains) <= _LEAST * sum(size**2 for size in sizes.values()):
            break
        kept.append(slices.pop(int(np.argmax(gains))))
    return [panel for panel in panels if panel in kept]


@cache
def _outlines(view: str) -> dict[str, dict[str, str]]:
    """Return the outlines of a view by atlas and region; that of the whole has neither."""
    table = pd.read_csv(Path(__file__).with_name("region_outlines.csv"), keep_default_na=False)
    of_atlas = table[table["view"] == view].groupby("atlas")
    return {str(atlas): dict(zip(own["region"], own["rings"], strict=True)) for atlas, own in of_atlas}


def points_of(rings: str) -> list[np.ndarray]:
    """Return the points of each closed line of an outline."""
    return [np.array(ring.split(), dtype=float).reshape(-1, 2) for ring in rings.split("|")]


@cache
def _size(rings: str) -> tuple[float, float]:
    across, down = np.concatenate(points_of(rings)).max(axis=0)
    return float(across), float(down)


COLOURS = matplotlib.colormaps["RdBu_r"]  # told apart with every common kind of colour blindness
MILLIMETRES = 2  # a picture shows no finer voxels, and its file grows with them
AXIAL = (-50, -42, -34, -26, -18, -10, -2, 6, 14, 22, 30, 40, 50, 62)
SAGITTAL = (-54, -40, -24, -6, 6, 24, 40)
_PER_ROW = len(SAGITTAL)
_ROW_HEIGHTS = (1.4, 1.4, 1.08)  # of the width of a slice
_GLASS_HEIGHT = 0.9  # of the width of a view, of which there are four
_SMALL = 8  # points, of small text
_TITLE, _BAR, _LINE = 0.26, 0.52, 0.155  # inches
_HEAD, _WIDEST = 0.12, 2.1  # of the width of a view: what stands above a row; inches: a picture

Rect = tuple[float, float, float, float]


@matplotlib.rc_context(STYLE)
def glass(images: Any, unit: str, *, title: str = "", limit: float | None = None, note: str = "") -> Figure:
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
    >>> sum(bool(axes.images) for axes in glass({"severity 0.5": image, "severity 1": image}, "t").axes)
    8
    """
    from nilearn.plotting import plot_glass_brain

    named = images if isinstance(images, Mapping) else {"": images}
    shown = {head: _for_display(image) for head, image in named.items()}
    largest = max(map(_largest, shown.values()))
    limit = limit or colour_limit([largest])
    heights = [_GLASS_HEIGHT + (_HEAD if any(shown) else 0.0)] * len(shown)
    figure, places = _sheet(heights, 4, title, _foot(largest, note), (unit, limit))
    for (head, image), (left, bottom, width, height) in zip(shown.items(), places, strict=True):
        figure.text(left + width / 2, bottom + height, plain_text(head), ha="center", va="top")
        display = plot_glass_brain(
            image if _largest(image) else None,  # nilearn warns of an empty image
            display_mode="lyrz",
            figure=figure,
            axes=(left, bottom, width, height * _GLASS_HEIGHT / heights[0]),
            plot_abs=False,
            threshold=1e-6 * limit,
            cmap=COLOURS,
            vmin=-limit,
            vmax=limit,
            colorbar=False,
        )
        for panel in display.axes.values():
            _coarsen(panel.ax)
            for line in [one for one in panel.ax.patches if max(to_rgb(one.get_edgecolor())) > 0.5]:
                line.remove()  # fine grey lines, which hide marks and fill files
    return figure


@matplotlib.rc_context(STYLE)
def stat_mosaic(image: Any, unit: str, *, title: str = "", limit: float | None = None, note: str = "") -> Figure:
    """Draw an image on slices of a brain: two rows from below to above, one from left to right.

    The slices are always the same ones, so that pictures of several images can be compared.

    Parameters
    ----------
    image
        A nibabel image in MNI space.
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

    shown = _for_display(image)
    largest = _largest(shown)
    limit = limit or colour_limit([largest])
    behind = load_mni152_template(resolution=MILLIMETRES)
    figure, places = _sheet(_ROW_HEIGHTS, _PER_ROW, title, _foot(largest, note), (unit, limit))
    rows = (("z", AXIAL[:_PER_ROW]), ("z", AXIAL[_PER_ROW:]), ("x", SAGITTAL))
    for (view, cuts), (left, bottom, width, height) in zip(rows, places, strict=True):
        room = 0.13 * height  # for what is written below
        display = plot_anat(
            behind,
            display_mode=view,
            cut_coords=list(cuts),
            figure=figure,
            axes=(left, bottom + room, width, height - room),
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


def _for_display(image: Any) -> Any:
    """Return an image as it is drawn: no gaps, no finer than it can be seen."""
    from nibabel.affines import voxel_sizes
    from nilearn.image import new_img_like, resample_img

    data = np.nan_to_num(image.get_fdata(dtype=np.float32), posinf=0, neginf=0)
    sizes = np.maximum(voxel_sizes(image.affine), MILLIMETRES)
    return resample_img(
        new_img_like(image, data), np.diag(sizes), interpolation="nearest", copy_header=True, force_resample=True
    )


def _largest(image: Any) -> float:
    return float(np.abs(image.get_fdata(dtype=np.float32)).max(initial=0.0))


def _foot(largest: float, note: str) -> list[str]:
    return [text for text in ("" if largest else "Nothing to show: all values are zero.", note) if text]


def _sheet(
    heights: Sequence[float], per_row: int, title: str, foot: Sequence[str], scale: tuple[str, float]
) -> tuple[Figure, list[Rect]]:
    """Return a figure with a title, a scale of colours and text, and the place of each row of pictures.

    Parameters
    ----------
    heights
        Of each row, as a share of a picture's width.
    per_row
        How many pictures a row has.
    title
        What the figure shows.
    foot
        Lines of text below the scale.
    scale
        Label and limit of the colours.
    """
    rows = np.array(heights) * min(WIDTH / per_row, _WIDEST)
    below = _BAR + _LINE * len(foot) + 0.06
    total = _TITLE + rows.sum() + below
    figure = Figure(figsize=(WIDTH, total))
    figure.text(0.01, 1 - 0.06 / total, plain_text(title), fontweight="bold", va="top")
    _draw_scale(figure, *scale, (below - 0.2) / total, 0.09 / total)
    for place, line in enumerate(reversed(foot)):
        figure.text(0.01, (_LINE * place + 0.05) / total, plain_text(line), fontsize=_SMALL, color=GREY, va="bottom")
    width = min(1.0, per_row * _WIDEST / WIDTH)
    bottoms = 1 - (_TITLE + np.cumsum(rows)) / total
    return figure, [((1 - width) / 2, float(at), width, high / total) for at, high in zip(bottoms, rows, strict=True)]


def _draw_scale(figure: Figure, label: str, limit: float, bottom: float, height: float) -> None:
    axes = figure.add_axes((0.3, bottom, 0.4, height), label="scale")
    colours = ScalarMappable(Normalize(-limit, limit), COLOURS)
    bar = figure.colorbar(colours, cax=axes, orientation="horizontal", ticks=[-limit, 0, limit])
    bar.ax.set_xticklabels([f"−{limit:.3g}", "0", f"+{limit:.3g}"], fontsize=_SMALL)
    bar.ax.tick_params(length=2, pad=1)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    bar.set_label(plain_text(label), fontsize=_SMALL, labelpad=1)


def _coarsen(axes: Axes) -> None:
    """Let files keep the voxels, which the reader's screen enlarges."""
    for picture in axes.images:
        picture.set_interpolation("none")


def _mark_sides(axes: Axes) -> None:
    """Write L and R into the corners of a view in which left is left."""
    where: Any = {"transform": axes.transAxes, "va": "top", "fontsize": _SMALL, "color": "black"}
    axes.text(0.03, 0.98, "L", ha="left", **where)
    axes.text(0.97, 0.98, "R", ha="right", **where)


def _name_slice(axes: Axes, view: str, cut: float) -> None:
    """Write at a slice where it lies and which side is which."""
    _coarsen(axes)
    side = (" (left)" if cut < 0 else " (right)") if view == "x" else ""
    text = f"{view} = {cut:+.0f}".replace("-", "−") + side
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=_SMALL - 1)
    if view == "z":
        _mark_sides(axes)
