"""What docs/peers.md says is measured in results/peers.csv; its cohorts are what the page says."""

import importlib.util
import re
import sys

import numpy as np
import pytest

from tests.docs.pages import ROOT

FOLDER = ROOT / "benchmarks" / "peers"
PAGE = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    return script("peers_page")


def test_tables_and_findings_are_those_of_the_measurements(page):
    assert page.filled(PAGE) == PAGE


def test_measurements_bear_out_what_the_page_says(page):
    claims = [*page.findings(), *(claim for _, claim in page.answers().values())]
    assert [claim.text for claim in claims if not claim.holds] == []
    assert len(claims) >= 12


def test_a_claim_fails_where_measurements_say_otherwise(page, monkeypatch):
    sequence = page.TABLE["cohort"].str.startswith("sequence") & (page.TABLE["method"] == page.OURS)
    better = page.TABLE.assign(concordance=page.TABLE["concordance"].mask(sequence, 0.99))
    monkeypatch.setattr(page, "TABLE", better)
    assert [claim.text[:30] for claim in page.findings() if not claim.holds] == ["**Where the truth is a sequenc"]


def test_every_method_has_every_cohort_that_it_can_fit(page, truths, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    impossible = script("compare_peers").IMPOSSIBLE
    whole = page.TABLE[page.TABLE["part"] == "whole"].groupby(["method", "cohort"]).size()
    for method in page.METHODS:
        for cohort in set(truths.COHORTS) - {"small"}:
            enough = 1 if cohort == page.AUTHORS else 2
            assert (method, cohort) in impossible or whole[method, cohort] >= enough, (method, cohort)


def test_where_time_stopped_a_method_the_page_says_so(page):
    surreal, smile = (page.rows_of(name)["note"].map(page.amount) for name in ("Surreal-GAN", "Smile-GAN"))
    epochs = [round(steps / 2, -3) for steps in (surreal.min(), surreal.max())]  # two batches an epoch
    assert f"Surreal-GAN then had {epochs[0]:,.0f} to {epochs[1]:,.0f} epochs" in PAGE
    assert f"Smile-GAN had about {round(smile.mean(), -2):,.0f}" in PAGE
    assert smile.max() < 6000
    for method, said in (("HYDRA", "one repetition"), ("SuStaIn", "five starts")):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {method} ("))
        assert said in row.split(" | ")[2]
    notes = page.rows_of("HYDRA")["note"], page.rows_of("SuStaIn")["note"]
    assert [set(own) for own in notes] == [{"1 of 100 repetitions"}, {"5 starts, no sampling"}]


def test_the_figure_fits_the_page_and_its_text_can_be_read():
    drawn = (ROOT / "docs" / "pictures" / "peers.svg").read_text(encoding="utf-8")
    points = float(re.search(r'width="([\d.]+)pt"', drawn)[1])
    assert points * 4 / 3 <= 700
    sizes = {float(size) for size in re.findall(r"font(?:-size)?: *([\d.]+)", drawn)}
    assert sizes
    assert min(sizes) * 4 / 3 >= 10


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
    cohort = truths.COHORTS["subtypes"](0)
    assert (np.sort(cohort.truth, axis=1) == [0, 0, truths.STRENGTH]).all()
    assert not truths.COHORTS["no disease"](0).truth.any()


def test_own_methods_learn_from_those_trained_on_alone(truths, monkeypatch):
    for folder in (ROOT / "experiments", FOLDER):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "path", [*sys.path])
    methods = script("own_methods")
    made = truths.simulated("basic", 0, n_controls=40, n_patients=60)
    train = np.arange(100) % 2 == 0
    given = {"regions": made.regions, "patient": made.patient, "train": train, "truth": made.truth, "seed": 0}
    changed = given | {"truth": np.where(train[made.patient][:, None], made.truth, 0.0)}
    for name in ("NMF", "opNMF", "PCA of z-scores", "regression told the truth"):
        scores = [methods.METHODS[name](methods.Given(of))[0] for of in (given, changed)]
        assert scores[0].shape == made.truth.shape
        assert (scores[0] == scores[1]).all()
