"""Who is left out, and why; what is refused is told in tests/bad_input."""

import os
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices import make_cohort, read_cohort
from rindices.cohort.exclusions_and_outliers import find_outliers
from rindices.schema import MIN_SITE_CONTROLS
from rindices.simulate import KINDS, simulate_cohort
from tests.cohort.people import REGIONS, table
from tests.refusal import refused_with


def test_people_with_gaps_are_left_out_and_recorded():
    gaps = (3, "lHip", np.nan), (3, "rAmy", np.nan), (5, "age", np.nan), (7, "icv", 0), (8, "lEnt", -9), (5, "icv", 0)
    frame = table(*gaps)
    cohort = make_cohort(frame, covariates="age,icv", drop_missing=True)
    people, kept = cohort.people, frame.drop(index=[3, 5, 7, 8]).set_index("participant_id")
    assert people.loc[[3, 5, 7, 8], ["reason", "flags"]].to_numpy().tolist() == [
        ["missing region", "lHip is missing, rAmy is missing"],
        ["missing covariate", "age is missing; icv = 0 is impossible"],
        ["impossible value", "icv = 0 is impossible"],
        ["impossible value", "lEnt = -9 is impossible"],
    ]
    assert people["distance"].notna().equals(people["used"])
    assert people["participant_id"][people["used"]].tolist() == kept.index.tolist()
    for part, names in (
        (cohort.features, REGIONS),
        (cohort.covariates, ["age", "icv"]),
        (cohort.diagnosis, "diagnosis"),
    ):
        assert part.to_dict() == kept[names].to_dict()
    assert cohort.warnings[0].startswith("4 of 120 rows are excluded: impossible value (2), missing ")


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "values", "n_impossible"),
    [
        ("age", np.r_[130, -1, np.inf, np.linspace(50, 80, 117)], 3),
        ("icv", np.r_[0, -5, 12_000, np.linspace(1.2e6, 1.8e6, 117)], 3),
        ("lHip", np.r_[0, -np.inf, RNG.normal(5, 0.5, 118)], 2),
        ("age", RNG.uniform(600, 960, 120), 0),  # in months
        ("education", np.r_[0.0, np.resize([12, 14, 16, 9], 119)], 0),  # no schooling
        ("motion", np.r_[0.0, RNG.gamma(2, 0.1, 119)], 0),
        ("score", RNG.normal(0, 1, 120), 0),
        ("sex", np.r_[0.0, np.ones(58), 0.0, 0.0, np.ones(59)], 0),
        ("months", RNG.uniform(600, 960, 120), 0),
    ],
)
def test_impossible_values_are_told_from_ordinary_ones(name, values, n_impossible):
    covariates = [] if name in REGIONS else [name]
    people = make_cohort(table(**{name: values}), covariates=covariates, drop_missing=True).people
    assert people["reason"].tolist() == ["impossible value"] * n_impossible + [""] * (120 - n_impossible)


def test_outliers_are_named_and_left_out_only_if_asked():
    frame = table((70, "lHip", 50.0))
    cohort = make_cohort(frame)
    assert cohort.people["used"].all()
    assert cohort.people["flags"].str.contains("lHip = 50").tolist() == [row == 70 for row in range(120)]
    (warning,) = cohort.warnings
    expected = {"errors: row 72. Check": True, "drop_outliers=True": True, "50": False, "participant": False}
    assert {part: part in warning for part in expected} == expected  # in reports: rows only
    dropped = make_cohort(frame, drop_outliers=True)
    assert (dropped.people.loc[70, "reason"], len(dropped.features)) == ("outlier", 119)
    assert dropped.people.loc[70, "distance"] == cohort.people.loc[70, "distance"] > 10


NICE = [(slice(0, 3), "place", "Nice"), (60, "place", "Nice")]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (table(*NICE, (61, "place", "Cork")), {}, r"Cork \(0 controls of 1 person\), Nice \(4 controls of 5 people\)"),
        (
            table((slice(100, None), "diagnosis", "FTD"), (slice(100, None), "place", "Cork")),
            {"patients": "AD"},
            r"Cork \(0 controls of 20 people\)",
        ),
        (
            table((slice(0, 5), "place", "Nice"), (slice(0, 1), "age", np.nan)),
            {"covariates": "age", "drop_missing": True},
            r"Nice \(4 controls of 4 people\)",  # who is left out does not count
        ),
        (
            table((slice(0, 44), "lHip", np.nan)),
            {"drop_missing": True, "complete_only": True},
            r"only 15 people have the label CN\. 45 of 120 rows are excluded: missing region",
        ),
    ],
)
def test_sites_and_groups_need_people_after_exclusion(frame, options, message):
    refused_with(message, make_cohort, frame, site="place", **options)


