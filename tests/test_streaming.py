"""Tables that are read and scored some rows at a time: the same results, the same complaints, little memory."""

import functools
import gc
import gzip
import tracemalloc
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from rindices.run.results import of_people, r_indices_of_people
from typer.testing import CliRunner

from rindices import SurrealGAN
from rindices.cli import app
from rindices.cohort import (
    Contract,
    CovariateSpec,
    parquet_files,
    people_blocks,
    people_in_blocks,
    read_people,
    read_table,
    tables,
    text_files,
)
from rindices.core import inference
from rindices.errors import InputError
from rindices.estimator import load_model
from rindices.files import write_csv, write_csv_parts
from tests.interop.archives import peak_memory

N_PEOPLE = 20


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Read a few rows at a time."""
    monkeypatch.setattr(text_files, "BLOCK", 600)
    monkeypatch.setattr(parquet_files, "CELLS", 100)
    monkeypatch.setattr(people_blocks, "_CELLS", 100)


@pytest.fixture(scope="module")
def new_people(small_table):
    """People as the model expects them."""
    rows = np.arange(N_PEOPLE)
    return (
        small_table.round(1)
        .iloc[30 : 30 + N_PEOPLE]
        .reset_index(drop=True)
        .assign(
            participant_id=[f"s{i:03d}" for i in rows],
            diagnosis=np.where(rows % 3, "CN", "AD"),
            age=50 + rows % 30,
            sex=np.where(rows % 2, "M", "F"),
            note="fine, so far",
        )
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory, quick_preset, small_table, small_labels):
    """File of a small model that corrects for age and sex and knows no labels."""
    covariates = pd.DataFrame({"age": 50.0 + np.arange(80) % 30, "sex": np.where(np.arange(80) % 2, "M", "F")})
    fitted = SurrealGAN(3, n_repetitions=2, preset=quick_preset, random_state=0, n_jobs=1)
    fitted.fit(small_table, small_labels, covariates)
    return fitted.save(tmp_path_factory.mktemp("model") / "model.safetensors")


@pytest.fixture(scope="module")
def fitted(model):
    """Return the model of the file."""
    return load_model(model)


@pytest.fixture(scope="module")
def labelled(fitted):
    """Return what the model expects, if it knew labels."""
    return replace(fitted.contract_, control_labels=("CN",), patient_labels=("AD",))


def as_text(table, **how):
    return table.to_csv(index=False, **how)


def cell(row, name, value):
    """Return a change of one cell; row 0 is the first person."""

    def change(table):
        table = table.astype(object)
        table.loc[row, name] = value
        return table

    return change


def both(*changes):
    """Return several changes of cells."""
    return lambda table: functools.reduce(lambda changed, change: change(changed), changes, table)


def replaced(old, new, count=-1):
    return lambda table: as_text(table).replace(old, new, count)


def shuffled_columns(table):
    return table[sorted(table.columns)]


GOOD = {
    "plain": lambda table: table,
    "other order of columns": shuffled_columns,
    "quoted": lambda table: as_text(table, quoting=1),
    "quoted line breaks": cell(13, "note", 'first\nsecond "line"'),
    "every note has lines": lambda table: table.assign(note='a\n"b"\nc'),
    "stray quotation mark": replaced("fine, so far", 'a 5" disk', 1),
    "Windows": lambda table: as_text(table, lineterminator="\r\n"),
    "old Mac": lambda table: as_text(table, lineterminator="\r"),
    "German": lambda table: as_text(table, sep=";", decimal=","),
    "tabs": lambda table: as_text(table, sep="\t"),
    "UTF-8 with mark": lambda table: as_text(table).encode("utf-8-sig"),
    "UTF-16": lambda table: as_text(table).encode("utf-16"),
    "marks before rows": lambda table: as_text(table).strip().replace("\n", "\n\ufeff").encode(),
    "Latin 1 at the end": lambda table: as_text(cell(19, "note", "Zoë")(table)).encode("latin-1"),
    "umlauts": cell(18, "participant_id", "sübject→"),
    "empty lines": lambda table: "\n\n" + as_text(table).replace("\ns0", "\n\n,,,,,,,,,,,,,,,,\ns0"),
    "no end of line": lambda table: as_text(table).rstrip("\n"),
    "row numbers": lambda table: table.to_csv(),
    "trailing commas": lambda table: as_text(table).replace("\n", ",\n"),
    "no diagnosis": lambda table: table.drop(columns="diagnosis"),
    "no label at all": lambda table: table.assign(diagnosis=None),
    "first control at the end": lambda table: table.assign(diagnosis=["AD"] * 19 + ["hc"]),
    "whole ids with zeros": lambda table: table.assign(participant_id=[f"{i:04d}" for i in range(N_PEOPLE)]),
    "note with codes at the end": lambda table: table.assign(note=[str(i) for i in range(19)] + ["007"]),
    "note with words at the end": lambda table: table.assign(note=["1.50"] * 19 + ["word"]),
    "note with truth values": lambda table: table.assign(note=["TRUE"] * 10 + ["no"] * 10),
    "note empty": lambda table: table.assign(note=None),
    "note begins late": lambda table: table.assign(note=[None] * 19 + ["here"]),
    "sizes with blanks": lambda table: table.assign(region3=table["region3"].map(" {:.3f} ".format)),
    "one size with blanks": lambda table: as_text(table).replace("\ns014", "\n s014 "),
    "few people, one region tenfold": lambda table: table.head(4).assign(region4=table["region4"] * 10),
    "out of range": cell(10, "age", 99),
    "formula as id": cell(10, "participant_id", "=1+1"),
}
BAD = {
    "word in the last row": cell(19, "region5", "high"),
    "words in two columns": both(cell(10, "region2", "low"), cell(19, "region5", "high")),
    "words in many columns": both(*(cell(19 - 3 * i, f"region{5 - i}", "3.4 mL") for i in range(6))),
    "words, gaps and infinite": both(
        *(cell(5, "region9", "x"), cell(9, "region8", ""), cell(14, "region7", "inf"), cell(19, "region6", "y"))
    ),
    "gap in the last row": cell(19, "region7", ""),
    "gaps in many rows": lambda table: table.assign(region7=table["region7"].where(np.arange(N_PEOPLE) % 7 > 0)),
    "infinite": cell(13, "region1", "inf"),
    "same id far apart": cell(19, "participant_id", "s001"),
    "same ids far apart": both(cell(18, "participant_id", "s001"), cell(19, "participant_id", "s002")),
    "same id thrice": both(*(cell(row, "participant_id", "s001") for row in (7, 19))),
    "a note below": lambda table: pd.concat([table, pd.DataFrame({"participant_id": ["Made in May"]})]),
    "gap, and the same id later": both(cell(2, "region7", ""), cell(19, "participant_id", "s001")),
    "gap, and no id later": both(cell(2, "region7", ""), cell(19, "participant_id", "NA")),
    "gap, and another code later": both(cell(2, "region7", ""), cell(9, "sex", "Y"), cell(19, "sex", "X")),
    "region lost, and the same id": lambda table: cell(19, "participant_id", "s001")(table.drop(columns="region9")),
    "age lost, and a gap": lambda table: cell(2, "region7", "")(table.drop(columns="age")),
    "no ids, and a gap": lambda table: cell(2, "region7", "")(table.rename(columns={"participant_id": "who"})),
    "more numbers, and a gap": lambda table: cell(2, "region7", "")(table.assign(volume=[None] * 19 + ["1.5"])),
    "no id": cell(17, "participant_id", ""),
    "ragged row": replaced("\ns015,", "\ns015,,"),
    "ragged rows": replaced("\ns01", "\n,s01"),
    "quotation mark never closed": replaced("\ns015,", '\n"s015,'),
    "another unit": lambda table: pd.concat([table.filter(like="region") / 1000, table.iloc[:, 12:]], axis=1),
    "one region in another unit": lambda table: table.assign(region4=table["region4"] * 10),
    "another code": cell(19, "sex", "X"),
    "number for a word": lambda table: table.assign(sex=np.arange(N_PEOPLE) % 2),
    "age as words": lambda table: table.assign(age=["old"] * N_PEOPLE),
    "one age as a word": cell(19, "age", "old"),
    "no age": cell(19, "age", ""),
    "region lost": lambda table: table.drop(columns="region9"),
    "more numbers": lambda table: table.assign(volume=np.arange(N_PEOPLE)),
    "more numbers, late": lambda table: table.assign(volume=[None] * 19 + ["1.5"]),
    "decimal commas among commas": replaced("\ns015,", "\ns015,1,5"),
    "header only": lambda table: table.iloc[:0],
    "nothing": lambda _: "",
    "names twice": replaced("region2", "region1", 1),
}


def given(folder, change, table, name="people.csv"):
    """Write the changed table and return its path."""
    table = table[["participant_id", "diagnosis", "age", "sex", *table.filter(like="region"), "note"]]
    made = change(table)
    made = as_text(made) if isinstance(made, pd.DataFrame) else made
    made = made.encode() if isinstance(made, str) else made
    path = folder / name
    path.write_bytes(gzip.compress(made, mtime=0) if name.endswith(".gz") else made)
    return path


def outcome(work):
    """Return what is returned, or the complaint."""
    try:
        return work()
    except InputError as error:
        return str(error)


def at_once(path, fitted, contract, out):
    """Score the people of a table that is read whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", 10**9)
        people = read_people(path, contract)
    write_csv(of_people(fitted, people).r_indices, out, index=False)


