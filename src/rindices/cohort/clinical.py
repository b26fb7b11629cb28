"""Clinical scores and other variables that R-indices are compared with: never regions, gaps allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.cells import Roster, has_numbers, text_of
from rindices.cohort.gaps import refuse_gaps, refuse_spelled
from rindices.errors import counted, listed, shown

__all__ = ["read_clinical", "warn_of_clinical"]

_GAP_CODES = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)


def read_clinical(frame: pd.DataFrame, names: Sequence[str], roster: Roster) -> pd.DataFrame:
    """Return the columns row by row: numbers as float64, categories as text, gaps as NaN."""
    columns: dict[str, NDArray] = {}
    for name in names:
        column = frame[name]
        if has_numbers(column) or column.isna().all():
            columns[name] = column.to_numpy(dtype=np.float64)
            infinite = np.isinf(columns[name])
            if infinite.any():
                refuse_gaps(infinite[:, None], [name], roster, kind="clinical", adjective="Infinite")
            continue
        refuse_spelled(column, roster, kind="clinical score")
        columns[name] = text_of(column).to_numpy()
    return pd.DataFrame(columns, index=frame.index, columns=pd.Index(list(names), dtype=object))


def warn_of_clinical(scores: pd.DataFrame) -> tuple[str, ...]:
    """Return sentences on empty columns and on numbers that look like codes for gaps."""
    empty = [str(name) for name in scores.columns if scores[name].isna().all()]
    warnings = [f"Clinical columns without a single value: {listed(empty)}."] if empty else []
    for name in scores.columns:
        if scores[name].dtype.kind != "f":
            continue
        known = scores[name].dropna().to_numpy()
        for code in _GAP_CODES:
            others = known[known != code]
            # A code lies outside the others by more than they span.
            if 1 < len(others) < len(known) and _outside(code, others):
                people = counted(len(known) - len(others), "person has", "people have")
                warnings.append(f"{people} {name} = {shown(code)}: a code for a missing value? Leave such cells empty.")
    return tuple(warnings)


def _outside(code: float, others: NDArray[np.float64]) -> bool:
    low, high = float(others.min()), float(others.max())
    return code < low - (high - low) or code > high + (high - low)
