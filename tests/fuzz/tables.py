"""The reader of tables: untouched values never change, and nonsense raises nothing but an `InputError`."""

import contextlib
import functools
import gzip
import io
import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from pyarrow import parquet

from rindices.cohort import make_cohort
from rindices.problems import InputError
from rindices.schema.cells import MISSING_TEXT
from rindices.tables.table import read_table
from tests.fuzz.engine import Case, Failure, chance, damaged, deep_stack, pick
from tests.schema.contracts import check_people, contract_of

# Tables as texts in cells, written in all the ways that spreadsheets use, and what reading them must return.


N_PEOPLE, REGIONS = 48, ("lHip", "rHip", "lAmy", "rAmy", "lEnt")
NUMBERS = ("age", *REGIONS)
NEWLINES = ("\n", "\r\n", "\r")

# Cells that a reader may misread: which are numbers, which are missing, and which must stay as they are?
ODD_CELLS = (
    *("", " ", ".", "NA", "nan", "NaN", "-nan", "+NaN", "null", "NULL", "None", "#N/A", "#DIV/0!", "n/a", "-", "?"),
    *("inf", "-inf", "Infinity", "1e400", "-1e400", "1e-400", "1e308", "5e-324", "2.2250738585072011e-308", "9" * 400),
    *("007", "-007", "00", "0", "-0", "+5", "--5", "5-", "1e5", "1E+05", "1e", "e5", "1d5", "1f", "0x1F", "0b1", "0o7"),
    *("1_000", "1 000", "1\u00a0000", "1\u202f000", "1'000", "1,000", "1.000,5", "1,000.5", "1,5", "1.5.2", ".5", "5."),
    *("١٢٣", "１２３", "१२३", "²", "½", "Ⅷ", "−5", "–5", "5\u200b", "\ufeff5", "\u00a05", "5\u3000", "5\t"),
    *("5\x0b", "5\x1c", "5\x85"),
    *("5%", "$5", "1/2", "12:30", "2020-01-01", "01.02.2020", "Jan 5", "True", "FALSE", "yes", "=1+1", "@x", "+x"),
    *("9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775809", "9" * 30),
    *("0.1000000000000000055511151231257827021181583404541015625", "0.30000000000000004", "123456789.123456789"),
    *('"', '""', "it's", 'say "5"', "a\nb", "a\r\nb", "a\rb", "a,b", "a;b", "a\tb", "back\\slash", "\\N", "#comment"),
    *("é", "ß", "漢字", "🧠", "e\u0301", "\u202e5", "\x00", "5\x00", "\x1a", "\x7f", "\u2028", "\x85", "A" * 5000),
)


@dataclass
class Grid:
    """A header and rows of texts, how they are written, and what to expect when reading them.

    If `exact`, the values read can be compared with the texts; if `sound`, the table must not be refused.
    """

    header: list[str]
    rows: list[list[str]]
    separator: str = ","
    decimal_comma: bool = False
    exact: bool = True
    sound: bool = True


