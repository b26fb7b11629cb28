"""The sections: each shows its table, and those on analyses appear only if their table exists."""

import re

import numpy as np
import pandas as pd
import pytest

from rindices.pages.report import write_report
from tests.pages.made_run import (
    AGREEMENT,
    FOUND,
    NOTHING,
    add_analyses,
    add_settings,
    add_visits,
    balance_row,
    change_summary,
    make_run,
    rewrite,
    save_summary,
)
from tests.pages.page import Page, missing, pictures, report_of, rows_of, sections_of, words_of

AGE_DIFFERS = [balance_row("age", "number", 1.126, 1e-9, True)]
TITLES = {
    "associations": "Clinical variables",
    "subgroup_sizes": "Subgroups of patients",
    "dose_response": "Regions by severity",
    "group_check": "Is there anything to find?",
    "change_summary": "Change between visits",
}


@pytest.fixture
def analysed(tmp_path):
    folder = tmp_path / "run"
    make_run(folder, n_patterns=2, names=["lHip", "rHip", "lAmy"])
    add_analyses(folder)
    return folder


def table_of(folder, name):
    return pd.read_csv(folder / "analysis" / f"{name}.csv", keep_default_na=False, na_values=[""])


def titles(page):
    return [text for level, text in page.headings if level == 3]


def page_text(folder, **options):
    return write_report(folder, **options).read_text(encoding="utf-8")


def section_of(text, name):
    return re.search(rf'<(section|details) id="{name}"[^>]*>(.*?)</\1>', text, flags=re.DOTALL)[2]


def test_every_section_is_in_the_contents_and_needs_its_table(analysed, undrawn):
    add_visits(analysed)
    page = report_of(analysed, show_ids=True)
    anchors = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert {link["href"].removeprefix("#") for link in page.every("a")} <= anchors
    assert set(TITLES.values()) <= set(titles(page))
    for name in TITLES:  # an empty table counts as missing
        path = analysed / "analysis" / f"{name}.csv"
        path.write_text(path.read_text().splitlines()[0] + "\n")
    assert not set(TITLES.values()) & set(titles(report_of(analysed)))


def test_flow_and_associations_are_the_tables(analysed, undrawn):
    text, flow = page_text(analysed), table_of(analysed, "flow")
    expected = flow.loc[flow["site"] == "all", ["read", "missing region", "outlier", "used"]].astype(str)
    assert [row[1:] for row in rows_of(text, "People read, excluded and used")] == expected.to_numpy().tolist()
    assert [row[0] for row in rows_of(text, "Counts at each site")] == ["Ann Arbor"] * 4 + ["Basel"] * 4
    first = table_of(analysed, "associations").query("people == 'patients'").iloc[0]
    rows = rows_of(text, "Associations in patients")
    assert rows[0][:5] == ["1", "mmse", "Pearson r", "60", f"{first['coefficient']:.2f}".replace("-", "−")]
    assert (len(rows), rows[4][1]) == (8, "apoe4 = 1")
    said = {"verdict": "part of pattern 1 may be age", "subgroups": "<td>fewer than 10 patients</td>"}
    assert {name for name, words in said.items() if words in section_of(text, name)} == {*said}


@pytest.mark.parametrize("state", ["reproducible", "confounded", "not reproducible", "no difference"])
def test_patients_against_controls_are_below_any_verdict(analysed, undrawn, state):
    change_summary(analysed, verdict=state, balance=AGE_DIFFERS if state == "confounded" else None)
    text = page_text(analysed)
    above, _ = text.split('<section id="result"')
    assert above.index('class="verdict') < above.index('<section id="groups"')
    assert not [part for part in ('<details class="gate"', "NOT REPRODUCIBLE") if part in above]
    effects = table_of(analysed, "group_effects").sort_values("effect", key=abs, ascending=False)
    rows = rows_of(text, "Patients versus controls in every region")
    assert [row[-1] for row in rows] == effects["region"].tolist()
    assert rows[0][1:-1] == ["−0.90", "−1.20 to −0.60", "0.001"]
    clear = f"have clearly smaller values in {(effects['q'] < 0.05).sum()} of 20 regions (q below 0.05)"
    whatever, doubt = "does not depend on the verdict", "groups also differ in age, which may explain"
    assert missing(Page(text).words, clear, whatever, doubt) == [whatever if state == "confounded" else doubt]


