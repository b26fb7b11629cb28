"""People and settings of a run, and the same people without a difference between the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rindices.core.train import People
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.preprocessing.covariates import uncertainty_of_patients, without_effects
from rindices.training.chunks import Settings


@dataclass(frozen=True, eq=False)
class Study:
    """People and settings of a run.

    Parameters
    ----------
    scaled : ndarray of shape (people, regions)
        Controls and patients, covariates removed, scaled by the controls.
    patient : ndarray of bool
        Who is a patient.
    settings : Settings
        What all models share.
    design : ndarray of shape (people, columns), optional
        What was removed, see `rindices.preprocessing.design`; None without covariates.
    """

    scaled: np.ndarray
    patient: np.ndarray
    settings: Settings
    design: np.ndarray | None = None

    @cached_property
    def uncertainty(self) -> float:
        """Squared error of the covariates' effects in patients, relative to controls."""
        return 1.0 if self.design is None else uncertainty_of_patients(self.design, self.patient)

    def people(self, cohort: int = 0) -> People:
        """Return the data (cohort 0), or the same people without a difference between the groups.

        What is left after covariates were removed is dealt out to the people anew; everybody keeps group and
        covariates. Then all that is estimated in controls is estimated and removed again (Freedman and Lane, 1983): in
        such a cohort the groups differ by chance alone, and by the error that removing covariates makes in patients.
        """
        return self._people(cohort) if cohort else self._data

    @cached_property
    def _data(self) -> People:
        return self._people(0)

    def _people(self, cohort: int) -> People:
        scaled, patient = self.scaled, self.patient
        if cohort:
            scaled = np.random.default_rng([self.settings.seed, cohort]).permutation(scaled)
            scaled = scaled if self.design is None else without_effects(scaled, self.design, patient)
            scaled = ControlScaler.fit(scaled[~patient]).transform(scaled)
        controls, patients = scaled[~patient], scaled[patient]
        return People(controls, patients, whitening_matrix(controls, self.settings.preset.schedule.whitening))
