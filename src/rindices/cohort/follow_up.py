"""What became of people: columns of time and event that can be used, or a sentence that says why not."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Blank, InputError, Message, Remedy, Text, counted, shown
from rindices.settings import FOLLOW_UP, ApplySettings, ReportSettings, TableSettings, follow_up_of

_EVENTS_A_VARIABLE = 10  # with fewer, hazard ratios are biased and their intervals too short (Peduzzi et al. 1995)
_NEEDS = {"time": "event", "event": "time", "entry": "time", "last_without": "time", "competing": "time"}


def check_follow_up(
    settings: TableSettings | ApplySettings | ReportSettings,
    table: pd.DataFrame,
    ids: Sequence[str] | pd.Index,
    asked: NDArray[np.bool_],
    n_covariates: int,
) -> list[Text]:
    """Refuse times and events that cannot be used, and say where there are few events.

    Parameters
    ----------
    settings
        Name the columns.
    table
        Has them, a row a person or visit.
    ids
        Of the people in its rows.
    asked
        Of which rows the events count: those of first visits, and not of controls.
    n_covariates
        That a severity is adjusted for.

    Raises
    ------
    InputError
        If one of time and event is not named, a cell is impossible, or nobody has the event.
    """
    columns = follow_up_of(settings)
    for name in columns:
        if _NEEDS[name] not in columns:
            need = _NEEDS[name]
            raise InputError(
                f"{FOLLOW_UP[name][:1].upper()}{FOLLOW_UP[name][1:]} is given ({columns[name]!r}), but "
                f"{FOLLOW_UP[need]} is not.\nName it with ",
                Remedy(need, Blank("COLUMN")),
                ".",
            )
    if not columns:
        return []
    values = {name: _numbers(table[column]) for name, column in columns.items()}
    _check_cells(ids, columns, values)
    known = np.isfinite(values["time"]) & np.isfinite(values["event"])
    n_events = int((values["event"][asked & known] == 1).sum()) or int((values["event"][known] == 1).sum())
    if n_events == 0:
        raise InputError(
            f"No one has the event: column {columns['event']!r} contains no 1 in rows where {columns['time']!r} "
            "is known.\n"
            "Name the event column with ",
            Remedy("event", Blank("COLUMN")),
            ", enter 1 where it occurred, or omit the follow-up.",
        )
    n_variables = 1 + n_covariates
    if n_events >= _EVENTS_A_VARIABLE * n_variables:
        return []
    fewer = (", or use fewer covariates with ", Remedy("covariates")) if isinstance(settings, TableSettings) else ()
    return [
        Message(
            f"There are {counted(n_events, 'event')} for {counted(n_variables, 'variable')} (a severity and the "
            "covariates), fewer than ten per variable: hazard ratios are descriptive only. Wait for more events",
            *fewer,
            ".",
        )
    ]


def _numbers(values: pd.Series) -> np.ndarray:
    if values.dtype.kind != "f":
        known = values.dropna()
        raise InputError(
            f"Column {values.name!r} should contain numbers, but got "
            f"{str(known.iloc[0]) if len(known) else 'no values'!r}.\n"
            "Write times as numbers, and events as 1 and 0."
        )
    return values.to_numpy(float)


def _check_cells(ids: Sequence[str] | pd.Index, columns: dict[str, str], values: dict[str, np.ndarray]) -> None:
    """Refuse the first impossible cell: a negative time, an event that is neither 0 nor 1, an order that cannot be."""
    time, nothing = values["time"], np.full(len(ids), np.nan)

    def refuse(name: str, wrong: np.ndarray, what: str, advice: str) -> None:
        if wrong.any():
            place = int(wrong.argmax())
            raise InputError(
                f"{FOLLOW_UP[name][:1].upper()}{FOLLOW_UP[name][1:]} {what}: column {columns[name]!r}, person "
                f"{ids[place]}, found {shown(float(values[name][place]))}; {counted(int(wrong.sum()), 'cell')} in all."
                f"\n{advice}. Correct the cells or leave them empty, or name another column with ",
                Remedy(name, Blank("COLUMN")),
                ".",
            )

    for name in ("time", "entry", "last_without"):
        refuse(name, values.get(name, nothing) < 0, "is below 0", "Times count from the scan")
    for name in ("event", "competing"):
        odd = values.get(name, nothing)
        is_odd = np.isfinite(odd) & ~np.isin(odd, (0, 1))
        advice = "Enter 1 if it occurred and 0 if it did not; use a separate column for other outcomes"
        refuse(name, is_odd, "is neither 0 nor 1", advice)
    late = values.get("entry", nothing) >= time
    refuse("entry", late, "is not before the time", "Exclude people who were never observed")
    wrong = (values.get("last_without", nothing) > time) | (
        (values.get("last_without", nothing) >= time) & (values["event"] == 1)
    )
    refuse("last_without", wrong, "is not before the time", "The event comes after it")
    both = (values["event"] == 1) & (values.get("competing", nothing) == 1)
    refuse("competing", both, "is 1, although the event is 1 as well", "Only the first event counts")
