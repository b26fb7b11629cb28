"""The people and settings of a run, as all that trains and judges sees them; and whether there is anything to find.

The guarantee is a permutation test of the table itself (`spectrum`): without a difference between the groups, five
tables in a hundred pass it. Whether what differs are patterns that are found again is another question, and three
numbers answer it: linear models of disjoint halves of the people, against the same with permuted groups; repetitions
among each other; and what repetitions found with what a linear model of everybody finds.

Where groups differ in age, site or scanner, all of that is found again, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rindices.core.train import People
from rindices.judging.agreement import halves_agreement, matched_concordance, suited
from rindices.judging.spectrum import LEVEL, Spectrum, look
from rindices.linear import Method, fitted, one_thread, side_by_side
from rindices.preprocessing import SCALED_SD, ControlScaler, whitening_matrix
from rindices.preprocessing.covariates import (
    leverage_of,
    rescaled_by_leverage,
    uncertainty_of_patients,
    without_effects,
)
from rindices.problems import Message, Text, counted, listed
from rindices.settings import State
from rindices.training.chunks import Settings


@dataclass(frozen=True, eq=False)
class Study:
    """People and settings of a run.

    Parameters
    ----------
    residuals : ndarray of shape (people, regions)
        Controls and patients, covariates removed, scaled by the controls: as new people are scored.
    patient : ndarray of bool
        True for patients.
    settings : Settings
        What all models share.
    design : ndarray of shape (people, columns), optional
        What was removed, see `rindices.preprocessing.covariates.design_of`; None without covariates.
    site : ndarray of shape (people,), optional
        Where they were measured.
    redrawn : ndarray of shape (draws, people, regions), optional
        Residuals again, with other draws of what was missing; repetitions take all draws in turn.
    """

    residuals: np.ndarray
    patient: np.ndarray
    settings: Settings
    design: np.ndarray | None = None
    site: np.ndarray | None = None
    redrawn: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    _methods: dict[int, Method] = field(default_factory=dict, init=False)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The look before training; raises `NotTestable` with too few people."""
        return look(self.residuals, self.patient, self.design, self.site, self.settings.seed)

    def method(self, n_patterns: int) -> Method:
        """Return how linear models of so many patterns find them best in these people."""
        if n_patterns not in self._methods:
            several = n_patterns > 1  # else there is nothing to rotate
            seed = self.settings.seed
            self._methods[n_patterns] = suited(*self.standardised(), n_patterns, seed)[0] if several else "sparse"
        return self._methods[n_patterns]

    def standardised(self, cohort: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return controls and patients in sd of the controls; see `people`."""
        people = self.people(cohort)
        return (people.controls - 1) / SCALED_SD, (people.patients - 1) / SCALED_SD

    @cached_property
    def leverage(self) -> np.ndarray:
        """Everybody's leverage in what was estimated in controls."""
        if self.design is None:
            return np.full(len(self.patient), 1 / (~self.patient).sum())
        return leverage_of(self.design, self.patient)

    @cached_property
    def scaled(self) -> np.ndarray:
        """What is trained on: residuals of one variance, whether effects were estimated in a person or not."""
        return self._of_one_variance(self.residuals)

    def _of_one_variance(self, residuals: np.ndarray) -> np.ndarray:
        if self.design is None:
            return residuals
        even = rescaled_by_leverage(residuals, self.leverage, self.patient)
        return ControlScaler.fit(even[~self.patient]).transform(even)

    @cached_property
    def uncertainty(self) -> float:
        """Squared error of the covariates' effects in patients, relative to controls."""
        return 1.0 if self.design is None else uncertainty_of_patients(self.design, self.patient)

    def people(self, cohort: int = 0, repetition: int = 0) -> People:
        """Return the data (cohort 0), or the same people without a difference between the groups.

        What is left after covariates were removed is dealt out to the people anew; everybody keeps group and
        covariates. Then all that is estimated in controls is estimated and removed again (Freedman and Lane, 1983): in
        such a cohort the groups differ by chance alone, and by the error that removing covariates makes in patients.
        """
        draw = repetition % (len(self.redrawn) + 1)
        drawn = self._of_one_variance(self.redrawn[draw - 1]) if draw else self.scaled
        if not cohort:
            return (self._grouped(drawn) if draw else self._data)._replace(methods=dict(self._methods))
        scaled = np.random.default_rng([self.settings.seed, cohort]).permutation(drawn)
        scaled = scaled if self.design is None else without_effects(scaled, self.design, self.patient)
        return self._grouped(self._of_one_variance(ControlScaler.fit(scaled[~self.patient]).transform(scaled)))

    @cached_property
    def _data(self) -> People:
        return self._grouped(self.scaled)

    def _grouped(self, scaled: np.ndarray) -> People:
        controls, schedule = scaled[~self.patient], self.settings.preset.schedule
        return People(controls, scaled[self.patient], whitening_matrix(controls, schedule.whitening))


FEWEST_SHUFFLED = 19  # tables with permuted groups: the largest of 20 has p = 0.05
_SPLITS = 2  # into halves, of each table
_NOT_FOUND = 0.6  # concordance with the linear model, or among repetitions, below which they did not find the same
_WEAK = 0.6  # concordance of halves below which a person's severity says little
# From which on a difference makes it doubtful that a pattern is disease: a standardised difference of 0.25 is where
# regression no longer adjusts for it safely (Rubin, 2001), a Cramér's V of 0.2 is 40 % women against 60 %.
_COUNTS_FROM = {"number": 0.25, "category": 0.2}


@dataclass(frozen=True)
class Evidence:
    """The evidence behind a verdict; None where it was not measured.

    Attributes
    ----------
    p, p_spread, p_shift
        Permutation test: joint, of the patients' spread, and of their shift.
    directions, found_again
        Directions beyond chance, and those also found in held-out people.
    eigenvalues, limit, band
        Variance of patients relative to controls in each direction, the limit for the first, and the 95th centile of
        each after permutations.
    detectable_auc, detectable_ratio
        Smallest differences likely to be detected: in means, and in standard deviations in one direction.
    halves, halves_chance, halves_p
        Concordance of linear models of disjoint halves of the sample, the largest with permuted groups, and its p.
    repetitions
        Mean concordance of repetitions.
    with_linear
        Concordance of the consensus with a linear model of the whole sample.
    """

    p: float | None = None
    p_spread: float | None = None
    p_shift: float | None = None
    directions: int | None = None
    found_again: int | None = None
    eigenvalues: tuple[float, ...] = ()
    limit: float | None = None
    band: tuple[float, ...] = ()
    detectable_auc: float | None = None
    detectable_ratio: float | None = None
    halves: float | None = None
    halves_chance: float | None = None
    halves_p: float | None = None
    repetitions: float | None = None
    with_linear: float | None = None

    @classmethod
    def of(cls, spectrum: Spectrum) -> Evidence:
        """Return what the look before training showed."""
        auc, ratio = spectrum.detectable
        return cls(
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
        ``no difference``: the groups differ no more than by chance. ``not found again``: they differ, but not in
        patterns that are found again. ``reproducible``. ``weak``: reproducible, but an individual's severity is not
        informative, or many more patterns were requested than held-out people support. ``confounded``: reproducible,
        but the groups also differ in age, site or a covariate. ``not testable``.
    message
        The same in words.
    evidence
        The evidence behind it.
    """

    state: State
    message: Text
    evidence: Evidence = Evidence()

    @property
    def reliable(self) -> bool | None:
        """True if patterns are found again, even if the groups also differ in other variables; None if unknown."""
        return {"no difference": False, "not found again": False, "not testable": None}.get(self.state, True)

    def with_differences(self, names: Sequence[str]) -> Verdict:
        """Return the verdict if the groups also differ in these variables."""
        if self.state not in ("reproducible", "weak") or not names:
            return self
        also = listed(list(names), joiner=" and ")
        more = f" However, patients and controls also differ in {also}, which the reproducible patterns may reflect."
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
    """Return the verdict where nobody can be permuted."""
    return Verdict("not testable", f"The groups cannot be tested for a difference: {why}.")


@one_thread()
def judged(spectrum: Spectrum, study: Study, r_indices: np.ndarray, repetitions: float) -> Verdict:
    """Judge what repetitions found.

    Parameters
    ----------
    spectrum
        The look before training.
    study
        The people.
    r_indices
        Of the patients by the consensus ``(patients, patterns)``.
    repetitions
        Mean pattern agreement of the repetitions; NaN with a single one.
    """
    evidence = Evidence.of(spectrum)
    if not spectrum.differs:
        return Verdict("no difference", _no_difference(evidence), evidence)
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
        state = "not found again"
    elif halves < _WEAK or n_patterns > supported(n_patterns, evidence) + 1:
        state = "weak"
    return Verdict(state, _found(state, n_patterns, evidence), evidence)


def halves_test(study: Study, n_patterns: int) -> tuple[float, float, float]:
    """Compare disjoint halves of the people, and of the same people with permuted groups.

    Returns their concordance, the largest of the permuted ones, and p. It ends with the first permuted table that
    agrees as well: p exceeds 0.05 then, whatever the others are.
    """
    method, seed = study.method(n_patterns), study.settings.seed

    def agreement(cohort: int) -> float:
        people = study.standardised(cohort)
        return halves_agreement(*people, n_patterns, method, disjoint_controls=True, n_splits=_SPLITS, seed=seed)

    values = side_by_side(agreement, range(FEWEST_SHUFFLED + 1))
    own, largest = next(values), 0.0
    for cohort, value in enumerate(values, 1):
        largest = max(largest, value)
        if largest >= own:
            values.close()
            return own, largest, 2 / (cohort + 1)
    return own, largest, 1 / (FEWEST_SHUFFLED + 1)


def supported(n_patterns: int, evidence: Evidence) -> int:
    """Return how many of the patterns people who were left out can have: as many as they differ in directions."""
    return min(n_patterns, max(1, evidence.found_again or 0))


def likely_missed(auc: float, ratio: float) -> str:
    """Say which differences a look that found none may have missed: those at which it would just have found one."""
    return (
        f"differences are likely to be missed if regions distinguish the groups with an AUC of about {auc:.2f} or less "
        f"and patients vary less than {ratio:.1f} times as much as controls in every direction."
    )


def _no_difference(evidence: Evidence) -> str:
    return (
        f"Patients and controls differ no more than randomly assigned groups of the same people (p = {evidence.p:.2g})."
        " This does not mean that there is no difference: "
        f"{likely_missed(evidence.detectable_auc or 0, evidence.detectable_ratio or 0)}"
    )


def _found(state: State, n_patterns: int, evidence: Evidence) -> str:
    pairs = 100 * (evidence.halves or 0)
    words = [
        f"Models of two separate halves of the sample rank {pairs:.0f} of 100 pairs of patients in the "
        f"same order; chance is 50, and with permuted groups it is at most {100 * (evidence.halves_chance or 0):.0f}.",
    ]
    if evidence.repetitions is not None:
        words.append(f"Any two repetitions agree on {100 * evidence.repetitions:.0f} of 100 pairs.")
    words.append(f"Patients and controls differ (p = {evidence.p:.2g}, permutation test).")
    least = supported(n_patterns, evidence)
    if state == "not found again":
        if (evidence.halves_p or 0) > LEVEL:
            words.append("These patterns were therefore not found again in other people from the same population.")
        else:
            words.append(
                f"However, these training runs did not find them: they agree with a linear model on only "
                f"{100 * (evidence.with_linear or 0):.0f} of 100 pairs. Train longer, or with the default settings."
            )
    elif least < n_patterns:
        directions = f"held-out people differ in only {counted(least, 'direction')}"
        only = directions if evidence.found_again else "no single direction is found again in held-out people"
        words.append(f"However, {only}, so the data do not support {counted(n_patterns, 'pattern')}. Request fewer.")
    return " ".join(words)


def to_json(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence in plain JSON types."""
    return asdict(evidence)
