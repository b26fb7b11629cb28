"""Follow-up that comes later: for a run that is there, and for people whom a model is applied to."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import longevity
from tests.test_cli import run, succeed

HERE = Path(longevity.__file__).parent


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a finished run, and a table of what became of its people: the severe convert sooner."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(HERE / "runs/finished", folder / "run")
    people = pd.read_csv(folder / "run/r_indices.csv").drop_duplicates("participant_id")
    time = np.random.default_rng(0).exponential(3, len(people)) * np.exp(-2 * people["severity1"])
    told = {"participant_id": people["participant_id"], "years": time.clip(upper=4), "converted": 1.0 * (time < 4)}
    pd.DataFrame(told).to_csv(folder / "later.csv", index=False)
    return folder


def test_a_run_is_reported_again_with_what_became_of_its_people(finished, tmp_path):
    shutil.copytree(finished / "run", tmp_path / "run")
    named = ("--time", "years", "--event", "converted")
    refused = run("report", tmp_path / "run", *named)
    assert refused.exit_code == 2
    assert "no column 'years' for the time of follow-up" in refused.output
    assert "--clinical FILE" in refused.output
    succeed("report", tmp_path / "run", "--clinical", finished / "later.csv", *named)
    summary = json.loads((tmp_path / "run/summary.json").read_text(encoding="utf-8"))
    assert summary["follow_up"] == {"time": "years", "event": "converted"}
    assert not {"years", "converted"} & {*summary["clinical"]}
    hazards = pd.read_csv(tmp_path / "run/analysis/prognosis.csv")
    assert hazards["hazard_ratio"][0] > 1.05
    assert "Follow-up and prognosis" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
    again = run("report", tmp_path / "run", "--subgroup-limits", "0.3,0.6")  # what is known of them stays
    assert again.exit_code == 0, again.output
    assert pd.read_csv(tmp_path / "run/analysis/prognosis.csv").equals(hazards)


def test_impossible_times_are_refused_and_nothing_is_changed(finished, tmp_path):
    shutil.copytree(finished / "run", tmp_path / "run")
    later = pd.read_csv(finished / "later.csv")
    later.assign(years=later["years"].where(later.index != 3, -1)).to_csv(tmp_path / "later.csv", index=False)
    before = (tmp_path / "run/summary.json").read_bytes()
    line = ("report", tmp_path / "run", "--clinical", tmp_path / "later.csv", "--time", "years")
    for options, said in ((("--event", "converted"), "is below 0: column 'years', person"), ((), "--event COLUMN")):
        refused = run(*line, *options)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output
    assert (tmp_path / "run/summary.json").read_bytes() == before


def test_new_people_have_their_follow_up_in_the_report(tmp_path):
    people = pd.read_csv(HERE / "people.csv")
    told = people.assign(years=np.random.default_rng(1).uniform(0.5, 5, len(people)), died=np.arange(len(people)) % 2)
    told.to_csv(tmp_path / "people.csv", index=False)
    line = ("apply", HERE / "frozen/linear/model.safetensors", tmp_path / "people.csv", "--out", tmp_path / "r.csv")
    named = ("--time", "years", "--event", "died")
    refused = run(*line, *named)
    assert (refused.exit_code, "--time, --event can only be used with a report" in refused.output) == (2, True)
    done = succeed(*line, *named, "--report", tmp_path / "r.html")
    said = " ".join(done.output.split())
    assert "fewer than ten per variable, so hazard ratios are descriptive only. Wait for more events." in said
    assert "Follow-up and prognosis" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "unknown to the model are ignored" not in done.output
    wrong = run(*line, "--time", "years", "--event", "dead", "--report", tmp_path / "r.html")
    assert (wrong.exit_code, "'dead' (from --event) is not a column" in wrong.output) == (2, True), wrong.output
