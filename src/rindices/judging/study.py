"""The people and settings of a run, as all that trains and judges sees them."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rindices.core.train import People
from rindices.judging.spectrum import Spectrum, look
from rindices.linear.halves import Method, suited
from rindices.preprocessing import SCALED_SD, ControlScaler, whitening_matrix
from rindices.preprocessing.covariates import (
    leverage_of,
    rescaled_by_leverage,
    uncertainty_of_patients,
    without_effects,
)
from rindices.training.chunks import Settings


@dataclass(frozen=True, eq=False)
class Study:
    """People and settings of a run.

    Parameters
    ----------
    residuals : ndarray of shape (people, regions)
        Controls and patients, covariates removed, scaled by the controls: as new people are scored.
    patient : ndarray of bool
        Who is a patient.
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
