"""The page as a whole, the sections that every run has, and the page of an unfinished run."""

import base64
import hashlib
import itertools
import re
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.cli.console_and_exits import _VERDICT_STYLES
from rindices.pages.elements import for_page, interval
from rindices.pages.layout import VERDICT_LOOKS, page_style
from rindices.pages.report import make_report, write_report
from rindices.record.documents import SENTENCES
from rindices.settings import State
from tests.pages.made_run import (
    FOUND,
    add_analyses,
    add_settings,
    add_truth,
    balance_row,
    change_summary,
    make_run,
    save_summary,
)
from tests.pages.page import LAYERS, POLICY, SCRIPT, Page, missing, pictures, report_of, rows_of, sections_of, words_of


@pytest.mark.parametrize(
    ("n_patterns", "learned"),
    [
        (3, ["learns 3 disease patterns (a number"]),
        (1, ["learns 1 disease pattern (a number", "Difference correlation–"]),
    ],
)
def test_sections_and_headline(tmp_path, undrawn, n_patterns, learned):
    make_run(tmp_path, n_patterns)
    page = report_of(tmp_path)
    sections = [[text for level, text in page.headings if level == one] for one in (2, 3)]
    assert sections == [LAYERS, sections_of(n_patterns)]
    assert not missing(
        page.words,
        *learned,
        "compares 60 patients (AD, MCI) with 40 controls (CN) in 20 regions",
        "12 other people",
        "Severity is a fraction of the largest change that the model learned",
        "contains the true severity, in the model's units, in about 90 % of people",
        "not a confidence interval",
        "9 of 10 repetitions",
        "disagrees with the others (0.61)",
        "1 h 2 min 5 s",
        'line = "rindices fit volumes.csv"',
        "Surreal-GAN",
        "ICLR",
    )


def test_tables_are_those_of_the_files(run, undrawn):
    text = write_report(run).read_text(encoding="utf-8")
    own = pd.read_csv(run / "patterns.csv").query("pattern == 2").sort_values("change_sd", key=abs, ascending=False)
    assert [row[:2] for row in rows_of(text, "All regions of pattern 2, largest changes first")] == [
        [region, f"{change:+.2f}".replace("-", "−")] for region, change in own[["region", "change_sd"]].to_numpy()
    ]
    assert f'data-value="{own["change_sd"].iloc[0]:.15g}"' in text


def test_hostile_text_is_shown_and_never_run(tmp_path):
    folder, odd = tmp_path / "run", "Gyrus präfrontalis 海马 $x^2_$ \u202e"
    make_run(folder, n_patterns=2, names=[SCRIPT, odd, "a\"b'c&d</style>", "NA"])
    change_summary(
        folder,
        warnings=[SCRIPT],
        verdict="not reproducible",
        reliable=False,
        reliable_reason=SCRIPT,
        source='"><img src=x onerror=alert(1)>',
        control_labels=["<b>CN</b>"],
        members_left_out=[{"member": 1, "reason": SCRIPT}],
        versions={SCRIPT: SCRIPT},
        balance=[balance_row(SCRIPT, SCRIPT, 0.5, 0.01, True) | {"controls": SCRIPT}],
        evidence=FOUND,
        search={"reason": SCRIPT},
    )
    add_settings(folder, [(3, 0.2, 3, 0.7)])
    (folder / "run.toml").write_text((folder / "run.toml").read_text().replace("volumes.csv", f"{SCRIPT}</code></pre>"))
    text = write_report(folder).read_text(encoding="utf-8")
    page, drawn = Page(text), pictures(text)
    assert [script.get("type") for script in page.every("script")] == ["application/json", None]
    assert "alert" not in "".join(page.scripts)
    assert "<script" not in "".join(drawn.values())
    assert [*page.every("b"), *page.every("img")] == []
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not missing(text, '<th scope="row">NA</th>', odd.split("\u202e", maxsplit=1)[0].strip())
    assert page.words.count(SCRIPT) >= 2 + 5 + 5
    assert len(drawn) > 4


