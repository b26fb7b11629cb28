"""New people, some at a time: a table of any length is checked and scored without being held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.bids import is_plain_table
from rindices.cohort.cells import Roster, spreadsheet_rows, tidy_table
from rindices.cohort.columns import Names
from rindices.cohort.gaps import NumberCells
from rindices.cohort.labels import CONTROL_NAMES, NO_LABEL, label_text
from rindices.cohort.model_columns import Header, read_model_columns
from rindices.cohort.new_people import People, check_people, read_people, training_range
from rindices.cohort.tables import Table, changed_meanwhile
from rindices.cohort.units import UnitDoubts, check_units
from rindices.errors import InputError
from rindices.schema.contract import Contract

__all__ = ["people_in_blocks"]

_CELLS = 10_000_000  # that are held to find medians


def people_in_blocks(
    path: str | Path,
    contract: Contract,
    *,
    exclude: Names = (),
    new_sites: Literal["refuse", "uncorrected"] = "refuse",
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[People]:
    """Yield new people, checked, some at a time: together those whom `rindices.cohort.read_people` returns.

    A table with the visits of the training table, a BIDS dataset and a table with a dictionary are read whole. Where
    something is wrong the other rows are looked at as well, so that the message is the same and counts everybody.

    Parameters
    ----------
    path, contract, exclude, new_sites
        As in `rindices.cohort.read_people`.
    progress
        Called with the number of rows that are done, and of all rows.

    Raises
    ------
    InputError
        What `rindices.cohort.read_people` raises; it may come after some people, who should then be forgotten.
    """
    options: dict[str, Any] = {"exclude": exclude, "new_sites": new_sites}
    columns: dict[str, Any] = {"text_columns": (contract.id_column, contract.diagnosis_column)}
    table = Table(path, **columns, ids=contract.id_column) if is_plain_table(Path(path)) else None
    if table is None or contract.visit_column in table.columns:
        yield read_people(path, contract, **options)
        return
    training = training_range(contract)
    known, ids, doubts = _with_labels(contract, table), set[str](), UnitDoubts(training)
    for block in table.blocks():
        try:
            people = check_people(block, known, **options, some_rows=True)
            if not ids.isdisjoint(people.features.index):
                raise changed_meanwhile(Path(path))  # unless these ids are found twice again
        except InputError:
            _refuse(table, contract, **options)
            raise
        ids.update(people.features.index)
        doubts.add(people.features.to_numpy())
        yield people
        if progress is not None:
            progress(int(block.index[-1]) + 1, table.n_rows)
    if doubts.any():
        check_units(_medians(table, contract.features), len(ids), contract.features, training, contract.unit)


def _refuse(table: Table, contract: Contract, **options: Any) -> None:
    """Refuse a table some rows of which were refused: for what is wrong first in all of them, as `check_people` does.

    Of the regions, the cells are counted and not kept. Without a column of ids, any row tells what is wrong first.
    """
    if contract.id_column not in table.columns:
        return
    covariates = [spec.name for spec in contract.covariates if spec.name in table.columns]
    regions = NumberCells([name for name in contract.features if name in table.columns], kind="region")
    parts, numbers = list[pd.DataFrame](), frozenset[str]()
    for block in table.blocks():
        parts.append(block[[contract.id_column, *covariates]].copy())  # a view would hold the regions
        numbers |= Header.of(block).numbers
        regions.add(block, Roster(pd.Index(block[contract.id_column]), spreadsheet_rows(block)))
    people = tidy_table(pd.concat(parts), (contract.id_column, contract.diagnosis_column))
    read_model_columns(people, contract, Header(tuple(table.columns), numbers), **options)
    regions.refuse()


def _medians(table: Table, regions: Sequence[str]) -> NDArray[np.float64]:
    """Return the median of each region, of as many at a time as may be held."""
    n_columns = max(1, _CELLS // max(1, table.n_rows))
    some = [list(regions[first : first + n_columns]) for first in range(0, len(regions), n_columns)]
    values = (np.concatenate([block[names].to_numpy() for block in table.blocks(names)]) for names in some)
    return np.concatenate([np.median(block, axis=0, overwrite_input=True) for block in values])


def _with_labels(contract: Contract, table: Table) -> Contract:
    """Return the contract with the labels that a model without labels goes by, which depend on the whole column."""
    name = contract.diagnosis_column
    if contract.control_labels or contract.patient_labels or name not in table.columns:
        return contract
    labels = dict.fromkeys(label for block in table.blocks([name]) for label in label_text(block[name]).unique())
    controls = tuple(label for label in labels if label.casefold() in CONTROL_NAMES)
    others = tuple(label for label in labels if label not in (*controls, NO_LABEL))
    return replace(contract, control_labels=controls, patient_labels=others if controls else ())
