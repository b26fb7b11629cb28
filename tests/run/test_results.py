"""Scores and analyses of a run, and the files written when it is finished."""

import json

import numpy as np
import pandas as pd
import pytest

from rindices import Correction, SurrealGAN, load_model, make_report, read_cohort, simulate_cohort
from rindices.record import Summary
from rindices.run.apply_table import apply_table, people_for
from rindices.run.bids_derivative import write_bids
from rindices.run.fit_table import fit_table, run_plan, separation
from rindices.run.plan import planned
from rindices.run.scores_and_analyses import analyse, results_of, scores_of
from rindices.settings import ApplySettings, ExecutionSettings, OutputSettings, SearchSettings, TableSettings
from tests.longevity.freeze import COHORT, FROZEN
from tests.pages.page import missing
from tests.refusal import refused_with

LINEAR = FROZEN / "linear" / "model.safetensors"


def told_apart(folder, kind, n_people, **changes):
    """Return how well the groups of a simulated two-site cohort can be told apart."""
    table = simulate_cohort(kind, n_controls=n_people[0], n_patients=n_people[1], seed=0).table
    columns = {"site": np.where(np.arange(len(table)) % 3, "A", "B")} | changes
    table.assign(**columns).to_csv(folder / "p.csv", index=False)
    settings = TableSettings(covariates="age,sex", site="site")
    return separation(read_cohort(folder / "p.csv", settings), Correction(site="site"))


def test_groups_are_told_apart_in_people_that_nothing_was_learned_from(tmp_path):
    ill, nobody = told_apart(tmp_path, "mild", (492, 900)), told_apart(tmp_path, "null", (300, 300))
    assert 0.8 < ill.low < ill.auc < ill.high
    assert nobody.low < 0.5 < nobody.high
    assert nobody.high - nobody.low > 1.2 * 4 * 1.96 * 0.0118  # 1.2 widths of a rank test's interval at chance
    # No value if a site is too small to be held out in parts.
    assert told_apart(tmp_path, "basic", (100, 100), site=np.where(np.arange(200) < 11, "B", "A")) is None


@pytest.mark.filterwarnings("ignore:Excluded repetitions")
def test_all_visits_of_a_control_are_scored_by_repetitions_that_did_not_learn_from_it(tmp_path, quick_preset):
    """A second visit with the same regions as the first gets the same score."""
    first = simulate_cohort("basic", n_controls=40, n_patients=40, seed=0).table.iloc[:, :16].assign(visit="bl")
    pd.concat([first, first.assign(visit="m12")]).to_csv(tmp_path / "visits.csv", index=False)
    cohort = read_cohort(tmp_path / "visits.csv", TableSettings(covariates="sex", exclude="age", visit="visit"))
    used, model = cohort.training, SurrealGAN(2, n_repetitions=5, preset=quick_preset, random_state=0)
    model.fit(cohort.features[used], cohort.group[used] == "patient", cohort.covariates[used])
    assert not np.allclose(model.r_indices_, np.nan_to_num(model.held_out_r_indices_, nan=9))
    visits = scores_of(model, cohort).set_index("participant_id")[["visit", "r1", "r2"]].groupby("visit")
    one, two = (visits.get_group(visit)[["r1", "r2"]] for visit in ("bl", "m12"))
    pd.testing.assert_frame_equal(one, two, rtol=1e-7, atol=1e-9, check_like=True)


def test_a_value_that_could_be_a_code_does_not_end_a_run_after_training(tmp_path):
    """In a skewed region, 999 may lie beyond the quantiles that a model stores but within the table's values."""
    people = simulate_cohort("basic", n_controls=60, n_patients=80, seed=4).table.iloc[:, [*range(20)]]
    skewed = np.round(np.exp(np.random.default_rng(1).normal(5.3, 0.4, len(people))))
    skewed[[5, 9, 80, 120]] = 1300, 999, 999, 1300
    others = people["diagnosis"].where(np.arange(len(people)) != 80, "MCI")  # one of the two with 999 is only scored
    people.assign(roi_lesions=skewed, diagnosis=others).to_csv(tmp_path / "people.csv", index=False)
    run = linear_run(tmp_path, TableSettings(covariates="age,sex", patients="PT"), 1, n_repetitions=3)
    assert pd.read_csv(run / "r_indices.csv")["severity1"].notna().sum() == len(people)
    apart = load_model(run / "model.safetensors")
    regions = pd.read_csv(tmp_path / "people.csv")[[*apart.feature_names_in_]]
    refused_with("roi_lesions = 999", apart.transform, regions)  # in new people, it may well be a code


