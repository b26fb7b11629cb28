"""One update against plain NumPy: gradients by central differences in double precision, Adam by its formula.

Severities are independent, or correlated by a copula from which people are sampled or by which they are weighted.
"""

from collections import namedtuple
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from rindices.core import networks, step
from rindices.core.losses import Losses, Prior, draw
from rindices.core.networks import Parameters
from rindices.presets import LearningRates, LossWeights, Training
from tests.core import plain

N_REGIONS, N_PATTERNS, BATCH_SIZE, N_BEFORE = 9, 3, 5, 10
WEIGHTS = LossWeights(2.0, 3.0, 5.0, 0.7, 11.0, 1.3)
RATES = LearningRates(generator=0.02, discriminator=0.05, correlation=0.03)
# Large enough that clipping and weight decay both matter.
COMMON = {"weight_decay": 0.1, "gradient_clip": 0.05, "weight_clip": 0.6, "latent": "independent"}
ADDITIVE = Training("additive", "joint", "batch", **COMMON)
JOINT = Training("joint", "separate", "person", **COMMON)
ONE_PASS = Training("one_pass", "separate", "batch", **COMMON)
ALGORITHM_1 = Training("additive", "sequential", "person", **COMMON)
WHITENING = np.random.default_rng(6).normal(0, 0.5, (N_REGIONS, N_REGIONS))
RAW, PENALTY = np.array([[0.3, 0.0, 0.0], [0.8, -0.5, 0.0], [-0.4, 0.7, 0.2]]), 0.3
CORRELATED = {
    "weighted": (replace(ADDITIVE, latent="weighted", correlation_penalty=PENALTY), WHITENING),
    "sampled": (replace(ADDITIVE, latent="sampled", correlation_penalty=PENALTY), WHITENING),
    "sampled joint": (replace(JOINT, latent="sampled", correlation_penalty=PENALTY), None),
}
CASES = {
    "additive": (ADDITIVE, WHITENING),
    "joint": (JOINT, None),
    "one pass": (ONE_PASS, None),
    "algorithm 1": (ALGORITHM_1, None),
    **CORRELATED,
}
STEP = jax.jit(step.step, static_argnames=("training", "batch_size", "precision"))
# One step: settings, data, the state before and after, losses and random draws.
Case = namedtuple("Case", "training data before after losses draws")


def warm_state(seed=0):
    """Return a state midway through training: Adam's moments are nonzero, so gradient magnitudes matter."""
    rng, parameters = np.random.default_rng(seed), plain.random_parameters(N_REGIONS, N_PATTERNS, seed)

    def moments(optimiser, weights):
        def warm(part):
            if not isinstance(part, optax.ScaleByAdamState):
                return part
            first = jax.tree.map(lambda w: rng.normal(0, 0.01, w.shape), weights)
            second = jax.tree.map(lambda w: rng.uniform(1e-5, 1e-4, w.shape), weights)
            return optax.ScaleByAdamState(jnp.asarray(N_BEFORE, jnp.int32), first, second)

        state = optimiser.init(weights)
        return jax.tree.map(warm, state, is_leaf=lambda part: isinstance(part, optax.ScaleByAdamState))

    optimisers = Parameters(*map(moments, step.optimisers(ADDITIVE)[:4], parameters[:4]))
    return step.TrainState(
        parameters, optimisers, jax.random.key(3), jnp.asarray(N_BEFORE, jnp.int32), jnp.asarray(False)
    )


def warm_copula(raw=RAW):
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 0.01, (3, 3)), rng.uniform(1e-5, 1e-4, (3, 3))
    return step.Copula(raw, optax.ScaleByAdamState(jnp.asarray(N_BEFORE, jnp.int32), first, second))


def run(training, whitening, moves_copula=True, **changes):
    """Run one step in double precision, with `changes` applied to the initial state."""
    changes = ({} if training.latent == "independent" else {"copula": warm_copula()}) | changes
    controls, patients = 1 + 0.3 * np.random.default_rng(5).standard_normal((2, 6, N_REGIONS))
    if whitening is not None:
        patients = 1 + (patients - 1) @ whitening
    data = step.Data(controls, np.array([4, 1, 5, 0, 2, 3]), patients, whitening, 5, 4, 0, 1.0)
    with jax.enable_x64(True):
        before = warm_state()._replace(**changes)
        draws = draw(jax.random.fold_in(before.key, N_BEFORE), BATCH_SIZE, N_PATTERNS, 5, 4)
        after, losses = STEP(before, data, WEIGHTS, RATES, training, BATCH_SIZE, jnp.float64, moves_copula)
    after = after._replace(parameters=jax.tree.map(np.asarray, after.parameters))
    return Case(training, data, before, after, losses._asdict(), jax.tree.map(np.asarray, draws))


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return run(*CASES[request.param])


