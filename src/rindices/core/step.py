"""One update of one model: ``TrainState → TrainState``, following Algorithm 1 of the paper."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from rindices.core import losses as terms
from rindices.core import networks
from rindices.core.losses import Draw, Losses, Prior, draw
from rindices.core.networks import Network, Parameters, Sizes, only
from rindices.presets import LearningRates, LossWeights, Training

_TINY = 1e-6
COPULA_EVERY = 4  # steps; the correlation of severities changes slowly, and updating it at every step costs more


class Data(NamedTuple):
    """The data that a model is trained on; rows beyond the counts are padding and never drawn."""

    controls: Array  # (rows, regions), scaled
    drawn: Array  # (rows,) numbers of the controls, those that this model learns from first
    seen_patients: Array  # (rows, regions), scaled, and whitened if the discriminator sees whitened regions
    whitening: Array | None  # (regions, regions), or None: the discriminator sees regions as they are
    n_controls: Array  # that this model learns from
    n_patients: Array
    min_steps: Array  # no model is frozen earlier
    region_share: Array  # of real regions among all columns; the others are zeros that suit the hardware
    active: Array | None = None  # (patterns,) 1 for this model's own, 0 for padding up to the most; None: no padding
    prior: Prior | None = None  # None: training starts from random weights


class Copula(NamedTuple):
    """The correlation of severities that one model learns."""

    raw: Array  # (patterns, patterns); see `losses.unit_rows`
    moments: optax.OptState


class TrainState(NamedTuple):
    """The state of one model between two steps."""

    parameters: Parameters
    optimisers: Parameters  # Adam's moments, in place of the weights that they belong to
    key: Array
    step: Array
    frozen: Array  # True once the criterion `Training.freeze_below` has been met
    copula: Copula | None = None  # None: severities are independent


class Synthesis(NamedTuple):
    """Everything that f makes of one batch of controls."""

    patients: Array  # y' = f(x, z)
    later_patients: Array  # f(x, z'); compared as a whole unless changes are additive
    near_controls: Array  # f(x, z_cn)
    changes: Array  # q, one per pattern
    later_changes: Array | None  # q'; only if changes are additive


_ADAM = optax.scale_by_adam(b1=0.5, b2=0.999)


def optimisers(training: Training) -> Parameters:
    """Adam as in the authors' code: gradients clipped (f, D), with L2 decay (f, g₁, g₂); rates are applied later."""
    clips = [] if training.gradient_clip is None else [optax.clip_by_global_norm(training.gradient_clip)]
    decays = [optax.add_decayed_weights(training.weight_decay)] if training.weight_decay else []
    decayed = optax.chain(*decays, _ADAM)
    return Parameters(optax.chain(*clips, *decays, _ADAM), decayed, decayed, optax.chain(*clips, _ADAM))


def initial_state(key: Array, real: Sizes, with_padding: Sizes, training: Training) -> TrainState:
    """Draw the weights of one model and initialise its optimisers."""
    weights_key, steps_key = jax.random.split(key)
    parameters = networks.pad(networks.initialise(weights_key, real), with_padding)
    moments = Parameters(*(o.init(p) for o, p in zip(optimisers(training)[:4], parameters[:4], strict=True)))
    copula = None
    if training.latent != "independent":
        raw = jnp.zeros((with_padding.patterns, with_padding.patterns))
        copula = Copula(raw, _ADAM.init(raw))
    return TrainState(parameters, moments, steps_key, jnp.zeros((), jnp.int32), jnp.zeros((), bool), copula)


def synthesise(f: Network, x: Array, draws: Draw, training: Training, active: Array | None = None) -> Synthesis:
    """Transform a batch of controls at all severities that the losses need, in one pass of the decoder."""
    n_patterns = draws.earlier.shape[1]
    encoding = networks.encode(f, x)
    alone = jnp.eye(n_patterns)
    if training.composition == "additive":
        severities = [draws.earlier[:, :, None] * alone, draws.later[:, :, None] * alone, draws.near_control[:, None]]
        out = networks.decode(f, encoding, jnp.concatenate(severities, axis=1)).astype(x.dtype)
        changes, later, near = jnp.split(out, [n_patterns, 2 * n_patterns], axis=1)
        changes, later = only(active, changes), only(active, later)
        return Synthesis(x + changes.sum(1), x + later.sum(1), x + near[:, 0], changes, later)
    severities = [z[:, None] for z in (draws.earlier, draws.later, draws.near_control)]
    severities.append(draws.earlier[:, :, None] * alone)
    out = _brains(networks.decode(f, encoding, jnp.concatenate(severities, axis=1)), x, training)
    return Synthesis(out[:, 0], out[:, 1], out[:, 2], only(active, out[:, 3:] - x[:, None]), None)