def by_blocks(path, fitted, contract, out):
    """Score people as they are read."""
    blocks = people_in_blocks(path, contract)
    write_csv_parts((r_indices_of_people(fitted, people) for people in blocks), out)


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_people_scored_by_blocks_are_those_scored_at_once(tmp_path, new_people, fitted, labelled, tiny_blocks, name):
    path = given(tmp_path, {**GOOD, **BAD}[name], new_people)
    contract = fitted.contract_ if "label" in name or "control" in name else labelled
    expected = outcome(lambda: at_once(path, fitted, contract, tmp_path / "at_once.csv"))
    assert outcome(lambda: by_blocks(path, fitted, contract, tmp_path / "by_blocks.csv")) == expected
    if name in GOOD:
        assert expected is None
        assert (tmp_path / "by_blocks.csv").read_bytes() == (tmp_path / "at_once.csv").read_bytes()
    else:
        assert expected
        assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("name", ["plain", "gap in the last row"])
def test_apply_streams(tmp_path, new_people, fitted, model, tiny_blocks, name):
    path, out = given(tmp_path, {**GOOD, **BAD}[name], new_people), tmp_path / "scores.csv"
    expected = outcome(lambda: at_once(path, fitted, fitted.contract_, tmp_path / "at_once.csv"))
    result = CliRunner().invoke(app, ["apply", str(model), str(path), "--out", str(out)])
    if expected is None:
        assert result.exit_code == 0, result.output
        assert out.read_bytes() == (tmp_path / "at_once.csv").read_bytes()
        assert "Scored 20 people in 12 regions" in result.output
    else:
        assert result.exit_code == 2
        assert result.output.strip() == f"Error: {expected}"
        assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("file", ["people.csv.gz", "people.txt"])
