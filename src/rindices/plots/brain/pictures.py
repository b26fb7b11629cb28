"""Pictures of the brain: patterns as marks on a glass brain, and images on glass brains and slices.

An image is a nibabel image or the path of one. Nothing is fetched: the brain behind the slices is nilearn's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.brain.atlas import three_dimensions
from rindices.plots.brain.sheet import (
    COLOURS,
    SMALL,
    colour_limit,
    glass_sheet,
    imaging_library,
    make_sheet,
    mark_sides,
)
from rindices.plots.region_names import place_regions
from rindices.plots.style import GREY, STYLE

MILLIMETRES = 2  # a picture shows no finer voxels, and its file grows with them
AXIAL = (-50, -42, -34, -26, -18, -10, -2, 6, 14, 22, 30, 40, 50, 62)
SAGITTAL = (-54, -40, -24, -6, 6, 24, 40)
_PER_ROW = len(SAGITTAL)
_AXES = {"l": (1, 2, 0), "r": (1, 2, 0), "y": (0, 2, 1), "z": (0, 1, 2)}  # across, up, away from the eye
_ROW_HEIGHTS = (1.4, 1.4, 1.08)  # of the width of a slice
SEVERITIES = (0.25, 0.5, 0.75, 1.0)
_SMALLEST, _LARGEST, _SIZES = 3.0, 80.0, 10  # area of a mark in points², and how many sizes there are


@matplotlib.rc_context(STYLE)
def glass(
    images: Any, unit: str, *, title: str = "", threshold: float = 0.0, limit: float | None = None, note: str = ""
) -> Figure:
    """Draw images on a glass brain: of all voxels behind one another the strongest is seen.

    Parameters
    ----------
    images
        An image, or several by what stands above each, such as ``{"severity 0.5": image}``; these share one scale.
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
    imaging_library()
    several = images if isinstance(images, Mapping) else {"": images}
    shown = [_for_display(image, threshold) for image in several.values()]
    limit = colour_limit([threshold, *map(_largest, shown)], limit)
    foot = _foot(shown, threshold, note)
    heads = list(several) if isinstance(images, Mapping) else None
    figure, panels = glass_sheet(heads, title, foot, (unit, limit))
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
        An image in MNI space.
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
    plotting = imaging_library()
    from nilearn.datasets import load_mni152_template

    shown = _for_display(image, threshold)
    limit = colour_limit([_largest(shown), threshold], limit)
    behind = load_mni152_template(resolution=MILLIMETRES)
    foot = _foot([shown], threshold, note)
    sheet = make_sheet(_ROW_HEIGHTS, [""] * _PER_ROW, title, foot, (unit, limit))
    rows = (("z", AXIAL[:_PER_ROW]), ("z", AXIAL[_PER_ROW:]), ("x", SAGITTAL))
    for (view, cuts), places in zip(rows, sheet.places, strict=True):
        left, bottom, width, height = places[0]
        room = 0.13 * height  # for what is written below
        display = plotting.plot_anat(
            behind,
            display_mode=view,
            cut_coords=list(cuts),
            figure=sheet.figure,
            axes=(left, bottom + room, width * _PER_ROW, height - room),
            threshold=1e-6,  # outside of the brain nothing is drawn
            colorbar=False,
            annotate=False,
            draw_cross=False,
            black_bg=False,
        )
        if _largest(shown):  # nilearn warns of an empty image
            # What is left out at a threshold of 0 differs between its versions.
            display.add_overlay(shown, threshold=1e-6 * limit, cmap=COLOURS, vmin=-limit, vmax=limit)
        for cut, panel in display.axes.items():
            _name_slice(panel.ax, view, float(cut))
    return sheet.figure


def _name_slice(axes: Any, view: str, cut: float) -> None:
    """Write at a slice where it lies and which side is which."""
    for picture in axes.images:
        picture.set_interpolation("none")  # files keep the voxels, and the reader's screen enlarges them
    side = {-1.0: " (left)", 1.0: " (right)"}.get(np.sign(cut), "") if view == "x" else ""
    text = f"{view} = {cut:+.0f}".replace("-", "−") + side
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=SMALL - 1)
    if view == "z":
        mark_sides(axes)


def _for_display(source: Any, threshold: float) -> Any:
    """Return an image as it is drawn: no gaps, nothing below the threshold, no finer than it can be seen."""
    import nibabel
    from nilearn.image import reorder_img, resample_img

    if not threshold >= 0:
        raise ValueError(f"Expected a threshold of 0 or more, found {threshold}.")
    image = three_dimensions(source)
    data = np.nan_to_num(image.get_fdata(dtype=np.float32), posinf=0, neginf=0)
    image = nibabel.Nifti1Image(np.where(np.abs(data) >= threshold, data, np.float32(0)), image.affine)
    finer = np.min(nibabel.affines.voxel_sizes(image.affine)) < 0.9 * MILLIMETRES
    if finer:
        options: Any = {"interpolation": "nearest", "copy_header": True, "force_resample": True}
        return resample_img(image, np.diag([float(MILLIMETRES)] * 3), **options)
    return reorder_img(image, resample="nearest", copy_header=True)


