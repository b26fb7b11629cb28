"""One update with correlated severities, against NumPy, SciPy and central differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import log_softmax
from scipy.stats import multivariate_normal, norm

from rindices.core import step
from tests.core import plain
from tests.core.test_step import (
    ADDITIVE,
    BATCH_SIZE,
    JOINT,
    N_BEFORE,
    N_PATTERNS,
    N_REGIONS,
    RATES,
    WHITENING,
    batch,
    clipped,
    moved,
    run,
    same,
    weighted,
    whiten,
)

RAW, PENALTY = np.array([[0.3, 0.0, 0.0], [0.8, -0.5, 0.0], [-0.4, 0.7, 0.2]]), 0.3
TRAININGS = {
    "weighted": replace(ADDITIVE, latent="weighted", correlation_penalty=PENALTY),
    "sampled": replace(ADDITIVE, latent="sampled", correlation_penalty=PENALTY),
    "sampled joint": replace(JOINT, latent="sampled", correlation_penalty=PENALTY),
}


def warm_copula(raw=RAW):
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 0.01, (3, 3)), rng.uniform(1e-5, 1e-4, (3, 3))
    return step.Copula(raw, optax.ScaleByAdamState(jnp.asarray(N_BEFORE, jnp.int32), first, second))


def run_one(name, **changes):
    whitening = None if name == "sampled joint" else WHITENING
    return run(TRAININGS[name], whitening, **{"copula": warm_copula()} | changes)


@pytest.fixture(scope="module", params=TRAININGS)
def case(request):
    return run_one(request.param)


def factor_of(raw):
    rows = np.tril(raw, -1) + np.diag(np.exp(np.diag(raw)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def normal_scores(z):
    return norm.ppf(np.clip(z, 1e-4, 1 - 1e-4))


def draws_of(case, raw):
    """Return the severities that the step should have used."""
    if case.training.latent == "weighted":
        return case.draws
    drawn = case.draws
    earlier = norm.cdf(normal_scores(drawn.earlier) @ factor_of(raw).T)
    share = (drawn.later - drawn.earlier) / (1 - drawn.earlier)
    return drawn._replace(earlier=earlier, later=earlier + (1 - earlier) * share)


def people_of(case, raw):
    """Return how much each synthesised patient should count."""
    if case.training.latent == "sampled":
        return np.ones(BATCH_SIZE)
    scores, factor = normal_scores(case.draws.earlier), factor_of(raw)
    return multivariate_normal(cov=factor @ factor.T).pdf(scores) / norm.pdf(scores).prod(axis=1)


def calls(d, brains, label):
    return -log_softmax(plain.three_layers(d, brains), axis=1)[:, label]


def fakes(case, raw=RAW):
    x, _ = batch(case)
    f = case.before.parameters.transformation
    return whiten(case)(plain.transformed(f, x, draws_of(case, raw).earlier, case.training.composition))


def discriminator_loss(case):
    d, (_, real) = case.before.parameters.discriminator, batch(case)
    return np.mean(calls(d, real, 1)) / 2 + np.mean(people_of(case, RAW) * calls(d, fakes(case), 0)) / 2


def adversarial(case, raw=RAW):
    people = people_of(case, raw)
    return np.mean(people * calls(case.after.parameters.discriminator, fakes(case, raw), 1)) / people.mean()


def divergence(raw):
    correlation = factor_of(raw) @ factor_of(raw).T
    return (np.trace(np.linalg.inv(correlation)) - N_PATTERNS + np.linalg.slogdet(correlation)[1]) / 2


def generator_losses(case):
    (x, _), d = batch(case), case.after.parameters.discriminator
    arguments = (case.before.parameters, x, draws_of(case, RAW), d, whiten(case), case.training)
    return plain.generator_losses(*arguments) | {"adversarial": adversarial(case)}


def test_people_count_differently_where_they_are_weighted():
    """Or the other tests could not see it."""
    people = people_of(run_one("weighted"), RAW)
    assert people.max() > 2 * people.min()


def test_discriminator_weighs_the_fakes(case):
    assert case.losses["discriminator"] == pytest.approx(discriminator_loss(case), rel=1e-6)
    gradient = plain.numerical_gradient(lambda: discriminator_loss(case), case.before.parameters.discriminator)
    expected = moved(case, "discriminator", clipped(gradient, 0.05), RATES.discriminator, decay=0.0)
    same(case.after.parameters.discriminator, expected)


def test_losses_are_at_the_severities_of_the_copula(case):
    expected = generator_losses(case)
    assert {name: float(case.losses[name]) for name in expected} == pytest.approx(expected, rel=1e-6)


def test_transformation_follows_the_weighted_objective(case):
    gradient = plain.numerical_gradient(lambda: weighted(generator_losses(case)), case.before.parameters.transformation)
    expected = moved(case, "transformation", clipped(gradient, 0.05), RATES.generator, decay=0.1)
    same(case.after.parameters.transformation, jax.tree.map(lambda w: np.clip(w, -0.6, 0.6), expected))


def test_copula_follows_its_own_adam(case):
    """Against the adversarial term and the penalty, and nothing else."""
    copula = {"copula": {"raw": RAW.copy()}}
    raw = copula["copula"]["raw"]
    found = plain.numerical_gradient(lambda: adversarial(case, raw) + PENALTY * divergence(raw), copula)
    gradient = found["copula"]["raw"]
    assert np.abs(gradient[np.tril_indices(3)][1:]).min() > 1e-4
    adam = case.before.copula.moments
    expected = plain.adam(
        RAW, gradient, adam.mu, adam.nu, n_before=N_BEFORE, rate=step.COPULA_EVERY * RATES.correlation
    )
    np.testing.assert_allclose(case.after.copula.raw, expected, rtol=1e-5)
    assert case.after.copula.moments.count == N_BEFORE + 1


def test_correlated_draws_stay_in_order():
    drawn = step.draw(jax.random.key(0), 2000, N_PATTERNS, 6, 4)
    drawn = drawn._replace(  # with severities of exactly 0 and 1
        earlier=drawn.earlier.at[:2].set(jnp.array([[0.0], [1.0]])), later=drawn.later.at[:2].set(1.0)
    )
    found = jax.tree.map(np.asarray, step._correlated(drawn, jnp.asarray(RAW), TRAININGS["sampled"]))
    assert (found.later >= found.earlier).all()
    assert 0 <= found.earlier.min() <= found.later.max() <= 1
    np.testing.assert_array_equal(found.near_control, drawn.near_control)
    np.testing.assert_array_equal(found.controls, drawn.controls)
    assert step._correlated(drawn, jnp.asarray(RAW), TRAININGS["weighted"]) is drawn


@pytest.mark.parametrize("name", ["weighted", "sampled"])
def test_without_correlation_a_step_is_as_with_independent_severities(name):
    independent = run(ADDITIVE, WHITENING)
    assert independent.after.copula is None
    found = run_one(name, copula=warm_copula(np.zeros((3, 3))))
    same(found.after.parameters, independent.after.parameters)
    assert {k: float(v) for k, v in found.losses.items()} == pytest.approx(
        {k: float(v) for k, v in independent.losses.items()}
    )


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_models_keep_their_copula(monkeypatch, frozen):
    monkeypatch.setitem(TRAININGS, "weighted", replace(TRAININGS["weighted"], freeze_below=(1e-9, 1e-9)))
    case = run_one("weighted", frozen=jnp.asarray(frozen))
    assert np.array_equal(case.after.copula.raw, RAW) == frozen
    assert np.array_equal(case.after.copula.moments.mu, case.before.copula.moments.mu) == frozen
    assert case.after.copula.moments.count == N_BEFORE + (not frozen)


@pytest.mark.parametrize("name", TRAININGS)
def test_copula_stays_at_steps_where_it_does_not_move(name):
    moving, still = (run_one(name, moves_copula=moves) for moves in (True, False))
    jax.tree.map(np.testing.assert_array_equal, still.after.copula, still.before.copula)
    same(still.after.parameters, moving.after.parameters, rtol=1e-12)


@pytest.mark.parametrize(("name", "expected"), [("independent", False), ("sampled", True), ("weighted", True)])
def test_a_model_starts_without_correlation(name, expected):
    sizes = step.networks.sizes(N_REGIONS, N_PATTERNS)
    state = step.initial_state(jax.random.key(0), sizes, sizes, replace(ADDITIVE, latent=name))
    assert (state.copula is not None) == expected
    assert not expected or not (np.any(state.copula.raw) or np.any(state.copula.moments.mu))
