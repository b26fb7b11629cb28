"""People and settings of a run, and the same people without a difference between the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rindices.chunks import Settings
from rindices.core.train import People
from rindices.preprocessing import ControlScaler, whitening_matrix


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
    """

    scaled: np.ndarray
    patient: np.ndarray
    settings: Settings

    def people(self, cohort: int = 0) -> People:
        """Return the data (cohort 0), or the same people with labels that say nothing about them.

        Labels are permuted after covariates were removed, and what is estimated in controls afterwards is estimated
        again: in such a cohort the groups differ by chance alone, as much as two groups of these sizes do.
        """
        return self._people(cohort) if cohort else self._data

    @cached_property
    def _data(self) -> People:
        return self._people(0)

    def _people(self, cohort: int) -> People:
        scaled, patient = self.scaled, self.patient
        if cohort:
            patient = np.random.default_rng([self.settings.seed, cohort]).permutation(patient)
            scaled = ControlScaler.fit(scaled[~patient]).transform(scaled)
        controls, patients = scaled[~patient], scaled[patient]
        return People(controls, patients, whitening_matrix(controls, self.settings.preset.schedule.whitening))