def test_number_line_shows_what_the_verdict_rests_on(analysed, undrawn):
    change_summary(analysed, evidence=FOUND)
    [line] = re.findall('<svg class="number-line".*?</svg>', page_text(analysed), re.DOTALL)
    assert "two halves 93, permuted groups, at most 55, repetitions, on average 95, chance 50." in line
    assert [words_of(line).count(word) for word in ("p = 0.005", "chance 50", "at most:")] == [1, 1, 1]
    places = [float(place) for place in re.findall(r'class="here" cx="([\d.]+)"', line)]
    assert places == pytest.approx([205 + 270 * over for over in (0.434, 0.051, 0.451)], abs=0.1)


def test_patterns_that_cannot_be_are_not_described_and_cards_name_three_others_at_most(tmp_path, undrawn):
    """A model with more patterns than the data have: impossible changes, and scores that do not vary."""
    make_run(tmp_path, n_patterns=6)
    rewrite(tmp_path / "r_indices.csv", severity1=0.08)
    rewrite(tmp_path / "patterns.csv", change_sd=lambda of: of["change_sd"] * np.where(of["pattern"] == 2, 3000, 1))
    text = page_text(tmp_path)
    reasons = ["everyone has almost the same score", "its largest change exceeds 20 control standard deviations"]
    assert re.findall(r"could not be estimated: (.*?)\.<", text) == reasons
    assert [text.count(part) for part in ('<p class="gist">', "Show anyway</summary>")] == [4, 2]
    assert re.findall(r'<a href="#pattern-(\d)"', text) == [*"123456"]
    told = re.findall(r"Of these patients, ([^.]*)\.", text)
    assert [sentence.count("also have pattern") for sentence in told] == [3] * 4
    assert all(
        sentence.endswith("of all patients); for the other patterns, the difference is smaller") for sentence in told
    )


def test_change_of_patients_and_controls_is_compared(analysed, undrawn):
    before = re.findall("The median severity is .*? in controls", page_text(analysed))
    add_visits(analysed)
    text = page_text(analysed)
    assert re.findall("The median severity is .*? in controls", text) == before  # first visits only
    assert len(before) == 2
    rows, words = rows_of(text, "Change in severity per year"), Page(section_of(text, "change")).words
    assert ["1", "Patients minus controls", "112", "+0.002", "−0.010 to 0.014", "0.600", "0.003"] in rows
    assert not missing(
        words,
        "Only “Patients minus controls” tests whether",
        "Group change is the mean of the individual slopes",
        "estimated from 40 controls with repeated visits within 1.0 years",
    )
    people = rows_of(text, "Reliable change in individuals")
    assert [sum(int(row[place]) for row in people if row[0] == "1") for place in (2, 3, 4)] == [112, 23, 0]


def test_long_table_is_cut_and_says_where_the_rest_is(tmp_path, undrawn):
    make_run(tmp_path, n_patterns=2, n_regions=130)
    add_analyses(tmp_path)
    text = page_text(tmp_path)
    effects = table_of(tmp_path, "subgroups")["effect"].abs()
    rows = rows_of(text, "Differences between subgroups and controls in each region, largest first")
    assert (len(rows), rows[0][3].lstrip("+−")) == (600, f"{effects.max():.2f}")
    assert f"{len(effects) - 600} more rows are in <code>analysis/subgroups.csv</code>" in text


def test_figures_are_saved_under_names(tmp_path):
    make_run(tmp_path / "run", n_patterns=2, n_regions=6)
    saved = tmp_path / "figures"
    drawn = pictures(page_text(tmp_path / "run", figures=saved))
    stems = [
        "01_mixture",
        "02_pattern_1",
        "03_severities_1",
        "04_pattern_2",
        "05_severities_2",
        "06_agreement_over_training",
    ]
    assert sorted(path.name for path in saved.iterdir()) == [f"{stem}.{of}" for stem in stems for of in ("png", "svg")]
    for stem in stems:  # the same except for colours, which follow the page
        files = drawn[stem[3:]], (saved / f"{stem}.svg").read_text(encoding="utf-8")
        assert len({tuple(re.findall(r' d="([^"]*)"', one)) for one in files}) == 1, stem
    assert (saved / f"{stems[0]}.png").read_bytes().startswith(b"\x89PNG")


