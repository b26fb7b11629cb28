"""Files into tables: CSV, TSV, text and Parquet, as spreadsheets of all countries write them."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from rindices.cohort.cells import MISSING_TEXT, with_numbers
from rindices.errors import InputError, counted, listed

__all__ = ["read_table"]

_USUAL_SEPARATOR = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
# pandas 2 rounds the last digit of numbers unless told not to; pandas 3 is exact and wants no telling.
_EXACT: Literal["round_trip"] | None = "round_trip" if pd.__version__.startswith("2.") else None
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}


def read_table(path: str | Path, *, text_columns: Sequence[str] = ("participant_id", "diagnosis")) -> pd.DataFrame:
    r"""Read a table of people from a .csv, .tsv, .txt (also with .gz) or .parquet file.

    A column becomes numbers if every cell that is not missing reads as a number; otherwise it stays text.
    Semicolons and tabs instead of commas, and decimal commas beside them, are recognised.

    Parameters
    ----------
    path
        The file; its extension says the format.
    text_columns
        Columns that always stay text, so that the id ``001`` does not become 1.

    Returns
    -------
    pandas.DataFrame
        Columns of float64 or text; the index counts the lines below the header from 0 (empty lines leave gaps).

    Raises
    ------
    InputError
        If the file cannot be read as a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("participant_id;age\n001;61,5\n")
    ...     read_table(path).values.tolist()
    [['001', 61.5]]
    """
    path = Path(path)
    kind = _kind_of(path)
    frame = _read_parquet(path) if kind == ".parquet" else None
    decimal_comma = False
    if frame is None:
        data, separator = _separated(_read_bytes(path), path, kind)
        frame = _parse(data, separator, path, text_columns)
        decimal_comma = separator != ","
    frame = with_numbers(frame, text_columns, decimal_comma=decimal_comma).dropna(how="all")
    if frame.empty:
        raise InputError(f"{path.name} has a header but no people below it.\nExpected one row per person.")
    return frame


def _kind_of(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder, but a table was expected.\nName a .csv, .tsv, .txt or .parquet file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.\nCheck the name and the folder.{_similar_files(path)}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if kind not in (*_USUAL_SEPARATOR, ".parquet") or (kind == ".parquet" and suffixes[-1] == ".gz"):
        spreadsheet = (
            " In the spreadsheet program choose 'Save as' and 'CSV UTF-8'." if kind in (".xlsx", ".xls", ".ods") else ""
        )
        raise InputError(
            f"{path.name} is not a kind of table that can be read (extension {kind!r}).\n"
            f"Give a .csv, .tsv, .txt or .parquet file.{spreadsheet}"
        )
    return kind


def _similar_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" The folder {path.parent} does not exist either."
    same_stem = sorted(other.name for other in path.parent.glob(f"{glob.escape(path.stem)}.*") if other.is_file())
    return f" In that folder there is {listed(same_stem, 3)}." if same_stem else ""


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise InputError(
            f"Reading {path.name} needs the package pyarrow, which is not installed.\n"
            "Install it with: pip install 'rindices[parquet]', or save the table as .csv."
        ) from error
    except (ValueError, OSError) as error:
        raise InputError(
            f"{path.name} is not a readable Parquet file.\nSave it again, or save the table as .csv."
        ) from error
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=named) if named else frame
    frame.columns = [str(name).strip() for name in frame.columns]
    _check_header(list(frame.columns), path)
    return frame.reset_index(drop=True)


def _read_bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix.lower() == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path.name} cannot be opened: {error}.\nCheck that the file is complete and not locked."
        ) from error
    if data[:2] == b"PK":
        raise InputError(
            f"{path.name} is an Excel workbook or archive, not text.\n"
            "In the spreadsheet program choose 'Save as' and 'CSV UTF-8'."
        )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", errors="replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    if not text.strip():
        raise InputError(f"{path.name} is empty.\nExpected a header and one row per person.")
    data = text.encode()
    return data if b"\r" not in data else data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _separated(data: bytes, path: Path, kind: str) -> tuple[bytes, str]:
    """Return the text and its separator: the commonest candidate in the header, the usual one in a tie."""
    first_line = next(line for line in data.split(b"\n") if line.strip()).decode()
    outside_quotes = re.sub(r'"[^"]*"', "", first_line)
    usual = _USUAL_SEPARATOR[kind]
    separator = max((usual, ",", ";", "\t"), key=outside_quotes.count)
    if kind == ".txt" and separator not in outside_quotes and len(outside_quotes.split()) > 1:
        return b"\n".join(b"\t".join(line.split()) for line in data.split(b"\n")), "\t"
    return data, separator


def _parse(data: bytes, separator: str, path: Path, text_columns: Sequence[str]) -> pd.DataFrame:
    body = data.lstrip(b"\n")
    skipped = len(data) - len(body)
    try:
        text = io.TextIOWrapper(io.BytesIO(body), "utf-8", newline="")
        header = [name.strip() for name in next(csv.reader(text, delimiter=separator))]
        _check_header(header, path)
        _check_row_lengths(body, separator, len(header), skipped, path)
    except csv.Error as error:
        raise InputError(
            f"{path.name} cannot be split into cells: {error}.\nLook for a quotation mark that is never closed."
        ) from error
    names = [name or f"Unnamed: {position}" for position, name in enumerate(header)]
    frame = _parse_body(body, separator, names, path, text_columns)
    frame.index = frame.index + skipped
    unnamed = [name for name, given in zip(names, header, strict=True) if not given]
    empty = [name for name in unnamed if frame[name].isna().all()]
    return frame.drop(columns=empty)


def _check_header(names: Sequence[str], path: Path) -> None:
    seen = pd.Series([name for name in names if name], dtype=object)
    repeated = list(dict.fromkeys(seen[seen.duplicated()]))
    if repeated:
        places = [position + 1 for position, name in enumerate(names) if name == repeated[0]]
        raise InputError(
            f"Column names must differ, but {path.name} has {listed(map(repr, repeated))} more than once "
            f"({repeated[0]!r} is column {listed(places, joiner=' and ')}).\nRename or remove the repeated columns."
        )


def _check_row_lengths(body: bytes, separator: str, width: int, skipped: int, path: Path) -> None:
    """Refuse rows with more or fewer cells than the header; pandas would shift or pad them without a word."""
    if b'"' in body:
        reader = csv.reader(io.TextIOWrapper(io.BytesIO(body), "utf-8", newline=""), delimiter=separator)
        lengths = np.fromiter((len(row) for row in reader), dtype=np.int64)
    else:
        sign = separator.encode()
        lengths = np.fromiter(
            (line.count(sign) + 1 if line.strip(b" ") else 0 for line in body.split(b"\n")), dtype=np.int64
        )
    ragged = np.flatnonzero((lengths != width) & (lengths != 0))
    if len(ragged):
        first = int(ragged[0])
        more = f", and {counted(len(ragged) - 1, 'more row is', 'more rows are')} like it" if len(ragged) > 1 else ""
        cells, row = counted(int(lengths[first]), "cell"), first + 1 + skipped
        comma = " Numbers with decimal commas need semicolons between the columns." if separator == "," else ""
        raise InputError(
            f"Row {row} of {path.name} has {cells}, but the header has {width} (separated by "
            f"{_SEPARATOR_NAMES[separator]}){more}.\n"
            f"Look for a missing or additional separator in that row.{comma}"
        )


def _parse_body(body: bytes, separator: str, names: list[str], path: Path, text_columns: Sequence[str]) -> pd.DataFrame:
    decimal = "," if separator != "," and _matches(rb"[+-]?[0-9]+,[0-9]+", body, separator) else "."

    def parse(columns: list[str], as_text: Sequence[str]) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(body),
            sep=separator,
            header=0,
            names=names,
            usecols=columns,
            index_col=False,
            dtype=dict.fromkeys(as_text, str),
            keep_default_na=False,
            na_values=sorted(MISSING_TEXT),
            decimal=decimal,
            float_precision=_EXACT,
            skip_blank_lines=False,
            low_memory=False,
        )

    try:
        frame = parse(names, [name for name in names if name in text_columns])
        # pandas reads the code 007 as 7 and yes/no words as truth values: read such columns once more, as text.
        again = (
            [name for name in names if _may_hide_text(frame[name])]
            if _matches(rb"[+-]?0[0-9]+", body, separator)
            else []
        )
        again += [name for name in names if frame[name].dtype == bool and name not in again]
        if again:
            text = parse(again, again)
            for name in again:
                frame[name] = text[name]
    except pd.errors.ParserError as error:
        raise InputError(
            f"{path.name} cannot be read as a table: {error}.\nLook for a quotation mark without its partner."
        ) from error
    return frame


def _matches(cell: bytes, body: bytes, separator: str) -> bool:
    """Tell whether any cell of the file has this form."""
    edge = re.escape(separator.encode())
    return re.search(rb'(?:^|[\n" ]|' + edge + rb")" + cell + rb'(?=["\n ]|$|' + edge + rb")", body) is not None


def _may_hide_text(column: pd.Series) -> bool:
    if column.dtype.kind in "iu":
        return True
    return column.dtype.kind == "f" and bool((column.dropna() % 1 == 0).all())
