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
from safetensors import safe_open

from rindices.cohort import read_table
from rindices.files import plain
from tests.test_cli import TINY, run
from tests.trust.conftest import FORMULAS, HEARD, OUTLIER, REGION, SCORE, SECRETS, secret_table

RECORDS = ("run.toml", "summary.json", "plan.json", "holder.json")
SIGNS = "=+-@＝＋－＠"


def test_nothing_connects(life):
    assert life.watch.connections == []
    assert {"fit", "apply", "report", "describe", "simulate", "import"} <= life.said.keys()


def test_nothing_is_unpickled(life):
    assert life.watch.unpickled == []


def test_no_text_of_a_table_is_compiled(life):
    sources = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in life.watch.compiled]
    texts = [text for text in sources if isinstance(text, str)]
    assert texts, "templates are compiled at least"
    assert not [text for text in texts if any(word in text for word in ("SECRET", "calc'", REGION, SCORE))]


def test_no_programs_are_started(life):
    started = [args[0] for _, args, _ in life.watch.programs]
    assert [name for name in started if Path(str(name)).name != "uname"] == []  # Python asks for the processor so


def told(text):
    """Return which secrets a text tells."""
    return [secret for secret in SECRETS if secret in text]


def test_the_secrets_are_where_they_belong(life):
    """In the tables of people, and nowhere else that the other tests look at: so these can fail."""
    people = (life.folder / "run" / "people.csv").read_text()
    assert told((life.folder / "cohort.csv").read_text()) == list(SECRETS)
    assert {"SECRET", "5.15", "calc"} <= {word for word in (*SECRETS, "5.15") if word in people}
    assert any("far from everybody else" in line for line in life.said["again"].output.splitlines())


@pytest.mark.parametrize("command", ["failed", "fit", "again", "apply", "report", "describe", "voxelwise"])
def test_what_is_said_names_nobody(life, command):
    if command not in life.said:
        pytest.skip("nilearn is not installed")
    result = life.said[command]
    channel = result.stdout if command == "failed" else result.output  # the reason is on the other one
    allowed = ["77.77"] if command == "describe" else []  # a model knows the range of ages: see the guide
    assert [secret for secret in told(channel) if secret not in allowed] == []


def test_lines_of_json_tell_that_it_failed_and_where(life):
    lines = [json.loads(line) for line in life.said["failed"].stdout.splitlines()]
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("failed", 3)
    assert lines[-1]["message"].startswith("ValueError in workflow.py, line ")
    assert str(OUTLIER) in life.said["failed"].stderr, "the user is told"


def test_loggers_of_libraries_name_nobody(life):
    assert HEARD in life.logged
    lines = [re.sub(r"\d+\.\d+ ?s(ec|econds)?\b", "some time", line) for line in life.logged]  # any number may be in it
    assert [line for line in lines if told(line)] == []


def test_records_of_a_run_name_nobody(life):
    records = {path: text for path, text in life.failed.items() if path.name in RECORDS}
    assert {path.name for path in records} == set(RECORDS)
    assert json.loads(records[Path("summary.json")])["status"] == "failed"
    for path in (life.folder / "run").glob("*.*"):
        if path.name in RECORDS:
            records[path] = path.read_bytes()
    assert {str(path): told(text.decode()) for path, text in records.items()} == {str(path): [] for path in records}


def test_reports_name_nobody(life):
    for page in (life.folder / "run" / "report.html", life.folder / "new.html"):
        assert "SECRET" not in page.read_text()
        assert FORMULAS[0] not in page.read_text()


def test_files_of_numbers_hold_no_ids(life):
    """Models know extremes of regions and covariates, chunks know R-indices; neither knows who."""
    chunks = [data for path, data in life.failed.items() if path.suffix == ".safetensors"]
    assert chunks
    for data in (*chunks, (life.folder / "run" / "model.safetensors").read_bytes()):
        assert b"SECRET" not in data
        assert b"calc" not in data
    with safe_open(life.folder / "run" / "model.safetensors", framework="numpy") as file:
        sizes = [size for name in file.keys() for size in file.get_tensor(name).shape]  # noqa: SIM118
    assert 80 not in sizes, "nothing in a model has a row a person"


def test_a_refused_table_is_told_to_the_user_only(tmp_path):
    table = secret_table().astype({REGION: object})
    table.loc[20, REGION] = "SECRET-CELL"
    table.to_csv(tmp_path / "bad.csv", index=False)
    result = run("fit", tmp_path / "bad.csv", "--out", tmp_path / "run", "--log-json", *TINY)
    assert result.exit_code == 2
    assert "SECRET-CELL" in result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["status"], last["exit_code"]) == ("failed", 2)
    assert "standard error says why" in last["message"]
    assert told(result.stdout) == []


def running(path, delimiter):
    """Return the cells of a file that a spreadsheet would run, written without our own rule."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.reader(file, delimiter=delimiter):
            # Where commas are no borders, a row begins with its first cell, which is seen to with commas.
            for cell in row[delimiter == ";" :]:
                seen = cell.lstrip(" \"'") if cell[:1] != "'" else cell
                if seen[:1] in tuple(SIGNS) and len(seen) > 1 and not is_number(cell):
                    yield cell


def is_number(cell):
    try:
        return np.isfinite(float(cell))
    except ValueError:
        return False


def test_no_table_holds_a_cell_that_would_run(life):
    paths = sorted([*(life.folder / "run").rglob("*.[ct]sv"), life.folder / "new.csv"])
    assert {"r_indices.csv", "r_indices.tsv", "z_scores.csv", "associations.csv"} <= {path.name for path in paths}
    for path in paths:
        for delimiter in "\t" if path.suffix == ".tsv" else ",;":
            assert list(running(path, delimiter)) == [], path
    assert list(running(life.folder / "cohort.csv", ",")), "the table itself would"


def test_ids_survive(life):
    given = secret_table()["participant_id"].tolist()
    ids = read_table(life.folder / "cohort.csv")["participant_id"].tolist()
    assert [(one, other) for one, other in zip(given, ids, strict=True) if one != other] == [("'=already", "=already")]
    for name in ("run/r_indices.csv", "run/people.csv", "run/z_scores.csv", "run/variables.csv", "new.csv"):
        assert read_table(life.folder / name)["participant_id"].tolist() == ids, name
        written = pd.read_csv(life.folder / name, dtype=str, keep_default_na=False)["participant_id"]
        assert written[given.index("'=already")] == "'=already"
    assert REGION in read_table(life.folder / "run" / "z_scores.csv")


def test_scores_that_came_later_find_their_people(life):
    variables = read_table(life.folder / "run" / "variables.csv")
    np.testing.assert_array_equal(variables["later"], np.arange(80) % 7 + 0.5)
    assert set(variables["amyloid"]) == {"+ve", "-ve"}
    assert variables[SCORE].notna().all()


def test_levels_of_bids_are_those_of_its_table(life):
    table = pd.read_csv(life.folder / "run" / "bids" / "phenotype" / "r_indices.tsv", sep="\t", dtype=str)
    entries = json.loads((life.folder / "run" / "bids" / "phenotype" / "r_indices.json").read_text())
    assert set(table["diagnosis"]) == entries["diagnosis"]["Levels"].keys()
    ids = read_table(life.folder / "cohort.csv")["participant_id"].tolist()
    assert plain(table)["participant_id"].tolist() == ids
