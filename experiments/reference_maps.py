"""Make the tables that patterns are compared with: ENIGMA's maps, and positions and parts of Desikan's regions.

python experiments/reference_maps.py --enigma summary_statistics --out src/rindices/analysis/reference_maps

``enigma.csv`` has the effect sizes of one case-control study per disorder, as distributed with the ENIGMA Toolbox.
``desikan_positions.csv`` has the centre of each region on FreeSurfer's sphere, and ``destrieux_to_desikan.csv`` the
fraction of each Desikan region that Destrieux's regions cover. Both are made from the outlines used for drawing brains
(``region_outlines.csv``), projected onto the surface of the average brain that comes with nilearn: a vertex belongs to
the outline seen at its position in the lateral or the medial view.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nibabel
import nilearn
import numpy as np
import pandas as pd
from matplotlib.path import Path as Line
from scipy import ndimage, sparse

OUTLINES = Path(__file__).parents[1] / "src" / "rindices" / "plots" / "region_outlines.csv"
# Not bd_case-controls_CortSurf, whose numbers are those of thickness. For autism the meta-analysis: it has no gaps.
STUDIES = {
    "schizophrenia": ("scz_case-controls_CortThick", "scz_case-controls_CortSurf", "scz_case-controls_SubVol"),
    "bipolar disorder, adults": ("bd_case-controls_CortThick_adult", "bd_case-controls_CortSurf_adult", ""),
    "bipolar disorder, adolescents": (
        "bd_case-controls_CortThick_adolescent",
        "bd_case-controls_CortSurf_adolescent",
        "",
    ),
    "bipolar disorder, type I": ("", "", "bd_case-controls_SubVol_typeI"),
    "depression, adults": ("mddadult_case-controls_CortThick", "mddadult_case-controls_CortSurf", ""),
    "depression, adolescents": ("mddadolescent_case-controls_CortThick", "mddadolescent_case-controls_CortSurf", ""),
    "depression": ("", "", "mdd_case-controls_SubVol"),
    "OCD, adults": (
        "ocdadults_case-controls_CortThick",
        "ocdadults_case-controls_CortSurf",
        "ocdadult_case-controls_SubVol",
    ),
    "OCD, children": (
        "ocdpediatric_case-controls_CortThick",
        "ocdpediatric_case-controls_CortSurf",
        "ocdpediatric_case-controls_SubVol",
    ),
    "ADHD": (
        "adhdallages_case-controls_CortThick",
        "adhdallages_case-controls_CortSurf",
        "adhdallages_case-controls_SubVol",
    ),
    "autism": ("asd_meta-analysis_case-controls_CortThick", "", "asd_meta-analysis_case-controls_SubVol"),
    "22q11.2 deletion": ("22q_case-controls_CortThick", "22q_case-controls_CortSurf", "22q_case-controls_SubVol"),
    "generalised epilepsy": ("gge_case-controls_CortThick", "", "gge_case-controls_SubVol"),
    "left temporal lobe epilepsy": ("tlemtsl_case-controls_CortThick", "", "tlemtsl_case-controls_SubVol"),
    "right temporal lobe epilepsy": ("tlemtsr_case-controls_CortThick", "", "tlemtsr_case-controls_SubVol"),
    "other epilepsies": ("allotherepi_case-controls_CortThick", "", "allotherepi_case-controls_SubVol"),
}
MEASURES = ("thickness", "area", "subcortex")
SIDES = {"L": "left", "R": "right"}
SUBCORTEX = {"accumb": "Accumbens-area", "amyg": "Amygdala", "caud": "Caudate", "hippo": "Hippocampus"} | {
    "pal": "Pallidum",
    "put": "Putamen",
    "thal": "Thalamus-Proper",
    "LatVent": "Lateral-Ventricle",
}
SMOOTHINGS = 15  # of the surface, so that the walls of sulci face the same way as their gyri
LEAST_SHARE = 0.01


def enigma_maps(folder: Path) -> pd.DataFrame:
    """Return the effect sizes of all studies: disorder, measure, side, region, d and se."""
    parts = []
    for disorder, files in STUDIES.items():
        for measure, name in zip(MEASURES, files, strict=True):
            if not name:
                continue
            table = pd.read_csv(folder / f"{name}.csv")
            structure = table["Structure"].str.strip()
            region = structure.str[1:].str.removeprefix("_")
            if measure == "subcortex":
                region = region.map({key.lower(): value for key, value in SUBCORTEX.items()} | SUBCORTEX)
            part = pd.DataFrame({"disorder": disorder, "measure": measure, "side": structure.str[0].map(SIDES)})
            parts.append(part.assign(region=region, d=table["d_icv"], se=table["se_icv"]).dropna(subset="d"))
    table = pd.concat(parts, ignore_index=True).round(4)
    assert table["region"].notna().all()
    assert table["side"].notna().all()
    return table


def pictures(atlas: str, view: str) -> np.ndarray:
    """Return the region at each half millimetre of a view; points outside all regions get the nearest one."""
    table = pd.read_csv(OUTLINES, keep_default_na=False)

    def rings(row: pd.Series) -> list[np.ndarray]:
        return [np.array(ring.split(), float).reshape(-1, 2) for ring in row["rings"].split("|")]

    of_view = table[table["view"] == view]
    width, height = np.concatenate(rings(of_view[of_view["region"] == ""].iloc[0])).max(axis=0).astype(int) + 1
    names = np.full((height, width), "", dtype=object)
    down, across = np.mgrid[:height, :width]
    places = np.column_stack([across.ravel(), down.ravel()])
    for _, row in of_view[of_view["atlas"] == atlas].iterrows():
        inside = sum(Line(ring).contains_points(places).astype(int) for ring in rings(row)) % 2 == 1
        names.ravel()[inside] = row["region"]
    near = ndimage.distance_transform_edt(names == "", return_distances=False, return_indices=True)
    return names[tuple(near)]


class Surface:
    """The surface of the average brain's left hemisphere."""

    def __init__(self) -> None:
        folder = Path(nilearn.__file__).parent / "datasets" / "data" / "fsaverage5"
        pial, faces = (one.data for one in nibabel.load(folder / "pial_left.gii.gz").darrays)
        self.sphere = nibabel.load(folder / "sphere_left.gii.gz").darrays[0].data.astype(float)
        self.faces, n = faces.astype(int), len(pial)
        ends = np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])
        edges = sparse.coo_matrix((np.ones(len(ends)), ends.T), shape=(n, n)).tocsr()
        near = ((edges + edges.T) > 0).astype(float) + sparse.eye(n)
        mean = sparse.diags(1 / np.asarray(near.sum(axis=1)).ravel()) @ near
        self.smooth = pial.astype(float)
        for _ in range(SMOOTHINGS):
            self.smooth = mean @ self.smooth
        self.area = self._at_vertices(np.linalg.norm(self._normals(pial.astype(float)), axis=1))
        self.is_outside = self._at_vertices(self._normals(self.smooth)[:, 0]) < 0

    def _normals(self, places: np.ndarray) -> np.ndarray:
        first, second, third = (places[self.faces[:, k]] for k in range(3))
        return np.cross(second - first, third - first)

    def _at_vertices(self, of_faces: np.ndarray) -> np.ndarray:
        return sum(np.bincount(self.faces[:, k], of_faces, minlength=len(self.smooth)) for k in range(3)) / 6

    def labels(self, atlas: str) -> np.ndarray:
        """Return the region of each vertex."""
        places = self.smooth[:, 1:]
        share = (places - places.min(axis=0)) / np.ptp(places, axis=0)  # to the front, and upwards
        found = np.full(len(places), "", dtype=object)
        for view, seen in (("lateral", self.is_outside), ("medial", ~self.is_outside)):
            picture = pictures(atlas, view)
            across = 1 - share[:, 0] if view == "lateral" else share[:, 0]
            rows = np.round((1 - share[:, 1]) * (picture.shape[0] - 1)).astype(int)
            columns = np.round(across * (picture.shape[1] - 1)).astype(int)
            found[seen] = picture[rows[seen], columns[seen]]
        return found


