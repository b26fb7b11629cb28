"""Tables of new people, short and long: the same scores however they are written, the same complaints, no leaks."""

import functools
import gc
import gzip
import tracemalloc

import jax
import numpy as np
import pandas as pd
import pytest

from rindices import load_model, settings
from rindices.core import inference
from tests.test_cli import run

N_PEOPLE, N_MORE = 20, 30_000


@pytest.fixture(scope="module")
def new_people(small_table):
    """People as the model expects them."""
    rows = np.arange(N_PEOPLE)
    regions = small_table.round(1).iloc[30 : 30 + N_PEOPLE].reset_index(drop=True)
    who = {"participant_id": [f"s{i:03d}" for i in rows], "diagnosis": np.where(rows % 3, "CN", "AD")}
    who |= {"age": 50 + rows % 30, "sex": np.where(rows % 2, "M", "F")}
    return pd.concat([pd.DataFrame(who), regions], axis=1).assign(note="fine, so far")


@pytest.fixture(scope="module")
def model(tmp_path_factory, quick_preset, small_table, small_labels):
    """Return the file of a small model that corrects for age and sex."""
    folder = tmp_path_factory.mktemp("model")
    who = {"participant_id": np.arange(80), "diagnosis": np.where(small_labels, "AD", "CN")}
    who |= {"age": 50 + np.arange(80) % 30, "sex": np.where(np.arange(80) % 2, "M", "F")}
    pd.concat([pd.DataFrame(who), small_table.round(1)], axis=1).to_csv(folder / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(settings.PRESETS, "fast", lambda: quick_preset)
        line = ("fit", folder / "people.csv", "--out", folder / "run", "--covariates", "age,sex")
        result = run(*line, "--repetitions", 2, "--no-report")
    assert result.exit_code == 0, result.output
    return folder / "run" / "model.safetensors"


@pytest.fixture(scope="module")
def expected(model, new_people, tmp_path_factory):
    """Return the scores of these people, as the plain table has them."""
    return scored(model, new_people, tmp_path_factory.mktemp("plain"))


def scored(model, table, folder, name="people.csv", code=0):
    """Score what a table holds; return the scores, or the message."""
    made = as_text(table) if isinstance(table, pd.DataFrame) else table
    made = made.encode() if isinstance(made, str) else made
    (folder / name).write_bytes(gzip.compress(made, mtime=0) if name.endswith(".gz") else made)
    result = run("apply", model, folder / name, "--out", folder / "scores.csv")
    assert result.exit_code == code, result.output
    if code:
        assert [path.name for path in folder.iterdir()] == [name]
        return " ".join(result.output.split())
    return pd.read_csv(folder / "scores.csv", dtype={"participant_id": str}).set_index("participant_id")


def as_text(table, **how):
    return table.to_csv(index=False, **how)


def cell(row, name, value):
    """Return a change of one cell; row 0 is the first person."""

    def change(table):
        table = table.astype(object)
        table.loc[row if row >= 0 else len(table) + row, name] = value
        return table

    return change


def both(*changes):
    """Return several changes of cells."""
    return lambda table: functools.reduce(lambda changed, change: change(changed), changes, table)


def replaced(old, new, count=-1):
    return lambda table: as_text(table).replace(old, new, count)


GOOD = {
    "other order of columns": lambda table: table[sorted(table.columns)],
    "quoted": lambda table: as_text(table, quoting=1),
    "quoted line breaks": cell(13, "note", 'first\nsecond "line"'),
    "every note has lines": lambda table: table.assign(note='a\n"b"\nc'),
    "Windows": lambda table: as_text(table, lineterminator="\r\n"),
    "old Mac": lambda table: as_text(table, lineterminator="\r"),
    "German": lambda table: as_text(table, sep=";", decimal=","),
    "tabs": lambda table: as_text(table, sep="\t"),
    "UTF-8 with mark": lambda table: as_text(table).encode("utf-8-sig"),
    "UTF-16": lambda table: as_text(table).encode("utf-16"),
    "Latin 1 at the end": lambda table: as_text(cell(-1, "note", "Zoë")(table)).encode("latin-1"),
    "umlauts": cell(-1, "participant_id", "sübject→"),
    "empty lines": lambda table: "\n\n" + as_text(table).replace("\ns0", "\n\n,,,,,,,,,,,,,,,,\ns0"),
    "no end of line": lambda table: as_text(table).rstrip("\n"),
    "row numbers": lambda table: table.to_csv(),
    "no diagnosis": lambda table: table.drop(columns="diagnosis"),
    "whole ids with zeros": lambda table: table.assign(participant_id=[f"{i:04d}" for i in range(len(table))]),
    "note with words at the end": lambda table: table.assign(note=["1.50"] * (len(table) - 1) + ["word"]),
    "note empty": lambda table: table.assign(note=None),
    "sizes with blanks": lambda table: table.assign(region3=table["region3"].map(" {:.3f} ".format)),
    "formula as id": cell(10, "participant_id", "=1+1"),
}
BAD = {
    "word in the last row": (cell(-1, "region5", "high"), "row {last}"),
    "words, gaps and infinite": (
        both(cell(5, "region9", "x"), cell(9, "region8", ""), cell(14, "region7", "inf"), cell(-1, "region6", "y")),
        "region6",
    ),
    "gap in the last row": (cell(-1, "region7", ""), "row {last}"),
    "same id far apart": (cell(-1, "participant_id", "s001"), "3 and {last}"),
    "no id": (cell(-1, "participant_id", ""), "row {last}"),
    "ragged row": (replaced("\ns015,", "\ns015,,"), "17"),
    "quotation mark never closed": (replaced("\ns015,", '\n"s015,'), "quotation mark"),
    "another code": (cell(-1, "sex", "X"), "row {last}"),
    "no age": (cell(-1, "age", ""), "age"),
    "more numbers, late": (lambda table: table.assign(volume=[None] * (len(table) - 1) + ["1.5"]), "volume"),
    "another unit": (lambda table: table.assign(**table.filter(like="region") / 1000), "1000 times smaller"),
    "header only": (lambda table: table.iloc[:0], "people.csv"),
    "names twice": (replaced("region2", "region1", 1), "region1"),
}


@pytest.mark.parametrize("name", GOOD)
def test_scores_are_the_same_however_a_table_is_written(tmp_path, new_people, model, expected, name):
    found = scored(model, GOOD[name](new_people), tmp_path)
    assert len(found) == N_PEOPLE
    np.testing.assert_array_equal(found[["r1", "r2", "r3"]], expected[["r1", "r2", "r3"]])


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told_and_nothing_is_written(tmp_path, new_people, model, name):
    change, words = BAD[name]
    assert words.format(last=N_PEOPLE + 1) in scored(model, change(new_people), tmp_path, code=2)


@pytest.fixture(scope="module")
def many_people(new_people):
    """Return the same people, and so many after them that a table is read in parts."""
    more = new_people.iloc[np.arange(N_MORE) % N_PEOPLE].assign(participant_id=[f"t{i}" for i in range(N_MORE)])
    return pd.concat([new_people, more], ignore_index=True)


@pytest.mark.parametrize("name", ["Latin 1 at the end", "quoted line breaks", "note with words at the end"])
def test_a_long_table_gives_the_same_scores(tmp_path, many_people, model, expected, name):
    found = scored(model, GOOD[name](many_people), tmp_path, "people.csv.gz")
    np.testing.assert_array_equal(found[["r1", "r2", "r3"]][:N_PEOPLE], expected[["r1", "r2", "r3"]])
    assert len(found) == len(many_people)


@pytest.mark.parametrize("name", ["word in the last row", "gap in the last row", "same id far apart", "another unit"])
def test_what_is_wrong_at_the_end_of_a_long_table_is_told(tmp_path, many_people, model, name):
    change, words = BAD[name]
    assert words.format(last=len(many_people) + 1) in scored(model, change(many_people), tmp_path, code=2)


def test_hundreds_of_calls_neither_leak_nor_compile(model, new_people):
    fitted, regions, covariates = load_model(model), new_people.filter(like="region"), new_people[["age", "sex"]]

    def call(n_people):
        rows = np.arange(n_people) % N_PEOPLE
        fitted.transform(regions.iloc[rows], covariates.iloc[rows])

    sizes = [1, 3, 17, 60, 200]
    for size in sizes * 2:
        call(size)
    compiled = inference._r_indices._cache_size()
    gc.collect()
    arrays = len(jax.live_arrays())
    for number in range(300):
        if number == 200:
            tracemalloc.start()
        call(sizes[number % len(sizes)] + number % 2)
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert inference._r_indices._cache_size() == compiled
    assert len(jax.live_arrays()) <= arrays  # fewer, where those of an earlier test were collected late
    assert growth < 100_000  # of a hundred calls
