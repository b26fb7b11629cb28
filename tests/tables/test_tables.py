"""The same table from files of every dialect, or a refusal with the row and the remedy."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from rindices.problems import InputError
from rindices.tables.table import Table, read_table

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
    assert frame.to_dict("list") == {
        "participant_id": ["001", "002"],
        "diagnosis": ["CN", "AD"],
        "age": [61, 72],
        "lHip": [3.5, 2.25],
    }
    assert frame["age"].dtype == np.float64


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
    path = write(tmp_path, "a.csv", "participant_id,v,t,code,flag\n" + "\n".join([*lines, "p10,1e3,word,10,no"]))
    frame = read_table(path)
    np.testing.assert_array_equal(frame["v"], [np.nan] * 10 + [1000.0])
    assert frame["code"].tolist() == [f"0{number}" for number in range(10)] + ["10"]
    assert frame["flag"].tolist() == ["yes"] * 10 + ["no"]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("participant_id,v\nJosé,True\nZoë,\n".encode("latin-1"), {0: ["José", "True"], 1: ["Zoë", np.nan]}),
        ('participant_id,v\n"a\nb",2\nc,"1,5"\n', {0: ["a\nb", "2"], 1: ["c", "1,5"]}),
        ("participant_id,v\n'=1+1,it's\n", {0: ["=1+1", "it's"]}),
        ("\nsep=;\n;;\nparticipant_id;v\na;1,5\nb;2\n", {3: ["a", 1.5], 4: ["b", 2]}),
        ("participant_id,v\n\n  \n,\nNA,.\na,1\n\n", {4: ["a", 1]}),
        ('\nsep=,\n,\nparticipant_id,v\n"a\n",1\n\n,\nb,4\n', {3: ["a", 1], 6: ["b", 4]}),
    ],
    ids=["Latin-1", "line breaks and commas in quotes", "guarded cells", "Excel's line", "empty rows", "all at once"],
)
def test_cells_and_the_rows_that_they_are_in(tmp_path, content, values):
    expected = pd.DataFrame.from_dict(values, "index", columns=["participant_id", "v"])
    found = read_table(write(tmp_path, "a.csv", content))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False)


def test_columns_without_a_name(tmp_path):
    frame = read_table(write(tmp_path, "a.csv", ",Unnamed: 0,participant_id,v,\n0,5,a,2,\n1,6,b,3,\n"))
    assert list(frame.columns) == ["Unnamed: 0.1", "Unnamed: 0", "participant_id", "v"]


def test_points_beside_decimal_commas_may_stand_for_thousands(tmp_path):
    table = "participant_id;v;w\na;2.345;1,5\nb;2;2,5\nc;2.1;3,5\n"
    assert read_table(write(tmp_path, "b.csv", table.replace(",", ".")))["v"].tolist() == [2.345, 2, 2.1]
    with pytest.raises(InputError, match=r"Column 'v' has '2\.345' in row 2[\s\S]*here: 2345"):
        read_table(write(tmp_path, "c.csv", table))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("quotes.csv", 'id,"name,a\n' + "1,2,3\n" * 40_000, r"Row 1 [\s\S]* unmatched quotation mark"),
        ("book.xlsx.gz", b"\x1f\x8b", r"extension '\.xlsx\.gz'"),
        ("renamed.csv", b"PK\x03\x04", r"Excel workbook with the wrong extension"),
        ("bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 60_000_000, 1), r"unpacks to more than 200 times"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_unreadable_files_are_explained(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path, name, content))


def test_parquet_reads_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"participant_id": [1, 2], "diagnosis": ["1", "0"], "age": [61, 72], "lHip": ["3.5", "NA"]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.drop(columns="age").set_index("diagnosis").to_parquet(tmp_path / "other.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = read_table(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet"), expected)
    pd.testing.assert_frame_equal(read_table(tmp_path / "other.parquet")[["diagnosis"]], expected[["diagnosis"]])


def test_parquet_with_damaged_text_is_refused_before_the_text_is_used(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    places = arrow.array([0, 2, 4], arrow.int32()).buffers()[1]
    ids = arrow.Array.from_buffers(arrow.string(), 2, [None, places, arrow.py_buffer(b"ab\xff\xfe")])
    parquet.write_table(arrow.table({"participant_id": ids, "lHip": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(tmp_path / "a.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'rindices\[parquet\]'"):
        read_table(write(tmp_path, "a.parquet", b"PAR1"))
