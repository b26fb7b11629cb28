"""Scores of people by a model: R-indices and severities, the tables of a run, and their analyses.

Analyses cover who took part, group differences, associations, subgroups, dose and response, change, and prognosis.
"""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pandas as pd

from rindices import analysis
from rindices.cohort import Cohort, People
from rindices.core import inference
from rindices.estimator import SurrealGAN
from rindices.preprocessing import SCALED_SD
from rindices.problems import OutsideTraining
from rindices.record import Results, Summary
from rindices.scoring.consensus_and_person import Scaled, person_columns, person_flags
from rindices.scoring.intervals import Noise, change_limits, fit_curves, has_intervals, paired_readings
from rindices.scoring.severity_and_reference import CENTILES, DOSES, KNOTS
from rindices.settings import OutputSettings

_FEW_CONTROLS = 10  # with fewer, a pattern's mean change would be peculiar to them
_AT = "change_sd_at_"  # prefix of maps that a model keeps for severities below 1
_SEVERITIES = (0.25, 0.5, 0.75)  # besides 1, which the patterns themselves show
_MOST_CARDS = 3000  # a report with a card for more people would be too large to open


def results_of(model: SurrealGAN, people: Cohort | People, level: float = OutputSettings.level) -> Results:
    """Score a cohort or new people, and estimate how each pattern changes their regions."""
    scaled = _scaled(model, people)
    r_indices = scores_of(model, people, level, scaled)
    if isinstance(people, Cohort):
        background, everybody = people.background, people.people
    else:
        scored = r_indices.filter(["participant_id", "visit", "diagnosis", "group"]).assign(
            used=True, reason="", distance=np.nan, flags=r_indices["flags"]
        )
        everybody = pd.concat([scored, people.left_out]) if len(people.left_out) else scored
        background = people.covariates
    variables = {str(name): table[name].to_numpy() for table in (background, people.clinical) for name in table}
    return Results(
        r_indices=r_indices,
        z_scores=pd.DataFrame(model.z_scores(scaled), columns=list(people.features.columns)),
        variables=pd.DataFrame(variables, index=range(len(r_indices))),
        # As in training, patterns are estimated from first visits: each person counts once.
        patterns=_patterns(model, scaled, np.where(r_indices.get("first_visit", True), r_indices["group"], "other")),
        people=everybody.reset_index(drop=True),
        gaps=scaled.gaps,
    )


def scores_of(
    model: SurrealGAN, people: Cohort | People, level: float = OutputSettings.level, scaled: Scaled | None = None
) -> pd.DataFrame:
    """Return the scores of people alone: the table ``r_indices.csv``.

    Controls of the training cohort are scored by repetitions that were not trained on them. Columns that the model
    cannot provide are omitted, such as intervals and centiles of imported models.

    Parameters
    ----------
    model
        The model.
    people
        Its training cohort, or new people.
    level
        Level of the intervals of severities.
    scaled
        Input of the networks, if already computed.
    """
    who: dict[str, object] = {"participant_id": people.features.index}
    if people.visit is not None:
        who |= {
            "visit": people.visit.to_numpy(),
            "years": np.nan if people.years is None else people.years.to_numpy(),
            "first_visit": people.first_visit,
        }
    who |= {"diagnosis": people.diagnosis.to_numpy(), "group": people.group.to_numpy()}
    scaled = scaled or _scaled(model, people)
    scores = model.scores(scaled)
    if model.scale_.reference is not None and isinstance(people, Cohort):
        scores = scores._replace(r_indices=_as_unseen(model, people, scaled, scores.r_indices))
    columns = person_columns(model.scale_, scores, level, model.network_r_indices(scaled))
    if isinstance(people, Cohort):  # whose controls the model already knows
        flags = people.people["flags"][people.people["used"].astype(bool)].tolist()
    else:
        columns |= {} if model.familiar_ is None else {"strangeness": model.strangeness(scaled)}
        flags = person_flags(model, scaled, people.flags, columns.get("strangeness", np.zeros(len(scaled.values))))
    return pd.concat([pd.DataFrame(who), pd.DataFrame(columns, index=range(len(scaled.values)))], axis=1).assign(
        flags=flags
    )


