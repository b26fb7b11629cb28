"""Diagnosis labels become controls and patients here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import InputError, counted, did_you_mean, listed, setting
from rindices.schema.cells import plain_code, spreadsheet_rows, text_of
from rindices.settings import Labels

__all__ = [
    "CONTROL_NAMES",
    "MIN_PEOPLE",
    "NO_LABEL",
    "Groups",
    "assign_groups",
    "check_group_sizes",
    "groups_of",
    "label_text",
    "other_warnings",
    "usual_controls",
]

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


def assign_groups(column: pd.Series, control: Labels = None, patients: Labels = None) -> Groups:
    """Turn the diagnosis column into groups.

    Parameters
    ----------
    column
        The diagnosis column.
    control, patients
        A label, several separated by commas, or a sequence of labels. Without ``control`` the one label with
        a usual name (CN, HC, control, 0, ...) is taken; without ``patients`` the one remaining label.

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
    _refuse_header(diagnosis, str(column.name))
    sick = _asked(patients, counts, "patients", where)
    healthy = _asked(control, counts, "control", where) or _recognised(found, sick, counts, where)
    both = [label for label in healthy if label in sick]
    if both:
        named = f"{setting('control')} and {setting('patients')}"
        raise InputError(f"The label {both[0]!r} is in both {named}.\nName it in one of the two only.")
    sick = sick or _remaining(found, healthy, counts, where)
    group = np.select([diagnosis.isin(healthy), diagnosis.isin(sick)], ["control", "patient"], "other")
    return Groups(diagnosis, pd.Series(group.tolist(), index=column.index), healthy, sick)


def _refuse_header(diagnosis: pd.Series, name: str) -> None:
    """Refuse rows that repeat the header; a label of many people may have the column's name in earnest."""
    repeated = diagnosis.str.casefold().to_numpy() == name.casefold()
    if 0 < repeated.sum() < MIN_PEOPLE:
        rows = spreadsheet_rows(diagnosis.to_frame())[repeated]
        raise InputError(
            f"Column {name!r} has its own name as a label in row {listed(rows)}: the header seems repeated there.\n"
            "Remove what is no person from the table."
        )


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


def _asked(labels: Labels, counts: dict[str, int], name: str, where: str) -> tuple[str, ...]:
    if labels is None:
        return ()
    if not isinstance(labels, str):
        items = list(labels) if isinstance(labels, Sequence) else [labels]
        wanted = [plain_code(item) for item in items]
    else:
        # A label may itself contain a comma.
        wanted = [labels.strip()] if labels.strip() in counts else [plain_code(item) for item in labels.split(",")]
    wanted = list(dict.fromkeys(label for label in wanted if label))
    if not wanted:
        raise InputError(
            f"{setting(name)} names no label.\nName one or more of those found in {where}: {_with_counts(counts)}."
        )
    for label in wanted:
        if label not in counts or label == NO_LABEL:
            raise InputError(
                f"The label {label!r} (from {setting(name)}) does not occur in {where}."
                f"{did_you_mean(label, list(counts))}\nLabels found: {_with_counts(counts)}.\n"
                f"Write it as in the table, or leave it out of {setting(name)}."
            )
    return tuple(wanted)


def _recognised(found: list[str], sick: tuple[str, ...], counts: dict[str, int], where: str) -> tuple[str, ...]:
    usual = [label for label in found if label.casefold() in CONTROL_NAMES and label not in sick]
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


def usual_controls(levels: Mapping[str, str] | None) -> str | None:
    """Return the one code of a data dictionary that means controls; None where several or none do."""
    codes = [code for code, meaning in (levels or {}).items() if meaning.casefold() in CONTROL_NAMES]
    return codes[0] if len(codes) == 1 else None


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
