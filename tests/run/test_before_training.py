"""Before training: the check of a table, the first look at it, and the power of a study."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.spatial.distance import pdist
from scipy.special import expit

from rindices import SearchSettings, SurrealGANSearch, TableSettings, read_cohort, simulate_cohort
from rindices.analysis import group_balance
from rindices.cli.console_and_exits import long_wait
from rindices.core import devices
from rindices.judging.verdict_and_separation import differences_that_count
from rindices.run import first_look_and_power, plan
from rindices.run.check_table import CheckedTable, check_table
from rindices.run.first_look_and_power import first_look, look_pictures
from rindices.schema.role_guesses import kind_of
from tests.pages.page import Page, missing
from tests.test_cli import succeed, told

# The check of a table, which agrees with `fit`


ROLES = ("--covariates", "age,sex", "--site", "site")


@pytest.fixture(scope="module")
def people():
    """Return 120 people with a total, a quality measure, a score, an empty column and one brain much too small."""
    table, rng = simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).table, np.random.default_rng(0)
    table.insert(2, "site", np.tile(["A", "B"], 60))
    others = {
        "TotalGrayVol": table.iloc[:, 5:].sum(axis=1),
        "qc_rating": rng.normal(3, 1, 120),
        "mmse": rng.integers(18, 31, 120) * 1.0,
        "empty": np.nan,
        "note": "text",
    }
    table.loc[7, table.columns[5:130]] *= 0.6
    return table.assign(**others)


def checked(table, folder, *options, code=0):
    table.to_csv(folder / "people.csv", index=False)
    return told("check", folder / "people.csv", *ROLES, *options, code=code)


def found_in(table, folder, *options):
    return CheckedTable.model_validate_json(checked(table, folder, *options, "--json"))


def test_columns_people_groups_and_outliers_are_told(people, tmp_path):
    found = found_in(people, tmp_path)
    by_name = {column.name: column for column in found.columns}
    assert list(by_name) == list(people.columns)
    assert [by_name[name].role for name in ("age", "site", "lHip")] == ["a covariate", "the site", "a region"]
    assert {name: column.why for name, column in by_name.items() if column.role == "no role"} == {
        "note": "text, not numbers",
        "empty": "no values",
        "TotalGrayVol": "a total, judging by its name",
        "qc_rating": "quality measure",
        "mmse": "score",
    }
    assert {column.suspicion for column in found.columns} == {""}
    assert by_name["lHip"].median == pytest.approx(people["lHip"].median())
    assert {kind: len(names) for kind, names in found.kinds.items()} == {"regions": 128}
    assert [one.value for one in found.advice if one.setting == "clinical"] == [("mmse",)]
    assert (found.usable, found.n_controls, found.n_patients, found.left_out) == (True, 60, 60, {})
    expected = people["site"][people["diagnosis"] == "CN"].value_counts().to_dict()
    assert {row["site"]: row["used"] for row in found.flow if row["group"] == "control"} == {"all": 60, **expected}
    assert [row["variable"] for row in found.balance] == ["age", "sex", "site"]
    [outlier] = found.outliers
    assert (outlier.row, "smaller than usual" in outlier.text) == (9, True)
    assert people.loc[7, [*outlier.cells]].tolist() == pytest.approx([*outlier.cells.values()])
    assert "Columns computed from others are excluded: TotalGrayVol" in " ".join(found.warnings)


def test_scores_and_qualities_by_name_are_suspects_where_they_are_named(people, tmp_path):
    found = found_in(people, tmp_path, "--features", "lHip,rHip,lAmy,rAmy,qc_rating,mmse")
    suspects = {column.name: column.suspicion for column in found.columns if column.suspicion}
    assert suspects == {"qc_rating": "quality measure", "mmse": "score"}
    assert {kind: len(names) for kind, names in found.kinds.items()} == {
        "regions": 4,
        "quality measures": 1,
        "scores": 1,
    }


def test_a_table_that_fit_refuses_is_told_with_what_helps_and_who_would_remain(people, tmp_path):
    bad = people.assign(rHip=people["rHip"].round(0).where(people.index != 4))
    bad.loc[3, "lHip"] = -9
    said, left = checked(bad, tmp_path, code=2), people["diagnosis"].drop([3, 4]).value_counts()
    assert not missing(
        said,
        "lHip = -9 in row 5",
        "Missing values in 1 region column: rHip (1 person)",
        f"People remaining (with --drop-missing): {left['CN']} controls, {left['PT']} patients",
        "fit would reject this table. Ways to fix this: ",
    )
    refused = told("fit", tmp_path / "people.csv", "--out", tmp_path / "run", *ROLES, code=2)
    problems = check_table(tmp_path / "people.csv", TableSettings(covariates="age,sex", site="site")).problems
    assert not missing(refused, *(problem.text.partition(" row ")[0] for problem in problems))
    assert bad.loc[3, "participant_id"] in refused
    assert bad.loc[3, "participant_id"] not in said


def test_the_page_has_the_same_and_neither_ids_nor_scripts(people, tmp_path):
    evil, page = "<script>alert(1)</script>", tmp_path / "check.html"
    checked(people.rename(columns={"lHip": evil}), tmp_path, "--report", page)
    text, ids = page.read_text(encoding="utf-8"), people["participant_id"].tolist()
    assert missing(Page(text).words, evil, "This table can be used for training", *ids) == ids
    assert "<script" not in text


@pytest.mark.parametrize(
    ("name", "suspicion"),
    [
        ("EstimatedTotalIntraCranialVol", "head size"),
        ("BrainSegVolNotVent", "total"),
        ("lh_MeanThickness_thickness", "total"),
        ("lhSurfaceHoles", "quality measure"),
        ("AgeAtScan", "age or time"),
        ("years_education", "age or time"),
        ("CDR-sb", "score"),
        ("panss_total", "score"),
        ("memory_score", "score"),
        ("lHip_z_score", ""),
        ("qc_rating", "quality measure"),
        ("Left-Accumbens-area", ""),
        ("lh_precuneus_mean", ""),
        ("average", "total"),
        ("WM-hypointensities", ""),
        ("MUSE_Volume_47", ""),
        ("l", ""),
    ],
)
def test_names_tell_what_is_no_region(name, suspicion):
    assert kind_of(name).suspicion == suspicion


# The first look, which follows the check and agrees with what `fit` finds


N_REGIONS = 24


def table_of(folder, kind):
    """Write a table of 300 people with as many affected regions as possible."""
    cohort = simulate_cohort(kind, n_controls=150, n_patients=150, n_patterns=2, seed=3)
    changed = dict.fromkeys(name for pattern in cohort.patterns.values() for name in pattern)
    names = [*dict.fromkeys([*cohort.table.columns[:4], *changed, *cohort.table.columns[4:]])]
    cohort.table[names[: 4 + N_REGIONS]].to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def said(*arguments):
    return succeed("check", *arguments).output


def test_large_tables_are_said_to_take_minutes_and_the_look_can_be_left_out(tmp_path, monkeypatch):
    path = table_of(tmp_path, "basic")
    monkeypatch.setattr("rindices.cli.check.long_wait", lambda n_values: long_wait(1000 * n_values))
    assert "Comparing patients and controls; this can take several minutes with a table of this size …" in said(path)
    assert said(path, "--no-spectrum").endswith("\nfit can train on this table.\n")


def test_the_check_is_shown_first_and_the_look_is_what_fit_finds(tmp_path):
    path, page = table_of(tmp_path, "basic"), tmp_path / "check.html"
    lines = said(path, "--covariates", "age,sex", "--report", page).splitlines()
    cohort = read_cohort(path, covariates="age,sex")
    search = SurrealGANSearch(n_repetitions=1, preset="linear", random_state=0)
    search.fit(cohort.features, cohort.group == "patient", cohort.covariates)
    n_found = search.spectrum_.found_again
    assert n_found == search.best_params_["n_patterns"] >= 1
    differ = f"Patients and controls differ (p = {search.spectrum_.p:.2g}) in at least {n_found} direction"
    starts = ("People remaining: 150 controls", "Comparing patients and controls …", differ)
    shown = [line for line in lines if line.startswith(starts)]
    assert [line[: len(start)] for line, start in zip(shown, starts, strict=True)] == [*starts]
    assert sum(line.startswith("  Pattern ") for line in lines) == n_found
    assert lines[-1].startswith("fit can train on this table. Training takes about ")
    expected = (shown[-1], "Band: variance with permuted groups", "Preview from one linear model")
    assert not missing(Page(page.read_text(encoding="utf-8")).words, *expected)


def test_without_a_difference_it_says_what_would_have_shown(tmp_path):
    found = json.loads(said(table_of(tmp_path, "null"), "--json"))["look"]
    assert (found["p"] > 0.05, found["patterns"]) == (True, [])
    assert "differ no more than expected by chance" in found["headline"]
    expected = (f"an AUC of about {found['detectable_auc']:.2f}", "only possible verdict is “no difference”")
    assert not missing(found["verdicts"], *expected)


def test_more_regions_than_people_are_said_with_what_helps(tmp_path):
    path = tmp_path / "wide.csv"
    table = simulate_cohort("basic", n_controls=24, n_patients=30, seed=3).table.iloc[:, :44]
    for diagnosis, controls, missed in (
        (["CN", "PT"] * 27, 27, "a smaller difference would be missed"),
        (table["diagnosis"], 24, "weaker additional patterns may be missed"),
    ):
        table.assign(diagnosis=diagnosis).to_csv(path, index=False)
        few = f"With {controls} controls and 40 regions, {missed}. To prevent this, average left and right"
        assert few in first_look(read_cohort(path, covariates="age")).verdicts
    assert "missed" not in first_look(read_cohort(path, covariates="age", features=list(table.columns[4:24]))).verdicts


def with_covariates(folder, n_controls, n_patients, n_covariates):
    people = simulate_cohort("basic", n_controls=n_controls, n_patients=n_patients, seed=3).table
    values = np.random.default_rng(5).normal(size=(len(people), n_covariates))
    people.iloc[:, : 4 + N_REGIONS].join(pd.DataFrame(values).add_prefix("c")).to_csv(folder / "few.csv", index=False)
    return folder / "few.csv", ",".join(f"c{number}" for number in range(n_covariates))


def test_too_few_people_for_their_covariates_are_not_testable(tmp_path):
    path, names = with_covariates(tmp_path, 30, 20, 12)
    look = first_look(read_cohort(path, covariates=names))
    assert look.verdicts == "The only possible verdict is “not testable”."
    assert look.headline.startswith("Differences between patients and controls cannot be tested: too few people")
    assert (look_pictures(look), bool(look.warnings)) == ((None, None), True)


def test_what_only_training_refuses_is_refused(tmp_path):
    path, names = with_covariates(tmp_path, 24, 40, 16)
    found = json.loads(told("check", path, "--covariates", names, "--json", code=2))
    assert (found["usable"], found["look"]) == (False, None)
    assert "Estimating them requires at least 32 controls" in found["problems"][0]["text"]


def between_groups():
    """Return 200 people, who of them is a patient, and who has a trait that is more frequent in patients."""
    table = simulate_cohort("basic", n_controls=100, n_patients=100, seed=3).table.iloc[:, : 4 + N_REGIONS]
    patient = (table["diagnosis"] == "PT").to_numpy()
    return table, patient, np.arange(200) % 10 < np.where(patient, 8, 2)


@pytest.mark.parametrize("name", ["age", "scanner"])
def test_imbalanced_groups_cannot_be_more_than_confounded(tmp_path, name):
    """Scanner codes have the same mean in both groups."""
    table, patient, outer = between_groups()
    table["age"] += 10 * (patient & (name == "age"))
    table["scanner"] = np.where(outer & (name == "scanner"), np.resize([1, 4], 200), np.resize([2, 3], 200))
    table.to_csv(tmp_path / "older.csv", index=False)
    verdicts = first_look(read_cohort(tmp_path / "older.csv", exclude="age,sex")).verdicts
    expected = f"“confounded”, because the groups also differ in {name}"
    assert missing(verdicts, expected, "“reproducible”") == ["“reproducible”"]


def test_what_differs_between_sites_alone_is_judged_as_a_fit_judges_it(tmp_path):
    table, patient, outer = between_groups()
    table.assign(site=outer, age=table["age"] + 20 * outer).to_csv(tmp_path / "sites.csv", index=False)
    cohort = read_cohort(tmp_path / "sites.csv", covariates="age", site="site", exclude="sex")
    balances = group_balance(cohort.background, patient), plan.balance_of(cohort)
    assert [differences_that_count(balance) for balance in balances] == [["age", "site"], ["site"]]
    assert "because the groups also differ in site." in first_look(cohort).verdicts


def test_time_grows_with_what_is_trained(monkeypatch):
    monkeypatch.setattr(plan, "slowness", lambda: 1.0)
    monkeypatch.setattr(devices, "n_cores", lambda: 2)

    def seconds(regions=128, patterns=3, n_numbers=1, **search):
        return plan.time_needed(1392, regions, patterns, SearchSettings(**search), n_numbers=n_numbers).seconds

    usual = seconds()
    for more, least in (
        ({"regions": 256}, 1.2),
        ({"patterns": 5}, 1.2),
        ({"n_repetitions": 20}, 1.2),
        ({"orthogonality": (0.4, 0.8)}, 1.2),
        ({"preset": "blind"}, 1.2),
        ({"n_numbers": 2}, 1.5),
    ):
        assert seconds(**more) > least * usual, more
    assert seconds(preset="linear") < usual


# The power of a study


@pytest.mark.parametrize("sizes", [(60, 80, 68), (100, 300, 100)])
def test_chances_are_those_of_a_weighted_logistic_regression_on_the_sizes(sizes):
    grid = first_look_and_power._grid()
    away = np.log2(grid[["controls", "patients", "regions"]].to_numpy() / np.array(sizes))
    weight = np.exp(-2 * (away**2).sum(axis=1))
    for row in first_look_and_power.chances(*sizes).query("0.03 < chance < 0.97").itertuples():
        own = (grid["patterns"] == row.patterns) & (grid["strength"] == row.strength) & (weight > 1e-6)
        counts = np.column_stack([grid["found"], grid["studies"] - grid["found"]])[own]
        model = sm.GLM(counts, sm.add_constant(away[own]), sm.families.Binomial(), var_weights=weight[own])
        assert row.low <= row.chance <= row.high
        assert row.chance == pytest.approx(expit(model.fit().params[0]), abs=0.02)


def test_the_command_says_it_and_draws_it(tmp_path):
    said = told("power", "--controls", 60, "--patients", 80, "--figure", tmp_path / "power.svg")
    chance = first_look_and_power.chances(60, 80, 68)["chance"][0]
    assert not missing(said, f"1 pattern of strength 0.5 SD: {100 * chance:.0f} %", "3 patterns of strength 2 SD")
    assert "Probability of finding all patterns" in (tmp_path / "power.svg").read_text(encoding="utf-8")


def test_what_studies_of_this_size_find_is_said_in_words():
    assert "Simulated studies of this size" in first_look_and_power.in_words(60, 80, 68)


def test_a_strong_pattern_is_found_and_no_pattern_is_not():
    rng, simulated_study = np.random.default_rng(0), first_look_and_power.simulated_study
    strong = simulated_study(rng.normal(size=(160, 20)), None, 80, 1, 3.0, 0)
    assert strong.found
    assert strong.error < 0.2
    assert sum(simulated_study(rng.normal(size=(160, 20)), None, 80, 1, 1e-9, seed).found for seed in range(8)) <= 2


def test_no_person_of_a_study_like_own_controls_is_the_copy_of_another_and_they_vary_as_the_controls_do(monkeypatch):
    rng, studies = np.random.default_rng(1), []
    own = rng.normal(size=(400, 30)) + 2 * rng.normal(size=(400, 1))
    found = first_look_and_power.SimulatedStudy(True, 0.1, 0.9)
    monkeypatch.setattr(first_look_and_power, "simulated_study", lambda people, *_: studies.append(people) or found)
    first_look_and_power.like(own, None, 300, 300)
    assert pdist(studies[0]).min() > 2  # copies with noise of 0.1 sd would give 0.8
    assert np.mean([np.cov(people.T) for people in studies], axis=0) == pytest.approx(np.cov(own.T), abs=0.5)


@pytest.mark.parametrize(
    ("n_regions", "most"), [(12, "3 patterns of strength 2 SD"), (2, "2 patterns of strength 2 SD")]
)
def test_own_controls_are_simulated_on(tmp_path, monkeypatch, n_regions, most):
    monkeypatch.setattr(first_look_and_power, "LIKE", 2)
    rng, path = np.random.default_rng(0), tmp_path / "healthy.csv"
    healthy = pd.DataFrame(rng.normal(5, 1, (90, n_regions))).add_prefix("region")
    healthy.assign(age=rng.normal(60, 5, 90)).to_csv(path, index=False)
    said = told("power", "--controls", 40, "--patients", 40, "--like", path)
    assert not missing(said, f"40 controls, 40 patients and {n_regions} regions", "2 studies", most)
