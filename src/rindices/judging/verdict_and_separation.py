"""Whether there is anything to find, and how well regions distinguish patients from controls.

The guarantee is a permutation test of the table itself (`spectrum`): without a difference between the groups, five
tables in a hundred pass it. Whether the difference consists of patterns that replicate is another question,
answered by three agreements: between linear models of disjoint halves of the people, compared with permuted groups;
among repetitions; and between the repetitions and a linear model of everybody.

If groups differ in age, site or scanner, these differences replicate, too.

Patients are distinguished from controls in held-out people, with an AUC and an interval that has to cover the AUC, in
new people, of a rule learned from everybody. The standard error of Hanley and McNeil (1982) is that of a fixed rule.
Here, rules are learned from the same people and folds share most of them, so it is too small, by a third if the groups
hardly differ. A jackknife over groups of people learns all rules again, but counts twice what pairs of people
contribute together. The true variance therefore lies between the two; the weight was chosen on simulated cohorts and
checked on others. The jackknife also shows what a tenth of the people adds to the AUC, and the centre of the interval
is shifted by that amount, because each fold learns from nine tenths.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd
from scipy.special import expit, logit, stdtrit

from rindices.judging import Evidence, Separated
from rindices.judging.agreement_and_misfit import concordance, halves_agreement, matched_concordance
from rindices.judging.spectrum import LEVEL, Spectrum
from rindices.judging.study import Study
from rindices.linear import fitted, ledoit_wolf, one_thread, side_by_side
from rindices.preprocessing import Preprocessing
from rindices.presets import Correction
from rindices.problems import Message, Text, counted, listed
from rindices.settings import State

FEWEST_SHUFFLED = 19  # tables with permuted groups: the largest of 20 has p = 0.05
_SPLITS = 2  # of each table into halves
_NOT_FOUND = 0.6  # concordance with the linear model, or among repetitions, below which they did not find the same
_WEAK = 0.6  # concordance of halves below which a person's severity is hardly informative
# Differences from which it is doubtful that a pattern is disease: from a standardised difference of 0.25, regression no
# longer adjusts for it safely (Rubin, 2001); a Cramér's V of 0.2 is 40 % women against 60 %.
_COUNTS_FROM = {"number": 0.25, "category": 0.2}


def evidence_of(spectrum: Spectrum) -> Evidence:
    """Return the evidence of the test before training."""
    auc, ratio = spectrum.detectable
    return Evidence(
        p=spectrum.p,
        p_spread=spectrum.p_spread,
        p_shift=spectrum.p_shift,
        directions=spectrum.directions,
        found_again=spectrum.found_again,
        eigenvalues=tuple(spectrum.eigenvalues.tolist()),
        limit=spectrum.limit,
        band=tuple(np.quantile(spectrum.null, 1 - LEVEL, axis=0).tolist()),
        detectable_auc=auc,
        detectable_ratio=ratio,
    )


@dataclass(frozen=True)
class Verdict:
    """Whether patterns are reproducible, and why.

    Attributes
    ----------
    state
        ``no difference``: the groups differ no more than by chance. ``not reproducible``: they differ, but not in
        patterns that replicate. ``reproducible``. ``weak``: reproducible, but an individual's severity is not
        informative, or many more patterns were requested than held-out people support. ``confounded``: reproducible,
        but the groups also differ in age, site or a covariate. ``not testable``.
    message
        The same in words.
    evidence
        The evidence behind it.
    """

    state: State
    message: Text
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def reliable(self) -> bool | None:
        """True if patterns replicate, even if the groups also differ in other variables; None if unknown."""
        return {"no difference": False, "not reproducible": False, "not testable": None}.get(self.state, True)

    def with_differences(self, names: Sequence[str]) -> Self:
        """Return the verdict if the groups also differ in these variables."""
        if self.state not in ("reproducible", "weak") or not names:
            return self
        more = (
            f" However, patients and controls also differ in {listed(list(names), joiner=' and ')}, "
            "which may explain the reproducible patterns."
        )
        return replace(self, state="confounded", message=Message(self.message, more))


def differences_that_count(balance: pd.DataFrame) -> list[str]:
    """Return the variables in which the groups differ so much that it may explain the patterns: *confounded*.

    Examples
    --------
    >>> from rindices.analysis import group_balance
    >>> people = pd.DataFrame({"age": [60, 62, 64, 66, 68, 70, 72, 74, 76, 78], "iq": [100, 101, 102, 103, 104] * 2})
    >>> differences_that_count(group_balance(people, [False] * 5 + [True] * 5))
    ['age']
    """
    large = balance["difference"].abs() >= balance["kind"].map(_COUNTS_FROM).astype(float)
    return balance["variable"][balance["imbalanced"].astype(bool) & large].tolist()


def not_testable(why: str) -> Verdict:
    """Return the verdict if the groups cannot be permuted."""
    return Verdict("not testable", f"{why[0].upper()}{why[1:]}.")


@one_thread()
def judged(spectrum: Spectrum, study: Study, r_indices: np.ndarray, repetitions: float) -> Verdict:
    """Judge the patterns that repetitions found.

    Parameters
    ----------
    spectrum
        The test before training.
    study
        The people.
    r_indices
        The patients' R-indices by the consensus ``(patients, patterns)``.
    repetitions
        Mean pattern agreement of the repetitions; NaN with a single one.
    """
    evidence = evidence_of(spectrum)
    if not spectrum.differs:
        sentence = (
            "Patients and controls differ no more than randomly assigned groups of the same people "
            f"(p = {spectrum.p:.2g}). This does not mean that there is no difference: "
            f"{likely_missed(*spectrum.detectable)}"
        )
        return Verdict("no difference", sentence, evidence)
    n_patterns = r_indices.shape[1]
    controls, patients = study.standardised()
    linear = fitted(study.method(n_patterns), controls, patients, n_patterns)
    halves, chance, p = halves_test(study, n_patterns)
    evidence = replace(
        evidence,
        halves=halves,
        halves_chance=chance,
        halves_p=p,
        repetitions=None if np.isnan(repetitions) else float(repetitions),
        with_linear=matched_concordance(r_indices, linear.severities(patients)),
    )
    state: State = "reproducible"
    if p > LEVEL or min(evidence.with_linear or 0, evidence.repetitions or 1) < _NOT_FOUND:
        state = "not reproducible"
    elif halves < _WEAK or n_patterns > supported(n_patterns, evidence) + 1:
        state = "weak"
    return Verdict(state, _found(state, n_patterns, evidence), evidence)


def halves_test(study: Study, n_patterns: int) -> tuple[float, float, float]:
    """Compare the agreement of disjoint halves of the people with that after permuting the groups.

    Returns the concordance, the largest one after permutation, and p. The test stops at the first permuted table that
    agrees as well, because p then exceeds 0.05 whatever the others show.
    """
    method, seed = study.method(n_patterns), study.settings.seed

    def agreement(cohort: int) -> float:
        return halves_agreement(
            *study.standardised(cohort), n_patterns, method, disjoint_controls=True, n_splits=_SPLITS, seed=seed
        )

    values = side_by_side(agreement, range(FEWEST_SHUFFLED + 1))
    own, largest = next(values), 0.0
    for cohort, value in enumerate(values, 1):
        largest = max(largest, value)
        if largest >= own:
            values.close()
            return own, largest, 2 / (cohort + 1)
    return own, largest, 1 / (FEWEST_SHUFFLED + 1)


def supported(n_patterns: int, evidence: Evidence) -> int:
    """Return how many of the patterns held-out people support: one per direction in which they differ, at least 1."""
    return min(n_patterns, max(1, evidence.found_again or 0))


def likely_missed(auc: float, ratio: float) -> str:
    """Describe the differences that a test without a finding may have missed: those that it could only just detect."""
    return (
        f"differences are likely to be missed if regions distinguish the groups with an AUC of about {auc:.2f} or less "
        f"and patients vary less than {ratio:.1f} times as much as controls in every direction."
    )


def _found(state: State, n_patterns: int, evidence: Evidence) -> str:
    words = [
        f"Models fitted to two separate halves of the sample rank {100 * (evidence.halves or 0):.0f} of 100 pairs of "
        "patients in the same order; chance is 50, and with permuted groups the number is at most "
        f"{100 * (evidence.halves_chance or 0):.0f}.",
    ]
    if evidence.repetitions is not None:
        words.append(f"On average, two repetitions agree on {100 * evidence.repetitions:.0f} of 100 pairs.")
    words.append(f"Patients and controls differ (p = {evidence.p:.2g}, permutation test).")
    least = supported(n_patterns, evidence)
    if state == "not reproducible":
        if (evidence.halves_p or 0) <= LEVEL:
            words.append(
                "However, the training runs did not capture this difference: they agree with a linear model on only "
                f"{100 * (evidence.with_linear or 0):.0f} of 100 pairs. Train longer or use the default settings."
            )
    elif not evidence.found_again:
        words.append(
            "However, held-out patients do not clearly vary more than held-out controls in any direction. If all "
            "patients show the same change to the same degree, severities reflect only healthy variation."
            f"{' Use one pattern.' * (n_patterns > 1)}"
        )
    elif least < n_patterns:
        words.append(
            f"However, held-out patients vary more than held-out controls in only {counted(least, 'direction')}, so "
            f"the data do not support {counted(n_patterns, 'pattern')}. Use fewer."
        )
    return " ".join(words)


_FOLDS = 10
_GROUPS = 10  # of people who are left out in turn
_QUANTILE = float(stdtrit(_GROUPS - 1, 0.975))
_JACKKNIFE = 0.3  # weight of its variance; the rest is that of a fixed rule


def separated(
    regions: np.ndarray,
    patient: np.ndarray,
    covariates: pd.DataFrame | None = None,
    correction: Correction | None = None,
    sites: np.ndarray | None = None,
) -> Separated | None:
    """Distinguish patients from controls by complete regions; return None if groups or sites are too small.

    Ten folds, each with its share of both groups and of every site. Corrections and scales are estimated in the
    controls of the other nine, and a discriminant with shrunken covariances (Ledoit and Wolf) in both their groups. The
    AUC is the mean over folds.
    """
    if min(patient.sum(), (~patient).sum()) < 2 * _FOLDS:
        return None
    rng, strata = np.random.default_rng(0), [patient] if sites is None else [sites, patient]
    fold = _random_parts(strata, _FOLDS, rng)
    group = _random_parts([*strata[:-1], fold, patient], _GROUPS, rng)  # so that no fold loses all its patients at once

    def auc(people: np.ndarray) -> float:
        own = None if covariates is None else covariates[people]
        return _cross_validated(regions[people], patient[people], own, correction, fold[people])

    try:
        whole, *others = side_by_side(auc, [group >= 0, *(group != one for one in range(_GROUPS))])
    except ValueError:  # too few controls of a site, or a category that nobody else has
        return None
    without = np.array(others)
    jackknife = (_GROUPS - 1) * np.mean((without - without.mean()) ** 2)
    n_controls, n_patients = int((~patient).sum()), int(patient.sum())
    edge = 0.5 / min(n_controls, n_patients)  # no AUC is certain
    fixed = _fixed_rule(np.clip(whole, edge, 1 - edge), n_controls, n_patients)
    error = np.sqrt(_JACKKNIFE * jackknife + (1 - _JACKKNIFE) * fixed)
    centre = np.clip(2 * whole - without.mean(), edge, 1 - edge)
    half = _QUANTILE * error / (centre * (1 - centre))
    low, high = (float(expit(logit(centre) + side * half)) for side in (-1, 1))
    return Separated(whole, min(low, whole), max(high, whole))


def _random_parts(strata: list[np.ndarray], n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Assign people at random to parts, each with its share of every stratum."""
    order, part = rng.permutation(len(strata[0])), np.empty(len(strata[0]), int)
    part[order[np.lexsort([of[order] for of in strata])]] = np.arange(len(order)) % n_parts
    return part