def whiten(case):
    matrix = case.data.whitening
    return lambda y: y if matrix is None else 1 + (y - 1) @ matrix


def batch(case):
    return case.data.controls[case.data.drawn[case.draws.controls]], case.data.seen_patients[case.draws.patients]


def moved(case, name, gradient, rate, decay):
    """Move one network by Adam."""
    adam = next(part for part in getattr(case.before.optimisers, name) if isinstance(part, optax.ScaleByAdamState))
    weights = getattr(case.before.parameters, name)
    return jax.tree.map(
        lambda *of: plain.adam(*of, n_before=N_BEFORE, rate=rate, decay=decay), weights, gradient, adam.mu, adam.nu
    )


def clipped(gradient, largest):
    size = plain.length(gradient)
    assert size > largest  # otherwise clipping would go untested
    return jax.tree.map(lambda array: array * largest / size, gradient)


def draws_of(case, raw=RAW):
    """Return the severities that the step should have used."""
    drawn = case.draws
    if case.training.latent != "sampled":
        return drawn
    earlier = norm.cdf(plain.normal_scores(drawn.earlier) @ plain.factor_of(raw).T)
    share = (drawn.later - drawn.earlier) / (1 - drawn.earlier)
    return drawn._replace(earlier=earlier, later=earlier + (1 - earlier) * share)


def people_of(case, raw=RAW):
    """Return the weight of each synthesised patient."""
    if case.training.latent != "weighted":
        return np.ones(BATCH_SIZE)
    return plain.copula_density(case.draws.earlier, plain.factor_of(raw))


def calls(d, brains, label):
    return -log_softmax(plain.three_layers(d, brains), axis=1)[:, label]


def fakes(case, raw=RAW):
    f, (x, _) = case.before.parameters.transformation, batch(case)
    return whiten(case)(plain.transformed(f, x, draws_of(case, raw).earlier, case.training.composition))


def discriminator_loss(case):
    d, (_, real) = case.before.parameters.discriminator, batch(case)
    return np.mean(calls(d, real, 1)) / 2 + np.mean(people_of(case) * calls(d, fakes(case), 0)) / 2


def adversarial(case, raw=RAW):
    people = people_of(case, raw)
    return np.mean(people * calls(case.after.parameters.discriminator, fakes(case, raw), 1)) / people.mean()


def generator_losses(case, seen=None):
    """Compute all terms against the updated discriminator; its update is tested separately."""
    (x, _), d, parameters = batch(case), case.after.parameters.discriminator, seen or case.before.parameters
    losses = plain.generator_losses(parameters, x, draws_of(case), d, whiten(case), case.training)
    return losses | {"adversarial": adversarial(case)}


def weighted(losses):
    return losses["adversarial"] + sum(getattr(WEIGHTS, name) * losses[name] for name in LossWeights._fields)


def same(actual, expected, rtol=1e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-7), actual, expected)


def test_people_count_differently_where_they_are_weighted():
    """Otherwise the other tests would not notice missing weights."""
    people = people_of(run(*CASES["weighted"]))
    assert people.max() > 2 * people.min()


def test_discriminator_learns_from_this_batch_of_patients_and_fakes(case):
    assert case.losses["discriminator"] == pytest.approx(discriminator_loss(case), rel=1e-6)
    gradient = plain.numerical_gradient(lambda: discriminator_loss(case), case.before.parameters.discriminator)
    expected = moved(case, "discriminator", clipped(gradient, 0.05), RATES.discriminator, decay=0.0)
    same(case.after.parameters.discriminator, expected)


