"""Statements of docs/peers.md are those of results/peers.csv, and no method learned from held-out people."""

import sys

import numpy as np
import pytest

from tests.docs.pages import ROOT, script
from tests.pages.page import missing

FOLDER = ROOT / "benchmarks" / "peers"
PAGE = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
MEASURED = script(FOLDER / "peers_findings.py")


@pytest.fixture
def imported(monkeypatch):
    """Return a function that imports a script of the folder that imports others."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(ROOT / "experiments"), *sys.path])
    return lambda name: script(FOLDER / name)


def test_tables_and_findings_are_those_of_the_measurements(imported):
    assert imported("peers_page.py").filled(PAGE) == PAGE


def test_measurements_bear_out_what_the_page_says():
    claims = [*MEASURED.findings(), *(claim for _, claim in MEASURED.answers().values())]
    assert ([claim.text for claim in claims if not claim.holds], len(claims) >= 12) == ([], True)


def test_readme_has_the_measured_numbers():
    ours, surreal, hydra, nmf = (
        MEASURED.told(np.mean([MEASURED.cell(name, kind) for kind in MEASURED.KINDS]))
        for name in (MEASURED.OURS, MEASURED.SURREAL, MEASURED.HYDRA, MEASURED.NMF)
    )
    labels = MEASURED.found(MEASURED.OURS, "subtypes", column="ari"), MEASURED.told(MEASURED.best_subtypes()[1])
    stages = [MEASURED.found(name, "sequence") for name in (MEASURED.SUSTAIN, MEASURED.OURS)]
    assert not missing(
        (ROOT / "README.md").read_text(encoding="utf-8"),
        f"is {ours} for rindices, {surreal} for Surreal-GAN, {hydra} for HYDRA and {nmf} for NMF",
        f"is {labels[0]} for rindices and at most {labels[1]} for other methods",
        f"({stages[0]}, compared with {stages[1]} for rindices)",
    )


def test_own_methods_learn_from_those_trained_on_alone(imported):
    methods = imported("own_methods.py")
    made = script(FOLDER / "truths.py").simulated("basic", 0, n_controls=40, n_patients=60)
    train = np.arange(100) % 2 == 0
    given = {"regions": made.regions, "patient": made.patient, "train": train, "truth": made.truth, "seed": 0}
    changed = given | {"truth": np.where(train[made.patient][:, None], made.truth, 0.0)}
    for name in ("NMF", "opNMF", "PCA of z-scores", "regression told the truth"):
        own, other = (methods.METHODS[name](methods.Given(of))[0] for of in (given, changed))
        np.testing.assert_array_equal(own, other, name)
