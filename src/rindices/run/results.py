"""What a model says about people, as tables that belong together: R-indices, z scores, variables, patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.cohort import Cohort, People
from rindices.errors import InputError
from rindices.estimator import SurrealGAN
from rindices.files import plain, plain_text, write_csv

__all__ = ["Results", "of_cohort", "of_people", "r_indices_of_people", "read_results"]

_ID, _VISIT = "participant_id", "visit"
_FILES = {"r_indices": "r_indices.csv", "z_scores": "z_scores.csv", "variables": "variables.csv"}
_FEW_CONTROLS = 10  # with fewer, a pattern's mean change would be theirs rather than that of controls


@dataclass(frozen=True, eq=False)
class Results:
    """Tables of people, with the same rows in the same order, and the patterns.

    Attributes
    ----------
    r_indices
        participant_id, visit, years and first_visit (with repeated visits), diagnosis, group, r1 …, r1_sd …, flags.
    z_scores
        The regions: corrected values in sd of controls.
    variables
        Covariates, background and clinical scores under the user's names; numbers as float64, categories as text.
    patterns
        What each pattern does to each region.
    people
        The record of every row that was read, with who was left out and why.
    """

    r_indices: pd.DataFrame
    z_scores: pd.DataFrame
    variables: pd.DataFrame
    patterns: pd.DataFrame
    people: pd.DataFrame

    @property
    def scores(self) -> pd.DataFrame:
        """R-indices alone."""
        return self.r_indices[[name for name in map(str, self.r_indices) if name[0] == "r" and name[1:].isdigit()]]

    @property
    def first_visit(self) -> np.ndarray:
        """True in one row a person."""
        if "first_visit" not in self.r_indices:
            return np.ones(len(self.r_indices), dtype=bool)
        return self.r_indices["first_visit"].to_numpy(dtype=bool)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each variable is a number or a category, which a CSV file cannot say."""
        is_number = {name: self.variables[name].dtype.kind == "f" for name in self.variables}
        return {str(name): "number" if number else "category" for name, number in is_number.items()}

    def write(self, folder: Path) -> None:
        """Write the tables into a folder, each beside and then renamed."""
        who = self.r_indices[[name for name in (_ID, _VISIT) if name in self.r_indices]].reset_index(drop=True)
        write_csv(self.r_indices, folder / _FILES["r_indices"], index=False)
        for name in ("z_scores", "variables"):
            table = getattr(self, name).reset_index(drop=True)
            # A region may be called like one of our columns: an id beside it must stay an id.
            table = pd.concat([who, table.drop(columns=[c for c in who if c in table])], axis=1)
            write_csv(table, folder / _FILES[name], index=False, digits=4 if name == "z_scores" else 6)
        write_csv(self.patterns, folder / "patterns.csv", index=False)
        write_csv(self.people, folder / "people.csv", index=False)


def of_cohort(model: SurrealGAN, cohort: Cohort) -> Results:
    """Score everybody in a cohort."""
    who: dict[str, Any] = {_ID: cohort.features.index}
    if cohort.visit is not None:
        years = np.full(len(cohort.features), np.nan) if cohort.years is None else cohort.years.to_numpy()
        who |= {_VISIT: cohort.visit.to_numpy(), "years": years, "first_visit": cohort.first_visit}
    used = cohort.people["used"].to_numpy(dtype=bool)
    flags = cohort.people.loc[used, "flags"].to_numpy()
    groups = {"diagnosis": cohort.diagnosis.to_numpy(), "group": cohort.group.to_numpy()}
    variables = _beside(cohort.background, cohort.clinical)
    return _results(model, cohort.features, cohort.covariates, who | groups, flags, variables, cohort.people)


def of_people(model: SurrealGAN, people: People) -> Results:
    """Score new people, and say what the patterns do to their regions."""
    who, flags = _who(people), people.flags.to_numpy()
    record = pd.DataFrame(who | {"used": True, "reason": "", "distance": np.nan, "flags": flags})
    record = pd.concat([record, people.left_out]) if len(people.left_out) else record
    covariates = model.preprocessing_.leave_new_sites(people.covariates)
    variables = _beside(people.covariates, people.clinical)
    return _results(model, people.features, covariates, who, flags, variables, record)