def _largest(image: Any) -> float:
    return float(np.abs(image.get_fdata(dtype=np.float32)).max(initial=0.0))


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
    ends = [
        (start[axis] - size[axis] / 2, start[axis] + size[axis] * (image.shape[axis] - 0.5)) for axis in (across, up)
    ]
    axes.imshow(
        np.ma.masked_equal(values.T, 0),
        cmap=COLOURS,
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=(*ends[0], *ends[1]),
        interpolation="none",
        zorder=1,
    )


def _foot(images: Sequence[Any], threshold: float, note: str) -> list[str]:
    lines = [f"Shown: values of {threshold:.3g} or more in either direction."] if threshold else []
    if not any(_largest(image) for image in images):
        lines = [
            f"Nothing to show: no value reaches {threshold:.3g} in either direction."
            if threshold
            else "Nothing to show: all values are zero."
        ]
    return [*lines, note] if note else lines


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

    Raises
    ------
    ValueError
        The table lacks the pattern, or none of its regions can be placed.
    ImportError
        nilearn is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
    >>> pattern_glass(table, 1).texts[1].get_text()
    'severity 0.25'
    """
    known = sorted({int(str(number)) for number in patterns["pattern"]})
    if only not in known:
        raise ValueError(f"Expected a pattern among {known}, found {only}. Choose one that the table has.")
    imaging_library()
    centres, missing = place_regions(patterns["region"].astype(str))
    if centres.empty:
        raise ValueError(
            f"None of {len(missing)} regions can be placed on the brain, for example {missing[0]!r}.\n"
            "Give a label image of the atlas and a table of its names."
        )
    shown = patterns[patterns["region"].astype(str).isin(centres["region"])]
    limit = colour_limit(shown["change_sd"])
    steps = _steps(shown[shown["pattern"] == only], severities)
    foot = _positions(centres, len(missing), "severity" in patterns)
    label = "Change (sd of controls)" + ("; the same scale for all patterns" if len(known) > 1 else "")
    heads = [f"severity {severity:g}" for severity in steps]
    figure, panels = glass_sheet(heads, f"Pattern {only}", foot, (label, limit))
    for column, view, axes in panels:
        _draw_marks(axes, view, centres, list(steps.values())[column], limit)
    return figure


def _steps(rows: pd.DataFrame, severities: Sequence[float]) -> dict[float, pd.Series]:
    """Return the change of each region at each severity."""
    if "severity" in rows:
        known = rows[rows["severity"] > 0].groupby("severity", sort=True)
        return {float(str(severity)): _by_region(here) for severity, here in known}
    whole = _by_region(rows)
    return {severity: severity * whole for severity in severities}


def _by_region(rows: pd.DataFrame) -> pd.Series:
    return pd.Series(rows["change_sd"].to_numpy(dtype=float), index=rows["region"].astype(str)).dropna()


def _positions(centres: pd.DataFrame, n_missing: int, told: bool) -> list[str]:
    n_placed = centres["region"].nunique()
    shown = f"{n_placed:,} of {n_placed + n_missing:,} regions" if n_missing else f"all {n_placed:,} regions"
    lines = [f"Schematic positions: approximate centres, {shown}. Larger marks: larger changes."]
    if centres["region"].duplicated().any():
        lines.append("A region of both sides together has a mark on each.")
    return lines if told else [*lines, "Severities below 1 are scaled linearly from severity 1."]


def _draw_marks(axes: Axes, view: str, centres: pd.DataFrame, changes: pd.Series, limit: float) -> None:
    here = centres[centres["region"].isin(changes.index)]
    if view in "lr":
        here = here[(here["x"] >= 0) if view == "r" else (here["x"] <= 0)]  # the middle is seen from both sides
    values = changes.loc[here["region"]].to_numpy()
    order = np.argsort(np.abs(values), kind="stable")  # the strongest lies on top
    values, places = values[order], here[["x", "y", "z"]].to_numpy()[order][:, _AXES[view][:2]]
    level = np.minimum(np.ceil(np.abs(values) / limit * _SIZES - 0.5), _SIZES)
    # Marks of one size share their shape in a file; each with its own would make it three times as large.
    for size in np.unique(level):
        chosen = level == size
        area = _SMALLEST + (_LARGEST - _SMALLEST) * float(size) / _SIZES
        colours: Any = {"c": values[chosen], "cmap": COLOURS, "vmin": -limit, "vmax": limit}
        look: Any = {"edgecolors": GREY, "linewidths": 0.4, "clip_on": False, "zorder": 3}
        axes.scatter(places[chosen, 0], places[chosen, 1], s=area, **colours, **look)
