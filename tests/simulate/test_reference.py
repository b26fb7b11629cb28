import numpy as np
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
    return mean, (width * (low**2 + low * high + high**2) / 3).sum(-1) - mean**2


def test_table_has_age_sex_and_positive_volumes(population, people):
    assert people.columns.tolist() == ["age", "sex", *population.regions]
    assert people["age"].between(19, 70).all()
    assert (set(people["sex"]), people["sex"].mean()) == ({0, 1}, pytest.approx(population.share_of_sex_1, abs=0.01))
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
    found, residual_squares, *_ = np.linalg.lstsq(terms, people[list(population.regions)].to_numpy(), rcond=None)
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
