"""A study from its table to its last report: nothing is asked of others, nothing is run, nobody is named in records.

Training is in threads. Joblib's processes and Dask's workers exchange pickles with the process that started them, and
Dask's do so through sockets of this machine: that is by design, between processes of one run. Files are never pickles.
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from rindices.files import plain
from tests.test_cli import TINY, run
from tests.trust.conftest import FORMULAS, HEARD, OUTLIER, PLANTED, REGION, SCORE, SECRETS, secret_table

RECORDS = ("run.toml", "summary.json", "plan.json", "holder.txt")


def test_nothing_connects_nothing_is_unpickled_or_compiled_and_no_program_is_started(life):
    assert {"fit", "apply", "report", "describe", "simulate", "import"} <= life.said.keys()
    assert (life.watch.connections, life.watch.unpickled) == ([], [])
    # Python asks for the processor so.
    assert {Path(str(args[0])).name for _, args, _ in life.watch.programs} <= {"uname"}
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in life.watch.compiled]
    texts = [text for text in texts if isinstance(text, str)]
    assert texts, "templates are compiled at least"
    assert not [text for text in texts if any(word in text for word in PLANTED)]


def told(text):
    """Return which secrets a text tells."""
    return [secret for secret in SECRETS if secret in text]


def test_the_secrets_are_where_they_belong(life):
    """In the tables of people, and nowhere else that the other tests look at: so these can fail."""
    assert told((life.folder / "cohort.csv").read_text()) == list(SECRETS)
    assert {"SECRET", "calc"} <= set(told((life.folder / "run" / "people.csv").read_text()))
    assert any("far from all others" in line for line in life.said["again"].output.splitlines())


@pytest.mark.parametrize("command", ["failed", "fit", "again", "apply", "report", "describe", "voxelwise"])
def test_what_is_said_names_nobody(life, command):
    if command not in life.said:
        pytest.skip("nilearn is not installed")
    result = life.said[command]
    channel = result.stdout if command == "failed" else result.output  # the reason is on the other one
    # A model knows the range of ages: see the guide.
    assert {*told(channel)} <= ({"77.77"} if command == "describe" else set())


def test_lines_of_json_tell_that_it_failed_and_where(life):
    lines = [json.loads(line) for line in life.said["failed"].stdout.splitlines()]
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("failed", 3)
    assert re.match(r"ValueError in \w+\.py, line \d", lines[-1]["message"])
    assert str(OUTLIER) in life.said["failed"].stderr, "the user is told"


def test_records_and_reports_of_a_run_and_loggers_of_libraries_name_nobody(life):
    failed = {path: text for path, text in life.failed.items() if path.name in RECORDS}
    assert {path.name for path in failed} == set(RECORDS)
    assert json.loads(failed[Path("summary.json")])["status"] == "failed"
    finished = {path: path.read_bytes() for path in (life.folder / "run").glob("*.*") if path.name in RECORDS}
    assert {str(path): secrets for path, text in (failed | finished).items() if (secrets := told(text.decode()))} == {}
    pages = [(life.folder / name).read_text() for name in ("run/report.html", "new.html")]
    assert not [word for page in pages for word in ("SECRET", FORMULAS[0]) if word in page]
    assert HEARD in life.logged
    lines = [re.sub(r"\d+\.\d+ ?s(ec|econds)?\b", "some time", line) for line in life.logged]  # any number may be in it
    assert [line for line in lines if told(line)] == []


def test_files_of_numbers_hold_no_ids(life):
    """Models know extremes of regions and covariates, chunks know R-indices; neither knows who."""
    model = life.folder / "run" / "model.safetensors"
    chunks = [data for path, data in life.failed.items() if path.suffix == ".safetensors"]
    assert chunks
    assert not [word for data in (*chunks, model.read_bytes()) for word in (b"SECRET", b"calc") if word in data]
    assert 80 not in {size for array in load_file(model).values() for size in array.shape}, (
        "nothing in a model has a row a person"
    )


def test_a_refused_table_is_told_to_the_user_only(tmp_path):
    table = secret_table()
    table.assign(**{REGION: ["SECRET-CELL", *table[REGION][1:]]}).to_csv(tmp_path / "bad.csv", index=False)
    result = run("fit", tmp_path / "bad.csv", "--out", tmp_path / "run", "--log-json", *TINY)
    last = json.loads(result.stdout.splitlines()[-1])
    assert (result.exit_code, last["status"], last["exit_code"]) == (2, "failed", 2)
    reason = "see standard error for the reason" in last["message"]
    assert ("SECRET-CELL" in result.stderr, told(result.stdout), reason) == (True, [], True)


def running(path, delimiter):
    """Return the cells of a file that a spreadsheet would run, written without our own rule."""
    rows = csv.reader(path.read_text(encoding="utf-8-sig").splitlines(), delimiter=delimiter)
    # Where commas are no borders, a row begins with its first cell, which is seen to with commas.
    cells = {cell: cell if cell[:1] == "'" else cell.lstrip(" \"'") for row in rows for cell in row[delimiter == ";" :]}
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
    return [
        cell
        for cell, text in cells.items()
        if text[:1] in "=+-@＝＋－＠" and len(text) > 1 and not number.fullmatch(cell)
    ]


def test_no_table_holds_a_cell_that_would_run(life):
    paths = sorted([*(life.folder / "run").rglob("*.[ct]sv"), life.folder / "new.csv"])
    assert {"r_indices.csv", "r_indices.tsv", "z_scores.csv", "associations.csv"} <= {path.name for path in paths}
    for path in paths:
        for delimiter in "\t" if path.suffix == ".tsv" else ",;":
            assert running(path, delimiter) == [], path
    assert running(life.folder / "cohort.csv", ","), "the table itself would"


def ours(path, **options):
    """Return a table that rindices wrote, without what keeps its cells from running."""
    return plain(pd.read_csv(path, dtype=str, keep_default_na=False, **options))


def test_ids_survive_and_scores_that_came_later_find_their_people(life):
    ids = (
        secret_table()["participant_id"].replace("'=already", "=already").tolist()
    )  # a table may guard its cells itself
    tables = {
        name: ours(life.folder / name)
        for name in ("new.csv", *(f"run/{one}.csv" for one in ("r_indices", "people", "z_scores", "variables")))
    }
    for name, table in tables.items():
        assert table["participant_id"].tolist() == ids, name
        assert "\n'=already," in (life.folder / name).read_text()
    assert REGION in tables["run/z_scores.csv"]
    variables = tables["run/variables.csv"]
    np.testing.assert_array_equal(variables["later"].astype(float), np.arange(80) % 7 + 0.5)
    assert (set(variables["amyloid"]), "" in {*variables[SCORE]}) == ({"+ve", "-ve"}, False)
    phenotype = life.folder / "run" / "bids" / "phenotype"
    table, entries = ours(phenotype / "r_indices.tsv", sep="\t"), json.loads((phenotype / "r_indices.json").read_text())
    assert (table["participant_id"].tolist(), set(table["diagnosis"])) == (ids, entries["diagnosis"]["Levels"].keys())
