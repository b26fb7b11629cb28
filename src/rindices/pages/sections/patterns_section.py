"""The sections on what patterns do to regions by severity, and in subgroups of patients."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.pages.elements import Table, counts, limits, listed, measures, probabilities, words
from rindices.pages.run_view import RunView


def dose_section(view: RunView) -> dict[str, object] | None:
    """Return the regions of patients at each severity, nothing where they were not looked at."""
    table = view.analyses.get("dose_response")
    if table is None:
        return None
    alt = (
        "Mean of the strongest regions in patients, in standard deviations of the controls, against severity; "
        "one panel per pattern. The table has the values."
    )
    columns = [
        counts("Pattern", table["pattern"]),
        words("Region", table["region"]),
        limits(table["low"], table["high"], 1, title=view.results.measure.capitalize()),
        counts("Patients", table["n"]),
        measures("Mean z", table["mean"], 2, "+"),
        limits(table["mean_low"], table["mean_high"]),
    ]
    return {
        "picture": view.gallery.draw("dose_response", plots.dose_response(table), alt),
        "table": Table("Regions of patients by severity", columns, source="analysis/dose_response.csv"),
    }


def subgroups_section(view: RunView) -> dict[str, object] | None:
    """Return sizes and regions of the subgroups, nothing where there are none."""
    sizes, effects = view.analyses.get("subgroup_sizes"), view.analyses.get("subgroups")
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
        view.gallery.draw("subgroups", plots.subgroup_dots(effects, sizes), alt)
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
