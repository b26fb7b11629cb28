"""The paragraph for a paper says what summary.json says, and ids are in the page only if they were asked for."""

import json
import re

import pandas as pd
import pytest

from rindices.pages.report import make_report, write_report
from rindices.problems import Curtain
from tests.pages.made_run import (
    FOUND,
    NOTHING,
    add_analyses,
    add_truth,
    add_visits,
    balance_row,
    change_summary,
    make_run,
    rewrite,
)
from tests.pages.page import Page, missing

# The paragraph for a paper says what summary.json says


WEIGHTS = {"change": 8.25, "orthogonality": 0.33}
CORRECTION = {"smooth": ["years"], "interactions": [["sex", "icv"]], "proportion": "tiv", "site": "scanner"}
# Changes to a summary, and what the paragraph then says and does not say.
CHANGES = [
    (
        {
            "unit": "mm³",
            "members_left_out": [
                {"member": number, "reason": reason}
                for number, reason in enumerate(
                    ["collapsed", "disagrees with the others (0.6)", "collapsed", "diverged"]
                )
            ],
            "members_used": 6,
            "repetitions": 33,
            "step": 12345,
            "seed": 99,
            "preset": "paper",
            "weights": WEIGHTS,
            "agreement": {"pattern_agreement": 0.777, "dimension_correlation": 0.6, "difference_correlation": None},
            "evidence": FOUND | {"p": 0.015, "halves": 0.812, "halves_chance": 0.567},
            "excluded": {"outlier": 5},
            "correction": CORRECTION | {"n_sites": 17},
            "covariates": ["years", "tiv", "scanner"],
            "clinical": ["updrs"],
            "subgroup_limits": [0.35, 0.75],
            "search": {"n_patterns": [2, 6], "orthogonality": [0.1, 0.3], "basis": "fit"},
            "versions": {"rindices": "9.9.9", "jax": "8.8.8"},
            "control_labels": ["HC"],
            "correlation": [[1.0, 0.5], [0.5, 1.0]],
        },
        [
            "in mm³",
            "repeated 33 times",
            "(seed 99)",
            "averaged over 6 of 33",
            "(excluded: 1 diverged, 2 collapsed, 1 disagreed with the others), after 12,345 training steps",
            "“paper”",
            "change γ = 8.25, orthogonality λ = 0.33",
            "pattern agreement of 0.777, a dimension correlation of 0.600 and a difference correlation of –",
            "the largest eigenvalue of the patients' covariance relative to the controls'",
            "199 permutations of people within sites, with site means and covariates removed in each group (joint p",
            "disjoint halves of the sample ranked in the same order was 0.812",
            "5 were excluded (outlier: 5)",
            "between 17 sites (scanner)",
            "divided by tiv",
            "The effects of years and of the interaction sex × icv",
            "with a spline for years",
            "Associations of severities with updrs were tested by",
            "below 0.35, between 0.35 and 0.75, or above 0.75",
            "chosen from 2 and 6 by the squared distance between the covariances of synthesised and observed patients",
            "Of the orthogonality weights 0.1 and 0.3, the one",
            "rindices 9.9.9 (jax 8.8.8)",
            "controls (HC)",
            "Severities were allowed to be correlated",
        ],
        [],
    ),
    (
        {
            "evidence": NOTHING,
            "correction": {"smooth": []},
            "search": {"basis": "given"},
            "visits": False,
            "excluded": {"outlier": 1},
        },
        [
            "1 was excluded (outlier: 1)",
            "199 permutations of rows orthogonal to the covariates (Huh & Jhun, 2001) (joint p = 0.410)",
            "Random permutation testing in multiple linear regression",
            "The number of patterns, 2, was specified in advance.",
            "The table contained 229 people",
        ],
        [],
    ),
    (
        {"verdict": "confounded", "balance": [balance_row("age", "number", 1.1, 0.001, True)]},
        ["The groups also differ in age, and the patterns may reflect this difference (verdict: confounded)."],
        [],
    ),
    (
        {"preset": "fast", "weights": {"change": 9.0, "prior": 300.0}},
        [
            "change γ = 9, prior = 300. Training was repeated 10 times with different random seeds (seed 0). Each "
            "repetition started from a linear model fitted to four fifths of the controls and nine tenths of the "
            "patients. A prior kept the generator f close to this model, and the R-index is the mean of the values "
            "obtained from the networks and from the linear model."
        ],
        ["linear models, without networks"],
    ),
    (
        {"preset": "fast", "weights": {"prior": 300.0}, "linear_makes_people": True},
        [
            "Because the generator f changed brains even at severity 0, severities, their intervals and the maps of "
            "the patterns were derived from the linear models."
        ],
        ["linear models, without networks"],
    ),
    (
        {"preset": "linear", "weights": {"change": 9.0, "prior": 300.0}},
        [
            "were learned by 10 linear models, without networks (the “linear” preset of rindices), each "
            "fitted to four fifths of the controls and nine tenths of the patients (seed 0)."
        ],
        ["Surreal-GAN"],
    ),
    (
        {"preset": "blind", "weights": {"change": 9.0, "prior": 0.0}},
        ["“blind” preset and the loss weights change γ = 9. Training was repeated"],
        ["linear model"],
    ),
    (
        {"patterns_chosen_from_data": True, "search": {"n_patterns": [2], "basis": "counted"}},
        [
            "The number of patterns was estimated before training: held-out patients varied more than held-out "
            "controls in "
        ],
        ["was chosen from"],
    ),
    (
        {"search": {"n_patterns": [1, 2], "basis": "unsupported"}, "verdict": "no difference", "reliable": False},
        [
            "The data did not support any number of patterns; models with 1 and 2 patterns were trained, "
            "and those with 2 are reported for completeness. The patterns were not found to be reproducible (verdict: "
            "no difference) and are not interpreted."
        ],
        ["covariances of synthesised and observed patients"],
    ),
    (
        {"search": {"n_patterns": [2, 3], "basis": "fit"}},
        ["The number of patterns, 2, was chosen from 2 and 3 by the squared distance between the covariances of"],
        ["not interpreted"],
    ),
    (
        {"search": {"n_patterns": [2, 3], "basis": "agreement"}},
        ["The number of patterns, 2, was chosen from 2 and 3 by the agreement of repeated training runs alone."],
        ["covariances of synthesised and observed patients"],
    ),
]


