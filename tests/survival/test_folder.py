"""One run a folder, one process a run; and a run can be made again from what it recorded."""

import errno
import json
import os
import signal

import pandas as pd
import pytest

from rindices.run import workflow
from tests.survival.conftest import FINISHED, assert_same, ended, finished_chunks, fit, held


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
    first.send_signal(signal.SIGCONT)
    assert ended(first)[0] == 0
    assert_same(out, undisturbed)


@pytest.fixture(params=["finished", "interrupted"])
def run(request, table, tmp_path, short, monkeypatch):
    """Return the folder of a run."""
    out = tmp_path / "run"
    if request.param == "interrupted":
        with monkeypatch.context() as patch:
            patch.setattr(workflow, "_write_results", _full_disk)
            assert fit(table, "--out", out).exit_code == 3
        assert finished_chunks(out)
    else:
        assert fit(table, "--out", out).exit_code == 0
    return out


def _full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


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
    record, again = run / "run.toml", tmp_path / "again"
    outcome = fit("--config", record, "--out", again, "--quiet")
    assert (outcome.exit_code, outcome.output) == (0, "")
    assert_same(again, faultless)

    outcome = fit("--config", record, "--out", tmp_path / "third", "--seed", 4)
    assert outcome.exit_code == 2
    assert "--seed" in outcome.output
    outcome = fit(other_table, "--config", record, "--out", tmp_path / "third")
    assert outcome.exit_code == 2
    assert "its contents differ" in outcome.output
    assert not (tmp_path / "third").exists()


@pytest.mark.usefixtures("short")
def test_lines_of_json(table, tmp_path):
    outcome = fit(table, "--out", tmp_path / "run", "--log-json")
    lines = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert {"table", "progress", "done"} <= {line["event"] for line in lines}
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("done", 0)

    outcome = fit(table, "--out", tmp_path / "run", "--log-json", "--patterns", 3)
    lines = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert outcome.exit_code == 2
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("failed", 2)
