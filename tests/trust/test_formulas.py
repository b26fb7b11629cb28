"""Text that a spreadsheet would run is made harmless, and read back as it was."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rindices.cohort import read_table
from rindices.files import guarded, guarded_text, plain, plain_text, write_csv
from tests.properties.conftest import SHARED

RUNNING = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+49 123",
    "-x",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\tx",
    " =1",
    "\u00a0=1",
    "\ufeff=1",
    "\x00=1",
    '"=1',
    "'=1",
    "＝1",
    "＋x",
    "－x",
    "＠x",
    "-1-1",
    "+1e",
    "--1",
    "-1,5",
]
HARMLESS = [
    "",
    "-1",
    "+2.5",
    "-1e3",
    "-.5",
    "+1.",
    "+",
    "-",
    "=",
    "sub-01",
    "a=b",
    "3 + 4",
    "'quoted'",
    "O'Neill",
    " x",
]
ODD = st.text(alphabet=st.sampled_from("=+-@'\"; \t\r\na1.eE＝＠\ufeff\u00a0"), max_size=12)


@pytest.mark.parametrize("text", RUNNING, ids=ascii)
def test_what_would_run_gets_an_apostrophe(text):
    assert guarded_text(text).startswith("'" + text[:1])
    assert plain_text(guarded_text(text)) == text


@pytest.mark.parametrize("text", HARMLESS, ids=ascii)
def test_what_runs_nothing_stays(text):
    assert guarded_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AD;=1+1", "AD;'=1+1"),
        ("AD\n=1+1\t@x", "AD\n'=1+1\t'@x"),
        ("-1;-x;-2", "-1;'-x;-2"),
        ("a;'=b", "a;''=b"),
    ],
)
def test_cells_within_cells(text, expected):
    """A spreadsheet of a country with decimal commas takes a semicolon for the border of a cell, quoted or not."""
    assert guarded_text(text) == expected
    assert plain_text(expected) == text


@settings(SHARED, derandomize=True, max_examples=200)
@given(ODD | st.text())
@example("''=already")
@example("'\t'=x")
def test_every_text_comes_back(text):
    made = guarded_text(text)
    assert plain_text(made) == text
    assert guarded_text(made) != made or made == text, "what is guarded once more is told from what is not"


@settings(SHARED, derandomize=True, max_examples=100)
@given(ODD | st.text())
def test_no_part_of_a_text_begins_like_a_formula(text):
    made = guarded_text(text)
    for part in made.replace("\r", ";").replace("\n", ";").replace("\t", ";").split(";"):
        if part[:1] in tuple("=+-@") and len(part) > 1:
            float(part)  # raises unless it is a number


def test_tables_are_guarded_where_they_are_written(tmp_path):
    table = pd.DataFrame(
        {
            "=id": ["=1", "-1", "sub-1"],
            "@number": [-1.5, 2.0, float("nan")],
            "kind": pd.Categorical(["+ve", "-", "+ve"]),
            "mixed": [None, 3, "@x"],
            "used": [True, False, True],
        }
    )
    write_csv(table, tmp_path / "table.csv", index=False)
    rows = list(csv.reader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert rows == [
        ["'=id", "'@number", "kind", "mixed", "used"],
        ["'=1", "-1.5", "'+ve", "", "True"],
        ["-1", "2", "-", "3", "False"],
        ["sub-1", "", "'+ve", "'@x", "True"],
    ]
    assert table["=id"].tolist() == ["=1", "-1", "sub-1"], "the table itself is not changed"
    read = plain(pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False))
    assert (read["=id"].tolist(), read["kind"].tolist()) == (["=1", "-1", "sub-1"], ["+ve", "-", "+ve"])


@pytest.mark.parametrize("name", ["table.csv", "table.xlsx"])
def test_tables_of_ours_are_read_as_they_were(tmp_path, name):
    """Also after a spreadsheet has saved them as its own."""
    ids = ["=1", "-1", "sub-1", "''=x", "AD;@x"]
    table = pd.DataFrame({"participant_id": ids, "@r": [0.5, -0.5, 1, 2, 3], "amyloid": ["+ve", "-", "-ve", "+", "x"]})
    write_csv(table, tmp_path / "table.csv", index=False)
    pd.read_csv(tmp_path / "table.csv").to_excel(tmp_path / "table.xlsx", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), table, check_dtype=False)


def test_a_carriage_return_ends_no_row(tmp_path):
    table = pd.DataFrame({"participant_id": ["a\r=1", "b\n=2", "c"], "r1": [-0.5, 1, 2]})
    write_csv(table, tmp_path / "table.csv", index=False)
    with (tmp_path / "table.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["participant_id", "a\r'=1", "b\n'=2", "c"]
    assert len(read_table(tmp_path / "table.csv")) == 3


def test_an_index_is_guarded_like_a_column(tmp_path):
    write_csv(pd.DataFrame({"r1": [0.5]}, index=pd.Index(["@x"], name="participant_id")), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().split() == ["participant_id,r1", "'@x,0.5"]


def test_a_harmless_table_is_left_alone():
    table = pd.DataFrame({"participant_id": ["sub-01", "007"], "r1": [0.1, -0.2]})
    pd.testing.assert_frame_equal(guarded(table), table)
    pd.testing.assert_frame_equal(plain(table), table)