def test_applied_model_says_which_and_claims_nothing_else(analysed, undrawn):
    for name in ("selection.csv", "run.toml"):
        (analysed / name).unlink()
    summary = {
        "status": "done",
        "applied": True,
        "n_features": 20,
        "n_patterns": 2,
        "warnings": ["Two are odd."],
        "model": {"file": "model.safetensors", "sha256": "abc"},
        "n_controls": 40,
        "n_patients": 60,
    }
    save_summary(
        analysed, summary | {"n_other": 12, "covariates": ["age"], "variables": {"age": "number", "sex": "category"}}
    )
    page = report_of(analysed)
    said = [
        "A previously trained model (model.safetensors) used 20 regions to score 112 people",
        "Two are odd.",
        "The effects of age were estimated in the controls used to train the model by linear regression",
    ]
    unsaid = [
        "Repetitions and their agreement",
        "The patterns are",
        "not judged",
        "How many patterns",
    ]
    assert missing(page.words, *said, *unsaid) == unsaid
    assert titles(page)[:3] == ["People", "These people compared with the training sample", "Pattern 1"]
    assert [text for level, text in page.headings if level == 2] == ["Result", "Checks", "Details"]


@pytest.mark.slow
def test_fifty_thousand_people_fit_into_five_megabytes(tmp_path):
    make_run(tmp_path, n_patterns=5, n_controls=20_000, n_patients=30_000, n_regions=200)
    add_analyses(tmp_path, clinical=[f"score {place}" for place in range(20)], n_drivers=3000)
    assert max(write_report(tmp_path, show_ids=asked).stat().st_size for asked in (False, True)) < 5_000_000


# The search and the verdict


def test_search_lists_settings_best_first(run, undrawn):
    add_settings(run, [(2, 0.8, 10, 0.91), (4, 0.8, 3, 0.85), (1, 0.8, 10, 0.98), (2, 0.2, 9, 0.1)])
    search = {
        "n_patterns": [1, 2, 3, 4],
        "orthogonality": [0.2, 0.8],
        "exhaustive": False,
        "first_stage_repetitions": 3,
        "models_trained": 1057,
        "models_exhaustive": 2120,
        "runners_up": [{"n_patterns": 2, "orthogonality": 0.8, "pattern_agreement": 0.91, "n_models": 10}],
        "reason": "It agrees best & most clearly.",
    }
    change_summary(run, search=search)
    text = page_text(run)
    page = Page(text)
    assert titles(page) == [*sections_of(3)[:5], "How many patterns?", *sections_of(3)[5:]]
    assert not missing(
        page.words,
        "It agrees best & most clearly.",
        "1,057 models were trained",
        "instead of the 2,120",
    )
    rows = rows_of(text, "Settings tried, best agreement first")
    assert [row[:4] for row in rows] == [
        ["1", "0.8", "", "10"],
        ["3", "0.8", "chosen", "10"],
        ["2", "0.8", "runner-up", "10"],
        ["4", "0.8", "dropped early", "3"],
        ["2", "0.2", "", "9"],
    ]
    assert rows[3][4:] == ["16,000", "0.850", "0.800–0.900", "0.750", "0.700–0.800", "0.650", "0.600–0.700"]
    assert rows[4][-1] == "−0.150 to −0.050"
    change_summary(run, search=search | {"exhaustive": True, "models_trained": 2120, "runners_up": []})
    said = ["every setting was trained in full: 2,120 models.", "dropped"]
    assert missing(report_of(run).words.lower(), *said) == said[1:]


def test_the_spectrum_is_drawn_and_described(run):
    change_summary(run, evidence=FOUND)
    text = page_text(run)
    assert (
        "relative to controls in 4 directions. The largest value is 9.1; the limit is 3.4, and 2 directions exceed it."
        in text
    )
    assert "limit: 3.4" in pictures(text)["spectrum"]


