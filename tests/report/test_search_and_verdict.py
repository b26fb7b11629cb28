"""The sections on the search, the verdict and the learned correlation."""

import json

import numpy as np
import pytest

from rindices.report import write_report
from tests.report.made_run import CALIBRATED, REFITS, add_settings, balance_row, change_summary, make_run
from tests.report.page import SECTIONS, Page, report_of, rows_of


def test_agreement_at_the_chosen_step_has_its_interval(run, undrawn):
    rows = rows_of(write_report(run).read_text(encoding="utf-8"), "Agreement at the chosen step 20,000")
    value = 0.52 + 0.44 * (1 - np.exp(-20000 / 6000))
    assert rows[0] == ["Pattern agreement", f"{value:.3f}", f"{value - 0.02:.3f}–{value + 0.02:.3f}"]


@pytest.fixture
def searched(run):
    add_settings(run, [(2, 0.8, 10, 0.91), (4, 0.8, 3, 0.85), (1, 0.8, 10, 0.98), (2, 0.2, 9, 0.6)])
    runner_up = {"n_patterns": 2, "orthogonality": 0.8, "pattern_agreement": 0.91, "n_models": 10}
    search = {"n_patterns": [1, 2, 3, 4], "orthogonality": [0.2, 0.8], "exhaustive": False}
    search |= {"first_stage_repetitions": 3, "models_trained": 1057, "models_exhaustive": 2120}
    change_summary(run, search={**search, "runners_up": [runner_up], "reason": "It agrees best & most clearly."})
    return run


def test_search_lists_settings_best_first(searched, undrawn):
    text = write_report(searched).read_text(encoding="utf-8")
    page = Page(text)
    headings = [heading for level, heading in page.headings if level == 2]
    assert headings == ["In short", "How many patterns?", *SECTIONS[1:]]
    assert "It agrees best & most clearly." in page.words
    assert "Runner-up: 2 patterns with orthogonality 0.8 (pattern agreement 0.910, 10 models)." in page.words
    assert "1,057 models were trained" in page.words
    assert "would have been 2,120" in page.words
    rows = rows_of(text, "Agreement of each setting, best first; one pattern last")
    assert [row[:4] for row in rows] == [
        ["3", "0.8", "chosen", "10"],
        ["2", "0.8", "runner-up", "10"],
        ["4", "0.8", "dropped early", "3"],
        ["2", "0.2", "", "9"],
        ["1", "0.8", "not a rival", "10"],
    ]
    assert rows[2][4:] == ["16,000", "0.850", "0.800–0.900", "0.750", "0.700–0.800", "0.650", "0.600–0.700"]
    assert "M = 1 is never chosen by agreement" in page.words
    assert len(page.every("caption")) == len(page.every("table"))


def test_search_without_details_and_with_negative_limits(run, undrawn):
    add_settings(run, [(2, 0.8, 2, 0.22)])
    text = write_report(run).read_text(encoding="utf-8")
    rows = rows_of(text, "Agreement of each setting, best first</caption>")
    assert [row[2] for row in rows] == ["chosen", ""]
    assert rows[1][-2:] == ["0.020", "−0.030 to 0.070"]
    assert "Runner" not in text
    assert "models were trained" not in text
    assert "M = 1" not in text


def test_exhaustive_search_dropped_nothing(searched, undrawn):
    search = json.loads((searched / "summary.json").read_text())["search"]
    change_summary(searched, search={**search, "exhaustive": True, "models_trained": 2120, "runners_up": []})
    words = report_of(searched).words
    assert "Every setting was trained in full: 2,120 models." in words
    assert "dropped" not in words.lower()


def test_long_search_is_cut_but_keeps_the_chosen(run, undrawn):
    add_settings(run, [(2, 0.01 * place, 10, 0.99) for place in range(1, 26)])
    text = write_report(run).read_text(encoding="utf-8")
    rows = rows_of(text, "Agreement of each setting, best first")
    assert len(rows) == 21
    assert rows[-1][:3] == ["3", "0.8", "chosen"]
    assert "5 more settings are in" in text


