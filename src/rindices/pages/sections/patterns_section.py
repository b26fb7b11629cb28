"""The sections on what patterns do to regions by severity and in subgroups of patients, and what they resemble."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.pages.elements import Table, counts, limits, listed, measures, probabilities, words
from rindices.pages.run_view import RunView
from rindices.regions import known_columns


def dose_section(view: RunView) -> dict[str, object] | None:
    """Return the regions of patients at each severity, nothing where they were not looked at."""
    table = view.analyses.get("dose_response")
    if table is None:
        return None
    alt = (
        "Mean of the strongest regions in patients, in standard deviations of the controls, against severity; "
        "one panel per pattern. The table gives the values."
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
        "per pattern. The table gives the values."
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
    caption = "Regions of the subgroups compared with controls, strongest first"
    return Table(caption, columns, source="analysis/subgroups.csv")


_CLEAR = 0.025  # at 0.05, 9 of 100 unrelated maps pass: regions change places more freely than a smooth map turns
_MOST_NAMED = 3
_SUBCORTEX = "subcortex"


def resemblance_section(view: RunView) -> dict[str, object]:
    """Return how each pattern's map correlates with maps of disorders; why not, where no map is at hand."""
    table = view.analyses.get("resemblance")
    cortex = None if table is None else table[table["measure"] != _SUBCORTEX]
    if table is None or cortex is None or cortex.empty:
        return {"rows": None, "what": _what(view)}
    alt = "Correlation of each pattern with the case-control map of each disorder. The table gives the values."
    rows = [_row(part) for _, part in cortex.groupby(["pattern", "measure"], sort=False)]
    return {
        "rows": rows,
        "n_regions": int(cortex["n_regions"].min()),
        "picture": view.gallery.draw("resemblance", plots.disorder_dots(cortex), alt),
        "table": _table(cortex, "Patterns and disorders, cortical"),
        "subcortex": _subcortex(table[table["measure"] == _SUBCORTEX]),
    }


def _what(view: RunView) -> str:
    """Say what the table has instead of regions that there are maps of."""
    found = {column.measure for column in known_columns(view.region_names).values() if column.kind == "region"}
    known = sorted(found - {""})
    return f"{listed(known)} of regions" if known else "regions whose names do not indicate the measure"


def _row(part: pd.DataFrame) -> dict[str, object]:
    """Return the largest correlation of a pattern, and which are beyond chance, also given the mean of all maps."""
    first = part.sort_values("r", ascending=False).iloc[0]
    clear, beyond = (
        part[part[p] < _CLEAR].sort_values(r, ascending=False)["disorder"].head(_MOST_NAMED)
        for r, p in (("r", "p_corrected"), ("beyond", "beyond_p_corrected"))
    )
    return {"first": first.to_dict(), "disorders": listed(clear), "beyond": listed(beyond)}


def _table(rows: pd.DataFrame, caption: str) -> Table:
    columns = [
        counts("Pattern", rows["pattern"]),
        words("Measure", rows["measure"]),
        words("Disorder", rows["disorder"]),
        counts("Regions", rows["n_regions"]),
        measures("r", rows["r"], 2, "+"),
        probabilities("p", rows["p"]),
        probabilities("p, corrected", rows["p_corrected"]),
        measures("r beyond the mean", rows["beyond"], 2, "+"),
        probabilities("its p", rows["beyond_p"]),
        probabilities("its p, corrected", rows["beyond_p_corrected"]),
    ]
    return Table(caption, columns, source="analysis/resemblance.csv")


def _subcortex(rows: pd.DataFrame) -> Table | None:
    columns = [counts("Pattern", rows["pattern"]), words("Disorder", rows["disorder"])]
    columns += [counts("Structures", rows["n_regions"]), measures("r", rows["r"], 2, "+")]
    return Table("Patterns and disorders, subcortical", columns) if len(rows) else None
