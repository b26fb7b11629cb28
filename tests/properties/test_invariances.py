"""Corrections estimated in controls do not depend on units, order or names, and can be inverted for everybody.

Where only rounding can differ, the tolerance is that of rounding. Regions have means of up to 1,000 sd and covariates
are shifted by up to 1,000 sd: in either case, subtracting a mean costs three of sixteen digits, and least squares a few
more. Site scales are iterated until they change by less than 1e-10, so the number of iterations may differ.
"""

from collections import namedtuple

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rindices.preprocessing import Preprocessing
from rindices.presets import Correction
from rindices.schema.cells import plain_code

ROUNDING = 1e-8  # on the scale on which controls have an sd of 0.1

# People, names and numbers as in real tables: several scales, ties and odd names.


# Any text that can be written to a file, hence no surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(
    ['say "hi"', "a, b", "line\nbreak", "tab\t", "海马体", "Größe", "🧠", "null", "NaN", " ", "0", "\x7f"]
)
NAMES = st.one_of(TEXT, ODD)
LABELS = NAMES.filter(plain_code)  # an empty site means an unknown one
SEEDS, SCALES = st.integers(0, 2**32 - 1), st.floats(-6, 9).map(lambda exponent: 10.0**exponent)


def names(number, kind=NAMES):
    """Draw `number` different names; 1 and 1.0 count as the same, and so do blanks."""
    return st.lists(kind, min_size=number, max_size=number, unique_by=plain_code)


def orders(number):
    """Draw a permutation of `range(number)`."""
    return st.permutations(range(number)).map(list)


# Regions and covariates, with controls before patients.
Study = namedtuple("Study", "features covariates n_controls correction")


def _balanced(rng, labels, n_people):
    """Return one label per person, with labels nearly balanced throughout the table."""
    rounds = [rng.permutation(len(labels)) for _ in range(-(-n_people // len(labels)))]
    return np.array(labels, dtype=object)[np.concatenate(rounds)[:n_people]]


CORRECTIONS = st.builds(
    Correction,
    smooth=st.sets(st.sampled_from(["age", "score"])).map(sorted),
    interactions=st.sampled_from([[], [("age", "sex")], [("age", "score")], [("sex", "age"), ("score", "sex")]]),
    proportion=st.sampled_from([None, "head"]),
    site=st.sampled_from([None, "site"]),
)


@st.composite
def studies(draw):
    """Draw a cohort whose covariates affect its regions, and a correction for them.

    Region means are up to 1,000 sd, as for whole brains; covariates may have ties; categories have odd names.
    """
    rng = np.random.default_rng(draw(SEEDS))
    n_controls, n_patients = draw(st.integers(64, 90)), draw(st.integers(3, 12))
    n_regions, n_people = draw(st.integers(1, 6)), n_controls + n_patients
    age = rng.uniform(50, 90, n_people)
    score = 20 + 0.1 * age + rng.exponential(3, n_people)
    if draw(st.booleans()):
        age, score = np.round(age), np.round(score)
    sex = _balanced(rng, draw(names(2)), n_people)
    site = _balanced(rng, draw(names(draw(st.integers(2, 3)), LABELS)), n_people)
    head = rng.normal(1500, 120, n_people)
    covariates = pd.DataFrame({"age": age, "score": score, "sex": sex, "site": site, "head": head})
    if draw(st.booleans()):  # constant in controls, so its effect cannot be estimated
        covariates["constant"] = np.where(np.arange(n_people) < n_controls, 5.3, rng.normal(5, 1, n_people))
    is_one, at_site = pd.factorize(sex)[0], pd.factorize(site)[0]
    effects = np.outer(age - 70, rng.normal(0, 0.1, n_regions)) + np.outer(is_one, rng.normal(0, 1, n_regions))
    effects += rng.normal(0, 1, (4, n_regions))[at_site]
    noise = rng.normal(0, rng.uniform(0.7, 1.5, (4, n_regions))[at_site])
    means = 10.0 ** rng.uniform(0, 3, n_regions)
    scales = np.array(draw(st.lists(SCALES, min_size=n_regions, max_size=n_regions)))
    features = scales * (means + effects + noise)
    if draw(st.booleans()):  # rounded as in printed tables, which creates ties
        features = scales * np.round(features / scales, 1)
    return Study(features, covariates, n_controls, draw(CORRECTIONS))


def scaled(study):
    """Return everybody's regions as the networks see them, and the preprocessing fitted to the study's controls."""
    controls = slice(study.n_controls)
    fitted = Preprocessing.fit(study.features[controls], study.covariates[controls], study.correction)
    return fitted.transform(study.features, study.covariates), fitted


def assert_near(found, expected):
    """Compare up to rounding, which grows in proportion for people far from all controls."""
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@given(studies(), st.data())
def test_everybody_comes_back_and_units_of_regions_do_not_matter(study, data):
    (expected, fitted), sd, n_regions = scaled(study), study.features.std(axis=0), study.features.shape[1]
    assert_near(fitted.inverse_transform(expected, study.covariates) / sd, study.features / sd)
    halvings = data.draw(st.lists(st.integers(-40, 40), min_size=n_regions, max_size=n_regions))
    halved = scaled(study._replace(features=study.features * 2.0 ** np.array(halvings)))[0]
    np.testing.assert_array_equal(halved, expected)  # powers of two cause no rounding, so the results must be identical
    factors = 10.0 ** np.random.default_rng(data.draw(SEEDS)).uniform(-9, 9, n_regions)
    assert_near(scaled(study._replace(features=study.features * factors))[0], expected)


@given(studies(), st.data())
def test_units_origins_and_names_of_covariates_and_the_order_of_people_do_not_matter(study, data):
    changed, rng = study.covariates.copy(), np.random.default_rng(data.draw(SEEDS))
    for name, column in study.covariates.items():
        factor = 10.0 ** rng.uniform(-9, 9)
        if column.dtype.kind != "f":  # a category, or the site
            others = data.draw(names(column.nunique(), LABELS if name == "site" else NAMES))
            changed[name] = column.map(dict(zip(column.unique(), others, strict=True)))
        elif name == study.correction.proportion:
            changed[name] = column * factor  # a head size of 0 stays 0
        else:
            changed[name] = rng.choice([-1, 1]) * factor * (column + rng.uniform(-1000, 1000) * column.std())
    expected, _ = scaled(study)
    assert_near(scaled(study._replace(covariates=changed))[0], expected)
    patients = np.arange(study.n_controls, len(study.features))
    people = [*data.draw(orders(study.n_controls)), *data.draw(st.permutations(patients))]
    columns = data.draw(orders(study.features.shape[1]))
    covariates = study.covariates.iloc[people, data.draw(orders(study.covariates.shape[1]))].reset_index(drop=True)
    other = study._replace(features=study.features[np.ix_(people, columns)], covariates=covariates)
    assert_near(scaled(other)[0], expected[np.ix_(people, columns)])
