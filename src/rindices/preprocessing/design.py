"""The columns whose effects are removed: how certain these effects are, and what their removal leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rindices.preprocessing.covariates import CovariateResidualizer
from rindices.settings import Correction

# Random splits of healthy people (40 a group or more) lie below. Above it, where pseudo-patients were 17 years older
# than the controls, most fits were called reliable (experiments/pseudo_patients.py).
TOO_UNCERTAIN = 1.3
_ROUNDING = 1e-10  # relative to the largest: directions that vary less in controls are rounding


def design_of(covariates: pd.DataFrame, patient: np.ndarray, correction: Correction | None) -> np.ndarray:
    """Return the columns of everybody whose effects are estimated in controls: levels (of sites), then covariates."""
    correction = correction or Correction()
    kept = [name for name in covariates if name not in (correction.proportion, correction.site)]
    controls = covariates[~patient]
    fitted = CovariateResidualizer.fit(
        np.empty((len(controls), 0)), controls[kept], smooth=correction.smooth, interactions=correction.interactions
    )
    levels = np.zeros(len(covariates)) if correction.site is None else pd.factorize(covariates[correction.site])[0]
    columns = np.hstack([levels[:, None] == np.unique(levels), fitted.design(covariates[kept])])
    # Of equal size: mm³ of head size stand beside 0 and 1 of sex.
    return columns / np.maximum(np.abs(columns).max(axis=0), np.finfo(float).tiny)


def uncertainty_of_patients(design: np.ndarray, patient: np.ndarray) -> float:
    """Return the squared error of the effects removed from patients, relative to that in controls.

    Where controls like the patients are few, the effects are uncertain, and patients share their error: in training it
    looks like a pattern of disease. The error's variance at a person is proportional to the leverage h = x (XᵀX)⁻¹ xᵀ,
    X being the design of the controls.

    Parameters
    ----------
    design
        Of controls and patients, see `design_of`.
    patient
        Who is a patient.

    Returns
    -------
    float
        Mean leverage of patients over that of controls; about 1 where the groups have the same covariates.

    Examples
    --------
    >>> age = pd.DataFrame({"age": [50.0, 60.0, 70.0, 80.0, 80.0, 80.0]})
    >>> patient = np.array([False] * 4 + [True] * 2)
    >>> round(uncertainty_of_patients(design_of(age, patient, None), patient), 2)
    1.4
    """
    _, sizes, directions = np.linalg.svd(design[~patient], full_matrices=False)
    real = sizes > _ROUNDING * sizes[0]
    leverage = ((design @ directions[real].T / sizes[real]) ** 2).sum(axis=1)
    return float(leverage[patient].mean() / leverage[~patient].mean())


def without_effects(values: np.ndarray, design: np.ndarray, patient: np.ndarray) -> np.ndarray:
    """Remove the effects of a design from everybody's values, estimated in controls by least squares."""
    effects = np.linalg.lstsq(design[~patient], values[~patient], rcond=_ROUNDING)[0]
    return values - design @ effects


def uncertainty_in_words(uncertainty: float) -> str:
    """Say what a high `uncertainty_of_patients` means and what to do."""
    return (
        f"The effects of covariates are {uncertainty:.1f} times as uncertain (in squared error) in patients as in "
        "controls, because few controls have covariates like the patients'. What is removed from patients is then "
        "wrong in the same way in all of them, and can be taken for a pattern. Choose controls whose covariates are "
        "like the patients', and test with refits, which allow for it (--null 19)."
    )
