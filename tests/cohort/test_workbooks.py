"""Excel workbooks read as the CSV files of the same tables, or are refused with the cell and the remedy."""

import datetime
import io
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from rindices.cohort import archives, read_cohort
from rindices.cohort.tables import read_table
from rindices.errors import InputError

HEADER = ["participant_id", "diagnosis", "age", "lHip"]
ROWS = [["001", "CN", 61, 3.5], ["002", "AD", 72, 2.25]]
BODY = b'<row r="1"><c r="A1" t="inlineStr"><is><t>participant_id</t></is></c></row>'


def book(path, *rows, sheet="Sheet", **more):
    """Write a workbook with these rows, and those of further sheets."""
    made = openpyxl.Workbook()
    made.active.title = sheet
    for name, lines in {sheet: rows, **more}.items():
        target = made.active if name == sheet else made.create_sheet(name)
        for line in lines:
            target.append(line)
    made.save(path)
    return path


def changed(path, name, change):
    """Change the bytes of one part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return path


def sheet_with(path, body):
    """Put XML where the cells of the only sheet are."""

    def put(xml):
        before, _, rest = xml.partition(b"<sheetData>")
        return before + b"<sheetData>" + body + b"</sheetData>" + rest.partition(b"</sheetData>")[2]

    return changed(path, "xl/worksheets/sheet1.xml", put)


def test_a_workbook_saved_twice_keeps_both_columns_of_row_numbers(tmp_path):
    frame = read_table(book(tmp_path / "a.xlsx", [None, "Unnamed: 0", *HEADER], [0, 5, *ROWS[0]], [1, 6, *ROWS[1]]))
    assert list(frame.columns) == ["Unnamed: 0.1", "Unnamed: 0", *HEADER]
    assert frame["Unnamed: 0.1"].tolist() == [0, 1]


def test_a_workbook_equals_the_csv_of_the_same_table(tmp_path):
    rng = np.random.default_rng(0)
    n = 60
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


@pytest.mark.parametrize(
    ("rows", "names", "values"),
    [
        pytest.param([HEADER, *ROWS], HEADER, ROWS, id="plain"),
        pytest.param([HEADER, [1.0, "CN", 61, 3.5], [2, "AD", 72, 2.25]], HEADER, [["1", *ROWS[0][1:]]], id="ids"),
        pytest.param(
            [HEADER, ["a", 1, "61", " 3.5"], ["b", 0, 72, 2]], HEADER, [["a", "1", 61, 3.5]], id="text numbers"
        ),
        pytest.param(
            [HEADER, ["a", "CN", "n/a", "."], ["b", "AD", 72, 2]], HEADER, [["a", "CN", np.nan, np.nan]], id="gaps"
        ),
        pytest.param([[], [], HEADER, *ROWS], HEADER, ROWS, id="empty rows above"),
        pytest.param([[None, *HEADER], *([None, *row] for row in ROWS)], HEADER, ROWS, id="empty column before"),
        pytest.param([[*HEADER, None, " "], *([*row, None, "  "] for row in ROWS)], HEADER, ROWS, id="blanks after"),
        pytest.param([["", *HEADER], [0, *ROWS[0]]], ["Unnamed: 0", *HEADER], [[0, *ROWS[0]]], id="row numbers"),
        pytest.param(
            [["participant_id", "v"], ["a", True], ["b", False]], ["participant_id", "v"], [["a", "TRUE"]], id="truth"
        ),
        pytest.param(
            [
                ["participant_id", "day"],
                ["a", datetime.datetime(2020, 1, 31)],
                ["b", datetime.datetime(2020, 1, 31, 8, 30)],
            ],
            ["participant_id", "day"],
            [["a", "2020-01-31"], ["b", "2020-01-31 08:30:00"]],
            id="dates",
        ),
        pytest.param(
            [["participant_id", 2019], ["a", 5]], ["participant_id", "2019"], [["a", 5.0]], id="number as a name"
        ),
    ],
)
def test_cells_of_all_kinds(tmp_path, rows, names, values):
    frame = read_table(book(tmp_path / "a.xlsx", *rows))
    assert list(frame.columns) == names
    expected = pd.DataFrame(values, columns=names)
    pd.testing.assert_frame_equal(frame.head(len(values)).reset_index(drop=True), expected, check_dtype=False)


def test_rows_are_numbered_as_the_spreadsheet_shows_them(tmp_path):
    path = book(tmp_path / "a.xlsx", [], HEADER, ROWS[0], [], [None, None], ROWS[1])
    assert read_table(path).index.tolist() == [1, 4]  # rows 3 and 6
    (tmp_path / "a.csv").write_text("\nparticipant_id,diagnosis,age,lHip\n001,CN,61,3.5\n\n,,,\n002,AD,72,2.25\n")
    pd.testing.assert_frame_equal(read_table(path), read_table(tmp_path / "a.csv"))


def test_ids_are_read_as_they_are_shown(tmp_path):
    made = openpyxl.Workbook()
    for row in (HEADER, [7, "CN", 61, 3.5], [12, "AD", 72, 2.25]):
        made.active.append(row)
    for number in (2, 3):
        made.active.cell(number, 1).number_format = "0000"
        made.active.cell(number, 3).number_format = "000"
    made.save(tmp_path / "a.xlsx")
    frame = read_table(tmp_path / "a.xlsx")
    assert frame["participant_id"].tolist() == ["0007", "0012"]
    assert frame["age"].tolist() == [61.0, 72.0]


def test_a_sheet_is_named_after_the_file(tmp_path):
    other = [HEADER, ["003", "CN", 50, 1.5]]
    path = book(tmp_path / "a.xlsx", HEADER, *ROWS, sheet="Baseline", Later=other, Empty=[])
    with pytest.raises(InputError, match=r"2 sheets with cells: 'Baseline', 'Later'\.[\s\S]*'a\.xlsx#Baseline'"):
        read_table(path)
    assert read_table(f"{path}#Later")["participant_id"].tolist() == ["003"]
    with pytest.raises(
        InputError, match=r"no sheet 'Latter'\. Did you mean 'Later'\?[\s\S]*'Baseline', 'Later', 'Empty'"
    ):
        read_table(f"{path}#Latter")
    with pytest.raises(InputError, match=r"The sheet 'Empty' of a\.xlsx is empty"):
        read_table(f"{path}#Empty")
    with pytest.raises(InputError, match=r"There is no file .*b\.xlsx\."):
        read_table(tmp_path / "b.xlsx#Later")


def test_hidden_sheets_do_not_count(tmp_path):
    made = openpyxl.load_workbook(book(tmp_path / "a.xlsx", HEADER, *ROWS, Choices=[["CN"], ["AD"]]))
    made["Choices"].sheet_state = "hidden"
    made.save(tmp_path / "a.xlsx")
    assert len(read_table(tmp_path / "a.xlsx")) == 2


def test_a_cohort_is_read_from_a_sheet(tmp_path, small_table, small_labels):
    table = small_table.assign(participant_id=[f"p{i}" for i in range(80)], diagnosis=small_labels)
    with pd.ExcelWriter(tmp_path / "study.xlsx") as writer:
        table.to_excel(writer, sheet_name="people", index=False)
        pd.DataFrame({"variable": ["region0"], "unit": ["mm3"]}).to_excel(writer, sheet_name="words", index=False)
    cohort = read_cohort(f"{tmp_path / 'study.xlsx'}#people", dictionary=f"{tmp_path / 'study.xlsx'}#words")
    assert (cohort.n_controls, cohort.n_patients, cohort.unit) == (40, 40, "mm3")
    assert cohort.source == "study.xlsx#people"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"a\.xlsx is empty"),
        ([HEADER], r"a\.xlsx has a header but no people"),
        ([["id", "v", "v"], [1, 2, 3]], r"has 'v' more than once \('v' is column 2 and 3\)"),
        (
            [HEADER, ROWS[0], ["002", "AD", "#N/A", "#DIV/0!"]],
            r"Column 'age' of sheet 'Sheet' of a\.xlsx has the error #N/A in row 3, and 1 more cell like it "
            r"\(columns age, lHip\)\.\nCorrect",
        ),
        (
            [HEADER, ["001", "CN", "=60+1", 3.5], ["002", "AD", "=60+2", 3]],
            r"Column 'age' .* a formula whose result is not in the file in row 2, and 1 more cell like it\.\nOpen it",
        ),
        (
            [["My study"], HEADER, *ROWS],
            r"Column B of sheet 'Sheet' .* has a cell in row 2, but no name in row 1[\s\S]*titles",
        ),
        (
            [["participant_id", "left", None], ["a", 1, 2]],
            r"Column C .* row 2, but no name in row 1[\s\S]*merged cells",
        ),
    ],
)
def test_sheets_that_are_no_table_are_explained(tmp_path, rows, message):
    with pytest.raises(InputError, match=message) as caught:
        read_table(book(tmp_path / "a.xlsx", *rows))
    assert len(str(caught.value).splitlines()) <= 4


def test_a_date_among_the_measures_is_told_by_row(tmp_path, small_table, small_labels):
    table = small_table.assign(participant_id=[f"p{i}" for i in range(80)], diagnosis=small_labels).astype(object)
    table.loc[4, "region3"] = datetime.datetime(2024, 5, 3)
    table.to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.raises(InputError, match=r"'region3'[\s\S]*row 6[\s\S]*'2024-05-03'"):
        read_cohort(tmp_path / "a.xlsx")


def other_archive():
    """Return an archive that is no workbook."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("people.csv", "a,b")
    return held.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"password, or of Excel's old format \(\.xls\)\.\nIn the spreadsheet"),
        (
            b"participant_id,age\n1,2\n",
            r"no Excel workbook, but looks like text\.\nGive it the extension of its kind: \.csv",
        ),
        (b"", r"a\.xlsx is no Excel workbook\."),
        (b"\x00\x01\x02\x03", r"a\.xlsx is no Excel workbook\."),
        (b"PK\x03\x04 and so on", r"no complete Excel workbook"),
        (other_archive(), r"an archive, but no Excel workbook"),
    ],
    ids=["locked", "text", "nothing", "binary", "half", "archive"],
)
def test_files_that_are_no_workbook_are_explained(tmp_path, content, message):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("xl/worksheets/sheet1.xml", lambda xml: xml[: len(xml) // 2]),
        ("xl/worksheets/sheet1.xml", lambda xml: xml.replace(b"<v>61</v>", b"<v>sixty</v>")),
        ("xl/worksheets/sheet1.xml", lambda xml: xml.replace(b't="n"><v>72<', b't="s"><v>77<')),
        ("xl/workbook.xml", lambda xml: b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
        ("xl/styles.xml", lambda xml: b""),
        ("[Content_Types].xml", lambda xml: b"<Types/>"),
    ],
    ids=["half a sheet", "no number", "no such text", "entities", "no styles", "no types"],
)
def test_damaged_workbooks_are_explained(tmp_path, part, change):
    path = changed(book(tmp_path / "a.xlsx", HEADER, *ROWS), part, change)
    # Where lxml is installed, openpyxl reads with it and leaves entities out instead of refusing: nothing is left then.
    with pytest.raises(
        InputError, match=r"a\.xlsx (cannot be read as an Excel workbook: it is damaged.*\nOpen it|is empty)"
    ):
        read_table(path)


def test_what_a_sheet_claims_about_its_size_is_not_believed(tmp_path):
    path = book(tmp_path / "a.xlsx", HEADER, *ROWS)
    changed(path, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b'ref="A1:D3"', b'ref="A1"'))
    assert len(read_table(path)) == 2
    sheet_with(path, BODY + b'<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>')
    with pytest.raises(InputError, match="no people"):
        read_table(path)


@pytest.mark.parametrize("limit", ["_MOST_IN_SHEETS", "_MOST_ELSEWHERE", "_LARGE"])
def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch, limit):
    path = sheet_with(book(tmp_path / "a.xlsx", HEADER, *ROWS), BODY + b" " * 200_000)
    assert len(path.read_bytes()) < 10_000
    monkeypatch.setattr(archives, limit, 1_000)
    monkeypatch.setattr(openpyxl, "load_workbook", None)
    with pytest.raises(InputError, match=r"a\.xlsx unpacks to 0 MB, more than .*\n.*CSV UTF-8"):
        read_table(path)
