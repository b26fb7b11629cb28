"""New people whom a model cannot score, because something is missing or impossible: left out when asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.absent import Absent, absences
from rindices.cohort.cells import Roster
from rindices.cohort.covariates import impossible_covariate
from rindices.cohort.exclusions import Record
from rindices.cohort.gaps import LARGEST, refuse
from rindices.errors import InputError
from rindices.schema.contract import Contract

__all__ = ["record_of_incomplete"]


def record_of_incomplete(
    table: pd.DataFrame, contract: Contract, roster: Roster, *, drop: bool, absent: Sequence[Absent] = ()
) -> Record:
    """Return who can be scored; nobody is left out unless ``drop``.

    Parameters
    ----------
    table
        Table from `rindices.cohort.cells.tidy_table`.
    contract
        What the model expects; columns that the table lacks are told elsewhere.
    roster
        Who sits in which row.
    drop
        Whether to leave out people with missing or impossible values in regions or covariates.
    absent
        Who has gaps because a joined table does not know them: refused unless ``drop``.

    Raises
    ------
    InputError
        If a joined table does not know everybody, or nobody would be left.
    """
    record = Record(len(table))
    specs = {spec.name: spec for spec in contract.covariates if spec.name in table.columns}
    covariates, regions = [*specs], [name for name in contract.features if name in table.columns]
    unknown, no_region = (table[names].isna().to_numpy(dtype=bool) for names in (covariates, regions))
    if not drop:
        troubles, _ = absences(absent, np.hstack([unknown, no_region]), [*covariates, *regions], roster)
        refuse(troubles, can_drop=True)
        return record
    record.leave_out_missing(unknown, covariates, "covariate")
    record.leave_out_missing(no_region, regions, "region")
    for name, spec in specs.items():
        values = _numbers(table, [name])
        record.leave_out_impossible(impossible_covariate(spec, values[:, 0])[:, None], values, [name])
    values = _numbers(table, regions)
    record.leave_out_impossible(np.abs(values) > LARGEST, values, regions)
    if not record.used.any():
        raise InputError(f"Nobody is left to be scored. {record.warning()[0]}\nFill in the cells, or add people.")
    return record


def _numbers(table: pd.DataFrame, names: list[str]) -> NDArray[np.float64]:
    """Return columns as numbers, NaN where they hold text, which is refused elsewhere."""
    return table[names].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
