"""Tables in workbooks and Parquet files: the same cells as in text, and the damage that only such files can have."""

import functools
import io
import re
import zipfile
from datetime import datetime
from decimal import Decimal

import numpy as np
import openpyxl
import pyarrow as pa
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from pyarrow import parquet

from tests.fuzz.engine import deep_stack
from tests.fuzz.grids import NUMBERS, Grid, number_in
from tests.fuzz.mutations import chance, damaged, pick

_SHEET, _TIME = "xl/worksheets/sheet1.xml", re.compile(rb"\d{4}-\d\d-\d\dT[\d:]+Z")
# A pattern in a sheet, and what it becomes; each breaks a promise of the format.
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
    """Return the table as a workbook, which neither changes values nor types; with `harm`, damaged."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("People")
    sheet.append(grid.header)
    number = [name in NUMBERS for name in grid.header]
    for row in grid.rows:
        row[:] = [_as_stored(text) if is_one else text for is_one, text in zip(number, row, strict=True)]
        texts = zip(number, (ILLEGAL_CHARACTERS_RE.sub("", text) for text in row), strict=True)
        sheet.append([float(text) if is_one and _is_number(text) else text for is_one, text in texts])
    file = io.BytesIO()
    book.save(file)
    grid.note("workbook")
    grid.separator = ""
    if any(cell.startswith("=") or ILLEGAL_CHARACTERS_RE.search(cell) for row in grid.rows for cell in row):
        grid.exact = False  # there are no formulas and few control characters in cells of text
    with zipfile.ZipFile(file) as archive:
        parts = {name: _TIME.sub(b"2000-01-01T00:00:00Z", archive.read(name)) for name in archive.namelist()}
    return _harmed_workbook(parts, grid, rng) if harm else _zipped(parts)


def _zipped(parts: dict[str, bytes]) -> bytes:
    """Return an archive without the time at which it was made."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED, compresslevel=1)
    return file.getvalue()


def _is_number(text: str) -> bool:
    number = number_in(text)
    return number is not None and bool(np.isfinite(number))


def _as_stored(text: str) -> str:
    """Return a number with the 16 digits that openpyxl writes."""
    if not _is_number(text):
        return text
    number = float(f"{float(text):.16g}")
    return str(int(number)) if number.is_integer() else repr(number)


def _harmed_workbook(parts: dict[str, bytes], grid: Grid, rng: np.random.Generator) -> bytes:
    what, name = pick(rng, ["bytes", "part", "part", "lie", "lie", "lie", "bomb", "lost"]), pick(rng, list(parts))
    if what in ("bytes", "part"):
        content, words = damaged(_zipped(parts) if what == "bytes" else parts[name], rng)
        grid.note(what, name, words)
        return content if what == "bytes" else _zipped(parts | {name: content})
    if what == "lost":
        grid.note(what, name)
        return _zipped({one: part for one, part in parts.items() if one != name})
    if what == "lie":
        pattern, lie = pick(rng, _LIES)
        text = parts[_SHEET].decode()
        name, content = _SHEET, re.sub(pattern, lambda _: lie, text, count=int(rng.integers(2))).encode()
        grid.note(what, pattern, lie[:40])
    else:
        filler = pick(rng, [b" ", b"<row/>", b'<row r="7"><c r="A7" t="n"><v>1</v></c></row>', b"<a>"])
        name, size = pick(rng, [_SHEET, "xl/sharedStrings.xml", "xl/other.xml"]), int(10 ** rng.uniform(5, 7.5))
        content = filler * (size // len(filler))
        grid.note(what, filler, size)
    return _zipped(parts | {name: content})


def write_parquet(grid: Grid, rng: np.random.Generator, *, harm: bool) -> bytes:
    """Return the table as a Parquet file, numbers as numbers; with `harm`, of odd types or damaged."""
    columns = {}
    for place, name in enumerate(grid.header):
        texts = [row[place] for row in grid.rows]
        numbers = name in NUMBERS and all(map(_is_number, texts)) and chance(rng, 0.8)
        columns[name] = pa.array([float(text) for text in texts] if numbers else texts)
    grid.note("Parquet")
    grid.separator = ""
    if harm and chance(rng, 0.4):
        kinds = _odd_columns(len(grid.rows), rng)
        name, kind = pick(rng, grid.header), pick(rng, list(kinds))
        columns[name] = kinds[kind]
        grid.note(name, "of", kind)
    table, file = pa.table(columns), io.BytesIO()
    parquet.write_table(table, file, compression=pick(rng, ["none", "snappy", "gzip"]), use_dictionary=chance(rng, 0.5))
    if not harm or chance(rng, 0.3):
        return file.getvalue()
    low = pick(rng, [0, len(file.getvalue()) * 3 // 4])
    content, words = damaged(file.getvalue(), rng, low)
    grid.note(words)
    return content


def _odd_columns(n_people: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    whole = rng.integers(0, 5, n_people)
    nested = functools.reduce(lambda inner, _: [inner], range(min(100, deep_stack())), [1])
    return {
        "truth values": pa.array(whole > 2),
        "large whole numbers": pa.array([2**63 + number for number in whole.tolist()], pa.uint64()),
        "halves": pa.array((whole / 2).astype(np.float16)),
        "decimals": pa.array([Decimal(f"{number}.25") for number in whole.tolist()]),
        "dates": pa.array([datetime(2000, 1, 1 + number) for number in whole.tolist()]),
        "lists": pa.array([[number] * number for number in whole.tolist()]),
        "structures": pa.array([{"a": number} for number in whole.tolist()]),
        "bytes": pa.array([b"\xff%d" % number for number in whole.tolist()]),
        "categories": pa.array([str(number) for number in whole.tolist()]).dictionary_encode(),
        "nothing": pa.nulls(n_people),
        "gaps": pa.array([None if number == 1 else float(number) for number in whole.tolist()]),
        "not finite": pa.array([np.nan if number == 1 else np.inf for number in whole.tolist()]),
        "durations": pa.array(whole.astype("m8[s]")),
        "long text": pa.array(["A" * 100_000] * n_people),
        "deep lists": pa.array([nested] * n_people),
    }
