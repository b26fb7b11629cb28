import base64
import hashlib
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.report import write_report
from tests.report.made_run import AGREEMENT, add_settings, add_truth, change_summary, make_run, save_summary
from tests.report.page import Page, pictures, report_of, rows_of

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SCRIPT = "<script>alert('region')</script>"
CALIBRATED = {"method": "calibrated", "statistic": 0.93, "threshold": 0.612, "repetitions": 3}
REFITS = {"method": "refits", "statistic": 0.93, "p": 0.1, "n": 19, "repetitions": 3, "values": [0.94] + [0.52] * 18}
SECTIONS = [
    "In short",
    "Agreement over training",
    "R-indices of controls and patients",
    "How to read an R-index",
    "Pairs of R-indices",
    "Regions of each pattern",
    "Single people",
    "Methods, for a paper",
    "Limits",
    "Repetitions used and left out",
    "How to cite",
    "Settings and versions",
]


def test_sections_and_headline(run, undrawn):
    page = report_of(run)
    assert [text for level, text in page.headings if level == 2] == SECTIONS
    assert "60 patients (AD, MCI) were compared with 40 controls (CN) in 20 regional measures" in page.words
    assert "each of 3 disease patterns" in page.words
    assert "12 other people" in page.words
    assert "The number of patterns was given, not chosen from data." in page.words
    assert "not a confidence interval" in page.words
    assert "9 of 10 repetitions" in page.words
    assert "disagrees with the others (0.61)" in page.words
    assert "1 h 2 min 5 s" in page.words
    assert 'command = "rindices fit volumes.csv"' in page.words
    assert "Surreal-GAN" in page.words
    assert "ICLR" in page.words


def test_number_of_patterns_chosen_from_data(run, undrawn):
    change_summary(run, patterns_chosen_from_data=True)
    words = report_of(run).words
    assert "was chosen from the data" in words
    assert "not chosen from data" not in words


def test_quartiles_are_those_of_the_table(run, undrawn):
    people = pd.read_csv(run / "r_indices.csv")
    values = np.percentile(people.loc[people["group"] == "patient", "r2"], [25, 50, 75])
    rows = rows_of(write_report(run).read_text(encoding="utf-8"), "Quartiles of the R-indices")
    assert rows[4] == ["R2", "Patients", "60", *(f"{value:.2f}".replace("-", "−") for value in values)]


def test_all_regions_are_there_sorted_by_size_of_change(run, undrawn):
    patterns = pd.read_csv(run / "patterns.csv")
    rows = patterns[patterns["pattern"] == 2].to_dict("records")
    rows.sort(key=lambda row: -abs(row["change_sd"]))
    text = write_report(run).read_text(encoding="utf-8")
    found = rows_of(text, "All regions of pattern 2, strongest first")
    assert [row[:2] for row in found] == [[row["region"], f"{row['change_sd']:+.2f}".replace("-", "−")] for row in rows]
    assert f'data-value="{rows[0]["change_sd"]:.15g}"' in text


def test_hostile_text_is_shown_and_never_run(tmp_path):
    folder = tmp_path / "run"
    odd = "Gyrus präfrontalis 海马 $x^2_$ \u202e"
    make_run(folder, n_patterns=2, names=[SCRIPT, odd, "a\"b'c&d</style>", "NA"])
    change_summary(
        folder,
        warnings=[SCRIPT, "ok \ud800"],
        reliable=False,
        reliable_reason=SCRIPT,
        source='"><img src=x onerror=alert(1)>',
        control_labels=["<b>CN</b>"],
        members_left_out=[{"member": 1, "reason": SCRIPT}],
        versions={SCRIPT: SCRIPT},
        balance=[balance_row(SCRIPT, SCRIPT, 0.5, 0.01, True) | {"controls": SCRIPT}],
        null=REFITS,
        search={"reason": SCRIPT},
    )
    add_settings(folder, [(3, 0.2, 3, 0.7)])
    (folder / "run.toml").write_text(f'name = "{SCRIPT}</code></pre>"\n')
    path = write_report(folder)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert [script.get("type") for script in page.every("script")] == ["application/json", None]
    assert "alert" not in "".join(page.scripts)
    assert not page.every("b")
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.every("img"))
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.words.count(SCRIPT) >= 2 + 5 + 5
    assert odd.split("\u202e", maxsplit=1)[0].strip() in page.words
    assert '<th scope="row">NA</th>' in text
    assert "<script" not in "".join(pictures(page))


