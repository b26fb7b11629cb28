from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import t as student_t

from rindices.core import inference
from rindices.core.train import TrainingPeople
from rindices.judging import agreement_and_misfit as agreement
from rindices.judging.agreement_and_misfit import (
    FAILED,
    Misfit,
    covariances,
    halves_agreement,
    matched_concordance,
    misfit,
    pattern_concordance,
    squared_distance,
    suited,
)
from rindices.linear import METHODS
from tests.core import plain
from tests.linear.test_factors import N_REGIONS, cohort, dense_maps, sparse_maps


def brute_concordance(truth, score):
    """Compute the concordance from pairs whose truth differs, one by one."""
    pairs = [(i, j) for i, j in combinations(range(len(truth)), 2) if truth[i] != truth[j]]
    return np.mean([(1 + np.sign((truth[i] - truth[j]) * (score[i] - score[j]))) / 2 for i, j in pairs])


def correlation(first, second):
    return np.corrcoef(first, second)[0, 1] if np.ptp(first) * np.ptp(second) > 0 else 0


def compare(reference, other):
    """Compute the agreement of two models one pattern after the other."""
    order, concordances = agreement.match_patterns(reference, other)
    pairs = list(zip(reference.T, other.T[order], strict=True))
    differences = [correlation(a - c, b - d) for (a, b), (c, d) in combinations(pairs, 2)] or [np.nan]
    return concordances.mean(), np.mean([correlation(*pair) for pair in pairs]), np.mean(differences)


def of_two(*members):
    return agreement.mean_agreement(agreement.pairwise(np.stack(members)))


def severities(n_people=60, n_patterns=3, seed=0):
    return np.random.default_rng(seed).uniform(size=(n_people, n_patterns))


def noisy(members, sd, seed=0):
    return members + sd * np.random.default_rng(seed).standard_normal(members.shape)


@pytest.mark.parametrize("levels", [(None, None), (5, None), (None, 5), (5, 5), (2, 2), (2, 50)])
def test_concordance_counts_pairs_also_with_ties(levels):
    for seed in range(3):
        values = np.random.default_rng(seed).uniform(size=(2, 40))
        values[1] += values[0]
        truth, score = (v if n is None else np.floor(n * v) for v, n in zip(values, levels, strict=True))
        assert agreement.concordance(truth, score) == pytest.approx(brute_concordance(truth, score), abs=1e-12)


def test_concordance_of_order_reverse_constants_and_many_people():
    truth = np.arange(10)
    found = [agreement.concordance(truth, score) for score in (np.exp(truth), -truth, np.ones(10))]
    assert found == pytest.approx([1, 0, 0.5])
    many = np.arange(100_000)  # their pairs are too many for small integers
    assert agreement.concordance(many, many) == pytest.approx(1)
    with pytest.raises(ValueError, match="all reference values are equal"):
        agreement.concordance(np.ones(10), truth)


@pytest.mark.parametrize("seed", range(4))
def test_matching_is_the_best_of_all_permutations(seed):
    reference, other = severities(30, 4, seed), severities(30, 4, seed + 10)
    best = max(
        np.mean([brute_concordance(reference[:, i], other[:, k]) for i, k in enumerate(order)])
        for order in permutations(range(4))
    )
    _, concordances = agreement.match_patterns(reference, other)
    assert concordances.mean() == pytest.approx(best)
    assert agreement.pattern_concordance(reference, other) == pytest.approx(best)


def test_more_components_than_truths_are_matched_to_the_best():
    truth = severities(40, 2)
    components = np.column_stack([severities(40, 2, seed=9), noisy(truth[:, 1], 0.05), noisy(truth[:, 0], 0.05)])
    order, concordances = agreement.match_patterns(truth, components)
    assert order.tolist() == [3, 2]
    expected = [brute_concordance(truth[:, 0], components[:, 3]), brute_concordance(truth[:, 1], components[:, 2])]
    np.testing.assert_allclose(concordances, expected)
    assert agreement.pattern_concordance(truth, components) == pytest.approx(np.mean(expected))


