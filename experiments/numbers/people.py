"""Cohorts for the experiments of this folder: the input of a fit, the truth, and people never trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices import simulate_cohort

NOT_REGIONS = ("participant_id", "diagnosis", "age", "sex")


class Recipe(NamedTuple):
    """The parameters of a cohort."""

    kind: str = "basic"
    seed: int = 0
    n_controls: int = 492
    n_patients: int = 900
    n_patterns: int = 3  # true ones
    severities: str = "uniform"
    correlation: float = 0.0
    n_fresh: int = 0  # of each group, never trained on
    covariates: int = 0  # age and sex, then noise
    n_regions: int = 128
    real: bool = False  # built from the table of real people
    spread: float = 1.0  # of healthy brains, relative to the default


@dataclass(frozen=True, eq=False)
class Given:
    """A cohort as a user would have it, and what a user would not have."""

    recipe: Recipe
    regions: pd.DataFrame
    patient: np.ndarray
    covariates: pd.DataFrame | None
    truth: np.ndarray  # of the patients in `regions`
    fresh: pd.DataFrame  # people never trained on
    fresh_covariates: pd.DataFrame | None
    fresh_patient: np.ndarray
    fresh_truth: np.ndarray  # of the fresh patients
    full_change: np.ndarray = field(repr=False)  # (patterns, regions): fraction of a region lost at severity 1


def make(recipe: Recipe, own: pd.DataFrame | None = None) -> Given:
    """Simulate a cohort, and set some of its people aside."""
    n_fresh = recipe.n_fresh
    sizes = {"n_controls": recipe.n_controls + n_fresh, "n_patients": recipe.n_patients + n_fresh}
    cohort = simulate_cohort(
        recipe.kind,
        n_patterns=recipe.n_patterns,
        seed=recipe.seed,
        severity_correlation=recipe.correlation or None,
        severities=recipe.severities,
        controls=own if recipe.real else None,
        spread=recipe.spread,
        **sizes,
    )
    table, rng = cohort.table, np.random.default_rng([recipe.seed, 77])
    regions = table.drop(columns=[name for name in NOT_REGIONS if name in table])
    regions = with_number(regions, recipe.n_regions, rng)
    patient = (table["diagnosis"] == "PT").to_numpy()
    covariates = None
    if recipe.covariates:
        noise = pd.DataFrame(rng.standard_normal((len(table), max(0, recipe.covariates - 2)))).add_prefix("noise")
        covariates = pd.concat([table[["age", "sex"]], noise], axis=1)
    truth = np.zeros((len(table), recipe.n_patterns))
    truth[patient] = cohort.truth.drop(columns="participant_id").to_numpy()
    aside = np.zeros(len(table), bool)
    for group in (patient, ~patient):
        aside[rng.permutation(np.flatnonzero(group))[:n_fresh]] = True
    lost = cohort.losses[[name.split("~")[0] for name in regions]].to_numpy()
    given, fresh = ~aside, aside

    def some(of: pd.DataFrame | None, who: np.ndarray) -> pd.DataFrame | None:
        return None if of is None else of[who].reset_index(drop=True)

    return Given(
        recipe,
        some(regions, given),
        patient[given],
        some(covariates, given),
        truth[given & patient],
        some(regions, fresh),
        some(covariates, fresh),
        patient[fresh],
        truth[fresh & patient],
        lost,
    )


def with_number(regions: pd.DataFrame, n_regions: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the first `n_regions` regions; if there are fewer, split regions into noisy parts.

    A region of 1 becomes 0.5 + e and 0.5 − e: finer parcels of the same brain, whose measurement errors are shared. The
    noise behind e has a fifth of the region's sd.
    """
    if n_regions <= regions.shape[1]:
        return regions.iloc[:, :n_regions]
    columns = {}
    n_split = n_regions - regions.shape[1]
    for place, name in enumerate(regions):
        values = regions[name].to_numpy()
        pieces = 1 + n_split // regions.shape[1] + (place < n_split % regions.shape[1])
        noise = rng.standard_normal((len(values), pieces)) * values.std() * 0.2
        noise -= noise.mean(axis=1, keepdims=True)
        for piece in range(pieces):
            columns[f"{name}~{piece}"] = values / pieces + noise[:, piece]
    return pd.DataFrame(columns)