@pytest.fixture
def folder(tmp_path, undrawn):
    make_run(tmp_path, n_patterns=2, n_regions=12)
    add_analyses(tmp_path)
    add_visits(tmp_path)
    search = {"n_patterns": [2, 3, 4], "orthogonality": [0.2, 0.8], "basis": "fit"}
    change_summary(tmp_path, evidence=None, patterns_chosen_from_data=True, search=search, correlation=None)
    return tmp_path


def quoted(folder):
    """Return the paragraph and its references."""
    return Page(re.search(r'id="methods-text">(.*?)</div>', make_report(folder).html, flags=re.DOTALL)[1]).words


@pytest.mark.parametrize(("changes", "expected", "unsaid"), CHANGES)
def test_each_fact_changes_the_paragraph(folder, changes, expected, unsaid):
    before = quoted(folder)
    change_summary(folder, **changes)
    assert missing(before, *expected) == expected
    assert missing(quoted(folder), *expected, *unsaid) == unsaid


def test_the_paragraph_says_what_was_analysed_and_only_what_was_used_is_cited(folder):
    sentences = {
        "subgroup_sizes": "the comparison is circular: it describes the patterns but does not test them",
        "group_effects": "Patients were compared with controls in each region (Cohen's d",
        "change_summary": "Welch's t test. The 90 % interval of a person's change contains the true changes",
    }
    whole = quoted(folder)
    assert not missing(whole, *sentences.values())
    assert [whole.count(name) for name in ("Pomponio", "Benjamini Y")] == [2, 1]
    for name in [*sentences, "associations"]:
        (folder / "analysis" / f"{name}.csv").unlink()
    (folder / "run.toml").write_text((folder / "run.toml").read_text() + "max_steps = 4321\n")
    change_summary(folder, correction={"smooth": ["age"]})
    unsaid = [*sentences.values(), "Pomponio", "Johnson", "Benjamini"]
    assert missing(quoted(folder), "for at most 4,321 steps", *unsaid) == unsaid


