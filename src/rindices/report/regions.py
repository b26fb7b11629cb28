"""The sections on what patterns do to regions: by pattern, by severity, and in subgroups of patients."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.record import Run
from rindices.report.elements import (
    Gallery,
    Picture,
    Table,
    counts,
    limits,
    listed,
    make_table,
    measures,
    number,
    probabilities,
    words,
)
from rindices.report.overview import strongest

_TOP_REGIONS = 20


def maps_section(run: Run, gallery: Gallery) -> dict[str, object]:
    """Return the regions of each pattern."""
    table = run.results.patterns
    decomposed = "decomposed_sd" in table and bool(table["decomposed_sd"].notna().any())
    patterns = [_pattern(table, place, gallery, decomposed) for place in range(1, run.summary.n_patterns + 1)]
    return {"patterns": patterns, "decomposed": decomposed}


def _pattern(patterns: pd.DataFrame, place: int, gallery: Gallery, decomposed: bool) -> tuple[Picture, Table]:
    rows = strongest(patterns, place)
    first = rows.iloc[0]
    alt = (
        f"The regions that change most in pattern {place}, left and right as two dots; the strongest is "
        f"{first['region']} with {number(first['change_sd'], 2, '+')} sd of controls. The table has all values."
    )
    columns = [
        words("Region", rows["region"]),
        measures("Change (sd)", rows["change_sd"], 2, "+"),
        measures("Spread (sd)", rows["spread_sd"]),
        measures("Change (%)", rows["change_percent"], 1, "+"),
    ]
    if decomposed:
        columns.append(measures("In patients (sd)", rows["decomposed_sd"], 2, "+"))
        columns.append(measures("Spread of that (sd)", rows["decomposed_spread_sd"]))
    picture = gallery.draw(f"pattern_{place}", plots.pattern_dots(patterns, only=place, top=_TOP_REGIONS), alt)
    return picture, make_table(f"All regions of pattern {place}, strongest first", columns, source="patterns.csv")


def dose_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return the regions of patients at each severity, nothing where they were not looked at."""
    table = run.analyses.get("dose_response")
    if table is None:
        return None
    alt = (
        "Mean of the strongest regions in patients, in standard deviations of the controls, against severity; "
        "one panel per pattern. The table has the values."
    )
    columns = [
        counts("Pattern", table["pattern"]),
        words("Region", table["region"]),
        limits(table["low"], table["high"], 1, title="R-index"),
        counts("Patients", table["n"]),
        measures("Mean z", table["mean"], 2, "+"),
        limits(table["mean_low"], table["mean_high"]),
    ]
    return {
        "picture": gallery.draw("dose_response", plots.dose_response(table), alt),
        "table": make_table("Regions of patients by severity", columns, source="analysis/dose_response.csv"),
    }


def subgroups_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return sizes and regions of the subgroups, nothing where there are none."""
    sizes, effects = run.analyses.get("subgroup_sizes"), run.analyses.get("subgroups")
    if sizes is None:
        return None
    names = ("R" + sizes["pattern"].astype(str) + " " + sizes["level"])[~sizes["used"]]
    columns = [
        words("Pattern", "R" + sizes["pattern"].astype(str)),
        words("Level", sizes["level"]),
        words("Rule", sizes["rule"]),
        counts("Patients", sizes["n"]),
        words("Note", sizes["note"]),
    ]
    alt = (
        "Difference of each subgroup of patients from controls in its strongest regions, as Cohen's d; one panel "
        "per pattern. The table has the values."
    )
    picture = None
    if effects is not None and effects["effect"].notna().any():
        picture = gallery.draw("subgroups", plots.subgroup_dots(effects, sizes), alt)
    return {
        "sizes": make_table("Subgroups of patients", columns),
        "small": {note: listed(part) for note, part in names.groupby(sizes["note"], sort=False)},
        "picture": picture,
        "effects": None if effects is None else _effects(effects),
    }


def _effects(effects: pd.DataFrame) -> Table:
    rows = effects.loc[effects["effect"].abs().sort_values(ascending=False, kind="stable").index]
    columns = [
        words("Pattern", "R" + rows["pattern"].astype(str)),
        words("Level", rows["level"]),
        words("Region", rows["region"]),
        measures("d", rows["effect"], 2, "+"),
        limits(rows["low"], rows["high"]),
        measures("t", rows["t"]),
        probabilities("p", rows["p"]),
        probabilities("q", rows["q"]),
    ]
    caption = "Regions of the subgroups against controls, strongest first"
    return make_table(caption, columns, source="analysis/subgroups.csv")