def _as_unseen(model: SurrealGAN, people: Cohort, scaled: Scaled, r_indices: np.ndarray) -> np.ndarray:
    """Return R-indices in which all visits of a control are scored by repetitions not trained on that person.

    If only the first visit were scored this way and the others by all repetitions, controls would seem to recover.
    """
    honest, training = np.full(r_indices.shape, np.nan), people.training
    honest[training] = model.held_out_r_indices_
    learned = pd.Series(np.arange(training.sum()), people.features.index[training])[~np.isnan(honest[training, 0])]
    first = learned.reindex(people.features.index).to_numpy(float)
    later = ~training & ~np.isnan(first)
    if later.any():
        honest[later] = model.held_out_again(scaled.of(later), first[later].astype(int))
    return np.where(np.isnan(honest), r_indices, honest)


def store_training_results(model: SurrealGAN, results: Results) -> None:
    """Store the results of the training people in the model, for reports on whoever is scored later."""
    tables = {str(name): results.patterns[name] for name in results.patterns if name not in ("region", "pattern")}
    for severity, rows in _severities(model, results).groupby("severity"):
        tables |= {f"{_AT}{severity}": rows["change_sd"]} if severity != 1 else {}
    model.maps_ = {
        name: of.to_numpy(float).reshape(model.n_patterns, -1) for name, of in tables.items() if np.isfinite(of).all()
    }
    patients = results.r_indices[(results.r_indices["group"] == "patient") & results.first_visit]
    model.scale_ = replace(
        model.scale_,
        patients=np.quantile(patients[[f"r{k + 1}" for k in range(model.n_patterns)]], CENTILES, axis=0).T,
    )


def _scaled(model: SurrealGAN, people: Cohort | People) -> Scaled:
    """Preprocess people, once for all results; people from new sites are not corrected for site."""
    covariates = model.preprocessing_.leave_new_sites(people.covariates)
    with warnings.catch_warnings(action="ignore", category=OutsideTraining):  # their flags say so
        # A cohort was checked on reading, with all values of its table.
        return model.prepare(
            people.features, covariates if covariates.shape[1] else None, checked=isinstance(people, Cohort)
        )