def test_maps_at_a_severity_are_that_share_of_the_largest_change(tmp_path):
    """Repetitions recover fewer extremes than they put in, so an R-index is not the severity that f was given."""
    cohort = simulate_cohort("mild", n_controls=100, n_patients=120, seed=1)
    cohort.save(tmp_path / "people.csv")
    features = tuple(dict.fromkeys(name for pattern in cohort.patterns.values() for name in pattern))
    run = linear_run(tmp_path, TableSettings(covariates="age,sex", features=features), 3, n_repetitions=4)
    scores, maps = (pd.read_csv(run / name) for name in ("r_indices.csv", "analysis/severities.csv"))
    maps, shares = maps.pivot(index="region", columns=["pattern", "severity"], values="change_sd"), [0.25, 0.5, 0.75]
    for pattern in (1, 2, 3):
        largest = maps[pattern][1.0]
        np.testing.assert_allclose(maps[pattern][shares].T @ largest / (largest @ largest), shares, atol=0.02)
        limits = (scores[f"severity{pattern}_{end}"] for end in ("low", "high"))
        assert scores[f"severity{pattern}"].between(*limits).all()


def linear_run(folder, table, n_patterns, **search):
    """Fit linear models to the people in a folder; return the run's folder."""
    settings = SearchSettings(n_patterns, preset="linear", **search)
    return fit_table(folder / "people.csv", folder / "run", table, settings, OutputSettings(report=False)).folder


def analysed(model, path, summary):
    """Return the analyses of people scored by a model."""
    (people,), fitted = people_for(model, path, ApplySettings(), whole=True), load_model(model)
    return analyse(fitted, results_of(fitted, people), summary)


def test_a_region_that_nobody_has_is_neither_a_finding_nor_a_reason(tmp_path):
    """Nor is a region that one person lacks a reason for that person."""
    gone = {"lAmy", "rAmy"}
    table = pd.read_csv(COHORT).drop(columns=[*gone])
    table.loc[0, "lHip"] = None
    table.to_csv(tmp_path / "people.csv", index=False)
    tables = analysed(LINEAR, tmp_path / "people.csv", Summary(status="done", applied=True, covariates=("age",)))
    named = ("group_effects", "subgroups", "dose_response", "drivers")
    assert [name for name in named if gone & set(tables[name]["region"])] == []
    reasons = tables["drivers"].groupby("participant_id")["region"].agg(set)
    assert "lHip" in set.union(*reasons)
    assert "lHip" not in reasons[table["participant_id"][0]]


def test_visits_of_which_one_is_left_out_have_a_report(tmp_path):
    first = pd.read_csv(COHORT).assign(visit=1)
    first.loc[3, "age"] = None
    pd.concat([first, first.assign(visit=2, age=first["age"] + 1)]).to_csv(tmp_path / "visits.csv", index=False)
    files, report = [tmp_path / name for name in ("visits.csv", "scores.csv")], tmp_path / "report.html"
    asked = ApplySettings(visit="visit", drop_missing=True)
    done = apply_table(LINEAR, *files, asked, report=report, output=OutputSettings())
    assert (done.n_rows, report.exists()) == (2 * len(first) - 2, True)


def test_head_size_that_regions_are_divided_by_is_tested_in_controls():
    summary = Summary(status="done", covariates=("age", "icv"), correction={"proportion": "icv"})
    tables = analysed(FROZEN / "every-correction" / "model.safetensors", COHORT, summary)
    check = tables["group_check"].set_index("variable")
    assert check.loc["age", "removed"].all()
    assert not check.loc["icv", "removed"].any()
    assert check["q"].notna().equals(~check["removed"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([{"control": "CN"}], r"`table` should be TableSettings\(\.\.\.\), but got dict"),
        ([SearchSettings()], r"`table` should be TableSettings\(\.\.\.\), but got SearchSettings"),
        ([None, {"preset": "linear"}], r"`search` should be SearchSettings\(\.\.\.\), but got dict"),
    ],
)
def test_settings_in_the_wrong_place_are_refused(tmp_path, settings, message):
    refused_with(message, fit_table, "people.csv", tmp_path / "run", *settings)


# Files of a finished run


