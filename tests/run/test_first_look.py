"""What is said before anything is trained: it comes after the check, and it is what `fit` finds."""

import json
import time

import numpy as np
from typer.testing import CliRunner

from rindices import SurrealGANSearch
from rindices.analysis import group_balance
from rindices.cli import app
from rindices.cli.console_and_exits import set_output
from rindices.cohort import read_cohort
from rindices.core import devices
from rindices.judging.verdict_and_separation import differences_that_count
from rindices.problems import roughly
from rindices.run import plan
from rindices.run.first_look_and_power import first_look, look_pictures
from rindices.settings import SearchSettings
from rindices.simulate import simulate_cohort
from tests.pages.page import Page

N_REGIONS = 24


def table_of(folder, kind, n_controls=150, n_patients=150, n_patterns=2):
    cohort = simulate_cohort(kind, n_controls=n_controls, n_patients=n_patients, n_patterns=n_patterns, seed=3)
    changed = [*dict.fromkeys(name for pattern in cohort.patterns.values() for name in pattern)]
    others = [name for name in cohort.table.columns[4:] if name not in changed]
    table = cohort.table[[*cohort.table.columns[:4], *changed, *others][: 4 + N_REGIONS]]
    table.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def said(*arguments):
    result = CliRunner().invoke(app, ["check", *map(str, arguments)])
    set_output()
    assert result.exit_code == 0, result.output
    return result.output


def test_the_check_is_shown_first_and_the_look_is_what_fit_finds(tmp_path):
    path = table_of(tmp_path, "basic")
    lines = said(path, "--covariates", "age,sex", "--report", tmp_path / "check.html").splitlines()
    [people] = [place for place, line in enumerate(lines) if line.startswith("People remaining: 150 controls")]
    waiting = lines.index("Comparing patients and controls …")
    [headline] = [line for line in lines if "Patients and controls differ (p" in line]
    assert people < waiting < lines.index(headline)
    cohort = read_cohort(path, covariates="age,sex")
    search = SurrealGANSearch(n_repetitions=1, preset="linear", random_state=0)
    search.fit(cohort.features, cohort.group == "patient", cohort.covariates)
    n_found = search.spectrum_.found_again
    assert n_found == search.best_params_["n_patterns"] >= 1
    noun = "direction" if n_found == 1 else "directions"
    p = f"{search.spectrum_.p:.2g}"
    differ = f"Patients and controls differ (p = {p}) in at least {n_found} {noun}."
    assert headline.startswith(f"{differ} Possible verdicts")
    assert sum(line.startswith("  Pattern ") for line in lines) == n_found
    assert lines[-1].startswith("fit can train on this table. Training takes about ")
    words = Page((tmp_path / "check.html").read_text(encoding="utf-8")).words
    assert not [part for part in (headline, "Band: the same with permuted groups") if part not in words]
    assert "Preview from one linear model" in words


def test_the_look_can_be_left_out(tmp_path):
    path = table_of(tmp_path, "basic")
    assert said(path, "--no-spectrum").splitlines()[-1] == "fit can train on this table."
    assert json.loads(said(path, "--no-spectrum", "--json"))["look"] is None


def test_without_a_difference_it_says_what_would_have_shown(tmp_path):
    found = json.loads(said(table_of(tmp_path, "null"), "--json"))["look"]
    assert found["p"] > 0.05
    assert "differ no more than expected by chance" in found["headline"]
    assert f"an AUC of about {found['detectable_auc']:.2f}" in found["verdicts"]
    assert "only possible verdict is “no difference”" in found["verdicts"]
    assert found["patterns"] == []


def test_more_regions_than_people_are_said_with_what_helps(tmp_path):
    table = simulate_cohort("basic", n_controls=24, n_patients=30, seed=3).table.iloc[:, :44]
    table.to_csv(tmp_path / "wide.csv", index=False)
    table.assign(diagnosis=["CN", "PT"] * 27).to_csv(tmp_path / "no.csv", index=False)
    for name, controls, missed in (
        ("wide", 24, "weaker additional patterns may be missed"),
        ("no", 27, "a smaller difference would be missed"),
    ):
        few = f"With {controls} controls and 40 regions, {missed}: average left and right, choose fewer regions"
        assert few in first_look(read_cohort(tmp_path / f"{name}.csv", covariates="age")).verdicts
    some = read_cohort(tmp_path / "wide.csv", covariates="age", features=list(table.columns[4:24]))
    assert "missed" not in first_look(some).verdicts


def with_covariates(folder, n_controls, n_patients, n_covariates):
    table = simulate_cohort("basic", n_controls=n_controls, n_patients=n_patients, seed=3).table
    names = [f"c{number}" for number in range(n_covariates)]
    table = table.iloc[:, : 4 + N_REGIONS]
    table[names] = np.random.default_rng(5).normal(size=(len(table), n_covariates))
    table.to_csv(folder / "few.csv", index=False)
    return folder / "few.csv", ",".join(names)


