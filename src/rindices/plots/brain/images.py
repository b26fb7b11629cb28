"""Images on the brain, such as t-maps and painted atlases: glass brains and slices.

An image is a nibabel image or the path of one. Nothing is fetched: the brain behind the slices is nilearn's own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.brain.atlas import three_dimensions
from rindices.plots.brain.sheet import (
    COLOURS,
    SMALL,
    VIEWS,
    colour_limit,
    glass_panel,
    imaging_library,
    make_sheet,
    mark_sides,
    name_rows,
    view_heights,
)
from rindices.plots.style import STYLE

MILLIMETRES = 2  # a picture shows no finer voxels, and its file grows with them
AXIAL = (-50, -42, -34, -26, -18, -10, -2, 6, 14, 22, 30, 40, 50, 62)
SAGITTAL = (-54, -40, -24, -6, 6, 24, 40)
_PER_ROW = len(SAGITTAL)
_AXES = {"l": (1, 2, 0), "r": (1, 2, 0), "y": (0, 2, 1), "z": (0, 1, 2)}  # across, up, away from the eye
_ROW_HEIGHTS = (1.4, 1.4, 1.08)  # of the width of a slice


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
    if isinstance(images, Mapping):
        rows = ("l", "r", "z")
        sheet = make_sheet(view_heights(rows), list(several), title, foot, (unit, limit))
        name_rows(sheet, [VIEWS[view] for view in rows])
        cells = [
            (place, view, image)
            for view, row in zip(rows, sheet.places, strict=True)
            for place, image in zip(row, shown, strict=True)
        ]
    else:
        columns = ("l", "r", "y", "z")
        sheet = make_sheet([max(view_heights(columns))], [VIEWS[view] for view in columns], title, foot, (unit, limit))
        cells = [(place, view, shown[0]) for place, view in zip(sheet.places[0], columns, strict=True)]
    for place, view, image in cells:
        _project(glass_panel(sheet.figure, place, view), view, image, limit)
    return sheet.figure


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
