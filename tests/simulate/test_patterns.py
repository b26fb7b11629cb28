"""Disease patterns, and the reference population that they change."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from rindices.simulate import KINDS, ReferencePopulation
from rindices.simulate.patterns import named_patterns, random_patterns, regional_losses

REGIONS = list(ReferencePopulation.load().regions)
DISEASES = [name for name in KINDS if name != "null"]
# Sizes and shared regions according to section 4.2 and Table 5 of the paper.
SIZES = dict.fromkeys(DISEASES, 14) | {"overlap": 16, "scarce": 4}
SHARED = dict.fromkeys(DISEASES, 4) | {"overlap": 8, "scarce": 0}


def test_table_5_by_row():
    rows = pd.DataFrame(
        {
            "Amy": ("1", "12", "1"),
            "Hip": ("12", "12", "1"),
            "AngGy": ("3", "3", "3"),
            "Ent": ("1", "1", ""),
            "FroOpe": ("2", "2", ""),
            "InfTemGy": ("1", "1", ""),
            "LatOrbGy": ("3", "3", ""),
            "MedFroCbr": ("23", "23", ""),
            "MidFroGy": ("2", "23", "2"),
            "MidOccGy": ("3", "3", ""),
            "InfFroGy": ("2", "2", "2"),
            "ParHipGy": ("1", "1", ""),
            "PosIns": ("2", "2", ""),
            "ParOpe": ("13", "13", ""),
            "SupMarGy": ("3", "3", ""),
            "SupParLo": ("3", "13", "3"),
            "TemPo": ("1", "1", ""),
            "InfFroAngGy": ("2", "2", ""),
        },
        index=["basic", "overlap", "scarce"],
    )
    for kind, expected in rows.iterrows():
        for name, regions in named_patterns(KINDS[kind], 3).items():
            own = {side + code for code, checks in expected.items() if name[1] in checks for side in "lr"}
            assert set(regions) == own, (kind, name)


@pytest.mark.parametrize("kind", DISEASES)
@pytest.mark.parametrize("n_patterns", [1, 2, 3, 4, 5, 8])
def test_named_patterns_have_the_sizes_and_shared_regions_of_the_paper(kind, n_patterns):
    patterns = list(named_patterns(KINDS[kind], n_patterns).values())
    assert (len(patterns), patterns[:3]) == (n_patterns, list(named_patterns(KINDS[kind], 3).values())[:n_patterns])
    for k, pattern in enumerate(patterns):
        assert len({*pattern} & {*REGIONS}) == len(pattern) == SIZES[kind]
        others = {other: len(set(pattern) & set(patterns[other])) for other in range(k)}
        shares = [other for other in others if k < 3 or other == k - 1]  # later ones share only with the one before
        assert others == dict.fromkeys(others, 0) | dict.fromkeys(shares, SHARED[kind] // 2)


@pytest.mark.parametrize("kind", DISEASES)
@pytest.mark.parametrize("n_patterns", [1, 2, 3, 5])
def test_random_patterns_have_the_same_shape(kind, n_patterns):
    names = [f"r{i}" for i in range(80)]
    patterns = random_patterns(KINDS[kind], n_patterns, names, np.random.default_rng(1))
    for name, regions in patterns.items():
        assert (len(set(regions)), set(regions) - set(names)) == (SIZES[kind], set())
        others = {region for other, regions in patterns.items() if other != name for region in regions}
        assert len(others & set(regions)) == {1: 0, 2: SHARED[kind] // 2}.get(n_patterns, SHARED[kind])


def losses_of(kind, n_patterns=3):
    patterns = named_patterns(KINDS[kind], n_patterns)
    inside = np.array([[region in pattern for region in REGIONS] for pattern in patterns.values()])
    return regional_losses(KINDS[kind], patterns, REGIONS, np.random.default_rng(0)), inside


@pytest.mark.parametrize("kind", DISEASES)
def test_patterns_of_all_shapes_are_as_large_together(kind):
    losses, inside = losses_of(kind)
    assert losses.shape == (3, len(REGIONS))
    np.testing.assert_allclose((losses**2).sum(axis=1), SIZES[kind] * KINDS[kind].atrophy ** 2)
    if KINDS[kind].shape == "even":
        np.testing.assert_array_equal(losses, np.where(inside, KINDS[kind].atrophy, 0))


def test_shapes_are_what_they_are_called():
    dense, half, graded, signed = (losses_of(kind) for kind in ("dense", "half", "graded", "signed"))
    assert dense[0].min() > 0
    assert np.median(dense[0]) < 0.8 * dense[0].mean()  # most regions lose a little
    assert np.abs((half[0] > 0).mean(axis=1) - 0.5).max() < 0.15
    assert all(len(np.unique(row[row > 0].round(9))) == 1 for row in half[0])
    for losses, inside in (graded, signed):
        np.testing.assert_array_equal(losses != 0, inside)
    assert [row.max() / row[row > 0].min() for row in graded[0]] == pytest.approx([10] * 3)
    np.testing.assert_allclose(np.abs(signed[0][signed[1]]), 0.3)
    assert (signed[0] < 0).sum(axis=1).tolist() == [6, 6, 6]  # three of seven bilateral regions


# The reference population


def test_people_are_those_of_the_stored_population():
    population = ReferencePopulation.load()
    people = population.draw(20_000, np.random.default_rng(11))
    years, volumes = people["age"] - population.age_mean, people[REGIONS].to_numpy()
    terms = np.column_stack([np.ones(len(people)), years, years**2, people["sex"]])
    assert (people.columns.tolist(), set(people["sex"])) == (["age", "sex", *population.regions], {0, 1})
    assert people["sex"].mean() == pytest.approx(population.share_of_sex_1, abs=0.01)
    assert people["age"].between(19, 70).all()
    assert (volumes > 0).all()
    centres = [0, 0, population.age_square_mean, population.share_of_sex_1]
    residuals = volumes - (terms - centres) @ population.effects.T
    found = np.quantile(residuals, population.probabilities[1:-1], axis=0).T
    error = np.abs(found - population.residual_quantiles[..., 1:-1]) / residuals.std(axis=0)[:, None]
    assert np.quantile(error, 0.99) < 0.15
    assert error.max() < 0.35  # the ends are extremes of 20,000 people
    # Regression recovers effects of age and sex, and leaves the stored correlation.
    found, squares, *_ = np.linalg.lstsq(terms, volumes, rcond=None)
    errors = np.sqrt(np.outer(np.diag(np.linalg.inv(terms.T @ terms)), squares / (len(terms) - 4)))[1:]
    deviations = (found[1:] - population.effects[:, 1:].T) / errors
    assert (np.abs(deviations).max() < 5, deviations.std()) == (True, pytest.approx(1, abs=0.3))
    scores = norm.ppf((rankdata(volumes - terms @ found, axis=0) - 0.5) / len(terms))
    assert np.abs(np.corrcoef(scores.T) - population.correlation).max() < 0.04
