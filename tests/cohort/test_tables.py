import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import text_files
from rindices.cohort.tables import read_table
from rindices.errors import InputError

PLAIN = "participant_id,diagnosis,age,lHip\n001,CN,61,3.5\n002,AD,72,2.25\n"


def write(folder, name, content):
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
        ("tabs.txt", PLAIN.replace(",", "\t")),
        ("commas.txt", PLAIN),
        ("spaces.txt", PLAIN.replace(",", "   ")),
        ("semicolons.csv", PLAIN.replace(",", ";")),
        ("european.csv", PLAIN.replace(",", ";").replace(".", ",")),
        ("european.tsv", PLAIN.replace(",", "\t").replace(".", ",")),
        ("unicode.csv", PLAIN.encode("utf-16")),
        ("packed.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)),
        ("packed.tsv.gz", gzip.compress(PLAIN.replace(",", "\t").encode(), mtime=0)),
        ("UPPER.CSV", PLAIN),
        ("trailing.csv", PLAIN.replace("\n", ",\n")),
    ],
)
def test_the_same_table_from_every_dialect(tmp_path, name, content):
    frame = read_table(write(tmp_path, name, content))
    assert list(frame.columns) == ["participant_id", "diagnosis", "age", "lHip"]
    assert frame["participant_id"].tolist() == ["001", "002"]
    assert frame["diagnosis"].tolist() == ["CN", "AD"]
    np.testing.assert_array_equal(frame[["age", "lHip"]].to_numpy(dtype=float), [[61, 3.5], [72, 2.25]])
    assert frame["age"].dtype == np.float64


def test_parquet_reads_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"participant_id": ["001", "002"], "diagnosis": [0, 1], "age": [61, 72], "lHip": ["3.5", "NA"]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    frame.set_index("participant_id").to_parquet(tmp_path / "indexed.parquet")
    for name in ("a.parquet", "indexed.parquet"):
        table = read_table(tmp_path / name)
        assert table["participant_id"].tolist() == ["001", "002"]
        assert table["diagnosis"].tolist() == ["0", "1"]
        np.testing.assert_array_equal(table["lHip"], [3.5, np.nan])


def test_missing_words_and_what_is_text(tmp_path):
    words = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", ".", " NA "]
    lines = [f"p{number},{word},{word or 'x'},0{number},yes" for number, word in enumerate(words)]
    path = write(tmp_path, "a.csv", "participant_id,v,t,code,flag\n" + "\n".join([*lines, "p10,1e3,word,10,no"]))
    frame = read_table(path)
    assert frame["v"].isna().sum() == 10
    assert frame["v"].iloc[10] == 1000.0
    assert frame["t"].tolist()[-1] == "word"
    assert frame["code"].tolist() == [f"0{number}" for number in range(10)] + ["10"]
    assert frame["flag"].tolist() == ["yes"] * 10 + ["no"]


def test_truth_words_stay_text_and_latin_1_is_read(tmp_path):
    frame = read_table(
        write(tmp_path, "a.csv", "participant_id,smoker,v\nJosé,True,1\nZoë,False,2\n".encode("latin-1"))
    )
    assert frame["smoker"].tolist() == ["True", "False"]
    assert frame["participant_id"].iloc[0] == "José"


def test_named_columns_stay_text(tmp_path):
    path = write(tmp_path, "a.csv", "subject,dx,v\n10,1.0,2\n11,0.0,3\n")
    frame = read_table(path, text_columns=("subject", "dx"))
    assert frame["subject"].tolist() == ["10", "11"]
    assert frame["dx"].tolist() == ["1.0", "0.0"]


