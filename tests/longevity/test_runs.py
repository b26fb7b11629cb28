"""Run folders of the layout: they are reported, run again, and gone on with; those of before are refused."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rindices import __version__
from rindices.cli import app
from rindices.record import read_run, read_settings, read_summary
from tests.longevity.freeze import COHORT, RUNS


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with copies of the table and of both runs, in which no model is trained."""
    for name in ("finished", "interrupted"):
        shutil.copytree(RUNS / name, tmp_path / name)
    shutil.copy(COHORT, tmp_path)
    monkeypatch.chdir(tmp_path)

    def trained(*_, **__):
        raise RuntimeError("training began")

    monkeypatch.setattr("rindices.training.execution.train_chunk", trained)
    return tmp_path


def rindices(*line):
    result = CliRunner().invoke(app, [*line])
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("name", ["finished", "interrupted"])
def test_documents_are_written_as_they_were(name):
    settings, summary = read_settings(RUNS / name / "run.toml"), read_summary(RUNS / name)
    assert settings.text() == (RUNS / name / "run.toml").read_text(encoding="utf-8")
    written = summary.model_dump_json(indent=2, exclude_unset=True) + "\n"
    assert written == (RUNS / name / "summary.json").read_text(encoding="utf-8")


def test_finished_run_is_reported(place, monkeypatch):
    monkeypatch.setattr("rindices.pages.patterns_section.find_spec", lambda _: None)
    assert rindices("report", "finished", "--subgroup-limits", "0.3,0.6")[0] == 0
    run = read_run(place / "finished")
    assert (run.summary.versions["rindices"], run.summary.subgroup_limits) == (__version__, (0.3, 0.6))
    page = (place / "finished" / "report.html").read_text(encoding="utf-8")
    assert "compares 154 patients (PT) with 146 controls (CN)" in page
    assert f"All computations were done with rindices {__version__}" in page


def test_finished_run_is_the_same_run(place):
    Path("finished", "r_indices.png").touch()  # which is not kept here
    code, told = rindices(*shlex.split(read_settings(Path("finished", "run.toml")).command["line"])[1:])
    assert (code, "already complete" in told) == (0, True), told


def test_finished_run_runs_again(place):
    code, told = rindices("fit", "--config", "finished/run.toml", "--out", "again")
    assert (code, "training began" in told) == (3, True), told
    before, now = (read_settings(Path(name, "run.toml")) for name in ("finished", "again"))
    assert (before.table, before.training) == (now.table, now.training)


def test_interrupted_run_is_reported_and_goes_on_or_is_refused_with_its_version(place):
    assert "Traceback" not in rindices("report", "interrupted")[1]
    assert Path("interrupted", "report.html").exists()  # though it has no results to show
    journal = {path.name for path in Path("interrupted", "journal").iterdir()}
    code, told = rindices(*shlex.split(read_settings(Path("interrupted", "run.toml")).command["line"])[1:])
    assert " then" in told if code == 2 else "training began" in told, told
    assert journal <= {path.name for path in Path("interrupted", "journal").iterdir()}


@pytest.mark.parametrize("line", [["report", "finished"], ["fit", "--config", "finished/run.toml", "--out", "again"]])
def test_run_of_an_earlier_version_is_refused_with_its_version_and_the_remedy(place, line):
    for name in ("run.toml", "summary.json"):
        path = place / "finished" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r'("?rindices"? ?[=:] )"[\d.]+"', r'\1"0.1.0"', text), encoding="utf-8")
    code, told = rindices(*line)
    assert (code, "was written by rindices 0.1.0 and cannot be read" in told) == (2, True), told
    assert "Repeat the command under [command] in run.toml with --overwrite" in told
