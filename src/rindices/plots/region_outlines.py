"""Outlines of regions, as a brain shows them: which views and slices a table needs, and which regions each shows.

The outlines lie beside in ``region_outlines.csv``, made by ``experiments/outlines.py``; nothing else is needed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.regions import Region, known_regions, split_measure

VIEWS = {  # the side is empty where both are seen
    ("lateral", "left"): "left, outside",
    ("medial", "left"): "left, inside",
    ("medial", "right"): "right, inside",
    ("lateral", "right"): "right, outside",
    ("coronal 10", ""): "y 10",
    ("coronal -5", ""): "y −5",
    ("coronal -22", ""): "y −22",
    ("coronal -60", ""): "y −60",
    ("middle", ""): "middle",
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
    """Return the measures that need a drawing each: several where a region has several, otherwise one, without a name.

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