@pytest.mark.parametrize("name", ["quoted line breaks", "empty lines", "ragged rows", "blanks between the cells"])
def test_tables_read_by_blocks_are_those_read_at_once(tmp_path, new_people, monkeypatch, name, file):
    more = {"blanks between the cells": lambda table: as_text(table.drop(columns="note"), sep=" ")}
    path = given(tmp_path, {**GOOD, **BAD, **more}[name], new_people, file)
    whole = outcome(lambda: read_table(path))
    monkeypatch.setattr(text_files, "BLOCK", 130)
    blocks = outcome(lambda: read_table(path))
    if isinstance(whole, str):
        assert blocks == whole
    else:
        pd.testing.assert_frame_equal(blocks, whole, check_exact=True, check_index_type=False)


def test_kinds_of_columns_take_the_whole_table(tmp_path, tiny_blocks):
    n = 60
    columns = {
        "participant_id": [f"{i:04d}" for i in range(n)],
        "late word": ["1.50"] * (n - 1) + ["x"],
        "late code": [str(i) for i in range(n - 1)] + ["007"],
        "zero among fractions": ["1.5"] * (n - 1) + ["007"],
        "zero, blanks and fractions": [" 1.5"] + ["2.5"] * (n - 2) + ["007"],
        "half of it": ["1,5"] * (n // 2) + ["word"] * (n // 2),
        "most of it": ["1,5"] * (n - 1) + ["word"],
        "late number": [""] * (n - 1) + ["2,5"],
        "truth": ["True"] * (n - 1) + ["1"],
    }
    path = tmp_path / "a.csv"
    path.write_text(as_text(pd.DataFrame(columns), sep=","))
    assert read_table(path)["zero among fractions"].dtype == np.float64
    path.write_text(as_text(pd.DataFrame(columns), sep=";"))
    frame = read_table(path)
    assert frame["late word"].iloc[0] == "1.50"
    assert frame["late code"].tolist() == columns["late code"]
    assert frame["zero, blanks and fractions"].iloc[-1] == "007"
    assert frame["half of it"].iloc[0] == "1,5"
    assert frame["most of it"].iloc[0] == "1.5"
    assert frame["late number"].iloc[-1] == 2.5
    assert frame["truth"].iloc[-1] == "1"


def test_parquet_files_read_by_blocks_are_those_read_at_once(tmp_path, new_people, monkeypatch):
    pytest.importorskip("pyarrow")
    table = new_people.assign(truth=[True, None] * 10, whole=[1, None, 3, 4] * 5, words=["1"] * 19 + ["x"])
    table.to_parquet(tmp_path / "a.parquet", row_group_size=7)
    table.set_index("participant_id").to_parquet(tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet"):
        whole = read_table(tmp_path / name)
        with monkeypatch.context() as patch:
            patch.setattr(parquet_files, "CELLS", 100)
            pd.testing.assert_frame_equal(read_table(tmp_path / name), whole, check_index_type=False)


def test_people_come_in_blocks(tmp_path, new_people, labelled, tiny_blocks):
    path, shown = given(tmp_path, GOOD["plain"], new_people), []
    blocks = list(people_in_blocks(path, labelled, progress=lambda *done: shown.append(done)))
    assert len(blocks) >= 4
    assert sum(len(block.features) for block in blocks) == N_PEOPLE
    assert len(shown) == len(blocks)
    assert shown[-1] == (N_PEOPLE, N_PEOPLE)


def test_a_table_that_changes_while_it_is_read_is_refused(tmp_path, new_people, labelled, tiny_blocks):
    path = given(tmp_path, GOOD["plain"], new_people)
    blocks = people_in_blocks(path, labelled)
    next(blocks)
    path.write_text(path.read_text() + "s999" + ",1" * 16 + "\n")
    with pytest.raises(InputError, match=r"people\.csv changed while it was read"):
        list(blocks)


def test_a_table_that_is_sound_when_read_again_is_refused(tmp_path, new_people, labelled, tiny_blocks, monkeypatch):
    path = given(tmp_path, BAD["same id far apart"], new_people)
    monkeypatch.setattr(tables.Table, "_state", lambda _: None)  # as on drives that tell no times
    blocks = people_in_blocks(path, labelled)
    next(blocks)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], lines[-1].replace("s001", "s019")]))
    with pytest.raises(InputError, match=r"people\.csv changed while it was read"):
        list(blocks)


