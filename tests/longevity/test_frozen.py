"""Models of the file format still say what they said: see README.md here."""

import re

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from rindices.model import FORMAT_VERSION
from tests.longevity.freeze import FROZEN, MODELS, PEOPLE, description_of, maps_of, model_of, scores_of
from tests.test_cli import run, succeed

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


def test_frozen_models_are_of_the_format(folder):
    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        version = file.metadata()["format_version"]
    assert version == str(FORMAT_VERSION), "make them again: python -m tests.longevity.freeze"


def test_scores_and_spread_are_those_of_then(folder, people):
    scores = scores_of(model_of(folder.name), people)
    pd.testing.assert_frame_equal(scores, pd.read_csv(folder / "scores.csv"), rtol=SAME, atol=0, check_dtype=False)


def test_maps_are_those_of_then(folder, people):
    maps = maps_of(model_of(folder.name), people)
    # A change near 0 is the difference of two brains near 1.
    pd.testing.assert_frame_equal(maps, pd.read_csv(folder / "maps.csv"), rtol=SAME, atol=1e-12, check_dtype=False)


def test_apply_writes_the_scores_of_then(folder, people, tmp_path):
    out = tmp_path / "scores.csv"
    succeed("apply", folder / "model.safetensors", PEOPLE, "--out", out)
    scores, written = pd.read_csv(folder / "scores.csv"), pd.read_csv(out)
    np.testing.assert_allclose(written[scores.columns[1:]], scores.iloc[:, 1:], rtol=5.1e-6)  # six digits are written
    assert written["participant_id"].tolist() == people["participant_id"].tolist()
    flagged = written["flags"].notna()
    assert flagged[0] == ("age" in (folder / "describe.txt").read_text(encoding="utf-8")), "this person is 97 years old"


def test_describe_tells_what_it_told_then(folder):
    told = "\n".join(description_of(folder / "model.safetensors"))
    for line in (folder / "describe.txt").read_text(encoding="utf-8").splitlines():
        label, _, value = line.rpartition(": ")  # labels may be worded otherwise one day
        assert value in told, label


def test_the_contract_still_holds(folder, people, tmp_path):
    table, out = tmp_path / "people.csv", tmp_path / "scores.csv"
    people.iloc[:, :-6].to_csv(table, index=False)  # a quarter of the regions is more than can be filled in
    assert run("apply", folder / "model.safetensors", table, "--out", out).exit_code == 2
    assert not out.exists()


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
