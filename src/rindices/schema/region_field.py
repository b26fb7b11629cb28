"""Columns of numbers, and the regions among them: text, gaps and how many may be filled, impossible values, units."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.problems import Problem, shown
from rindices.schema.cells import (
    BadCells,
    Roster,
    impossible_problems,
    missing_problems,
    numbers_of,
    text_of,
    text_problems,
)
from rindices.schema.impossible_values import impossible_regions
from rindices.schema.units import unit_problems

MIN_REGIONS = 4
MOST_MISSING = 0.2  # share of a person's regions, or of a table's columns of regions, that may be missing
MOST_LACKING = 0.4  # share of the training people who may lack a region
_FEW_VALUES = 0.25  # share of different values; a column of fewer holds a score, whose gaps are not to be filled in
_ENOUGH_FOR_MEDIANS = 2_000_000  # numbers


class Seen(NamedTuple):
    """What a field found in some rows: values (people × columns), and which are missing or impossible."""

    values: NDArray
    missing: NDArray[np.bool_]
    impossible: NDArray[np.bool_]


class NumberField:
    """Columns that should hold numbers.

    Parameters
    ----------
    columns
        Their names.
    kind
        What they are, in messages.
    impossible
        Marks impossible numbers of people × columns, given those of a reference.
    reference
        Other people × columns to judge by; None where these people are judged by themselves.
    decimal_comma
        Whether decimals may have a comma.
    """

    def __init__(
        self,
        columns: Sequence[str],
        kind: str,
        impossible: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]],
        reference: NDArray[np.float64] | None = None,
        *,
        decimal_comma: bool = False,
    ) -> None:
        self.columns, self.kind = list(columns), kind
        self._judge, self._reference, self._comma = impossible, reference, decimal_comma
        self.text, self.missing, self.impossible = BadCells(), BadCells(), BadCells()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the numbers in some rows."""
        text = np.zeros((len(batch), len(self.columns)), dtype=bool)
        try:  # row by row, as the text lies in memory: most tables have neither gaps nor words
            block = np.ascontiguousarray(batch[self.columns].to_numpy()).astype(np.float64, copy=False)
        except (ValueError, TypeError):
            block = np.empty(text.shape)
            for position, name in enumerate(self.columns):
                block[:, position] = numbers_of(batch[name], decimal_comma=self._comma)
                if not is_numeric_dtype(batch[name]) and np.isnan(block[:, position]).any():
                    text[:, position] = np.isnan(block[:, position]) & text_of(batch[name]).notna().to_numpy()
        missing = self._unusable_gaps(block, np.isnan(block) & ~text)
        impossible = self._judge(block, block if self._reference is None else self._reference)

        def written(row: int, position: int) -> str:
            return str(batch[self.columns[position]].iloc[row])

        self.text.add(text, self.columns, roster, written)
        self.missing.add(missing, self.columns, roster, written)
        self.impossible.add(impossible, self.columns, roster, lambda row, column: shown(float(block[row, column])))
        return Seen(block, missing, impossible)

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the gaps because of which a person cannot be used: all of them."""
        return gaps

    def problems(self) -> list[Problem]:
        """Say what is wrong."""
        return (
            text_problems(self.text, self.columns, self.kind)
            + missing_problems(self.missing, self.columns, self.kind)
            + impossible_problems(self.impossible)
        )


class RegionField(NumberField):
    """The regions. With a reference (minimum, median and maximum in training, as rows) units are checked, too.

    With `fills`, people may lack a fifth of them; in a training table, which has no reference, columns may have gaps in
    two fifths of the people, unless they are `scores`, or look like scores.
    """

    def __init__(
        self,
        columns: Sequence[str],
        reference: NDArray[np.float64] | None = None,
        *,
        unit: str | None = None,
        decimal_comma: bool = False,
        fills: bool = False,
        scores: Collection[str] = (),
    ) -> None:
        super().__init__(columns, "region", impossible_regions, reference, decimal_comma=decimal_comma)
        self._fills, self._scores = fills, scores
        self._unit, self._kept, self._units = unit, list[NDArray[np.float64]](), list[Problem]()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the regions of some rows."""
        seen = super().observe(batch, roster)
        if self._reference is not None and sum(map(np.size, self._kept)) < _ENOUGH_FOR_MEDIANS:
            self._kept.append(seen.values)
            people, medians = np.concatenate(self._kept), np.full(len(self.columns), np.nan)
            known = ~np.isnan(people).all(axis=0)
            medians[known] = np.nanmedian(people[:, known], axis=0)
            self._units = unit_problems(medians, len(people), self.columns, self._reference, self._unit)
        return seen

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if not self._fills or not gaps.any():
            return gaps
        unusable = np.broadcast_to((gaps.mean(axis=1) > MOST_MISSING)[:, None], gaps.shape).copy()
        for place in np.flatnonzero(gaps.any(axis=0)).tolist() if self._reference is None else ():
            known = block[~gaps[:, place], place]
            score = self.columns[place] in self._scores or len(np.unique(known)) < _FEW_VALUES * len(known)
            unusable[:, place] |= score or len(known) < (1 - MOST_LACKING) * len(gaps)
        return gaps & unusable

    def problems(self) -> list[Problem]:
        """Say what is wrong with cells, and with units, which the first people of a long table tell."""
        return super().problems() + ([] if self.text.counts else self._units)
