"""Whether controls and patients overlap in a variable, so that its effect can be told from that of the disease."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import InputError, counted, listed, setting, shown

__all__ = ["background_warnings", "check_covariates", "group_separation", "refuse_apart"]

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


def _separation_warnings(name: str, controls: NDArray, patients: NDArray) -> list[str]:
    """Return a sentence on a variable that tells the groups apart, by itself and completely or nearly so."""
    if not group_separation(controls, patients):
        return []
    if controls.dtype.kind == "f":
        completely = controls.max() < patients.min() or patients.max() < controls.min()
    else:
        completely = not {*controls} & {*patients}
    nearly = f"nearly by itself: what is found may be {name} rather than disease."
    told = f"completely: disease cannot be told from {name}." if completely else nearly
    return [f"{name} tells controls and patients apart {told} They should overlap in it."]


def check_covariates(
    covariates: pd.DataFrame, group: pd.Series, *, site: str | None = None, proportion: str | None = None
) -> list[str]:
    """Refuse covariates whose effect the controls cannot show; return warnings about the doubtful ones.

    Regions are divided by ``proportion``: that extrapolates nothing.
    """
    is_control, is_patient = (group == "control").to_numpy(), (group == "patient").to_numpy()
    warnings: list[str] = []
    for name in map(str, covariates.columns):
        values = covariates[name].to_numpy()
        refuse_apart(name, values[is_control], values[is_patient])
        if pd.unique(values[is_control]).size == 1:
            without = setting("site") if name == site else name
            raise InputError(
                f"The effect of {name!r} cannot be learned: it has the same value ({shown(values[is_control][0])}) in "
                f"all controls.\nDo without {without}, or add controls who differ in it."
            )
        if values.dtype.kind != "f":
            _refuse_new_levels(covariates[name], is_control)
        elif name != proportion:
            low, high = float(values[is_control].min()), float(values[is_control].max())
            outside = int(((values < low) | (values > high))[is_patient].sum())
            if outside:
                warnings.append(
                    f"{outside} of {counted(int(is_patient.sum()), 'patient')} {'has' if outside == 1 else 'have'} "
                    f"{name} outside the controls' range: its effect is extrapolated there."
                )
        warnings += _separation_warnings(name, values[is_control], values[is_patient])
    return warnings + _repetition_warnings(covariates[is_control])


def _refuse_new_levels(column: pd.Series, is_control: NDArray[np.bool_]) -> None:
    name, known = str(column.name), set(column[is_control])
    strangers = column[~column.isin(known).to_numpy()]
    new = strangers.value_counts()
    if len(new):
        levels = listed(f"{level} ({counted(int(number), 'person', 'people')})" for level, number in new.items())
        raise InputError(
            f"Column {name!r} has {counted(len(new), 'category', 'categories')} without a single control: {levels}; "
            f"the first is participant {strangers.index[0]}.\n"
            f"Their effect cannot be learned. Categories among the controls: {listed(sorted(known), 10)}.\n"
            f"Remove these people, add controls of the same category, or do without {name}."
        )


def background_warnings(background: pd.DataFrame, group: pd.Series) -> list[str]:
    """Return sentences on columns such as site and age that are no covariates and tell the groups apart."""
    warnings: list[str] = []
    for name in background.columns:
        known = background[name].notna().to_numpy()
        values = [background[name][known & (group == which).to_numpy()] for which in ("control", "patient")]
        if all(len(part) for part in values):
            warnings += _separation_warnings(str(name), *(part.to_numpy() for part in values))
    return warnings


def _repetition_warnings(controls: pd.DataFrame) -> list[str]:
    """Return sentences on covariates of controls whose effects cannot be told apart."""
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