def synthesised_patients(
    f: Network, x: Array, z: Array, training: Training, active: Array | None = None
) -> tuple[Array, Array]:
    """Transform a batch of controls at severities `z` only → y' and q."""
    encoding, alone = networks.encode(f, x), z[:, :, None] * jnp.eye(z.shape[1])
    if training.composition == "additive":
        changes = only(active, networks.decode(f, encoding, alone).astype(x.dtype))
        return x + changes.sum(1), changes
    out = _brains(networks.decode(f, encoding, jnp.concatenate([alone, z[:, None]], axis=1)), x, training)
    return out[:, -1], only(active, out[:, :-1] - x[:, None])


def _brains(out: Array, x: Array, training: Training) -> Array:
    return out.astype(x.dtype) + (x[:, None] if training.composition == "one_pass" else 0)


def regularisers(
    parameters: Parameters, x: Array, draws: Draw, made: Synthesis, data: Data, training: Training
) -> dict[str, Array]:
    """All terms of the objective except the adversarial one; means over regions and patterns exclude padding."""
    region_share, active = data.region_share, data.active
    pattern_share = _pattern_share(active)
    decomposed = networks.decompose(parameters.decomposer, made.patients).astype(x.dtype)
    if made.later_changes is None:
        compared, compared_share = (made.patients - x, made.later_patients - x), region_share
        patterns = made.changes
    else:
        compared, compared_share = (made.changes, made.later_changes), region_share * pattern_share
        patterns = jnp.concatenate([made.changes, made.later_changes])
    if training.orthogonality == "person":
        overlap = terms.orthogonality_of_person(made.changes)
    else:
        overlap = terms.orthogonality_of_batch(patterns)
    if active is not None:  # each padding pattern adds a 1 on the diagonal
        overlap = (overlap - (1 - pattern_share) / len(active)) / pattern_share**2
    severities = networks.reconstruct(parameters.reconstructor, decomposed).astype(x.dtype)
    of_prior = {}
    if data.prior is not None:
        distance = terms.prior(made.changes, draws.earlier, data.prior, data.whitening)
        of_prior["prior"] = distance / (region_share * pattern_share)
    return of_prior | {
        "change": terms.absolute_change(made.patients, x) / region_share,
        "decomposition": terms.decomposition(decomposed, made.changes) / (region_share * pattern_share),
        "reconstruction": terms.reconstruction(only(active, severities), draws.earlier) / pattern_share**2,
        "orthogonality": overlap,
        "monotonicity": terms.monotonicity(*compared) / compared_share,
        "near_control": terms.absolute_change(made.near_controls, x) / region_share,
    }


def _pattern_share(active: Array | None) -> Array | float:
    return 1.0 if active is None else jnp.mean(active)


def seen_by_discriminator(y: Array, whitening: Array | None) -> Array:
    """Scaled brains as the discriminator sees them: as they are, or decorrelated about the controls' mean of 1."""
    return y if whitening is None else 1 + (y - 1) @ whitening


class Rules(NamedTuple):
    """Everything that stays the same from step to step of one model."""

    data: Data
    weights: LossWeights
    rates: LearningRates
    training: Training
    precision: Any  # in which networks are computed

    def rounded(self, weights: Any) -> Any:
        """Return weights in the precision in which networks are computed."""
        return jax.tree.map(lambda leaf: leaf.astype(self.precision), weights)


class Batch(NamedTuple):
    """People and severities of one step."""

    controls: Array
    patients: Array  # as the discriminator sees them
    independent: Draw
    draws: Draw  # the same, with correlated severities if these are sampled
    counts: Array | float  # weight of each synthesised patient


