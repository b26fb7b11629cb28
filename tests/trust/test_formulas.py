"""Text that a spreadsheet would run is made harmless, and is read back unchanged."""

import csv

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rindices.files import guarded_text, plain_text, write_csv
from rindices.tables import read_table
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


@pytest.mark.parametrize("text", [*RUNNING, *HARMLESS], ids=ascii)
def test_what_would_run_gets_an_apostrophe_and_nothing_else_does(text):
    assert guarded_text(text) == text if text in HARMLESS else guarded_text(text).startswith("'" + text[:1])


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
    """Where commas are decimal, a spreadsheet splits cells at semicolons, quoted or not."""
    assert guarded_text(text) == expected


@settings(SHARED, derandomize=True, max_examples=100)
@given(st.sampled_from(RUNNING) | ODD | st.text())
@example("''=already")
@example("'\t'=x")
def test_every_text_comes_back_and_no_part_of_it_begins_like_a_formula(text):
    made = guarded_text(text)
    assert plain_text(made) == text
    assert guarded_text(made) != made or made == text, "what is guarded once more is told from what is not"
    parts = made.replace("\r", ";").replace("\n", ";").replace("\t", ";").split(";")
    for part in [part for part in parts if part[:1] in tuple("=+-@") and len(part) > 1]:
        float(part)  # raises unless it is a number


TABLE = pd.DataFrame(
    {
        "participant_id": ["=1", "-1", "sub-1", "''=x", "AD;@x"],
        "@number": [-1.5, 2.0, float("nan"), 0.5, -0.5],
        "kind": pd.Categorical(["+ve", "-", "+ve", "-", "-ve"]),
        "mixed": [None, "b", "@x", "b", "c"],
    }
)


def test_tables_are_guarded_where_they_are_written(tmp_path):
    table = TABLE.assign(participant_id=[*TABLE["participant_id"][:4], "a\r=1"])  # a carriage return does not end a row
    write_csv(table, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["participant_id", "'@number", "kind", "mixed"],
            ["'=1", "-1.5", "'+ve", ""],
            ["-1", "2", "-", "b"],
            ["sub-1", "", "'+ve", "'@x"],
            ["'''=x", "0.5", "-", "b"],
            ["a\r'=1", "-0.5", "'-ve", "c"],
        ]
    assert table["participant_id"].tolist() == ["=1", "-1", "sub-1", "''=x", "a\r=1"], "the table itself is as it was"


@pytest.mark.parametrize("name", ["table.csv", "table.xlsx"])
def test_tables_of_ours_are_read_as_they_were(tmp_path, name):
    """This also holds after a spreadsheet has saved them in its own format."""
    write_csv(TABLE, tmp_path / "table.csv")
    pd.read_csv(tmp_path / "table.csv").to_excel(tmp_path / "table.xlsx", index=False)
    found = read_table(tmp_path / name).fillna({"mixed": ""})
    pd.testing.assert_frame_equal(found, TABLE.fillna({"mixed": ""}), check_dtype=False, check_categorical=False)
