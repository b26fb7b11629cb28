"""The sections on what patterns do to regions: in short, by pattern, by severity, and in subgroups of patients."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.plots.region_names import pair_sides
from rindices.record import Run
from rindices.report.elements import (
    Gallery,
    Picture,
    Table,
    counts,
    interval,
    limits,
    listed,
    measures,
    number,
    probabilities,
    words,
)
from rindices.report.relations import related

_TOP_REGIONS = 20
_MOST_REGIONS = 6  # in short
_SHARE_OF_STRONGEST = 0.5


def in_short(run: Run) -> list[tuple[list[tuple[str, str, str]], str | None]]:
    """Return what there is to say about each pattern in a sentence or two.

    These are the regions that change most ("lower" or "higher", their names, and by how much), and the variables that
    go with the pattern; None where none were looked at.
    """
    table, patterns = run.analyses.get("associations"), range(1, run.summary.n_patterns + 1)
    return [(_changes(run.results.patterns, pattern), related(table, pattern)) for pattern in patterns]


def _strongest(patterns: pd.DataFrame, pattern: int) -> pd.DataFrame:
    """Return the regions of one pattern, the largest change first."""
    return patterns[patterns["pattern"] == pattern].sort_values("change_sd", key=abs, ascending=False, kind="stable")


def _changes(patterns: pd.DataFrame, pattern: int) -> list[tuple[str, str, str]]:
    rows = _strongest(patterns, pattern).head(_MOST_REGIONS)
    rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
    pairs = pair_sides(patterns["region"].unique())
    found = []
    for direction, change in (("lower", rows[rows["change_sd"] < 0]), ("higher", rows[rows["change_sd"] > 0])):
        sides: dict[str, list[str]] = {}
        for region in change["region"]:
            side, name = pairs.get(region, ("", region))
            sides.setdefault(name, []).append(side)
        names = listed(f"{' and '.join(sorted(one))} {name}".strip() for name, one in sides.items())
        low, high = change["change_sd"].min(), change["change_sd"].max()
        size = number(low) if len(change) == 1 else interval(low, high)
        found += [(direction, names, size)] if len(change) else []
    return found


def maps_section(run: Run, gallery: Gallery) -> dict[str, object]:
    """Return the regions of each pattern."""
    table = run.results.patterns
    decomposed = "decomposed_sd" in table and bool(table["decomposed_sd"].notna().any())
    patterns = [_pattern(table, place, gallery, decomposed) for place in range(1, run.summary.n_patterns + 1)]
    return {"patterns": patterns, "decomposed": decomposed}


def _pattern(patterns: pd.DataFrame, place: int, gallery: Gallery, decomposed: bool) -> tuple[Picture, Table]:
    rows = _strongest(patterns, place)
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
    return picture, Table(f"All regions of pattern {place}, strongest first", columns, source="patterns.csv")


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
        limits(table["low"], table["high"], 1, title=run.results.measure.capitalize()),
        counts("Patients", table["n"]),
        measures("Mean z", table["mean"], 2, "+"),
        limits(table["mean_low"], table["mean_high"]),
    ]
    return {
        "picture": gallery.draw("dose_response", plots.dose_response(table), alt),
        "table": Table("Regions of patients by severity", columns, source="analysis/dose_response.csv"),
    }


def subgroups_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return sizes and regions of the subgroups, nothing where there are none."""
    sizes, effects = run.analyses.get("subgroup_sizes"), run.analyses.get("subgroups")
    if sizes is None:
        return None
    names = ("pattern " + sizes["pattern"].astype(str) + " " + sizes["level"])[~sizes["used"]]
    small = names.groupby(sizes["note"].replace("", "not compared"), sort=False)
    columns = [
        counts("Pattern", sizes["pattern"]),
        words("Level", sizes["level"]),
        words("Rule", sizes["rule"]),
        counts("Patients", sizes["n"]),
        words("Note", sizes["note"]),
    ]
    alt = (
        "Difference of each subgroup of patients from controls in its strongest regions, as Cohen's d; one panel "
        "per pattern. The table has the values."
    )
    picture = (
        gallery.draw("subgroups", plots.subgroup_dots(effects, sizes), alt)
        if effects is not None and effects["effect"].notna().any()
        else None
    )
    return {
        "sizes": Table("Subgroups of patients", columns),
        "small": [f"{note[:1].upper()}{note[1:]}: {listed(part)}." for note, part in small],
        "picture": picture,
        "effects": None if effects is None else _effects(effects),
    }


def _effects(effects: pd.DataFrame) -> Table:
    rows = effects.sort_values("effect", key=abs, ascending=False, kind="stable")
    columns = [
        counts("Pattern", rows["pattern"]),
        words("Level", rows["level"]),
        words("Region", rows["region"]),
        measures("d", rows["effect"], 2, "+"),
        limits(rows["low"], rows["high"]),
        measures("t", rows["t"]),
        probabilities("p", rows["p"]),
        probabilities("q", rows["q"]),
    ]
    caption = "Regions of the subgroups against controls, strongest first"
    return Table(caption, columns, source="analysis/subgroups.csv")