def test_one_setting_is_no_search(run, undrawn):
    change_summary(run, search={"reason": "There was no choice."})
    assert "How many patterns?" not in report_of(run).words


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        (
            CALIBRATED,
            "at 0.930 (pattern agreement among 3 repetitions; 0.5 is chance). This is above the threshold of 0.612",
        ),
        ({**CALIBRATED, "statistic": 0.6}, "This is not above the threshold of 0.612"),
        ({**CALIBRATED, "threshold": None}, "there is no threshold"),
        (
            REFITS,
            "on 19 cohorts in which people were dealt out to the groups at random",
        ),
        (REFITS, "the groups do not differ; 1 of them agreed as well or better (p = 0.100)"),
        ({**REFITS, "values": [0.5] * 19, "p": 0.0002}, "none of them agreed as well or better (p < 0.001)"),
        ({**REFITS, "values": [], "p": None}, "gave no p value"),
        ({"method": "none", "statistic": None, "values": []}, "was not compared with cohorts without disease"),
        ({**CALIBRATED, "statistic": None}, "was not compared with cohorts without disease"),
    ],
)
def test_verdict_in_words(run, undrawn, null, expected):
    change_summary(run, null=null)
    page = report_of(run)
    assert [text for level, text in page.headings if level == 2][:2] == ["In short", "Is there anything to find?"]
    assert expected in page.words
    assert "an imbalance of site, age or scanner between the groups passes it too" in page.words
    assert "No covariates were in the table, so this could not be checked." in page.words
    drawn = [image["alt"] for image in page.every("img") if "cohorts without disease" in image["alt"]]
    assert len(drawn) == (null["method"] == "refits" and bool(null["values"]))


def test_balance_of_groups(run, undrawn):
    rows = [
        balance_row("age", "number", 1.126, 1e-9, True),
        balance_row("sex", "category", 0.034, 0.5, False),
        balance_row("site", "category", 0.31, 0.0421, True),
        balance_row("scanner", "category", 0, None, False),
    ]
    change_summary(run, balance=rows)
    text = write_report(run).read_text(encoding="utf-8")
    words = Page(text).words
    assert "Patients and controls differ in age and site." in words
    assert "what age explains in the controls was removed" in words
    assert "give site as covariates" in words
    assert "No covariates were in the table" not in words
    assert "was not compared with cohorts without disease" in words
    values = ["61.2 ± 8.1", "70.3 ± 7.9"]
    assert rows_of(text, "Controls and patients compared") == [
        ["age", *values, "+1.13 sd", "&lt; 0.001", "imbalanced"],
        ["sex", *values, "V = 0.03", "0.500", "no clear difference"],
        ["site", *values, "V = 0.31", "0.042", "imbalanced"],
        ["scanner", *values, "V = 0.00", "–", "no clear difference"],
    ]


def test_balanced_groups(run, undrawn):
    change_summary(run, balance=[balance_row("age", "number", -0.02, 0.8, False)])
    words = report_of(run).words
    assert "do not differ clearly in these variables" in words
    assert "−0.02 sd" in words


CORRELATION = [[1.0, 0.523, -0.104], [0.523, 1, 0.3], [-0.104, 0.3, 1.0]]


def test_learned_correlation_is_a_table(run, undrawn):
    change_summary(run, latent="correlated", correlation=CORRELATION)
    text = write_report(run).read_text(encoding="utf-8")
    page = Page(text)
    headings = [heading for level, heading in page.headings if level == 2]
    assert headings[headings.index("Correlation of the patterns") - 1] == "Pairs of R-indices"
    assert rows_of(text, "Learned correlation of severities") == [
        ["R1", "1.00", "0.52", "−0.10"],
        ["R2", "0.52", "1.00", "0.30"],
        ["R3", "−0.10", "0.30", "1.00"],
    ]
    assert "correlation of their normal scores, mean over the repetitions" in page.words
    assert "This is not the correlation of the R-indices" in page.words
    assert len(page.every("caption")) == len(page.every("table"))


def test_independent_severities_have_no_section(run, undrawn):
    change_summary(run, latent="independent", correlation=None)
    assert "Correlation of the patterns" not in report_of(run).words


def test_one_pattern_has_no_correlation(tmp_path, undrawn):
    make_run(tmp_path, n_patterns=1)
    change_summary(tmp_path, correlation=[[1.0]])
    assert "Correlation of the patterns" not in report_of(tmp_path).words