def test_correlations_are_those_of_matched_patterns_and_of_their_differences():
    first, order = severities(), [1, 2, 0]
    matched = noisy(first, 0.1)
    found = of_two(first, matched[:, order])
    same = [np.corrcoef(first[:, i], matched[:, i])[0, 1] for i in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    differences = [np.corrcoef(first[:, i] - first[:, j], matched[:, i] - matched[:, j])[0, 1] for i, j in pairs]
    concordances = [brute_concordance(first[:, i], matched[:, i]) for i in range(3)]
    assert found == pytest.approx((np.mean(concordances), np.mean(same), np.mean(differences)))


def test_identical_models_agree_perfectly_in_any_order_and_unrelated_ones_by_chance():
    first, many = severities(), severities(2000)
    assert of_two(first, first[:, [2, 0, 1]]) == pytest.approx((1, 1, 1))
    found = of_two(many, severities(2000, seed=1))
    assert found.pattern_agreement == pytest.approx(0.5, abs=0.03)
    assert np.abs(found[1:]).max() < 0.1


def test_constant_r_index_correlates_with_nothing():
    flat = severities()
    flat[:, 1] = 0.3
    found = of_two(severities(), flat)
    assert np.isfinite(found).all()
    assert found.dimension_correlation == pytest.approx(2 / 3)


def test_pairwise_is_symmetric_within_range_and_empty_on_the_diagonal():
    members = np.stack([noisy(severities(), sd, seed) for seed, sd in enumerate([0.1, 0.3, 0.5, 2.0])])
    pairs, off = agreement.pairwise(members), ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(pairs, pairs.transpose(1, 0, 2))
    assert np.isnan(pairs[~off]).all()
    assert ((pairs[off] >= [0, -1, -1]) & (pairs[off] <= 1)).all()
    swapped = [compare(members[j], members[i]) for i, j in combinations(range(4), 2)]
    np.testing.assert_allclose(pairs[np.triu_indices(4, 1)], swapped)


def one_by_one(members):
    return np.array([compare(a, b) for a, b in combinations(members, 2)])


def upper(pairs):
    return pairs[np.triu_indices(len(pairs), 1)]


@pytest.mark.parametrize(
    ("n_people", "n_patterns", "levels", "precision"),
    [
        *product((59, 60), (1, 2, 3, 5), (None, 7), ("f8",)),
        *product((80, 1800), (3,), (20,), ("f8",)),  # if there are few people, all pairs are counted
        (300, 3, None, "f4"),  # as exact as double precision
    ],
)
def test_pairwise_compares_all_models_at_once(n_people, n_patterns, levels, precision):
    rng, truth = np.random.default_rng(n_patterns), severities(n_people, n_patterns)
    members = np.stack([noisy(truth, 0.2, seed)[:, rng.permutation(n_patterns)] for seed in range(6)])
    if levels:
        members = np.floor(levels * members)
    members = members.astype(precision)
    np.testing.assert_allclose(
        upper(agreement.pairwise(members)), one_by_one(members.astype(float)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("n_people", [2, 3, 40, 41, 900, 901])  # the last in several blocks
def test_each_pair_of_people_counts_once(n_people):
    columns = np.random.default_rng(0).integers(9, size=(4, n_people)).astype(float)
    columns[:, :2] = [0, 1]  # so that something can be compared
    columns[0] = 1e9 + 1e-6 * columns[0]  # equal in single precision
    rows = np.triu_indices(n_people, 1)
    signs = np.sign(columns[:, rows[0]] - columns[:, rows[1]])
    expected = (1 + signs @ signs.T / (signs**2).sum(axis=1)[:, None]) / 2
    found = agreement.pairwise(columns[:, :, None])[..., 0]
    np.testing.assert_allclose(upper(found), upper(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_people", [60, 1600])
def test_pairwise_with_a_flat_model_scores_chance_as_the_last_and_is_an_error_as_the_reference(n_people):
    members = np.stack([severities(n_people), severities(n_people, seed=1), np.full((n_people, 3), 0.3)])
    np.testing.assert_allclose(agreement.pairwise(members)[:2, 2], np.broadcast_to([0.5, 0, 0], (2, 3)), atol=1e-12)
    for wrong in (members[[0, 2, 1]], members[:2, :0]):
        with pytest.raises(ValueError, match="all reference values are equal"):
            agreement.pairwise(wrong)


def test_mean_agreement_is_over_pairs_and_undefined_for_one_model():
    members = np.stack([noisy(severities(), 0.2, seed) for seed in range(3)])
    three, one, none = (agreement.mean_agreement(agreement.pairwise(members[:n])) for n in (3, 1, 0))
    assert three == pytest.approx(tuple(np.mean(one_by_one(members), axis=0)))
    assert np.isnan([one, none]).all()


def leave_one_out_errors(members):
    n_models = len(members)
    means = np.array([np.mean(one_by_one(np.delete(members, i, axis=0)), axis=0) for i in range(n_models)])
    return np.sqrt((n_models - 1) / n_models * np.sum((means - means.mean(axis=0)) ** 2, axis=0))


@pytest.mark.parametrize("n_models", [3, 6])
@pytest.mark.parametrize("n_patterns", [1, 3])
def test_standard_errors_come_from_leaving_out_one_model(n_models, n_patterns):
    truth = severities(n_patterns=n_patterns)
    members = np.stack([noisy(truth, 0.1 * (1 + seed), seed) for seed in range(n_models)])
    pairs, expected = agreement.pairwise(members), leave_one_out_errors(members)
    np.testing.assert_allclose(agreement.jackknife(pairs), expected, atol=1e-12)
    assert np.isnan(expected).tolist() == [False, False, n_patterns == 1]
    mean, half = one_by_one(members).mean(axis=0), student_t(n_models - 1).interval(0.95)[1] * expected
    limits = np.stack([mean - half, np.minimum(mean + half, 1)], axis=1)
    np.testing.assert_allclose(agreement.interval(pairs), limits, atol=1e-12)


@pytest.mark.parametrize("n_models", [0, 1, 2])
def test_two_models_are_too_few_for_a_standard_error(n_models):
    pairs = agreement.pairwise(np.stack([severities(), noisy(severities(), 0.1)])[:n_models])
    np.testing.assert_array_equal(agreement.jackknife(pairs), np.full(3, np.nan))
    np.testing.assert_array_equal(agreement.interval(pairs), np.full((3, 2), np.nan))


def test_faults_are_named():
    good, flat, nan, infinite = (severities() for _ in range(4))
    flat[:, 2] = 0.5 + 0.01 * flat[:, 2]
    nan[3, 1], infinite[0, 0] = np.nan, np.inf
    alike = good[:, [0, 0, 0]]  # one pattern three times, yet people differ
    told = agreement.faults(np.stack([good, alike, flat, nan, infinite]))
    assert told == ["", "", "collapsed", "diverged", "diverged"]


# Halves of cohorts whose patterns are known, or that have none.


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_matched_concordance_is_about_that_of_pairs(correlation):
    rng = np.random.default_rng(int(10 * correlation))
    first = rng.standard_normal((800, 3))
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.standard_normal(first.shape)
    found = matched_concordance(first, np.exp(second)[:, [2, 0, 1]])  # only ranks count
    assert found == pytest.approx(pattern_concordance(first, second[:, [2, 0, 1]]), abs=0.02)
    assert found == matched_concordance(np.exp(second)[:, [2, 0, 1]], first)


@pytest.mark.parametrize("law", [np.random.Generator.uniform, np.random.Generator.exponential])
def test_matched_concordance_of_scores_that_are_not_normal_is_near_that_of_pairs(law):
    rng = np.random.default_rng(1)
    first = law(rng, size=(800, 2))
    second = first + 0.5 * first.std() * rng.standard_normal(first.shape)
    assert matched_concordance(first, second) == pytest.approx(pattern_concordance(first, second), abs=0.02)


def test_equal_models_agree_perfectly():
    scores = np.random.default_rng(0).standard_normal((50, 3))
    assert matched_concordance(scores, scores[:, [1, 2, 0]]) == pytest.approx(1)
    assert matched_concordance(scores[:, :1], scores[:, :1]) == pytest.approx(1)


@pytest.mark.parametrize("disjoint_controls", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_halves_of_a_cohort_with_patterns_agree(method, disjoint_controls):
    controls, patients, _ = cohort(sparse_maps(2) if method == "sparse" else dense_maps(2))
    assert halves_agreement(controls, patients, 2, method, disjoint_controls=disjoint_controls, n_splits=1) > 0.8


def test_halves_without_disease_hardly_agree():
    controls, patients, _ = cohort(np.zeros((1, N_REGIONS)))
    assert halves_agreement(controls, patients, 2, "sparse", disjoint_controls=True, n_splits=2) < 0.65


def test_same_seed_gives_the_same_halves():
    controls, patients, _ = cohort(sparse_maps(2))
    first, again, other = (
        halves_agreement(controls, patients, 2, "ica", disjoint_controls=True, n_splits=1, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_halves_share_no_patient_and_controls_only_if_asked_to(monkeypatch):
    controls, patients = np.arange(11.0)[:, None], 100 + np.arange(7.0)[:, None]
    asked = []

    def fitted(healthy, sick, n_patterns, seed, quick=False):
        asked.append((set(healthy[:, 0]), set(sick[:, 0])))
        if seed:
            raise np.linalg.LinAlgError
        return _Flat()

    monkeypatch.setitem(METHODS, "sparse", fitted)
    # A half that cannot be fitted counts as chance agreement.
    for disjoint in (True, False):
        asked.clear()
        assert halves_agreement(controls, patients, 1, "sparse", disjoint_controls=disjoint, n_splits=1) == FAILED
        (healthy, sick), (other_healthy, other_sick) = asked
        assert (sick & other_sick, sick | other_sick) == (set(), set(patients[:, 0]))
        assert healthy | other_healthy == set(controls[:, 0])
        assert healthy & other_healthy == (set() if disjoint else set(controls[:, 0]))


class _Flat:
    def severities(self, people):
        return people


@pytest.mark.parametrize(("maps", "expected"), [(dense_maps(3), "ica"), (sparse_maps(3), "sparse")])
def test_the_method_that_suits_the_maps_is_preferred(maps, expected):
    controls, patients, _ = cohort(maps)
    method, values = suited(controls, patients, 3)
    assert (method, set(values)) == (expected, {"sparse", "ica"})
    assert values[expected] > 0.8


# Distance of covariances, where the truth is known.


def people(rng, n_people, factors):
    """Return scaled brains whose variances are known, in sd of controls."""
    return 1 + 0.1 * np.sqrt(factors) * rng.standard_normal((n_people, len(factors)))


@pytest.mark.parametrize(("factors", "expected"), [(np.ones(4), 0.0), (np.array([1, 1.5, 1, 2]), 0.5**2 + 1.0**2)])
def test_distance_is_without_bias(factors, expected):
    rng = np.random.default_rng(0)
    samples = [(people(rng, 300, factors), people(rng, 1000, np.ones(4))) for _ in range(100)]
    values = [squared_distance(*map(covariances, pair)) for pair in samples]
    error = np.std(values, ddof=1) / 10
    assert error < 0.05
    assert abs(np.mean(values) - expected) < 3 * error + 0.01 * expected  # means of people are estimated, too


def test_each_repetition_is_compared_with_the_patients_as_the_discriminator_sees_them(monkeypatch):
    rng = np.random.default_rng(0)
    made = iter([people(rng, 4000, np.array([4, 2])), people(rng, 4000, np.array([4, 6]))])
    monkeypatch.setattr(inference, "synthesise", lambda *_: next(made)[None])
    models = plain.stacked([plain.random_parameters(2, 2, seed) for seed in (0, 1)])
    cohort = TrainingPeople(np.ones((50, 2)), people(rng, 4000, np.array([4, 2])), np.diag([0.5, 1.0]))
    found = misfit(models, np.tile(np.eye(2), (2, 1, 1)), cohort, "additive", 0)
    np.testing.assert_allclose(found.distances, [0, 4**2], atol=1.5)


def test_one_is_clearly_above_another_by_standard_errors_of_their_logarithms():
    # A distance below 1 is chance.
    far, near, alone = (Misfit(np.exp(of)) for of in ([4.0, 5.0, 6.0], [2.0, 2.1, 0.2, -3.0], [6.0]))
    assert (far.value, near.value) == pytest.approx((np.exp(5), np.exp((2 + 2.1 + 0.2 + 0) / 4)))
    at = (5 - (2 + 2.1 + 0.2 + 0) / 4) / np.sqrt(np.var([4, 5, 6], ddof=1) / 3 + np.var([2, 2.1, 0.2, 0], ddof=1) / 4)
    assert [far.is_clearly_above(near, factor * at) for factor in (0.99, 1.01)] == [True, False]
    assert [one.is_clearly_above(far, 0) for one in (near, far, alone)] == [False, False, True]
