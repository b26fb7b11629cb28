"""From the results of a run to its analyses: who took part, associations, subgroups, dose and response, change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rindices import analysis
from rindices.core import inference
from rindices.estimator import SurrealGAN
from rindices.preprocessing import SCALED_SD
from rindices.record import Results
from rindices.settings import OutputSettings

__all__ = ["Roles", "analyse"]

_SEVERITIES = (0.25, 0.5, 0.75)  # besides 1, which the patterns themselves show
_MOST_CARDS = 3000  # a report with a card for more people would be too large to open


@dataclass(frozen=True)
class Roles:
    """What the columns of `Results.variables` are: covariates were removed, clinical scores are to be explained.

    Attributes
    ----------
    covariates, clinical
        Names of columns.
    trained
        Whether covariates were removed as they are in these very controls, and not in those of another table.
    """

    covariates: Sequence[str] = ()
    clinical: Sequence[str] = ()
    trained: bool = True


def analyse(
    model: SurrealGAN, results: Results, roles: Roles, limits: tuple[float, float] = OutputSettings.limits
) -> dict[str, pd.DataFrame]:
    """Return all analyses that the people of `results` allow, by the names of their files.

    Parameters
    ----------
    model
        The model that scored them.
    results
        The tables of a run.
    roles
        Which variables are covariates and which are clinical scores.
    limits
        R-indices below the first are low, above the second high.

    Returns
    -------
    dict of DataFrame
        ``flow``, and where there is enough to tell: ``associations``, ``subgroup_sizes``, ``subgroups``,
        ``group_check``, ``dose_response``, ``change``, ``change_summary``; ``severities`` and ``drivers``.
    """
    tables = {"flow": analysis.flow_table(results.people)}
    # A person counts once: later visits are in `change` only.
    first = results.first_visit
    scores, z_scores, variables = (table[first] for table in (results.scores, results.z_scores, results.variables))
    group = results.r_indices["group"][first]
    patients, controls = (group == "patient").to_numpy(), (group == "control").to_numpy()
    if roles.clinical:
        tables["associations"] = _associations(scores, variables, roles, patients)
    if patients.any() and controls.sum() > 1:
        low, high = limits
        tables["subgroup_sizes"] = analysis.subgroup_sizes(scores, group, low=low, high=high)
        tables["subgroups"] = analysis.subgroup_effects(z_scores, scores, group, low=low, high=high)
        background = variables.drop(columns=list(roles.clinical))
        if background.shape[1]:
            removed = roles.covariates if roles.trained else ()
            tables["group_check"] = analysis.group_check(scores, background, group, removed)
    if patients.any():
        tables["dose_response"] = analysis.dose_response(z_scores, scores, group, results.patterns)
    if "years" in results.r_indices and results.r_indices["years"].notna().any():
        rows = results.r_indices
        change = analysis.change_per_year(results.scores, rows["participant_id"], rows["years"], rows["group"])
        tables["change"], tables["change_summary"] = change
    tables["severities"] = _severities(model, results)
    tables["drivers"] = _drivers(model, results)
    return {name: table for name, table in tables.items() if len(table)}


def _associations(scores: pd.DataFrame, variables: pd.DataFrame, roles: Roles, patients: np.ndarray) -> pd.DataFrame:
    clinical = variables[list(roles.clinical)]
    covariates = variables[list(roles.covariates)] if roles.covariates else None
    parts = []
    for people, rows in (("patients", patients), ("everybody", np.ones(len(scores), dtype=bool))):
        given = None if covariates is None else covariates[rows]
        if rows.any():
            parts.append(analysis.associations(scores[rows], clinical[rows], given, people=people))
    return pd.concat(parts, ignore_index=True)


def _severities(model: SurrealGAN, results: Results) -> pd.DataFrame:
    """Return what each pattern does to controls at growing severity: region, pattern, severity, change_sd."""
    controls = (results.r_indices["group"] == "control").to_numpy() & results.first_visit
    brains = 1 + SCALED_SD * results.z_scores.to_numpy()[controls if controls.any() else slice(None)]
    parts = [results.patterns[["region", "pattern", "change_sd"]].assign(severity=1.0)]
    for severity in _SEVERITIES:
        changes = inference.pattern_changes(model.models_, brains, model.preset_.training.composition, severity)
        wide = pd.DataFrame(changes.mean(axis=0) / SCALED_SD, columns=list(results.z_scores.columns))
        long = wide.rename_axis("pattern").reset_index().melt("pattern", var_name="region", value_name="change_sd")
        parts.append(long.assign(pattern=long["pattern"] + 1, severity=severity))
    table = pd.concat(parts, ignore_index=True)[["region", "pattern", "severity", "change_sd"]]
    return table.sort_values(["pattern", "severity"], kind="stable", ignore_index=True)


def _drivers(model: SurrealGAN, results: Results) -> pd.DataFrame:
    """Return the regions behind each person's R-indices, for as many people as a report can show: patients first."""
    order = np.argsort((results.r_indices["group"] != "patient").to_numpy(), kind="stable")
    rows = np.sort(order[:_MOST_CARDS])
    z_scores = results.z_scores.iloc[rows]
    changes = inference.decompose(model.models_, 1 + SCALED_SD * z_scores.to_numpy()) / SCALED_SD
    who = results.r_indices.iloc[rows]
    return analysis.drivers(changes, z_scores, who["participant_id"], who.get("visit"))
