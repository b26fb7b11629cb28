"""A run that is killed, stopped or damaged goes on when its command is repeated, and ends with the same bits."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.survival.conftest import (
    FINISHED,
    PATIENCE,
    UNFINISHED,
    assert_kept,
    assert_same,
    ended,
    finished_chunks,
    held,
    kill,
    send,
    status,
)

TRAINING = (UNFINISHED, 1)  # where a run waits for its signal: it cannot end before it comes


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    assert kill(held(start("--no-report", hold=TRAINING)))
    assert list(out.glob(f"journal/*{UNFINISHED}"))
    assert kill(held(start("--no-report", hold=(FINISHED, 1))))
    chunks = finished_chunks(out)
    assert chunks
    process = held(start("--no-report", "--quiet", hold=(FINISHED, 1)))  # the lock was there, but nobody held it
    assert len(assert_kept(chunks, out)) > len(chunks)
    assert send(process, signal.SIGCONT) == (0, "", "")
    assert_same(out, undisturbed)
    assert not (out / "journal").exists()


@pytest.mark.slow
def test_20_kills_at_random_moments(start, tmp_path, undisturbed):
    """A run that ends before it is killed makes room for another: all parts of a run are hit, its end too."""
    random, killed, number = np.random.default_rng(1), 0, 0
    while killed < 20:
        out, chunks = tmp_path / f"run{number}", {}
        while killed < 20 and status(out) != "done":
            process = start("--no-report", out=out.name)
            time.sleep(random.uniform(1.0, 10.0))
            killed += kill(process)
            chunks = assert_kept(chunks, out)
        assert ended(start("--no-report", out=out.name))[0] == 0
        assert_same(out, undisturbed)
        assert not (out / "journal").exists()
        number += 1


def test_damaged_files_are_trained_again_and_named(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    assert send(held(start("--no-report", hold=(FINISHED, 2))), signal.SIGTERM)[0] == 143
    cut, flipped, *_ = sorted((out / "journal").glob("*.safetensors"))
    for path in (cut, out / "summary.json", *out.glob("journal/*.unfinished"), out / "journal" / "plan.json"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    contents = bytearray(flipped.read_bytes())
    contents[-5] ^= 1
    flipped.write_bytes(contents)
    code, said, _ = ended(start("--no-report"))
    assert code == 0
    assert_same(out, undisturbed)
    for path in (cut, flipped):
        assert f"{path.name} in the journal was damaged and has been retrained." in said
        assert f"{path.name} in the journal was damaged and has been retrained." in (out / "summary.json").read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_at_once_and_it_can_go_on(start, tmp_path, undisturbed, number, code):
    out = tmp_path / "run"
    found, _, err = send(held(start(hold=TRAINING)), number)
    assert (found, "To resume, repeat the same command" in err, "Traceback" in err) == (code, True, False)
    assert status(out) == "unfinished"
    assert not (out / "report.html").exists()
    if number == signal.SIGTERM:
        assert ended(start())[0] == 0
        assert_same(out, undisturbed)


@pytest.mark.parametrize(
    "seconds", [pytest.param(0.0, marks=pytest.mark.slow), 1.0, pytest.param(2.0, marks=pytest.mark.slow)]
)
def test_ctrl_c_is_obeyed_while_programs_are_loaded_and_compiled(start, seconds):
    """However far the run is by then: before its first line it would not yet be ours, and it waits when it trains."""
    process = start(hold=TRAINING)
    assert process.stdout.readline().startswith("Read ")
    time.sleep(seconds)
    code, _, err = send(process, signal.SIGINT)
    assert (code, "Stopped" in err, "Traceback" in err) == (130, True, False)


DROPPED = """
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

@exits.guarded
def command():
    Dropped()
    exits.interruptible(lambda: time.sleep(3600), "Go on.", exits.Ending())
"""
# As some libraries do that are written in C++; others end the process with a message of their own.
MADE_ANOTHER_ERROR = """
@exits.guarded
def command():
    import odd
"""
ODD = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except BaseException:
    pass
raise ImportError("initialisation failed")
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (DROPPED, "Stopped before the run was finished. Go on."),
        (MADE_ANOTHER_ERROR, "Stopped before the results were complete, so no results were written."),
    ],
    ids=["dropped by Python", "made another error by a library"],
)
def test_ctrl_c_is_obeyed_even_where_it_gets_lost(program, told, tmp_path):
    (tmp_path / "odd.py").write_text(ODD)
    begin = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in command.py
    line = [sys.executable, "-c", f"{begin}from rindices.cli import console_and_exits as exits\n{program}\ncommand()"]
    process = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
    assert (process.returncode, process.stderr.splitlines()[-1]) == (130, told)
    assert "Traceback" not in process.stderr
