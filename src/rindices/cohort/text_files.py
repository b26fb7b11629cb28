"""Tables as text (CSV, TSV, TXT, also packed with gzip), as spreadsheets of all countries write them.

A file is gone through some of it at a time, so that neither a long table nor a packed file that unpacks to something
absurd needs much memory. The first time finds out what must be known of the whole text before a cell can be read: the
encoding, the separator, the decimal sign, and that all rows have the same number of cells.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
import pandas as pd

from rindices.cohort.archives import LARGEST_RATIO
from rindices.cohort.cells import MISSING_TEXT
from rindices.cohort.headers import named_columns
from rindices.cohort.text_rows import (
    KINDS_OF_FILES,
    RowLengths,
    end_of_rows,
    has_decimal_comma,
    lines_above,
    separator_of,
    split_header,
    zeros_in,
)
from rindices.errors import InputError

__all__ = ["TextFile"]

# pandas 2 rounds the last digit of numbers unless told not to; pandas 3 is exact and wants no telling.
_EXACT: Literal["round_trip"] | None = "round_trip" if pd.__version__.startswith("2.") else None
BLOCK = 8_000_000  # characters at a time
_LONGEST_ROW = 64_000_000
_MOST_UNPACKED = 200_000_000  # unless the packed file is large, too
_BLANK_LINES = re.compile(rb"(?: *\n)+(?: *\Z)?| *\Z")
_DAMAGE = "\ufffd"  # what stands for a sign that cannot be read
_WORKBOOKS = (b"PK", b"\xd0\xcf")
_NO_TEXT = bytes(sign for sign in range(32) if sign not in b"\t\n\v\f\r\x1a")  # Ctrl-Z ends old DOS files


class TextFile:
    """A table as text, of which the dialect is known.

    Parameters
    ----------
    path
        The file.
    kind
        Its extension, without .gz.

    Attributes
    ----------
    names
        Of the columns; those without a name are called by their position.
    unnamed
        The columns without a name.
    decimal_comma
        Whether decimals may have a comma, because no comma separates the cells.
    has_commas
        Whether there are such decimals.
    zeros
        Columns that may have whole numbers with leading zeros, which are codes.
    is_text
        True: numbers are written as text.

    Raises
    ------
    InputError
        If the file cannot be read as a table.
    """

    is_text = True

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self._kind, self._errors = path, kind, "strict"
        with _failures_told(path):
            self._encoding = self._encoding_of()
            try:
                self._survey()
            except UnicodeDecodeError:
                self._refuse_damage()
                self._encoding = "latin-1"
                self._survey()
        self.decimal_comma, self.has_commas = self._separator != ",", self._decimal == ","

    def frames(self, columns: Collection[str] | None = None, as_text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the rows, block after block; the index counts the lines below the header from 0.

        Parameters
        ----------
        columns
            Only these, if given.
        as_text
            Columns whose cells stay as they are written.
        """
        wanted = self.names if columns is None else [name for name in self.names if name in columns]
        with _failures_told(self.path):
            start, head = self._skipped, self._head
            for text in self._texts(self._cuts):
                rows = self._encoded(text)[head:]
                blank = _BLANK_LINES.match(rows)  # pandas takes the number of columns from the first line
                skipped = blank[0] if blank else b""
                frame = self._parse(rows[len(skipped) :], wanted, as_text)
                start += skipped.count(b"\n")
                frame.index = pd.RangeIndex(start, start + len(frame))
                start, head = start + len(frame), 0
                yield frame

    def _survey(self) -> None:
        """Go through the whole text once."""
        self._cuts: list[int] = []
        self._decimal, zeros = ".", set[int]()
        for text in self._pieces():
            data = self._encoded(text)
            if not self._cuts:
                self._read_header(data)
                lengths = RowLengths(len(self.names), self._skipped + 1)
                data = data[self._head :]
            self._cuts.append(len(text))
            lengths.add(data, self._separator)
            zeros |= zeros_in(data, self._separator, len(self.names))
            if self._separator != "," and self._decimal == "." and has_decimal_comma(data, self._separator):
                self._decimal = ","
        lengths.check(self.path, self._separator)
        self.zeros = [name for position, name in enumerate(self.names) if position in zeros]

    def _read_header(self, data: bytes) -> None:
        text = data.decode()
        above = lines_above(text)
        self._skipped = text.count("\n", 0, above)
        header, length = split_header(text[above:], self._separator)
        self.names, self.unnamed = named_columns(header, self.path)
        self._head = len(text[: above + length].encode())

    def _pieces(self) -> Iterator[str]:
        """Yield the text in pieces that end where a row ends; the first has the header."""
        rest, known, above = "", False, 0
        for more in chain(self._texts(repeat(BLOCK)), [""]):
            rest += more
            if "\0" in more:
                raise self._no_text()
            if not known:
                above = lines_above(rest)
                # What may be a title is told by the line below it.
                known = rest.count("\n", above) > 1 or (not more and bool(rest[above:].strip(" ,;\t\n")))
                if known:
                    self._separator, self._spaced = separator_of(rest[above:], self._kind)
            end = end_of_rows(rest, None if self._spaced else self._separator) if known else 0
            if rest[above:end].strip() or (end and self._cuts):
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > _LONGEST_ROW:
                raise InputError(
                    f"{self.path.name} has a row of more than {_LONGEST_ROW:,} characters: it is no table of people.\n"
                    "Look for a quotation mark that is never closed, or name another file."
                )
        if not known:
            raise InputError(f"{self.path.name} is empty.\nExpected a header and one row per person.")
        if rest:
            yield rest

    def _texts(self, sizes: Sequence[int] | repeat[int]) -> Iterator[str]:
        """Yield pieces of the text of these sizes, with line ends as line feeds."""
        total, packed, before = 0, self.path.stat().st_size, ""
        most = max(_MOST_UNPACKED, LARGEST_RATIO * packed) if self._is_packed else None
        with self._open() as raw, io.TextIOWrapper(raw, self._encoding, errors=self._errors) as text:
            for size in sizes:
                piece = text.read(size)
                total += len(piece)
                if most is not None and total > most:
                    raise InputError(
                        f"{self.path.name} unpacks to more than {LARGEST_RATIO} times its size, which no table of "
                        "measures does.\nUnpack it, look what it holds, and give the unpacked table."
                    )
                if not piece:
                    return
                # A byte-order mark before a row, of files put together: pandas drops it from the first row it sees.
                piece = (before + piece).replace("\n\ufeff", "\n ")[len(before) :]
                before = piece[-1]
                yield piece

    def _refuse_damage(self) -> None:
        """Refuse text with signs that its encoding has not; without any beyond ASCII it has, it may be Latin-1."""
        self._encoding, self._errors = self._encoding.removesuffix("-sig"), "replace"
        row, lines, is_unicode = 0, 1, self._encoding == "utf-16"
        for text in self._texts(repeat(BLOCK)):
            place = text.find(_DAMAGE)
            row = row or (lines + text.count("\n", 0, place) if place >= 0 else 0)
            lines += text.count("\n")
            is_unicode = is_unicode or re.search(rf"[^\x00-\x7f{_DAMAGE}]", text) is not None
        if is_unicode:
            raise InputError(
                f"{self.path.name} is damaged: row {row} has a sign that cannot be read as {self._encoding.upper()}, "
                "as the others can.\nCorrect that row, and save the table as 'CSV UTF-8' in the spreadsheet program."
            )
        self._errors = "strict"

    def _encoded(self, text: str) -> bytes:
        data = text.encode()
        return b"\n".join(b"\t".join(line.split()) for line in data.split(b"\n")) if self._spaced else data

    @property
    def _is_packed(self) -> bool:
        return self.path.suffix.lower() == ".gz"

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, gzip.open(self.path, "rb") if self._is_packed else self.path.open("rb"))

    def _encoding_of(self) -> str:
        with self._open() as file:
            beginning = file.read(1000)
        first = beginning[:2]
        if first in _WORKBOOKS:
            raise InputError(
                f"{self.path.name} is an Excel workbook or an archive, in spite of its name.\n"
                "Give a workbook the extension .xlsx, or save it as 'CSV UTF-8' in the spreadsheet program."
            )
        if first in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16"
        if beginning.startswith(b"%PDF") or any(sign in beginning for sign in _NO_TEXT):
            raise self._no_text()
        return "utf-8-sig"

    def _no_text(self) -> InputError:
        return InputError(
            f"{self.path.name} is no table of text: it has signs that only other files have.\n"
            f"Save the table as 'CSV UTF-8', or give another {KINDS_OF_FILES} file."
        )

    def _parse(self, body: bytes, wanted: list[str], as_text: Collection[str]) -> pd.DataFrame:
        if not body:
            return pd.DataFrame(columns=wanted, dtype=np.float64)
        return pd.read_csv(
            io.BytesIO(body),
            sep=self._separator,
            header=None,
            names=self.names,
            usecols=wanted,
            index_col=False,
            dtype=dict.fromkeys([name for name in wanted if name in as_text], str),
            keep_default_na=False,
            na_values={name: sorted(MISSING_TEXT) for name in wanted if name not in as_text},
            decimal=self._decimal,
            float_precision=_EXACT,
            skip_blank_lines=False,
            low_memory=False,
        )


@contextmanager
def _failures_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(
            f"{path.name} cannot be opened: {reason}.\n"
            "Check that the file is complete and not locked, and that you are allowed to read it."
        ) from error
    except csv.Error as error:
        raise InputError(
            f"{path.name} cannot be split into cells: {error}.\nLook for a quotation mark that is never closed."
        ) from error
    except pd.errors.ParserError as error:
        raise InputError(
            f"{path.name} cannot be read as a table: {error}.\nLook for a quotation mark without its partner."
        ) from error
