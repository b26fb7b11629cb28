"""Numbers of the tutorial on schizophrenia are those of its tables; the contrast is computed again from the data."""

import importlib.util
import os
from pathlib import Path

import pandas as pd
import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "tutorials" / "schizophrenia.md").read_text(encoding="utf-8")
RESULTS = ROOT / "results"
DATA = Path(os.environ.get("RINDICES_DATA", "none")) / "schizophrenia" / "nimh_one_table.csv"
WHEN = {"visit 1": "first visit", "visit 2": "second visit", "change": "change"}
TABLES = {
    "averaged": "left and right averaged",
    "averaged_matched": "the same, matched for sex",
    "both_sides": "both sides",
}


def number(value):
    return f"{value:.2f}".replace("-", "−")


def rows_of(contrast):
    for row in contrast.itertuples():
        numbers = f"{row.controls} | {row.patients} | {number(row.d)} | {number(row.low)} to {number(row.high)}"
        yield f"| {row.people} | {WHEN[row.what]} | {numbers} |"


def test_contrast_is_that_of_the_table():
    for line in rows_of(pd.read_csv(RESULTS / "schizophrenia_contrast.csv")):
        assert line in PAGE


def test_verdicts_are_those_of_the_table():
    for row in pd.read_csv(RESULTS / "schizophrenia_verdicts.csv").itertuples():
        evidence = f"{row.p} | {row.p_spread:.2f} | {row.p_shift} | {row.auc:.2f} | {row.halves:.2f}"
        sizes = f"{row.controls} | {row.patients} | {row.regions}"
        assert f"| {TABLES[row.table]} | {sizes} | {evidence} | {row.verdict} |" in PAGE


def test_changes_and_resemblances_are_those_of_the_tables():
    change = pd.read_csv(RESULTS / "schizophrenia_change.csv")
    own = change[change["group"] == "patients less controls"]
    assert len(own) == 6
    assert (own["q"] < 0.05).sum() == 1
    alike = pd.read_csv(RESULTS / "schizophrenia_resemblance.csv").set_index(["table", "pattern", "disorder"])
    for key, r, p in (
        (("averaged", 2, "ADHD"), "0.56", 0.010),
        (("averaged_matched", 2, "schizophrenia"), "0.43", 0.042),
    ):
        assert f"{alike.loc[key, 'r']:.2f}" == r
        assert alike.loc[key, "p_corrected"] == pytest.approx(p, abs=0.0006)
        assert r in PAGE


@pytest.mark.skipif(not DATA.is_file(), reason="the published table is not here: set RINDICES_DATA")
def test_contrast_is_that_of_the_published_table():
    spec = importlib.util.spec_from_file_location("schizophrenia", ROOT / "experiments" / "schizophrenia.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    table, regions = script.people_of(DATA)
    assert len(regions) == 148
    rows = [*script.contrast(table, "everybody"), *script.contrast(script.matched(table), "matched for sex")]
    for line in rows_of(pd.DataFrame(rows)):
        assert line in PAGE