def _patterns(model: SurrealGAN, people: Scaled, group: np.ndarray) -> pd.DataFrame:
    """Return the change of each region with each pattern: generated by f in controls, decomposed by g₁ in patients.

    These are the maps of the training people if the model has stored them, otherwise of these people.
    """
    if model.maps_:
        return _stored(
            model,
            *("change_sd", "change_percent", "spread_sd"),
            *("decomposed_sd", "decomposed_percent", "decomposed_spread_sd"),
        )
    controls, patients = group == "control", group == "patient"
    # New people may include too few controls; then the patterns are shown in everyone.
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
        Names the covariates and clinical scores, the limits of the subgroups, and whether the model was trained on
        other people, in which case covariate effects were not estimated in these controls.

    Returns
    -------
    dict of DataFrame
        ``flow``, and where the data suffice: ``associations``, ``group_effects``, ``subgroup_sizes``,
        ``subgroups``, ``group_check``, ``dose_response``, ``change``, ``scan_noise``, ``change_summary``;
        ``prognosis``, ``survival_curves``, ``resemblance``, ``severities`` and ``drivers``.
    """
    tables = {"flow": analysis.flow_table(results.people)}
    # Each person counts once: later visits are used for `change` only.
    first = results.first_visit
    scores, z_scores, variables = (table[first] for table in (results.scores, results.z_scores, results.variables))
    if results.gaps is not None:  # a region that was measured in nobody is not a finding
        z_scores = z_scores.loc[:, ~results.gaps[first].all(axis=0)]
    group = results.r_indices["group"][first]
    patients, controls = (group == "patient").to_numpy(), (group == "control").to_numpy()
    if summary.clinical:
        tables["associations"] = _associations(results, summary, patients)
    if patients.any() and controls.sum() > 1:
        tables["group_effects"] = analysis.group_effects(z_scores, group, variables.filter(list(summary.covariates)))
        low, high = summary.subgroup_limits
        tables["subgroup_sizes"] = analysis.subgroup_sizes(scores, group, low=low, high=high)
        tables["subgroups"] = analysis.subgroup_effects(z_scores, scores, group, low=low, high=high)
        background = variables.drop(columns=[*summary.clinical, *summary.follow_up.values()])
        if background.shape[1]:
            # Division by head size need not remove its effect, so what remains is tested.
            size = summary.correction.proportion
            removed = [name for name in summary.covariates if name != size and not summary.applied]
            differing = [str(row["variable"]) for row in summary.balance or () if row["imbalanced"]]
            imbalanced = None if summary.balance is None else differing
            tables["group_check"] = analysis.group_check(scores, background, group, removed, imbalanced)
    if patients.any():
        tables["dose_response"] = analysis.dose_response(
            z_scores, scores, group, results.patterns[results.patterns["region"].isin(z_scores.columns)]
        )
    tables |= change_of(model, results, summary)
    if "change" in tables:
        tables["change_summary"] = analysis.group_change(results.scores, *_people_of_training(results))
    if summary.follow_up:
        tables |= _prognosis(results, summary)
    tables["resemblance"] = analysis.resemblance(results.patterns)
    tables |= {"severities": _severities(model, results), "drivers": _drivers(model, results)}
    return {name: table for name, table in tables.items() if len(table)}


def change_of(model: SurrealGAN, results: Results, summary: Summary) -> dict[str, pd.DataFrame]:
    """Return the change of each person with repeat visits, and the scan noise that decides whether it is reliable.

    Returns
    -------
    dict of DataFrame
        ``change``, and ``scan_noise``: ``pattern``, ``source`` ("controls", "given" or "unknown"), ``n_controls`` with
        repeat visits, ``freedom``, the most ``years`` between their scans, and ``sd``, the root mean square over the
        visits of the people in ``change``. Empty if nobody came again, or if times are unknown.
    """
    if "years" not in results.r_indices or results.r_indices["years"].isna().all():
        return {}
    scores, scans = results.scores, analysis.scan_noise(results.z_scores, *_people_of_training(results))
    source, freedom, noise = "unknown", np.nan, np.full(scores.shape, np.nan)
    if summary.scan_noise:
        source, noise = "given", np.broadcast_to(np.array(summary.scan_noise), scores.shape)
    elif scans.freedom:
        source, freedom, noise = "controls", float(scans.freedom), _noise_sd(model, results, scans)
    change = analysis.change_per_year(
        scores,
        *_people_of_training(results),
        noise,
        freedom=np.inf if source == "given" else freedom,
        level=summary.level,
    )
    if not len(change):
        return {}
    change = _with_true_change(model, results, change, scans if source == "controls" else None, noise, summary.level)
    came_again = results.r_indices["participant_id"].isin(change["participant_id"]).to_numpy()
    about = {
        "pattern": np.arange(scores.shape[1]) + 1,
        "source": source,
        "n_controls": scans.n_controls,
        "freedom": freedom,
        "years": scans.years,
        "sd": np.sqrt(pd.DataFrame(noise[came_again] ** 2).mean()),
    }
    return {"change": change, "scan_noise": pd.DataFrame(about)}


def _with_true_change(
    model: SurrealGAN,
    results: Results,
    change: pd.DataFrame,
    scans: analysis.ScanNoise | None,
    given: np.ndarray,
    level: float,
) -> pd.DataFrame:
    """Return changes with intervals for the true changes; NaN if severities have none, or the noise is unknown."""
    names = results.score_names
    change = change.assign(
        **{f"{name}_{end}": np.nan for name in names for end in ("change_low", "change_high", "reliable")}
    )
    sd = np.zeros(len(names)) if scans is not None else given[0]
    if not has_intervals(model.scale_, len(model.members_)) or np.isnan(sd).any():
        return change
    healthy = (results.r_indices["group"] == "control").to_numpy() & results.first_visit
    z_scores = results.z_scores.to_numpy()[healthy if healthy.sum() >= _FEW_CONTROLS else slice(None)]
    noise = Noise(None, np.inf, sd) if scans is None else Noise(scans.vectors, scans.freedom, sd)
    composition, seed = model.preset_.training.composition, model.seed_ or 0
    readings = paired_readings(
        model.models_, model.scale_, 1 + SCALED_SD * z_scores, composition, model.correlation_, noise, seed
    )
    centres = results.scores.groupby(results.r_indices["participant_id"].to_numpy()).mean()
    centres = centres.reindex(change["participant_id"])
    for place, name in enumerate(names):
        own = change[f"{name}_change"].to_numpy()
        low, high = change_limits(readings[place], own, centres[name].to_numpy(), level, noise.freedom)
        change[f"{name}_change_low"], change[f"{name}_change_high"] = low, high
        change[f"{name}_reliable"] = np.where(np.isnan(low), np.nan, 1.0 * (low > 0) - (high < 0))
    return change


def _people_of_training(results: Results) -> tuple[pd.Series, pd.Series, pd.Series]:
    return results.r_indices["participant_id"], results.r_indices["years"], results.r_indices["group"]


def _noise_sd(model: SurrealGAN, results: Results, noise: analysis.ScanNoise) -> np.ndarray:
    """Return the sd of severities due to scan noise, ``(visits, patterns)``, in people with repeat visits.

    R-indices are nearly linear in the regions over the range of the noise; severities, which are bounded by 0 and the
    largest dose, are not. A person's noise is that of the most severe visit with any: at 0 there seems to be none, and
    beyond the largest dose it cannot be known.
    """
    whose = results.r_indices["participant_id"]
    rows = whose.duplicated(keep=False).to_numpy()
    slopes = inference.slopes(model.models_, 1 + SCALED_SD * results.z_scores.to_numpy()[rows])
    sd = np.sqrt(((SCALED_SD * slopes @ noise.vectors.T) ** 2).sum(axis=-1) / noise.freedom)
    noise_sd, scores = np.full(results.scores.shape, np.nan), results.scores.reset_index(drop=True)
    own = results.r_indices.filter(regex=r"^r\d+$").to_numpy(float)[rows]
    low, middle, high = (model.scale_.severities(own + side * sd) for side in (-1, 0, 1))
    noise_sd[rows] = np.where(high < DOSES[-1], (high - low) / 2, np.where(low < DOSES[-1], middle - low, np.nan))
    highest = scores.where(noise_sd > 0, -1).groupby(whose.to_numpy()).transform("idxmax").to_numpy()
    noise_sd = np.take_along_axis(noise_sd, highest.astype(int), axis=0)
    return np.where(noise_sd > 0, noise_sd, np.nan)  # unknown if all visits are at 0


def _associations(results: Results, summary: Summary, patients: np.ndarray) -> pd.DataFrame:
    """Associate clinical scores with severities and, for comparison, with how small the brain is as a whole.

    `whole_brain` is the coefficient of the controls' first component; `beyond`, of the severity adjusted for it.
    """
    first, who = results.first_visit, results.r_indices["group"].to_numpy()[results.first_visit]
    scores, variables, z = (of[first] for of in (results.scores, results.variables, results.z_scores))
    clinical, covariates = variables[list(summary.clinical)], variables[list(summary.covariates)]
    whole = analysis.whole_brain(z, who == "control" if (who == "control").sum() > 1 else np.ones(len(z), bool))
    parts = []
    for people, rows in (("patients", patients), ("everybody", np.ones(len(scores), dtype=bool))):
        if not rows.any():
            continue
        own, total = scores[rows], pd.DataFrame({"whole_brain": whole[rows]})
        table = analysis.associations(
            own, clinical[rows], covariates[rows] if summary.covariates else None, people=people
        )
        alone = analysis.associations(total, clinical[rows]).set_index("variable")
        beyond = analysis.associations(own, clinical[rows], total)
        table[["whole_brain", "whole_brain_q"]] = alone.loc[table["variable"], ["coefficient", "q"]].to_numpy()
        for end in ("", "_low", "_high", "_q"):
            table[f"beyond{end}"] = beyond[f"partial{end}"]
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _prognosis(results: Results, summary: Summary) -> dict[str, pd.DataFrame]:
    """Relate severities at the first visit to outcomes, without controls unless nobody else had the event."""
    first, site = results.first_visit, summary.correction.site
    variables, scores = (of[first].reset_index(drop=True) for of in (results.variables, results.scores))
    columns = {name: variables[column].to_numpy(float) for name, column in summary.follow_up.items()}
    follow_up = analysis.FollowUp(
        columns["time"],
        columns["event"],
        columns.get("entry"),
        columns.get("last_without"),
        columns.get("competing"),
        None if site is None else variables[site].to_numpy(object),
    )
    people = (results.r_indices["group"][first] != "control").to_numpy()
    if not (people & (columns["event"] == 1)).any():
        people = np.ones(len(people), bool)
    covariates = variables[[name for name in summary.covariates if name != site]]
    own = (scores[people], follow_up.of(people))
    return {
        "prognosis": analysis.prognosis(*own, covariates[people]),
        "survival_curves": analysis.survival_curves(*own),
    }


def _stored(model: SurrealGAN, *columns: str) -> pd.DataFrame:
    """Return columns of the maps that a model keeps from training, with one row per pattern and region."""
    regions, patterns = list(model.contract_.features), np.arange(model.n_patterns) + 1
    who = {"region": regions * len(patterns), "pattern": np.repeat(patterns, len(regions))}
    unknown = np.full((len(patterns), len(regions)), np.nan)
    return pd.DataFrame(who | {name: model.maps_.get(name, unknown).ravel() for name in columns})


def _severities(model: SurrealGAN, results: Results) -> pd.DataFrame:
    """Return how each pattern changes controls at increasing severity: region, pattern, severity, change_sd."""
    if model.maps_:
        names = {f"{_AT}{severity}": severity for severity in _SEVERITIES} | {"change_sd": 1.0}
        wide = _stored(model, *names).rename(columns=names)
        table = wide.melt(["region", "pattern"], var_name="severity", value_name="change_sd")
    else:
        controls = (results.r_indices["group"] == "control").to_numpy() & results.first_visit
        brains = Scaled(1 + SCALED_SD * results.z_scores.to_numpy()[controls if controls.any() else slice(None)], None)
        curves = fit_curves(model.models_, brains.values, model.preset_.training.composition)
        parts = [results.patterns.assign(severity=1.0)]
        for severity in _SEVERITIES:  # each pattern reaches it at its own z
            for pattern, curve in enumerate(curves, start=1):
                maps = model.pattern_maps(brains, severity=float(np.interp(severity, curve, KNOTS)))
                parts.append(maps[maps["pattern"] == pattern].assign(severity=severity))
        table = pd.concat(parts, ignore_index=True)
    table = table[["region", "pattern", "severity", "change_sd"]].astype({"severity": float})
    return table.sort_values(["pattern", "severity"], kind="stable", ignore_index=True)


def _drivers(model: SurrealGAN, results: Results) -> pd.DataFrame:
    """Return the regions behind each person's R-indices, for as many people as a report can show: patients first."""
    order = np.argsort((results.r_indices["group"] != "patient").to_numpy(), kind="stable")
    rows = np.sort(order[:_MOST_CARDS])
    z_scores = results.z_scores.iloc[rows]
    brains = 1 + SCALED_SD * z_scores.to_numpy()
    # Not the mean: a repetition that agrees in R-indices may still decompose brains in its own way.
    alone = [jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], model.models_) for k in range(len(model.members_))]
    changes = np.median([inference.decompose(one, brains) for one in alone], axis=0) / SCALED_SD
    if results.gaps is not None:
        changes = np.where(results.gaps[rows, None], 0, changes)  # imputed from other regions: not a driver itself
    who = results.r_indices.iloc[rows]
    return analysis.drivers(changes, z_scores, who["participant_id"], who.get("visit"))
