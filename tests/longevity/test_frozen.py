"""Models of every version of the file format still say what they said: see README.md here."""

import re

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from typer.testing import CliRunner

from rindices import load_model
from rindices.cli import app
from tests.longevity.freeze import FROZEN, PEOPLE, description_of, maps_of, scores_of

NAMES = sorted(folder.name for folder in FROZEN.iterdir())
# Inference is in double precision, so that other processors and libraries change the last digits only: 3e-14 was the
# most between the oldest and the newest dependencies. Single precision is off by 5e-7 to 1e-5, a change of the method
# by more.
SAME = 1e-9
VERDICTS = {"Reliable: yes": ": reproducible", "Reliable: no": ": not reproducible"}  # before there were four of them


@pytest.fixture(params=NAMES)
def folder(request):
    return FROZEN / request.param


@pytest.fixture(scope="module")
def people():
    return pd.read_csv(PEOPLE)


def run(*words):
    """Run a command of `rindices` in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def version_of(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()["format_version"]


def test_every_version_of_the_format_has_a_frozen_model_whose_name_says_it(tmp_path):
    versions = [version_of(FROZEN / name / "model.safetensors") for name in NAMES]
    assert versions == [name.partition("-")[0] for name in NAMES]
    now = int(version_of(load_model(FROZEN / NAMES[-1] / "model.safetensors").save(tmp_path / "model.safetensors")))
    missing = {str(number) for number in range(1, now + 1)} - {*versions}
    assert not missing, f"keep a model of format {missing} with tests/longevity/freeze.py"


def test_scores_and_spread_are_those_of_then(folder, people):
    scores = scores_of(load_model(folder / "model.safetensors"), people)
    pd.testing.assert_frame_equal(scores, pd.read_csv(folder / "scores.csv"), rtol=SAME, atol=0, check_dtype=False)


def test_maps_are_those_of_then(folder, people):
    maps = maps_of(load_model(folder / "model.safetensors"), people)
    # A change near 0 is the difference of two brains near 1.
    pd.testing.assert_frame_equal(maps, pd.read_csv(folder / "maps.csv"), rtol=SAME, atol=1e-12, check_dtype=False)


def test_apply_writes_the_scores_of_then(folder, people, tmp_path):
    out = tmp_path / "scores.csv"
    done = run("apply", folder / "model.safetensors", PEOPLE, "--out", out)
    assert done.exit_code == 0, done.output
    scores, written = pd.read_csv(folder / "scores.csv"), pd.read_csv(out)
    np.testing.assert_allclose(written[scores.columns[1:]], scores.iloc[:, 1:], rtol=5.1e-6)  # six digits are written
    assert written["participant_id"].tolist() == people["participant_id"].tolist()
    flagged = written["flags"].notna()
    assert flagged[0] == ("age" in (folder / "describe.txt").read_text(encoding="utf-8")), "this person is 97 years old"


def test_describe_tells_what_it_told_then(folder):
    told = "\n".join(description_of(folder / "model.safetensors"))
    for line in (folder / "describe.txt").read_text(encoding="utf-8").splitlines():
        label, _, value = line.rpartition(": ")  # labels may be worded otherwise one day
        assert VERDICTS.get(line, value) in told, label


def test_the_contract_still_holds(folder, people, tmp_path):
    table, out = tmp_path / "people.csv", tmp_path / "scores.csv"
    people.drop(columns=people.columns[-1]).to_csv(table, index=False)
    assert run("apply", folder / "model.safetensors", table, "--out", out).exit_code == 2
    assert not out.exists()


def test_a_file_of_the_future_is_refused_with_advice(tmp_path):
    content = (FROZEN / NAMES[-1] / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(re.sub(rb'("format_version": ?)"\d"', rb'\1"9"', content, count=1))
    done = run("describe", path)
    assert done.exit_code == 2
    assert "format version 9" in done.output
    assert "Install a newer rindices." in done.output
