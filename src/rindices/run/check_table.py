"""Check of a table before training: the role of each column, who remains, and what `fit` would report.

The table is read and checked by the code that `rindices.run.plan` uses for a run; nothing is decided here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from rindices.analysis import balance_warnings, flow_table
from rindices.cohort import Cohort, Looked, Outlier
from rindices.judging import Evidence
from rindices.problems import Curtain, InputError, Problem, Remedy, Text, Value, Wording, in_python, remedies_in, worded
from rindices.record.documents import Document, Rows
from rindices.run.plan import balance_of, look
from rindices.schema.role_guesses import Kind, grouped, kinds_of
from rindices.settings import TableSettings
from rindices.tables import Source, read_source

# If a table is refused, people are counted as if the first of these that suffices had been given.
_SETTLED: tuple[dict[str, Value], ...] = (
    {},
    {"drop_missing": True},
    {"small_sites": "drop"},
    {"drop_missing": True, "small_sites": "drop"},
)


class CheckedColumn(Document):
    """What a column is taken for, and why; what it may be instead; and what is in it."""

    name: str
    role: str
    why: str
    measure: str = ""
    suspicion: str = ""
    suspected_by: str = ""
    missing: int = 0
    impossible: int = 0
    minimum: float | None = None
    median: float | None = None
    maximum: float | None = None


class FoundProblem(Document):
    """Something for which the table is refused, and the columns it concerns.

    `shown` is for whoever has the table: there a repeated id is named. It is in no document.
    """

    text: str
    columns: tuple[str, ...] = ()
    shown: str = Field(default="", exclude=True)


class FoundRemedy(Document):
    """A setting that would help, and the value that it should have."""

    setting: str
    value: bool | int | float | str | tuple[str, ...]


class PreviewedPattern(Document):
    """A pattern of a linear model: changes of regions at severity 1 in sd of controls, the strongest first.

    ``percent`` is of the controls' mean; None where a region may be negative.
    """

    pattern: int
    regions: tuple[str, ...]
    changes: tuple[float, ...]
    percent: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class FirstLook(Evidence):
    """What can be said before anything is trained, with the evidence: see `rindices.run.first_look_and_power`.

    Attributes
    ----------
    headline
        Whether patients and controls differ, and in how many directions.
    verdicts
        Which verdicts this table can get, and why.
    chances
        How often simulated studies of this size find patterns.
    time
        About how long `fit` takes here; `seconds` is the same as a number.
    warnings
        What training would warn of besides.
    n_patterns, patterns
        How many patterns would be looked for, and what a linear model finds.
    """

    headline: str
    verdicts: str
    chances: str = ""
    time: str
    seconds: float
    warnings: tuple[str, ...] = ()
    n_patterns: int
    patterns: tuple[PreviewedPattern, ...] = ()


class CheckedTable(Document):
    """Result of `rindices check`. People are identified by row, never by id.

    Attributes
    ----------
    source, n_rows
        The table.
    usable
        Whether `fit` would train on this table.
    problems, remedies, fixes
        Why not, what would help, and the settings that would.
    as_if
        Settings that exclude people and would make the table usable; people are counted as if they were given.
    columns, kinds
        Every column; and the regions by type of measure.
    labels, control_labels, patient_labels
        Number of rows with each diagnosis label, and the labels of controls and patients.
    n_controls, n_patients, n_other
        Number of people used for training, and of those who would only be scored.
    left_out
        Rows that would be excluded, by reason.
    flow, balance, outliers
        People by site and group, the comparison of the groups, and the outliers.
    warnings, advice
        Warnings that `fit` would issue before training, and the settings that would help.
    look
        Comparison of the groups before training; None if it was not requested or the table is not usable.
    shown_warnings
        Warnings for the owner of the table, which name people not found in joined tables; they are never stored.
    """

    source: str
    usable: bool = False
    n_rows: int = 0
    problems: tuple[FoundProblem, ...] = ()
    remedies: tuple[str, ...] = ()
    fixes: tuple[FoundRemedy, ...] = ()
    as_if: tuple[str, ...] = ()
    columns: tuple[CheckedColumn, ...]
    kinds: dict[str, tuple[str, ...]] = Field(default={})
    labels: dict[str, int] = Field(default={})
    control_labels: tuple[str, ...] = ()
    patient_labels: tuple[str, ...] = ()
    n_controls: int = 0
    n_patients: int = 0
    n_other: int = 0
    left_out: dict[str, int] = Field(default={})
    flow: Rows = ()
    balance: Rows = ()
    outliers: tuple[Outlier, ...] = ()
    warnings: tuple[str, ...] = ()
    advice: tuple[FoundRemedy, ...] = ()
    look: FirstLook | None = None
    shown_warnings: tuple[str, ...] = Field(default=(), exclude=True)


def check_table(path: str | Path, settings: TableSettings) -> CheckedTable:
    """Check a table as `fit` would, without training.

    Parameters
    ----------
    path
        A table, or the folder of a BIDS dataset.
    settings
        Column roles, and which people are used.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read as a table.

    Examples
    --------
    >>> import tempfile
    >>> from rindices import simulate_cohort
    >>> path = Path(tempfile.mkdtemp(), "people.csv")
    >>> simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).save(path)
    >>> found = check_table(path, TableSettings(covariates="age,sex"))
    >>> found.usable, found.n_controls, found.columns[2].role
    (True, 60, 'a covariate')
    """
    return check_cohort(path, settings, wording=in_python)[0]


def check_cohort(
    path: str | Path, settings: TableSettings, *, wording: Wording, read: Callable[..., Source] = read_source
) -> tuple[CheckedTable, Cohort | None]:
    """Return the result of `check_table`, and the cohort that `fit` would use; None if it would refuse the table.

    `wording` names settings in messages; callers that check a table repeatedly can cache it with `read`.
    """
    looked = look(path, settings, read)
    kinds = kinds_of(looked.roles.regions, looked.found.regions.values)
    curtain = Curtain({*looked.found.roster.ids})
    columns_alone = CheckedTable(
        source=looked.source,
        n_rows=len(looked.found.labels),
        columns=_columns(looked, kinds, wording),
        kinds={name: tuple(names) for name, names in grouped(looked.roles.regions, kinds).items()},
        labels={str(label): int(number) for label, number in looked.found.labels.value_counts().items()},
        **_warning_fields((*looked.told, *looked.notes), curtain, wording),
    )
    refused, verdict = None, dict[str, object](usable=True)
    for settled in _SETTLED:
        try:
            cohort = looked.cohort(**settled)
        except InputError as error:
            if refused is None:
                problems = [one for one in error.problems if one.what not in looked.told]  # those are warnings here
                refused, verdict = error, refused_for(error, problems, curtain, wording, looked.settings.id)
        else:
            as_if = tuple(wording(Remedy(name, value)) for name, value in settled.items())
            checked = columns_alone.model_copy(update=verdict | {"as_if": as_if} | _described(cohort, curtain, wording))
            return checked, cohort if checked.usable else None
    return columns_alone.model_copy(update=verdict), None


def _columns(looked: Looked, kinds: list[Kind], wording: Wording) -> tuple[CheckedColumn, ...]:
    """Describe every column, in the order of the table."""
    regions, observed = dict(zip(looked.roles.regions, kinds, strict=True)), looked.found
    block = observed.regions
    gaps = np.isnan(block.values) & ~block.text  # including those that `fit` would impute
    seen = {name: (block.values[:, at], gaps[:, at], block.impossible[:, at]) for at, name in enumerate(regions)}
    seen |= {
        name: (one.values[:, 0], one.missing[:, 0], one.impossible[:, 0]) for name, one in observed.covariates.items()
    }
    others = [*observed.background.items(), *observed.scores.items()]
    none = np.zeros(len(observed.labels), bool)
    seen |= {str(name): (of.to_numpy(), of.isna().to_numpy(), none) for name, of in others if name not in seen}
    columns = []
    for name, (role, why) in looked.roles.why.items():
        values, missing, impossible = seen.get(name, (np.array([]), none, none))
        numbers = values[np.isfinite(values) & ~impossible] if values.dtype.kind == "f" and len(values) else values[:0]
        span = [float(of(numbers)) for of in (np.min, np.median, np.max)] if len(numbers) else [None] * 3
        kind = regions.get(name, Kind(""))
        columns.append(
            CheckedColumn(
                name=name,
                role=role,
                why=worded(why, wording),
                measure=kind.measure,
                suspicion=kind.suspicion,
                suspected_by=kind.why,
                missing=int(missing.sum()),
                impossible=int(impossible.sum()),
                **dict(zip(("minimum", "median", "maximum"), span, strict=True)),
            )
        )
    return tuple(columns)


def refused_for(
    error: InputError,
    problems: Sequence[Problem],
    curtain: Callable[[str], str],
    wording: Wording,
    id_column: str = "",
) -> dict[str, object]:
    """Return the fields of `CheckedTable` that state why a table is refused, and what would help."""
    return {
        "usable": False,
        "problems": tuple(
            FoundProblem(
                text=curtain(text), columns=one.where, shown=text if one.where == (id_column,) else curtain(text)
            )
            for text, one in ((worded(one.what, wording), one) for one in problems)
        ),
        "remedies": tuple(curtain(worded(one, wording)) for one in error.remedies),
        "fixes": fixes_in([error.message]),
    }


def fixes_in(texts: Iterable[Text], sheets: Iterable[str] = ()) -> tuple[FoundRemedy, ...]:
    """Return the settings that messages recommend, and the sheets to choose from."""
    return tuple(
        FoundRemedy(setting=name, value=value)
        for name, value in (*remedies_in(texts), *(Remedy("sheet", one) for one in sheets))
        if value is not None
    )


def _described(cohort: Cohort, curtain: Curtain, wording: Wording) -> dict[str, object]:
    """Return the fields of `CheckedTable` that describe the people."""
    balance = balance_of(cohort)
    reasons = cohort.people["reason"][~cohort.people["used"].astype(bool)].value_counts()
    return {
        "control_labels": cohort.control_labels,
        "patient_labels": cohort.patient_labels,
        "n_controls": cohort.n_controls,
        "n_patients": cohort.n_patients,
        "n_other": cohort.n_other,
        "left_out": {str(reason): int(number) for reason, number in reasons.items()},
        "flow": tuple(flow_table(cohort.people)[["site", "group", "read", "used"]].to_dict("records")),
        "balance": tuple(balance.astype(object).where(balance.notna(), None).to_dict("records")),
        "outliers": cohort.outliers,
        **_warning_fields((*cohort.messages, *balance_warnings(balance)), curtain, wording),
    }


def _warning_fields(messages: Sequence[Text], curtain: Curtain, wording: Wording) -> dict[str, Any]:
    """Return the warnings about a table, with and without people's ids, and the settings that would help."""
    said = tuple(worded(one, wording) for one in messages)
    return {"warnings": tuple(map(curtain, said)), "shown_warnings": said, "advice": fixes_in(messages)}
