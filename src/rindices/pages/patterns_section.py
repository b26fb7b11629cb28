"""The sections on patterns: brains, regions by severity, subgroups of patients, resemblance, and voxel-wise maps."""

import re
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices import plots
from rindices.pages.elements import Gallery, Picture, Table, counts, limits, listed, measures, probabilities, words
from rindices.pages.layout import RunView
from rindices.plots import brain
from rindices.plots.brain_drawing import UNIT, BrainDrawing, Layout, draw_brain
from rindices.record import BRAIN, VOXELWISE, damaged

_ENOUGH = 0.5  # of the regions must have an outline; with fewer, the picture would mislead
_MOST_CLUSTERS = 10  # of a comparison
_SMALL_BRAIN = Layout(per_line=2, width=330, most_slices=2)  # fits a phone screen
_STRONGEST = 12  # strongest regions of a pattern, which are named if the picture lacks them
_SURE, _LEAST = 2.0, 0.1  # spreads over repetitions, and sd of controls, below which a change is grey
_UNIT = "Change (sd of controls)"
_WIDTH = "uncertainty (sd of controls)"  # of the pictures of uncertainty


def brains_of(view: RunView) -> tuple[dict[str, object], dict[int, object]]:
    """Return pictures of each pattern, on the atlas that was given or otherwise as outlines at severity 1.

    Returns
    -------
    tuple of (dict, dict)
        For the template: whether an atlas was given (``painted``), the full names of regions without an outline
        (``missing``), the ``atlases`` of the outlines, and of each pattern the pictures (``drawn``), the full names of
        strong regions that they lack (``unseen``) and the pictures of its uncertainty (``spreads``; none with a single
        repetition). For the slider: the regions that each piece of a drawing shows, and the limit of its colours.
    """
    painted = sorted((view.run.folder / BRAIN).glob("pattern-*.nii.gz")) if find_spec("nilearn") is not None else []
    titles = {name: name if title == name else f"{title} ({name})" for name, title in view.region_names.items()}
    outlined, drawn = brain.outlined_regions(titles), _atlas_pictures(painted, view.gallery)
    pieces, unseen, spreads = dict[int, object](), dict[int, list[str]](), dict[int, list[Picture]]()
    for pattern in range(1, view.run.summary.n_patterns + 1) if not painted else ():
        own = strongest_first(view.run.results.patterns, pattern).set_index("region")
        reach = _SURE * own["spread_sd"]
        unsure = own.index[own["change_sd"].abs() < np.fmax(reach, _LEAST)]
        drawings = draw_measures(view.run.results.patterns, pattern, unsure)
        if not drawings:
            break
        drawn[pattern] = draw_each(
            view.gallery,
            f"brain_pattern_{pattern}",
            drawings,
            f"Brain regions coloured by their change in pattern {pattern} at severity 1.",
        )
        pieces[pattern] = [{"pieces": one.piece_names, "limit": one.limit} for one in drawings.values()]
        seen = {*unsure}.union(*(one.drawn for one in drawings.values()))
        unseen[pattern] = [titles[name] for name in own.index[:_STRONGEST] if name not in seen]
        if reach.notna().any():
            spreads[pattern] = draw_each(
                view.gallery,
                f"uncertainty_pattern_{pattern}",
                {end: one.with_amounts(dict(reach), _WIDTH) for end, one in drawings.items()},
                f"Brain regions coloured by the uncertainty of their change in pattern {pattern} at severity 1.",
            )
    shown = {
        "painted": bool(painted),
        "missing": [title for name, title in titles.items() if name not in outlined],
        "atlases": {region.atlas for region in outlined.values()},
        "drawn": drawn,
        "unseen": unseen,
        "spreads": spreads,
    }
    return shown, pieces


def strongest_first(patterns: pd.DataFrame, pattern: int) -> pd.DataFrame:
    """Return the regions of a pattern, those that change most first."""
    own = patterns[patterns["pattern"] == pattern]
    return own.sort_values("change_sd", key=abs, ascending=False, kind="stable")


def draw_measures(
    table: pd.DataFrame, pattern: int, unsure: Collection[str], unit: str = UNIT
) -> dict[str, BrainDrawing]:
    """Return a drawing for each measure, in the views that show its strongest regions, by the end of its name.

    Without enough regions that have an outline, there are none.
    """
    names = table["region"].unique()
    enough = len(brain.outlined_regions(names)) >= _ENOUGH * len(names)
    drawings = {
        measure: draw_brain(table, pattern, measure=measure, unsure=unsure, unit=unit, layout=_SMALL_BRAIN)
        for measure in (brain.measures_of(names) if enough else ())
    }
    return {f"_{measure}" if measure else "": one for measure, one in drawings.items() if one is not None}


