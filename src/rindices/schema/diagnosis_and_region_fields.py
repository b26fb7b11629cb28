"""The diagnosis, whose labels define controls, patients and others; and the regions.

Regions are checked for gaps, some of which may be imputed, for impossible values, and for units, judged by medians.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Blank, InputError, Message, Problem, Remedy, counted, did_you_mean, listed
from rindices.schema.cells import plain_code, text_of
from rindices.schema.field import DIGITS, Field, NumberField, Roster, Seen, kept_quantile
from rindices.schema.role_guesses import looks_like_score
from rindices.schema.units_and_impossible_values import impossible_regions, unit_problems
from rindices.settings import Labels

NO_LABEL = "n/a"
CONTROL_NAMES = frozenset(
    {"cn", "hc", "nc", "ctl", "ctrl", "control", "controls", "healthy", "healthy control", "healthy controls", "normal"}
    | {"0", "-1"}
)


class Groups(NamedTuple):
    """Each person's group (``control``, ``patient`` or ``other``), and the labels that define the groups."""

    group: pd.Series
    control_labels: tuple[str, ...]
    patient_labels: tuple[str, ...]


class DiagnosisField(Field):
    """Each person's label, and which labels denote controls and patients.

    Parameters
    ----------
    name
        Its column, which is optional for new people.
    control, patients
        A label, several separated by commas, or a sequence of labels. Without ``control`` the one label with
        a usual name (CN, HC, control, 0, ...) is taken; without ``patients`` the one remaining label.
    meanings
        Meanings of the labels in a data dictionary; labels may also be specified by their meaning.

    Examples
    --------
    >>> DiagnosisField("diagnosis").learn(pd.Series(["CN", "AD", "n/a"])).group.tolist()
    ['control', 'patient', 'other']
    """

    def __init__(
        self, name: str, control: Labels = None, patients: Labels = None, meanings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name)
        self._control, self._patients, self._where = control, patients, f"column {name!r}"
        self._codes: dict[str, list[str]] = {}
        for code, meaning in (meanings or {}).items():
            self._codes.setdefault(meaning.casefold(), []).append(code)

    def observe(self, batch: pd.DataFrame, roster: Roster) -> pd.Series:
        """Return the labels as text: ``1.0`` becomes ``1``, a missing label ``n/a``."""
        if self.name not in batch:
            return pd.Series(NO_LABEL, index=roster.ids, name=self.name)
        text = text_of(batch[self.name]).set_axis(roster.ids)
        return text.map({label: plain_code(label) for label in text.dropna().unique()}).where(text.notna(), NO_LABEL)

    def learn(self, values: pd.Series) -> Groups:
        """Find the labels of controls and of patients, and assign everyone to a group."""
        counts = {str(label): int(number) for label, number in values.value_counts().items()}
        labels = [label for label in counts if label != NO_LABEL]
        if not labels:
            raise InputError(
                f"No one has a label in {self._where}.\nIt should contain each person's diagnosis, such as CN or AD."
            )
        usual = CONTROL_NAMES | {code for name in CONTROL_NAMES for code in self._codes.get(name, ())}
        sick = self._requested(self._patients, counts, "patients")
        healthy = self._requested(self._control, counts, "control")
        controls = [label for label in labels if label.casefold() in usual and label not in sick]
        healthy = healthy or self._usual_controls(controls, counts)
        if both := [label for label in healthy if label in sick]:
            raise InputError(
                f"The label {both[0]!r} is listed in both ",
                Remedy("control"),
                " and ",
                Remedy("patients"),
                ".\nList it in only one of them.",
            )
        sick = sick or self._remaining_patients([label for label in labels if label not in healthy], healthy, counts)
        return Groups(groups_of(values, healthy, sick), healthy, sick)

    def _requested(self, labels: Labels, counts: dict[str, int], name: str) -> tuple[str, ...]:
        if labels is None:
            return ()
        items = list(labels) if isinstance(labels, Sequence) else [labels]
        if isinstance(labels, str):  # a label may itself contain a comma
            whole = labels.strip() in counts or labels.strip().casefold() in self._codes
            items = [labels] if whole else labels.split(",")
        named = [plain_code(item) for item in items if plain_code(item)]
        wanted = [
            code
            for label in named
            for code in ([label] if label in counts else self._codes.get(label.casefold(), [label]))
        ]
        if not wanted:
            raise InputError(
                Remedy(name),
                " should name at least one label.\n"
                f"Choose from the labels in {self._where}: {labels_with_counts(counts)}.",
            )
        known = {*counts, *chain(*self._codes.values())} - {NO_LABEL}
        if unknown := [label for label in wanted if label not in known]:
            raise InputError(
                f"The label {unknown[0]!r}, listed in ",
                Remedy(name),
                f", does not occur in {self._where}."
                f"{did_you_mean(unknown[0], [*counts, *self._codes])}\nLabels found: {labels_with_counts(counts)}.\n"
                f"Spell it as in the table, or remove it from ",
                Remedy(name),
                ".",
            )
        return tuple(dict.fromkeys(wanted))

    def _usual_controls(self, usual: list[str], counts: dict[str, int]) -> tuple[str, ...]:
        if len(usual) == 1:
            return (usual[0],)
        if len(counts) == 1:
            label = next(iter(counts))
            raise InputError(
                f"In {self._where}, everyone has the label {label!r}, so there are no groups to compare.\n"
                "Add people with another label. If the controls are in a separate file, provide both files: "
                f"CN=controls.csv and {label}=patients.csv."
            )
        problem = f"{listed(map(repr, usual))} could all denote" if usual else "none is a common label for"
        several = Message(" (to include all of these: ", Remedy("control", usual), ")") if usual else ""
        raise InputError(
            f"Cannot tell which label in {self._where} denotes controls: {problem} controls.\n"
            f"Labels found: {labels_with_counts(counts)}.\nSpecify the control label with ",
            Remedy("control", Blank("LABEL")),
            several,
            ".",
        )

    def _remaining_patients(
        self, others: list[str], healthy: tuple[str, ...], counts: dict[str, int]
    ) -> tuple[str, ...]:
        like = {*CONTROL_NAMES, *map(str.casefold, healthy)}
        meant = [label for label in others if label.casefold() in like]
        plain = [label for label in others if label not in meant]
        if len(others) == 1 and plain:
            return (others[0],)
        if not others:
            raise InputError(
                f"There are no patients: {self._where} contains only controls ({listed(map(repr, healthy))}).\n"
                f"Labels found: {labels_with_counts(counts)}.\nAdd patients to the table."
            )
        raise InputError(
            f"Cannot tell which people are patients: {self._where} has "
            f"{counted(len(others), 'label')} other than those for controls."
            f"\nLabels found: {labels_with_counts(counts)}.\n",
            Message(
                f"{listed(meant)} may also denote controls; if so, use ", Remedy("control", [*healthy, *meant]), ". "
            )
            if meant
            else "",
            "Specify the patient labels, for example ",
            Remedy("patients", plain[:2] or others[:2]),
            "; everyone else is scored but not used for training.",
        )


