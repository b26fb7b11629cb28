"""New people, checked against what a fitted model expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.absent import Absent
from rindices.cohort.bids import read_source
from rindices.cohort.cells import Roster, has_numbers, tidy_table
from rindices.cohort.clinical import read_clinical
from rindices.cohort.columns import Names
from rindices.cohort.covariates import unusual
from rindices.cohort.dictionary import apply_dictionary
from rindices.cohort.gaps import number_block
from rindices.cohort.incomplete import record_of_incomplete
from rindices.cohort.labels import NO_LABEL, groups_of, label_text
from rindices.cohort.model_columns import Header, read_model_columns, roster_of
from rindices.cohort.units import check_units
from rindices.cohort.visits import first_visits, read_timeline, years_since_first
from rindices.errors import counted, listed
from rindices.schema.contract import STATISTICS, Contract

__all__ = ["People", "check_people", "read_people", "training_range"]

# A new person may exceed the training range of a region by this share of it before being flagged.
RANGE_MARGIN = 0.1


@dataclass(frozen=True, eq=False)
class People:
    """New people, checked: all tables and series have the participants' ids as index, which repeat with visits.

    Attributes
    ----------
    features
        People × regions in the model's order, float64.
    covariates
        Numbers as float64, categories as text.
    diagnosis
        Labels, ``n/a`` where missing.
    group
        ``control`` or ``patient`` by the training table's labels, otherwise ``other``; see `labels.groups_of`.
    flags
        ``""``, or what lies outside the training range, or that the site is unknown.
    clinical
        Clinical scores: numbers as float64, categories as text, gaps as NaN.
    visit
        The visit as in the table; None without visits.
    years, first_visit
        Time since the person's first visit where it can be told, and whether this is it; None without visits.
    left_out
        Who is not among them, and why: the rows of a `rindices.cohort.exclusions.Record` that are not used.
    notes
        Sentences for the user on who is left out, or was not found in joined tables. They name nobody.
    """

    features: pd.DataFrame
    covariates: pd.DataFrame
    diagnosis: pd.Series
    group: pd.Series
    flags: pd.Series
    clinical: pd.DataFrame
    visit: pd.Series | None = None
    years: pd.Series | None = None
    first_visit: NDArray[np.bool_] | None = None
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: tuple[str, ...] = ()


def read_people(
    path: str | Path,
    contract: Contract,
    *,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    exclude: Names = (),
    clinical: Names = (),
    visit: str | None = None,
    new_sites: Literal["refuse", "uncorrected"] = "refuse",
    join: str | Path | Sequence[str | Path] = (),
    drop_missing: bool = False,
) -> People:
    """Read new people from a file or a BIDS dataset and check them.

    Parameters
    ----------
    path
        A table, the folder of a BIDS dataset, or its ``participants.tsv``.
    contract
        What the model expects.
    prepare
        Changes the table after it was read and before it is checked.
    exclude, clinical, visit, new_sites, drop_missing
        As in `check_people`.
    join
        A further table of the same people, or several, joined by id (and visit).

    Raises
    ------
    InputError
        If a file cannot be read, or the table does not fit the model.
    """
    source = read_source(
        path,
        text_columns=(contract.id_column, contract.diagnosis_column),
        id_column=contract.id_column,
        visit_column=visit,
        join=join,
    )
    frame = source.frame
    if source.dictionary is not None:
        frame, _ = apply_dictionary(frame, source.dictionary, checked=[spec.name for spec in contract.covariates])
    frame = frame if prepare is None else prepare(frame)
    roles: dict[str, Any] = {"exclude": exclude, "clinical": clinical, "visit": visit, "new_sites": new_sites}
    absent = source.absent if frame.index.equals(source.frame.index) else ()
    people = check_people(frame, contract, **roles, drop_missing=drop_missing, absent=absent)
    return replace(people, notes=source.notes + people.notes)


def check_people(
    frame: pd.DataFrame,
    contract: Contract,
    *,
    exclude: Names = (),
    clinical: Names = (),
    visit: str | None = None,
    new_sites: Literal["refuse", "uncorrected"] = "refuse",
    some_rows: bool = False,
    drop_missing: bool = False,
    absent: Sequence[Absent] = (),
) -> People:
    """Check a table of new people against what the model expects.

    Parameters
    ----------
    frame
        Table from `rindices.cohort.tables.read_table`; the diagnosis column may be absent.
    contract
        What the model expects.
    exclude
        Additional columns of numbers that are no regions: names, patterns or a file with names.
    clinical
        Columns of clinical scores: names or patterns.
    visit
        Column that tells a person's visits apart; that of the training table, if this table has it too.
    new_sites
        Whether people of sites that the model does not know are refused, or scored without a correction for site.
    some_rows
        These are some rows of a larger table: its columns of text stay text, and what takes everybody to tell, the unit
        of the regions and whether an id occurs twice, is told of these rows only or not at all.
    drop_missing
        Leave out people with missing or impossible values in regions or covariates, instead of refusing the table.
    absent
        Who has gaps because a joined table does not know them, for the message.

    Returns
    -------
    People
        Regions in the model's order; people outside the training range are kept and flagged.

    Raises
    ------
    InputError
        If regions or covariates are missing, additional, coded otherwise or in another unit.

    Examples
    --------
    >>> contract = Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0))
    >>> table = pd.DataFrame({"participant_id": ["p1", "p2"], "b": [3.0, 3.1], "a": [2.0, 5.0]})
    >>> check_people(table, contract).flags.tolist()
    ['', '1 region outside the training range (a)']
    """
    text = [str(name) for name in frame if frame[name].dtype == object] if some_rows else []
    table = tidy_table(frame, (contract.id_column, contract.diagnosis_column, *text))
    if visit is None and contract.visit_column in table.columns:
        visit = contract.visit_column
    left_out: dict[str, Any] = {}
    if drop_missing or absent:
        table, left_out = _without_incomplete(table, contract, visit, drop=drop_missing, absent=absent)
    roles: dict[str, Any] = {"visit": visit, "exclude": exclude, "clinical": clinical, "new_sites": new_sites}
    roster, covariates, scores = read_model_columns(table, contract, Header.of(table), **roles)
    block = number_block(table, contract.features, roster, kind="region")
    minimum, median, maximum = training_range(contract)
    if not some_rows:
        everybody = np.median(block, axis=0), len(block)
        check_units(*everybody, contract.features, (minimum, median, maximum), contract.unit)
    margin = RANGE_MARGIN * (maximum - minimum)
    outside = (block < minimum - margin) | (block > maximum + margin)
    diagnosis = _labels(table, contract, roster)
    group = groups_of(diagnosis, contract.control_labels, contract.patient_labels)
    return People(
        features=pd.DataFrame(block, index=roster.ids, columns=list(contract.features)),
        covariates=covariates,
        diagnosis=diagnosis,
        group=pd.Series(group, index=roster.ids, name="group"),
        flags=_flags(outside, covariates, contract, roster),
        clinical=read_clinical(table, scores, roster).set_axis(roster.ids, axis=0),
        **({} if visit is None else _visits(table, visit, roster)),
        **left_out,
    )


def _without_incomplete(
    table: pd.DataFrame, contract: Contract, visit: str | None, *, drop: bool, absent: Sequence[Absent]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows that can be scored, and what `People` tells about the others."""
    roster = roster_of(table, contract, visit)
    record = record_of_incomplete(table, contract, roster, drop=drop, absent=absent)
    used, diagnosis = record.used, _labels(table, contract, roster)
    if used.all():
        return table, {}
    columns: dict[str, Sequence[object]] = {"participant_id": roster.ids.tolist()}
    columns |= {} if visit is None else {"visit": table[visit].tolist()}
    group = groups_of(diagnosis, contract.control_labels, contract.patient_labels)
    everybody = record.table(columns | {"diagnosis": diagnosis.tolist(), "group": list(group)})
    return table[used], {"left_out": everybody[~used], "notes": record.warning()}


