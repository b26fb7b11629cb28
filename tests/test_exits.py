import sys

import pytest
import typer

from rindices.cli import console_and_exits
from rindices.problems import LostWorkers


class Dying:
    def __init__(self, error):
        self.error = error

    def __del__(self):
        raise self.error


@pytest.mark.parametrize(("error", "told"), [(KeyboardInterrupt(), 0), (ValueError("odd"), 1)])
def test_only_a_stop_is_silent_where_python_drops_exceptions(monkeypatch, error, told):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    before = sys.unraisablehook
    with console_and_exits._terminable():
        Dying(error)
    assert len(seen) == told
    assert sys.unraisablehook is before
    seen.clear()


def test_lost_workers_are_not_called_a_fault_of_the_program(capsys):
    @console_and_exits.guarded
    def command():
        raise LostWorkers("workers were lost 5 times in a row (KilledWorker).")

    with pytest.raises(typer.Exit) as ended:
        command()
    said = " ".join(capsys.readouterr().err.split())
    assert ended.value.exit_code == 3
    assert not [part for part in ("workers were lost 5 times in a row", "--workers") if part not in said]
    assert "report it" not in said
