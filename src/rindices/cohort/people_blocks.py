"""New people, some at a time: a table of any length is checked and scored without being held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NoReturn

from rindices.cohort.bids import is_plain_table
from rindices.cohort.columns import Names
from rindices.cohort.contract import Contract
from rindices.cohort.labels import CONTROL_NAMES, NO_LABEL, label_text
from rindices.cohort.new_people import People, check_people, read_people, training_range
from rindices.cohort.tables import Table, changed_meanwhile
from rindices.cohort.units import UnitDoubts
from rindices.errors import InputError

__all__ = ["people_in_blocks"]


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
    something is wrong the table is read whole as well, so that the message is the same and counts everybody.

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

    def whole() -> People:
        return read_people(path, contract, exclude=exclude, new_sites=new_sites)

    def refuse() -> NoReturn:
        whole()
        raise changed_meanwhile(Path(path))  # or the whole table would have been refused

    if not is_plain_table(Path(path)):
        yield whole()
        return
    table = Table(path, text_columns=(contract.id_column, contract.diagnosis_column), ids=contract.id_column)
    if contract.visit_column in table.columns:
        yield whole()
        return
    known, ids, doubts = _with_labels(contract, table), set[str](), UnitDoubts(training_range(contract))
    for block in table.blocks():
        try:
            people = check_people(block, known, exclude=exclude, new_sites=new_sites, some_rows=True)
        except InputError:
            whole()
            raise
        if not ids.isdisjoint(people.features.index):
            refuse()
        ids.update(people.features.index)
        doubts.add(people.features.to_numpy())
        yield people
        if progress is not None:
            progress(int(block.index[-1]) + 1, table.n_rows)
    if doubts.any():
        refuse()


def _with_labels(contract: Contract, table: Table) -> Contract:
    """Return the contract with the labels that a model without labels goes by, which depend on the whole column."""
    name = contract.diagnosis_column
    if contract.control_labels or contract.patient_labels or name not in table.columns:
        return contract
    labels = dict.fromkeys(label for block in table.blocks([name]) for label in label_text(block[name]).unique())
    controls = tuple(label for label in labels if label.casefold() in CONTROL_NAMES)
    others = tuple(label for label in labels if label not in (*controls, NO_LABEL))
    return replace(contract, control_labels=controls, patient_labels=others if controls else ())
