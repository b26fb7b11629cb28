"""One run a folder, one process a run; and a run can be made again from what it recorded."""

import errno
import json
import os
import signal

import pandas as pd
import pytest

from rindices import files
from tests.survival.conftest import FINISHED, assert_same, ended, finished_chunks, fit, held, send


def contents(folder):
    """Return all files of a folder with their contents."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_second_process_is_refused_and_the_first_unharmed(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    first = held(start("--no-report", hold=(FINISHED, 1)))  # so that it does not end before the others ask
    for options in ((), ("--overwrite",)):
        code, _, err = ended(start(*options))
        assert code == 2
        assert f"Another process ({first.pid} on {os.uname().nodename}, since 20" in err
    assert send(first, signal.SIGCONT)[0] == 0
    assert_same(out, undisturbed)


@pytest.fixture(params=["finished", "interrupted"])
def run(request, table, tmp_path, short, monkeypatch):
    """Return the folder of a run."""

    def full(path, flush=files._flush):
        if request.param == "interrupted" and "r_indices.csv" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_flush", full)
        assert fit(table, "--out", tmp_path / "run").exit_code == (0 if request.param == "finished" else 3)
    assert bool(finished_chunks(tmp_path / "run")) == (request.param == "interrupted")
    return tmp_path / "run"


@pytest.fixture
def other_table(table, tmp_path):
    """Return the path of a table in which one number is another."""
    people = pd.read_csv(table)
    people.iloc[0, 2] *= 1.01
    people.to_csv(tmp_path / "other.csv", index=False)
    return tmp_path / "other.csv"


def test_another_run_in_the_same_folder_is_refused_with_the_differences(table, other_table, run, faultless):
    before = contents(run)
    outcome = fit(table, "--out", run, "--seed", 7, "--steps", 30)
    assert outcome.exit_code == 2
    assert "max_steps: not given then, 30 now" in outcome.output
    assert "random_state: 0 then, 7 now" in outcome.output
    outcome = fit(other_table, "--out", run)
    assert outcome.exit_code == 2
    assert "  sha256: " in outcome.output
    assert contents(run) == before
    assert fit(table, "--out", run).exit_code == 0
    assert_same(run, faultless)


def test_a_run_can_be_made_again_from_its_record(other_table, run, tmp_path, faultless):
    record, again, third = run / "run.toml", tmp_path / "again", tmp_path / "third"
    outcome = fit("--config", record, "--out", again, "--quiet")
    assert (outcome.exit_code, outcome.output) == (0, "")
    assert_same(again, faultless)
    for options, told in ((("--seed", 4), "--seed"), ((other_table,), "its contents differ")):
        outcome = fit(*options, "--config", record, "--out", third)
        assert outcome.exit_code == 2
        assert told in outcome.output
    assert not third.exists()


@pytest.mark.usefixtures("short")
def test_lines_of_json(table, tmp_path):
    for options, status, code in (((), "done", 0), (("--patterns", 3), "failed", 2)):
        outcome = fit(table, "--out", tmp_path / "run", "--log-json", *options)
        lines = [json.loads(line) for line in outcome.stdout.splitlines()]
        assert outcome.exit_code == code
        assert (lines[-1]["status"], lines[-1]["exit_code"]) == (status, code)
        assert code or {"table", "progress", "done"} <= {line["event"] for line in lines}
