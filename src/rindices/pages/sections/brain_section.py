"""Pictures of the brain: patterns on it, a slider that moves them, and where images of the people differ."""

from __future__ import annotations

import re
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from rindices.pages.elements import Gallery, Picture, Table, counts, measures, probabilities, script_json
from rindices.pages.run_view import RunView
from rindices.plots import brain
from rindices.plots.brain_drawing import SEVERITIES, draw_brain, measures_of, outlined_regions
from rindices.record import BRAIN, VOXELWISE, Run, damaged
from rindices.regions import known_regions

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Image

_MOST_REGIONS = 14  # beside a brain
_BRAIN_WIDTH = 560


_ENOUGH = 0.5  # of the regions must have an outline, or the picture would mislead
_MANY_PATTERNS = 3  # with more, only severity 1 is drawn: the page must stay small
_MOST_CLUSTERS = 10  # of a comparison
_HALF_PAGE = 430  # pixels: the regions stand beside
_UNIT = "Change (sd of controls)"


class Brains(NamedTuple):
    """What can be shown of patterns on the brain.

    Attributes
    ----------
    drawn
        Pictures of each pattern.
    painted
        Whether they are on an atlas that was given, rather than outlines.
    n_regions, n_outlined
        How many regions there are, and how many have an outline.
    missing
        Those that have none, in words.
    atlases
        What the outlines are of.
    scaled
        Whether severities below 1 are scaled from severity 1.
    """

    drawn: dict[int, list[Picture]]
    painted: bool
    n_regions: int
    n_outlined: int
    missing: list[str]
    atlases: set[str]
    scaled: bool


def has_outlines(run: Run) -> bool:
    """Say whether enough regions have an outline to draw brains."""
    names = run.results.patterns["region"].astype(str).unique()
    return len(outlined_regions(names)) >= _ENOUGH * len(names)


def brains_of(view: RunView) -> Brains:
    """Return pictures of each pattern with growing severity: on the atlas that was given, else as outlines."""
    painted = sorted((view.run.folder / BRAIN).glob("pattern-*.nii.gz")) if find_spec("nilearn") is not None else []
    names = list(view.results.patterns["region"].astype(str).unique())
    regions, outlined = known_regions(names), outlined_regions(names)
    drawn = _painted(painted, view.gallery) if painted else _drawings(view) if has_outlines(view.run) else {}
    titles = {name: f"{regions[name].title} ({name})" if name in regions else name for name in names}
    return Brains(
        drawn,
        bool(painted),
        len(names),
        len(outlined),
        [titles[name] for name in names if name not in outlined],
        {region.atlas for region in outlined.values()},
        "severities" not in view.analyses,
    )


def _drawings(view: RunView) -> dict[int, list[Picture]]:
    table, many = view.analyses.get("severities", view.results.patterns), view.summary.n_patterns > _MANY_PATTERNS
    found: dict[int, list[Picture]] = {}
    for pattern, measure in product(range(1, view.summary.n_patterns + 1), measures_of(table["region"])):
        severities = (1.0,) if many else SEVERITIES
        drawing = draw_brain(table, pattern, severities, measure=measure, per_line=5, width=_HALF_PAGE)
        if drawing is not None:
            name = f"brain_pattern_{pattern}{measure and '_'}{measure}"
            alt = f"Pattern {pattern} on the brain: regions coloured by their change at growing severity."
            found.setdefault(pattern, []).append(view.gallery.keep(name, drawing.figure(), drawing.svg(name), alt))
    return found


def voxelwise_section(view: RunView) -> dict[str, object] | None:
    """Return where images of the people differ, nothing where none were compared, or nilearn is missing."""
    compared = view.analyses.get("comparisons")
    if compared is None or find_spec("nilearn") is None:
        return None
    return {
        "comparisons": [_comparison(view, row) for _, row in compared[compared["t_map"] != ""].iterrows()],
        "not_tested": [
            f"pattern {row['pattern']}, {row['level']} ({row['note']})"
            for _, row in compared[compared["t_map"] == ""].iterrows()
        ],
    }


