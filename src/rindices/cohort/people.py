"""Checked people: cohorts of controls, patients and others, new people for a model, column roles and follow-up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, counted, listed, shown, worded
from rindices.settings import FOLLOW_UP, ApplySettings, ReportSettings, TableSettings


@dataclass(frozen=True)
class Outlier:
    """A person far from everyone else: the row of the table, what is unusual, and the regions with their values."""

    row: int
    text: str
    cells: dict[str, float]


@dataclass(frozen=True)
class Roles:
    """The role of each column.

    Attributes
    ----------
    covariates, clinical, regions
        Names of these columns; the site is the last covariate.
    others, background
        Columns without a role, and those among them, such as age, in which the groups should not differ.
    why
        The role of every column, and the reason for it.
    problems, notes
        Columns that may not be regions, and messages about those that are not or are empty.
    """

    covariates: tuple[str, ...]
    clinical: tuple[str, ...]
    regions: tuple[str, ...]
    others: tuple[str, ...]
    background: tuple[str, ...]
    why: dict[str, tuple[str, Text]]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Checked people from a training table or another one.

    Tables and series share one order and one index: the participants' ids as text. With visits, people have several
    rows and ids repeat, so rows must be matched by position.

    Attributes
    ----------
    features
        People × regions, float64; for new people, in the model's order.
    covariates
        Numbers as float64, categories as text; in a training table, the site comes last, if one was named.
    diagnosis
        Label of each person, ``n/a`` where missing.
    group
        ``control``, ``patient`` or ``other`` (scored, never used for training), by the label in the same row; for new
        people, by the training table's labels, see `rindices.schema.diagnosis_and_region_fields.groups_of`.
    clinical
        Clinical scores: numbers as float64, categories as text, gaps as NaN.
    first_visit
        True for each person's earliest visit; without visits, for everyone.
    visit, years, years_from
        The visit as in the table, the years since the person's first visit (both None without visits, and years also if
        they cannot be determined), and the source of the years.
    """

    features: pd.DataFrame
    covariates: pd.DataFrame
    diagnosis: pd.Series
    group: pd.Series
    first_visit: NDArray[np.bool_]
    clinical: pd.DataFrame = field(default_factory=pd.DataFrame)
    visit: pd.Series | None = None
    years: pd.Series | None = None
    years_from: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class People(Rows):
    """New people, checked.

    Attributes
    ----------
    flags
        What lies outside the training range, or a note that the site is unknown; otherwise ``""``.
    left_out
        People who were excluded, and why: the rows of an `exclusions_and_outliers.Record` that are not used.
    notes
        Messages about people who are excluded or were not found in joined tables, without ids.
    """

    flags: pd.Series
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cohort(Rows):
    """People with regional measures, labels, groups and covariates, all checked.

    Attributes
    ----------
    control_labels, patient_labels
        The labels that define each group.
    people
        Every row that was read, including those excluded, in the order of the table: participant_id, visit, diagnosis,
        group, site, used, reason; distance from the controls, size, farthest region, and the measures by which a person
        is an outlier (far_in); flags.
    ignored_columns
        Columns of the table without a role.
    messages
        Messages for the user, with the settings that would help; `warnings` returns them worded for Python.
    source, sha256
        Name of the file and its SHA-256 (empty for a table in memory).
    site
        Site of each person as text, if a site column was named.
    unit
        Unit of the regions, if a data dictionary gives it.
    region_names
        Names of the regions in the data dictionary, if there is one.
    background
        Variables in which the groups should not differ: covariates, and other columns such as age, sex and site.
    doi
        DOI of the BIDS dataset, if it has one.
    settings
        The role of each column as requested, with the names of all covariates and scores.
    outliers
        Rows that lie far from all others, whether excluded or not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(5, 1, (60, 4)), columns=["lHip", "rHip", "lAmy", "rAmy"])
    >>> table.insert(0, "participant_id", [f"p{number:02d}" for number in range(60)])
    >>> table.insert(1, "diagnosis", ["CN"] * 30 + ["AD"] * 30)
    >>> from rindices import make_cohort
    >>> make_cohort(table)
    Cohort(30 controls, 30 patients, 0 others; 4 regions; covariates: none)
    """

    control_labels: tuple[str, ...]
    patient_labels: tuple[str, ...]
    people: pd.DataFrame = field(default_factory=pd.DataFrame)
    ignored_columns: tuple[str, ...] = ()
    messages: tuple[Text, ...] = ()
    source: str = "table"
    sha256: str = ""
    site: pd.Series | None = None
    unit: str | None = None
    region_names: Mapping[str, str] = field(default_factory=dict)
    background: pd.DataFrame = field(default_factory=pd.DataFrame)
    doi: str | None = None
    settings: TableSettings = field(default_factory=TableSettings)
    outliers: tuple[Outlier, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages for the user, worded for Python."""
        return tuple(worded(message) for message in self.messages)

    @property
    def n_controls(self) -> int:
        """Number of controls, each counted once."""
        return self._number("control")

    @property
    def n_patients(self) -> int:
        """Number of patients, each counted once."""
        return self._number("patient")

    @property
    def n_other(self) -> int:
        """Number of people who are scored only, each counted once."""
        return self._number("other")

    @property
    def n_later(self) -> int:
        """Number of later visits, which are scored only."""
        return int((~self.first_visit).sum())

    @property
    def training(self) -> NDArray[np.bool_]:
        """True for the first visits of controls and patients."""
        return (self.group != "other").to_numpy(dtype=bool) & self.first_visit

    def of_training(self) -> tuple[pd.DataFrame, NDArray[np.bool_], pd.DataFrame | None]:
        """Return the arguments of an estimator's `fit`: regions, a mask of patients, and covariates or None."""
        people, is_patient = self.training, (self.group == "patient").to_numpy()
        return self.features[people], is_patient[people], self.covariates[people] if self.covariates.shape[1] else None

    def _number(self, group: str) -> int:
        return int((self.group == group)[self.first_visit].sum())

    def __repr__(self) -> str:
        numbers = {"control": self.n_controls, "patient": self.n_patients, "other": self.n_other}
        numbers |= {"later visit": self.n_later} if self.n_later else {}
        groups = listed(counted(number, what) for what, number in numbers.items())
        regions = counted(self.features.shape[1], "region")
        return f"Cohort({groups}; {regions}; covariates: {listed(self.covariates.columns) or 'none'})"


def follow_up_of(settings: object) -> dict[str, str]:
    """Return the follow-up columns named in settings.

    Examples
    --------
    >>> follow_up_of(TableSettings(time="years", event="converted"))
    {'time': 'years', 'event': 'converted'}
    """
    return {name: column for name in FOLLOW_UP if (column := getattr(settings, name)) is not None}


_EVENTS_A_VARIABLE = 10  # with fewer, hazard ratios are biased and their intervals too narrow (Peduzzi et al. 1995)
_NEEDS = {"time": "event", "event": "time", "entry": "time", "last_without": "time", "competing": "time"}


def check_follow_up(
    settings: TableSettings | ApplySettings | ReportSettings,
    table: pd.DataFrame,
    ids: Sequence[str] | pd.Index,
    group: pd.Series,
    first_visit: NDArray[np.bool_],
    n_covariates: int,
) -> list[Text]:
    """Refuse unusable times and events; return warnings about few events, and about people left out by empty cells.

    Parameters
    ----------
    settings
        Settings that name the columns.
    table
        Table with these columns, one row per person or visit.
    ids
        Ids of the people in its rows.
    group, first_visit
        Group of each row, and which rows are first visits: at those, events of people who are not controls count.
    n_covariates
        Number of covariates that a severity is adjusted for.

    Raises
    ------
    InputError
        If a required column is not named, a cell is impossible, or no one has the event.
    """
    columns = follow_up_of(settings)
    for name, need in _NEEDS.items():
        if name in columns and need not in columns:
            raise InputError(
                f"You named a column for {FOLLOW_UP[name]} ({columns[name]!r}), but none for {FOLLOW_UP[need]}.\n"
                "Name a column for it with ",
                Remedy(need, Blank("COLUMN")),
                ".",
            )
    if not columns:
        return []
    asked = first_visit & (group != "control").to_numpy()
    values = {name: _numbers(table[column]) for name, column in columns.items()}
    _check_cells(ids, columns, values)
    known = np.isfinite(values["time"]) & np.isfinite(values["event"])
    n_events = int((values["event"][asked & known] == 1).sum()) or int((values["event"][known] == 1).sum())
    if n_events == 0:
        raise InputError(
            f"No events were found: column {columns['event']!r} is never 1 in rows where {columns['time']!r} has a "
            "value.\n"
            "Name the correct event column with ",
            Remedy("event", Blank("COLUMN")),
            ", enter 1 where the event occurred, or omit the follow-up.",
        )
    n_variables, left_out = 1 + n_covariates, _left_out(columns, values, asked)
    if n_events >= _EVENTS_A_VARIABLE * n_variables:
        return left_out
    fewer = (", or use fewer covariates with ", Remedy("covariates")) if isinstance(settings, TableSettings) else ()
    return [
        *left_out,
        Message(
            f"There are {counted(n_events, 'event')} for {counted(n_variables, 'variable')} (a severity and the "
            "covariates), fewer than ten per variable, so hazard ratios are descriptive only. Wait for more "
            "events",
            *fewer,
            ".",
        ),
    ]


def _left_out(columns: dict[str, str], values: dict[str, np.ndarray], asked: NDArray[np.bool_]) -> list[Text]:
    """Report how many people are left out because of an empty cell whose value does not follow from the others."""
    known = {name: np.isfinite(numbers) for name, numbers in values.items()}
    followed = known["time"] & known["event"]
    needed = {
        "time": known["event"],
        "event": known["time"],
        "entry": followed,
        "competing": followed & (values["event"] == 0),
    }
    n_lacking = {name: int((asked & needed[name] & ~known[name]).sum()) for name in columns if name in needed}
    return [
        f"{FOLLOW_UP[name].capitalize()} (column {columns[name]!r}) is missing for "
        f"{counted(n, 'person', 'people')}, who {'is' if n == 1 else 'are'} left out of the "
        f"{'curves' if name == 'competing' else 'hazard ratios and curves'}. Fill in the cells if possible."
        for name, n in n_lacking.items()
        if n
    ]


def _numbers(values: pd.Series) -> np.ndarray:
    if values.dtype.kind != "f":
        known = values.dropna()
        raise InputError(
            f"Column {values.name!r} should contain numbers, but it contains "
            f"{repr(str(known.iloc[0])) if len(known) else 'no values'}.\n"
            "Enter times as numbers, and events as 1 or 0."
        )
    return values.to_numpy(float)


def _check_cells(ids: Sequence[str] | pd.Index, columns: dict[str, str], values: dict[str, np.ndarray]) -> None:
    """Refuse the first impossible cell: a negative time, an event that is neither 0 nor 1, an impossible order."""
    given = dict.fromkeys(FOLLOW_UP, np.full(len(ids), np.nan)) | values
    time, occurred, last = given["time"], given["event"] == 1, given["last_without"]
    either = "Enter 1 if the event occurred and 0 if it did not; use a separate column for other outcomes"
    order = "is not before the time of follow-up"
    for name, wrong, what, advice in (
        *(
            (one, given[one] < 0, "is below 0", "Times are measured from the scan")
            for one in ("time", "entry", "last_without")
        ),
        *(
            (one, np.isfinite(given[one]) & ~np.isin(given[one], (0, 1)), "is neither 0 nor 1", either)
            for one in ("event", "competing")
        ),
        ("entry", given["entry"] >= time, order, "Exclude people who were not observed at all"),
        (
            "last_without",
            (last > time) | ((last >= time) & occurred),
            order,
            "The event must occur after the last time at which it had not yet occurred",
        ),
        (
            "competing",
            occurred & (given["competing"] == 1),
            "is 1 although the event is also 1",
            "Only the first event counts",
        ),
    ):
        if wrong.any():
            place, people = int(wrong.argmax()), counted(pd.Index(ids)[wrong].nunique(), "person is", "people are")
            raise InputError(
                f"{FOLLOW_UP[name].capitalize()} {what} for person {ids[place]}: column {columns[name]!r} contains "
                f"{shown(float(values[name][place]))} ({people} affected).\n"
                f"{advice}. Correct the cells or leave them empty, or name another column with ",
                Remedy(name, Blank("COLUMN")),
                ".",
            )
