"""Labels become controls and patients; and whether these overlap, so that disease can be told from the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import InputError, counted, did_you_mean, listed, setting, shown
from rindices.schema.cells import plain_code, text_of
from rindices.settings import Labels

NO_LABEL = "n/a"
MIN_PEOPLE = 20  # in each group: below it neither means nor patterns mean anything
CONTROL_NAMES = frozenset(
    {"cn", "hc", "nc", "ctl", "ctrl", "control", "controls", "healthy", "healthy control", "healthy controls", "normal"}
    | {"0", "-1"}
)


@dataclass(frozen=True, eq=False)
class Groups:
    """Everybody's label and group, and the labels that each group was made of."""

    diagnosis: pd.Series
    group: pd.Series
    control_labels: tuple[str, ...]
    patient_labels: tuple[str, ...]


def label_text(column: pd.Series) -> pd.Series:
    """Return the labels as text: ``1.0`` becomes ``1``, a missing label ``n/a``.

    Examples
    --------
    >>> label_text(pd.Series(["AD", None, "1.0"])).tolist()
    ['AD', 'n/a', '1']
    """
    text = text_of(column)
    text = text.map({label: plain_code(label) for label in text.dropna().unique()})
    return text.where(text.notna(), NO_LABEL)


def assign_groups(
    column: pd.Series, control: Labels = None, patients: Labels = None, meanings: Mapping[str, str] | None = None
) -> Groups:
    """Turn the diagnosis column into groups.

    Parameters
    ----------
    column
        The diagnosis column.
    control, patients
        A label, several separated by commas, or a sequence of labels. Without ``control`` the one label with
        a usual name (CN, HC, control, 0, ...) is taken; without ``patients`` the one remaining label.
    meanings
        What a data dictionary says that labels mean; they may be named by that.

    Returns
    -------
    Groups
        Group is ``control``, ``patient`` or ``other`` (any other label, or none).

    Examples
    --------
    >>> assign_groups(pd.Series(["CN", "AD", None])).group.tolist()
    ['control', 'patient', 'other']
    """
    diagnosis = label_text(column)
    counts = {str(label): int(number) for label, number in diagnosis.value_counts().items()}
    found = [label for label in counts if label != NO_LABEL]
    where = f"column {str(column.name)!r}"
    if not found:
        raise InputError(f"Nobody has a label in {where}.\nExpected each person's diagnosis, for example CN and AD.")
    codes: dict[str, list[str]] = {}
    for code, meaning in (meanings or {}).items():
        codes.setdefault(meaning.casefold(), []).append(code)
    usual = CONTROL_NAMES | {code for name in CONTROL_NAMES for code in codes.get(name, ())}
    sick = _asked(patients, counts, codes, "patients", where)
    healthy = _asked(control, counts, codes, "control", where)
    controls = [label for label in found if label.casefold() in usual and label not in sick]
    healthy = healthy or _recognised(controls, counts, where)
    both = [label for label in healthy if label in sick]
    if both:
        named = f"{setting('control')} and {setting('patients')}"
        raise InputError(f"The label {both[0]!r} is in both {named}.\nName it in one of the two only.")
    sick = sick or _remaining(found, healthy, counts, where)
    group = np.select([diagnosis.isin(healthy), diagnosis.isin(sick)], ["control", "patient"], "other")
    return Groups(diagnosis, pd.Series(group.tolist(), index=column.index), healthy, sick)


def groups_of(diagnosis: pd.Series, control_labels: Sequence[str], patient_labels: Sequence[str]) -> list[str]:
    """Return the group of each label of new people, ``other`` where it is none of the model's labels.

    A model that knows no labels, such as an imported one, goes by the usual names of controls: everybody else with a
    label is a patient.

    Examples
    --------
    >>> groups_of(pd.Series(["CN", "AD", "n/a"]), [], [])
    ['control', 'patient', 'other']
    """
    healthy, sick = diagnosis.isin(list(control_labels)), diagnosis.isin(list(patient_labels))
    if not control_labels and not patient_labels:
        healthy = diagnosis.str.casefold().isin(CONTROL_NAMES)
        sick = diagnosis != NO_LABEL
    return [str(group) for group in np.select([healthy, sick], ["control", "patient"], "other")]


