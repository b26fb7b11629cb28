"""The paragraph for a paper says what summary.json says: each number of it shows."""

import re

import pytest

from rindices.pages.report import make_report
from tests.pages.made_run import add_analyses, add_visits, change_summary, make_run
from tests.pages.page import Page

CALIBRATED = {"method": "calibrated", "statistic": 0.931, "threshold": 0.612, "repetitions": 3}
REFITS = {"method": "refits", "statistic": 0.931, "p": 0.051, "n": 39, "repetitions": 3, "values": [0.52] * 39}
WEIGHTS = {"change": 8.25, "orthogonality": 0.33}
CORRECTION = {"smooth": ["years"], "interactions": [["sex", "icv"]], "proportion": "tiv", "site": "scanner"}
# What a summary is changed to, and what is then said.
CHANGES = [
    (
        {
            "unit": "mm³",
            "members_left_out": [{"member": 1, "reason": ""}] * 4,
            "members_used": 6,
            "repetitions": 33,
            "step": 12345,
            "seed": 99,
            "preset": "paper",
            "weights": WEIGHTS,
            "agreement": {"pattern_agreement": 0.777, "dimension_correlation": 0.6, "difference_correlation": None},
            "null": CALIBRATED | {"threshold": 0.999},
            "excluded": {"outlier": 5},
            "correction": CORRECTION | {"n_sites": 17},
            "covariates": ["years", "tiv", "scanner"],
            "clinical": ["updrs"],
            "subgroup_limits": [0.35, 0.75],
            "search": {"n_patterns": [2, 6], "orthogonality": [0.1, 0.3]},
            "versions": {"rindices": "9.9.9", "jax": "8.8.8"},
            "control_labels": ["HC"],
            "correlation": [[1.0, 0.5], [0.5, 1.0]],
        },
        [
            "in mm³",
            "repeated 33 times",
            "(seed 99)",
            "the mean of 6 of 33",
            "(4 diverged",
            "step 12,345",
            "“paper”",
            "change γ = 8.25, orthogonality λ = 0.33",
            "pattern agreement 0.777, dimension correlation 0.600 and difference correlation –",
            "agreement of 3 repetitions, 0.931, was not above 0.999",
            "5 were excluded (outlier: 5)",
            "between 17 sites (scanner)",
            "divided by tiv",
            "Effects of years and the interaction sex × icv",
            "with a spline for years",
            "related to updrs by",
            "below 0.35, between 0.35 and 0.75, and above 0.75",
            "chosen among 2 and 6",
            "Of the weights of orthogonality 0.1 and 0.3 the one",
            "rindices 9.9.9 (jax 8.8.8)",
            "controls (HC)",
            "Severities were allowed to be correlated",
        ],
    ),
    (
        {"null": REFITS, "correction": {"smooth": []}, "patterns_chosen_from_data": False, "visits": False},
        [
            "39 refits in which corrected measures were permuted over people (Freedman & Lane, 1983) (p = 0.051)",
            "2 patterns were asked for.",
            "The table had 229 people",
        ],
    ),
]


@pytest.fixture
def folder(tmp_path, undrawn):
    make_run(tmp_path, n_patterns=2, n_regions=12)
    add_analyses(tmp_path)
    add_visits(tmp_path)
    search = {"n_patterns": [2, 3, 4], "orthogonality": [0.2, 0.8]}
    change_summary(tmp_path, null=CALIBRATED, patterns_chosen_from_data=True, search=search, correlation=None)
    return tmp_path


def quoted(folder):
    """Return the paragraph and its references."""
    text = re.search(r'id="methods-text">(.*?)</div>', make_report(folder).html, flags=re.DOTALL)[1]
    return Page(text).words


def test_each_fact_changes_the_paragraph(folder):
    before = quoted(folder)
    for changes, expected in CHANGES:
        change_summary(folder, **changes)
        after = quoted(folder)
        assert [words for words in expected if words in before] == []
        assert [words for words in expected if words not in after] == []


def test_the_paragraph_says_what_was_analysed_and_only_what_was_used_is_cited(folder):
    sentences = {
        "subgroup_sizes": "the comparison is circular: it describes the patterns and does not test them",
        "change_summary": "of each group by itself, and compared as in Welch's t test. A person's change was called",
    }
    whole = quoted(folder)
    assert all(sentence in whole for sentence in sentences.values())
    assert whole.count("Pomponio") == whole.count("Benjamini Y") + 1 == 2
    for name in [*sentences, "associations"]:
        (folder / "analysis" / f"{name}.csv").unlink()
    run_toml = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(run_toml + "max_steps = 4321\n")
    change_summary(folder, correction={"smooth": ["age"]})
    less = quoted(folder)
    assert "for at most 4,321 steps" in less
    assert [words for words in (*sentences.values(), "Pomponio", "Johnson", "Benjamini") if words in less] == []
