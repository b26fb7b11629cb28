"""What is estimated in controls does not depend on units, orders or names.

Where nothing but rounding can differ, the tolerance is that of rounding. Regions have means of up to 1,000 sd and
covariates are moved by up to 1,000 sd: either loses three of sixteen digits when a mean is taken away, and least
squares lose a few more. Sites' scales are found by turns until they change by less than 1e-10, so that with sites
another number of turns may be seen.
"""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rindices.preprocessing import Preprocessing
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


@given(studies())
def test_everybody_comes_back(study):
    preprocessing, sd = fitted(study), study.features.std(axis=0)
    found = preprocessing.transform(study.features, study.covariates)
    assert_near(preprocessing.inverse_transform(found, study.covariates) / sd, study.features / sd)


@given(studies(), st.data())
def test_units_of_regions_do_not_matter(study, data):
    n_regions = study.features.shape[1]
    halvings = data.draw(st.lists(st.integers(-40, 40), min_size=n_regions, max_size=n_regions))
    # Powers of two round nothing: not a bit may differ.
    np.testing.assert_array_equal(
        scaled(replace(study, features=study.features * 2.0 ** np.array(halvings))), scaled(study)
    )
    factors = 10.0 ** np.random.default_rng(data.draw(SEEDS)).uniform(-9, 9, n_regions)
    assert_near(scaled(replace(study, features=study.features * factors)), scaled(study))


@given(studies(), st.data())
def test_units_and_origins_of_covariates_do_not_matter(study, data):
    changed, rng = study.covariates.copy(), np.random.default_rng(data.draw(SEEDS))
    for name in study.numbers:
        factor, shift = 10.0 ** rng.uniform(-9, 9), rng.uniform(-1000, 1000) * changed[name].std()
        if name == study.correction.proportion:
            changed[name] *= factor  # a head of size 0 stays one
        else:
            changed[name] = rng.choice([-1, 1]) * factor * (changed[name] + shift)
    assert_near(scaled(replace(study, covariates=changed)), scaled(study))


@given(studies(), st.data())
def test_people_and_columns_in_another_order_give_the_same(study, data):
    patients = np.arange(study.n_controls, study.n_people)
    people = np.concatenate([data.draw(orders(study.n_controls)), data.draw(st.permutations(patients))])
    columns = data.draw(orders(study.features.shape[1]))
    covariates = study.covariates.iloc[people, data.draw(orders(study.covariates.shape[1]))].reset_index(drop=True)
    other = replace(study, features=study.features[np.ix_(people, columns)], covariates=covariates)
    assert_near(scaled(other), scaled(study)[np.ix_(people, columns)])


@given(studies(), st.data())
def test_names_of_categories_do_not_matter(study, data):
    changed = study.covariates.copy()
    for name in study.categories:
        known = changed[name].unique()
        others = data.draw(names(len(known), LABELS if name == "site" else NAMES))
        changed[name] = changed[name].map(dict(zip(known, others, strict=True)))
    assert_near(scaled(replace(study, covariates=changed)), scaled(study))