def test_balance_of_groups_and_learned_correlation(run, undrawn):
    rows = [
        balance_row("age", "number", 1.126, 1e-9, True),
        balance_row("sex", "category", 0.034, 0.5, False),
        balance_row("site", "category", 0.31, 0.0421, True),
        balance_row("scanner", "category", 0, None, False),
    ]
    correlation = [[1.0, 0.523, -0.104], [0.523, 1, 0.3], [-0.104, 0.3, 1.0]]
    change_summary(run, balance=rows, latent="correlated", correlation=correlation)
    text = page_text(run)
    assert not missing(
        Page(text).words,
        "Patients and controls differ in age and site.",
        "The effects of age in controls were removed before training",
        "or adjust for site",
    )
    values = ["61.2 ± 8.1", "70.3 ± 7.9"]
    assert rows_of(text, "Comparison of controls and patients") == [
        ["age", *values, "+1.13 sd", "&lt; 0.001", "imbalanced"],
        ["sex", *values, "V = 0.03", "0.500", "no clear difference"],
        ["site", *values, "V = 0.31", "0.042", "imbalanced"],
        ["scanner", *values, "V = 0.00", "–", "no clear difference"],
    ]
    assert rows_of(text, "Learned correlations between severities")[2] == ["Pattern 3", "−0.10", "0.30", "1.00"]


def controls_read(mean):
    return {"r_indices.csv": lambda of: of.assign(severity1=of["severity1"].mask(of["group"] == "control", mean))}


def with_groups_alike(of):
    """Return people whose first severity is the same in both groups, and whose second is higher in controls."""
    is_control = of["group"] == "control"
    return of.assign(severity1=of.index % 20 / 10, severity2=of["severity2"].mask(is_control, 3.0))


DECOMPOSED = {"patterns.csv": lambda of: of.assign(decomposed_sd=-0.5, decomposed_spread_sd=0.1)}
OF_NETWORKS = ["In patients (sd)", "Faint marks: the same change", "Weights of the loss", "Training steps</th>"]
HALVES, TRAINED_ON_HALVES = "non-overlapping halves of the sample", 'class="number-line"'
UNKNOWN = {f"{name}{end}": np.nan for name in AGREEMENT for end in ("", "_low", "_high")}
# Only in patients, for the first pattern.
WITH_MMSE = "people == 'patients' and pattern == 1 and variable == 'mmse'"
NOT_CONVERGED = "the mixed model did not converge"


def scan_noise(source, sd):
    """Return changes after which individuals' changes have this scan noise, and a group a note."""
    return {
        "analysis/scan_noise.csv": lambda of: of.assign(source=source, sd=sd),
        "analysis/change_summary.csv": lambda of: of.assign(note=np.where(of["group"] == "control", NOT_CONVERGED, "")),
    }


def of_two_numbers(of):
    """Return the settings that were tried, with another number of patterns, and how well each fits."""
    return pd.concat([of, of.assign(n_patterns=1, chosen=False)]).assign(misfit=1.0)