def draw_grid(rng: np.random.Generator) -> Grid:
    """Return a valid table whose numbers are written in different ways."""
    style = pick(rng, ["{:.3f}", "{!r}", "{:.6e}", "{:.0f}", "{:.17g}"])
    columns = {
        "participant_id": [f"{number:03d}" for number in range(N_PEOPLE)],
        "diagnosis": ["AD", "CN"] * (N_PEOPLE // 2),
        "age": [f"{age:.2f}" for age in rng.uniform(50, 90, N_PEOPLE)],
        "sex": rng.choice(["F", "M"], N_PEOPLE).tolist(),
        "site": [*"AABB"] * (N_PEOPLE // 4),
    }
    columns |= {name: map(style.format, rng.normal(3000, 300, N_PEOPLE).tolist()) for name in REGIONS}
    return Grid([*columns], [list(row) for row in zip(*columns.values(), strict=True)])


def change_cells(grid: Grid, rng: np.random.Generator) -> None:
    """Put odd texts into some cells; the others must stay as they are."""
    for _ in range(int(rng.integers(1, 4))):
        row, column, text = int(rng.integers(N_PEOPLE)), int(rng.integers(len(grid.header))), pick(rng, ODD_CELLS)
        if chance(rng, 0.1):
            for person in grid.rows:
                person[column] = text
        grid.rows[row][column] = text
    grid.sound = False


def change_structure(grid: Grid, rng: np.random.Generator) -> None:
    """Repeat, drop or garble rows and columns as people do by accident."""
    grid.sound, grid.exact = False, False
    header, rows = grid.header, grid.rows
    row, column, extra = int(rng.integers(len(rows))), int(rng.integers(len(header))), int(10 ** rng.uniform(0, 2.5))
    person, odd = rows[row], pick(rng, ODD_CELLS)
    long = pick(rng, ["9", "A", '"', ",", " "]) * int(10 ** rng.uniform(3, 6))

    def with_cells(*cells: str) -> list[list[str]]:
        return [*rows[:row], [*person[:column], *cells, *person[column + 1 :]], *rows[row + 1 :]]

    ways = (
        (header, [*rows[:row], *[person] * int(rng.integers(1, 4)), *rows[row:]]),
        (header, rows[:row]),
        (header, with_cells()),
        (header, with_cells(odd, person[column])),
        (header, with_cells(long)),
        ([*header[:column], pick(rng, [*ODD_CELLS, *header]), *header[column + 1 :]], rows),
        ([*header, *(f"x{number}" for number in range(extra))], [[*one, *["1"] * extra] for one in rows]),
        ([odd, *[""] * (len(header) - 1)], [header, *rows]),  # a title above
    )
    grid.header, grid.rows = pick(rng, ways)


def written(grid: Grid, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return a file name and the table as text in one of many dialects, none of which may change a value."""
    if chance(rng, 0.3) and {len(row) for row in grid.rows} <= {len(grid.header)}:
        order = rng.permutation(len(grid.header))
        grid.header, *grid.rows = ([row[place] for place in order] for row in [grid.header, *grid.rows])
    grid.separator = pick(rng, [",", ",", ";", "\t"])
    grid.decimal_comma = grid.separator != "," and chance(rng, 0.4)
    ending, newline, quotes = pick(rng, [".csv", ".csv", ".tsv", ".txt"]), pick(rng, NEWLINES), pick(rng, [0, 0, 1, 2])
    lines = [_line(cells, grid, quotes, rng) for cells in [grid.header, *grid.rows]]
    if chance(rng, 0.2):
        for _ in range(int(rng.integers(1, 6))):
            lines.insert(int(rng.integers(len(lines) + 1)), "")
    text = newline.join(lines) + (newline if chance(rng, 0.8) else "")
    encoding = pick(rng, ["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
    if encoding == "latin-1" and not text.isascii():
        grid.exact = False  # some such texts are also valid UTF-8, and others cannot be encoded
    content = text.encode(encoding, "replace")
    packed = chance(rng, 0.1)
    return f"table{ending}{'.gz' * packed}", gzip.compress(content, 1, mtime=0) if packed else content


def _line(cells: list[str], grid: Grid, quotes: int, rng: np.random.Generator) -> str:
    texts = [cell.replace(".", ",") if grid.decimal_comma and _PLAIN.fullmatch(cell) else cell for cell in cells]
    needed = [any(sign in text for sign in (grid.separator, '"', "\n", "\r")) for text in texts]
    quoted = needed | (rng.random(len(texts)) < quotes / 2)  # none, half of the others, or all
    texts = ['"' + text.replace('"', '""') + '"' if asked else text for text, asked in zip(texts, quoted, strict=True)]
    return grid.separator.join(texts)


_PLAIN = re.compile(r"[+-]?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")


def compare(grid: Grid, frame: pd.DataFrame) -> None:
    """Fail if a value read is not the one written."""
    names = [name.strip() for name in grid.header]
    if list(frame.columns) != names:
        raise Failure(f"columns {list(frame.columns)} instead of {names}")
    rows = [row for row in grid.rows if not all(_missing(cell) for cell in row)]
    if len(rows) != len(frame):
        raise Failure(f"{len(frame)} rows instead of {len(rows)}")
    for place, name in enumerate(names):
        texts, column = [row[place] for row in rows], frame[name]
        if column.dtype == np.float64 and name in ("participant_id", "diagnosis"):
            raise Failure(f"{name} became numbers")
        same = _same_number if column.dtype == np.float64 else _same_text
        for text, value in zip(texts, column.tolist(), strict=True):
            gap = isinstance(value, float) and math.isnan(value)
            if not (gap if _missing(text) else same(text, value, grid)):
                raise Failure(f"column {name}: {text[:60]!r} became {value!r:.60}")
    if grid.sound and not all(frame[name].dtype == np.float64 for name in NUMBERS):
        raise Failure("a column of numbers became text")


def _missing(text: str) -> bool:
    return text.strip() in MISSING_TEXT


def number_in(text: str) -> float | None:
    """Return the number that a text represents, if any."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _same_number(text: str, value: float, grid: Grid) -> bool:
    texts = [text.strip(), *([] if grid.separator in ("", ",") else [_COMMA.sub(r"\1.\2", text.strip())])]
    close = 1e-15 if grid.separator == "" else 0.0  # workbooks have 16 digits
    numbers = [number for number in map(number_in, texts) if number is not None]
    same = math.isnan if math.isnan(value) else functools.partial(math.isclose, value, rel_tol=close)
    return any(map(same, numbers))


def _same_text(text: str, value: object, grid: Grid) -> bool:
    # A byte-order mark before the first cell is taken for the file's; it is invisible.
    texts = [str(one).removeprefix("\ufeff").split() for one in (text, value)]
    if grid.separator not in ("", ","):  # decimal commas become points in columns that are mostly numbers
        texts = [[word.replace(",", ".") for word in words] for words in texts]
    return isinstance(value, str) and texts[0] == texts[1]


# Tables in workbooks and Parquet files: the same cells as in text, and the damage that only such files can have.


_SHEET = "xl/worksheets/sheet1.xml"
# A pattern in a sheet, and its replacement; each breaks a rule of the format.
_LIES = (
    (r'<dimension ref="[^"]*"', '<dimension ref="A1:XFD1048576"'),
    (r'<dimension ref="[^"]*"', '<dimension ref="ZZZZ0:@"'),
    (r'<row r="9"', '<row r="1048577000"'),
    (r'<row r="9"', '<row r="-1"'),
    (r'r="C9"', 'r="XFE9"'),
    (r'r="C9"', 'r="A9"'),
    (r't="s"', 't="n"'),
    (r't="n"', 't="s"'),
    (r't="n"', 't="d"'),
    (r't="n"', 't="b"'),
    (r't="n"', 't="e"'),
    (r"<v>[^<]*</v>", "<v>NaN</v>"),
    (r"<v>[^<]*</v>", "<v>1e999</v>"),
    (r"<v>[^<]*</v>", "<v>٣</v>"),
    (r"<v>[^<]*</v>", "<v></v>"),
    (r"<v>[^<]*</v>", f"<v>{'9' * 5000}</v>"),
    (r"<v>[^<]*</v>", "<f>1/0</f>"),
    (r"<v>[^<]*</v>", "<v>&#0;</v>"),
    (r"<sheetData>", "<sheetData>" + "<a>" * 2000),
    (r"</sheetData>", "<row><c><v>1</v></c></row></sheetData>"),
    (r"^", '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "' + "&b;" * 50 + '"><!ENTITY d "' + "&c;" * 5000 + '">]>'),
)


def write_workbook(grid: Grid, rng: np.random.Generator, *, harm: bool) -> bytes:
    """Return the table as a workbook, which changes neither values nor types; with `harm`, damaged."""
    frame, file = pd.DataFrame(grid.rows, columns=grid.header), io.BytesIO()
    text = frame.to_csv()
    if "=" in text or ILLEGAL_CHARACTERS_RE.search(text):
        grid.exact = False  # cells of text hold no formulas and few control characters
    frame = frame.replace(ILLEGAL_CHARACTERS_RE, "", regex=True)
    for name in NUMBERS:
        frame[name] = [float(text) if _is_number(text) else text for text in frame[name]]
    frame.to_excel(file, index=False)
    grid.separator = ""
    return _harmed_workbook(file, rng) if harm else file.getvalue()


def _is_number(text: str) -> bool:
    return math.isfinite(math.nan if (number := number_in(text)) is None else number)


def _harmed_workbook(file: io.BytesIO, rng: np.random.Generator) -> bytes:
    """Damage a part of a workbook, or falsify its sheet; bombs and missing parts are in tests/tables."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name, (pattern, lie) = pick(rng, list(parts)), pick(rng, _LIES)
    lied = re.sub(pattern, lambda _: lie, parts[_SHEET].decode(), count=int(rng.integers(2)))
    parts |= pick(rng, [{name: damaged(parts[name], rng)}, {_SHEET: lied.encode()}, {_SHEET: lied.encode()}])
    harmed = io.BytesIO()
    with zipfile.ZipFile(harmed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in parts.items():
            archive.writestr(one, content)
    return harmed.getvalue() if chance(rng, 0.9) else damaged(harmed.getvalue(), rng)


def write_parquet(grid: Grid, rng: np.random.Generator, *, harm: bool) -> bytes:
    """Return the table as a Parquet file, numbers as numbers; with `harm`, with odd types or damaged."""
    columns = {}
    for name, texts in zip(grid.header, map(list, zip(*grid.rows, strict=True)), strict=True):
        numbers = name in NUMBERS and all(map(_is_number, texts)) and chance(rng, 0.8)
        columns[name] = pa.array([float(text) for text in texts] if numbers else texts)
    grid.separator = ""
    if harm and chance(rng, 0.4):
        columns[pick(rng, grid.header)] = pick(rng, _odd_columns(len(grid.rows), rng))
    table, file = pa.table(columns), io.BytesIO()
    parquet.write_table(table, file, compression=pick(rng, ["none", "snappy", "gzip"]), use_dictionary=chance(rng, 0.5))
    content = file.getvalue()
    hurt = harm and chance(rng, 0.7)
    return damaged(content, rng, pick(rng, [0, len(content) * 3 // 4])) if hurt else content


def _odd_columns(n_people: int, rng: np.random.Generator) -> list[pa.Array]:
    whole = rng.integers(0, 5, n_people)
    nested = functools.reduce(lambda inner, _: [inner], range(min(100, deep_stack())), [1])
    return [
        pa.array(whole > 2),
        pa.array([2**63 + number for number in whole.tolist()], pa.uint64()),
        pa.array((whole / 2).astype(np.float16)),
        pa.array([Decimal(f"{number}.25") for number in whole.tolist()]),
        pa.array([datetime(2000, 1, 1 + number) for number in whole.tolist()]),
        pa.array([[number] * number for number in whole.tolist()]),
        pa.array([{"a": number} for number in whole.tolist()]),
        pa.array([b"\xff%d" % number for number in whole.tolist()]),
        pa.array([str(number) for number in whole.tolist()]).dictionary_encode(),
        pa.nulls(n_people),
        pa.array([None if number == 1 else float(number) for number in whole.tolist()]),
        pa.array([np.nan if number == 1 else np.inf for number in whole.tolist()]),
        pa.array(whole.astype("m8[s]")),
        pa.array(["A" * 100_000] * n_people),
        pa.array([nested] * n_people),
    ]


OPTIONS = {"control": "CN", "patients": "AD", "covariates": "age,sex", "site": "site"}


class Tables:
    """Text tables, Parquet files and workbooks, valid and invalid."""

    n_systematic = 0

    def __init__(self) -> None:
        grid = draw_grid(np.random.default_rng(0))
        frame = pd.DataFrame(grid.rows, columns=grid.header).astype(dict.fromkeys(NUMBERS, float))
        self.contract = contract_of(make_cohort(frame, **OPTIONS))

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Draw a table, and the changes made to it."""
        grid = draw_grid(rng)
        kind = pick(rng, ["neutral", "cells", "cells", "cells", "structure", "bytes", "bytes", "bytes"])
        if kind in ("cells", "bytes") and (kind == "cells" or chance(rng, 0.3)):
            change_cells(grid, rng)
        if kind == "structure":
            change_structure(grid, rng)
        elif chance(rng, 0.25):
            ending, write = pick(rng, [(".xlsx", write_workbook), (".parquet", write_parquet)])
            return Case(f"table{ending}", write(grid, rng, harm=kind == "bytes"), grid if kind != "bytes" else None)
        name, content = written(grid, rng)
        if kind != "bytes":
            return Case(name, content, grid)
        harmed = damaged(content, rng)
        packed = name.endswith(".gz") and chance(rng, 0.5)
        return Case(name, gzip.compress(harmed, 1, mtime=0) if packed else harmed, None)

    def judge(self, case: Case, path: Path) -> str:
        """Read the table, compare what was read, and make a cohort or new people of it."""
        grid: Grid | None = case.expected
        frame = _accepted(grid, read_table, path)
        if frame is None:
            return "refused"
        if grid is not None and grid.exact:
            compare(grid, frame)
        uses = (lambda frame: make_cohort(frame, **OPTIONS), lambda frame: check_people(frame, self.contract))
        people = _accepted(grid, uses[len(case.content) % 2], frame)
        if people is None:
            return "refused"
        if np.isinf(people.features.to_numpy()).any():
            raise Failure("people with infinite numbers were accepted")
        known = [name for name in REGIONS if name in people.features and name in frame]
        read = frame[known].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        if not np.array_equal(people.features[known].to_numpy(), read, equal_nan=True):
            raise Failure("regions changed on the way to the people")
        return "read"


def _accepted(grid: Grid | None, use: Callable, given: object) -> Any:
    """Return the result of `use`, or None if the file or table is refused, as a valid one must not be."""
    try:
        return use(given)
    except InputError as error:
        if grid is not None and grid.sound:
            raise Failure(f"a valid table was refused: {error}") from error
        return None
