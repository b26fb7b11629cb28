"""Which columns hold numbers and which text: a question about whole columns, answered block by block."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.cohort.cells import MOST_LEVELS, MOSTLY_NUMBERS, text_of, with_numbers, with_points
from rindices.errors import InputError

__all__ = ["Kinds", "RowSource", "find_kinds"]

_ENGLISH = r"[+-]?\d{1,3}(?:,\d{3})+\.\d+|[+-]?\d{1,3}(?:,\d{3}){2,}"  # commas between thousands, without a doubt


class RowSource(Protocol):
    """A file from which rows can be read again and again, some at a time.

    Attributes
    ----------
    names, unnamed
        All columns, and those that have no name of their own.
    decimal_comma
        Whether decimals may have a comma; where not, cells of text may tell that they have.
    has_commas
        Whether there are decimals with a comma.
    zeros
        Columns that may have whole numbers with leading zeros.
    is_text
        Whether numbers are written as text: those that are read with decimals then have a point.
    """

    names: list[str]
    unnamed: list[str]
    decimal_comma: bool
    has_commas: bool
    zeros: list[str]
    is_text: bool

    def frames(self, columns: Collection[str] | None = None, as_text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks: these columns, of which some keep their cells as they are written."""


class Kinds(NamedTuple):
    """What becomes of each column.

    Attributes
    ----------
    text
        Columns that stay text.
    points
        Those of them in which decimal commas become points, because most cells are numbers.
    spelled
        Columns to be read as text, which may hold numbers all the same.
    empty
        Columns without a name and without a cell, which are left out.
    decimal_comma
        Whether decimals may have a comma.
    """

    text: frozenset[str]
    points: frozenset[str]
    spelled: frozenset[str]
    empty: frozenset[str]
    decimal_comma: bool

    def convert(self, block: pd.DataFrame) -> pd.DataFrame:
        """Return some rows with every column as float64 or text, as they would be in the whole table."""
        frame = with_numbers(block, self.text, decimal_comma=self.decimal_comma)
        # In these rows alone a column may have nothing to be told by.
        empty_here = [name for name in frame if name not in self.text and frame[name].dtype != np.float64]
        changed = {str(name): frame[name].astype(np.float64) for name in empty_here}
        changed |= {
            name: with_points(frame[name]) for name in self.points if name in frame and frame[name].notna().any()
        }
        return frame.assign(**changed).drop(columns=list(self.empty), errors="ignore")