def test_empty_lines_leave_gaps_in_the_index(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", "participant_id,v\n1,2\n\n,\n3,4\n\n"))
    assert frame.index.tolist() == [0, 3]


def test_a_table_saved_twice_keeps_both_columns_of_row_numbers(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", ",Unnamed: 0,participant_id,v\n0,5,a,2\n1,6,b,3\n"))
    assert list(frame.columns) == ["Unnamed: 0.1", "Unnamed: 0", "participant_id", "v"]
    assert frame.iloc[0].tolist() == [0, 5, "a", 2]


def test_thousands_are_told_from_decimals_by_the_other_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 12)
    table = "participant_id;v;w\na;2.345;1,5\nb;2;2,5\nc;2.1;3,5\n"
    assert read_table(write(tmp_path, "a.csv", table))["v"].tolist() == [2.345, 2, 2.1]
    assert read_table(write(tmp_path, "b.csv", table.replace(",", ".")))["v"].tolist() == [2.345, 2, 2.1]
    with pytest.raises(InputError, match=r"Column 'v' has '2\.345' in row 2[\s\S]*here 2345"):
        read_table(write(tmp_path, "c.csv", table.replace("2.1", "987")))


@pytest.mark.parametrize("block", [12, 8_000_000])
def test_lines_above_the_header_are_skipped_and_counted(tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_files, "BLOCK", block)
    frame = read_table(write(tmp_path, "a.csv", "\nsep=;\n;;\nparticipant_id;v\na;1,5\nb;2\n"))
    assert frame.values.tolist() == [["a", 1.5], ["b", 2]]
    assert frame.index.tolist() == [3, 4]


def test_unnamed_row_numbers_keep_a_name(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", ",participant_id,v\n0,a,2\n1,b,3\n"))
    assert list(frame.columns) == ["Unnamed: 0", "participant_id", "v"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", r"empty\.csv is empty"),
        ("blank.csv", " \n\n", r"blank\.csv is empty"),
        ("header.csv", "participant_id,v\n", r"header\.csv has a header but no people"),
        ("twice.csv", "participant_id,v,v\n1,2,3\n", r"has 'v' more than once \('v' is column 2 and 3\)"),
        ("short.csv", "participant_id,v,w\n1,2,3\n1,2\n", r"Row 3 of short\.csv has 2 cells, but the header has 3"),
        (
            "long.csv",
            "participant_id,v\n1,2\n2,1,5\n3,2,5\n",
            r"Row 3 .* has 3 cells.*, and 1 more row is like it[\s\S]*decimal commas",
        ),
        ("quoted.csv", 'participant_id,v\n"1,2\n', r"quoted\.csv"),
        ("old.xls", b"\xd0\xcf\x11\xe0", r"extension '\.xls'[\s\S]*'Save as', and 'Excel workbook \(\.xlsx\)'"),
        ("free.ods", b"PK", r"extension '\.ods'[\s\S]*'Save as'"),
        ("book.xlsx.gz", b"\x1f\x8b", r"extension '\.xlsx\.gz'"),
        ("zeros.csv", "participant_id,v\n1,2\0\n", r"no table of text[\s\S]*Save the table as 'CSV UTF-8'"),
        ("quote.csv", 'participant_id,v\n1,2\n"2,3\n', r"Row 3 .* has 1 cell[\s\S]*quotation mark without its partner"),
        ("noext", "x", r"not a kind of table"),
        ("renamed.csv", b"PK\x03\x04", r"Excel workbook or an archive, in spite of its name[\s\S]*\.xlsx"),
        ("bad.csv.gz", b"not gzip", r"bad\.csv\.gz cannot be opened"),
        ("bad.parquet", b"not parquet", r"not a readable Parquet file"),
    ],
)
def test_unreadable_files_are_explained(tmp_path, name, content, message):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=message) as caught:
        read_table(write(tmp_path, name, content))
    assert len(str(caught.value).splitlines()) <= 4


def test_absent_files_and_folders_are_explained(tmp_path):
    write(tmp_path, "people.tsv", PLAIN)
    with pytest.raises(InputError, match=r"is a folder"):
        read_table(tmp_path)
    with pytest.raises(InputError, match=r"There is no file .*people\.csv[\s\S]*there is people\.tsv"):
        read_table(tmp_path / "people.csv")
    with pytest.raises(InputError, match=r"does not exist either"):
        read_table(tmp_path / "nowhere" / "people.csv")


def test_parquet_with_damaged_text_is_refused_before_the_text_is_used(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    places = arrow.array([0, 2, 4], arrow.int32()).buffers()[1]
    ids = arrow.Array.from_buffers(arrow.string(), 2, [None, places, arrow.py_buffer(b"ab\xff\xfe")])
    parquet.write_table(arrow.table({"participant_id": ids, "lHip": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(tmp_path / "a.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    with pytest.raises(InputError, match=r"pip install 'rindices\[parquet\]'"):
        read_table(path)


def test_a_quotation_mark_that_is_never_closed_is_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('id,"name,a\n' + "1,2,3\n" * 40_000)
    with pytest.raises(InputError, match="quotation mark"):
        read_table(path)


@pytest.mark.parametrize("block", [12, 8_000_000])
@pytest.mark.parametrize(
    "lines", ["\n001,TRUE,1\n", "001,TRUE,1\n\n", "  \n\n001,TRUE,1\n", "\n" * 40 + "001,TRUE,1\n" + "\n" * 40]
)
def test_blank_lines_change_neither_cells_nor_their_rows(tmp_path, monkeypatch, lines, block):
    monkeypatch.setattr(text_files, "BLOCK", block)
    frame = read_table(write(tmp_path, "a.csv", "participant_id,smoker,v\n" + lines))
    assert frame.values.tolist() == [["001", "TRUE", 1.0]]
    assert frame.index.tolist() == [lines.split("001")[0].count("\n")]


def test_truth_words_beside_gaps_stay_as_they_are(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", "participant_id,smoker\n1,TRUE\n2,\n3,FALSE\n"))
    assert frame["smoker"].dropna().tolist() == ["TRUE", "FALSE"]


def test_a_header_above_blank_lines_has_no_people(tmp_path):
    with pytest.raises(InputError, match="has a header but no people"):
        read_table(write(tmp_path, "a.csv", "participant_id,v\n\n\n\n"))
