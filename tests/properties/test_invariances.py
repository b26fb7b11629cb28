"""What does not matter: units, orders and names; and what is written is read again as it was."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import somersd

from rindices import load_model
from rindices.files import write_csv
from rindices.judging import agreement_and_misfit as agreement
from rindices.preprocessing import Preprocessing
from rindices.scoring.consensus_and_person import aligned, find_consensus
from rindices.tables import read_table
from tests.properties.strategies import (
    LABELS,
    N_REGIONS,
    NAMES,
    NUMBERS,
    SCALES,
    SEEDS,
    SHAPES,
    fitted_models,
    names,
    orders,
    studies,
)

# Agreement, matching and consensus: blind to the order of models, of their patterns, and to units.


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


# What is estimated in controls does not depend on units, orders or names. Where nothing but rounding can differ, the
# tolerance is that of rounding. Regions have means of up to 1,000 sd and covariates are moved by up to 1,000 sd: either
# loses three of sixteen digits when a mean is taken away, and least squares lose a few more. Sites' scales are found by
# turns until they change by less than 1e-10, so that with sites another number of turns may be seen.
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


# R-indices are a person's own: who else is in the table, and in what order, does not matter. They are computed in
# double precision. Matrix products of other sizes add in another order, which is rounding; errors are compared with the
# largest R-index.


@pytest.mark.filterwarnings("ignore::UserWarning")  # of groups and trainings that are short
@given(fitted_models(), st.data())
def test_r_indices_go_with_their_person_and_columns_with_their_names(fitted, data):
    model, regions, covariates = fitted
    everybody = model.transform(regions, covariates)
    assert np.isfinite(everybody).all()
    order, named = data.draw(orders(len(everybody))), isinstance(regions, pd.DataFrame)
    for rows in (order, order[:1], np.repeat(order, 20)):  # the last in more than one block
        found = model.transform(regions.iloc[rows] if named else regions[rows], covariates.iloc[rows])
        np.testing.assert_allclose(found, everybody[rows], rtol=0, atol=1e-9 * np.abs(everybody).max())
    # Columns are put in order before anything is computed: not a bit may differ.
    turned = regions.iloc[:, data.draw(orders(N_REGIONS))] if named else regions
    mixed = covariates.iloc[:, data.draw(orders(covariates.shape[1]))]
    np.testing.assert_array_equal(model.transform(turned, mixed), everybody)


# What is written is read again as it was: tables and models.


CONTROLS = {chr(number) for number in range(32)} - {"\t", "\n"}
# Cells that mean what they say: the reader takes away spaces at either end, words for missing values are none, all of
# them like numbers would be numbers, and signs that no text has are refused.
WORDS = NAMES.map(lambda word: f"x{word.strip()}").filter(lambda word: not set(word) & CONTROLS)


@st.composite
def tables(draw):
    """People with ids, texts and numbers, some of them missing, under odd names."""
    n_people = draw(st.integers(1, 6))
    first, second, text = draw(st.lists(WORDS, min_size=3, max_size=3, unique=True))
    filled = partial(st.lists, min_size=n_people, max_size=n_people)
    columns = {
        "participant_id": draw(filled(WORDS, unique=True)),
        first: [draw(NUMBERS), *draw(filled(NUMBERS | st.just(np.nan)))[1:]],
        second: draw(filled(st.floats(-1e300, 1e300))),  # rounded up, larger ones are infinite
        text: draw(filled(WORDS)),
    }
    return pd.DataFrame(columns)


@given(tables(), st.integers(1, 17))
def test_a_table_is_read_as_it_was_printed(tmp_path_factory, table, digits):
    path = tmp_path_factory.mktemp("table") / "people.csv"
    write_csv(table, path, index=False, digits=digits)
    printed = table.map(lambda cell: float(f"%.{digits}g" % cell) if isinstance(cell, float) else cell)
    pd.testing.assert_frame_equal(read_table(path), printed, check_dtype=False, check_exact=True)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of groups and trainings that are short
@given(fitted_models(SHAPES))
def test_a_model_comes_back_from_its_file_to_the_bit(tmp_path_factory, fitted):
    model, *people = fitted
    folder = tmp_path_factory.mktemp("model")
    loaded = load_model(model.save(folder / "model.safetensors"))
    assert loaded.get_params() == model.get_params() | {"preset": loaded.preset}
    for name in ("preset_", "contract_", "members_", "left_out_", "step_", "seed_", "verdict_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name), name
    for name in ("agreement_", "correlation_", "feature_names_in_"):
        np.testing.assert_array_equal(getattr(loaded, name, "none"), getattr(model, name, "none"), name)
    jax.tree.map(np.testing.assert_array_equal, loaded.models_, model.models_)
    for method in ("transform", "spread"):
        np.testing.assert_array_equal(getattr(loaded, method)(*people), getattr(model, method)(*people), method)
    loaded.save(folder / "again.safetensors")
    assert (folder / "again.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
