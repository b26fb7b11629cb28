"""The section with pictures of the brain: patterns on it, and where images of the people differ."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.report.checks import damaged
from rindices.report.csv_files import read_optional
from rindices.report.pieces import Gallery, Picture, p_value
from rindices.report.read import RunResults
from rindices.report.tables import Cell, Table, count, make_table, measure, numbers

ATLAS, VOXELWISE = "brain", "voxelwise"
_ENOUGH = 0.5  # of the regions must have a place, or the picture would mislead
_MANY_PATTERNS = 3  # with more, only severity 1 is drawn: the page must stay small
_MOST_CLUSTERS = 10  # of a comparison
_UNIT = "Change (sd of controls)"


def brain_section(results: RunResults, gallery: Gallery, folder: Path) -> dict[str, Any] | None:
    """Return pictures of patterns and of voxel-wise comparisons; nothing without nilearn or anything to show."""
    if find_spec("nilearn") is None or results.patterns.empty:
        return None
    painted = sorted((folder / ATLAS).glob("pattern-*.nii.gz"))
    pictures = _painted(painted, gallery) if painted else _marks(results, gallery)
    comparisons = _comparisons(folder / VOXELWISE, gallery)
    if not pictures and not comparisons:
        return None
    return {"pictures": pictures, "schematic": not painted, "comparisons": comparisons}


def _marks(results: RunResults, gallery: Gallery) -> list[Picture]:
    from rindices.plots import brain

    regions = results.patterns["region"].astype(str).unique()
    placed = brain.place_regions(regions)
    if placed.centres["region"].nunique() < _ENOUGH * len(regions):
        return []
    table = results.patterns if results.analyses.severities is None else results.analyses.severities
    if results.n_patterns > _MANY_PATTERNS and "severity" in table:
        table = table[table["severity"] == table["severity"].max()]
    severities = (1.0,) if results.n_patterns > _MANY_PATTERNS else brain.SEVERITIES
    return [
        gallery.draw(
            f"brain_pattern_{place}",
            brain.pattern_glass(table, place, severities),
            f"Pattern {place} on a glass brain: regions as marks at schematic positions, coloured by their change.",
        )
        for place in range(1, results.n_patterns + 1)
    ]


def _painted(paths: list[Path], gallery: Gallery) -> list[Picture]:
    from rindices.plots import brain

    found: dict[str, dict[float, Any]] = {}
    for path in paths:
        name = re.fullmatch(r"pattern-(\d+)_severity-([\d.]+)\.nii\.gz", path.name)
        if name:
            found.setdefault(name[1], {})[float(name[2])] = _image(path)
    limit = brain.colour_limit([abs(one.get_fdata()).max() for of in found.values() for one in of.values()])
    pictures = []
    for number, images in found.items():
        title, alt = f"Pattern {number}", f"Pattern {number} painted on the atlas."
        several = {f"severity {severity:g}": images[severity] for severity in sorted(images)}
        glass = brain.glass(several, _UNIT, title=title, limit=limit)
        slices = brain.stat_mosaic(
            images[max(images)], 0, _UNIT, title=f"{title}, severity {max(images):g}", limit=limit
        )
        pictures.append(gallery.draw(f"brain_pattern_{number}", glass, f"{alt} Glass brain at growing severity."))
        pictures.append(gallery.draw(f"brain_slices_{number}", slices, f"{alt} Slices."))
    return pictures


def _comparisons(folder: Path, gallery: Gallery) -> dict[str, Any] | None:
    """Return the voxel-wise comparisons, and which could not be made."""
    table = read_optional(
        folder / "comparisons.csv",
        ["level", "rule", "t_map", "q_map", "note"],
        ["pattern", "n_patients", "n_significant"],
    )
    if table is None:
        return None
    clusters = read_optional(
        folder / "clusters.csv", ["level"], ["pattern", "x", "y", "z", "peak_t", "peak_q", "size_mm3"]
    )
    shown = []
    for row in table.to_dict("records"):
        if not row["t_map"]:
            continue
        where = f"Pattern {int(row['pattern'])}, {row['level']}"
        own = _of(clusters, row)
        shown.append(
            {
                "title": f"{where} ({row['rule']})",
                "n_patients": f"{int(row['n_patients']):,}",
                "n_significant": f"{int(row['n_significant']):,}",
                "regression": row["level"] == "regression",
                "pictures": _t_maps(folder, row, where, gallery),
                "clusters": None if own.empty else _cluster_table(own, where),
            }
        )
    left = table[table["t_map"] == ""]
    notes = [f"pattern {int(row['pattern'])}, {row['level']} ({row['note']})" for row in left.to_dict("records")]
    return {"shown": shown, "not_tested": notes}


def _of(clusters: pd.DataFrame | None, row: dict[Any, Any]) -> pd.DataFrame:
    if clusters is None:
        return pd.DataFrame()
    return clusters.loc[(clusters["pattern"] == row["pattern"]) & (clusters["level"] == row["level"])]


def _t_maps(folder: Path, row: dict[Any, Any], where: str, gallery: Gallery) -> list[Picture]:
    """Return the t-map where it is significant, on a glass brain and on slices; nothing where nothing is."""
    if not row["n_significant"]:
        return []
    import nibabel

    from rindices.plots import brain

    t, q = _image(folder / str(row["t_map"])), _image(folder / str(row["q_map"])).get_fdata()
    seen = nibabel.Nifti1Image(np.where(q < 0.05, t.get_fdata(), 0).astype(np.float32), t.affine)
    name, note = f"voxelwise_{int(row['pattern'])}_{row['level']}", "Shown: voxels with q below 0.05."
    alt = f"{where}: t where q is below 0.05"
    return [
        gallery.draw(f"{name}_glass", brain.glass(seen, "t", title=where, note=note), f"{alt}, on a glass brain."),
        gallery.draw(name, brain.stat_mosaic(seen, 0, "t", title=where, note=note), f"{alt}, on slices."),
    ]


def _image(path: Path) -> Any:
    import nibabel

    try:
        image: Any = nibabel.load(path)
        image.get_fdata()
    except (OSError, EOFError, ValueError, nibabel.filebasedimages.ImageFileError) as error:
        raise damaged(path, f"it is no image ({error})") from error
    return image


def _cluster_table(rows: pd.DataFrame, where: str) -> Table:
    columns = numbers("x (mm)", "y (mm)", "z (mm)", "Peak t", "Peak q", "Size (mm³)")
    cells = [
        [
            *(measure(row[name], 0) for name in "xyz"),
            measure(row["peak_t"], 2),
            Cell(p_value(row["peak_q"]), str(row["peak_q"])),
            count(row["size_mm3"]),
        ]
        for row in rows.head(_MOST_CLUSTERS).to_dict("records")
    ]
    return make_table(f"{where}: largest clusters", columns, cells, source="voxelwise/clusters.csv")