def test_nothing_comes_from_elsewhere(run):
    page = report_of(run)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "data:").startswith(("data:", "#"))
    assert not page.every("link")
    [policy] = [meta["content"] for meta in page.every("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    code = hashlib.sha256(page.scripts[-1].encode()).digest()
    assert policy == f"{POLICY}; script-src 'sha256-{base64.b64encode(code).decode()}'"
    text = (run / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"@import|url\(", text)
    for picture in pictures(page):
        assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', picture))


def test_page_is_accessible(run, undrawn):
    page = report_of(run)
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert len(page.every("caption")) == len(page.every("table"))
    assert all(heading.get("scope") in ("col", "row") for heading in page.every("th"))
    assert all(len(image["alt"]) > 40 for image in page.every("img"))
    assert page.every("html") == [{"lang": "en"}]


def test_one_pattern(tmp_path):
    make_run(tmp_path, n_patterns=1)
    page = report_of(tmp_path)
    assert [text for level, text in page.headings if level == 2] == [name for name in SECTIONS if "Pairs" not in name]
    assert "the one disease pattern" in page.words
    assert "Difference correlation –" in re.sub(r"(correlation)(–)", r"\1 \2", page.words)


def test_one_training_has_no_agreement(run, undrawn):
    selection = pd.read_csv(run / "selection.csv").assign(n_models=1)
    selection[[name for name in selection.columns if name.startswith(AGREEMENT)]] = np.nan
    selection.to_csv(run / "selection.csv", index=False)
    people = pd.read_csv(run / "r_indices.csv")
    people[["r1_sd", "r2_sd", "r3_sd"]] = np.nan
    people.to_csv(run / "r_indices.csv", index=False)
    words = report_of(run).words
    assert "Agreement needs at least two trainings" in words
    assert "half of all people have less than" not in words


@pytest.mark.parametrize(
    ("reliable", "expected", "classes"),
    [
        (True, "The patterns are reproducible.", "note good"),
        (False, "These patterns are not reliable.", "banner"),
        (None, "Reliability was not judged.", "note"),
    ],
)
def test_verdict(run, undrawn, reliable, expected, classes):
    change_summary(run, reliable=reliable, reliable_reason="The reason is given.")
    page = report_of(run)
    found = [attributes["class"] for attributes in page.every("div") if attributes.get("role") == "note"]
    assert found == [classes]
    assert f"{expected} The reason is given." in page.words


def test_warnings(run, undrawn):
    change_summary(run, warnings=["Sites differ between the groups."])
    page = report_of(run)
    assert (2, "Warnings") in page.headings
    assert "Sites differ between the groups." in page.words


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
            "on 19 cohorts in which the labels of patients and controls were permuted",
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


def balance_row(variable, kind, difference, p, imbalanced):
    texts = {"controls": "61.2 ± 8.1", "patients": "70.3 ± 7.9"}
    return {"variable": variable, "kind": kind, **texts, "difference": difference, "p": p, "q": p} | {
        "imbalanced": imbalanced
    }


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
        ["age", *values, "+1.13 sd", "&lt; 0.001", "&lt; 0.001", "imbalanced"],
        ["sex", *values, "V = 0.03", "0.500", "0.500", "no clear difference"],
        ["site", *values, "V = 0.31", "0.042", "0.042", "imbalanced"],
        ["scanner", *values, "V = 0.00", "–", "–", "no clear difference"],
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


def stop_run(folder, **summary):
    folder.mkdir()
    save_summary(folder, summary)
    return folder


@pytest.mark.parametrize(
    ("status", "headline"), [("failed", "This run failed"), ("unfinished", "This run is not finished")]
)
@pytest.mark.parametrize("complete", [False, True])
def test_stopped_run_shows_no_results(run, status, headline, complete):
    change_summary(run, status=status, failure="Out of memory.", warnings=["One region is constant."], null=CALIBRATED)
    if not complete:
        for name in ("r_indices.csv", "patterns.csv", "selection.csv"):
            (run / name).unlink()
    page = report_of(run)
    assert page.headings[:3] == [(1, "R-indices report"), (2, headline), (2, "Warnings")]
    assert "Out of memory." in page.words
    assert "repeat the same command. It goes on where it stopped." in page.words
    assert "One region is constant." in page.words
    assert 'command = "rindices fit volumes.csv"' in page.words
    assert "Patients60" in page.words.replace(" ", "")
    assert "jax0.7.0" in page.words.replace(" ", "")
    assert not page.every("img")
    for word in ("greement", "reproducible", "reliable", "Training steps", "each of 3", "0.95", "Quartiles"):
        assert word not in page.words, word


def test_stopped_run_with_almost_nothing_known(tmp_path):
    page = report_of(stop_run(tmp_path / "run", status="failed"))
    assert "Reason: it is not known." in page.words
    assert [text for _, text in page.headings] == ["R-indices report", "This run failed"]
    [policy] = [meta["content"] for meta in page.every("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy == POLICY


def test_stopped_run_with_hostile_text(tmp_path):
    folder = stop_run(tmp_path / "run", status="failed", failure=SCRIPT, warnings=[SCRIPT], source=SCRIPT)
    (folder / "run.toml").write_bytes(f"{SCRIPT}</code>".encode() + b"\xff")
    page = report_of(folder)
    assert not page.every("script")
    assert page.words.count(SCRIPT) == 4


def test_stopped_run_replaces_an_older_report(run, undrawn):
    before = write_report(run).read_text(encoding="utf-8")
    change_summary(run, status="failed", failure="Disk full.")
    after = write_report(run).read_text(encoding="utf-8")
    assert "This run failed" not in before
    assert "This run failed" in after


def test_recovery_comes_first_and_matches_people_and_patterns(tmp_path, monkeypatch, undrawn):
    truth = make_run(tmp_path, n_patterns=2)
    add_truth(tmp_path, truth)
    drawn = []
    draw = plots.recovery
    monkeypatch.setattr(plots, "recovery", lambda *tables: drawn.append(tables) or draw(*tables))
    page = report_of(tmp_path)
    headings = [text for level, text in page.headings if level == 2]
    assert headings[:2] == ["In short", "Recovery of the known truth"]
    assert "0.911" in page.words
    [(known, scores, concordance)] = drawn
    assert list(known.columns) == ["s2", "s1"]
    assert len(known) == 60
    assert concordance == [0.90, 0.91]
    for place in range(2):
        assert np.corrcoef(known.iloc[:, place], scores.iloc[:, place])[0, 1] > 0.9


def test_truth_without_summary_is_left_out(run, undrawn):
    (run / "truth.csv").write_text("participant_id,s1\nsub-0001,0.5\n")
    assert "Recovery" not in report_of(run).words


@pytest.mark.parametrize("name", ["r_indices.csv", "patterns.csv", "selection.csv", "summary.json", "run.toml"])
def test_missing_file_is_named_with_a_remedy(run, name):
    (run / name).unlink()
    with pytest.raises(ValueError, match=rf"^{re.escape(name)} is missing in .*`rindices fit`"):
        write_report(run)
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("summary.json", "{", "not JSON"),
        ("summary.json", "[]", "expected an object"),
        ("summary.json", '{"status": "done"}', "'n_controls' is missing"),
        ("summary.json", "{}", "'status' is missing"),
        ("r_indices.csv", "", "not a table"),
        ("r_indices.csv", "participant_id,diagnosis\n1,CN\n", "column 'group' is missing"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,large,1,1\n", "has 'large'"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,1,1,1\n", "expected the patterns"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,inf,1,1\n", "line 2, column 'change"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\n", "no rows"),
        ("run.toml", b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_damaged_file_is_named_with_a_remedy(run, name, content, expected):
    (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"^{re.escape(name)} in .*{expected}.*`rindices fit`"):
        write_report(run)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_patients": True}, "'n_patients' has the unexpected value True"),
        ({"reliable": "yes"}, "'reliable' has the unexpected value 'yes'"),
        ({"versions": ["jax"]}, "'versions' has the unexpected value"),
        ({"members_left_out": [4]}, "'members_left_out' has the unexpected entry 4"),
        ({"members_left_out": [{"member": 4}]}, "'reason' of 'members_left_out' is missing"),
        ({"status": "stopped"}, "'status' has the unexpected value 'stopped', expected one of"),
        ({"search": {"reason": 3}}, "'reason' of 'search' has the unexpected value 3"),
        ({"search": {"runners_up": [{"n_patterns": 2}]}}, "'orthogonality' of 'runners_up' is missing"),
        ({"null": {"method": "guess"}}, "'method' of 'null' has the unexpected value 'guess'"),
        ({"null": {"method": "calibrated", "statistic": 0.9}}, "'threshold' of 'null' is missing"),
        ({"null": {**REFITS, "values": ["0.5"]}}, "'values' of 'null' has the unexpected value '0.5'"),
        ({"balance": [{"variable": "age"}]}, "'kind' of 'balance' is missing"),
        ({"n_patterns": 0}, "'n_patterns' is 0"),
        ({"correlation": "none"}, "'correlation' has the unexpected value 'none'"),
        ({"correlation": []}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5], [0.5, 1.0]]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, 0.1]] * 2 + [[1.0]]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, 0.1]] * 2 + [1.0]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, None]] * 3}, "'correlation' has the unexpected value None"),
        ({"correlation": [[1.0, 0.5, "<b>"]] * 3}, "'correlation' has the unexpected value '<b>'"),
    ],
)
def test_damaged_summary_says_where(run, changes, expected):
    change_summary(run, **changes)
    with pytest.raises(ValueError, match=rf"^summary.json in .*{expected}"):
        write_report(run)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"per_pattern": [0.9]}, "summary.json .*'per_pattern' of 'recovery' needs a value for each pattern"),
        ({"matched_truth": ["s1", "s9"]}, "truth.csv .*column 's9' is missing"),
        ({"pattern_concordance": None}, "summary.json .*'pattern_concordance'"),
    ],
)
def test_damaged_truth_says_where(tmp_path, change, expected):
    add_truth(tmp_path, make_run(tmp_path, n_patterns=2))
    found = json.loads((tmp_path / "summary.json").read_text())["recovery"]
    change_summary(tmp_path, recovery={**found, **change})
    with pytest.raises(ValueError, match=expected):
        write_report(tmp_path)