def step(
    state: TrainState,
    data: Data,
    weights: LossWeights,
    rates: LearningRates,
    training: Training,
    batch_size: int,
    precision: Any = jnp.float32,
    moves_copula: Array | bool = True,
) -> tuple[TrainState, Losses]:
    """Update the discriminator, then the copula and f, g₁ and g₂ against the updated one.

    All see the same synthesised patients. Networks are computed in `precision`; weights, the networks' outputs and all
    means over them are float32. The copula is updated only if `moves_copula`, at one of every `COPULA_EVERY` steps.
    """
    rules = Rules(data, weights, rates, training, precision)
    batch = _batch(state, rules, batch_size)
    made, back = jax.vjp(
        lambda f: synthesise(rules.rounded(f), batch.controls, batch.draws, training, data.active),
        state.parameters.transformation,
    )
    after, mistaken = update_discriminator(state, batch, made, rules)
    after = update_copula(after, batch, rules, moves_copula)
    after, losses = update_generators(after, batch, made, back, rules)
    losses = losses._replace(discriminator=mistaken)
    after = after._replace(step=state.step + 1)
    if training.freeze_below is not None:
        after = _freeze(state, after, losses, data.min_steps, training.freeze_below)
    return after, losses


def _batch(state: TrainState, rules: Rules, batch_size: int) -> Batch:
    data, training = rules.data, rules.training
    n_patterns = len(state.parameters.transformation["severity"]["weight"])
    key = jax.random.fold_in(state.key, state.step)
    independent = draw(key, batch_size, n_patterns, data.n_controls, data.n_patients, data.active)
    draws = independent if state.copula is None else _correlated(independent, state.copula.raw, training, data.active)
    x, real = data.controls[data.drawn[draws.controls]], data.seen_patients[draws.patients]
    return Batch(x, real, independent, draws, _weights(draws, state.copula, training))


def update_discriminator(state: TrainState, batch: Batch, made: Synthesis, rules: Rules) -> tuple[TrainState, Array]:
    """Update the discriminator; return its loss, too."""
    real, fake = batch.patients, seen_by_discriminator(made.patients, rules.data.whitening)

    def loss(discriminator: Network) -> Array:
        logits = networks.discriminate(rules.rounded(discriminator), jnp.concatenate([real, fake])).astype(fake.dtype)
        return terms.discriminator_loss(logits[: len(real)], logits[len(real) :], batch.counts)

    value, gradient = jax.value_and_grad(loss)(state.parameters.discriminator)
    return _moved(state, "discriminator", gradient, rules.rates.discriminator, rules.training), value


def update_generators(
    state: TrainState, batch: Batch, made: Synthesis, back: Callable[[Synthesis], tuple[Network]], rules: Rules
) -> tuple[TrainState, Losses]:
    """Update f, g₁ and g₂ within their bounds; `back` takes gradients from f's output back to its weights."""
    data, training, before = rules.data, rules.training, state.parameters

    def total(made: Synthesis, parameters: Parameters) -> tuple[Array, Losses]:
        parameters = rules.rounded(parameters)
        fake = seen_by_discriminator(made.patients, data.whitening)
        adversarial = _fooling_loss(parameters.discriminator, fake, batch.counts)
        others = regularisers(parameters, batch.controls, batch.draws, made, data, training)
        losses = Losses(adversarial=adversarial, discriminator=jnp.zeros(()), **others)
        return terms.objective(losses, rules.weights), losses

    (by_made, gradients), losses = jax.grad(total, argnums=(0, 1), has_aux=True)(made, before)
    gradients = gradients._replace(transformation=back(by_made)[0])
    for name in ("transformation", "decomposer", "reconstructor"):
        gradient = getattr(gradients, name)
        if name != "transformation" and training.updates != "joint":
            seen = state.parameters if training.updates == "sequential" else before
            gradient = jax.grad(partial(_own_loss, name, seen, batch, rules))(getattr(before, name))
        state = _moved(state, name, gradient, rules.rates.generator, training, training.weight_clip)
    return state, losses


