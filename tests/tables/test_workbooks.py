"""Excel workbooks read as the CSV files of the same tables, or are refused with the cell and the remedy."""

import datetime
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from rindices.tables.table import read_table
from tests.refusal import refused_with

HEADER = ["participant_id", "diagnosis", "age", "lHip"]
ROWS, SHEET = [["001", "CN", 61, 3.5], ["002", "AD", 72, 2.25]], "xl/worksheets/sheet1.xml"


def book(path, *rows, sheet="Sheet", **more):
    """Write a workbook with these rows, and those of further sheets."""
    made = openpyxl.Workbook(write_only=True)
    for name, lines in {sheet: rows, **more}.items():
        target = made.create_sheet(name)
        for line in lines:
            target.append(line)
    made.save(path)
    return path


def changed(path, name, change):
    """Change the bytes of one part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in (parts | {name: change(parts.get(name, b""))}).items():
            archive.writestr(part, content)
    return path


def test_a_workbook_equals_the_csv_of_the_same_table(tmp_path):
    rng, n = np.random.default_rng(0), 60
    table = pd.DataFrame(
        {
            "participant_id": [f"{i:03d}" for i in range(n)],
            "diagnosis": rng.choice(["CN", "AD"], n),
            "age": rng.integers(50, 90, n),
            "code": [f"{i:02d}" for i in range(n)],
            "word": rng.choice(["yes", "no", None], n),
            "gaps": np.where(rng.uniform(size=n) < 0.3, np.nan, rng.standard_normal(n)),
            "empty": np.nan,
            **{f"region{i}": 10.0 ** rng.integers(-6, 6) * rng.standard_normal(n) for i in range(12)},
        }
    )
    table.to_excel(tmp_path / "a.xlsx", index=False)
    table.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.xlsx"), read_table(tmp_path / "a.csv"))


DAYS = [datetime.datetime(2020, 1, 31), datetime.datetime(2020, 1, 31, 8, 30)]


@pytest.mark.parametrize(
    ("rows", "names", "values"),
    [
        pytest.param([HEADER, [1.0, "CN", 61, 3.5], [2, "AD", 72, 2.25]], HEADER, [["1", *ROWS[0][1:]]], id="ids"),
        pytest.param([HEADER, ["a", 1, "61", " 3.5"], ["b", 0, 72, 2]], HEADER, [["a", "1", 61, 3.5]], id="numbers"),
        pytest.param([HEADER, ["a", "CN", "n/a", "."], ROWS[1]], HEADER, [["a", "CN", np.nan, np.nan]], id="gaps"),
        pytest.param([HEADER, ["a", "CN", 61, "#N/A"], ROWS[1]], HEADER, [["a", "CN", 61, np.nan]], id="an error"),
        pytest.param([[], [], HEADER, *ROWS], HEADER, ROWS, id="empty rows above"),
        pytest.param(
            [[], HEADER, ROWS[0], [], [None, None], ["NA", "."], ROWS[1]], HEADER, ROWS, id="empty rows between"
        ),
        pytest.param([[None, *HEADER], *([None, *row] for row in ROWS)], HEADER, ROWS, id="empty column before"),
        pytest.param([[*HEADER, None, " "], *([*row, None, "  "] for row in ROWS)], HEADER, ROWS, id="blanks after"),
        pytest.param([["", *HEADER], [0, *ROWS[0]]], ["Unnamed: 0", *HEADER], [[0, *ROWS[0]]], id="row numbers"),
        pytest.param([["id", "v"], ["a", True], ["b", False]], ["id", "v"], [["a", "TRUE"]], id="truth"),
        pytest.param(
            [["id", "day"], ["a", DAYS[0]], ["b", DAYS[1]]],
            ["id", "day"],
            [["a", "2020-01-31"], ["b", "2020-01-31 08:30:00"]],
            id="dates",
        ),
        pytest.param([["id", 2019], ["a", "61,5"]], ["id", "2019"], [["a", "61,5"]], id="comma; number as a name"),
    ],
)
def test_cells_of_all_kinds(tmp_path, rows, names, values):
    frame, expected = read_table(book(tmp_path / "a.xlsx", *rows)), pd.DataFrame(values, columns=names)
    pd.testing.assert_frame_equal(frame.head(len(values)).reset_index(drop=True), expected, check_dtype=False)
    filled = [place for place, row in enumerate(rows) if any(cell not in (None, "NA", ".") for cell in row)]
    assert frame.index.tolist() == [place - 1 for place in filled[1:]]  # rows as the spreadsheet shows them


def test_ids_are_read_as_they_are_shown(tmp_path):
    made = openpyxl.load_workbook(book(tmp_path / "a.xlsx", HEADER, [7, "CN", 61, 3.5], [12, "AD", 72, 2.25]))
    for place, form in {"A2": "0000", "A3": "0000", "C2": "000"}.items():
        made.active[place].number_format = form
    made.save(tmp_path / "a.xlsx")
    frame = read_table(tmp_path / "a.xlsx")
    assert (frame["participant_id"].tolist(), frame["age"].tolist()) == (["0007", "0012"], [61.0, 72.0])


def test_a_sheet_is_named_after_the_file(tmp_path):
    path = book(tmp_path / "a.xlsx", HEADER, *ROWS, sheet="Baseline", Later=[HEADER, ["003", "CN", 50, 1.5]], Empty=[])
    book(tmp_path / "merged.xlsx", ["id", "left", None], ["a", 1, 2])
    assert read_table(f"{path}#Later")["participant_id"].tolist() == ["003"]
    for name, message in {
        "a.xlsx": r"2 non-empty sheets: 'Baseline', 'Later'\.[\s\S]*'a\.xlsx#Baseline'",
        "a.xlsx#Latter": r"no sheet 'Latter'\. Did you mean 'Later'\?[\s\S]*'Baseline', 'Later', 'Empty'",
        "a.xlsx#Empty": r"a\.xlsx has no data in 1 sheet \('Empty'\)",
        "b.xlsx#Later": r"There is no file .*b\.xlsx\.",
        "merged.xlsx": r"cell C2 .* has no name in row 1[\s\S]*unmerge cells",
    }.items():
        refused_with(message, read_table, tmp_path / name)
    made = openpyxl.load_workbook(path)
    made["Later"].sheet_state = "hidden"  # lists to choose from
    made.save(path)
    assert len(read_table(path)) == 2


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (SHEET, lambda xml: xml[: len(xml) // 2]),
        (SHEET, lambda xml: xml.replace(b"<v>61</v>", b"<v>sixty</v>")),
        (SHEET, lambda xml: xml.replace(b't="n"><v>72<', b't="s"><v>77<')),
        ("xl/workbook.xml", lambda xml: b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
        ("xl/styles.xml", lambda xml: b""),
        ("[Content_Types].xml", lambda xml: b"<Types/>"),
    ],
    ids=["half a sheet", "no number", "no such text", "entities", "no styles", "no types"],
)
def test_damaged_workbooks_are_explained(tmp_path, part, change):
    path = changed(book(tmp_path / "a.xlsx", HEADER, *ROWS), part, change)
    # Where lxml is installed, openpyxl reads with it and leaves entities out instead of refusing: nothing is left then.
    refused_with(r"a\.xlsx (is not a readable Excel workbook|cannot be opened|.*is empty)", read_table, path)


@pytest.mark.parametrize("part", [SHEET, "xl/sharedStrings.xml", "xl/media/picture.png"])
def test_bombs_are_refused_before_they_are_unpacked(tmp_path, part):
    path = changed(book(tmp_path / "a.xlsx", HEADER, *ROWS), part, lambda content: content + b" " * 20_000_000)
    refused_with(r"a\.xlsx unpacks to 20 MB, more than .*\n.*CSV UTF-8", read_table, path)
