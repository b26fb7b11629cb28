"""The first screen: one figure of all patterns, and in a sentence or two what there is to say about each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from rindices import plots
from rindices.pages.elements import interval, listed, number
from rindices.pages.run_view import RunView
from rindices.pages.sections.brain_section import has_outlines
from rindices.pages.sections.clinical_section import related
from rindices.plots.region_names import pair_sides

_MOST_REGIONS = 6  # in a sentence
_SHARE_OF_STRONGEST = 0.5
_FEW = 20  # people of a group: fewer are not summed up


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
