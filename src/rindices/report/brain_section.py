"""The section with pictures of the brain: patterns on it, and where images of the people differ."""

from __future__ import annotations

import re
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from rindices.plots import brain
from rindices.plots.brain_drawing import SEVERITIES, draw_brain, measures_of, outlined_regions
from rindices.plots.region_names import known_regions
from rindices.record import BRAIN, VOXELWISE, Run, damaged
from rindices.report.elements import Gallery, Picture, Table, counts, measures, probabilities

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Image

_ENOUGH = 0.5  # of the regions must have an outline, or the picture would mislead
_MANY_PATTERNS = 3  # with more, only severity 1 is drawn: the page must stay small
_MOST_CLUSTERS = 10  # of a comparison
_UNIT = "Change (sd of controls)"


class Drawn(NamedTuple):
    """A pattern on a brain; with a measure where regions have several."""

    svg: Markup
    pattern: int
    measure: str


def brain_section(run: Run, gallery: Gallery) -> dict[str, object]:
    """Return drawings of patterns, pictures of images, or why there are none."""
    painted = sorted((run.folder / BRAIN).glob("pattern-*.nii.gz"))
    compared = run.analyses.get("comparisons", pd.DataFrame(columns=["t_map"]))
    with_map, with_nilearn = compared["t_map"] != "", find_spec("nilearn") is not None
    names = list(run.results.patterns["region"].astype(str).unique())
    regions, outlined = known_regions(names), outlined_regions(names)
    drawable = len(outlined) >= _ENOUGH * len(names) and not (painted and with_nilearn)
    return {
        "drawn": _drawings(run, gallery) if drawable else [],
        "scaled": "severities" not in run.analyses,
        "atlases": {region.atlas for region in outlined.values()},
        "n_regions": len(names),
        "n_outlined": len(outlined),
        "missing": [
            f"{regions[name].title} ({name})" if name in regions else name for name in names if name not in outlined
        ],
        "painted": _painted(painted, gallery) if with_nilearn else [],
        "hidden": not with_nilearn and bool(painted or with_map.any()),
        "comparisons": [_comparison(run, row, gallery) for _, row in compared[with_map].iterrows() if with_nilearn],
        "not_tested": [
            f"pattern {row['pattern']}, {row['level']} ({row['note']})" for _, row in compared[~with_map].iterrows()
        ],
    }


def _drawings(run: Run, gallery: Gallery) -> list[Drawn]:
    table, many = run.analyses.get("severities", run.results.patterns), run.summary.n_patterns > _MANY_PATTERNS
    found = []
    for pattern, measure in product(range(1, run.summary.n_patterns + 1), measures_of(table["region"])):
        if drawing := draw_brain(table, pattern, (1.0,) if many else SEVERITIES, measure=measure):
            name = f"brain_pattern_{pattern}{measure and '_'}{measure}"
            svg = drawing.svg(name)
            gallery.figures.append((name, drawing.figure(), svg))
            found.append(Drawn(Markup(svg), pattern, measure))
    return found


def _painted(paths: list[Path], gallery: Gallery) -> list[Picture]:
    found: dict[str, dict[float, Nifti1Image]] = {}
    for path in paths:
        if name := re.fullmatch(r"pattern-(\d+)_severity-([\d.]+)\.nii\.gz", path.name):
            found.setdefault(name[1], {})[float(name[2])] = _image(path)
    limit = brain.colour_limit([abs(one.get_fdata()).max() for of in found.values() for one in of.values()])
    pictures = []
    for place, images in found.items():
        title, alt, most = f"Pattern {place}", f"Pattern {place} painted on the atlas.", max(images)
        several = {f"severity {severity:g}": images[severity] for severity in sorted(images)}
        glass = brain.glass(several, _UNIT, title=title, limit=limit)
        slices = brain.stat_mosaic(images[most], 0, _UNIT, title=f"{title}, severity {most:g}", limit=limit)
        pictures += [
            gallery.draw(f"brain_pattern_{place}", glass, f"{alt} Glass brain at growing severity."),
            gallery.draw(f"brain_slices_{place}", slices, f"{alt} Slices."),
        ]
    return pictures


def _comparison(run: Run, row: pd.Series, gallery: Gallery) -> dict[str, object]:
    """Return a voxel-wise comparison, with pictures where anything is significant, and its largest clusters."""
    where, clusters = f"Pattern {row['pattern']}, {row['level']}", run.analyses.get("clusters")
    return {
        "title": f"{where} ({row['rule']})",
        "regression": row["level"] == "regression",
        "n_patients": row["n_patients"],
        "n_significant": row["n_significant"],
        "pictures": _t_maps(run.folder / VOXELWISE, row, where, gallery) if row["n_significant"] else [],
        "clusters": None if clusters is None else _clusters(clusters, row, where),
    }


def _t_maps(folder: Path, row: pd.Series, where: str, gallery: Gallery) -> list[Picture]:
    """Return the t-map where it is significant, on a glass brain and on slices."""
    import nibabel

    t, q = _image(folder / row["t_map"]), _image(folder / row["q_map"]).get_fdata()
    seen = nibabel.Nifti1Image(np.where(q < 0.05, t.get_fdata(), 0).astype(np.float32), t.affine)
    name, note = f"voxelwise_{row['pattern']}_{row['level']}", "Shown: voxels with q below 0.05."
    alt = f"{where}: t where q is below 0.05"
    return [
        gallery.draw(f"{name}_glass", brain.glass(seen, "t", title=where, note=note), f"{alt}, on a glass brain."),
        gallery.draw(name, brain.stat_mosaic(seen, 0, "t", title=where, note=note), f"{alt}, on slices."),
    ]


def _image(path: Path) -> Nifti1Image:
    import nibabel

    try:
        image = nibabel.nifti1.Nifti1Image.from_filename(path)
        image.get_fdata()
    except (OSError, EOFError, ValueError, nibabel.filebasedimages.ImageFileError) as error:
        raise damaged(path, f"is no image ({error})") from error
    return image


def _clusters(clusters: pd.DataFrame, row: pd.Series, where: str) -> Table | None:
    own = clusters[(clusters["pattern"] == row["pattern"]) & (clusters["level"] == row["level"])].head(_MOST_CLUSTERS)
    columns = [
        *(measures(f"{axis} (mm)", own[axis], 0) for axis in "xyz"),
        measures("Peak t", own["peak_t"]),
        probabilities("Peak q", own["peak_q"]),
        counts("Size (mm³)", own["size_mm3"]),
    ]
    return Table(f"{where}: largest clusters", columns, source="voxelwise/clusters.csv") if len(own) else None
