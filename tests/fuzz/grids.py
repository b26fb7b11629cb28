"""Tables as texts in cells, written in all the ways that spreadsheets write them, and what reading them has to give."""

import contextlib
import gzip
import math
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from rindices.schema.cells import MISSING_TEXT
from tests.fuzz.engine import Failure
from tests.fuzz.mutations import chance, pick

N_PEOPLE, REGIONS = 48, ("lHip", "rHip", "lAmy", "rAmy", "lEnt")
TEXT_COLUMNS = ("participant_id", "diagnosis")
NUMBERS = ("age", *REGIONS)
NEWLINES = ("\n", "\r\n", "\r")

# Cells that a reader may get wrong: what is a number here, is missing, or has to stay as it is?
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
    """A header and rows of texts, how they are written, and what follows for reading them.

    `exact` tells whether the values read can be compared with the texts; `sound` that the table cannot be refused.
    """

    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    separator: str = ","
    decimal_comma: bool = False
    exact: bool = True
    sound: bool = True

    def note(self, *words: object) -> None:
        self.notes.append(" ".join(map(str, words)))


def draw_grid(rng: np.random.Generator) -> Grid:
    """Return a valid table whose numbers are written in different ways."""
    style = pick(rng, ["{:.3f}", "{!r}", "{:.6e}", "{:.0f}", "{:.17g}"])
    volumes, rows = rng.normal(3000, 300, (N_PEOPLE, len(REGIONS))), []
    for number in range(N_PEOPLE):
        person = [f"{number:03d}", "CN" if number % 2 else "AD", f"{rng.uniform(50, 90):.2f}"]
        person += [pick(rng, ["F", "M"]), "AB"[number // 2 % 2]]
        rows.append([*person, *(style.format(float(volume)) for volume in volumes[number])])
    return Grid([*TEXT_COLUMNS, "age", "sex", "site", *REGIONS], rows)


def change_cells(grid: Grid, rng: np.random.Generator) -> None:
    """Put odd texts into some cells; the others have to stay as they are."""
    for _ in range(int(rng.integers(1, 4))):
        row, column, text = int(rng.integers(N_PEOPLE)), int(rng.integers(len(grid.header))), pick(rng, ODD_CELLS)
        if chance(rng, 0.1):
            for person in grid.rows:
                person[column] = text
        grid.rows[row][column] = text
        grid.note("cell", row, grid.header[column], ascii(text[:40]))
    grid.sound = False


def change_structure(grid: Grid, rng: np.random.Generator) -> None:
    """Repeat, drop or bend rows and columns as people do by accident."""
    grid.sound, grid.exact = False, False
    header, rows = grid.header, grid.rows
    row, column, extra = int(rng.integers(len(rows))), int(rng.integers(len(header))), int(10 ** rng.uniform(0, 2.5))
    person, odd = rows[row], pick(rng, ODD_CELLS)
    long = pick(rng, ["9", "A", '"', ",", " "]) * int(10 ** rng.uniform(3, 6))

    def with_cells(*cells: str) -> list[list[str]]:
        return [*rows[:row], [*person[:column], *cells, *person[column + 1 :]], *rows[row + 1 :]]

    ways = {
        "row repeated": (header, [*rows[:row], *[person] * int(rng.integers(1, 4)), *rows[row:]]),
        "rows dropped": (header, rows[:row]),
        "cell dropped": (header, with_cells()),
        "cell added": (header, with_cells(odd, person[column])),
        "header": ([*header[:column], pick(rng, [*ODD_CELLS, *header]), *header[column + 1 :]], rows),
        "columns": ([*header, *(f"x{number}" for number in range(extra))], [[*one, *["1"] * extra] for one in rows]),
        "title": ([odd, *[""] * (len(header) - 1)], [header, *rows]),
        "long": (header, with_cells(long)),
    }
    what = pick(rng, list(ways))
    grid.header, grid.rows = ways[what]
    grid.note(what, row, column)


def written(grid: Grid, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return a file name and the table as text in one of many dialects, none of which may change a value."""
    if chance(rng, 0.3):
        order = rng.permutation(len(grid.header))
        if all(len(row) == len(order) for row in grid.rows):
            grid.header = [grid.header[place] for place in order]
            grid.rows = [[row[place] for place in order] for row in grid.rows]
            grid.note("columns in another order")
    grid.separator = pick(rng, [",", ",", ";", "\t"])
    grid.decimal_comma = grid.separator != "," and chance(rng, 0.4)
    ending, newline, quotes = pick(rng, [".csv", ".csv", ".tsv", ".txt"]), pick(rng, NEWLINES), pick(rng, [0, 0, 1, 2])
    lines = [_line(cells, grid, quotes, rng) for cells in [grid.header, *grid.rows]]
    if chance(rng, 0.2):
        for _ in range(int(rng.integers(1, 6))):
            lines.insert(int(rng.integers(len(lines) + 1)), "")
        grid.note("blank lines")
    text = newline.join(lines) + (newline if chance(rng, 0.8) else "")
    encoding = pick(rng, ["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
    try:
        content = text.encode(encoding)
    except UnicodeEncodeError:
        encoding, content = "utf-8", text.encode("utf-8", "surrogatepass")
    grid.exact &= encoding != "latin-1" or text.isascii()  # some texts in it are valid UTF-8 as well
    decimal = "comma" if grid.decimal_comma else "point"
    grid.note(
        encoding, "separator", repr(grid.separator), "newline", repr(newline), "quotes", quotes, "decimal", decimal
    )
    if chance(rng, 0.1):
        return f"table{ending}.gz", gzip.compress(content, 1, mtime=0)
    return f"table{ending}", content


def _line(cells: list[str], grid: Grid, quotes: int, rng: np.random.Generator) -> str:
    texts = [cell.replace(".", ",") if grid.decimal_comma and _PLAIN.fullmatch(cell) else cell for cell in cells]
    for place, text in enumerate(texts):
        needs = any(sign in text for sign in (grid.separator, '"', "\n", "\r"))
        if needs or quotes == 2 or (quotes == 1 and chance(rng, 0.5)):
            texts[place] = '"' + text.replace('"', '""') + '"'
    return grid.separator.join(texts)


_PLAIN = re.compile(r"[+-]?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")


def compare(grid: Grid, frame: pd.DataFrame) -> None:
    """Fail if a value that was read is not the one that was written."""
    names = [name.strip() for name in grid.header]
    if list(frame.columns) != names:
        raise Failure(f"columns {list(frame.columns)} instead of {names}")
    rows = [row for row in grid.rows if not all(_missing(cell) for cell in row)]
    if len(rows) != len(frame):
        raise Failure(f"{len(frame)} rows instead of {len(rows)}")
    for place, name in enumerate(names):
        texts, column = [row[place] for row in rows], frame[name]
        if column.dtype == np.float64 and name in TEXT_COLUMNS:
            raise Failure(f"{name} became numbers")
        same = _same_number if column.dtype == np.float64 else _same_text
        for text, value in zip(texts, column.tolist(), strict=True):
            if not same(text, value, grid):
                raise Failure(f"column {name}: {text[:60]!r} became {value!r:.60}")
    if grid.sound and not all(frame[name].dtype == np.float64 for name in NUMBERS):
        raise Failure("a column of numbers became text")


def _missing(text: str) -> bool:
    return text.strip() in MISSING_TEXT


def number_in(text: str) -> float | None:
    """Return the number that a text is, if it is one."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _same_number(text: str, value: float, grid: Grid) -> bool:
    if _missing(text):
        return math.isnan(value)
    texts = [text.strip(), *([] if grid.separator in ("", ",") else [_COMMA.sub(r"\1.\2", text.strip())])]
    numbers = [number for number in map(number_in, texts) if number is not None]
    return any(number == value or (math.isnan(number) and math.isnan(value)) for number in numbers)


def _same_text(text: str, value: object, grid: Grid) -> bool:
    if _missing(text):
        return isinstance(value, float) and math.isnan(value)
    if not isinstance(value, str):
        return False
    if grid.separator not in ("", ","):  # decimal commas become points in columns that are mostly numbers
        text, value = text.replace(",", "."), value.replace(",", ".")
    # A byte-order mark before the first cell is taken for the file's; nobody sees it.
    return text.removeprefix("\ufeff").split() == value.removeprefix("\ufeff").split()