@pytest.mark.parametrize("n_found", [1, 3])
@pytest.mark.filterwarnings("ignore:Only .* controls and .* patients:UserWarning")
def test_patterns_are_compared_with_a_truth_of_another_number(tmp_path, n_found):
    cohort = simulate_cohort("basic", n_controls=40, n_patients=40, n_patterns=2, seed=0)
    cohort.save(tmp_path / "people.csv")
    search = SearchSettings(n_found, n_repetitions=2, preset="linear")
    columns = TableSettings(features=tuple(cohort.table.columns[4:20]))
    plan = planned(tmp_path / "people.csv", tmp_path / "run", columns, search, OutputSettings(report=False))
    recovery = run_plan(plan, ExecutionSettings(), truth=cohort.truth).recovery
    matched = {*recovery.matched_patterns} & {*range(1, n_found + 1)}
    numbers = recovery.n_known, len({*recovery.matched_truth}), len(recovery.matched_patterns), len(matched)
    assert numbers == (2, *[min(n_found, 2)] * 3)
    per_pattern = zip(recovery.matched_patterns, recovery.per_pattern, strict=True)
    assert not missing(
        make_report(tmp_path / "run").html,
        f"The data contain 2 patterns and the run found {n_found}",
        *(f"{r:.3f} (pattern {k})" for k, r in per_pattern),
    )


SUMMARY = Summary(
    status="unfinished",
    source="volumes.csv",
    versions={"rindices": "1.2.3", "jax": "0.8"},
    control_labels=("CN",),
    patient_labels=("AD",),
    verdict="reproducible",
    reliable=True,
)


def table(**more):
    columns = {
        "participant_id": ["sub-01", "0002", "sub-03"],
        "diagnosis": ["CN", "AD", "n/a"],
        "group": ["control", "patient", "other"],
        "r1": [0.01, 1.2345678, -0.1],
        "r1_sd": [0.1, np.nan, 0.2],
        "flags": ["", "an\toutlier:\nlHip", ""],
    }
    return pd.DataFrame(columns | more)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_table_its_dictionary_and_the_description(tmp_path):
    paths = write_bids(tmp_path, table(), SUMMARY)
    names = ["dataset_description.json", "phenotype/r_indices.tsv", "phenotype/r_indices.json"]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == names
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)  # nothing half-written
    assert paths[1].read_bytes().decode() == (
        "participant_id\tdiagnosis\tgroup\tr1\tr1_sd\tflags\n"
        "sub-01\tCN\tcontrol\t0.01\t0.1\tn/a\n"
        "0002\tAD\tpatient\t1.23457\tn/a\tan outlier: lHip\n"
        "sub-03\tn/a\tother\t-0.1\t0.2\tn/a\n"
    )
    description, sidecar = read(paths[0]), read(paths[2])
    assert "interpret" not in sidecar.pop("MeasurementToolMetadata")["Description"]
    assert {name for name, entry in sidecar.items() if entry["Description"]} == {*table().columns} == {*sidecar}
    assert set(sidecar["group"]["Levels"]) == {"control", "patient", "other"}
    assert sidecar["diagnosis"]["Levels"] == {"AD": "counted as a patient", "CN": "counted as a control"}
    assert (sidecar["r1"]["Units"], "Maximum" in sidecar["r1"]) == ("arbitrary", False)  # R-indices are not clipped
    made_by = description["GeneratedBy"][0]
    told = [description[name] for name in ("Name", "DatasetType")] + [made_by[name] for name in ("Name", "Version")]
    assert told == ["R-indices of volumes.csv", "derivative", "rindices", "1.2.3"]
    assert (description["BIDSVersion"][:2], "SourceDatasets" in description) == ("1.", False)


def test_what_is_known_of_the_source_and_of_the_reliability(tmp_path):
    known = {"source_doi": "doi:10.1/x", "verdict": "not reproducible", "reliable_reason": "Halves disagree."}
    description, _, sidecar = write_bids(tmp_path, table(), SUMMARY.model_copy(update=known))
    assert read(description)["SourceDatasets"] == [{"DOI": "doi:10.1/x"}]
    told = "The groups differ, but the patterns are not reproducible. Halves disagree."
    assert told in read(sidecar)["MeasurementToolMetadata"]["Description"]


@pytest.mark.parametrize(
    ("visits", "heading", "cell"),
    [
        (["ses-01", "ses-02", "ses-01"], "session_id", "ses-02"),
        (["ses-01", "baseline", "ses-01"], "visit", "baseline"),
        ([1.0, 2.0, 1.0], "visit", "2"),
    ],
)
def test_visits_are_sessions_where_they_are_called_so(tmp_path, visits, heading, cell):
    people = table(visit=visits, years=[0.0, 1.5, 0.0], first_visit=[True, False, True])
    paths = write_bids(tmp_path, people, SUMMARY.model_copy(update={"visits": True}))
    header, _, second, _ = (line.split("\t") for line in paths[1].read_text().splitlines())
    assert (header[:2], second[1], second[-2:]) == (["participant_id", heading], cell, ["1.5", "false"])
    assert all(read(paths[2])[name]["Description"] for name in header)