def test_losses_are_those_of_the_paper_against_the_updated_discriminator(case):
    expected = generator_losses(case)
    assert {name: float(case.losses[name]) for name in expected} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "own", "first"),
    [
        ("transformation", None, ()),
        ("decomposer", "decomposition", ("transformation",)),
        ("reconstructor", "reconstruction", ("transformation", "decomposer")),
    ],
)
def test_generating_networks_follow_their_own_or_the_whole_objective(case, name, own, first):
    seen, whole = case.before.parameters, own is None or case.training.updates == "joint"
    if case.training.updates == "sequential":
        seen = seen._replace(**{earlier: getattr(case.after.parameters, earlier) for earlier in first})

    def target():
        losses = generator_losses(case, seen)
        return weighted(losses) if whole else losses[own]

    gradient = plain.numerical_gradient(target, getattr(case.before.parameters, name))
    gradient = clipped(gradient, 0.05) if name == "transformation" else gradient
    expected = jax.tree.map(lambda w: np.clip(w, -0.6, 0.6), moved(case, name, gradient, RATES.generator, decay=0.1))
    same(getattr(case.after.parameters, name), expected, rtol=1e-5 if name == "transformation" else 1e-4)


def test_state_counts_its_steps_and_keeps_its_key(case):
    assert (case.after.step, case.after.key, case.after.frozen) == (N_BEFORE + 1, case.before.key, False)


def test_default_optimisers_neither_clip_g_nor_decay_the_discriminator():
    weights, gradient = {"w": jnp.full(3, 2.0)}, {"w": jnp.array([300.0, 0.0, 400.0])}
    parts = step.optimisers(Training(weight_decay=0.0, gradient_clip=None))[:4]
    assert [len(optimiser.init(weights)) for optimiser in parts] == [1, 1, 1, 1]
    states = [
        optimiser.update(gradient, optimiser.init(weights), weights)[1] for optimiser in step.optimisers(Training())[:4]
    ]
    given = [np.sqrt(state[-1].nu["w"] / 1e-3) for state in states]  # Adam's gradients of f, g1, g2 and D
    expected = [[60, 0, 80], [300, 0, 400], [300, 0, 400], [60, 0, 80]]
    np.testing.assert_allclose(given, np.array(expected) + 2.5e-3 * 2 * np.array([[1], [1], [1], [0]]), rtol=5e-5)


@pytest.mark.parametrize("training", [ADDITIVE, JOINT], ids=["additive", "joint"])
def test_regions_that_are_padding_do_not_count(training):
    real = networks.sizes(N_REGIONS, N_PATTERNS)
    parameters = plain.random_parameters(N_REGIONS, N_PATTERNS, seed=1)
    x = 1 + 0.3 * np.random.default_rng(1).standard_normal((BATCH_SIZE, N_REGIONS))
    draws, nothing = draw(jax.random.key(0), BATCH_SIZE, N_PATTERNS, 6, 4), jnp.zeros((N_PATTERNS, 16))

    @jax.jit
    def losses(parameters, x, share):
        made, prior = step.synthesise(parameters.transformation, x, draws, training), nothing[:, : x.shape[1]]
        data = step.Data(x, None, x, None, 6, 4, 0, share, prior=Prior(prior, jnp.ones(N_PATTERNS)))
        return step.regularisers(parameters, x, draws, made, data, training)

    padded = losses(networks.pad(parameters, networks.padded(real, 8)), np.pad(x, [(0, 0), (0, 7)]), N_REGIONS / 16)
    assert jax.tree.map(float, padded) == pytest.approx(jax.tree.map(float, losses(parameters, x, 1.0)), rel=1e-4)


def test_half_precision_has_the_losses_of_single_precision_and_leaves_padding_alone():
    """As on an accelerator: reduced precision and padded regions."""
    real = networks.sizes(N_REGIONS, N_PATTERNS)
    before = step.initial_state(jax.random.key(1), real, networks.padded(real, 8), Training())
    people = np.pad(1 + 0.1 * np.random.default_rng(5).standard_normal((2, 64, N_REGIONS)), [(0, 0), (0, 0), (0, 7)])
    controls, patients = jnp.asarray(people, jnp.float32)
    data = step.Data(controls, np.arange(64), 0.8 * patients, None, 64, 64, 0, N_REGIONS / 16)
    single, half = (
        STEP(before, data, LossWeights(), LearningRates(), Training(), 32, precision)
        for precision in (jnp.float32, jnp.bfloat16)
    )
    np.testing.assert_allclose(half[1], single[1], rtol=0.02, atol=1e-4)
    assert {leaf.dtype for leaf in jax.tree.leaves(half[0].parameters)} == {np.dtype("float32")}
    jax.tree.map(
        lambda all_, own: np.testing.assert_allclose(np.abs(all_).sum(), np.abs(own).sum(), rtol=1e-6),
        half[0].parameters,
        networks.unpad(half[0].parameters, real),
    )


