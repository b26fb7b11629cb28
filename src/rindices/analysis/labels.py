"""Who is a patient: labels for the analyses that train."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.columns import same_people
from rindices.errors import InputError


def patients_of(y: ArrayLike, n_people: int, fewest: int) -> np.ndarray:
    """Return who is a patient: 1 or true in `y`, where controls are 0 or false.

    Raises
    ------
    InputError
        If there are other labels, or fewer people than `fewest` in a group.
    """
    labels = np.asarray(y)
    same_people(n_people, y=labels)
    strange = [label for label in pd.unique(labels.ravel()) if label not in (0, 1)]
    if strange or labels.ndim != 1:
        found = repr(str(strange[0])) if strange else f"shape {labels.shape}"
        raise InputError(f"y should hold 0 for controls and 1 for patients, found {found}.")
    patient = labels.astype(bool)
    n_patients = int(patient.sum())
    if min(n_patients, n_people - n_patients) < fewest:
        raise InputError(
            f"At least {fewest} controls and {fewest} patients are needed, "
            f"found {n_people - n_patients} and {n_patients}."
        )
    return patient
