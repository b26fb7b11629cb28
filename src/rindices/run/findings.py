"""What a model says about people: R-indices, the tables of a run, and their analyses.

Analyses are who took part, associations, subgroups, dose and response, and change.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from rindices import analysis
from rindices.cohort import Cohort, People
from rindices.core import inference
from rindices.errors import OutsideTraining
from rindices.estimator import Scaled, SurrealGAN
from rindices.preprocessing import SCALED_SD
from rindices.record import Results, Summary

__all__ = ["analyse", "r_indices_of", "results_of"]

_FEW_CONTROLS = 10  # with fewer, a pattern's mean change would be theirs rather than that of controls
_SEVERITIES = (0.25, 0.5, 0.75)  # besides 1, which the patterns themselves show
_MOST_CARDS = 3000  # a report with a card for more people would be too large to open


def results_of(model: SurrealGAN, people: Cohort | People) -> Results:
    """Score the people of a cohort, or new people, and say what the patterns do to their regions."""
    scaled = _scaled(model, people)
    r_indices = r_indices_of(model, people, scaled)
    if isinstance(people, Cohort):
        background, everybody = people.background, people.people
    else:
        who = r_indices.filter(["participant_id", "visit", "years", "first_visit", "diagnosis", "group"])
        scored = who.assign(used=True, reason="", distance=np.nan, flags=r_indices["flags"])
        everybody = pd.concat([scored, people.left_out]) if len(people.left_out) else scored
        background = people.covariates
    variables = {str(name): table[name].to_numpy() for table in (background, people.clinical) for name in table}
    # Patterns are read from people as they were trained on: whoever comes again counts once.
    group = np.where(r_indices.get("first_visit", True), r_indices["group"], "other")
    return Results(
        r_indices=r_indices,
        z_scores=pd.DataFrame(model.z_scores(scaled), columns=list(people.features.columns)),
        variables=pd.DataFrame(variables, index=range(len(r_indices))),
        patterns=_patterns(model, scaled, group),
        people=everybody.reset_index(drop=True),
    )


def r_indices_of(model: SurrealGAN, people: Cohort | People, scaled: Scaled | None = None) -> pd.DataFrame:
    """Score people, and no more: the table ``r_indices.csv``. `scaled` is what the networks see, if that is known."""
    who: dict[str, object] = {"participant_id": people.features.index}
    if people.visit is not None:
        years = np.nan if people.years is None else people.years.to_numpy()
        who |= {"visit": people.visit.to_numpy(), "years": years, "first_visit": people.first_visit}
    who |= {"diagnosis": people.diagnosis.to_numpy(), "group": people.group.to_numpy()}
    values = np.hstack(model.transform_with_spread(scaled or _scaled(model, people)))
    names = [str(name) for name in model.get_feature_names_out()]
    scores = pd.DataFrame(values, columns=[*names, *(f"{name}_sd" for name in names)])
    flags = people.flags if isinstance(people, People) else people.people["flags"][people.people["used"].astype(bool)]
    return pd.concat([pd.DataFrame(who), scores], axis=1).assign(flags=flags.to_numpy())


def _scaled(model: SurrealGAN, people: Cohort | People) -> Scaled:
    """Preprocess people, once for all that is asked about them; people of new sites are not corrected for site."""
    covariates = model.preprocessing_.leave_new_sites(people.covariates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTraining)  # their flags say so
        return model.prepare(people.features, covariates if covariates.shape[1] else None)


def _patterns(model: SurrealGAN, people: Scaled, group: np.ndarray) -> pd.DataFrame:
    """Return what each pattern does to each region: as f makes it of controls, and as g₁ sees it in patients."""
    controls, patients = group == "control", group == "patient"
    # Among new people there may be no controls; then the patterns are shown in everybody.
    table = model.pattern_maps(people.of(controls) if controls.sum() >= _FEW_CONTROLS else people)
    if patients.sum() < 2:
        return table.assign(decomposed_sd=np.nan, decomposed_percent=np.nan, decomposed_spread_sd=np.nan)
    return table.merge(model.decomposed_maps(people.of(patients)), on=["region", "pattern"], how="left", sort=False)


def analyse(model: SurrealGAN, results: Results, summary: Summary) -> dict[str, pd.DataFrame]:
    """Return all analyses that the people of `results` allow, by the names of their files.

    Parameters
    ----------
    model
        The model that scored them.
    results
        The tables of a run.
    summary
        Says which variables are covariates and which are clinical scores, the limits of the subgroups, and whether
        the model is of other people: covariates were not removed as they are in these very controls then.

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
    if summary.clinical:
        tables["associations"] = _associations(scores, variables, summary, patients)
    if patients.any() and controls.sum() > 1:
        low, high = summary.subgroup_limits
        tables["subgroup_sizes"] = analysis.subgroup_sizes(scores, group, low=low, high=high)
        tables["subgroups"] = analysis.subgroup_effects(z_scores, scores, group, low=low, high=high)
        background = variables.drop(columns=list(summary.clinical))
        if background.shape[1]:
            removed = () if summary.applied else summary.covariates
            tables["group_check"] = analysis.group_check(scores, background, group, removed)
    if patients.any():
        tables["dose_response"] = analysis.dose_response(z_scores, scores, group, results.patterns)
    if "years" in results.r_indices and results.r_indices["years"].notna().any():
        rows = results.r_indices
        change = analysis.change_per_year(results.scores, rows["participant_id"], rows["years"], rows["group"])
        tables["change"], tables["change_summary"] = change
    tables |= {"severities": _severities(model, results), "drivers": _drivers(model, results)}
    return {name: table for name, table in tables.items() if len(table)}


def _associations(
    scores: pd.DataFrame, variables: pd.DataFrame, summary: Summary, patients: np.ndarray
) -> pd.DataFrame:
    clinical, covariates = variables[list(summary.clinical)], variables[list(summary.covariates)]
    everybody = np.ones(len(scores), dtype=bool)
    parts = [
        analysis.associations(
            scores[rows], clinical[rows], covariates[rows] if summary.covariates else None, people=people
        )
        for people, rows in (("patients", patients), ("everybody", everybody))
        if rows.any()
    ]
    return pd.concat(parts, ignore_index=True)


def _severities(model: SurrealGAN, results: Results) -> pd.DataFrame:
    """Return what each pattern does to controls at growing severity: region, pattern, severity, change_sd."""
    controls = (results.r_indices["group"] == "control").to_numpy() & results.first_visit
    brains = 1 + SCALED_SD * results.z_scores.to_numpy()[controls if controls.any() else slice(None)]
    maps = {severity: model.pattern_maps(Scaled(brains, None), severity=severity) for severity in _SEVERITIES}
    parts = [table.assign(severity=severity) for severity, table in ({1.0: results.patterns} | maps).items()]
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