def _cross_validated(
    regions: np.ndarray,
    patient: np.ndarray,
    covariates: pd.DataFrame | None,
    correction: Correction | None,
    fold: np.ndarray,
) -> float:
    values = []
    for one in range(_FOLDS):
        learned = fold != one
        own = None if covariates is None else covariates[learned & ~patient]
        scaled = Preprocessing.fit(regions[learned & ~patient], own, correction).transform(regions, covariates)
        weights = _discriminant(scaled[learned & ~patient], scaled[learned & patient])
        values.append(concordance(patient[~learned], scaled[~learned] @ weights))
    return float(np.mean(values))


def _discriminant(controls: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return Fisher's discriminant: the weight of each region in distinguishing patients from controls.

    That of scikit-learn with automatic shrinkage, in a quarter of the time, because its checks are not needed here.
    """
    within = np.zeros(2 * controls.shape[1:])
    for group in (controls, patients):
        sd = np.where(np.ptp(group, axis=0) > 0, group.std(axis=0), 1)
        correlations = ledoit_wolf((group - group.mean(axis=0)) / sd, assume_centered=True)[0]
        within += len(group) * correlations * np.outer(sd, sd)
    return np.linalg.solve(within, patients.mean(axis=0) - controls.mean(axis=0))


def _fixed_rule(auc: float, n_controls: int, n_patients: int) -> float:
    """Return the variance of the AUC of a fixed rule (Hanley and McNeil, 1982)."""
    pairs = auc * (1 - auc) + (n_patients - 1) * (auc / (2 - auc) - auc**2)
    pairs += (n_controls - 1) * (2 * auc**2 / (1 + auc) - auc**2)
    return pairs / (n_controls * n_patients)
