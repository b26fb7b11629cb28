"""What became of people: columns of time and event that can be used, or a sentence that says why not."""

from __future__ import annotations

import numpy as np

from rindices.cohort.people import Cohort
from rindices.problems import Blank, InputError, Message, Remedy, Text, counted, shown
from rindices.settings import FOLLOW_UP

_EVENTS_A_VARIABLE = 10  # with fewer, hazard ratios are biased and their intervals too short (Peduzzi et al. 1995)
_NEEDS = {"time": "event", "event": "time", "entry": "time", "last_without": "time", "competing": "time"}


def check_follow_up(cohort: Cohort) -> list[Text]:
    """Refuse times and events that cannot be used, and say where there are few events.

    Raises
    ------
    InputError
        If one of time and event is not named, a cell is impossible, or nobody has the event.
    """
    columns = {name: column for name in FOLLOW_UP if (column := getattr(cohort.settings, name)) is not None}
    for name in columns:
        if _NEEDS[name] not in columns:
            need = _NEEDS[name]
            raise InputError(
                f"{FOLLOW_UP[name][:1].upper()}{FOLLOW_UP[name][1:]} is named ({columns[name]!r}), but not "
                f"{FOLLOW_UP[need]}.\nName it with ",
                Remedy(need, Blank("COLUMN")),
                ".",
            )
    if not columns:
        return []
    values = {name: _numbers(cohort, column) for name, column in columns.items()}
    _check_cells(cohort, columns, values)
    used = cohort.first_visit & (cohort.group != "control").to_numpy()
    known = np.isfinite(values["time"]) & np.isfinite(values["event"])
    n_events = int((values["event"][used & known] == 1).sum()) or int((values["event"][known] == 1).sum())
    if n_events == 0:
        raise InputError(
            f"Nobody has the event: column {columns['event']!r} has no 1 where {columns['time']!r} is known.\n"
            "Name the column that has the event with ",
            Remedy("event", Blank("COLUMN")),
            ", write 1 where it happened, or leave the follow-up out.",
        )
    n_variables = 1 + cohort.covariates.shape[1] - (cohort.site is not None)
    if n_events >= _EVENTS_A_VARIABLE * n_variables:
        return []
    return [
        Message(
            f"There are {counted(n_events, 'event')} for {counted(n_variables, 'variable')} (a severity and the "
            "covariates), fewer than ten per variable: hazard ratios are description. Wait for more events, or name "
            "fewer covariates with ",
            Remedy("covariates"),
            ".",
        )
    ]


def _numbers(cohort: Cohort, column: str) -> np.ndarray:
    values = cohort.clinical[column]
    if values.dtype.kind != "f":
        known = values.dropna()
        raise InputError(
            f"Column {column!r} should have numbers, found {str(known.iloc[0]) if len(known) else 'no values'!r}.\n"
            "Write times as numbers, and events as 1 and 0."
        )
    return values.to_numpy(float)


def _check_cells(cohort: Cohort, columns: dict[str, str], values: dict[str, np.ndarray]) -> None:
    """Refuse the first impossible cell: a negative time, an event that is neither 0 nor 1, an order that cannot be."""
    time, nothing = values["time"], np.full(len(cohort.features), np.nan)
    for name in ("time", "entry", "last_without"):
        _refuse(cohort, columns, name, values.get(name, nothing) < 0, "is below 0", "Times count from the scan")
    for name in ("event", "competing"):
        odd = values.get(name, nothing)
        is_odd = np.isfinite(odd) & ~np.isin(odd, (0, 1))
        advice = "Write 1 where it happened and 0 where it did not; other outcomes have a column of their own"
        _refuse(cohort, columns, name, is_odd, "is neither 0 nor 1", advice)
    late = values.get("entry", nothing) >= time
    _refuse(cohort, columns, "entry", late, "is not before the time", "Leave out people who were never observed")
    wrong = (values.get("last_without", nothing) > time) | (
        (values.get("last_without", nothing) >= time) & (values["event"] == 1)
    )
    _refuse(cohort, columns, "last_without", wrong, "is not before the time", "The event comes after it")
    both = (values["event"] == 1) & (values.get("competing", nothing) == 1)
    _refuse(cohort, columns, "competing", both, "is 1 beside the event", "Only what came first counts")


def _refuse(cohort: Cohort, columns: dict[str, str], name: str, wrong: np.ndarray, what: str, advice: str) -> None:
    if wrong.any():
        column, place = columns[name], int(wrong.argmax())
        value = shown(float(cohort.clinical[column].iloc[place]))
        raise InputError(
            f"{FOLLOW_UP[name][:1].upper()}{FOLLOW_UP[name][1:]} {what}: column {column!r}, person "
            f"{cohort.features.index[place]}, found {value}; {counted(int(wrong.sum()), 'cell')} in all.\n{advice}. "
            "Correct the cells or leave them empty, or name another column with ",
            Remedy(name, Blank("COLUMN")),
            ".",
        )