def test_nothing_comes_from_elsewhere(run):
    page = report_of(run)
    loading = {"src", "href", "srcset", "data", "action", "poster"}
    asked = [value for _, attributes in page.tags for name, value in attributes.items() if name in loading]
    assert [value for value in asked if not value.startswith(("data:", "#"))] + page.every("link") == []
    code = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert page.policies == [f"{POLICY}; script-src 'sha256-{code}'"]
    text = (run / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"@import|url\((?!#)", text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for picture in pictures(text).values():
        assert set() < set(re.findall(r'href="#([^"]*)"', picture)) <= {*ids}
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert {heading.get("scope") for heading in page.every("th")} == {"col", "row"}
    drawn = [attributes["aria-label"] for attributes in page.every("svg")]
    assert [alt for alt in drawn if len(alt) <= 40] == []
    assert (len(page.every("caption")), len(drawn), page.every("html")) == (
        len(page.every("table")),
        len(pictures(text)),
        [{"lang": "en"}],
    )


@pytest.mark.parametrize(
    ("changes", "expected", "classes"),
    [
        ({"verdict": None, "reliable": None}, "The reproducibility of the patterns was not assessed.", "verdict "),
        ({"verdict": "reproducible"}, "The patterns are reproducible.", "verdict good"),
        (
            {"verdict": "reproducible", "evidence": FOUND},
            "At least 3 patterns are reproducible.",
            "verdict good",
        ),
        (
            {"verdict": "confounded"},
            "reproducible, but the groups also differ in another variable.",
            "verdict warnings",
        ),
        ({"verdict": "weak"}, "The patterns are reproducible, but weak.", "verdict weak"),
        ({"verdict": "not testable"}, "Differences between the groups could not be tested.", "verdict untested"),
        (
            {"verdict": "not reproducible"},
            "The groups differ, but the patterns are not reproducible.",
            "verdict bad",
        ),
        ({"verdict": "no difference"}, "No difference between patients and controls was found.", "verdict nothing"),
    ],
)
def test_verdict(run, undrawn, changes, expected, classes):
    add_analyses(run)
    separation = {"auc": 0.871, "low": 0.82, "high": 0.91}
    change_summary(run, **changes, reliable_reason="The reason is given.", separation=separation)
    text = write_report(run).read_text(encoding="utf-8")
    page = Page(text)
    assert [attributes["class"] for attributes in page.every("div") if attributes.get("role") == "note"] == [classes]
    before, gate, after = text.partition('<details class="gate">')  # it is closed
    gated = changes.get("verdict") in ("not testable", "not reproducible", "no difference")
    result = after.partition('<section id="checks"')[0] if gated else before  # checks are not behind the gate
    assert not missing(result, 'data-name="severities_1"', 'id="cards"', 'id="explorer"', "Pattern 1")
    assert (gate != "", 'data-name="severities_1"' in before) == (gated, not gated)
    said = f"{expected} The reason is given.", "AUC for patients versus controls is 0.87 (95 % interval 0.82 to 0.91"
    caution = "the absence of reproducible patterns does not mean that the groups do not differ"
    unsaid = [] if changes.get("verdict") == "not reproducible" else [caution]
    assert missing(page.words, *said, caution) == unsaid


@pytest.mark.parametrize(
    ("changes", "strip"),
    [
        ({"verdict": "reproducible"}, None),
        ({"verdict": "weak"}, "WEAK: for comparing groups, not individuals"),
        ({"verdict": "not reproducible"}, "NOT REPRODUCIBLE: do not interpret"),
        ({"verdict": "no difference"}, "NO DIFFERENCE FOUND: do not interpret"),
        ({"verdict": "not testable"}, "NOT TESTED: do not interpret"),
        (
            {"verdict": "confounded", "balance": [balance_row("age", "number", 1.1, 0.001, True)]},
            "CONFOUNDED: the groups also differ in age",
        ),
    ],
)
def test_every_result_carries_its_strip(tmp_path, changes, strip):
    make_run(tmp_path, n_patterns=1, n_regions=6)
    change_summary(tmp_path, **changes)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    carrying = {name: strip is not None and strip in words_of(picture) for name, picture in pictures(text).items()}
    # A single pattern has no figure of mixtures.
    results = dict.fromkeys(("severities_1", "pattern_1"), strip is not None)
    assert carrying == results | {"agreement_over_training": False}
    assert f'<p class="strip">{strip or ""}</p>' in text  # that of the people


def test_recovery_matches_people_and_patterns(tmp_path, monkeypatch, undrawn):
    add_truth(tmp_path, make_run(tmp_path, n_patterns=2))
    drawn = []
    monkeypatch.setattr(plots, "recovery", lambda *tables: drawn.append(tables))
    assert not missing(report_of(tmp_path).words, "Recovery of the known truth", "0.911")
    [(known, scores, concordance)] = drawn
    assert (list(known.columns), len(known), list(concordance)) == (["s2", "s1"], 60, [0.90, 0.91])
    assert np.diag(np.corrcoef(known.T, scores.T)[:2, 2:]).min() > 0.9


# Failed and unfinished runs


@pytest.mark.parametrize(
    ("changes", "show_ids", "said", "unsaid"),
    [
        ({"status": "failed"}, False, ["This run failed", "Reason: unknown."], []),
        (
            {"status": "failed", "failure": "Row 3 (participant QX1) is odd.", "warnings": ["One region is constant."]},
            False,
            ["This run failed", "Row 3 is odd.", "Warnings", "One region is constant."],
            ["QX1"],
        ),
        ({"status": "failed", "failure": "Row 3 (participant QX1) is odd."}, True, ["QX1"], []),
        ({"status": "unfinished"}, False, ["This run is not finished"], ["This run failed"]),
        ({"status": "failed", "failure": f"No {SCRIPT}", "warnings": [f"Odd {SCRIPT}"]}, False, [f"No {SCRIPT}"], []),
    ],
)
def test_stopped_run_shows_no_results(run, changes, show_ids, said, unsaid):
    change_summary(run, **changes, evidence=FOUND)
    (run / "r_indices.csv").unlink()
    (run / "run.toml").write_bytes((run / "run.toml").read_bytes() + f"# {SCRIPT}</code>".encode() + b"\xff")
    report = make_report(run, show_ids=show_ids)
    page = Page(report.html)
    assert (report.status, page.policies) == (changes["status"], [POLICY])
    assert page.every("script") + page.every("svg") == []
    # Cells of a table have no space between them.
    said = [
        *said,
        "The run then resumes where it stopped.",
        'line = "rindices fit volumes.csv"',
        "Patients60",
        "jax0.7.0",
        SCRIPT,
    ]
    unsaid = [*unsaid, "greement", "reproducible", "reliable", "Training steps", "each of 3", "0.95", "Quartiles"]
    assert missing(page.words, *said, *unsaid) == unsaid


def test_stopped_run_of_which_almost_nothing_is_known(tmp_path):
    save_summary(tmp_path, {"status": "failed"})
    assert "Reason: unknown." in report_of(tmp_path).words


def test_no_two_verdicts_share_words_or_colour():
    states, style = get_args(State), str(page_style())
    rule = r"(?:^|\n)(?:\{})?\.{} \{{[^}}]*?(?:var\((--[\w-]+)\))"
    colours = [
        {state: re.search(rule.format(kind, VERDICT_LOOKS[state].colour), style)[1] for state in states}
        for kind in (".verdict", ".tag")
    ]
    for looks in (SENTENCES, _VERDICT_STYLES, VERDICT_LOOKS, *colours):
        assert len({looks[state] for state in states}) == len(states), looks


def test_what_is_black_in_a_file_has_the_colour_of_the_pages_text():
    """A colour key without its own colour used to stay black on dark pages, unlike its picture."""
    key = '<svg width="72pt" viewBox="0 0 72 72"><path d="M0 0h9v9z" style="stroke: #000000"/></svg>'
    assert not missing(for_page(key, "a key"), "fill: var(--ink, #000000)", "stroke: var(--ink, #000000)")


def test_an_interval_is_written_by_what_is_seen_of_its_limits():
    assert [interval(low, 0.45) for low in (-0.003, 0.0, -0.03)] == ["0.00–0.45", "0.00–0.45", "−0.03 to 0.45"]
