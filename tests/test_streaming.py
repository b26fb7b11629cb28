"""Short and long tables of new people: the same scores in every format, the same messages, no memory leaks."""

import gc
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from rindices import load_model, presets
from rindices.core import inference
from rindices.tables import text_and_workbook
from tests.bad_input.harness import as_text, both, cell
from tests.test_cli import told

N_PEOPLE = 20


def people(regions, diagnosis, ids):
    """Return a table of people with age and sex."""
    rows = np.arange(len(regions))
    who = {"participant_id": ids, "diagnosis": diagnosis, "age": 50 + rows % 30, "sex": np.where(rows % 2, "M", "F")}
    return pd.concat([pd.DataFrame(who), regions.round(1).reset_index(drop=True)], axis=1)


@pytest.fixture(scope="module")
def new_people(small_table):
    """People as the model expects them."""
    return people(
        small_table.iloc[30 : 30 + N_PEOPLE],
        np.resize(["AD", "CN", "CN"], N_PEOPLE),
        [f"s{i:03d}" for i in range(N_PEOPLE)],
    ).assign(note="fine, so far")


@pytest.fixture(scope="module")
def model(tmp_path_factory, quick_preset, small_table, small_labels):
    """Return the file of a small model that corrects for age and sex."""
    folder = tmp_path_factory.mktemp("model")
    people(small_table, np.where(small_labels, "AD", "CN"), np.arange(80)).to_csv(folder / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(presets.PRESETS, "fast", lambda: quick_preset)
        told(
            *("fit", folder / "people.csv", "--out", folder / "run", "--covariates", "age,sex"),
            *("--patterns", "3", "--repetitions", 2, "--no-report"),
        )
    return folder / "run" / "model.safetensors"


@pytest.fixture(scope="module")
def expected(model, new_people, tmp_path_factory):
    """Return the scores of these people from the plain table."""
    return scored(model, new_people, tmp_path_factory.mktemp("plain"))


def scored(model, table, folder, code=0):
    """Score a table; return the scores, or the message if it is refused."""
    made = as_text(table) if isinstance(table, pd.DataFrame) else table
    (folder / "people.csv").write_bytes(made.encode() if isinstance(made, str) else made)
    said = told("apply", model, folder / "people.csv", "--out", folder / "scores.csv", code=code)
    if code:
        assert [path.name for path in folder.iterdir()] == ["people.csv"]
        return said
    return pd.read_csv(folder / "scores.csv", dtype={"participant_id": str}).set_index("participant_id")


def last(column, value):
    """Return a function that changes one cell of the last person."""
    return lambda table: cell(column, len(table) - 1, value)(table)


GOOD = {  # dialects of text are in tests/tables
    "other order of columns": lambda table: table[sorted(table.columns)],
    "quoted line breaks": cell("note", 13, 'first\nsecond "line"'),
    "every note has lines": lambda table: table.assign(note='a\n"b"\nc'),
    "German": lambda table: as_text(table, sep=";", decimal=","),
    "Latin 1 at the end": lambda table: as_text(last("note", "Zoë")(table)).encode("latin-1"),
    "umlauts": last("participant_id", "sübject→"),
    "empty lines": lambda table: "\n\n" + as_text(table).replace("\ns0", "\n\n,,,,,,,,,,,,,,,,\ns0"),
    "row numbers": lambda table: table.to_csv(),
    "no diagnosis": lambda table: table.drop(columns="diagnosis"),
    "whole ids with zeros": lambda table: table.assign(participant_id=[f"{i:04d}" for i in range(len(table))]),
    "note with words at the end": lambda table: table.assign(note=["1.50"] * (len(table) - 1) + ["word"]),
    "numbers of no region, late": lambda table: table.assign(volume=[None] * (len(table) - 1) + ["1.5"]),
    "note empty": lambda table: table.assign(note=None),
    "sizes with blanks": lambda table: table.assign(region3=table["region3"].map(" {:.3f} ".format)),
    "formula as id": cell("participant_id", 10, "=1+1"),
}
BAD = {
    "word in the last row": (last("region5", "high"), "row {last}"),
    "words, gaps and infinite": (
        both(cell("region9", 5, "x"), cell("region8", 9, ""), cell("region7", 14, "inf"), last("region6", "y")),
        "region6",
    ),
    "gap in the last row": (last("sex", ""), "row {last}"),
    "same id far apart": (last("participant_id", "s001"), "3 and {last}"),
    "no id": (last("participant_id", ""), "row {last}"),
    "another code": (last("sex", "X"), "row {last}"),
    "another unit": (lambda table: table.assign(**table.filter(like="region") / 1000), "1000 times smaller"),
}


@pytest.fixture
def in_parts(monkeypatch):
    """Read tables a few people at a time, as long ones are."""
    monkeypatch.setattr(text_and_workbook, "CELLS", 100)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", GOOD)
def test_scores_are_the_same_however_a_long_table_is_written(tmp_path, new_people, model, expected, name):
    found = scored(model, GOOD[name](new_people), tmp_path)
    assert len(found) == N_PEOPLE
    np.testing.assert_array_equal(found[["r1", "r2", "r3"]], expected[["r1", "r2", "r3"]])


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_at_the_end_of_a_long_table_is_told(tmp_path, new_people, model, name):
    change, words = BAD[name]
    assert words.format(last=N_PEOPLE + 1) in scored(model, change(new_people), tmp_path, code=2)


def test_hundreds_of_calls_neither_leak_nor_compile(model, new_people):
    fitted, regions, covariates = load_model(model), new_people.filter(like="region"), new_people[["age", "sex"]]

    def call(n_people):
        rows = np.arange(n_people) % N_PEOPLE
        fitted.transform(regions.iloc[rows], covariates.iloc[rows])

    sizes = [1, 3, 17, 60, 200]
    for size in sizes * 20:
        call(size)
    compiled = inference._r_indices._cache_size()
    tracemalloc.start()
    for number in range(100):
        call(sizes[number % len(sizes)] + number % 2)
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert inference._r_indices._cache_size() == compiled
    assert growth < 100_000  # bytes, over a hundred calls
