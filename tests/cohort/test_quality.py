import time
from functools import cache

import numpy as np
import pytest

from rindices import make_cohort
from rindices.cohort.exclusions_and_outliers import find_outliers
from rindices.simulate import KINDS, simulate_cohort


@cache
def drawn(kind, seed):
    return simulate_cohort(kind, seed=seed).table


def simulated(kind="basic", seed=0):
    table = drawn(kind, seed)
    regions = [name for name in table if name not in ("participant_id", "diagnosis", "age", "sex")]
    group = np.where(table["diagnosis"] == "CN", "control", "patient").astype(object)
    return table[regions].to_numpy(float).copy(), regions, group


def test_the_distance_is_the_root_mean_square_of_robust_deviations():
    rng = np.random.default_rng(0)
    block, group = rng.normal(0, 1, (200, 6)), np.repeat(np.array(["control", "patient"], dtype=object), 100)
    controls = block[:100]
    centre = np.median(controls, axis=0)
    spread = np.median(np.abs(controls - centre), axis=0) / 0.6744897501960817
    found = find_outliers(block, list("abcdef"), group)[0]["distance"]
    np.testing.assert_allclose(found, np.sqrt((((block - centre) / spread) ** 2).mean(axis=1)), rtol=1e-4)


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
    block, regions, group = simulated("null")
    block[3] *= 0.55
    block[8, 5] = np.median(block[:, 5]) + 14 * np.std(block[:, 5])
    measures, found = find_outliers(block, regions, group)
    assert "size" in found[3].far_in
    assert "farthest" not in found[3].far_in
    assert measures["size"][3] == pytest.approx(-45, abs=12)
    assert "farthest" in found[8].far_in
    assert "size" not in found[8].far_in
    assert measures["farthest"].idxmax() == 8


def test_a_region_that_disease_changes_much_is_no_score():
    table = simulate_cohort("basic", seed=0).table  # that of the demonstration
    assert not [text for text in make_cohort(table).warnings if "Are they regions?" in text]
    leak = (table["diagnosis"] == "PT") + np.random.default_rng(0).normal(5, 0.2, len(table))
    warnings = make_cohort(table.assign(x1=leak), features=[*make_cohort(table).features.columns, "x1"]).warnings
    told = [text for text in warnings if "Are they regions?" in text]
    assert len(told) == 1
    assert "almost completely: x1. Are" in told[0]


def test_few_others_are_compared_with_controls_only():
    block, regions, group = simulated("null")
    group[:3] = "other"
    block[1] *= 0.6
    notes = find_outliers(block, regions, group)[1]
    assert "smaller than usual overall" in notes[1].text
    assert 0 not in notes


def test_an_absent_small_furrow_is_no_error():
    block, regions, group = simulated("null")
    furrow = np.random.default_rng(0).gamma(4, 0.1, len(block))
    furrow[5] = 0.0
    assert 5 not in find_outliers(np.column_stack([block, furrow]), [*regions, "furrow"], group)[1]


def test_many_people_are_looked_at_quickly():
    block = np.random.default_rng(0).normal(5, 0.5, (20_000, 145))
    group = np.resize(np.array(["control", "patient"], dtype=object), len(block))
    start = time.process_time()
    assert len(find_outliers(block, [str(i) for i in range(145)], group)[1]) < 100
    assert time.process_time() - start < 3