def _painted(paths: list[Path], gallery: Gallery) -> dict[int, list[Picture]]:
    found: dict[str, dict[float, Nifti1Image]] = {}
    for path in paths:
        if name := re.fullmatch(r"pattern-(\d+)_severity-([\d.]+)\.nii\.gz", path.name):
            found.setdefault(name[1], {})[float(name[2])] = _image(path)
    limit = brain.colour_limit([abs(one.get_fdata()).max() for of in found.values() for one in of.values()])
    pictures: dict[int, list[Picture]] = {}
    for place, images in found.items():
        title, alt, most = f"Pattern {place}", f"Pattern {place} painted on the atlas.", max(images)
        several = {f"severity {severity:g}": images[severity] for severity in sorted(images)}
        glass = brain.glass(several, _UNIT, title=title, limit=limit)
        slices = brain.stat_mosaic(images[most], 0, _UNIT, title=f"{title}, severity {most:g}", limit=limit)
        pictures[int(place)] = [
            gallery.draw(f"brain_pattern_{place}", glass, f"{alt} Glass brain at growing severity."),
            gallery.draw(f"brain_slices_{place}", slices, f"{alt} Slices."),
        ]
    return pictures


def _comparison(view: RunView, row: pd.Series) -> dict[str, object]:
    """Return a voxel-wise comparison, with pictures where anything is significant, and its largest clusters."""
    where, clusters = f"Pattern {row['pattern']}, {row['level']}", view.analyses.get("clusters")
    return {
        "title": f"{where} ({row['rule']})",
        "regression": row["level"] == "regression",
        "n_patients": row["n_patients"],
        "n_significant": row["n_significant"],
        "pictures": _t_maps(view.run.folder / VOXELWISE, row, where, view.gallery) if row["n_significant"] else [],
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


class Slide(NamedTuple):
    """A pattern that the slider moves: the brain, which regions each of its pieces shows, and where colours end."""

    pattern: int
    measure: str
    svg: Markup = Markup("")
    pieces: tuple[tuple[str, ...], ...] = ()
    limit: float = 0.0


def slider_section(view: RunView) -> dict[str, object]:
    """Return each pattern at severity 1, and the change of each region at each severity, for the page's script."""
    table = view.analyses.get("severities", view.results.patterns.assign(severity=1.0))
    table, slides = table[table["severity"] > 0], _slides(view)
    doses: dict[str, dict[str, dict[str, float]]] = {}
    for row in table.to_dict("records"):
        regions = doses.setdefault(str(row["pattern"]), {})
        regions.setdefault(str(row["region"]), {})[f"{row['severity']:g}"] = round(float(row["change_sd"]), 4)
    ends = [min(0.0, float(table["change_sd"].min())), max(0.0, float(table["change_sd"].max()))]
    brains = [{"pieces": one.pieces, "limit": one.limit} for one in slides]
    data = {"patterns": doses, "names": view.region_names, "ends": ends, "shown": _MOST_REGIONS, "brains": brains}
    return {"slides": slides, "doses": script_json(data)}


def _slides(view: RunView) -> list[Slide]:
    patterns = range(1, view.summary.n_patterns + 1)
    table = view.analyses.get("severities", view.results.patterns)
    if not has_outlines(view.run):
        return [Slide(pattern, "") for pattern in patterns]
    slides = []
    for pattern, measure in product(patterns, measures_of(table["region"])):
        drawing = draw_brain(table, pattern, (1.0,), measure=measure, per_line=5, width=_BRAIN_WIDTH, bare=True)
        if drawing is not None:
            svg = Markup(drawing.svg(f"slide{pattern}{measure}"))
            slides.append(Slide(pattern, measure, svg, tuple(drawing.piece_names), drawing.limit))
    return slides
