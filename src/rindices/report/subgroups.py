"""The sections on groups of patients: mild to severe in one pattern, and change from visit to visit."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, Picture, listed
from rindices.report.read import RunResults
from rindices.report.tables import Table, count, limits, limits_column, make_table, measure, numbers, probability

DIFFERENCE = "patients less controls"  # as it stands in ``change_summary.csv``
_GROUPS = {"control": "Controls", "patient": "Patients", "other": "Others"}


def subgroups_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return sizes and regions of the subgroups, nothing where there are none."""
    sizes, effects = results.analyses.subgroup_sizes, results.analyses.subgroups
    if sizes is None:
        return None
    return {
        "sizes": _sizes(sizes),
        "small": _small(sizes),
        "picture": _picture(effects, sizes, gallery),
        "effects": None if effects is None else _effects(effects),
    }


def _small(sizes: pd.DataFrame) -> list[str]:
    """Return why some subgroups were not compared, one sentence for each reason."""
    groups: dict[str, list[str]] = {}
    for row in sizes[~sizes["used"]].to_dict("records"):
        groups.setdefault(str(row["note"]) or "not compared", []).append(f"R{row['pattern']} {row['level']}")
    return [f"{note[:1].upper()}{note[1:]}: {listed(names)}." for note, names in groups.items()]


def _sizes(sizes: pd.DataFrame) -> Table:
    rows = [
        [f"R{row['pattern']}", str(row["level"]), str(row["rule"]), count(row["n"]), str(row["note"])]
        for row in sizes.to_dict("records")
    ]
    return make_table("Subgroups of patients", ["Pattern", "Level", "Rule", *numbers("Patients"), "Note"], rows)


def _picture(effects: pd.DataFrame | None, sizes: pd.DataFrame, gallery: Gallery) -> Picture | None:
    if effects is None or not effects["effect"].notna().any():
        return None
    alt = (
        "Difference of each subgroup of patients from controls in its strongest regions, as Cohen's d; one panel "
        "per pattern. The table has the values."
    )
    return gallery.draw("subgroups", plots.subgroup_dots(effects, sizes), alt)


def _effects(effects: pd.DataFrame) -> Table:
    order = effects["effect"].abs().sort_values(ascending=False, kind="stable").index
    rows = [
        [
            f"R{row['pattern']}",
            str(row["level"]),
            str(row["region"]),
            measure(row["effect"], 2, "+"),
            limits(row["low"], row["high"]),
            measure(row["t"]),
            probability(row["p"]),
            probability(row["q"]),
        ]
        for row in effects.loc[order].to_dict("records")
    ]
    columns = ["Pattern", "Level", "Region", *numbers("d"), limits_column(), *numbers("t", "p", "q")]
    caption = "Regions of the subgroups against controls, strongest first"
    return make_table(caption, columns, rows, source="analysis/subgroups.csv")


def change_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return how R-indices change in a year, nothing without repeated visits."""
    change, summary = results.analyses.change, results.analyses.change_summary
    if change is None or summary is None:
        return None
    counted = _who_counts(change, summary)
    without = summary.loc[summary["n"] == 0, "group"].unique()
    rows = [
        [
            f"R{row['pattern']}",
            _GROUPS.get(row["group"], str(row["group"]).capitalize()),
            count(row["n"]),
            measure(row["mean"], 3, "+"),
            limits(row["low"], row["high"], 3),
            probability(row["p"]),
        ]
        for row in summary.to_dict("records")
    ]
    columns = ["Pattern", "Group", *numbers("People", "Change per year"), limits_column(), *numbers("p")]
    return {
        "n": len(change),
        "n_counted": len(counted),
        "years": change["years"].median(),
        "without": listed([_GROUPS.get(group, str(group)).lower() for group in without]),
        "compared": bool((summary["group"] == DIFFERENCE).any()),
        "picture": _change_picture(counted, summary, gallery),
        "table": make_table("Change of the R-indices per year", columns, rows),
    }


def _who_counts(change: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the people behind the means: as many of each group as the summary counts, seen over the longest time."""
    n_counted = summary.groupby("group")["n"].max()
    place = change.groupby("group")["years"].rank(method="first", ascending=False)
    return change[place <= change["group"].map(n_counted).fillna(0)]


def _change_picture(counted: pd.DataFrame, summary: pd.DataFrame, gallery: Gallery) -> Picture | None:
    if counted.empty:
        return None
    alt = (
        "Change of each R-index per year: each person faintly, and the mean of each group with its 95 % interval. "
        "The table has the values."
    )
    groups = summary[summary["group"].isin(_GROUPS) & (summary["n"] > 0)]
    return gallery.draw("change", plots.change_lines(counted, groups), alt)