# Changes to the tables and to the summary of a run, and what its report then says and does not say.
CHANGES = {
    "clear changes and associations": (
        {
            "patterns.csv": lambda of: of.assign(
                change_sd=of["region"].map({"lHip": -1.2, "rHip": -1.2, "lAmy": 0.9}).fillna(0.1)
            ),
            "analysis/associations.csv": lambda of: of.assign(
                q=np.where(of.eval(WITH_MMSE), 0.0001, 0.5), coefficient=np.where(of.eval(WITH_MMSE), -0.41, 0.1)
            ),
        },
        {},
        [
            "Smaller left and right hippocampus (−1.20 control SDs at severity 1); larger left amygdala (0.90 control",
            "In patients, the severity is associated with mmse (r = −0.41, q &lt; 0.001).",
            "In patients, the severity is not clearly associated with any clinical variable.",
        ],
        [],
    ),
    "scan noise as given": (
        scan_noise("given", 0.04),
        {},
        ["You specified the scan noise", f"Controls: {NOT_CONVERGED}.", "Reliable change in individuals"],
        [],
    ),
    "scan noise unknown": (
        scan_noise("unknown", np.nan),
        {},
        [
            "40 controls had repeated visits, too few to estimate the scan noise",
            f"Controls: {NOT_CONVERGED}.",
        ],
        ["Reliable change in individuals"],
    ),
    "as it was": ({}, {}, ["Full name"], []),
    "patterns counted, and a warning": (
        {},
        {
            "patterns_chosen_from_data": True,
            "search": {"basis": "counted"},
            "warnings": ["Sites differ between the groups."],
        },
        [
            "learns 2 disease patterns (a number estimated before training; there may be more)",
            "Warnings</h3>",
            "Sites differ between the groups.",
        ],
        [],
    ),
    "controls read low": (
        controls_read(0.05),
        {},
        ["the mean severity of the controls is 0.05"],
        ["Do not trust the severities of pattern 1", "hardly differ"],
    ),
    "controls read high": (
        controls_read(0.4),
        {},
        ["the mean severity of the controls is 0.4", "Do not trust the severities of pattern 1"],
        [],
    ),
    "groups alike": (
        {"r_indices.csv": with_groups_alike},
        {},
        [
            "is 0.95 in patients and 0.95 in controls; in 50 % of all pairs of a patient and a control, the patient",
            "so the groups hardly differ",
            "has the higher severity, so severities are higher in controls",
        ],
        [],
    ),
    "agreement is no curve where training has no steps": (
        {"selection.csv": lambda of: of[of["chosen"]]},
        {},
        ["Agreement between repetitions"],
        ["after different numbers of training steps"],
    ),
    "number chosen by fit": (
        {"selection.csv": of_two_numbers},
        {"search": {"basis": "fit"}},
        ["The choice starts from the smallest number of patterns"],
        ["the choice only decides which models are shown"],
    ),
    "no number supported": (
        {"selection.csv": of_two_numbers},
        {"search": {"basis": "unsupported"}},
        ["the data do not support any number of patterns, the choice only decides which models are shown"],
        ["The choice starts from the smallest number of patterns"],
    ),
    "a single repetition": (
        {
            "selection.csv": lambda of: of.assign(n_models=1, **UNKNOWN),
            "r_indices.csv": lambda of: of.assign(r1_sd=np.nan, r2_sd=np.nan),
        },
        {},
        ["Computing agreement requires at least two comparable repetitions"],
        ["its median over all people is"],
    ),
    "networks": (DECOMPOSED, {"preset": "fast", "step": 1000}, OF_NETWORKS, []),
    "linear models": (DECOMPOSED, {"preset": "linear", "step": 0}, [], OF_NETWORKS),
    "divided by an imbalanced variable": (
        {},
        {"correction": {"proportion": "age"}, "balance": AGE_DIFFERS},
        ["Regions were divided by age, which may not remove all of its effects."],
        ["The effects of age"],
    ),
    "balanced": (
        {},
        {"balance": [balance_row("age", "number", -0.02, 0.8, False)]},
        ["do not differ clearly in these variables", "−0.02 sd"],
        [],
    ),
    "difference found": (
        {"analysis/group_check.csv": lambda of: of[:0]},
        {"evidence": FOUND},
        [
            "Is there anything to find?</h3>",
            "joint p = 0.005, with p = 0.005 for greater variation among patients (spread) and p = 0.035 for",
            "by chance in 2 directions, and held-out patients vary more than held-out controls in 3 directions.",
            f"{HALVES} is 0.934 (0.5 is chance; with permuted groups, it is at most 0.551). The agreement between "
            "repetitions is 0.951",
            "The agreement between the consensus of the repetitions and a linear model of the whole sample is 0.883.",
            "The table contains no covariates, so the balance of the groups could not be checked.",
            "relative to controls in 4 directions",
        ],
        [],
    ),
    "one direction and one repetition": (
        {},
        {"evidence": FOUND | {"directions": 1, "found_again": 1, "repetitions": None}},
        [
            "by chance in 1 direction, and held-out patients vary more than held-out controls in 1 direction.",
            "it is at most 0.551). The agreement between the consensus",
        ],
        [],
    ),
    "no difference found": (
        {},
        {"evidence": NOTHING},
        [
            "Is there anything to find?</h3>",
            "joint p = 0.410",
            "by chance in 0 directions, and held-out patients vary more than held-out controls in 0 directions.",
            "relative to controls in 4 directions",
        ],
        [HALVES, TRAINED_ON_HALVES],
    ),
    "not tested": (
        {},
        {"evidence": {}},
        ["Is there anything to find?</h3>", "The difference between patients and controls was not tested."],
        [HALVES, "relative to controls in"],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_a_report_says_of_a_changed_run(analysed, undrawn, case):
    tables, summary, said, unsaid = CHANGES[case]
    add_visits(analysed)
    for name, changed in tables.items():
        changed(pd.read_csv(analysed / name)).to_csv(analysed / name, index=False)
    change_summary(analysed, **summary)
    assert missing(" ".join(page_text(analysed).split()), *said, *unsaid) == unsaid
