"""The sections on what patterns do to regions: in short, by pattern, by severity, and in subgroups of patients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from rindices import plots
from rindices.pages.elements import (
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
from rindices.pages.run_view import RunView
from rindices.pages.sections.brain_section import brains_of, has_outlines
from rindices.pages.sections.clinical_section import related
from rindices.regions import pair_sides

_MOST_REGIONS = 6  # in a sentence
_SHARE_OF_STRONGEST = 0.5
_LARGEST_Q = 0.05
_FEW = 20  # people of a group: fewer are not summed up
_TOP_REGIONS = 12
_HALF_WIDTH = 6.2  # inches: the brain stands beside


def overview_section(view: RunView) -> dict[str, object]:
    """Return the figure that sums up the run, and what there is to say about each pattern."""
    people, summary = view.results.first_visits, view.summary
    training = _training(view)
    figure = plots.pattern_overview(
        view.results.patterns, people, view.region_names, training, brains=has_outlines(view.run)
    )
    alt = (
        f"A row for each pattern: its regions on the brain, {view.results.measures} of each group, and the three "
        "regions that change most. The sentences below say the same."
    )
    return {
        "picture": view.gallery.draw("overview", figure, alt),
        "training": training is not None,
        "patterns": [
            {
                "changes": _changes(view.results.patterns, place, view.region_names),
                "related": related(view.analyses.get("associations"), place),
                "groups": _groups(people, name),
            }
            for place, name in enumerate(view.results.score_names[: summary.n_patterns], start=1)
        ],
    }


def _training(view: RunView) -> pd.DataFrame | None:
    """Return the severities of the people a model was trained with, as their centiles; None where they are unknown."""
    parts = [
        pd.DataFrame(np.transpose(known), columns=view.results.score_names).assign(group=group)
        for group, known in view.summary.training.items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def _groups(people: pd.DataFrame, name: str) -> dict[str, float] | None:
    """Return the medians of both groups, and how often a patient lies above a control; None where they are too few."""
    controls, patients = (people.loc[people["group"] == group, name].dropna() for group in ("control", "patient"))
    if min(len(controls), len(patients)) < _FEW:
        return None
    above = mannwhitneyu(patients, controls).statistic / (len(patients) * len(controls))
    return {"controls": controls.median(), "patients": patients.median(), "above": float(above)}


def _changes(patterns: pd.DataFrame, pattern: int, names: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the regions that change most: "lower" or "higher", their names, and by how much."""
    own = patterns[patterns["pattern"] == pattern]
    rows = own.sort_values("change_sd", key=abs, ascending=False, kind="stable").head(_MOST_REGIONS)
    rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
    pairs = pair_sides(patterns["region"].unique())
    found = []
    for direction, change in (("lower", rows[rows["change_sd"] < 0]), ("higher", rows[rows["change_sd"] > 0])):
        sides: dict[str, list[str]] = {}
        for region in change["region"]:
            side, _ = pairs.get(region, ("", region))
            sides.setdefault(names[region].removeprefix(f"{side} "), []).append(side)
        said = listed(f"{' and '.join(sorted(one))} {name}".strip() for name, one in sides.items())
        low, high = change["change_sd"].min(), change["change_sd"].max()
        size = number(low) if len(change) == 1 else interval(low, high)
        found += [(direction, said, size)] if len(change) else []
    return found


def maps_section(view: RunView) -> dict[str, object]:
    """Return the regions of each pattern, on the brain and in their order."""
    table = view.results.patterns
    decomposed = "decomposed_sd" in table and bool(table["decomposed_sd"].notna().any())
    brains = brains_of(view)
    patterns = [
        (brains.drawn.get(place, []), *_pattern(view, place, decomposed))
        for place in range(1, view.summary.n_patterns + 1)
    ]
    return {"patterns": patterns, "decomposed": decomposed, "brains": brains}


def _pattern(view: RunView, place: int, decomposed: bool) -> tuple[Picture, Table]:
    patterns, names = view.results.patterns, view.region_names
    rows = patterns[patterns["pattern"] == place]
    rows = rows.sort_values("change_sd", key=abs, ascending=False, kind="stable")
    first = rows.iloc[0]
    alt = (
        f"The regions that change most in pattern {place}, left and right as two marks; the strongest is "
        f"{names[first['region']]} with {number(first['change_sd'], 2, '+')} sd of controls. The table has all values."
    )
    columns = [
        words("Region", rows["region"]),
        words("Full name", rows["region"].map(names)),
        measures("Change (sd)", rows["change_sd"], 2, "+"),
        measures("Spread (sd)", rows["spread_sd"]),
        measures("Change (%)", rows["change_percent"], 1, "+"),
    ]
    if decomposed:
        columns.append(measures("In patients (sd)", rows["decomposed_sd"], 2, "+"))
        columns.append(measures("Spread of that (sd)", rows["decomposed_spread_sd"]))
    figure = plots.pattern_dots(patterns, place, _TOP_REGIONS, names, _HALF_WIDTH)
    picture = view.gallery.draw(f"pattern_{place}", figure, alt)
    return picture, Table(f"All regions of pattern {place}, strongest first", columns, source="patterns.csv")


def differences_section(view: RunView) -> dict[str, object] | None:
    """Return how patients differ from controls in each region, which does not depend on patterns."""
    table = view.analyses.get("region_differences")
    if table is None:
        return None
    rows = table.sort_values("difference", key=abs, ascending=False, kind="stable")
    columns = [
        words("Region", rows["region"]),
        words("Full name", rows["region"].map(view.region_names)),
        measures("Difference (sd)", rows["difference"], 2, "+"),
        limits(rows["low"], rows["high"]),
        probabilities("p", rows["p"]),
        probabilities("q", rows["q"]),
    ]
    clear = rows[rows["q"] < _LARGEST_Q]
    return {
        "n": len(rows),
        "n_clear": len(clear),
        "strongest": None if clear.empty else (view.region_names[clear["region"].iloc[0]], clear.iloc[0]),
        "table": Table("Patients less controls, largest first", columns, source="analysis/region_differences.csv"),
    }


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
