"""Agreement, matching and consensus: blind to the order of models, of their patterns, and to units."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import somersd

from rindices.judging import agreement_and_misfit as agreement
from rindices.scoring.consensus_and_person import aligned, find_consensus
from tests.properties.strategies import SCALES, SEEDS, orders

MANY = settings(max_examples=5 * settings.default.max_examples)  # they cost next to nothing
EXACT = 1e-12  # sums of a few dozen numbers near 1


@st.composite
def columns(draw, n_people):
    """R-indices of one pattern: of any size, with ties or without, seldom all the same."""
    rng = np.random.default_rng(draw(SEEDS))
    numbers = draw(SCALES) * (rng.uniform(size=n_people) + draw(st.sampled_from([0.0, 1000.0])))
    return draw(st.sampled_from([numbers, rng.integers(4, size=n_people).astype(float)]))


@st.composite
def different_patterns(draw):
    """R-indices of one model, whose patterns put people in different orders; the gap between people is at least 1."""
    n_people, n_patterns = draw(st.integers(6, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(SEEDS))
    ranks = np.stack([rng.permutation(n_people) for _ in range(n_patterns)], axis=1)
    assume(len({tuple(column) for column in ranks.T}) == n_patterns)
    return ranks.astype(float)


@MANY
@given(st.integers(2, 40).flatmap(lambda n: st.tuples(columns(n), columns(n))))
def test_concordance_is_that_of_somers_d_and_that_of_the_reverse_its_complement(pair):
    truth, score = pair
    assume(np.ptp(truth) > 0)
    found = agreement.concordance(truth, score)
    assert found == pytest.approx((1 + somersd(truth, score).statistic) / 2 if np.ptp(score) > 0 else 0.5, abs=EXACT)
    assert agreement.concordance(truth, -score) == pytest.approx(1 - found, abs=EXACT)


@MANY
@given(different_patterns(), st.data())
def test_neither_the_order_of_models_nor_of_their_patterns_nor_their_units_matter(patterns, data):
    """Noise below half a gap leaves no doubt which patterns are the same."""
    rng, n_models = np.random.default_rng(data.draw(SEEDS)), data.draw(st.integers(2, 5))
    members = patterns + rng.uniform(-0.499, 0.499, (n_models, *patterns.shape))
    found = agreement.pairwise(members)
    np.testing.assert_array_equal(found, found.transpose(1, 0, 2))
    order = data.draw(orders(n_models))
    np.testing.assert_allclose(agreement.pairwise(members[order]), found[np.ix_(order, order)], atol=1e-9)
    mixed = np.stack([member[:, data.draw(orders(patterns.shape[1]))] for member in members])
    np.testing.assert_allclose(agreement.pairwise(data.draw(SCALES) * mixed), found, atol=1e-9)


@MANY
@given(different_patterns(), st.data())
def test_matching_finds_a_planted_order_whatever_the_noise_below_half_a_gap(patterns, data):
    n_patterns = patterns.shape[1]
    order = data.draw(orders(n_patterns))
    noisy = patterns + np.random.default_rng(data.draw(SEEDS)).uniform(-0.499, 0.499, patterns.shape)
    scales = np.array(data.draw(st.lists(SCALES, min_size=n_patterns, max_size=n_patterns)))
    found, concordances = agreement.match_patterns(patterns, (scales * noisy)[:, order])
    np.testing.assert_array_equal(order[found], np.arange(n_patterns))
    np.testing.assert_allclose(concordances, 1, atol=EXACT)


@MANY
@given(different_patterns(), st.integers(1, 5), st.data())
def test_the_consensus_of_identical_models_is_that_model(patterns, n_models, data):
    mixed = np.stack([patterns[:, data.draw(orders(patterns.shape[1]))] for _ in range(n_models)])
    found = find_consensus(mixed)
    assert found.kept.tolist() == list(range(n_models))
    np.testing.assert_allclose(found.agreement_with_medoid, 1, atol=EXACT)
    for member in aligned(mixed, found):
        np.testing.assert_array_equal(member, mixed[found.medoid])
