"""Ctrl-C and the end of a job's time: at once, with a word on how to go on, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.survival.conftest import assert_same, ended, until


def on_its_way(out):
    """Whether a chunk is being trained or finished."""
    return bool(list((out / "journal").glob("data-*")))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_at_once_and_it_can_go_on(start, tmp_path, undisturbed, number, code):
    out = tmp_path / "run"
    process = start()
    until(lambda: on_its_way(out), process)
    process.send_signal(number)
    found, _, err = ended(process, timeout=5)
    assert found == code
    assert "Repeat the same command to go on" in err
    assert "Traceback" not in err
    assert json.loads((out / "summary.json").read_text()) == {"status": "unfinished"}
    assert not (out / "report.html").exists()
    if number == signal.SIGTERM:
        assert ended(start())[0] == 0
        assert_same(out, undisturbed)


@pytest.mark.parametrize(
    "seconds", [pytest.param(1.0, marks=pytest.mark.slow), 2.0, pytest.param(3.0, marks=pytest.mark.slow)]
)
def test_ctrl_c_is_obeyed_while_programs_are_loaded_and_compiled(start, seconds):
    process = start()
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process, timeout=5)
    assert code == 130
    assert "Stopped" in err
    assert "Traceback" not in err


def test_ctrl_c_is_obeyed_even_where_python_drops_it():
    program = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from rindices.cli import stopping

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

@stopping.guarded
def command():
    Dropped()
    stopping.interruptible(lambda: time.sleep(60), "Go on.", stopping.Ending())

command()
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert process.returncode == 130
    assert process.stderr.split("\n")[-2] == "Stopped: unfinished. Go on."
    assert "Traceback" not in process.stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", [("--workers", "2"), ("--dask", "local")])
def test_ctrl_c_takes_the_workers_along(start, tmp_path, where):
    out = tmp_path / "run"
    process = start(*where, alone=True)
    until(lambda: on_its_way(out), process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    code, _, err = ended(process, timeout=5)
    assert code == 130
    assert err.splitlines()[-1].startswith("Stopped: unfinished. Repeat the same command to go on")
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