def positions(surface: Surface, labels: np.ndarray) -> pd.DataFrame:
    """Return the centre of each region on a sphere of radius 1."""
    rows = []
    for region in sorted({*labels} - {"rest"}):
        middle = np.average(surface.sphere[labels == region], axis=0, weights=surface.area[labels == region])
        rows.append((region, *(middle / np.linalg.norm(middle)).round(4)))
    return pd.DataFrame(rows, columns=["region", "x", "y", "z"])


def shares(surface: Surface, finer: np.ndarray, coarser: np.ndarray) -> pd.DataFrame:
    """Return the fraction of each coarser region that each finer region covers."""
    table = pd.crosstab(coarser, finer, values=surface.area, aggfunc="sum").fillna(0)
    table = table.drop(index="rest").drop(columns="rest", errors="ignore")
    table = table.div(table.sum(axis=1), axis=0).rename_axis(index="region", columns="part")
    long = table.stack().rename("share").reset_index()
    return long[long["share"] >= LEAST_SHARE].round({"share": 4})


def main() -> None:
    """Write the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--enigma", type=Path, required=True, help="the folder of ENIGMA's summary statistics")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    options = parser.parse_args()
    surface = Surface()
    desikan, destrieux = surface.labels("dk"), surface.labels("destrieux")
    enigma_maps(options.enigma).to_csv(options.out / "enigma.csv", index=False)
    positions(surface, desikan).to_csv(options.out / "desikan_positions.csv", index=False)
    shares(surface, destrieux, desikan).to_csv(options.out / "destrieux_to_desikan.csv", index=False)


if __name__ == "__main__":
    main()
