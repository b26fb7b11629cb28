import os
import subprocess
import sys

import pytest
import typer

from rindices.cli import console_and_exits
from rindices.problems import LostWorkers, Remedy
from tests.pages.page import missing


@pytest.mark.parametrize(
    ("where", "said"),
    [({"PYTHONIOENCODING": "ascii"}, rb"\xb1 False"), ({"TERM": "dumb", "FORCE_COLOR": "1"}, "± False".encode())],
)
def test_any_console_shows_all_that_is_said(where, said):
    code = "from rindices.cli import *\ntry: main()\nexcept SystemExit: fit.console.print('±', fit.console.is_terminal)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        env=(os.environ | {"PYTHONUTF8": "1"} | where),
        capture_output=True,
        check=True,
    )
    assert done.stdout.split(b"\n")[1] == said


def test_options_are_typed_in_the_quotation_marks_of_the_system(monkeypatch):
    remedies = Remedy("exclude", ("left amygdala",)), Remedy("out", r"C:\my data"), Remedy("exclude", ('a "b"',))
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        said = [console_and_exits.on_command_line(one) for one in remedies]
    assert said == ['--exclude "left amygdala"', r'--out "C:\my data"', """--exclude 'a "b"'"""]


def test_lost_workers_are_not_called_a_fault_of_the_program(capsys):
    @console_and_exits.guarded
    def command():
        raise LostWorkers("workers were lost 5 times in a row (KilledWorker).")

    with pytest.raises(typer.Exit) as ended:
        command()
    assert (
        ended.value.exit_code,
        missing(
            " ".join(capsys.readouterr().err.split()), "workers were lost 5 times in a row", "--workers", "report it"
        ),
    ) == (3, ["report it"])
