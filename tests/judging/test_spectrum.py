"""Tables with a known difference between the groups: none, a shift, or a number of directions."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import kstest, norm
from sklearn.covariance import ledoit_wolf

from rindices import SurrealGAN
from rindices.judging import spectrum
from rindices.judging.spectrum import NotTestable, Spectrum, drawn_in, look
from rindices.judging.study import training_set
from rindices.presets import Correction, linear

N_REGIONS, N_GROUP, N_PERMUTATIONS = 20, 40, 49
PATIENT = np.repeat([False, True], N_GROUP)


def healthy(rng, n_people=2 * N_GROUP, n_regions=N_REGIONS):
    """Return regions that are correlated and not normal."""
    mixing = np.random.default_rng(99).standard_normal((n_regions, n_regions)) / np.sqrt(n_regions) + np.eye(n_regions)
    return rng.exponential(size=(n_people, n_regions)) @ mixing


def sick(rng, n_directions, n_group=150, size=1.2):
    """Return people among whom the patients vary in `n_directions` additional directions."""
    patient, maps = np.repeat([False, True], n_group), np.zeros((n_directions, N_REGIONS))
    for k in range(n_directions):
        maps[k, 5 * k : 5 * k + 5] = size
    severities = rng.standard_normal((2 * n_group, n_directions)) * patient[:, None]
    return rng.standard_normal((2 * n_group, N_REGIONS)) + severities @ maps, patient


@pytest.mark.parametrize("with_covariates", [False, True])
def test_p_is_uniform_without_a_difference(with_covariates):
    def p(seed):
        rng = np.random.default_rng([seed, 11])
        regions, design = healthy(rng), None
        if with_covariates:  # these differ between the groups, and regions depend on them
            design = np.column_stack([rng.normal(60 + 8 * PATIENT, 8), rng.random(2 * N_GROUP) < 0.3 + 0.3 * PATIENT])
            regions = regions + design @ np.outer([0.1, 1.0], np.linspace(-1, 1, N_REGIONS))
        return look(regions, PATIENT, design, seed=seed, n_permutations=N_PERMUTATIONS).p

    values = np.array([p(seed) for seed in range(40)])
    assert values.min() >= 1 / (N_PERMUTATIONS + 1)
    assert kstest(values, "uniform").pvalue > 0.01
    assert (values <= 0.05).sum() <= 6  # two are expected; seven or more have p = 1/290


@pytest.mark.parametrize("n_directions", [1, 2])
def test_planted_directions_are_counted(n_directions):
    found = look(*sick(np.random.default_rng(1), n_directions), n_permutations=N_PERMUTATIONS)
    assert found.directions == found.found_again == n_directions
    assert (found.p_spread, found.p, found.differs) == (0.02, 0.02, True)
    # A severity of sd 1 moves five regions by 1.2 each: variance 1 + 5 · 1.2² in that direction.
    np.testing.assert_allclose(found.eigenvalues[:n_directions], 8.2, rtol=0.35)
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert found.limit == pytest.approx(np.quantile(found.null[:, 0], 0.95))


def test_held_out_people_are_compared_in_standard_errors_of_a_log_ratio():
    rng, patient = np.random.default_rng(5), np.repeat([False, True], [200, 600])
    regions = rng.standard_normal((800, 1)) * np.where(patient, 1.3, 1.0)[:, None]
    variances = [regions[group].var() for group in (patient, ~patient)]
    expected = np.log(variances[0] / variances[1]) / np.sqrt(2 / 600 + 2 / 200)
    np.testing.assert_allclose(look(regions, patient, n_permutations=9).held_out, [expected], rtol=0.05)


def test_without_disease_nothing_is_counted():
    found = look(*sick(np.random.default_rng(2), 0), n_permutations=N_PERMUTATIONS)
    assert (found.found_again, found.differs) == (0, False)


def test_shift_alone_is_found():
    regions = np.random.default_rng(3).standard_normal((2 * N_GROUP, N_REGIONS)) + 0.6 * PATIENT[:, None]
    found = look(regions, PATIENT, n_permutations=N_PERMUTATIONS)
    assert (found.p_shift, found.p, found.p_spread > 0.05, found.found_again) == (0.02, 0.02, True, 0)
    assert found.shift > found.null_shift.max()


def test_smallest_difference_that_would_have_shown_falls_with_people():
    def detectable(n_group):
        regions = np.random.default_rng(4).standard_normal((2 * n_group, N_REGIONS))
        return look(regions, np.repeat([False, True], n_group), n_permutations=N_PERMUTATIONS).detectable

    (few_auc, few_ratio), (many_auc, many_ratio) = detectable(30), detectable(300)
    assert 0.5 <= many_auc < few_auc < 1
    assert 1 < many_ratio < few_ratio


def site_table(seed=5, n_sites=3):
    rng, site = np.random.default_rng(seed), np.arange(2 * N_GROUP) % n_sites
    return rng.standard_normal((2 * N_GROUP, N_REGIONS)) + 3 * rng.standard_normal((n_sites, N_REGIONS))[site], site


def test_sites_do_not_count_as_a_difference():
    values = []
    for seed in range(8):
        regions, site = site_table(seed)
        patient = np.random.default_rng([seed, 1]).random(len(site)) < np.array([0.2, 0.5, 0.8])[site]
        values.append(look(regions, patient, site=site, seed=seed, n_permutations=19).p)
    assert np.sum(np.array(values) <= 0.05) <= 2
    assert look(regions, patient, n_permutations=19).p <= 0.05  # the share of patients differs between sites


def test_what_would_have_shown_is_the_auc_of_two_normals_that_correlate_so_with_the_group():
    correlation = np.sqrt(0.24 / 1.24)  # of normals one sd apart, 40 % of them patients
    found = Spectrum(np.ones(2), np.ones((9, 2)), 4.0, 0.0, np.full(9, correlation), 0.4, np.zeros(2), 1.0, 1.0, 1.0)
    assert found.detectable == pytest.approx((norm.cdf(1 / np.sqrt(2)), 2.0))


def test_the_shift_is_the_correlation_of_the_group_with_ridge_regression_without_each_row():
    regions = np.random.default_rng(4).standard_normal((80, N_REGIONS)) * np.linspace(0.3, 3, N_REGIONS)
    both = np.column_stack([drawn_in(regions + 0.5 * PATIENT[:, None]), PATIENT])
    (*rows, group), predicted = spectrum._rotated(np.ones((80, 1)), both, one_site=True).T, []
    rows = np.transpose(rows)
    for k, row in enumerate(rows):
        others, penalty = np.delete(rows, k, axis=0), (rows**2).sum() / N_REGIONS * np.eye(N_REGIONS)
        predicted.append(row @ np.linalg.solve(others.T @ others + penalty, others.T @ np.delete(group, k)))
    found = look(regions + 0.5 * PATIENT[:, None], PATIENT, n_permutations=9)
    assert found.shift == pytest.approx(np.corrcoef(predicted, group)[0, 1])


@pytest.mark.parametrize("n_sites", [1, 3])
def test_sums_of_products_say_of_many_people_what_their_rows_do(n_sites):
    rng = np.random.default_rng(8)
    site, columns = np.arange(300) % n_sites, rng.standard_normal((300, 2))
    columns = np.column_stack([site[:, None] == np.arange(n_sites), columns, columns[:, 0]])  # one column twice
    regions, patient = healthy(rng, 300), rng.random(300) < 0.3
    few, many = (spectrum._Spread.of(regions, patient, columns, site, many) for many in (5000, 10))
    assert len(few.products) == 0 < len(many.products)
    np.testing.assert_allclose(many.eigenvalues(many.labels), few.eigenvalues(few.labels), rtol=1e-10)


@pytest.mark.parametrize("n_effects", [1, 5])
def test_reflections_rotate_as_a_matrix_does(n_effects):
    """Both rotate into the same space, with equal cross-products of regions; each row is mostly one person."""
    rng = np.random.default_rng(8)
    columns = np.column_stack([np.ones(60), np.ones(60), rng.standard_normal((60, n_effects - 1))])
    values = rng.standard_normal((60, 7))
    ways = [spectrum._rotated(columns, values, one_site=True, many=many) for many in (5000, 10)]
    assert len(ways[0]) == len(ways[1]) == 60 - n_effects
    np.testing.assert_allclose(*(rows.T @ rows for rows in ways), atol=1e-10)
    turn = spectrum._rotated(columns, np.eye(60), one_site=False)
    np.testing.assert_allclose(turn @ columns, 0, atol=1e-10)
    assert (np.abs(turn).argmax(axis=1) == np.arange(n_effects, 60)).all()


def test_covariates_of_several_sites_do_not_count_as_a_difference():
    (regions, site), age = site_table(), np.random.default_rng(3).normal(60 + 20 * PATIENT, 10)
    older = regions + 0.1 * age[:, None]
    assert look(older, PATIENT, age[:, None], site, n_permutations=N_PERMUTATIONS).p > 0.05
    assert look(older, PATIENT, site=site, n_permutations=N_PERMUTATIONS).p <= 0.05


@pytest.mark.parametrize("n_sites", [3, 12])  # with 12, no site is large enough for effects of its own
def test_covariates_and_sites_fit_few_controls_no_better_than_many_patients(n_sites):
    """Effects estimated in each group leave less variance in the smaller one, which is not a sign of disease."""

    def p(seed):
        rng, site = np.random.default_rng([seed, 5]), np.arange(240) % n_sites
        regions = rng.standard_normal((240, N_REGIONS)) * np.linspace(1, 3, n_sites)[site, None]  # as scanners differ
        return look(regions, np.arange(240) >= 48, rng.standard_normal((240, 6)), site, seed, n_permutations=19).p

    assert sum(p(seed) <= 0.05 for seed in range(12)) <= 3


def test_people_who_are_far_by_a_covariate_alone_do_not_count_as_a_difference():
    """Drawing them in before the covariate is removed would leave a part of its effect, in which the groups differ."""

    def p(seed):
        rng, patient = np.random.default_rng([seed, 7]), np.arange(400) % 2 == 0
        skewed = rng.lognormal(0.5 * patient, 0.8)[:, None]
        regions = rng.standard_normal((400, N_REGIONS)) + 0.7 * skewed
        return look(regions, patient, skewed, np.arange(400) % 3, seed, n_permutations=19).p

    assert sum(p(seed) <= 0.05 for seed in range(8)) <= 2


def test_sites_that_were_harmonised_in_controls_do_not_count_as_a_difference():
    """A site's scale fits the controls from whom it was estimated better than its patients."""

    def p(seed):
        patient, site = np.repeat([0, 1], [60, 240]), pd.DataFrame({"site": [f"S{k % 8}" for k in range(300)]})
        regions = np.random.default_rng([seed, 6]).normal(5, 1, (300, N_REGIONS))
        learner = SurrealGAN(preset="linear", correction=Correction(site="site"), random_state=seed)
        return training_set(learner, linear(), regions, patient, site).study.spectrum[0].p

    assert sum(p(seed) <= 0.05 for seed in range(8)) <= 2


