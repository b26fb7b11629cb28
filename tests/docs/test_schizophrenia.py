"""Numbers of the tutorial on schizophrenia are those of its tables; the contrast is computed again from the data."""

import importlib.util
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from rindices.run.first_look_and_power import chances
from tests.docs.pages import ROOT, missing

PAGE = (ROOT / "docs" / "tutorials" / "schizophrenia.md").read_text(encoding="utf-8")
RESULTS = ROOT / "results"
DATA = Path(os.environ.get("RINDICES_DATA", "none")) / "schizophrenia" / "nimh_one_table.csv"
RUNS = Path(os.environ.get("RINDICES_SCHIZOPHRENIA", "none"))
WHEN = {"visit 1": "first visit", "visit 2": "second visit", "change": "change"}
TABLES = {
    "averaged": "left and right averaged",
    "averaged_matched": "the same, matched for sex",
    "both_sides": "both sides",
}


def _script():
    spec = importlib.util.spec_from_file_location("schizophrenia", ROOT / "experiments" / "schizophrenia.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


SCRIPT = _script()


def number(value):
    return f"{value:.2f}".replace("-", "−")


def rows_of(contrast):
    for row in contrast.itertuples():
        numbers = f"{row.controls} | {row.patients} | {number(row.d)} | {number(row.low)} to {number(row.high)}"
        yield f"| {row.people} | {WHEN[row.what]} | {numbers} |"


def test_contrast_is_that_of_the_table():
    assert missing(PAGE, *rows_of(pd.read_csv(RESULTS / "schizophrenia_contrast.csv"))) == []


def test_verdicts_are_those_of_the_table():
    for row in pd.read_csv(RESULTS / "schizophrenia_verdicts.csv").itertuples():
        evidence = f"{row.p} | {row.p_spread:.2f} | {row.p_shift} | {row.auc:.2f} | {row.halves:.2f}"
        sizes = f"{row.controls} | {row.patients} | {row.regions}"
        assert f"| {TABLES[row.table]} | {sizes} | {evidence} | {row.verdict} |" in PAGE


def test_changes_and_resemblances_are_those_of_the_tables():
    change = pd.read_csv(RESULTS / "schizophrenia_change.csv")
    own = change[change["group"] == "patients minus controls"]
    assert (len(own), (own["q"] < 0.05).sum()) == (6, 1)
    alike = pd.read_csv(RESULTS / "schizophrenia_resemblance.csv").set_index(["table", "pattern", "disorder"])
    for key, r, p in (
        (("averaged", 2, "ADHD"), "0.56", 0.010),
        (("averaged_matched", 2, "schizophrenia"), "0.43", 0.042),
    ):
        assert (f"{alike.loc[key, 'r']:.2f}", alike.loc[key, "p_corrected"]) == (r, pytest.approx(p, abs=0.0006))
        assert r in PAGE


def share(value):
    return f"{100 * value:.0f} %"


def test_sentences_on_groups_and_regions_are_those_of_the_tables():
    groups = pd.read_csv(RESULTS / "schizophrenia_background.csv").set_index("people")
    everybody = groups.loc["everybody"]
    sexes = f"({share(everybody.sex_controls)} of the controls and {share(everybody.sex_patients)} of the patients"
    assert missing(PAGE, sexes, f"head sizes differ by {everybody.icv_d:.2f} sd") == []
    near = groups.loc["matched for sex and head size"]
    assert near.sex_controls == near.sex_patients
    assert abs(near.icv_d) < 0.05
    regions = pd.read_csv(RESULTS / "schizophrenia_regions.csv").set_index("region")
    sure = regions[regions["q"] < 0.05]
    assert f"{len(sure)} of {len(regions)} are thinner in patients" in PAGE
    assert (sure["effect"] < 0).all()
    assert regions["effect"].idxmin() == "lh_S_circular_insula_sup_thickness"
    assert f"insula (d = {number(regions['effect'].min())})" in PAGE
    stated = [name for name in regions.index if name[3:].removesuffix("_thickness") in SCRIPT.FRONTO_INSULAR]
    assert f"{len(sure.index.intersection(stated))} of the {len(stated)} regions in the contrast" in PAGE


def test_sentences_on_verdicts_are_those_of_the_table():
    verdicts = pd.read_csv(RESULTS / "schizophrenia_verdicts.csv")
    assert {*verdicts["p"], *verdicts["p_shift"]} == {0.005}
    assert f"p for spread {verdicts['p_spread'].min():.2f} or more" in PAGE
    halves = verdicts["halves"]
    assert f"agreement {halves.min():.2f} to {halves.max():.2f}" in PAGE
    change = pd.read_csv(RESULTS / "schizophrenia_change.csv")
    own = change[(change["group"] == "patients minus controls") & (change["q"] < 0.05)]
    assert own["table"].tolist() == ["averaged"]  # and not of the same table matched for sex


def test_numbers_of_people_needed_are_those_of_the_planning_table():
    def found(n_controls, n_patients, strength):
        table = chances(n_controls, n_patients, 74).set_index(["patterns", "strength"])["chance"]
        return share(table[1, strength]), share(table[2, strength])

    one, two = found(67, 98, 1.0)
    assert f"in {one} of such studies if there is one and in {two} if there are two" in PAGE
    assert "with 160 people in each group, the proportions are {} and {}.".format(*found(160, 160, 1.0)) in PAGE
    assert "Patterns of 0.5 sd are found in {} and {} of studies of this size".format(*found(67, 98, 0.5)) in PAGE
    assert "with 320 people in each group, in {} and {}.".format(*found(320, 320, 0.5)) in PAGE


@pytest.mark.skipif(not DATA.is_file(), reason="the published table is not here: set RINDICES_DATA")
def test_tables_of_groups_are_those_of_the_published_table():
    table, regions = SCRIPT.people_of(DATA)
    assert len(regions) == 148
    ages = table.pivot(index="participant_id", columns="session", values="age")
    assert f"{(ages[2] - ages[1]).mean():.1f} years apart" in PAGE
    people = {
        "everybody": table,
        "matched for sex": SCRIPT.matched(table),
        "matched for sex and head size": SCRIPT.paired(table),
    }
    for line in rows_of(pd.DataFrame([row for who, own in people.items() for row in SCRIPT.contrast(own, who)])):
        assert line in PAGE
    for name, made in (("background", SCRIPT.background(people)), ("regions", SCRIPT.of_regions(table, regions))):
        stored = pd.read_csv(RESULTS / f"schizophrenia_{name}.csv")
        pd.testing.assert_frame_equal(made.round(4), stored, check_dtype=False, atol=2e-4)


@pytest.mark.skipif(not RUNS.is_dir(), reason="the runs of the script are not here: set RINDICES_SCHIZOPHRENIA")
def test_verdicts_are_those_of_the_runs():
    for row in pd.read_csv(RESULTS / "schizophrenia_verdicts.csv").itertuples():
        summary = json.loads((RUNS / row.table / "summary.json").read_text(encoding="utf-8"))
        evidence = summary["evidence"]
        assert (summary["verdict"], summary["n_features"]) == (row.verdict, row.regions)
        assert [evidence[name] for name in ("p", "p_spread", "p_shift", "halves")] == pytest.approx(
            [row.p, row.p_spread, row.p_shift, row.halves], abs=1e-4
        )
