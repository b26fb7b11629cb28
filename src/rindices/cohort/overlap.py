"""Whether controls and patients overlap in a variable, so that its effect can be told from that of the disease."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import InputError, listed, shown

__all__ = ["group_separation", "refuse_apart", "warn_of_background", "warn_of_repetition", "warn_of_separation"]

SEPARATING_AUC = 0.95
SEPARATING_ACCURACY = 0.95


def refuse_apart(name: str, controls: NDArray, patients: NDArray) -> None:
    """Refuse categories, or a number that all controls share, of which the groups have none in common.

    Examples
    --------
    >>> refuse_apart("sex", np.array(["F", "M"], object), np.array(["M", "M"], object))
    """
    alike = controls.dtype.kind != "f" or pd.unique(controls).size == 1
    if alike and not np.isin(patients.astype(str), controls.astype(str)).any():
        found = [listed(map(shown, sorted(set(values))), 4) for values in (controls, patients)]
        raise InputError(
            f"Disease cannot be told from {name!r}: no patient has a value of it that a control has "
            f"(controls: {found[0]}; patients: {found[1]}).\n"
            "Its effect cannot be removed without removing that of the disease, and left in it looks like disease.\n"
            f"If it only repeats the diagnosis, do without {name}; otherwise add people until the groups overlap in it."
        )


def warn_of_separation(name: str, controls: NDArray, patients: NDArray) -> list[str]:
    """Return a sentence on a variable that tells the groups apart, by itself and completely or nearly so.

    Examples
    --------
    >>> warn_of_separation("age", np.arange(20.0, 50.0), np.arange(60.0, 90.0))[0]
    'age tells controls and patients apart completely: disease cannot be told from age. They should overlap in it.'
    """
    if not group_separation(controls, patients):
        return []
    if controls.dtype.kind == "f":
        completely = controls.max() < patients.min() or patients.max() < controls.min()
    else:
        completely = not {*controls} & {*patients}
    told = (
        f"completely: disease cannot be told from {name}."
        if completely
        else f"nearly by itself: what is found may be {name} rather than disease."
    )
    return [f"{name} tells controls and patients apart {told} They should overlap in it."]


def warn_of_background(background: pd.DataFrame, group: pd.Series) -> tuple[str, ...]:
    """Return sentences on columns such as site and age that are no covariates and tell the groups apart."""
    warnings: list[str] = []
    for name in background.columns:
        known = background[name].notna().to_numpy()
        values = [background[name][known & (group == which).to_numpy()] for which in ("control", "patient")]
        if all(len(part) for part in values):
            warnings += warn_of_separation(str(name), *(part.to_numpy() for part in values))
    return tuple(warnings)


def warn_of_repetition(controls: pd.DataFrame) -> list[str]:
    """Return sentences on covariates of controls whose effects cannot be told apart.

    Examples
    --------
    >>> age = np.array([61.0, 70.0, 75.0])
    >>> warn_of_repetition(pd.DataFrame({"age": age, "months": 12 * age}))[0].partition(":")[0]
    'months adds nothing to age among the controls'
    """
    warnings: list[str] = []
    design = np.ones((len(controls), 1))
    for position, name in enumerate(controls.columns):
        column = controls[name]
        block = pd.get_dummies(column, dtype=float).iloc[:, 1:] if column.dtype.kind != "f" else column.to_frame()
        centred = (block - block.mean()).to_numpy(dtype=np.float64)
        together = np.hstack([design, centred / np.maximum(np.abs(centred).max(axis=0), 1e-300)])
        if np.linalg.matrix_rank(together, tol=1e-6) < min(together.shape):
            before = listed(controls.columns[:position])
            warnings.append(
                f"{name} adds nothing to {before} among the controls: their effects cannot be told apart. "
                "Where it holds the same in other words, leave one out."
            )
        else:
            design = together
    return warnings


def group_separation(controls: NDArray, patients: NDArray) -> bool:
    """Tell whether a covariate alone nearly separates the groups.

    Numbers: the area under the ROC curve is at least 0.95 (or at most 0.05). Categories: guessing each category's
    commoner group is right in at least 95 % and halves the errors of always guessing the larger group. Where hardly
    two people share a category, nothing is known of it.

    Examples
    --------
    >>> group_separation(np.arange(30.0), np.arange(60.0, 90.0))
    True
    """
    n_controls, n_patients = len(controls), len(patients)
    together = pd.Series(np.concatenate([controls, patients]))
    if controls.dtype.kind == "f":
        rank_sum = together.rank().to_numpy()[n_controls:].sum()
        area = (rank_sum - n_patients * (n_patients + 1) / 2) / (n_controls * n_patients)
        return bool(max(area, 1 - area) >= SEPARATING_AUC)
    is_patient = np.repeat([0, 1], [n_controls, n_patients])
    table = pd.crosstab(together.to_numpy(), is_patient).to_numpy()
    if len(table) > len(together) / 2:
        return False
    accuracy = table.max(axis=1).sum() / table.sum()
    base = max(n_controls, n_patients) / (n_controls + n_patients)
    return bool(accuracy >= SEPARATING_ACCURACY and 1 - accuracy <= (1 - base) / 2)