def test_sites_without_enough_controls_are_left_out_if_asked():
    cohort = make_cohort(table(*NICE, (61, "place", "Cork")), site="place", small_sites="drop")
    reasons = cohort.people["reason"].value_counts().to_dict()
    assert (reasons, {*cohort.site}) == ({"": 114, "site without enough controls": 6}, {"Oslo", "Bonn", "Rome"})
    assert (make_cohort(table(*NICE, (4, "place", "Nice")), site="place").site == "Nice").sum() == MIN_SITE_CONTROLS + 1


def test_clinical_scores_may_have_gaps_and_are_no_regions():
    frame = table(mmse=np.resize([29.0, np.nan, 25.0], 120), apoe=np.resize(["e3", None, "e4"], 120))
    cohort = make_cohort(frame, clinical="?m*,apo*")
    known = frame.set_index("participant_id")[["mmse", "apoe"]]
    assert cohort.clinical.astype(object).fillna("gap").to_dict() == known.astype(object).fillna("gap").to_dict()
    assert (list(cohort.features), cohort.clinical["mmse"].dtype) == (REGIONS, np.float64)
    assert make_cohort(table()).clinical.shape == (120, 0)


def test_doubtful_clinical_columns_are_warned_of():
    frame = table(mmse=np.r_[np.full(3, -9999.0), np.resize([25.0, 28.0], 117)], empty=np.nan)
    warnings = "\n".join(make_cohort(frame, clinical="mmse,empty").warnings)
    assert not [part for part in ("3 people have mmse = -9999", "without any values: empty") if part not in warnings]
    assert make_cohort(table(score=np.resize([90.0, 99.0, 105.0], 120)), clinical="score").warnings == ()


def test_people_may_lack_a_fifth_of_their_regions():
    frame = table((3, "lHip", np.nan), *((5, name, np.nan) for name in ("lHip", "rHip", "lAmy")))
    refused_with(r"Missing values in 3 region columns: lHip \(1 person\)", make_cohort, frame)
    cohort = make_cohort(frame, drop_missing=True)
    assert cohort.people.loc[[3, 5], "used"].tolist() == [True, False]
    assert (cohort.people.loc[3, "flags"], cohort.features.isna().to_numpy().sum()) == ("1 region missing (lHip)", 1)
    told = "1 row has missing regions, at most 1 of 5 per row (lHip). Missing values are imputed"
    assert not [part for part in (told, "complete_only=True") if part not in "".join(cohort.warnings)]


@pytest.mark.skipif("RINDICES_DATA" not in os.environ, reason="RINDICES_DATA does not name the folder of real tables")
def test_a_real_table_works_as_it_is():
    path = Path(os.environ["RINDICES_DATA"], "abide1_volumes.csv")
    who = {"control": "CN", "patients": "ASD", "site": "site"}
    roles = who | {"covariates": "age,sex,icv", "clinical": "fiq,ados_total,srs_total"}
    refused_with(r"icv = 0 in row 437 (.*\n)+.*drop_missing=True", read_cohort, path, **roles)
    cohort, raw = read_cohort(path, **roles, drop_missing=True), pd.read_csv(path)
    assert (len(cohort.people), cohort.features.shape[1], cohort.site.nunique()) == (len(raw), 164, 20)
    assert not cohort.people.loc[raw["icv"] == 0, "used"].any()
    assert ((cohort.people[["reason", "flags"]] != "").mean() < [0.02, 0.05]).all()
    assert not any("FS_" in warning for warning in cohort.warnings)


drawn = cache(simulate_cohort)