@pytest.mark.parametrize(
    ("reconstruction", "monotonicity", "n_steps", "expected"),
    [(0.1, 0.01, 50, True), (0.3, 0.01, 50, False), (0.1, 0.03, 50, False), (0.1, 0.01, 49, False)],
)
def test_freezing_needs_both_losses_low_and_the_least_steps(reconstruction, monotonicity, n_steps, expected):
    before = step.TrainState({"w": 1.0}, {}, None, jnp.asarray(n_steps - 1), jnp.asarray(False))
    after = before._replace(parameters={"w": 2.0}, step=jnp.asarray(n_steps))
    losses = Losses(*[0.0] * 8)._replace(reconstruction=reconstruction, monotonicity=monotonicity)
    judged = step._freeze(before, after, losses, 50, (0.2, 0.02))
    assert bool(judged.frozen) is expected
    assert judged.parameters["w"] == 2.0
    again = step._freeze(judged, after._replace(parameters={"w": 3.0}), losses, 50, (0.2, 0.02))
    assert again.parameters["w"] == (2.0 if expected else 3.0)


# Correlated severities: the copula itself


@pytest.mark.parametrize("case", CORRELATED, indirect=True)
def test_copula_follows_its_own_adam(case):
    """Its gradient is that of the adversarial term plus the penalty, and nothing else."""
    copula = {"copula": {"raw": RAW.copy()}}
    raw = copula["copula"]["raw"]
    found = plain.numerical_gradient(
        lambda: adversarial(case, raw) + PENALTY * plain.divergence(plain.factor_of(raw)), copula
    )
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
    found = jax.tree.map(np.asarray, step._correlated(drawn, jnp.asarray(RAW), CASES["sampled"][0]))
    assert (found.later >= found.earlier).all()
    assert 0 <= found.earlier.min() <= found.later.max() <= 1
    np.testing.assert_array_equal(found.near_control, drawn.near_control)
    np.testing.assert_array_equal(found.controls, drawn.controls)
    assert step._correlated(drawn, jnp.asarray(RAW), CASES["weighted"][0]) is drawn


@pytest.mark.parametrize("name", ["weighted", "sampled"])
def test_without_correlation_a_step_is_as_with_independent_severities(name):
    independent = run(ADDITIVE, WHITENING)
    assert independent.after.copula is None
    found = run(*CASES[name], copula=warm_copula(np.zeros((3, 3))))
    same(found.after.parameters, independent.after.parameters)
    assert {k: float(v) for k, v in found.losses.items()} == pytest.approx(
        {k: float(v) for k, v in independent.losses.items()}
    )


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_models_keep_their_copula(frozen):
    training = replace(CASES["weighted"][0], freeze_below=(1e-9, 1e-9))
    case = run(training, WHITENING, frozen=jnp.asarray(frozen))
    assert np.array_equal(case.after.copula.raw, RAW) == frozen
    assert np.array_equal(case.after.copula.moments.mu, case.before.copula.moments.mu) == frozen
    assert case.after.copula.moments.count == N_BEFORE + (not frozen)


@pytest.mark.parametrize("name", CORRELATED)
def test_copula_stays_at_steps_where_it_does_not_move(name):
    moving, still = (run(*CASES[name], moves_copula=moves) for moves in (True, False))
    jax.tree.map(np.testing.assert_array_equal, still.after.copula, still.before.copula)
    same(still.after.parameters, moving.after.parameters, rtol=1e-12)


@pytest.mark.parametrize(("name", "expected"), [("independent", False), ("sampled", True), ("weighted", True)])
def test_a_model_starts_without_correlation(name, expected):
    sizes = networks.sizes(N_REGIONS, N_PATTERNS)
    state = step.initial_state(jax.random.key(0), sizes, sizes, replace(ADDITIVE, latent=name))
    assert (state.copula is not None) == expected
    assert not expected or not (np.any(state.copula.raw) or np.any(state.copula.moments.mu))
