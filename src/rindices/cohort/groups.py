"""Labels become controls and patients, and others who are neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.problems import Blank, InputError, Message, Remedy, did_you_mean, listed
from rindices.schema.cells import plain_code
from rindices.schema.fields import NO_LABEL
from rindices.settings import Labels

CONTROL_NAMES = frozenset(
    {"cn", "hc", "nc", "ctl", "ctrl", "control", "controls", "healthy", "healthy control", "healthy controls", "normal"}
    | {"0", "-1"}
)


class Groups(NamedTuple):
    """Everybody's group (``control``, ``patient`` or ``other``), and the labels that it was made of."""

    group: pd.Series
    control_labels: tuple[str, ...]
    patient_labels: tuple[str, ...]


def assign_groups(
    diagnosis: pd.Series, control: Labels = None, patients: Labels = None, meanings: Mapping[str, str] | None = None
) -> Groups:
    """Find the labels of controls and of patients, and give everybody a group.

    Parameters
    ----------
    diagnosis
        Everybody's label, ``n/a`` where there is none; it has the name of the column.
    control, patients
        A label, several separated by commas, or a sequence of labels. Without ``control`` the one label with
        a usual name (CN, HC, control, 0, ...) is taken; without ``patients`` the one remaining label.
    meanings
        What a data dictionary says that labels mean; they may be named by that.

    Examples
    --------
    >>> assign_groups(pd.Series(["CN", "AD", "n/a"])).group.tolist()
    ['control', 'patient', 'other']
    """
    counts = {str(label): int(number) for label, number in diagnosis.value_counts().items()}
    found = [label for label in counts if label != NO_LABEL]
    where = f"column {str(diagnosis.name)!r}"
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
        label = f"The label {both[0]!r} is in both "
        raise InputError(label, Remedy("control"), " and ", Remedy("patients"), ".\nName it in one of the two only.")
    sick = sick or _remaining(found, healthy, counts, where)
    return Groups(groups_of(diagnosis, healthy, sick), healthy, sick)


def groups_of(diagnosis: pd.Series, control_labels: Sequence[str], patient_labels: Sequence[str]) -> pd.Series:
    """Return the group of each label: ``control``, ``patient``, or ``other`` where it is of neither.

    A model that knows no labels, such as an imported one, goes by the usual names of controls: everybody else with a
    label is a patient.

    Examples
    --------
    >>> groups_of(pd.Series(["CN", "AD", "n/a"]), [], []).tolist()
    ['control', 'patient', 'other']
    """
    healthy, sick = diagnosis.isin(list(control_labels)), diagnosis.isin(list(patient_labels))
    if not control_labels and not patient_labels:
        healthy, sick = diagnosis.str.casefold().isin(CONTROL_NAMES), diagnosis != NO_LABEL
    group = np.select([healthy, sick], ["control", "patient"], "other").tolist()
    return pd.Series(group, index=diagnosis.index, name="group")


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
            Remedy(name), f" names no label.\nName one or more of those found in {where}: {labels_with_counts(counts)}."
        )
    unknown = [label for label in wanted if label not in counts or label == NO_LABEL]
    if unknown and not codes:
        raise InputError(
            f"The label {unknown[0]!r} (from ",
            Remedy(name),
            f") does not occur in {where}."
            f"{did_you_mean(unknown[0], list(counts))}\nLabels found: {labels_with_counts(counts)}.\n"
            f"Write it as in the table, or leave it out of ",
            Remedy(name),
            ".",
        )
    return tuple(dict.fromkeys(wanted))


def _recognised(usual: list[str], counts: dict[str, int], where: str) -> tuple[str, ...]:
    if len(usual) == 1:
        return (usual[0],)
    problem = f"{listed(map(repr, usual))} could all be" if usual else "none of them is a usual name for"
    several = Message(" (to take all: ", Remedy("control", usual), ")") if usual else ""
    raise InputError(
        f"Cannot tell which label in {where} means controls: {problem} the controls.\n"
        f"Labels found: {labels_with_counts(counts)}.\nName the controls with ",
        Remedy("control", Blank("LABEL")),
        several,
        ".",
    )


def _remaining(found: list[str], healthy: tuple[str, ...], counts: dict[str, int], where: str) -> tuple[str, ...]:
    others = [label for label in found if label not in healthy]
    if len(others) == 1:
        return (others[0],)
    if not others:
        raise InputError(
            f"There are no patients: {where} has only the controls' label {listed(map(repr, healthy))}.\n"
            f"Labels found: {labels_with_counts(counts)}.\nAdd patients to the table."
        )
    raise InputError(
        f"Cannot tell which people are the patients: {where} has {len(others)} labels besides the controls'.\n"
        f"Labels found: {labels_with_counts(counts)}.\n"
        f"Name the patients' labels, for example ",
        Remedy("patients", others[:2]),
        "; everybody else is scored only.",
    )


def labels_with_counts(counts: Mapping[str, int]) -> str:
    """List labels, and how many people have each."""
    return listed((f"{'no label' if label == NO_LABEL else label} ({number})" for label, number in counts.items()), 12)
