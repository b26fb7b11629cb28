"""Statements of docs/peers.md are those of results/peers.csv, and its cohorts are as the page describes."""

import sys
from itertools import product

import numpy as np
import pytest

from tests.docs.pages import ROOT, script
from tests.pages.page import missing

FOLDER = ROOT / "benchmarks" / "peers"
PAGE = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
SETTINGS = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def measured():
    return script(FOLDER / "peers_findings.py")


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(ROOT / "experiments"), *sys.path])
    return script(FOLDER / "peers_page.py")


def test_tables_and_findings_are_those_of_the_measurements(page):
    assert page.filled(PAGE) == PAGE


def test_measurements_bear_out_what_the_page_says(measured):
    claims = [*measured.findings(), *(claim for _, claim in measured.answers().values())]
    assert ([claim.text for claim in claims if not claim.holds], len(claims) >= 12) == ([], True)


def test_readme_has_the_measured_numbers(measured):
    ours, surreal, hydra, nmf = (
        measured.told(np.mean([measured.cell(name, kind) for kind in measured.KINDS]))
        for name in (measured.OURS, measured.SURREAL, measured.HYDRA, measured.NMF)
    )
    labels = measured.found(measured.OURS, "subtypes", column="ari"), measured.told(measured.best_subtypes()[1])
    stages = [measured.found(name, "sequence") for name in (measured.SUSTAIN, measured.OURS)]
    assert not missing(
        (ROOT / "README.md").read_text(encoding="utf-8"),
        f"is {ours} for rindices, {surreal} for Surreal-GAN, {hydra} for HYDRA and {nmf} for NMF",
        f"is {labels[0]} for rindices and at most {labels[1]} for other methods",
        f"({stages[0]}, compared with {stages[1]} for rindices)",
    )


def test_a_claim_fails_where_measurements_say_otherwise(measured, monkeypatch):
    table = measured.TABLE
    sequence = table["cohort"].str.startswith("sequence") & (table["method"] == measured.OURS)
    monkeypatch.setattr(measured, "TABLE", table.assign(concordance=table["concordance"].mask(sequence, 0.99)))
    assert [claim.text[:30] for claim in measured.findings() if not claim.holds] == ["**If the disease is a sequence"]


def test_every_method_has_every_cohort_that_it_can_fit(page, measured, truths):
    impossible = script(FOLDER / "compare_peers.py").IMPOSSIBLE
    whole = measured.TABLE[measured.TABLE["part"] == "whole"].groupby(["method", "cohort"]).size()
    asked = {*product(measured.METHODS, set(truths.COHORTS) - {"small"})} - {*impossible}
    few = {(method, cohort) for method, cohort in asked if whole[method, cohort] < 2 - (cohort == measured.AUTHORS)}
    assert few == set()


def test_where_time_stopped_a_method_the_page_says_so(page):
    surreal, smile = page.rows_of("Surreal-GAN"), page.rows_of("Smile-GAN").set_index("seed")
    epochs = surreal["note"].map(page.amount) / 2  # two batches an epoch
    shorter = page.rows_of("Surreal-GAN", part="shorter").set_index("cohort")["concordance"]
    changes = [page.told(gain) for gain in surreal[epochs > 50_000].set_index("cohort")["concordance"] - shorter]
    least, most = (f"{round(count, -3):,.0f}" for count in epochs[epochs < 50_000].agg(["min", "max"]))
    first = smile["note"].map(page.amount).loc[0]
    assert f"Surreal-GAN had trained for {least} to {most} epochs" in SETTINGS
    assert not missing(
        PAGE,
        f"it ran for {round(epochs[epochs > 50_000].mean(), -3):,.0f}, which changed its concordance",
        f"changed its concordance by {' and '.join(changes)}",
        f"Surreal-GAN ran for {least} to {most} epochs",
        f"for {round(first.min(), -3):,.0f} to {round(first.max(), -3):,.0f} epochs in the",
    )


@pytest.fixture(scope="module")
def truths():
    return script(FOLDER / "truths.py")


def test_sequence_makes_lobes_abnormal_one_after_the_other(truths):
    cohort = truths.COHORTS["sequence"](0)
    controls, patients = cohort.regions[~cohort.patient], cohort.regions[cohort.patient]
    z = (patients - controls.mean(axis=0)) / controls.std(axis=0) @ cohort.lobes.T
    stage = cohort.truth.max(axis=1)
    early, late = stage < 0.2, stage > 0.8
    assert (z[late].mean(axis=0) < z[early].mean(axis=0) - 1).all()
    first, second = (z[early & (cohort.labels == number)].mean(axis=0) for number in range(2))
    assert np.abs(first - second).max() > 0.5  # the two orders differ
    assert (cohort.discrete, {*np.count_nonzero(cohort.truth, axis=1)}) == (True, {1})


def test_subtypes_have_one_pattern_at_one_strength_and_no_disease_has_none(truths):
    assert (np.sort(truths.COHORTS["subtypes"](0).truth, axis=1) == [0, 0, truths.STRENGTH]).all()
    assert not truths.COHORTS["no disease"](0).truth.any()


def test_own_methods_learn_from_those_trained_on_alone(truths, monkeypatch):
    for folder in (ROOT / "experiments", FOLDER):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "path", [*sys.path])
    methods = script(FOLDER / "own_methods.py")
    made = truths.simulated("basic", 0, n_controls=40, n_patients=60)
    train = np.arange(100) % 2 == 0
    given = {"regions": made.regions, "patient": made.patient, "train": train, "truth": made.truth, "seed": 0}
    changed = given | {"truth": np.where(train[made.patient][:, None], made.truth, 0.0)}
    for name in ("NMF", "opNMF", "PCA of z-scores", "regression told the truth"):
        own, other = (methods.METHODS[name](methods.Given(of))[0] for of in (given, changed))
        assert own.shape == made.truth.shape
        np.testing.assert_array_equal(own, other)