def _asked(
    labels: Labels, counts: dict[str, int], codes: Mapping[str, list[str]], name: str, where: str
) -> tuple[str, ...]:
    if labels is None:
        return ()
    items = list(labels) if isinstance(labels, Sequence) else [labels]
    if isinstance(labels, str):  # a label may itself contain a comma
        whole = labels.strip() in counts or labels.strip().casefold() in codes
        items = [labels] if whole else labels.split(",")
    named = [plain_code(item) for item in items if plain_code(item)]
    meant = [[label] if label in counts else codes.get(label.casefold(), [label]) for label in named]
    wanted = [code for labels in meant for code in labels]
    if not wanted:
        raise InputError(
            f"{setting(name)} names no label.\nName one or more of those found in {where}: {_with_counts(counts)}."
        )
    unknown = [label for label in wanted if label not in counts or label == NO_LABEL]
    if unknown and not codes:
        raise InputError(
            f"The label {unknown[0]!r} (from {setting(name)}) does not occur in {where}."
            f"{did_you_mean(unknown[0], list(counts))}\nLabels found: {_with_counts(counts)}.\n"
            f"Write it as in the table, or leave it out of {setting(name)}."
        )
    return tuple(dict.fromkeys(wanted))


def _recognised(usual: list[str], counts: dict[str, int], where: str) -> tuple[str, ...]:
    if len(usual) == 1:
        return (usual[0],)
    problem = f"{listed(map(repr, usual))} could all be" if usual else "none of them is a usual name for"
    several = f" (to take all: {setting('control', usual)})" if usual else ""
    raise InputError(
        f"Cannot tell which label in {where} means controls: {problem} the controls.\n"
        f"Labels found: {_with_counts(counts)}.\nName the controls with {setting('control', 'LABEL')}{several}."
    )


def _remaining(found: list[str], healthy: tuple[str, ...], counts: dict[str, int], where: str) -> tuple[str, ...]:
    others = [label for label in found if label not in healthy]
    if len(others) == 1:
        return (others[0],)
    if not others:
        raise InputError(
            f"There are no patients: {where} has only the controls' label {listed(map(repr, healthy))}.\n"
            f"Labels found: {_with_counts(counts)}.\nAdd patients to the table."
        )
    raise InputError(
        f"Cannot tell which people are the patients: {where} has {len(others)} labels besides the controls'.\n"
        f"Labels found: {_with_counts(counts)}.\n"
        f"Name the patients' labels, for example {setting('patients', others[:2])}; everybody else is scored only."
    )


def check_group_sizes(groups: Groups, learned_from: NDArray[np.bool_], left_out: str = "") -> None:
    """Refuse a cohort with too few controls or patients to learn from; ``left_out`` says who else there was."""
    for group, name, labels in (
        ("controls", "control", groups.control_labels),
        ("patients", "patients", groups.patient_labels),
    ):
        number = int((groups.group == group.removesuffix("s"))[learned_from].sum())
        if number < MIN_PEOPLE:
            others = f" {left_out}" if left_out else ""
            raise InputError(
                f"At least {MIN_PEOPLE} {group} are needed, but only {counted(number, 'person has', 'people have')} "
                f"the label {listed(labels, joiner=' or ')}.{others}\n"
                f"Add people, or count further labels as {group} with {setting(name)}."
            )


def _with_counts(counts: dict[str, int]) -> str:
    return listed((f"{'no label' if label == NO_LABEL else label} ({number})" for label, number in counts.items()), 12)


def other_warnings(diagnosis: pd.Series, group: pd.Series) -> list[str]:
    """Return a sentence on the people who are neither control nor patient."""
    others = diagnosis[(group == "other").to_numpy()].value_counts()
    if not len(others):
        return []
    total, labels = int(others.sum()), {str(label): int(number) for label, number in others.items()}
    people = f"{counted(total, 'person', 'people')} {'is' if total == 1 else 'are'} neither control nor patient"
    return [f"{people} and {'is' if total == 1 else 'are'} scored but not learned from: {_with_counts(labels)}."]


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
