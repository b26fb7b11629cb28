"""The harness itself: it must notice what it is there for."""

import sys
from pathlib import Path

import pytest
import typer

from tests.bad_input.harness import Case, attempt

app = typer.Typer()
GOOD = "Error: Column 'age' has the text 'x' in row 3.\nLeave it out with --exclude age."


@app.command()
def say(file: Path, exclude: str = "", leave: str = "", code: int = 2) -> None:
    """Say what is in a file, and end like a command of ours."""
    del exclude
    if leave:
        Path(leave).write_text("half")
    sys.stderr.write(file.read_text() + "\n")
    raise typer.Exit(code)


@app.command()
def other() -> None:
    """Make the application one of several commands."""


@pytest.mark.parametrize(
    ("message", "options", "complaint"),
    [
        (GOOD, "", None),
        (GOOD, "--leave half.csv", "left behind or changed: half.csv"),
        (GOOD, "--leave people.csv", "left behind or changed: people.csv"),
        (GOOD, "--code 3", "exit code 3, expected 2"),
        (GOOD.replace("row 3", "a row"), "", "does not say 'row 3'"),
        (GOOD.replace("--exclude", "--without"), "", "names --without, which the command has not"),
        (f"Traceback (most recent call last):\n{GOOD}", "", "has the inner name 'Traceback'"),
        (f"KeyError: {GOOD}", "", "has the inner name 'KeyError'"),
        (f"found NaN. {GOOD}", "", "has the jargon 'NaN'"),
        (f"found None. {GOOD}", "", "has the jargon 'None'"),
        (f"{GOOD}\n{GOOD}\n{GOOD}\n{GOOD}", "", "has 8 lines"),
        (GOOD + 1000 * "!", "", f"has {len(GOOD) + 1001} characters"),
    ],
)
def test_bad_behaviour_is_noticed(tmp_path, monkeypatch, message, options, complaint):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "people.csv").write_text("participant_id,age\n")
    (folder / "message.txt").write_text(message)
    case = Case("case", f"say message.txt {options}", ("row 3",), "Leave it out")
    _, complaints = attempt(app, case, folder, monkeypatch)
    assert complaints == ([] if complaint is None else [complaint])


def test_a_case_without_a_remedy_is_noticed(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "message.txt").write_text(GOOD)
    _, complaints = attempt(app, Case("case", "say message.txt", ("row 3",)), folder, monkeypatch)
    assert complaints == ["no remedy is asked for"]