def simulated(kind="basic", seed=0):
    table = drawn(kind, seed=seed).table
    regions = [name for name in table if name not in ("participant_id", "diagnosis", "age", "sex")]
    group = np.where(table["diagnosis"] == "CN", "control", "patient").astype(object)
    return table[regions].to_numpy(float).copy(), regions, group


def test_the_distance_is_the_root_mean_square_of_robust_deviations():
    block = np.random.default_rng(5).normal(0, 1, (200, 6))
    group = np.repeat(np.array(["control", "patient"], dtype=object), 100)
    spread = stats.median_abs_deviation(block[:100], scale="normal")
    expected = np.sqrt((((block - np.median(block[:100], axis=0)) / spread) ** 2).mean(axis=1))
    np.testing.assert_allclose(find_outliers(block, list("abcdef"), group)[0]["distance"], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_clean_people_are_hardly_ever_flagged_however_ill(kind):
    assert np.mean([len(find_outliers(*simulated(kind, seed))[1]) / 1392 for seed in range(2)]) < 0.005


@pytest.mark.parametrize(("n", "p", "common"), [(60, 5, 0.0), (60, 20, 1.0), (400, 10, 0.0), (500, 60, 1.0)])
def test_clean_normal_people_are_hardly_ever_flagged(n, p, common):
    rng, group = np.random.default_rng(0), np.resize(np.array(["control", "patient"], dtype=object), n)
    flagged = [
        len(find_outliers(rng.normal(5, 0.4, (n, p)) + common * rng.normal(0, 0.4, (n, 1)), range(p), group)[1])
        for _ in range(10)
    ]
    assert np.mean(flagged) / n < 0.005


@pytest.mark.parametrize(
    ("factor", "whole"),
    [(10, False), (1 / 1000, False), (1000, True), (1 / 1000, True), (0.6, True)],
    ids=["one region × 10", "one region ÷ 1000", "mm3 for mL", "mL for mm3", "all regions 40 % smaller"],
)
def test_gross_errors_are_found(factor, whole):
    rng = np.random.default_rng(1)
    block, regions, group = simulated()
    who = rng.permutation(len(block))[:30]
    block[who, slice(None) if whole else rng.integers(len(regions), size=len(who))] *= factor
    marked = np.isin(np.arange(len(block)), list(find_outliers(block, regions, group)[1]))
    assert marked[who].mean() >= 0.85
    assert np.delete(marked, who).mean() < 0.005


def test_an_outlier_is_one_by_the_measure_that_stands_out():
    """Few others are compared with controls only; an absent small furrow is no error."""
    block, regions, group = simulated("null")
    furrow = np.random.default_rng(0).gamma(4, 0.1, len(block))
    block, regions = np.column_stack([block, furrow]), [*regions, "furrow"]
    group[:2] = "other"
    block[3] *= 0.55
    block[8, 5] = np.median(block[:, 5]) + 14 * np.std(block[:, 5])
    block[1] *= 0.6
    block[5, -1] = 0.0
    measures, found = find_outliers(block, regions, group)
    assert {0, 5}.isdisjoint(found)
    by = {person: ("size" in found[person].far_in, "farthest" in found[person].far_in) for person in (3, 8)}
    assert by == {3: (True, False), 8: (False, True)}
    assert (measures["size"][3], measures["farthest"].idxmax()) == (pytest.approx(-45, abs=12), 8)
    assert "smaller than usual overall" in found[1].text


def test_a_region_that_disease_changes_much_is_no_score():
    table = simulate_cohort("basic", seed=0).table  # that of the demonstration
    leak = (table["diagnosis"] == "PT") + np.random.default_rng(6).normal(5, 0.2, len(table))
    usual = make_cohort(table)
    leaking = make_cohort(table.assign(x1=leak), features=[*usual.features.columns, "x1"])
    told = [text for one in (usual, leaking) for text in one.warnings if "Are they regions?" in text]
    assert [text[text.index("almost") : text.index(" Are")] for text in told] == ["almost completely: x1."]


def test_many_people_are_looked_at_quickly():
    block = np.random.default_rng(0).normal(5, 0.5, (20_000, 145))
    group = np.resize(np.array(["control", "patient"], dtype=object), len(block))
    start = time.process_time()
    assert len(find_outliers(block, [str(i) for i in range(145)], group)[1]) < 100
    assert time.process_time() - start < 3