def update_copula(state: TrainState, batch: Batch, rules: Rules, moves: Array | bool) -> TrainState:
    """Update the learned correlation of severities, if this step `moves` it."""
    if state.copula is None:
        return state
    data, training = rules.data, rules.training
    f, d = rules.rounded((state.parameters.transformation, state.parameters.discriminator))

    def loss(raw: Array) -> Array:
        draws = _correlated(batch.independent, raw, training, data.active)
        patients, _ = synthesised_patients(f, batch.controls, draws.earlier, training, data.active)
        fake = seen_by_discriminator(patients, data.whitening)
        fooling = _fooling_loss(d, fake, _weights(draws, Copula(raw, None), training))
        return fooling + training.correlation_penalty * terms.divergence_from_independence(terms.unit_rows(raw))

    def moved(copula: Copula) -> Copula:
        gradient = jax.grad(loss)(copula.raw)
        if data.active is not None:
            gradient = gradient * jnp.outer(data.active, data.active)
        return Copula(*_move(_ADAM, gradient, copula.moments, copula.raw, COPULA_EVERY * rules.rates.correlation))

    return state._replace(copula=jax.lax.cond(moves, moved, lambda same: same, state.copula))


def _own_loss(name: str, seen: Parameters, batch: Batch, rules: Rules, network: Network) -> Array:
    """Return the loss that g₁ (the decomposition) or g₂ (the reconstruction) alone minimises in Algorithm 1."""
    data, x, z = rules.data, batch.controls, batch.draws.earlier
    seen = rules.rounded(seen._replace(**{name: network}))
    patients, changes = synthesised_patients(seen.transformation, x, z, rules.training, data.active)
    share = _pattern_share(data.active)
    decomposed = networks.decompose(seen.decomposer, patients).astype(x.dtype)
    if name == "decomposer":
        return terms.decomposition(decomposed, changes) / (data.region_share * share)
    severities = networks.reconstruct(seen.reconstructor, decomposed).astype(x.dtype)
    return terms.reconstruction(only(data.active, severities), z) / share**2


def _correlated(independent: Draw, raw: Array, training: Training, active: Array | None = None) -> Draw:
    """Return the draws with correlated severities, if sampled so; later ones stay the same fraction of the way to 1."""
    if training.latent != "sampled":
        return independent
    earlier = terms.correlated(independent.earlier, terms.unit_rows(raw))
    further = (independent.later - independent.earlier) / jnp.maximum(1 - independent.earlier, _TINY)
    later = earlier + (1 - earlier) * further
    if active is not None:
        earlier, later = active * earlier, active * later
    return independent._replace(earlier=earlier, later=later)


def _weights(draws: Draw, copula: Copula | None, training: Training) -> Array | float:
    """Return the weight of each synthesised patient."""
    if copula is None or training.latent != "weighted":
        return 1.0
    return terms.copula_density(draws.earlier, terms.unit_rows(copula.raw))


def _fooling_loss(discriminator: Network, fake: Array, people: Array | float) -> Array:
    logits = networks.discriminate(discriminator, fake).astype(fake.dtype)
    return terms.cross_entropy(logits, 1, people / jnp.mean(people))


def _moved(
    state: TrainState, name: str, gradient: Network, rate: float, training: Training, bound: float | None = None
) -> TrainState:
    """Update one network against its gradient, and keep its weights within ± `bound`."""
    optimiser, moments, before = (
        getattr(of, name) for of in (optimisers(training), state.optimisers, state.parameters)
    )
    after, moments = _move(optimiser, gradient, moments, before, rate)
    if bound is not None:
        after = jax.tree.map(lambda weight: jnp.clip(weight, -bound, bound), after)
    return state._replace(
        parameters=state.parameters._replace(**{name: after}), optimisers=state.optimisers._replace(**{name: moments})
    )


def _move(
    optimiser: optax.GradientTransformation, gradient: Any, moments: optax.OptState, weights: Any, rate: float
) -> tuple[Any, optax.OptState]:
    direction, moments = optimiser.update(gradient, moments, weights)
    return jax.tree.map(lambda w, d: w - rate * d, weights, direction), moments


def _freeze(
    before: TrainState, after: TrainState, losses: Losses, min_steps: Array, below: tuple[float, float]
) -> TrainState:
    good = (losses.reconstruction < below[0]) & (losses.monotonicity < below[1]) & (after.step >= min_steps)

    def hold(old: Array, new: Array) -> Array:
        return jnp.where(before.frozen, old, new)

    return after._replace(
        parameters=jax.tree.map(hold, before.parameters, after.parameters),
        optimisers=jax.tree.map(hold, before.optimisers, after.optimisers),
        step=hold(before.step, after.step),
        copula=jax.tree.map(hold, before.copula, after.copula),
        frozen=before.frozen | good,
    )
