"""What is estimated in controls does not depend on units, orders or names, nor on the patients.

Where nothing but rounding can differ, the tolerance is that of rounding. Regions have means of up to 1,000 sd and
covariates are moved by up to 1,000 sd: either loses three of sixteen digits when a mean is taken away, and least
squares lose a few more. Sites' scales are found by turns until they change by less than 1e-10, so that with sites
another number of turns may be seen.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rindices import SurrealGAN
from rindices.preprocessing import SCALED_SD, Preprocessing
from rindices.preprocessing.storage import arrays_of, describe
from tests.properties.strategies import LABELS, NAMES, SEEDS, names, orders, studies

ROUNDING = 1e-8  # in R-indices' units, in which controls have an sd of 0.1


def fitted(study):
    """Estimated in the controls of a study."""
    controls = slice(study.n_controls)
    return Preprocessing.fit(study.features[controls], study.covariates[controls], study.correction)


def scaled(study):
    """Everybody's regions as the networks see them."""
    return fitted(study).transform(study.features, study.covariates)


def assert_near(found, expected):
    """Compare but for rounding; people far from all controls may differ in proportion."""
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def permuted(study, order):
    """The same people, controls still first, in another order."""
    covariates = study.covariates.iloc[order].reset_index(drop=True)
    return study.with_(features=study.features[order], covariates=covariates)


@given(studies())
def test_controls_have_mean_1_and_the_same_sd_and_everybody_comes_back(study):
    preprocessing = fitted(study)
    found = preprocessing.transform(study.features, study.covariates)
    controls = found[: study.n_controls]
    assert_near(controls.mean(axis=0), 1)
    assert_near(controls.std(axis=0), SCALED_SD)
    back = preprocessing.inverse_transform(found, study.covariates)
    assert_near(back / preprocessing.scaler.sd, study.features / preprocessing.scaler.sd)


@given(studies(), st.data())
def test_units_of_regions_do_not_matter(study, data):
    n_regions = study.features.shape[1]
    halvings = data.draw(st.lists(st.integers(-40, 40), min_size=n_regions, max_size=n_regions))
    # Powers of two round nothing: not a bit may differ.
    np.testing.assert_array_equal(
        scaled(study.with_(features=study.features * 2.0 ** np.array(halvings))), scaled(study)
    )
    factors = 10.0 ** np.random.default_rng(data.draw(SEEDS)).uniform(-9, 9, n_regions)
    assert_near(scaled(study.with_(features=study.features * factors)), scaled(study))


@given(studies(), st.data())
def test_units_and_origins_of_covariates_do_not_matter(study, data):
    changed = study.covariates.copy()
    rng = np.random.default_rng(data.draw(SEEDS))
    for name in study.numbers:
        factor, shift = 10.0 ** rng.uniform(-9, 9), rng.uniform(-1000, 1000) * changed[name].std()
        if name == study.correction.proportion:
            changed[name] *= factor  # a head of size 0 stays one
        else:
            changed[name] = rng.choice([-1, 1]) * factor * (changed[name] + shift)
    assert_near(scaled(study.with_(covariates=changed)), scaled(study))


@given(studies(), SEEDS)
def test_people_in_another_order_get_the_same(study, seed):
    rng = np.random.default_rng(seed)
    n_controls, n_people = study.n_controls, study.n_people
    order = np.concatenate([rng.permutation(n_controls), rng.permutation(np.arange(n_controls, n_people))])
    assert_near(scaled(permuted(study, order)), scaled(study)[order])


@given(studies(), st.data())
def test_columns_in_another_order_give_the_same(study, data):
    order = data.draw(orders(study.features.shape[1]))
    assert_near(scaled(study.with_(features=study.features[:, order])), scaled(study)[:, order])
    columns = study.covariates.columns[data.draw(orders(study.covariates.shape[1]))]
    assert_near(scaled(study.with_(covariates=study.covariates[columns])), scaled(study))


@given(studies(), st.data())
def test_names_of_categories_do_not_matter(study, data):
    changed = study.covariates.copy()
    for name in study.categories:
        known = changed[name].unique()
        others = data.draw(names(len(known), LABELS if name == "site" else NAMES))
        changed[name] = changed[name].map(dict(zip(known, others, strict=True)))
    assert_near(scaled(study.with_(covariates=changed)), scaled(study))


@given(studies(), SEEDS)
def test_a_person_is_corrected_alone_as_among_others(study, seed):
    preprocessing, person = fitted(study), int(np.random.default_rng(seed).integers(study.n_people))
    row = slice(person, person + 1)
    alone = preprocessing.transform(study.features[row], study.covariates[row])
    assert_near(alone, preprocessing.transform(study.features, study.covariates)[row])


@pytest.mark.filterwarnings("ignore:Only .* controls and .* patients", "ignore:Batches of")
@given(studies(n_regions=12), SEEDS)
def test_patients_change_nothing_that_is_estimated(study, seed):
    """Not by a bit: neither their regions nor their covariates, nor how many they are."""
    rng, n_controls = np.random.default_rng(seed), study.n_controls
    others = rng.permutation(np.arange(n_controls, study.n_people))[: rng.integers(1, study.n_people - n_controls + 1)]
    other = permuted(study, np.concatenate([np.arange(n_controls), others]))
    other.features[n_controls:] *= rng.lognormal(0, 3, other.features[n_controls:].shape)
    other.covariates.loc[n_controls:, other.numbers] *= rng.lognormal(0, 1, (len(others), len(other.numbers)))
    first, second = (
        SurrealGAN(correction=one.correction, random_state=0)._training_set(
            one.features, np.arange(one.n_people) >= n_controls, one.covariates
        )
        for one in (study, other)
    )
    assert describe(first.preprocessing) == describe(second.preprocessing)
    expected, found = (arrays_of(one.preprocessing) for one in (first, second))
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