def draw_each(
    gallery: Gallery, name: str, drawings: Mapping[str, BrainDrawing], alt: str, *, result: bool = True
) -> list[Picture]:
    """Return the drawings of each measure as pictures; their names have the same end."""
    return [gallery.draw(f"{name}{end}", drawing, alt, result=result) for end, drawing in drawings.items()]


def voxelwise_section(view: RunView) -> dict[str, object] | None:
    """Return the voxel-wise comparisons of images; None if there are none or nilearn is missing."""
    compared = view.run.analyses.get("comparisons")
    if compared is None or find_spec("nilearn") is None:
        return None
    return {
        "comparisons": [_comparison(view, row) for _, row in compared[compared["t_map"] != ""].iterrows()],
        "not_tested": [
            f"pattern {row['pattern']}, {row['level']} ({row['note']})"
            for _, row in compared[compared["t_map"] == ""].iterrows()
        ],
    }


def _atlas_pictures(paths: list[Path], gallery: Gallery) -> dict[int, list[Picture]]:
    names = {path: re.fullmatch(r"pattern-(\d+)_severity-([\d.]+)\.nii\.gz", path.name) for path in paths}
    images = {(int(name[1]), float(name[2])): _image(path) for path, name in names.items() if name}
    limit = brain.colour_limit([abs(one.get_fdata()).max() for one in images.values()])
    pictures: dict[int, list[Picture]] = {}
    for place in dict.fromkeys(place for place, _ in images):
        own = {severity: images[of, severity] for of, severity in sorted(images) if of == place}
        title, alt, most = f"Pattern {place}", f"Pattern {place} shown on the atlas:", max(own)
        several = {f"severity {severity:g}": image for severity, image in own.items()}
        glass = brain.glass(several, _UNIT, title=title, limit=limit)
        slices = brain.stat_mosaic(own[most], _UNIT, title=f"{title}, severity {most:g}", limit=limit)
        pictures[place] = [
            gallery.draw(f"brain_pattern_{place}", glass, f"{alt} glass brains at increasing severity."),
            gallery.draw(f"brain_slices_{place}", slices, f"{alt} slices at severity {most:g}."),
        ]
    return pictures


def _comparison(view: RunView, row: pd.Series) -> dict[str, object]:
    """Return a voxel-wise comparison with its largest clusters, and with pictures if any voxel is significant."""
    where, clusters = f"Pattern {row['pattern']}, {row['level']}", view.run.analyses.get("clusters")
    return {
        "title": f"{where} ({row['rule']})",
        "regression": row["level"] == "regression",
        "n_patients": row["n_patients"],
        "n_significant": row["n_significant"],
        "pictures": _t_maps(view.run.folder / VOXELWISE, row, where, view.gallery) if row["n_significant"] else [],
        "clusters": None if clusters is None else _clusters(clusters, row, where),
    }


def _t_maps(folder: Path, row: pd.Series, where: str, gallery: Gallery) -> list[Picture]:
    """Return the significant part of a t-map, on a glass brain and on slices."""
    import nibabel

    t, q = _image(folder / row["t_map"]), _image(folder / row["q_map"]).get_fdata()
    seen = nibabel.Nifti1Image(np.where(q < 0.05, t.get_fdata(), 0).astype(np.float32), t.affine)
    name, note = f"voxelwise_{row['pattern']}_{row['level']}", "Shown: voxels with q below 0.05."
    alt = f"{where}: t values of voxels with q below 0.05"
    return [
        gallery.draw(f"{name}_glass", brain.glass(seen, "t", title=where, note=note), f"{alt}, on a glass brain."),
        gallery.draw(name, brain.stat_mosaic(seen, "t", title=where, note=note), f"{alt}, on slices."),
    ]


def _image(path: Path) -> Any:
    """Return a nibabel image whose values can be read."""
    import nibabel

    try:
        image = nibabel.nifti1.Nifti1Image.from_filename(path)
        image.get_fdata()
    except (OSError, EOFError, ValueError, nibabel.filebasedimages.ImageFileError) as error:
        raise damaged(path, f"is not an image ({error})") from error
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


