"""The table that bad inputs are made from, a model of it, and the fixture that runs the commands."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer

from rindices import presets
from rindices.cli import app
from tests.bad_input.harness import attempt, write
from tests.test_cli import told


class Outcome(NamedTuple):
    """The folder where a command ran, and its message."""

    folder: Path
    message: str


@pytest.fixture(scope="session")
def people(small_table, small_labels):
    """40 controls and 40 patients with all the usual columns."""
    rng, table = np.random.default_rng(2), small_table.round(1)
    table.insert(0, "participant_id", [f"p{number:02d}" for number in range(80)])
    table.insert(1, "diagnosis", np.where(small_labels, "AD", "CN"))
    table.insert(2, "age", rng.integers(55, 85, 80))
    table.insert(3, "sex", np.tile(["F", "M"], 40))
    table.insert(4, "icv", rng.normal(1450, 90, 80).round(1))
    table.insert(5, "site", np.tile(["Ulm", "Ulm", "Bern", "Bern"], 20))
    table.loc[[0, 1, 40, 41], "age"] = 54, 86, 54, 86  # nobody lies outside the controls' range
    return table


@pytest.fixture(scope="session")
def finished(people, quick_preset, tmp_path_factory):
    """Return the folder of a finished run with age, sex and two sites."""
    folder = tmp_path_factory.mktemp("finished")
    people.to_csv(folder / "people.csv", index=False)
    roles = ["--covariates", "age,sex", "--site", "site", "--unit", "mm3"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(presets.PRESETS, "fast", lambda: quick_preset)
        patched.chdir(folder)
        told("fit", "people.csv", "--out", "done", "--patterns", 3, "--repetitions", 2, "--no-report", *roles)
    return folder / "done"


@pytest.fixture
def stage(request, people, tmp_path, monkeypatch, record_property):
    """Return a function that runs a case and fails with everything that is wrong with its message."""

    def run(case):
        folder = tmp_path / "folder"
        folder.mkdir()
        files = {"people.csv": people, **case.files}
        for name, inside in {"model.safetensors": "model.safetensors", "done": ""}.items():
            if name in case.line and name not in files:
                files[name] = request.getfixturevalue("finished") / inside
        for name, content in files.items():
            write(folder / name, content, people)
        _without_training(monkeypatch, case.code)
        message, complaints = attempt(app, case, folder, monkeypatch)
        record_property("message", f"rindices {case.line}\n[{case.code}] {message}")
        assert not complaints, f"{message}\n" + "\n".join(complaints)
        return Outcome(folder, message)

    return run


def _without_training(monkeypatch, code):
    """Make training fail, because bad input must be refused before it; stop accepted input just before it."""

    def trained(*_, **__):
        raise RuntimeError("training began")

    def enough(*_, **__):
        raise typer.Exit

    monkeypatch.setattr("rindices.training.execution.train_chunk", trained)
    if code == 0:
        monkeypatch.setattr("rindices.cli.fit.train_and_write", enough)