def test_people_of_sites_with_one_group_are_left_out():
    regions, _ = site_table()
    site = np.where(np.arange(len(PATIENT)) % 4 == 0, np.where(PATIENT, "only patients", "only controls"), "both")
    kept = site == "both"
    found = look(np.where(kept[:, None], regions, 1e3), PATIENT, site=site, n_permutations=9)
    again = look(np.where(kept[:, None], regions, -5.0), PATIENT, site=site, n_permutations=9)
    np.testing.assert_array_equal(found.eigenvalues, again.eigenvalues)
    assert (found.shift, found.share) == (again.shift, PATIENT[kept].mean())
    age = np.random.default_rng(1).normal(size=(len(PATIENT), 1))  # measured regions have its effect
    plain, older = (look(rows, PATIENT, age, site=site, n_permutations=9) for rows in (regions, regions + 50 * age))
    np.testing.assert_allclose(older.eigenvalues, plain.eigenvalues, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_group", "n_covariates", "site", "message"),
    [
        (10, 0, None, "too few people"),
        (25, 15, None, "too few people"),
        (40, 0, np.repeat([0, 1], 40), "no site has both"),
    ],
)
def test_too_few_people_and_sites_with_one_group_cannot_be_tested(n_group, n_covariates, site, message):
    rng = np.random.default_rng(0)
    design = rng.standard_normal((2 * n_group, n_covariates)) if n_covariates else None
    with pytest.raises(NotTestable, match=message):
        look(rng.standard_normal((2 * n_group, 5)), np.repeat([False, True], n_group), design, site)