def training_range(contract: Contract) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return minimum, median and maximum of each region in training."""
    # What is not known becomes NaN, which nothing lies below or above.
    minimum, median, maximum = (np.array(getattr(contract, name), float) for name in STATISTICS)
    return minimum, median, maximum


def _visits(table: pd.DataFrame, visit: str, roster: Roster) -> dict[str, Any]:
    """Return when the visits were, by their column or by an age that grows."""
    line = read_timeline(table[visit], roster)
    ages = [name for name in table if str(name).casefold() == "age" and has_numbers(table[name])]
    age = table[ages[0]].to_numpy(dtype=np.float64) if ages else None
    years, _ = years_since_first(roster.ids, line, age, visit)
    return {
        "visit": table[visit].set_axis(roster.ids).rename("visit"),
        "years": None if years is None else pd.Series(years, index=roster.ids, name="years"),
        "first_visit": first_visits(roster.ids, line.rank),
    }


def _labels(table: pd.DataFrame, contract: Contract, roster: Roster) -> pd.Series:
    has_labels = contract.diagnosis_column in table.columns
    labels = label_text(table[contract.diagnosis_column]).tolist() if has_labels else [NO_LABEL] * len(table)
    return pd.Series(labels, index=roster.ids, name="diagnosis")


def _flags(outside: NDArray[np.bool_], covariates: pd.DataFrame, contract: Contract, roster: Roster) -> pd.Series:
    parts: list[list[str]] = [[] for _ in roster.ids]
    regions = np.array(contract.features, dtype=object)
    for position in np.flatnonzero(outside.any(axis=1)).tolist():
        names = regions[outside[position]]
        parts[position].append(f"{counted(len(names), 'region')} outside the training range ({listed(names, limit=5)})")
    for spec in contract.covariates:
        if spec.name == contract.site_column and spec.categories is not None:
            for position, site in enumerate(covariates[spec.name]):
                if site not in spec.categories:
                    parts[position].append(f"site {site} is not one of the model's: not corrected for site")
        for position, text in enumerate(unusual(spec, covariates[spec.name].to_numpy())):
            if text:
                parts[position].append(text)
    return pd.Series(["; ".join(part) for part in parts], index=roster.ids, name="flags")