def groups_of(diagnosis: pd.Series, control_labels: Sequence[str], patient_labels: Sequence[str]) -> pd.Series:
    """Return the group of each label: ``control``, ``patient``, or ``other`` if it belongs to neither.

    A model without labels, such as an imported one, relies on the usual names of controls: everyone else with a label
    is a patient.

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


def labels_with_counts(counts: Mapping[str, int]) -> str:
    """List labels with the number of people who have each."""
    return listed(
        (f"{'no label' if label == NO_LABEL else label} ({number:,})" for label, number in counts.items()), 12
    )


MIN_REGIONS = 4
MOST_MISSING = 0.2  # share of a person's regions, or of a table's columns of regions, that may be missing
MOST_LACKING = 0.4  # share of the training people who may lack a region
_ENOUGH_FOR_MEDIANS = 2_000_000  # values


class RegionField(NumberField):
    """The regions. Given a reference (minimum, median and maximum in training, as rows), units are checked as well.

    With `fills`, people may lack up to a fifth of the regions; in a training table, which has no reference, columns may
    have gaps in up to two fifths of the people, unless they look like scores.
    """

    kind = "region"

    def __init__(
        self,
        columns: Sequence[str],
        reference: NDArray[np.float64] | None = None,
        *,
        unit: str | None = None,
        fills: bool = False,
    ) -> None:
        super().__init__(*columns, reference=reference)
        self._fills, self._unit, self._kept = fills, unit, list[NDArray[np.float64]]()

    def learn(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a low quantile, the median and a high quantile (rows) of each region, rounded."""
        quantile = kept_quantile(len(values))
        kept = np.nanquantile(values, [quantile, 0.5, 1 - quantile], axis=0)
        size = np.floor(np.log10(np.abs(kept, where=kept != 0, out=np.ones_like(kept))))
        kept = np.round(kept / 10**size, DIGITS - 1) * 10**size
        # Any value of 0, or below it, shows that such values are possible.
        for beyond, at_most in (((values <= 0).any(axis=0), 0), ((values < 0).any(axis=0), -1e-3 * np.abs(kept[2]))):
            kept[0] = np.where(beyond, np.minimum(kept[0], at_most), kept[0])
        return kept

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the regions of some rows."""
        seen = super().observe(batch, roster)
        if self._reference is not None and sum(map(np.size, self._kept)) < _ENOUGH_FOR_MEDIANS:
            self._kept.append(seen.values)
            people, medians = np.concatenate(self._kept), np.full(len(self.columns), np.nan)
            measured = ~np.isnan(people).all(axis=0)
            medians[measured] = np.nanmedian(people[:, measured], axis=0)
            self.problems = unit_problems(medians, len(people), self.columns, self._reference, self._unit)
        return seen

    def _impossible(self, block: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
        return impossible_regions(block, reference)

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if not self._fills or not gaps.any():
            return gaps
        unusable = np.broadcast_to((gaps.mean(axis=1) > MOST_MISSING)[:, None], gaps.shape).copy()
        for place in np.flatnonzero(gaps.any(axis=0)).tolist() if self._reference is None else ():
            too_many = gaps[:, place].mean() > MOST_LACKING
            unusable[:, place] |= too_many or looks_like_score(self.columns[place], block[~gaps[:, place], place])
        return gaps & unusable

    def check(self) -> list[Problem]:
        """Return the problems of cells and of units; the first people of a long table suffice to judge units."""
        return super().check() + ([] if self.text.counts else self.problems)


def missing_regions(names: Sequence[str]) -> str:
    """Describe which regions a person lacks."""
    return f"values missing in {counted(len(names), 'region')} ({listed(names, 5)})"