def test_far_people_are_drawn_in_and_others_stay():
    regions = np.random.default_rng(6).normal(5, 2, (200, N_REGIONS))
    regions[7] += 200
    found, middle = drawn_in(regions), np.median(regions, axis=0)
    away = (regions - middle) / (1.4826 * np.median(np.abs(regions - middle), axis=0))
    others = np.arange(200) != 7
    np.testing.assert_allclose(found[others], away[others])
    size = np.sqrt((found**2).mean(axis=1))
    assert size[7] == size.max() < 2
    assert np.corrcoef(found[7], away[7])[0, 1] == pytest.approx(1)  # in the same direction
    np.testing.assert_allclose(drawn_in(regions * np.linspace(1, 9, N_REGIONS) - 3), found)  # whatever the unit


def test_drawing_in_does_not_look_at_labels_and_keeps_one_person_from_deciding():
    regions = np.random.default_rng(7).standard_normal((2 * N_GROUP, N_REGIONS))
    regions[-1] += 30  # a patient whose scan failed
    assert look(regions, PATIENT, n_permutations=N_PERMUTATIONS).found_again == 0


def test_constant_region_does_no_harm():
    regions, patient = sick(np.random.default_rng(1), 1)
    regions[:, -1] = 4.0
    assert look(regions, patient, n_permutations=19).directions == 1


