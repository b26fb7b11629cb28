"""The sections on analyses: each shows its table, and only where the table is there."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.report import make_report, write_report
from tests.report.made_run import add_analyses, add_visits, change_summary, make_run
from tests.report.page import Page, pictures, report_of, rows_of

TITLES = {
    "flow": "Who took part",
    "associations": "Associations with clinical variables",
    "subgroup_sizes": "Subgroups of patients",
    "dose_response": "Regions by severity",
    "group_check": "Is there anything to find?",
    "change_summary": "Change per year",
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
    return [text for level, text in page.headings if level == 2]


def test_every_section_is_in_the_contents_and_anchors_are_unique(analysed, undrawn):
    add_visits(analysed)
    page = report_of(analysed, show_ids=True)
    anchors = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    links = [link["href"] for link in page.every("a") if not link["href"].startswith("#person")]
    assert [f"#{section['id']}" for section in page.every("section") if "id" in section] == links[: len(titles(page))]
    assert set(TITLES.values()) <= set(titles(page))


@pytest.mark.parametrize("name", TITLES)
def test_section_needs_its_table(analysed, undrawn, name):
    add_visits(analysed)
    (analysed / "people.csv").unlink()
    (analysed / "analysis" / f"{name}.csv").unlink()
    assert TITLES[name] not in titles(report_of(analysed))


@pytest.mark.parametrize("name", TITLES)
def test_empty_table_is_as_good_as_none(analysed, undrawn, name):
    add_visits(analysed)
    (analysed / "people.csv").unlink()
    path = analysed / "analysis" / f"{name}.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert TITLES[name] not in titles(report_of(analysed))


def test_damaged_analysis_is_named(analysed):
    path = analysed / "analysis" / "subgroups.csv"
    path.write_text(path.read_text().replace("effect", "size"))
    with pytest.raises(ValueError, match=r"subgroups.csv in .*column 'effect' is missing"):
        write_report(analysed)


def test_flow_has_the_numbers_of_the_table(analysed, undrawn):
    text = write_report(analysed).read_text(encoding="utf-8")
    flow = table_of(analysed, "flow")
    shown = ["read", "missing region", "outlier", "used"]
    expected = flow.loc[flow["site"] == "all", shown].astype(str).to_numpy().tolist()
    assert [row[1:] for row in rows_of(text, "People read, left out and used")] == expected
    by_site = rows_of(text, "The same by site")
    assert [row[0] for row in by_site] == ["Ann Arbor"] * 4 + ["Basel"] * 4
    assert "117 people were read and 112 used." in Page(text).words


def test_association_rows_are_the_table(analysed, undrawn):
    rows = rows_of(write_report(analysed).read_text(encoding="utf-8"), "Associations in patients")
    table = table_of(analysed, "associations")
    first = table[table["people"] == "patients"].iloc[0]
    value = f"{first['coefficient']:.2f}".replace("-", "−")
    assert rows[0][:5] == ["R1", "mmse", "Pearson r", "60", value]
    assert len(rows) == 8
    assert rows[4][1] == "apoe4 = 1"


def test_summary_names_regions_and_clear_associations(analysed, undrawn):
    table = table_of(analysed, "associations")
    table["q"], table["coefficient"] = 0.5, 0.1
    row = (table["people"] == "patients") & (table["pattern"] == 1) & (table["variable"] == "mmse")
    table.loc[row, ["q", "coefficient"]] = 0.0001, -0.41
    table.to_csv(analysed / "analysis" / "associations.csv", index=False)
    patterns = pd.read_csv(analysed / "patterns.csv")
    patterns["change_sd"] = np.where(patterns["region"].isin(["lHip", "rHip"]), -1.2, 0.1)
    patterns.loc[patterns["region"] == "lAmy", "change_sd"] = 0.9
    patterns.to_csv(analysed / "patterns.csv", index=False)
    words = report_of(analysed).words
    assert "Two patterns. Repeated trainings agree at 0.95 (0.5 is chance, 1 is perfect)." in words
    regions = "lower in left and right Hip (−1.20 to −1.20 sd of controls at severity 1); higher in lAmy (0.90 sd"
    assert f"Pattern 1: {regions}" in words
    assert "Related to mmse (r = −0.41, q < 0.001) in patients." in words
    assert words.count("Not clearly related to any clinical variable") == 1


@pytest.mark.parametrize("reliable", [True, None, False])
def test_patterns_that_are_not_reliable_are_not_summed_up(analysed, undrawn, reliable):
    change_summary(analysed, reliable=reliable, reliable_reason="A reason.")
    text = write_report(analysed).read_text(encoding="utf-8")
    short = Page(re.search(r'<section id="short">(.*?)</section>', text, flags=re.DOTALL).group(1)).words
    for words in ("Pattern 1:", "sd of controls", "in patients."):
        assert (words in short) is (reliable is not False)
    assert ("Because these patterns are not reliable" in short) is (reliable is False)
    assert "Repeated trainings agree at 0.95" in short


def change_words(folder):
    text = write_report(folder).read_text(encoding="utf-8")
    section = re.search(r'<section id="change">(.*?)</section>', text, flags=re.DOTALL).group(1)
    return Page(section).words, rows_of(text, "Change of the R-indices per year")


def test_change_of_patients_and_controls_is_compared(analysed, undrawn):
    add_visits(analysed)
    words, rows = change_words(analysed)
    assert ["R1", "Patients less controls", "112", "+0.002", "−0.010 to 0.014", "0.600"] in rows
    assert "is told by “Patients less controls” alone" in words
    assert "change beyond that of ageing" in words
    assert "regression to the mean" in words
    assert "half a year" not in words  # everybody was seen over a year


def test_change_says_who_does_not_count_and_draws_the_others(analysed, undrawn, monkeypatch):
    add_visits(analysed)
    drawn = []
    monkeypatch.setattr(plots, "change_lines", lambda change, summary: drawn.append((change, summary)))
    change, summary = table_of(analysed, "change"), table_of(analysed, "change_summary")
    brief = (change["group"] == "control") | (change.groupby("group").cumcount() < 2)
    change.loc[brief, "years"] = 0.05
    change.to_csv(analysed / "analysis" / "change.csv", index=False)
    counts = change[~brief].groupby("group").size()
    summary = summary[summary["group"] != "patients less controls"]
    summary["n"] = summary["group"].map(counts).fillna(0).astype(int)
    summary.loc[summary["n"] == 0, ["mean", "low", "high", "p"]] = np.nan
    summary.to_csv(analysed / "analysis" / "change_summary.csv", index=False)
    words, rows = change_words(analysed)
    assert f"half a year or more ({counts.sum()} of 112) count in the means and are drawn" in words
    assert "Nobody among the controls was seen over half a year or more, so there is no mean of them." in words
    assert "Patients less controls" not in words
    assert ["R1", "Controls", "0", "–", "–", "–"] in rows
    assert sorted(drawn[0][0]["participant_id"]) == sorted(change.loc[~brief, "participant_id"])
    assert set(drawn[0][1]["group"]) == {"patient", "other"}


def test_change_over_weeks_only_is_a_table_without_a_figure(analysed, undrawn):
    add_visits(analysed)
    summary = table_of(analysed, "change_summary")
    summary = summary[summary["group"] != "patients less controls"].assign(n=0, mean=np.nan, low=np.nan, high=np.nan)
    summary.to_csv(analysed / "analysis" / "change_summary.csv", index=False)
    words, rows = change_words(analysed)
    assert "(0 of 112) count in the means: a few weeks" in words
    assert "Nobody among the controls, others and patients" in words
    assert "Faint marks" not in words
    assert len(rows) == 6


def test_warnings_stand_in_their_sections(analysed, undrawn):
    warnings = ["Patients and controls differ in age.", "rows 3 and 4 are outliers.", "Only 9 controls."]
    change_summary(analysed, warnings=warnings)
    text = write_report(analysed).read_text(encoding="utf-8")
    parts = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', text, flags=re.DOTALL))
    assert warnings[0] in parts["verdict"]
    assert warnings[1] in parts["people"]
    assert all(warnings[2] not in part for part in parts.values())
    assert text.count(warnings[0]) == text.count(warnings[1]) == text.count(warnings[2]) == 1
    assert "part of pattern 1 may be age" in parts["verdict"]
    assert "Fewer than 10 patients: R1 high." in parts["subgroups"]


def test_long_table_is_cut_and_says_where_the_rest_is(analysed, undrawn, monkeypatch):
    monkeypatch.setattr("rindices.report.tables.MOST_ROWS", 30)
    text = write_report(analysed).read_text(encoding="utf-8")
    rows = rows_of(text, "Regions of the subgroups against controls, strongest first")
    effects = table_of(analysed, "subgroups")["effect"].abs()
    assert len(rows) == 30
    assert rows[0][3].lstrip("+−") == f"{effects.max():.2f}"
    assert f"{len(effects) - 30} more rows are in <code>analysis/subgroups.csv</code>" in text


def test_first_visits_only_are_counted(analysed, undrawn):
    before = rows_of(write_report(analysed).read_text(encoding="utf-8"), "Quartiles of the R-indices")
    add_visits(analysed)
    assert rows_of(write_report(analysed).read_text(encoding="utf-8"), "Quartiles of the R-indices") == before
    people = pd.read_csv(analysed / "r_indices.csv")
    people["first_visit"] = people["visit"] == "m12"  # where the table says which is the first, that counts
    people.to_csv(analysed / "r_indices.csv", index=False)
    assert rows_of(write_report(analysed).read_text(encoding="utf-8"), "Quartiles of the R-indices") != before


def test_figures_are_saved_under_names(tmp_path):
    make_run(tmp_path / "run", n_patterns=2, n_regions=6)
    page = report_of(tmp_path / "run", figures=tmp_path / "figures")
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    stems = ["01_agreement_over_training", "02_r_indices", "03_pairs", "04_pattern_1", "05_pattern_2"]
    assert names == [f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")]
    assert [(tmp_path / "figures" / f"{stem}.svg").read_text() for stem in stems] == pictures(page)
    assert (tmp_path / "figures" / names[0]).read_bytes().startswith(b"\x89PNG")


def test_report_shows_itself_in_a_notebook(analysed, undrawn, tmp_path):
    report = make_report(analysed)
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert shown.count("<") == 2  # the page itself is escaped
    assert report.save(tmp_path / "r.html").read_text(encoding="utf-8") == report.html


@pytest.fixture
def applied(analysed):
    for name in ("selection.csv", "run.toml", "patterns.csv"):
        (analysed / name).unlink()
    summary = {"status": "done", "applied": True, "n_features": 20, "n_patterns": 2, "warnings": ["Two are odd."]}
    summary["model"] = {"file": "model.safetensors", "n_controls": 492, "n_patients": 900, "version": "0.2.0"}
    (analysed / "summary.json").write_text(json.dumps(summary))
    return analysed


def test_applied_model_says_which_and_claims_nothing_else(applied, undrawn):
    page = report_of(applied)
    assert "112 people were scored by a model that was trained before" in page.words
    assert "model.safetensors, trained with 492 controls and 900 patients, made by rindices 0.2.0" in page.words
    for word in ("Agreement over training", "reproducible", "not judged", "Repetitions used", "How many patterns"):
        assert word not in page.words, word
    assert "Associations with clinical variables" in titles(page)
    assert "Two are odd." in page.words
    assert "linear regression" not in page.words  # how covariates were removed is not known here
    change_summary(applied, covariates=["age"], correction={"smooth": ["age"]})
    words = report_of(applied).words
    assert "Effects of age were estimated in the controls that the model was trained with by linear regression" in words


def test_applied_model_without_groups(applied):
    table = pd.read_csv(applied / "r_indices.csv").drop(columns="group")
    table.to_csv(applied / "r_indices.csv", index=False)
    for path in [*(applied / "analysis").iterdir(), applied / "people.csv"]:
        path.unlink()
    page = report_of(applied)
    assert titles(page)[:4] == ["In short", "Warnings", "R-indices", "How to read an R-index"]
    assert "Pairs of R-indices" not in titles(page)
    assert "Single people" not in titles(page)


@pytest.mark.slow
def test_fifty_thousand_people_fit_into_five_megabytes(tmp_path):
    make_run(tmp_path, n_patterns=5, n_controls=20_000, n_patients=30_000, n_regions=200)
    add_analyses(tmp_path, clinical=[f"score {place}" for place in range(20)], n_drivers=3000)
    for show_ids in (False, True):
        assert write_report(tmp_path, show_ids=show_ids).stat().st_size < 5_000_000


def test_plots_get_the_tables_they_ask_for(analysed, undrawn, monkeypatch):
    drawn = {}
    monkeypatch.setattr(plots, "forest", lambda table, people: drawn.setdefault(people, table))
    monkeypatch.setattr(plots, "subgroup_dots", lambda effects, sizes: drawn.setdefault("subgroups", (effects, sizes)))
    write_report(analysed)
    assert set(drawn["patients"]["people"]) == {"patients"}
    assert drawn["subgroups"][0]["effect"].dtype == float
    assert drawn["subgroups"][1]["used"].dtype == bool
