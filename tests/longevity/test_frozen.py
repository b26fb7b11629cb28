"""Models, results and run folders that were kept still say what they said: see README.md here."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from rindices import __version__
from rindices.model import FORMAT_VERSION
from rindices.record import read_run, read_settings, read_summary
from tests.longevity import golden
from tests.longevity.freeze import COHORT, FROZEN, MODELS, PEOPLE, RUNS, description_of, maps_of, model_of, scores_of
from tests.test_cli import run, succeed

# Models of the file format still say what they said: see README.md here


# Inference is in double precision, so that other processors and libraries change the last digits only: 3e-14 was the
# most between the oldest and the newest dependencies. Single precision is off by 5e-7 to 1e-5, a change of the method
# by more.
SAME = 1e-9


@pytest.fixture(params=MODELS)
def folder(request):
    return FROZEN / request.param


@pytest.fixture(scope="module")
def people():
    return pd.read_csv(PEOPLE)


def test_frozen_models_say_what_they_said(folder, people):
    path, model = folder / "model.safetensors", model_of(folder.name)
    with safe_open(path, framework="numpy") as file:
        version = file.metadata()["format_version"]
    assert version == str(FORMAT_VERSION), "make them again: python -m tests.longevity.freeze"
    scores, maps = scores_of(model, people), maps_of(model, people)
    pd.testing.assert_frame_equal(scores, pd.read_csv(folder / "scores.csv"), rtol=SAME, atol=0, check_dtype=False)
    # A change near 0 is the difference of two brains near 1.
    pd.testing.assert_frame_equal(maps, pd.read_csv(folder / "maps.csv"), rtol=SAME, atol=1e-12, check_dtype=False)
    told = "\n".join(description_of(path))
    for line in (folder / "describe.txt").read_text(encoding="utf-8").splitlines():
        label, _, value = line.rpartition(": ")  # labels may be worded otherwise one day
        assert value in told, label


def test_apply_writes_the_scores_of_then_and_the_contract_holds(folder, people, tmp_path):
    out = tmp_path / "scores.csv"
    succeed("apply", folder / "model.safetensors", PEOPLE, "--out", out)
    scores, written = pd.read_csv(folder / "scores.csv"), pd.read_csv(out)
    np.testing.assert_allclose(written[scores.columns[1:]], scores.iloc[:, 1:], rtol=5.1e-6)  # six digits are written
    assert written["participant_id"].tolist() == people["participant_id"].tolist()
    flagged = written["flags"].notna()
    assert flagged[0] == ("age" in (folder / "describe.txt").read_text(encoding="utf-8")), "this person is 97 years old"
    people.iloc[:, :-6].to_csv(tmp_path / "few.csv", index=False)  # a quarter of the regions is more than can be drawn
    assert run("apply", folder / "model.safetensors", tmp_path / "few.csv", "--out", tmp_path / "s.csv").exit_code == 2


@pytest.mark.parametrize(
    ("version", "remedy"), [(b"9", "Install a newer version of rindices."), (b"2", "Fit or import the model again")]
)
def test_files_of_other_versions_are_refused_with_advice(tmp_path, version, remedy):
    content = (FROZEN / "linear" / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(re.sub(rb'("format_version": ?)"\d"', rb'\1"' + version + rb'"', content, count=1))
    done = run("describe", path)
    assert done.exit_code == 2
    assert not [part for part in (f"format version {version.decode()}", remedy) if part not in done.output]


# Results are those that were kept: see README.md here for where the tolerances come from


ROUNDING = 1e-5  # of weights after a few steps in single precision
EXACT = 1e-9


def assert_same(now, kept, **tolerance):
    assert now.keys() == kept.keys()
    for name, value in kept.items():
        np.testing.assert_allclose(np.asarray(now[name], float), value, err_msg=name, **tolerance)


@pytest.mark.parametrize("name", ["preprocessing", "spectrum", "consensus", "associated"])
def test_what_is_computed_in_double_precision_is_as_it_was(name):
    assert_same(golden.RESULTS[name](), golden.read(name), rtol=EXACT, atol=1e-12)


@pytest.mark.parametrize("name", ["weights", "weights_near_a_linear_model"])
def test_training_is_as_it_was(name):
    assert_same(golden.RESULTS[name](), golden.read(name), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", golden.WEIGHTS._fields)
def test_one_percent_of_a_loss_weight_would_be_noticed(name):
    other = golden.WEIGHTS._replace(**{name: 1.01 * getattr(golden.WEIGHTS, name)})
    result = "weights_near_a_linear_model" if name == "prior" else "weights"
    now, kept = golden.RESULTS[result](other), golden.read(result)
    assert max(np.abs(np.asarray(now[key]) - kept[key]).max() for key in kept) > 2 * ROUNDING


@pytest.mark.slow
def test_a_known_truth_is_found_as_well_as_it_was():
    """Between JAX 0.8.0 and 0.10.2: concordance 0.0005, agreement 0.009, R-indices 0.13, maps 0.87 sd at most."""
    now, kept = golden.fit(), golden.read("fit")
    assert (now["reliable"], now["concordance"]) == (kept["reliable"], pytest.approx(kept["concordance"], abs=0.005))
    np.testing.assert_allclose(now["agreement"], kept["agreement"], atol=0.03)
    np.testing.assert_allclose(now["scores"], kept["scores"], atol=0.25)
    np.testing.assert_allclose(now["maps"], kept["maps"], atol=1.5)


# Run folders of the layout: they are reported, run again, and gone on with; those of before are refused


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
    result = run(*line)
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
