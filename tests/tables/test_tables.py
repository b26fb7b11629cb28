"""Tables in every text dialect and in Excel, their ids, and the dictionaries that describe them."""

import datetime
import gzip
import json
import re
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from rindices.tables import Table, id_column_of, read_source, read_table
from rindices.tables.dictionary import Column, Dictionary, apply_dictionary, read_dictionary
from tests.pages.page import missing
from tests.refusal import refused_with

# The same table from files of every dialect, or a refusal with the row and the remedy


PLAIN = "participant_id,diagnosis,age,lHip\n001,CN,61,3.5\n002,AD,72,2.25\n"


def write(folder, name, content):
    """Write text or bytes."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", PLAIN),
        ("bom.csv", "\ufeff" + PLAIN),
        ("windows.csv", PLAIN.replace("\n", "\r\n")),
        ("old_mac.csv", PLAIN.replace("\n", "\r")),
        ("quoted.csv", PLAIN.replace("001", '"001"').replace("lHip", '"lHip"')),
        ("blanks.csv", PLAIN.replace(",", " , ")),
        ("tabs.tsv", PLAIN.replace(",", "\t")),
        ("tabs.csv", PLAIN.replace(",", "\t")),
        ("commas.txt", PLAIN),
        ("spaces.txt", PLAIN.replace(",", "   ")),
        ("semicolons.csv", PLAIN.replace(",", ";")),
        ("european.csv", PLAIN.replace(",", ";").replace(".", ",")),
        ("european.tsv", PLAIN.replace(",", "\t").replace(".", ",")),
        ("unicode.csv", PLAIN.encode("utf-16")),
        ("packed.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)),
        ("UPPER.CSV", PLAIN),
        ("trailing.csv", PLAIN.replace("\n", ",\n")),
    ],
)
def test_the_same_table_from_every_dialect(tmp_path, name, content):
    frame = read_table(write(tmp_path, name, content))
    text = {"participant_id": ["001", "002"], "diagnosis": ["CN", "AD"]}
    assert (frame.to_dict("list"), frame["age"].dtype) == (text | {"age": [61, 72], "lHip": [3.5, 2.25]}, np.float64)


def test_batches_are_the_text_as_it_is_written_with_its_rows(tmp_path):
    lines = [f"p{number}, x ,{number},," for number in range(210_000)]
    table = Table(write(tmp_path, "a.csv", "participant_id,t,v,e,f\n\nNA,,.,,\n" + "\n".join(lines)))
    shares, parts = zip(*((table.progress, batch) for batch in table.batches()), strict=True)
    assert 0 < shares[0] < shares[1] == table.progress == 1
    whole = pd.concat(parts)
    assert (table.file.name, table.columns, table.decimal_comma, whole.index.tolist(), whole.iloc[7].tolist()[:3]) == (
        "a.csv",
        ["participant_id", "t", "v", "e", "f"],
        False,
        list(range(2, 210_002)),
        ["p7", "x", "7"],
    )
    assert whole["e"].isna().all()


def test_missing_words_and_what_is_text(tmp_path):
    words = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", ".", " NA "]
    lines = [f"p{number},{word},{word or 'x'},0{number},yes" for number, word in enumerate(words)]
    frame = read_table(
        write(tmp_path, "a.csv", "participant_id,v,t,code,flag\n" + "\n".join([*lines, "p10,1e3,word,10,no"]))
    )
    np.testing.assert_array_equal(frame["v"], [np.nan] * 10 + [1000.0])
    codes = [f"0{number}" for number in range(10)] + ["10"]
    assert (frame["code"].tolist(), frame["flag"].tolist()) == (codes, ["yes"] * 10 + ["no"])


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("participant_id,v\nJosé,True\nZoë,\n".encode("latin-1"), {0: ["José", "True"], 1: ["Zoë", np.nan]}),
        ('participant_id,v\n"a\nb",2\nc,"1,5"\n', {0: ["a\nb", "2"], 1: ["c", "1,5"]}),
        ("participant_id,v\n'=1+1,it's\n", {0: ["=1+1", "it's"]}),
        ("\nsep=;\n;;\nparticipant_id;v\na;1,5\nb;2\n", {3: ["a", 1.5], 4: ["b", 2]}),
        ("participant_id,v\n\n  \n,\nNA,.\na,1\n\n", {4: ["a", 1]}),
        ('\nsep=,\n,\nparticipant_id,v\n"a\n",1\n\n,\nb,4\n', {3: ["a", 1], 6: ["b", 4]}),
        ("participant_id;v\na;2.345\nb;2\nc;2.1\n", {0: ["a", 2.345], 1: ["b", 2], 2: ["c", 2.1]}),
    ],
    ids=[
        *("Latin-1", "line breaks and commas in quotes", "guarded cells", "Excel's line", "empty rows", "all at once"),
        "points without commas",
    ],
)
def test_cells_and_the_rows_that_they_are_in(tmp_path, content, values):
    found, columns = read_table(write(tmp_path, "a.csv", content)), ["participant_id", "v"]
    expected = pd.DataFrame.from_dict(values, "index", columns=columns)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False)


def test_columns_without_a_name(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", ",Unnamed: 0,participant_id,v,\n0,5,a,2,\n1,6,b,3,\n"))
    assert list(frame.columns) == ["Unnamed: 0.1", "Unnamed: 0", "participant_id", "v"]


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_table, "quotes.csv", 'id,"name,a\n' + "1,2,3\n" * 40_000, r"Row 1 [\s\S]* unmatched quotation mark"),
        (read_table, "book.xlsx.gz", b"\x1f\x8b", r"extension '\.xlsx\.gz'"),
        (read_table, "renamed.csv", b"PK\x03\x04", r"Excel workbook with the wrong extension"),
        (
            read_table,
            "bomb.csv.gz",
            gzip.compress(b"a,b\n" + b"1,2\n" * 60_000_000, 1),
            r"unpacks to more than 200 times",
        ),
        (
            read_table,
            "points.csv",
            "participant_id;v;w\na;2.345;1,5\nb;2;2,5\nc;2.1;3,5\n",
            r"Column 'v' contains '2\.345' in row 2[\s\S]*here: 2345",  # the point may mark thousands
        ),
        (
            read_dictionary,
            "a.json",
            '{\n "age": {"Units": "year"}\n "sex": {}\n}',
            r"a\.json cannot be read as JSON: .* line 3",
        ),
        (read_dictionary, "a.json", "[1]", "should be a JSON object"),
        (read_dictionary, "a.csv", "participant_id,age\n1,61\n", "none of its columns is recognised as the one"),
        (
            read_dictionary,
            "a.csv",
            "name,levels\na,\nb,0=x;1\n",
            r"Row 3 of a\.csv \(b\) cannot be used: '0=x;1'[\s\S]*0=male;1=female",
        ),
        (read_dictionary, "a.csv", "name,levels\na,\nb,0=x;0=y\n", r"Row 3 of a\.csv \(b\) cannot be used: '0=x;0=y'"),
        (
            read_dictionary,
            "a.csv",
            "name,levels\na,\nb,continuous\n",
            r"Row 3 of a\.csv \(b\) cannot be used: 'continuous'",
        ),
        (read_dictionary, "a.csv", "name,min\na,\n\na,\n", r"Row 4 of a\.csv describes 'a' a second time"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_unreadable_tables_and_dictionaries_are_explained(tmp_path, read, name, content, message):
    refused_with(message, read, write(tmp_path, name, content))


def test_parquet_reads_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"participant_id": [1, 2], "diagnosis": ["1", "0"], "age": [61, 72], "lHip": ["3.5", "NA"]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.drop(columns="age").set_index("diagnosis").to_parquet(tmp_path / "other.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = read_table(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet"), expected)
    pd.testing.assert_frame_equal(read_table(tmp_path / "other.parquet")[["diagnosis"]], expected[["diagnosis"]])


def test_parquet_with_damaged_text_is_refused_before_the_text_is_used_and_all_of_it_without_pyarrow(
    tmp_path, monkeypatch
):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    places = arrow.array([0, 2, 4], arrow.int32()).buffers()[1]
    ids = arrow.Array.from_buffers(arrow.string(), 2, [None, places, arrow.py_buffer(b"ab\xff\xfe")])
    parquet.write_table(arrow.table({"participant_id": ids, "lHip": [1.0, 2.0]}), tmp_path / "a.parquet")
    refused_with("not a readable Parquet file", read_table, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused_with(r"pip install 'rindices\[parquet\]'", read_table, tmp_path / "a.parquet")


# Ids: the table's own column, and ids that two tables write differently


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        *(
            (name, ["1.10", "1.1"])
            for name in ("Measure:volume", "lh.aparc.thickness", "MRID", "RID", "eid", "subject")
        ),
        *((name, ["1.10", "1.1"]) for name in ("SubjID", "src_subject_id")),
        ("who", ["a", "b"]),
    ],
)
def test_a_first_column_of_ids_is_taken_and_said(name, ids, tmp_path):
    pd.DataFrame({name: ids, "lHip": [3.1, 2.9]}).to_csv(tmp_path / "people.csv", index=False)
    source = read_source(tmp_path / "people.csv")
    assert (source.id_column, source.frame[name].tolist(), [str(note) for note in source.notes]) == (
        name,
        ids,
        [f"Ids are read from column {name!r}; to use another, specify id='COLUMN'."],
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"lHip": [3.1, 2.9], "rHip": [3.0, 3.2]},
        {"group": ["a", "b"], "lHip": [3.1, 2.9]},
        {"who": ["a", "a"], "lHip": [3.1, 2.9]},
        {"Unnamed: 0": [0, 1], "lHip": [3.1, 2.9]},
        {"p1": ["p2", "p3"], "3.1": [2.9, 3.2], "3.3": [3.3, 3.1]},
    ],
)
def test_other_first_columns_are_no_ids(columns):
    assert id_column_of(pd.DataFrame(columns), "participant_id") == "participant_id"


def joined(tmp_path, ours, theirs, **columns):
    pd.DataFrame({"participant_id": ours, "lHip": 3.0}).to_csv(tmp_path / "main.csv", index=False)
    pd.DataFrame({"subject": theirs, "age": range(len(theirs)), **columns}).to_csv(tmp_path / "more.csv", index=False)
    return read_source(tmp_path / "main.csv", join=[tmp_path / "more.csv"])


def test_ids_that_differ_by_a_prefix_or_suffix_are_matched_one_to_one_and_said(tmp_path):
    source = joined(tmp_path, ["sub-01", "sub-02", "sub-03"], ["03_T1w", "sub-01", "02"])
    assert source.frame["age"].tolist() == [1, 2, 0]
    different = (
        "2 ids are written differently in more.csv and in the main table (participants 'sub-02' and '02', for example)"
    )
    assert not missing(
        " ".join(map(str, source.notes)), "The ids in more.csv are read from column 'subject'.", different
    )
    refused_with(
        r"'sub-01' could be '01_ses-1' or '01_ses-2'", joined, tmp_path, ["sub-01", "sub-02"], ["01_ses-1", "01_ses-2"]
    )


# Dictionaries


SEX = Column(levels={"0": "male", "1": "female"})
SIDECAR = {
    "MeasurementToolMetadata": {"Description": "a questionnaire"},
    "GeneratedBy": "hand",
    "age": {"LongName": "Age at scan", "Units": "year", "Minimum": 18, "Maximum": "89", "TermURL": "https://x"},
    "sex": {"Description": "sex", "Levels": {"M": {"Description": "Male", "TermURL": "https://y"}, "F": "Female"}},
    "dx": {"levels": {"1": "Control", "2.0": "Patient", "-9": "Missing"}},
    "mmse": {"MissingValues": [-1, "refused"], "Derivative": True},
    "seen": {"Minimum": "2001-01-31", "Levels": {}, "Units": None},
}
REDCAP = (
    '"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels",'
    '"Text Validation Min","Text Validation Max"\n'
    'sex,demo,radio,Sex at birth,"0, Male | 1, Female, not pregnant | -9, Missing",,\n'
    "age,demo,text,Age in years,,18,120\n"
    'bmi,demo,calc,BMI,"round([weight]/[height], 1)",,\n'
    "born,demo,text,Birthday,,1900-01-01,today\n"
    "smokes,demo,yesno,Smokes,,,\n"
)
TABBED = (
    "Column\tlabel\tUnits\tlevels\tmin\tmax\tmissing codes\nx\tscore\tmm3\t0=a;1=b, c\t\t\t-9=refused, -99\n"
    "y\t\t\t\t0\t1.5\t\n"
)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "people.json",
            b"\xef\xbb\xbf" + json.dumps(SIDECAR, indent=1).replace("\n", "\r\n").encode(),
            {
                "age": Column("Age at scan", "year"),
                "sex": Column("sex", None, {"M": "Male", "F": "Female"}),
                "dx": Column(levels={"1": "Control", "2": "Patient"}, missing=("-9",)),
                "mmse": Column(missing=("-1", "refused")),
                "seen": Column(),
            },
        ),
        (
            "redcap.csv",
            REDCAP,
            {
                "sex": Column("Sex at birth", None, {"0": "Male", "1": "Female, not pregnant"}, missing=("-9",)),
                "age": Column("Age in years"),
                "bmi": Column("BMI"),
                "born": Column("Birthday"),
                "smokes": Column("Smokes", levels={"1": "Yes", "0": "No"}),
            },
        ),
        (
            "plain.tsv",
            TABBED,
            {
                "x": Column("score", "mm3", {"0": "a", "1": "b, c"}, missing=("-9", "-99")),
                "y": Column(),
            },
        ),
    ],
)
def test_dictionaries_of_three_kinds(tmp_path, name, content, expected):
    dictionary, categories = (
        read_dictionary(write(tmp_path, name, content)),
        [name for name in expected if expected[name].levels],
    )
    assert (dictionary, dictionary.categories) == (expected, tuple(categories))


def test_codes_of_categories_become_text_and_missing_codes_gaps():
    codes = {"sex": [0.0, 1.0, -9], "dx": ["01", "02", "01"], "n": [1, 2, 3], "Age": 1.0}
    texts = {"a": [1, -9, 3], "b": ["1.5", "refused", "2"], "c": ["x", "?", "y"], "d": [-9.0, 1.0, 2.0]}
    says = {"sex": Column(levels=SEX.levels, missing=("-9",)), "dx": Column(levels={"01": "a", "02": "b"}), "age": SEX}
    says |= {name: Column(missing=(code,)) for name, code in {"a": "-9", "b": "refused", "c": "?", "z": "-1"}.items()}
    frame, nan = pd.DataFrame(codes | texts), np.nan
    changed, notes, _ = apply_dictionary(frame, Dictionary(says))
    expected = {"sex": ["0", "1", nan], "a": [1, nan, 3], "b": [1.5, nan, 2], "c": ["x", nan, "y"]}
    pd.testing.assert_frame_equal(changed, frame.assign(**expected), check_dtype=False)
    assert notes == [
        "The data dictionary describes 'age', but the column is called 'Age', so this description is not used."
    ]
    assert frame["sex"].dtype == np.float64  # the original table is unchanged


def test_a_value_that_is_no_level_is_told_with_row_and_levels():
    frame = pd.DataFrame({"sex": ["0", "2", "1", "x"]}, index=[0, 3, 4, 6])  # the file has empty lines
    changed, _, (problem,) = apply_dictionary(frame, Dictionary({"sex": SEX}))
    assert re.search(r"row 5 contains '2', and 1 more row .*\nThe levels are 0 \(male\), 1 \(female\)", problem.what)
    assert (problem.where, changed["sex"].tolist()) == (("sex",), ["0", "2", "1", "x"])


# Excel workbooks read as the CSV files of the same tables, or are refused with the cell and the remedy.

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
        "a.xlsx#Empty": r"a\.xlsx contains no data in sheet 'Empty'",
        "b.xlsx#Later": r"There is no file .*b\.xlsx\.",
        "merged.xlsx": r"Cell C2 .* has no name in row 1[\s\S]*unmerge merged cells",
    }.items():
        refused_with(message, read_table, tmp_path / name)
    made = openpyxl.load_workbook(path)
    made["Later"].sheet_state = "hidden"  # as with lists of choices for cells
    made.save(path)
    assert len(read_table(path)) == 2


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        # With lxml installed, openpyxl drops entities instead of refusing them, and nothing is left.
        *(
            pytest.param(part, change, "(is not a readable Excel workbook|cannot be opened|.*is empty)", id=name)
            for name, part, change in (
                ("half a sheet", SHEET, lambda xml: xml[: len(xml) // 2]),
                ("no number", SHEET, lambda xml: xml.replace(b"<v>61</v>", b"<v>sixty</v>")),
                ("no such text", SHEET, lambda xml: xml.replace(b't="n"><v>72<', b't="s"><v>77<')),
                ("entities", "xl/workbook.xml", lambda xml: b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
                ("no styles", "xl/styles.xml", lambda xml: b""),
                ("no types", "[Content_Types].xml", lambda xml: b"<Types/>"),
            )
        ),
        *(
            (
                part,
                lambda content: content + b" " * 20_000_000,
                r"unpacks to 20 MB, which is implausible .*\n.*CSV UTF-8",
            )
            for part in (SHEET, "xl/sharedStrings.xml", "xl/media/picture.png")
        ),
    ],
)
def test_damaged_workbooks_are_explained_and_bombs_not_unpacked(tmp_path, part, change, said):
    refused_with(rf"a\.xlsx {said}", read_table, changed(book(tmp_path / "a.xlsx", HEADER, *ROWS), part, change))
