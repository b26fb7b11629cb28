"""Whether the groups differ in any of several variables: one permutation test of all, with its p for each.

Twenty variables are twenty chances of a difference. So the smallest p of all variables is compared with the smallest p
after labels were permuted (Westfall and Young, 1993): of randomised studies, five in a hundred have any p ≤ 0.05,
however many variables there are and however they go together.

A variable can only be mistaken for disease if regions go with it. Half of the error rate is therefore shared among the
variables by how much of the regions each explains within the groups, and half equally.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from rindices.analysis.statistics import as_numbers, basis, coded, residuals

N_PERMUTATIONS = 499
_CHUNK = 4_000_000  # labels at a time


def corrected_p(
    variables: pd.DataFrame,
    patient: np.ndarray,
    site: pd.Series | None = None,
    regions: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return p of each variable, corrected for all of them; NaN where it cannot be compared.

    Parameters
    ----------
    variables
        Numbers or text, one row per person.
    patient
        Who is a patient.
    site
        Labels are permuted within sites, but for variables that are the same for everybody of a site.
    regions
        Of the same people; without them all variables count equally.
    seed
        Of the permutations.
    """
    blocks = np.zeros(len(patient), int) if site is None else pd.factorize(site)[0] + 1
    tested = [_Tested.of(column, blocks) for _, column in variables.items()]
    weights = _weights(tested, patient, regions)
    rng, p_values = np.random.default_rng([seed, len(patient)]), []
    labels = [(patient[:, None], patient[:, None])]
    step = max(1, min(N_PERMUTATIONS, _CHUNK // max(len(patient), 1)))
    for start in range(0, N_PERMUTATIONS, step):
        size = (len(patient), min(step, N_PERMUTATIONS - start))
        labels.append((_permuted(patient, np.zeros_like(blocks), size, rng), _permuted(patient, blocks, size, rng)))
    for free, within in labels:
        p_values.append(
            [one.p(within if one.within else free) / weight for one, weight in zip(tested, weights, strict=True)]
        )
    testable = np.array([not np.isnan(one[0]) for one in p_values[0]], bool)
    if not testable.any():
        return np.full(len(tested), np.nan)
    smallest = np.concatenate([np.nanmin(np.array(part)[testable], axis=0) for part in p_values])
    own = np.array([one[0] for one in p_values[0]])
    return np.where(testable, (smallest <= own[:, None] * (1 + 1e-9)).mean(axis=1), np.nan)


def _permuted(patient: np.ndarray, blocks: np.ndarray, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return labels that are permuted within blocks ``(people, permutations)``."""
    places = np.argsort(blocks, kind="stable")
    order = np.argsort(rng.random(size) + blocks[:, None], axis=0)
    labels = np.empty(size, bool)
    labels[places] = patient[order]
    return labels


class _Tested:
    """A variable as columns that are orthonormal and, unless it is the same for all of a site, have no site's mean."""

    def __init__(self, people: np.ndarray, columns: np.ndarray, places: np.ndarray) -> None:
        self.people, self.columns, self.places = people, columns, places
        self.within = places.shape[1] > 0

    @classmethod
    def of(cls, column: pd.Series, blocks: np.ndarray) -> _Tested:
        variable = coded(column)
        if not variable.people.any():
            return cls(variable.people, np.empty((0, 0)), np.empty((0, 0)))
        numbers, places = as_numbers(variable), _indicators(blocks[variable.people])
        inside = basis(residuals(numbers, places))
        if places.shape[1] and not inside.shape[1]:
            places = places[:, :0]
            inside = basis(numbers)
        return cls(variable.people, inside, places)

    def p(self, labels: np.ndarray) -> np.ndarray:
        """Return p of labels ``(people, permutations)``: of the share of them that the columns explain."""
        if not self.columns.shape[1]:
            return np.full(labels.shape[1], np.nan)
        centred = residuals(labels[self.people].astype(float), self.places)
        total = np.sum(np.square(centred), axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.sum(np.square(self.columns.T @ centred), axis=0) / total
        return chdtrc(self.columns.shape[1], len(centred) * share)

    def explained(self, patient: np.ndarray, regions: np.ndarray) -> float:
        """Return the mean share of regions that the variable explains within groups and sites, beyond chance."""
        if not self.columns.shape[1]:
            return 0.0
        given = basis(np.column_stack([self.places, patient[self.people]]))
        columns, values = basis(residuals(self.columns, given)), residuals(regions[self.people], given)
        total = np.sum(np.square(values), axis=0)
        share = np.sum(np.square(columns.T @ values), axis=0)[total > 0] / total[total > 0]
        return max(float(share.mean()) - 2 * columns.shape[1] / len(values), 0.0) if share.size else 0.0


def _indicators(blocks: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the means of blocks, less that of all."""
    numbers = np.unique(blocks, return_inverse=True)[1]
    return basis((numbers[:, None] == np.arange(1, numbers.max(initial=0) + 1)).astype(float))


def _weights(tested: list[_Tested], patient: np.ndarray, regions: np.ndarray | None) -> np.ndarray:
    """Return how much of the error rate each variable has."""
    equal = np.full(len(tested), 1 / max(len(tested), 1))
    if regions is None:
        return equal
    middle = np.nanmedian(regions, axis=0)
    explained = np.array([one.explained(patient, np.where(np.isnan(regions), middle, regions)) for one in tested])
    return equal if not explained.sum() else (equal + explained / explained.sum()) / 2