def long_table():
    """Return many people, and what a model expects of them."""
    rows, names = np.arange(2000), [f"region{i}" for i in range(50)]
    who = {"participant_id": [f"s{i:04d}" for i in rows], "age": 50 + rows % 30, "sex": np.where(rows % 2, "M", "F")}
    regions = pd.DataFrame(1 + (rows[:, None] % np.arange(7, 57)) / 1000, columns=names)
    covariates = CovariateSpec("age", minimum=50, maximum=80), CovariateSpec("sex", categories=("F", "M"))
    table = pd.concat([pd.DataFrame(who), regions], axis=1).assign(diagnosis="CN", note="")
    return table, replace(Contract.of_people(regions, None), covariates=covariates)


def with_holes(table):
    """Return the table with gaps in all regions."""
    regions = table.filter(like="region")
    return table.assign(**regions.mask((np.arange(regions.size) % 67 == 66).reshape(regions.shape)))


def test_a_table_with_an_error_takes_no_more_memory_than_one_without(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 100_000)
    monkeypatch.setattr(people_blocks, "_CELLS", 50_000)
    table, contract = long_table()

    def peak(change, message):
        path, said = given(tmp_path, change, table), []
        most = peak_memory(lambda: said.append(outcome(lambda: [None for _ in people_in_blocks(path, contract)])))
        assert message in str(said[0])
        return most

    peak(lambda people: people.head(1), "[None]")  # what is loaded and kept once does not count
    usual = peak(lambda people: people, "None, None")
    for change, message in (
        (with_holes, "Missing values in 50 region columns"),
        (cell(1999, "participant_id", "s0001"), "'s0001' occurs in rows 3 and 2001"),
        (lambda people: people.assign(**(1000 * people.filter(like="region"))), "1000 times larger"),
    ):
        assert peak(change, message) < 1.6 * usual


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"participant_id,v\n" + b"1,2\n" * 100_000, "unpacks to more than 200 times its size"),
        (b"participant_id,v\n" + b"1" * 400_000, "a row of more than 100,000 characters"),
        (b"\n" * 400_000, "a row of more than 100,000 characters|unpacks to more than|is empty"),
    ],
    ids=["rows", "one row", "nothing"],
)
def test_packed_bombs_are_refused(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(text_files, "BLOCK", 10_000)
    monkeypatch.setattr(text_files, "_MOST_UNPACKED", 200_000)
    monkeypatch.setattr(text_files, "_LONGEST_ROW", 100_000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(content, mtime=0))

    def read():
        with pytest.raises(InputError, match=message):
            read_table(path)

    read()  # what is loaded and kept once does not count
    assert peak_memory(read) < 2_000_000


def test_hundreds_of_calls_neither_leak_nor_compile(fitted, new_people):
    regions, covariates = new_people.filter(like="region"), new_people[["age", "sex"]]

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
