"""Agreement, matching and consensus: symmetric, within their range, blind to order, and what a slow count says."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import somersd

from rindices.judging import agreement
from tests.judging.test_agreement import brute_concordance
from tests.properties.strategies import SCALES, SEEDS, orders

MANY = settings(max_examples=5 * settings.default.max_examples)  # they cost next to nothing
EXACT = 1e-12  # sums of a few dozen numbers near 1


@st.composite
def columns(draw, n_people):
    """R-indices of one pattern: of any size, with ties or without, seldom all the same."""
    kind = draw(st.sampled_from(["levels", "numbers", "numbers"]))
    if kind == "levels":
        return np.array(draw(st.lists(st.integers(0, 3), min_size=n_people, max_size=n_people)), float)
    rng = np.random.default_rng(draw(SEEDS))
    return draw(SCALES) * (rng.uniform(size=n_people) + draw(st.sampled_from([0.0, 1000.0])))


@st.composite
def several_models(draw, ties=False):
    """R-indices of two to five models about the same people, more or less like one truth, patterns in any order."""
    n_models, n_people, n_patterns = draw(st.integers(2, 5)), draw(st.integers(8, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(SEEDS))
    noise = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 10.0]), min_size=n_models, max_size=n_models)))
    truth = rng.uniform(size=(n_people, n_patterns))
    members = truth + noise[:, None, None] * rng.standard_normal((n_models, n_people, n_patterns))
    members = np.stack([member[:, draw(orders(n_patterns))] for member in members])
    if ties:
        members = np.floor(3 * members)
        assume((np.ptp(members, axis=1) > 0).all())  # else nothing can be compared with it
    return members * draw(SCALES)


@st.composite
def different_patterns(draw):
    """R-indices of one model, whose patterns put people in different orders; the gap between people is at least 1."""
    n_people, n_patterns = draw(st.integers(6, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(SEEDS))
    ranks = np.stack([rng.permutation(n_people) for _ in range(n_patterns)], axis=1)
    assume(len({tuple(column) for column in ranks.T}) == n_patterns)
    return ranks.astype(float)


def best_matching(reference, other):
    """Try all orders of patterns; return the best, its concordances, and by how much it beats the second."""
    table = np.array([[brute_concordance(a, b) for b in other.T] for a in reference.T])
    tried = sorted(
        (
            (float(table[range(len(table)), order].mean()), order)
            for order in map(list, permutations(range(len(table))))
        ),
        reverse=True,
    )
    margin = tried[0][0] - tried[1][0] if len(tried) > 1 else np.inf
    return tried[0][1], tried[0][0], margin


def correlation(a, b):
    """The textbook's, 0 where something does not vary."""
    return np.corrcoef(a, b)[0, 1] if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0


def slow(reference, other):
    """All three indices by their definition; NaN for the correlations where two matchings are equally good."""
    order, concordance, margin = best_matching(reference, other)
    if margin < EXACT:
        return concordance, np.nan, np.nan
    matched = other[:, order]
    same = [correlation(a, b) for a, b in zip(reference.T, matched.T, strict=True)]
    pairs = list(combinations(range(reference.shape[1]), 2))
    differences = [correlation(*(model[:, i] - model[:, j] for model in (reference, matched))) for i, j in pairs]
    return concordance, np.mean(same), np.mean(differences) if pairs else np.nan


def unambiguous(members):
    """Whether each two models have one best matching of patterns: else correlations may be those of any of them."""
    return all(best_matching(a, b)[2] > EXACT for a, b in combinations(members, 2))


@MANY
@given(st.integers(2, 40).flatmap(lambda n: st.tuples(columns(n), columns(n))))
def test_concordance_is_the_count_of_pairs_and_somers_d(pair):
    truth, score = pair
    assume(np.ptp(truth) > 0)
    found = agreement.concordance(truth, score)
    assert 0 <= found <= 1
    assert found == pytest.approx(brute_concordance(truth, score), abs=EXACT)
    if np.ptp(score) > 0:
        assert found == pytest.approx((1 + somersd(truth, score).statistic) / 2, abs=EXACT)
    assert agreement.concordance(truth, -score) == pytest.approx(1 - found, abs=EXACT)


@MANY
@given(st.booleans().flatmap(several_models))
def test_agreement_is_what_a_slow_count_says(members):
    pairs = agreement.pairwise(members)
    for i, j in combinations(range(len(members)), 2):
        for found, expected in zip(pairs[i, j], slow(members[i], members[j]), strict=True):
            if not np.isnan(expected):
                assert found == pytest.approx(expected, abs=1e-9)  # correlations of numbers far from their mean


@MANY
@given(st.booleans().flatmap(several_models))
def test_agreement_is_symmetric_and_within_its_range(members):
    pairs = agreement.pairwise(members)
    np.testing.assert_array_equal(pairs, pairs.transpose(1, 0, 2))
    found = agreement.mean_agreement(pairs)
    assert 0 <= found.pattern_agreement <= 1
    assert np.nanmax(np.abs(pairs)) <= 1
    limits = agreement.interval(pairs)
    assert np.isnan(limits[:, 1]).all() == (len(members) < 3)
    assert np.nanmax(limits[:, 1], initial=0) <= 1


@MANY
@given(several_models(), st.data())
def test_neither_the_order_of_models_nor_of_their_patterns_matters(members, data):
    assume(unambiguous(members))
    found = agreement.pairwise(members)
    order = data.draw(orders(len(members)))
    np.testing.assert_allclose(agreement.pairwise(members[order]), found[np.ix_(order, order)], atol=1e-9)
    mixed = np.stack([member[:, data.draw(orders(members.shape[2]))] for member in members])
    np.testing.assert_allclose(agreement.pairwise(mixed), found, atol=1e-9)


@MANY
@given(different_patterns(), st.data())
def test_matching_finds_a_planted_order_whatever_the_noise_below_half_a_gap(patterns, data):
    n_patterns = patterns.shape[1]
    order = data.draw(orders(n_patterns))
    rng = np.random.default_rng(data.draw(SEEDS))
    noisy = patterns + rng.uniform(-0.499, 0.499, patterns.shape)
    scales = np.array(data.draw(st.lists(SCALES, min_size=n_patterns, max_size=n_patterns)))
    found, concordances = agreement.match_patterns(patterns, (scales * noisy)[:, order])
    np.testing.assert_array_equal(order[found], np.arange(n_patterns))
    np.testing.assert_allclose(concordances, 1, atol=EXACT)


@MANY
@given(different_patterns(), st.integers(1, 5), st.data())
def test_the_consensus_of_identical_models_is_that_model(patterns, n_models, data):
    mixed = np.stack([patterns[:, data.draw(orders(patterns.shape[1]))] for _ in range(n_models)])
    found = agreement.find_consensus(mixed)
    assert found.kept.tolist() == list(range(n_models))
    np.testing.assert_allclose(found.agreement_with_medoid, 1, atol=EXACT)
    for member in agreement.aligned(mixed, found):
        np.testing.assert_array_equal(member, mixed[found.medoid])
    if n_models > 1:
        expected = (1, 1, 1 if patterns.shape[1] > 1 else np.nan)
        assert agreement.mean_agreement(agreement.pairwise(mixed)) == pytest.approx(expected, nan_ok=True)