def test_same_seed_gives_the_same_bits():
    regions = healthy(np.random.default_rng(8))
    first, again, other = (look(regions, PATIENT, seed=seed, n_permutations=9) for seed in (3, 3, 4))
    for name, value in first._asdict().items():
        np.testing.assert_array_equal(value, getattr(again, name))
    np.testing.assert_array_equal(first.eigenvalues, other.eigenvalues)
    assert not np.array_equal(first.null, other.null)


def test_directions_that_change_some_regions_leave_the_others_alone():
    """A direction's weights times the healthy covariance are the change that it detects."""
    rng = np.random.default_rng(2)
    controls, patients = (healthy(rng, n_people=80) for _ in range(2))
    changed = np.arange(N_REGIONS) < 7
    values, directions = spectrum._directions(patients, controls, 3, changed)
    assert np.abs((ledoit_wolf(controls, assume_centered=True)[0] @ directions)[~changed]).max() < 1e-9
    everywhere = spectrum._directions(patients, controls, 3)[0]
    assert (values <= everywhere).all()
    np.testing.assert_allclose(spectrum._directions(patients, controls, 3, changed | True)[0], everywhere)


def test_weak_patterns_are_counted_where_means_differ():
    """Among directions in all regions, they are hidden by chance."""
    rng, patient = np.random.default_rng(4), np.repeat([False, True], 200)
    regions, severities = rng.standard_normal((400, 80)), rng.uniform(size=(200, 2))
    regions[200:, :6] -= 1.9 * severities[:, :1]
    regions[200:, 6:12] -= 1.9 * severities[:, 1:]
    found = look(regions, patient, n_permutations=19)
    spread = spectrum._Spread.of(drawn_in(regions), patient, np.ones((400, 1)), np.zeros(400, int))
    assert (
        (
            found._replace(held_out=spread._held_out(None, rng)).found_again < 2,
            found.found_again,
            (found.p, found.differs),  # the smallest p of 19 permutations
            found.held_out[:2].min() > 7,  # 5 if directions were learned from a tenth of the people
        )
        == (True, 2, (0.05, True), True)
    )


def test_differences_of_means_are_those_of_a_regression():
    rng = np.random.default_rng(6)
    age, site = rng.standard_normal(80), rng.integers(0, 3, 80)
    regions = healthy(rng) + 0.5 * age[:, None] + site[:, None] + 0.4 * PATIENT[:, None]
    found = spectrum._differences(regions, PATIENT, np.column_stack([site[:, None] == np.arange(3), age]))
    columns = sm.add_constant(np.column_stack([PATIENT, age, site == 1, site == 2]).astype(float))
    np.testing.assert_allclose(found[3], sm.OLS(regions[:, 3], columns).fit().tvalues[1])
