"""Ctrl-C and the end of a job's time: at once, with a word on how to go on, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.survival.conftest import FINISHED, PATIENCE, UNFINISHED, assert_same, ended, held, send

TRAINING = (UNFINISHED, 1)  # where a run waits for its signal: it cannot end before it comes


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_at_once_and_it_can_go_on(start, tmp_path, undisturbed, number, code):
    out = tmp_path / "run"
    process = held(start(hold=TRAINING))
    send(process, number)
    found, _, err = ended(process)
    assert found == code
    assert "Repeat the same command to go on" in err
    assert "Traceback" not in err
    assert json.loads((out / "summary.json").read_text()) == {"status": "unfinished"}
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
    send(process, signal.SIGINT)
    code, _, err = ended(process)
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
    stopping.interruptible(lambda: time.sleep(3600), "Go on.", stopping.Ending())

command()
"""
    line = [sys.executable, "-c", program]
    process = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert process.returncode == 130
    assert process.stderr.split("\n")[-2] == "Stopped: unfinished. Go on."
    assert "Traceback" not in process.stderr


def test_ctrl_c_is_obeyed_while_a_library_is_loaded_that_makes_another_error_of_it(tmp_path):
    """As some do that are written in C++; others end the process with a message of their own."""
    (tmp_path / "odd.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(1)\n"
        "except BaseException:\n    pass\n"
        "raise ImportError('initialisation failed')\n"
    )
    program = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from rindices.cli import stopping

@stopping.guarded
def command():
    import odd

command()
"""
    line, here = [sys.executable, "-c", program], os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False, env=here)
    told = "Stopped before the results were complete: none were written.\n"
    assert (process.returncode, process.stderr) == (130, told)


@pytest.mark.slow
@pytest.mark.parametrize("where", [("--workers", "2"), ("--dask", "local")])
def test_ctrl_c_takes_the_workers_along(start, where):
    process = held(start(*where, alone=True, hold=(FINISHED, 1)))
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    process.send_signal(signal.SIGCONT)
    code, _, err = ended(process)
    assert code == 130
    assert "\nStopped: unfinished. Repeat the same command to go on" in err
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive
