"""Summarise the tables of the experiments for the pages: means over cohorts, choices, correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from cases import KINDS
from judging import chosen_looks
from scipy.stats import spearmanr

COHORT = ["kind", "seed"]


class Range(NamedTuple):
    """Means over cohorts, and the lowest and the highest cohort: tables of the same shape."""

    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def changed(self, how: Callable[[pd.DataFrame], pd.DataFrame]) -> Range:
        """Choose or rename columns in all three."""
        return Range(*map(how, self))


def over_cohorts(summary: Callable[[str], pd.DataFrame]) -> Range:
    """Return the mean, minimum and maximum of a summary."""
    return Range(*map(summary, ("mean", "min", "max")))


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Put kinds in the paper's order."""
    return table.reindex([kind for kind in KINDS if kind in table.index])


def accuracy(looks: pd.DataFrame, from_step: int, how: str = "mean") -> pd.DataFrame:
    """Choose the λ and look of each cohort by agreement, and aggregate over the cohorts of a kind.

    ``loss`` is the accuracy of the consensus at the best λ minus that at the chosen λ (each at its own chosen look).
    """
    of_each = chosen_looks(looks, [*COHORT, "orthogonality"], from_step)
    chosen = chosen_looks(looks, COHORT, from_step).set_index(COHORT)
    chosen["loss"] = of_each.groupby(COHORT)["consensus"].max() - chosen["consensus"]
    groups = chosen.groupby("kind")
    names = ["single", "single_sd", "consensus", "pattern_agreement", "loss"]
    table = groups[names].agg(how)
    table["single_se"] = groups["single"].sem()
    table["largest_loss"] = groups["loss"].max()
    table["consensus_sd"] = groups["consensus"].std()
    table["orthogonality"] = groups["orthogonality"].agg(lambda values: ", ".join(f"{value:g}" for value in values))
    return by_kind(table)


def rank_correlations(looks: pd.DataFrame) -> pd.DataFrame:
    """Return rank correlations of agreement and accuracy over λ and checkpoints, averaged by kind of cohort."""
    rows = []
    for (kind, seed), of in looks.dropna(subset=["pattern_agreement", "single"]).groupby(COHORT, sort=False):
        last = of[of["step"] == of["step"].max()]
        rows.append(
            {"kind": kind, "seed": seed}
            | {"over λ and checkpoints": _ranks(of), "over λ, last checkpoint": _ranks(last), "n": len(of)}
        )
    return by_kind(pd.DataFrame(rows).groupby("kind")[["over λ and checkpoints", "over λ, last checkpoint"]].mean())


def _ranks(table: pd.DataFrame) -> float:
    if len(table) < 3 or table["pattern_agreement"].nunique() < 2 or table["single"].nunique() < 2:
        return np.nan
    return float(spearmanr(table["pattern_agreement"], table["single"]).statistic)


def by_orthogonality(looks: pd.DataFrame, from_step: int) -> pd.DataFrame:
    """Average each λ, at its own chosen look, over the cohorts of a kind: Fig. 2, with standard errors over cohorts."""
    chosen = chosen_looks(looks, [*COHORT, "orthogonality"], from_step)
    groups = chosen.groupby(["kind", "orthogonality"])
    means = groups[["single", "consensus", "pattern_agreement"]].mean()
    means["single_se"], means["agreement_error"] = groups["single"].sem(), groups["pattern_agreement"].sem()
    return _in_order(means.reset_index())


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("kind", key=lambda kinds: kinds.map(KINDS.index), kind="stable", ignore_index=True)


def baselines(fits: pd.DataFrame, how: str = "mean") -> pd.DataFrame:
    """Average fits of three components over starts, and aggregate over cohorts → kinds × methods."""
    three = fits[fits["n_components"] == 3].groupby([*COHORT, "method"])["concordance"].mean().reset_index()
    return by_kind(three.pivot_table("concordance", "kind", "method", aggfunc=how))


def upper_bounds(fits: pd.DataFrame, how: str = "mean") -> pd.DataFrame:
    """Take the best number of components of each cohort, and aggregate over cohorts → kinds × methods."""
    first = fits[(fits["start"] == 0) & (fits["method"] != "ridge")]
    best = first.groupby([*COHORT, "method"])["concordance"].max().reset_index()
    return by_kind(best.pivot_table("concordance", "kind", "method", aggfunc=how))


def chosen_patterns(table: pd.DataFrame) -> pd.DataFrame:
    """Choose M by agreement, excluding M = 1 → a row for each cohort."""
    several = table[(table["n_patterns"] > 1) & table["pattern_agreement"].notna()]
    return several.loc[several.groupby(["true_patterns", "seed"])["pattern_agreement"].idxmax()].reset_index(drop=True)


def choices(table: pd.DataFrame) -> pd.DataFrame:
    """Count the choices → true numbers of patterns × chosen ones."""
    chosen = chosen_patterns(table)
    return pd.crosstab(chosen["true_patterns"], chosen["n_patterns"])


def share_right(table: pd.DataFrame) -> float:
    """Return the proportion of cohorts with disease whose number of patterns was chosen correctly."""
    chosen = chosen_patterns(table[table["true_patterns"] > 0])
    return float((chosen["n_patterns"] == chosen["true_patterns"]).mean())


def folds(table: pd.DataFrame, how: str = "mean") -> pd.DataFrame:
    """Aggregate training and test scores over folds and cohorts → kinds × (part, method)."""
    return by_kind(table.pivot_table(["train", "test"], "kind", "method", aggfunc=how))


def compared(looks: pd.DataFrame, by: list[str], from_step: int, how: str = "mean") -> pd.DataFrame:
    """Aggregate results of each weighting, at its chosen look, over the cohorts of a kind.

    If fewer than two models of a cohort are sound, there is no agreement to choose by: the last look is used.
    """
    keys = [*COHORT, *by]
    chosen = chosen_looks(looks, keys, from_step)
    last = looks.loc[looks.groupby(keys, sort=False)["step"].idxmax()]
    chosen = pd.concat([chosen, last], ignore_index=True).drop_duplicates(keys)
    names = ["single", "single_sd", "consensus", "pattern_agreement", "n_sound"]
    return chosen.groupby(["kind", *by], sort=False)[names].agg(how).reset_index()


def enough_models(table: pd.DataFrame) -> pd.DataFrame:
    """Describe the consensus by number of models: mean, spread over draws, agreement of two that share no model."""
    own = table[table["question"] == "models"]
    spread = own.groupby(["n_models", *COHORT])["concordance"].std().groupby("n_models").mean()
    groups = own.groupby("n_models")
    lowest = own.groupby(["n_models", *COHORT])["concordance"].min().groupby("n_models").mean()
    return pd.DataFrame(
        {
            "concordance": groups["concordance"].mean(),
            "spread over draws": spread,
            "worst draw": lowest,
            "agreement of two": groups["agreement_of_two"].mean(),
        }
    )


def enough_people(table: pd.DataFrame, value: str = "concordance", how: str = "mean") -> pd.DataFrame:
    """Aggregate over cohorts → numbers of patients × kinds."""
    own = table[table["question"] == "people"]
    found = own.pivot_table(value, "n_patients", "kind", aggfunc=how)
    return found[[kind for kind in KINDS if kind in found.columns]]
