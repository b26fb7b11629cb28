"""The columns that a fitted model needs, apart from the regions' cells: who, which columns, and the covariates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import pandas as pd

from rindices.cohort.cells import Roster, has_numbers, read_roster, require_column
from rindices.cohort.columns import Names, expand_names, is_region_name, wanted_names
from rindices.cohort.covariates import RECODE, read_covariate
from rindices.errors import InputError, counted, did_you_mean, excluding, listed
from rindices.schema.contract import Contract

__all__ = ["Header", "ModelColumns", "read_model_columns", "roster_of"]

_NEW_SITE = "Write the site as in the training table, or score these people uncorrected with --new-sites uncorrected."


class Header(NamedTuple):
    """The columns of a whole table.

    Attributes
    ----------
    columns
        Their names.
    numbers
        Those that hold numbers.
    """

    columns: tuple[str, ...]
    numbers: frozenset[str]

    @classmethod
    def of(cls, table: pd.DataFrame) -> Header:
        """Return the header of a table of `rindices.cohort.cells.with_numbers`."""
        names = tuple(map(str, table.columns))
        return cls(names, frozenset(name for name in names if has_numbers(table[name])))


class ModelColumns(NamedTuple):
    """Who sits in which row, their covariates, and the names of the clinical columns."""

    roster: Roster
    covariates: pd.DataFrame
    clinical: tuple[str, ...]


def read_model_columns(
    table: pd.DataFrame,
    contract: Contract,
    header: Header,
    *,
    visit: str | None = None,
    exclude: Names = (),
    clinical: Names = (),
    new_sites: Literal["refuse", "uncorrected"] = "refuse",
) -> ModelColumns:
    """Return what a model needs besides the regions, refusing what does not fit it; regions must only be there.

    Parameters
    ----------
    table
        Table from `rindices.cohort.cells.tidy_table`; of its cells those of ids, visits and covariates are looked at.
    contract
        What the model expects.
    header
        All columns of the file, of which the table may have a part.
    visit, exclude, clinical, new_sites
        As in `rindices.cohort.check_people`.

    Raises
    ------
    InputError
        What is wrong first, in this order: the option, ids and visits, columns, covariates one by one.
    """
    if new_sites not in ("refuse", "uncorrected"):
        raise InputError(f"--new-sites should be refuse or uncorrected, found {new_sites!r}.")
    roster = roster_of(table, contract, visit)
    scores = _check_header(header, contract, visit, exclude, clinical)
    names = [spec.name for spec in contract.covariates]
    values: dict[str, list[float] | list[str]] = {}
    for spec in contract.covariates:
        remedy = "Add the column, coded as in the training table."
        require_column(header.columns, spec.name, "a covariate of the model", remedy)
        is_site = spec.name == contract.site_column
        strangers, remedy = is_site and new_sites == "uncorrected", _NEW_SITE if is_site else RECODE
        values[spec.name] = read_covariate(spec, table, roster, strangers=strangers, remedy=remedy)
    columns = pd.Index(names, dtype=None if names else object)
    return ModelColumns(roster, pd.DataFrame(values, index=roster.ids, columns=columns), scores)


def roster_of(table: pd.DataFrame, contract: Contract, visit: str | None) -> Roster:
    """Return who sits in which row of a table for a model."""
    return read_roster(table, contract.id_column, "Rename the column as in the training table.", visit)


def _check_header(
    header: Header, contract: Contract, visit: str | None, exclude: Names, clinical: Names
) -> tuple[str, ...]:
    """Refuse a table that lacks regions or has others; return the names of the clinical columns."""
    columns = header.columns
    missing = [name for name in contract.features if name not in columns]
    needed = {contract.id_column, contract.diagnosis_column, *contract.features}
    needed |= {spec.name for spec in contract.covariates} | ({visit} if visit else set())
    free = [name for name in columns if name not in needed]
    if missing:
        raise InputError(
            f"The model needs {counted(len(contract.features), 'region')}, but the table lacks {len(missing)}: "
            f"{listed(missing)}.{did_you_mean(missing[0], free)}\n"
            "Add the columns, named as in the training table; a model cannot score people without them."
        )
    left_out, scores = _named(columns, free, needed, exclude, clinical)
    known = {*left_out, *scores, *contract.ignored_columns}
    extra = [name for name in free if name not in known and is_region_name(name) and name in header.numbers]
    if extra:
        raise InputError(
            f"The table has {counted(len(extra), 'column')} of numbers that the model does not know: {listed(extra)}.\n"
            f"Expected the {counted(len(contract.features), 'region')} of the training table and nothing besides.\n"
            f"If they are not needed, leave them out with {excluding(extra)}."
        )
    return scores


def _named(
    columns: Sequence[str], free: Sequence[str], needed: Collection[str], exclude: Names, clinical: Names
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that are left out and the clinical ones, refusing those that the model needs."""
    left_out = expand_names(wanted_names(exclude), columns, option="--exclude", pattern_columns=free)
    scores = expand_names(wanted_names(clinical), columns, option="--clinical", pattern_columns=free)
    for option, chosen, what in (("--exclude", left_out, "left out"), ("--clinical", scores, "a clinical score")):
        for name in chosen:
            if name in needed:
                raise InputError(f"The model needs column {name!r}, so it cannot be {what}.\nTake it out of {option}.")
    return left_out, scores