def r_indices_of_people(model: SurrealGAN, people: People) -> pd.DataFrame:
    """Score new people, and no more: `Results.r_indices` of `of_people`."""
    covariates = model.preprocessing_.leave_new_sites(people.covariates)
    return _r_indices(model, people.features, covariates, _who(people), people.flags.to_numpy())


def _who(people: People) -> dict[str, Any]:
    who: dict[str, Any] = {_ID: people.features.index}
    if people.visit is not None:
        years = np.full(len(people.features), np.nan) if people.years is None else people.years.to_numpy()
        who |= {_VISIT: people.visit.to_numpy(), "years": years, "first_visit": people.first_visit}
    return who | {"diagnosis": people.diagnosis.to_numpy(), "group": people.group.to_numpy()}


def _beside(*tables: pd.DataFrame) -> pd.DataFrame:
    columns = {str(name): table[name].to_numpy() for table in tables for name in table}
    n_people = max(len(table) for table in tables)
    return pd.DataFrame(columns, index=range(n_people))


def _results(
    model: SurrealGAN,
    features: pd.DataFrame,
    covariates: pd.DataFrame,
    who: Mapping[str, Any],
    flags: np.ndarray,
    variables: pd.DataFrame,
    people: pd.DataFrame,
) -> Results:
    given = covariates if covariates.shape[1] else None
    # Patterns are read from people as they were trained on: whoever comes again counts once.
    group = np.where(who.get("first_visit", True), who["group"], "other")
    return Results(
        r_indices=_r_indices(model, features, covariates, who, flags),
        z_scores=pd.DataFrame(model.z_scores(features, given), columns=list(features.columns)),
        variables=variables,
        patterns=_patterns(model, features, given, group),
        people=people.reset_index(drop=True),
    )


def _r_indices(
    model: SurrealGAN, features: pd.DataFrame, covariates: pd.DataFrame, who: Mapping[str, Any], flags: np.ndarray
) -> pd.DataFrame:
    values = np.hstack(model.transform_with_spread(features, covariates if covariates.shape[1] else None))
    names = [str(name) for name in model.get_feature_names_out()]
    scores = pd.DataFrame(values, columns=[*names, *(f"{name}_sd" for name in names)])
    return pd.concat([pd.DataFrame(who), scores], axis=1).assign(flags=flags)


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


def read_results(folder: Path, kinds: Mapping[str, str]) -> Results:
    """Read the tables of a finished run; `kinds` says which variables are numbers.

    Raises
    ------
    InputError
        If a table is missing, as in runs of earlier versions, or does not fit the others.
    """
    text = {_ID: str, _VISIT: str, "diagnosis": str, "group": str, "flags": str}
    r_indices = _read(folder / _FILES["r_indices"], text)
    variables = _read(folder / _FILES["variables"], {_ID: str, _VISIT: str} | dict.fromkeys(kinds, str))
    for name, kind in kinds.items():
        column = variables[name].mask(variables[name] == "")
        variables[name] = column.astype(float) if kind == "number" else column
    z_scores = _read(folder / _FILES["z_scores"], {_ID: str, _VISIT: str})
    if not len(r_indices) == len(variables) == len(z_scores):
        raise InputError(
            f"The tables in {folder} have different numbers of rows.\nMake the run again: rindices fit ... --overwrite."
        )
    return Results(
        r_indices=r_indices,
        z_scores=z_scores.drop(columns=[_ID, _VISIT], errors="ignore"),
        variables=variables[list(kinds)],
        patterns=_read(folder / "patterns.csv", {"region": str}),
        people=_read(folder / "people.csv", text | {"reason": str, "site": str}),
    )


def _read(path: Path, text: Mapping[str, type]) -> pd.DataFrame:
    try:
        names = pd.read_csv(path, nrows=0, encoding="utf-8").columns
        as_text = {name: text[plain_text(name)] for name in names if plain_text(name) in text}
        empty = {name: [""] for name in names if name not in as_text}
        return plain(pd.read_csv(path, dtype=as_text, keep_default_na=False, na_values=empty, encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing: make the run again with this version of rindices.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a table: {error}.\nMake the run again.") from error
