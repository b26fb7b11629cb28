"""The table of docs/peers.md is that of results/peers.csv; its cohorts are what the page says."""

import importlib.util
import sys

import numpy as np
import pytest

from tests.docs.pages import ROOT

FOLDER, PAGE = ROOT / "benchmarks" / "peers", (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_number_of_the_table_is_measured():
    for head, rows in script("peers_page").TABLES.items():
        assert PAGE.split(f"{head}\n")[1].split("\n\n")[0].split("\n") == rows()


def test_stopped_trainings_and_their_limit_are_named():
    table = script("peers_page").read()
    stopped = table[~table["finished"].astype(bool)]
    assert not [method for method in set(stopped["method"]) if f"| {method} |" not in PAGE]
    for minutes in set(stopped["limit_minutes"]):
        assert f"{minutes:g} minutes of processor time" in PAGE


@pytest.fixture(scope="module")
def truths():
    return script("truths")


def test_sequence_makes_lobes_abnormal_one_after_the_other(truths):
    cohort = truths.COHORTS["sequence"](0)
    controls, patients = cohort.regions[~cohort.patient], cohort.regions[cohort.patient]
    z = (patients - controls.mean(axis=0)) / controls.std(axis=0) @ cohort.lobes.T
    stage = cohort.truth.max(axis=1)
    early, late = stage < 0.2, stage > 0.8
    assert (z[late].mean(axis=0) < z[early].mean(axis=0) - 1).all()
    first = [z[early & (cohort.labels == number)].mean(axis=0) for number in range(2)]
    assert np.abs(first[0] - first[1]).max() > 0.5  # the two orders differ
    assert cohort.discrete
    assert (np.count_nonzero(cohort.truth, axis=1) == 1).all()


def test_subtypes_have_one_pattern_at_one_strength_and_no_disease_has_none(truths):
    assert (np.sort(truths.COHORTS["subtypes"](0).truth, axis=1) == [0, 0, truths.STRENGTH]).all()
    assert not truths.COHORTS["no disease"](0).truth.any()


def test_own_methods_learn_from_those_trained_on_alone(truths, monkeypatch):
    for folder in (ROOT / "experiments", FOLDER):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "path", [*sys.path])
    methods, made = script("own_methods"), truths.simulated("basic", 0, n_controls=40, n_patients=60)
    train = np.arange(100) % 2 == 0
    given = {"regions": made.regions, "patient": made.patient, "train": train, "truth": made.truth, "seed": 0}
    changed = given | {"truth": np.where(train[made.patient][:, None], made.truth, 0.0)}
    for name in ("NMF", "opNMF", "PCA of z-scores", "regression told the truth"):
        scores = [methods.METHODS[name](methods.Given(of))[0] for of in (given, changed)]
        assert scores[0].shape == made.truth.shape
        assert (scores[0] == scores[1]).all()