def test_members_may_be_listed_and_details_missing(run, undrawn):
    summary = json.loads((run / "summary.json").read_text())
    for name in ("weights", "versions", "members_left_out", "seconds", "unit", "n_other", "covariates"):
        del summary[name]
    save_summary(run, {**summary, "members_used": [0, 1, 2]})
    words = report_of(run).words
    assert "3 of 10 repetitions" in words
    assert "None was left out." in words


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.drop(columns="best"), "column 'best' is missing"),
        (
            lambda table: table.drop(columns="dimension_correlation_low"),
            "column 'dimension_correlation_low' is missing",
        ),
        (
            lambda table: table.assign(best=True),
            "one row with best = true for 3 patterns .*orthogonality 0.8, found 15",
        ),
        (lambda table: table.assign(best=table["step"] == 4000), "chosen = true does not have best = true"),
        (lambda table: table.assign(n_patterns=4), "has 4 patterns, but summary.json has 3"),
    ],
)
def test_damaged_selection_says_where(run, change, expected):
    change(pd.read_csv(run / "selection.csv")).to_csv(run / "selection.csv", index=False)
    with pytest.raises(ValueError, match=rf"^selection.csv in .*{expected}"):
        write_report(run)


def test_no_chosen_row(run):
    selection = pd.read_csv(run / "selection.csv").assign(chosen=False)
    selection.to_csv(run / "selection.csv", index=False)
    with pytest.raises(ValueError, match="one row with chosen = true, found 0"):
        write_report(run)


def test_unknown_group(run):
    text = (run / "r_indices.csv").read_text().replace(",control,", ",healthy,")
    (run / "r_indices.csv").write_text(text)
    with pytest.raises(ValueError, match="column group has 'healthy'"):
        write_report(run)


def test_same_folder_gives_the_same_bytes(tmp_path):
    run = tmp_path / "run"
    make_run(run, n_patterns=2)
    first = write_report(run)
    second = write_report(run, tmp_path / "new" / "other.html")
    assert second == tmp_path / "new" / "other.html"
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in second.parent.iterdir()] == ["other.html"]


def test_large_run_stays_small(tmp_path):
    make_run(tmp_path, n_patterns=5, n_controls=500, n_patients=900, n_regions=200)
    assert write_report(tmp_path).stat().st_size < 3_000_000
