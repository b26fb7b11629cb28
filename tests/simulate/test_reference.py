import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from rindices.simulate import ReferencePopulation

N_PEOPLE = 20_000


@pytest.fixture(scope="module")
def population():
    return ReferencePopulation.load()


@pytest.fixture(scope="module")
def people(population):
    return population.draw(N_PEOPLE, np.random.default_rng(11))


@pytest.fixture(scope="module")
def terms(population, people):
    years = people["age"].to_numpy() - population.age_mean
    return np.column_stack([np.ones(len(people)), years, years**2, people["sex"].to_numpy()])


def moments_of_quantile_function(probabilities, quantiles):
    """Exact mean and variance of a piecewise linear quantile function."""
    width = np.diff(probabilities)
    low, high = quantiles[..., :-1], quantiles[..., 1:]
    mean = (width * (low + high) / 2).sum(-1)
    square = (width * (low**2 + low * high + high**2) / 3).sum(-1)
    return mean, square - mean**2


def test_file_names_its_source_and_licence(population):
    assert "IXI" in population.source
    assert population.licence == "CC BY-SA 3.0"
    assert population.unit == "mL"
    assert len(population.regions) == len(set(population.regions)) == 128
    assert np.linalg.eigvalsh(population.correlation)[0] > 0.01


def test_loaded_once_and_not_changeable(population):
    assert ReferencePopulation.load() is population
    with pytest.raises(ValueError, match="read-only"):
        population.effects[0, 0] = 1


def test_table_has_age_sex_and_positive_volumes(population, people):
    assert people.columns.tolist() == ["age", "sex", *population.regions]
    assert people["age"].between(19, 70).all()
    assert set(people["sex"]) == {0, 1}
    assert people["sex"].mean() == pytest.approx(population.share_of_sex_1, abs=0.01)
    assert (people[list(population.regions)] > 0).all(axis=None)


def test_marginals_follow_the_parameters(population, people, terms):
    residual_mean, residual_variance = moments_of_quantile_function(
        population.probabilities, population.residual_quantiles
    )
    covariates = np.column_stack([terms[:, 1], terms[:, 2], terms[:, 3]])
    explained = np.einsum("ri,ij,rj->r", population.effects[:, 1:], np.cov(covariates.T), population.effects[:, 1:])
    mean = population.effects[:, 0] + residual_mean
    volumes = people[list(population.regions)].to_numpy()
    np.testing.assert_allclose(volumes.mean(axis=0), mean, rtol=0.01)
    np.testing.assert_allclose(volumes.std(axis=0), np.sqrt(explained + residual_variance), rtol=0.03)


def test_regression_recovers_effects_of_age_and_sex(population, people, terms):
    volumes = people[list(population.regions)].to_numpy()
    found, residual_squares, *_ = np.linalg.lstsq(terms, volumes, rcond=None)
    variance = residual_squares / (len(terms) - 4)
    errors = np.sqrt(np.outer(np.diag(np.linalg.inv(terms.T @ terms)), variance))[1:]
    deviations = (found[1:] - population.effects[:, 1:].T) / errors
    assert np.abs(deviations).max() < 5
    assert deviations.std() == pytest.approx(1, abs=0.3)


def test_correlation_is_the_stored_one(population, people, terms):
    volumes = people[list(population.regions)].to_numpy()
    residuals = volumes - terms @ np.linalg.lstsq(terms, volumes, rcond=None)[0]
    scores = norm.ppf((rankdata(residuals, axis=0) - 0.5) / len(residuals))
    assert np.abs(np.corrcoef(scores.T) - population.correlation).max() < 0.04


def test_residuals_stay_within_the_observed_range(population, people, terms):
    years_square = terms[:, 2] - population.age_square_mean
    centred = np.column_stack([terms[:, 0], terms[:, 1], years_square, terms[:, 3] - population.share_of_sex_1])
    residuals = people[list(population.regions)].to_numpy() - centred @ population.effects.T
    assert (residuals.max(axis=0) <= population.residual_quantiles[:, -1] + 1e-9).all()


def test_same_generator_same_people(population):
    first, again, other = (population.draw(20, np.random.default_rng(seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first, other)


def test_quick(population):
    start = time.process_time()  # other programs on the machine do not count
    population.draw(5000, np.random.default_rng(0))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("n", [0, -3])
def test_needs_somebody_to_draw(population, n):
    with pytest.raises(ValueError, match=f"n={n}"):
        population.draw(n, np.random.default_rng(0))


def test_resembles_the_real_people(population, people):
    folder = os.environ.get("RINDICES_DATA")
    if not folder or not (Path(folder) / "ixi_gm_volumes.csv").exists():
        pytest.skip("RINDICES_DATA names no folder with ixi_gm_volumes.csv, the table the population was fitted to")
    real = pd.read_csv(Path(folder) / "ixi_gm_volumes.csv").query("age < 70")
    names = list(population.regions)
    np.testing.assert_allclose(people[names].mean(), real[names].mean(), rtol=0.01)
    np.testing.assert_allclose(people[names].std(), real[names].std(), rtol=0.05)
    pairs = np.triu_indices(len(names), 1)
    drawn, observed = people[names].corr().to_numpy()[pairs], real[names].corr().to_numpy()[pairs]
    assert np.corrcoef(drawn, observed)[0, 1] > 0.99
    assert np.abs(drawn - observed).mean() < 0.02
    assert people["age"].mean() == pytest.approx(real["age"].mean(), abs=0.5)
    assert people["sex"].mean() == pytest.approx(real["sex"].mean(), abs=0.02)
