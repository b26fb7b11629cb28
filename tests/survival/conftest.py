"""Runs as separate processes that can be killed, and checks of what they leave behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from rindices import presets
from rindices.simulate import simulate_cohort
from rindices.training import chunks, journal
from tests.survival import command
from tests.test_cli import run

COMMAND = Path(command.__file__)
OPTIONS = ("--patterns", "2-3", "--repetitions", "4")
TABLES = ("r_indices.csv", "patterns.csv", "selection.csv")
FINISHED, UNFINISHED = ".safetensors", ".unfinished"  # chunks in the journal
PATIENCE = 600  # seconds; a busy machine should not fail the tests


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """Return the path of a table: 40 controls, 40 patients, 12 regions."""
    people = simulate_cohort("basic", n_controls=40, n_patients=40, seed=0).table.drop(columns=["age", "sex"])
    path = tmp_path_factory.mktemp("table") / "people.csv"
    people.iloc[:, :14].to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory):
    """Return environment variables that keep libraries from warning about a slow machine or an unusual home."""
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "MPLCONFIGDIR": str(tmp_path_factory.mktemp("fonts"))}


@pytest.fixture
def start(table, tmp_path, surroundings):
    """Return a function that starts `rindices fit` as a process; any still running at the end are killed.

    With `hold`, the process suspends itself once so many chunks are finished or unfinished states are saved.
    """
    processes = []

    def begin(*options, out="run", alone=False, hold=(), **environment):
        line = [sys.executable, COMMAND, "fit", table, *OPTIONS, "--out", tmp_path / out, *options]
        env = surroundings | environment | {"RINDICES_HOLD": " ".join(map(str, hold))}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(line, **pipes, start_new_session=alone, env=env))
        return processes[-1]

    yield begin
    for process in processes:
        kill(process)


def kill(process):
    """Kill a process; return whether it was still running."""
    was_there = process.poll() is None
    process.kill()
    with contextlib.suppress(ValueError):  # its output was already read
        process.communicate()
    return was_there


def ended(process, timeout=PATIENCE):
    """Wait for a process to end; return its exit code, standard output and standard error."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def until(condition, process=None):
    """Wait until a condition holds; fail early if the given process ends first."""
    end = time.monotonic() + PATIENCE
    while not (happened := condition()) and time.monotonic() < end and (process is None or process.poll() is None):
        time.sleep(0.05)
    assert happened, process.communicate() if process and process.poll() is not None else "it did not happen in time"


def held(process):
    """Wait until a process has suspended itself; return it."""
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, process)
    return process


def send(process, number):
    """Send a signal to a process, resuming it if suspended; return how it ended."""
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    return ended(process)


def contents(folder):
    """Return the contents of all files in a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def results(folder):
    """Return the results of a run: the bytes of its tables and the arrays of its model."""
    return {name: (folder / name).read_bytes() for name in TABLES}, load_file(folder / "model.safetensors")


def assert_same(folder, expected):
    """Check that a run folder has bit-identical results."""
    texts, arrays = results(folder)
    assert (texts, arrays.keys()) == (expected[0], expected[1].keys())
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[1][name], err_msg=name)


def status(folder):
    """Return a run's recorded status (done, failed or unfinished), or None if there is none."""
    path = folder / "summary.json"
    with contextlib.suppress(ValueError):  # it was damaged on purpose
        return json.loads(path.read_text())["status"] if path.exists() else None


def finished_chunks(folder):
    """Return the identity of each finished chunk's file, which changes when the chunk is retrained."""
    found = {}
    for path in (folder / "journal").glob(f"*{FINISHED}"):
        with contextlib.suppress(FileNotFoundError):  # the run has just become complete
            found[path.name] = path.stat().st_ino, path.stat().st_mtime_ns
    return found


def assert_kept(before, folder):
    """Check that finished chunks were not rewritten, unless the run is complete; return those present now."""
    after = finished_chunks(folder)
    if status(folder) != "done":
        assert {name: after.get(name) for name in before} == before
    return after


@pytest.fixture(scope="session")
def undisturbed(table, tmp_path_factory, surroundings):
    """Return the results of an uninterrupted run."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    subprocess.run(
        [sys.executable, COMMAND, "fit", table, *OPTIONS, "--out", out, "--no-report"],
        check=True,
        capture_output=True,
        env=surroundings,
    )
    return results(out)


@contextlib.contextmanager
def shortened():
    """Make runs in this process as short as possible."""
    schedule = presets.Schedule(batch_size=8, min_steps=20, max_steps=40, checkpoint_every=20, whitening=0.0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(command, "SCHEDULE", schedule)
        monkeypatch.setattr(chunks, "_SAVE_SECONDS", 0.0)
        monkeypatch.setitem(presets.PRESETS, "fast", presets.PRESETS["fast"])
        monkeypatch.setattr(journal, "_PAUSE", 0.0)
        command.shorten()
        yield


@pytest.fixture
def out(tmp_path):
    """Return the folder of a run, not yet created."""
    return tmp_path / "run"


@pytest.fixture
def short():
    """Make runs in this process as short as possible."""
    with shortened():
        yield


def fit(*options):
    """Run `rindices fit` in this process: two models of two patterns, unless the options say otherwise."""
    return run("fit", *() if "--config" in options else ("--patterns", "2", "--repetitions", "2"), *options)


@pytest.fixture(scope="session")
def faultless(table, tmp_path_factory):
    """Return the folder of such a run, uninterrupted and on all cores, which does not affect its results."""
    out = tmp_path_factory.mktemp("faultless") / "run"
    with shortened():
        assert fit(table, "--out", out).exit_code == 0
    return out