# Ids are in the page only if they were asked for


@pytest.fixture
def named(tmp_path):
    """A run whose tables have an id for everybody that occurs nowhere else."""
    folder = tmp_path / "run"
    add_truth(folder, make_run(folder, n_patterns=2))
    add_analyses(folder)
    add_visits(folder)
    for path in folder.rglob("*.csv"):
        if "participant_id" in pd.read_csv(path):
            rewrite(path, participant_id=lambda of: "QX" + of["participant_id"].str.removeprefix("sub-") + "Z")
    rewrite(folder / "r_indices.csv", flags="like QX0041Z (participant QX0042Z)")
    change_summary(
        folder,
        source="/data/QX0007Z/table.csv",
        warnings=["Row 3 (participant QX0003Z) is odd.", "QX0004Z, too."],
        reliable_reason="Because of QX0005Z.",
    )
    run_toml = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(run_toml.replace("volumes.csv", "/data/QX0006Z_x/QX0008Z.csv"))
    return folder


def reported(folder, **options):
    """Return the page and the data of its explorer."""
    text = write_report(folder, **options).read_text(encoding="utf-8")
    return text, json.loads(re.search(r'id="people-data">(.*?)</script>', text)[1])


def test_no_id_is_in_the_page(named):
    text, data = reported(named)
    assert not re.findall(r"QX\w+", text)
    assert not missing(text, "Row 3 is odd.", "/data/[id]/table.csv")
    people = data["people"]
    assert {name for person in people for name in person} == {"group", "site", "visits", "change"}
    groups = [person["group"] for person in people]
    assert (len(groups), groups) == (112, sorted(groups, reverse=True))  # not in the order of the table
    first = [person["visits"][0]["r"][0] for person in people if person["group"] == "patient"]
    assert first == sorted(first, reverse=True)
    visits = [visit for person in people for visit in person["visits"]]
    assert {(visit["flags"], "visit" in visit) for visit in visits} == {("like [id]", False)}
    assert {len(visit.get("drivers", [[]])[0]) for visit in visits} <= {0, 3 * 6}


def test_ids_are_there_when_asked_for(named, undrawn):
    text, data = reported(named, show_ids=True)
    assert (len(data["people"]), [visit["visit"] for visit in data["people"][0]["visits"]]) == (112, ["bl", "m12"])
    assert "Row 3 (participant QX0003Z) is odd." in text


def test_a_severity_that_is_missing_is_not_higher_than_those_of_controls(named):
    rewrite(named / "r_indices.csv", severity1=lambda of: of["severity1"].where(of["first_visit"]))
    table = pd.read_csv(named / "r_indices.csv")
    table.filter(regex="^(?!centile)").to_csv(named / "r_indices.csv", index=False)
    later = [person["visits"][1] for person in reported(named)[1]["people"]]
    assert {(visit["r"][0], visit["above"][0]) for visit in later} == {(None, None)}
    assert {type(visit["above"][1]) for visit in later} == {float}


@pytest.mark.parametrize(
    ("ids", "text", "expected"),
    [
        (["sub-1"], "sub-1, sub-12, xsub-1", "[id], sub-12, xsub-1"),
        (["sub-1", "sub-1-a"], "sub-1-a/sub-1", "[id]/[id]"),
        (["12"], "seed = 12 (participant 12)", "seed = 12"),
        (["123456"], "path/123456.csv", "path/[id].csv"),
        (["(x)"], "a(x)b", "a[id]b"),
        (["", " "], "a b", "a b"),
    ],
)
def test_curtain(ids, text, expected):
    assert (Curtain(ids)(text), Curtain(ids, active=False)(text)) == (expected, text)