class _Tally:
    """What the cells of one column look like, over all blocks so far."""

    def __init__(self) -> None:
        self.numbers_read, self.blocks_of_numbers, self.all_whole = 0, 0, True
        self.texts, self.number_texts, self.comma_texts, self.zeros, self.truth = 0, 0, 0, False, False
        self.thousands: tuple[int, str] | None = None
        self.whole, self.commas, self.points, self.decimals, self.english = False, False, False, False, False
        self.with_commas: set[str] = set()  # different cells, as far as they must be counted

    def add(self, column: pd.Series) -> None:
        if is_numeric_dtype(column) and not is_bool_dtype(column):
            self.blocks_of_numbers += 1
            self.numbers_read += int(column.notna().sum())
            self.all_whole = self.all_whole and _is_whole(column)
            return
        # Beside gaps, truth values are objects.
        self.truth = self.truth or is_bool_dtype(column) or (column.dtype == object and bool in {*map(type, column)})
        text = text_of(column).dropna()
        self.texts += len(text)
        if len(text):
            self.number_texts += int(pd.to_numeric(text, errors="coerce").notna().sum())
            self.zeros = self.zeros or bool(text.str.fullmatch(r"[+-]?0\d+").any())
            self._look_for_commas(text)
            self._look_for_thousands(text)

    def _look_for_commas(self, text: pd.Series) -> None:
        with_comma = text[text.str.contains(",", regex=False)]
        if len(with_comma):
            changed = with_comma[with_points(with_comma) != with_comma]
            self.comma_texts += len(changed)
            if len(self.with_commas) <= MOST_LEVELS:
                self.with_commas.update(changed.drop_duplicates().iloc[: MOST_LEVELS + 1])
            # 70,5 has a decimal comma wherever it stands; 3,410 may be three thousand.
            self.decimals = self.decimals or not changed.str.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}").all()
            self.english = self.english or bool(with_comma.str.fullmatch(_ENGLISH).any())

    def _look_for_thousands(self, text: pd.Series) -> None:
        text = text.drop_duplicates()  # of categories, few are left
        thousands = text.str.fullmatch(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
        if self.thousands is None and thousands.any():
            first = int(thousands.to_numpy().argmax())
            self.thousands = int(text.index[first]) + 2, str(text.iloc[first])
        self.whole = self.whole or bool(text.str.fullmatch(r"[+-]?\d+").any())
        self.commas = self.commas or bool(text.str.fullmatch(r"[+-]?[\d.]*\d,\d+").any())
        self.points = self.points or bool((text.str.fullmatch(r"[+-]?\d*\.\d+") & ~thousands).any())

    def refuse_thousands(self, name: str) -> None:
        """Refuse a column in which the point of 1.023 stands for thousands, as far as its other cells tell."""
        if self.thousands is None or not (self.commas or (self.whole and not self.points)):
            return
        row, cell = self.thousands
        raise InputError(
            f"Column {name!r} has {cell!r} in row {row}, in a file with decimal commas: the point seems to stand for "
            f"thousands.\nWrite numbers without separators of thousands, here {cell.replace('.', '')}, in all cells "
            f"(or decimals with a comma, {cell.replace('.', ',', 1)}, if that is meant)."
        )

    def is_unclear(self, may_have_zeros: bool) -> bool:
        """Whether cells that were read as numbers or truth values must be seen as they are written."""
        if self.truth or (self.numbers_read and self.texts):
            return True
        return bool(self.numbers_read) and self.all_whole and may_have_zeros

    @property
    def is_empty(self) -> bool:
        return not self.texts + self.numbers_read

    def is_number(self, decimal_comma: bool) -> bool:
        if not self.texts:
            return self.blocks_of_numbers > 0
        return not self.zeros and self._numbers(decimal_comma) == self.texts

    def is_mostly_numbers(self, decimal_comma: bool) -> bool:
        return self.texts > 0 and not self.zeros and self._numbers(decimal_comma) / self.texts >= MOSTLY_NUMBERS

    @property
    def tells_commas(self) -> bool:
        """Whether decimals have a comma in this column, and nothing else can be meant."""
        n_different = len(self.with_commas)
        are_measures = n_different > MOST_LEVELS or 2 * n_different > self.comma_texts
        return self.decimals and not self.points and are_measures and self.is_mostly_numbers(True)

    @property
    def has_points(self) -> bool:
        """Whether decimals have a point in this column, if numbers are written as text."""
        return (self.numbers_read > 0 and not self.all_whole) or (self.points and self.is_mostly_numbers(False))

    def _numbers(self, decimal_comma: bool) -> int:
        return self.number_texts + (self.comma_texts if decimal_comma else 0)


def _is_whole(column: pd.Series) -> bool:
    return column.dtype.kind in "iu" or bool((column.dropna() % 1 == 0).all())


def find_kinds(source: RowSource, text_columns: Collection[str]) -> tuple[Kinds, int, pd.DataFrame | None]:
    """Go through a table, tell numbers from text and count the rows; return them, where one block holds them all.

    pandas reads the code 007 as 7 and yes/no words as truth values, and what it reads as numbers in one block may have
    words in another: such columns are read once more, as text. Decimals have a comma where nothing else can be meant by
    a column of text, also in a workbook and between quotation marks; then they may have one in the whole table. Where
    other columns of a text file have decimal points, the pairs 1,2 and 2,5 are no numbers.
    """
    tallies = {name: _Tally() for name in source.names if name not in text_columns}
    n_rows, kept = _count(source.frames(as_text=text_columns), tallies)
    unclear = [name for name, tally in tallies.items() if tally.is_unclear(name in source.zeros)]
    if unclear:
        again = {name: _Tally() for name in unclear}
        _, as_written = _count(source.frames(unclear, unclear), again)
        tallies |= again
        if kept is not None and as_written is not None:
            kept = kept.assign(**{name: as_written[name] for name in unclear})
    against = any(tally.english or (source.is_text and tally.has_points) for tally in tallies.values())
    told = not against and any(tally.tells_commas for tally in tallies.values())
    decimal_comma = source.decimal_comma or told
    if source.has_commas or told:
        for name, tally in tallies.items():
            tally.refuse_thousands(name)
    words = {name: tally for name, tally in tallies.items() if not tally.is_number(decimal_comma)}
    text = frozenset({*words} | {name for name in source.names if name in text_columns})
    points = {name for name, tally in words.items() if decimal_comma and tally.is_mostly_numbers(True)}
    spelled = {name for name, tally in tallies.items() if tally.texts}
    empty = {name for name in source.unnamed if name in tallies and tallies[name].is_empty}
    return Kinds(text, frozenset(points), text | spelled, frozenset(empty), decimal_comma), n_rows, kept


def _count(frames: Iterator[pd.DataFrame], tallies: dict[str, _Tally]) -> tuple[int, pd.DataFrame | None]:
    """Count the cells and rows of all blocks; return the rows if there is one block only."""
    kept, n_rows = None, 0
    for position, frame in enumerate(frames):
        kept = frame if position == 0 else None
        n_rows = int(frame.index[-1]) + 1 if len(frame) else n_rows
        for name, tally in tallies.items():
            tally.add(frame[name])
    return n_rows, kept