def test_too_few_people_for_their_covariates_are_not_testable(tmp_path):
    path, names = with_covariates(tmp_path, 30, 20, 12)
    look = first_look(read_cohort(path, covariates=names))
    assert look.verdicts == "The only possible verdict is “not testable”."
    assert look.headline.startswith("Patients and controls cannot be tested for a difference: too few people")
    assert look_pictures(look) == (None, None)
    assert look.warnings


def test_what_only_training_refuses_is_refused(tmp_path):
    path, names = with_covariates(tmp_path, 24, 40, 16)
    result = CliRunner().invoke(app, ["check", str(path), "--covariates", names, "--json"])
    set_output()
    assert result.exit_code == 2
    found = json.loads(result.output)
    assert (found["usable"], found["look"]) == (False, None)
    assert "Estimating their effects requires at least 32 controls" in found["problems"][0]["text"]


def test_imbalanced_groups_cannot_be_more_than_confounded(tmp_path):
    table = simulate_cohort("basic", n_controls=100, n_patients=100, seed=3).table.iloc[:, : 4 + N_REGIONS]
    table.loc[table["diagnosis"] == "PT", "age"] += 10
    table.to_csv(tmp_path / "older.csv", index=False)
    look = first_look(read_cohort(tmp_path / "older.csv", exclude="age,sex"))
    assert "confounded, because the groups also differ in age" in look.verdicts
    assert "reproducible" not in look.verdicts


def test_what_differs_between_sites_alone_is_judged_as_a_fit_judges_it(tmp_path):
    table = simulate_cohort("basic", n_controls=100, n_patients=100, seed=3).table.iloc[:, : 4 + N_REGIONS]
    patient = (table["diagnosis"] == "PT").to_numpy()
    table["site"] = np.where(np.arange(200) % 10 < np.where(patient, 8, 2), "old", "young")
    table["age"] = table["age"] + 20 * (table["site"] == "old")
    table.to_csv(tmp_path / "sites.csv", index=False)
    cohort = read_cohort(tmp_path / "sites.csv", covariates="age", site="site", exclude="sex")
    assert differences_that_count(group_balance(cohort.background, patient)) == ["age", "site"]
    assert differences_that_count(plan.balance_of(cohort)) == ["site"]
    assert "because the groups also differ in site;" in first_look(cohort).verdicts


def test_time_grows_with_what_is_trained(monkeypatch):
    monkeypatch.setattr(plan, "slowness", lambda: 1.0)
    monkeypatch.setattr(devices, "n_cores", lambda: 2)
    usual = plan.time_needed(1392, 128, 3, SearchSettings()).seconds
    for people, regions, patterns, search in (
        (1392, 256, 3, SearchSettings()),
        (1392, 128, 5, SearchSettings()),
        (1392, 128, 3, SearchSettings(n_repetitions=20)),
        (1392, 128, 3, SearchSettings(orthogonality=(0.4, 0.8))),
        (1392, 128, 3, SearchSettings(preset="blind")),
    ):
        assert plan.time_needed(people, regions, patterns, search).seconds > 1.2 * usual
    assert plan.time_needed(1392, 128, 3, SearchSettings(preset="linear")).seconds < usual
    assert plan.time_needed(1392, 128, 3, SearchSettings(), n_numbers=2).seconds > 1.5 * usual


def test_two_numbers_of_patterns_take_longer_where_none_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "slowness", lambda: 1.0)
    table = simulate_cohort("basic", n_controls=60, n_patients=60, seed=3).table.iloc[:, : 4 + N_REGIONS]
    table.assign(diagnosis=["CN", "PT"] * 60).to_csv(tmp_path / "null.csv", index=False)
    cohort = read_cohort(tmp_path / "null.csv", covariates="age")
    found, given = first_look(cohort), first_look(cohort, SearchSettings(n_patterns=(1,)))
    assert found.directions == 0
    assert found.seconds > given.seconds
    assert (
        str(plan.TimeNeeded(700, "the 2 cores"))
        == "about 10 minutes on the 2 cores of this machine, if it is otherwise idle"
    )
    assert roughly(80 * 60) == "80 minutes"
    assert 0.01 < np.median([plan.slowness() for _ in range(2)]) < 100


def test_waiting_for_other_programs_does_not_make_a_core_look_slow(monkeypatch):
    usual, maximum = plan.slowness(), np.maximum
    monkeypatch.setattr(plan.np, "maximum", lambda *values: (time.sleep(2e-4), maximum(*values))[1])
    assert plan.slowness() < 5 * usual  # by the clock, ten times as slow