def dose_section(view: RunView) -> dict[str, object] | None:
    """Return the regions of patients by severity; None if they were not analysed."""
    table = view.run.analyses.get("dose_response")
    if table is None:
        return None
    columns = [
        counts("Pattern", table["pattern"]),
        words("Region", table["region"]),
        limits(table["low"], table["high"], 1, title="Severity"),
        counts("Patients", table["n"]),
        measures("Mean z", table["mean"], 2, "+"),
        limits(table["mean_low"], table["mean_high"]),
    ]
    return {
        "picture": view.gallery.draw(
            "dose_response",
            plots.dose_response(table),
            "Mean values in patients for the regions that change most, in control standard deviations, plotted against "
            "severity; one panel per pattern. The table lists the values.",
        ),
        "table": Table("Mean regional values by severity", columns, source="analysis/dose_response.csv"),
    }


def subgroups_section(view: RunView) -> dict[str, object] | None:
    """Return the sizes and regional effects of the subgroups; None if there are none."""
    sizes, effects = view.run.analyses.get("subgroup_sizes"), view.run.analyses.get("subgroups")
    if sizes is None:
        return None
    columns = [
        counts("Pattern", sizes["pattern"]),
        words("Level", sizes["level"]),
        words("Rule", sizes["rule"]),
        counts("Patients", sizes["n"]),
        words("Note", sizes["note"]),
    ]
    alt = (
        "Cohen's d for each subgroup of patients versus controls in the regions that differ most; one panel per "
        "pattern. The table lists the values."
    )
    picture = (
        view.gallery.draw("subgroups", plots.subgroup_dots(effects, sizes), alt)
        if effects is not None and effects["effect"].notna().any()
        else None
    )
    return {
        "sizes": Table("Subgroups of patients", columns),
        "picture": picture,
        "effects": None if effects is None else _effects(effects),
    }


def _effects(effects: pd.DataFrame) -> Table:
    rows = effects.sort_values("effect", key=abs, ascending=False, kind="stable")
    return Table(
        "Differences between subgroups and controls in each region, largest first",
        [
            counts("Pattern", rows["pattern"]),
            words("Level", rows["level"]),
            words("Region", rows["region"]),
            measures("d", rows["effect"], 2, "+"),
            limits(rows["low"], rows["high"]),
            measures("t", rows["t"]),
            probabilities("p", rows["p"]),
            probabilities("q", rows["q"]),
        ],
        source="analysis/subgroups.csv",
    )


_CLEAR = 0.025  # at 0.05, 9 of 100 unrelated maps pass: regions are reassigned more freely than a smooth map rotates
_MOST_NAMED = 3
_SUBCORTEX = "subcortex"


def resemblance_section(view: RunView) -> dict[str, object]:
    """Return the correlations of patterns with maps of disorders, if there are maps of these regions."""
    table = view.run.analyses.get("resemblance")
    if table is None:
        return {"rows": [], "subcortex": None}
    cortex, subcortex = table[table["measure"] != _SUBCORTEX], table[table["measure"] == _SUBCORTEX]
    alt = "Correlations between the pattern maps and the case-control maps of disorders. The table lists the values."
    return {
        "rows": [_row(part) for _, part in cortex.groupby(["pattern", "measure"], sort=False)],
        "n_regions": cortex["n_regions"].min(),
        "picture": view.gallery.draw("resemblance", plots.disorder_dots(cortex), alt) if len(cortex) else None,
        "table": _table(cortex, "Patterns and disorders: cortical correlations"),
        "subcortex": None if subcortex.empty else _table(subcortex, "Patterns and disorders: subcortical correlations"),
    }


def _row(part: pd.DataFrame) -> dict[str, object]:
    """Return a pattern's largest correlation and the disorders beyond chance, also adjusted for the maps' mean."""
    first = part.sort_values("r", ascending=False).iloc[0]
    clear, beyond = (
        part[part[p] < _CLEAR].sort_values(r, ascending=False)["disorder"].head(_MOST_NAMED)
        for r, p in (("r", "p_corrected"), ("beyond", "beyond_p_corrected"))
    )
    return {"first": first.to_dict(), "disorders": listed(clear), "beyond": listed(beyond)}


def _table(rows: pd.DataFrame, caption: str) -> Table:
    return Table(
        caption,
        [
            counts("Pattern", rows["pattern"]),
            words("Measure", rows["measure"]),
            words("Disorder", rows["disorder"]),
            counts("Regions", rows["n_regions"]),
            measures("r", rows["r"], 2, "+"),
            probabilities("p", rows["p"]),
            probabilities("p, corrected", rows["p_corrected"]),
            measures("r, adjusted for the mean map", rows["beyond"], 2, "+"),
            probabilities("p, adjusted for the mean map", rows["beyond_p"]),
            probabilities("p, adjusted for the mean map and corrected", rows["beyond_p_corrected"]),
        ],
        source="analysis/resemblance.csv",
    )
