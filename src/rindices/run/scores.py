"""What a model says about people: R-indices of some, or all the tables of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rindices.cohort import Cohort, People
from rindices.estimator import SurrealGAN
from rindices.record import Results

__all__ = ["r_indices_of", "results_of"]

_FEW_CONTROLS = 10  # with fewer, a pattern's mean change would be theirs rather than that of controls


def results_of(model: SurrealGAN, people: Cohort | People) -> Results:
    """Score the people of a cohort, or new people, and say what the patterns do to their regions."""
    covariates = _covariates(model, people)
    r_indices = r_indices_of(model, people)
    if isinstance(people, Cohort):
        background, everybody = people.background, people.people
    else:
        who = r_indices.filter(["participant_id", "visit", "years", "first_visit", "diagnosis", "group"])
        scored = who.assign(used=True, reason="", distance=np.nan, flags=r_indices["flags"])
        parts = [scored, people.left_out] if len(people.left_out) else [scored]
        background, everybody = people.covariates, pd.concat(parts)
    variables = {str(name): table[name].to_numpy() for table in (background, people.clinical) for name in table}
    # Patterns are read from people as they were trained on: whoever comes again counts once.
    group = np.where(r_indices.get("first_visit", True), r_indices["group"], "other")
    return Results(
        r_indices=r_indices,
        z_scores=pd.DataFrame(model.z_scores(people.features, covariates), columns=list(people.features.columns)),
        variables=pd.DataFrame(variables, index=range(len(r_indices))),
        patterns=_patterns(model, people.features, covariates, group),
        people=everybody.reset_index(drop=True),
    )


def r_indices_of(model: SurrealGAN, people: Cohort | People) -> pd.DataFrame:
    """Score people, and no more: the table ``r_indices.csv``."""
    who: dict[str, object] = {"participant_id": people.features.index}
    if people.visit is not None:
        years = np.nan if people.years is None else people.years.to_numpy()
        who |= {"visit": people.visit.to_numpy(), "years": years, "first_visit": people.first_visit}
    who |= {"diagnosis": people.diagnosis.to_numpy(), "group": people.group.to_numpy()}
    values = np.hstack(model.transform_with_spread(people.features, _covariates(model, people)))
    names = [str(name) for name in model.get_feature_names_out()]
    scores = pd.DataFrame(values, columns=[*names, *(f"{name}_sd" for name in names)])
    flags = people.flags if isinstance(people, People) else people.people["flags"][people.people["used"].astype(bool)]
    return pd.concat([pd.DataFrame(who), scores], axis=1).assign(flags=flags.to_numpy())


def _covariates(model: SurrealGAN, people: Cohort | People) -> pd.DataFrame | None:
    if not people.covariates.shape[1]:
        return None
    known = isinstance(people, Cohort)
    return people.covariates if known else model.preprocessing_.leave_new_sites(people.covariates)


def _patterns(
    model: SurrealGAN, features: pd.DataFrame, covariates: pd.DataFrame | None, group: np.ndarray
) -> pd.DataFrame:
    """Return what each pattern does to each region: as f makes it of controls, and as g₁ sees it in patients."""

    def of(rows: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        return features[rows], None if covariates is None else covariates[rows]

    controls, patients = group == "control", group == "patient"
    # Among new people there may be no controls; then the patterns are shown in everybody.
    table = model.pattern_maps(*of(controls if controls.sum() >= _FEW_CONTROLS else np.ones(len(group), bool)))
    if patients.sum() < 2:
        return table.assign(decomposed_sd=np.nan, decomposed_percent=np.nan, decomposed_spread_sd=np.nan)
    return table.merge(model.decomposed_maps(*of(patients)), on=["region", "pattern"], how="left", sort=False)
