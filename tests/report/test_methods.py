"""The paragraph for a paper says what summary.json says: each number of it shows."""

import copy
import json
from dataclasses import replace

import pytest
from rindices.report.methods import methods_section
from rindices.report.read import read_run

from tests.report.made_run import add_analyses, add_visits, change_summary, make_run

CALIBRATED = {"method": "calibrated", "statistic": 0.931, "threshold": 0.612, "repetitions": 3}
REFITS = {"method": "refits", "statistic": 0.931, "p": 0.051, "n": 19, "repetitions": 3, "values": [0.52] * 19}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    make_run(folder, n_patterns=2, n_regions=12)
    add_analyses(folder)
    add_visits(folder)
    search = {"n_patterns": [2, 3, 4], "orthogonality": [0.2, 0.8]}
    change_summary(folder, null=CALIBRATED, patterns_chosen_from_data=True, search=search, correlation=None)
    return read_run(folder, json.loads((folder / "summary.json").read_text()))


def with_value(results, path, value):
    summary = copy.deepcopy(results.summary)
    place = summary
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    return methods_section(replace(results, summary=summary))


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        (["n_controls"], 4321, "4,321 controls"),
        (["n_patients"], 8765, "8,765 patients"),
        (["n_other"], 77, "77 other people"),
        (["n_features"], 145, "145 regional measures"),
        (["unit"], "mm³", "in mm³"),
        (["n_patterns"], 7, "The number of patterns, 7,"),
        (["repetitions"], 33, "repeated 33 times"),
        (["members_used"], 6, "the mean of 6 of 10"),
        (["members_left_out"], [{"member": 1, "reason": ""}] * 4, "(4 diverged"),
        (["step"], 12345, "step 12,345"),
        (["seed"], 99, "(seed 99)"),
        (["preset"], "paper", "“paper”"),
        (["weights", "change"], 8.25, "change γ = 8.25"),
        (["weights", "orthogonality"], 0.33, "orthogonality λ = 0.33"),
        (["agreement", "pattern_agreement"], 0.777, "pattern agreement 0.777"),
        (["agreement", "dimension_correlation"], 0.666, "dimension correlation 0.666"),
        (["agreement", "difference_correlation"], 0.555, "difference correlation 0.555"),
        (["null", "statistic"], 0.888, "0.888, was above"),
        (["null", "threshold"], 0.999, "was not above 0.999"),
        (["null", "repetitions"], 5, "agreement of 5 repetitions"),
        (["null"], REFITS, "permuted over people (Freedman & Lane, 1983) (p = 0.051)"),
        (["null"], {**REFITS, "n": 39}, "39 refits"),
        (["null"], {**REFITS, "p": 0.0001}, "(p < 0.001)"),
        (["n_read"], 500, "The table had 500 scans"),
        (["excluded", "outlier"], 40, "43 were excluded (missing region: 3; outlier: 40)"),
        (["correction", "n_sites"], 17, "between 17 sites"),
        (["correction", "site"], "scanner", "(scanner)"),
        (["correction", "smooth"], ["years"], "with a spline for years"),
        (["correction", "interactions"], [["sex", "icv"]], "the interaction sex × icv"),
        (["correction", "proportion"], "tiv", "divided by tiv"),
        (["covariates"], ["age"], "Effects of age and the interaction"),
        (["clinical"], ["updrs"], "related to updrs by"),
        (["subgroup_limits"], [0.35, 0.75], "below 0.35, between 0.35 and 0.75, and above 0.75"),
        (["search", "n_patterns"], [2, 6], "chosen among 2 and 6"),
        (["search", "orthogonality"], [0.1, 0.3], "chosen among 0.1 and 0.3"),
        (["patterns_chosen_from_data"], False, "2 patterns were asked for."),
        (["versions", "rindices"], "9.9.9", "rindices 9.9.9"),
        (["versions", "jax"], "8.8.8", "jax 8.8.8"),
        (["control_labels"], ["HC"], "controls (HC)"),
        (["patient_labels"], ["PD"], "patients (PD)"),
        (["correlation"], [[1.0, 0.5], [0.5, 1.0]], "Severities were allowed to be correlated"),
    ],
)
def test_each_fact_changes_the_paragraph(results, path, value, shown):
    assert shown not in methods_section(results).paragraph
    assert shown in with_value(results, path, value).paragraph


def test_the_paragraph_says_that_subgroups_are_circular_and_whose_change_counts(results):
    whole = methods_section(results).paragraph
    sentences = {
        "subgroup_sizes": "the comparison is circular: it describes the patterns and does not test them",
        "change_summary": "people whose visits span half a year or more count in the means. Change in patients and in "
        "controls was compared by Welch's t test.",
    }
    for name, sentence in sentences.items():
        assert sentence in whole
        less = replace(results, analyses=replace(results.analyses, **{name: None}))
        assert sentence not in methods_section(less).paragraph


def test_steps_come_from_run_toml(results):
    settings = {"": False, "[training]\nmax_steps = 4321\n": True, "not toml [": False}
    for text, there in settings.items():
        paragraph = methods_section(replace(results, settings=text)).paragraph
        assert ("for at most 4,321 steps" in paragraph) is there
        assert ("at most" in paragraph) is there


@pytest.mark.parametrize(
    ("path", "value", "gone"),
    [
        (["correction"], None, ["Johnson", "Fortin", "Pomponio"]),
        (["correction", "site"], None, ["Johnson", "Fortin", "Pomponio"]),
        (["correction", "smooth"], [], ["Pomponio"]),
    ],
)
def test_only_what_was_used_is_cited(results, path, value, gone):
    whole, less = methods_section(results), with_value(results, path, value)
    assert len(whole.references) == 5
    names = {reference.split()[0] for reference in set(whole.references) - set(less.references)}
    assert names == set(gone)
    assert not any(name in less.paragraph for name in gone)


def test_nothing_known_is_nothing_said(tmp_path):
    make_run(tmp_path, n_patterns=1, n_regions=5)
    summary = json.loads((tmp_path / "summary.json").read_text())
    kept = (
        "status",
        "n_controls",
        "n_patients",
        "n_features",
        "n_patterns",
        "patterns_chosen_from_data",
        "repetitions",
    )
    paragraph = methods_section(read_run(tmp_path, {name: summary[name] for name in kept})).paragraph
    assert "1 pattern was asked for." in paragraph
    for word in ("None", "seed", "Benjamini", "ComBat", "excluded", "rindices"):
        assert word not in paragraph
