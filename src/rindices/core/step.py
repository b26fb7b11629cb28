"""One update of one model: ``TrainState → TrainState``, following Algorithm 1 of the paper."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from rindices.config import LearningRates, LossWeights, Training
from rindices.core import losses as terms
from rindices.core import networks
from rindices.core.latent import Draw, draw
from rindices.core.losses import Losses
from rindices.core.networks import Parameters


class Data(NamedTuple):
    """What one training reads, the same for all models; rows beyond the counts are padding and never drawn."""

    controls: Array  # (rows, regions), scaled
    seen_patients: Array  # (rows, regions), scaled, and whitened where the discriminator sees them so
    whitening: Array | None  # (regions, regions), or None: the discriminator sees regions as they are
    n_controls: Array
    n_patients: Array
    min_steps: Array  # no model is frozen before


class TrainState(NamedTuple):
    """What one model carries from step to step."""

    parameters: Parameters
    optimisers: Parameters  # Adam's moments, in the places of the weights they belong to
    key: Array
    step: Array
    frozen: Array  # True once the rule of `Training.freeze_below` was met


class Synthesis(NamedTuple):
    """All that f made of one batch of controls."""

    patients: Array  # y' = f(x, z)
    later_patients: Array  # f(x, z'); only the joint composition compares whole brains
    near_controls: Array  # f(x, z_cn)
    changes: Array  # q, one per pattern
    later_changes: Array | None  # q'; only additive


def optimisers(training: Training) -> Parameters:
    """Adam as released: gradients clipped (f, D), L2 decay inside the gradient (f, g₁, g₂); rates are applied later."""

    def chain(clip: bool, decay: bool) -> optax.GradientTransformation:
        parts = [optax.scale_by_adam(b1=0.5, b2=0.999)]
        if decay and training.weight_decay:
            parts.insert(0, optax.add_decayed_weights(training.weight_decay))
        if clip and training.gradient_clip is not None:
            parts.insert(0, optax.clip_by_global_norm(training.gradient_clip))
        return optax.chain(*parts)

    plain = chain(clip=False, decay=True)
    return Parameters(chain(clip=True, decay=True), plain, plain, chain(clip=True, decay=False))


def initial_state(key: Array, n_regions: int, n_patterns: int, training: Training) -> TrainState:
    """Draw the weights of one model and start its optimisers."""
    weights_key, steps_key = jax.random.split(key)
    parameters = networks.initialise(weights_key, n_regions, n_patterns)
    moments = Parameters(*(o.init(p) for o, p in zip(optimisers(training), parameters, strict=True)))
    return TrainState(parameters, moments, steps_key, jnp.zeros((), jnp.int32), jnp.zeros((), bool))


def synthesise(f: dict, x: Array, draws: Draw, training: Training) -> Synthesis:
    """Transform a batch of controls at all severities that the losses need, in one pass of the decoder."""
    n_patterns = draws.earlier.shape[1]
    encoding = networks.encode(f, x)
    alone = jnp.eye(n_patterns)
    if training.composition == "additive":
        severities = (draws.earlier[:, :, None] * alone, draws.later[:, :, None] * alone, draws.near_control[:, None])
        out = networks.decode(f, encoding, jnp.concatenate(severities, axis=1))
        changes, later, near = jnp.split(out, [n_patterns, 2 * n_patterns], axis=1)
        return Synthesis(x + changes.sum(1), x + later.sum(1), x + near[:, 0], changes, later)
    severities = (draws.earlier[:, None], draws.later[:, None], draws.near_control[:, None])
    severities += (draws.earlier[:, :, None] * alone,)
    out = networks.decode(f, encoding, jnp.concatenate(severities, axis=1))
    return Synthesis(out[:, 0], out[:, 1], out[:, 2], out[:, 3:] - x[:, None], None)


def regularisers(parameters: Parameters, x: Array, draws: Draw, made: Synthesis, training: Training) -> dict:
    """All terms of the objective but the adversarial ones."""
    decomposed = networks.decompose(parameters.decomposer, made.patients)
    if made.later_changes is None:
        compared = (made.patients - x, made.later_patients - x)
        patterns = made.changes
    else:
        compared = (made.changes, made.later_changes)
        patterns = jnp.concatenate([made.changes, made.later_changes])
    per_person = training.orthogonality == "person"
    return {
        "change": terms.absolute_change(made.patients, x),
        "decomposition": terms.decomposition(decomposed, made.changes),
        "reconstruction": terms.reconstruction(networks.reconstruct(parameters.reconstructor, decomposed), draws.earlier),
        "orthogonality": (terms.orthogonality_of_person if per_person else terms.orthogonality_of_batch)(patterns),
        "monotonicity": terms.monotonicity(*compared),
        "near_control": terms.absolute_change(made.near_controls, x),
    }


def seen_by_discriminator(y: Array, whitening: Array | None) -> Array:
    """Scaled brains as the discriminator sees them: as they are, or decorrelated about the controls' mean of 1."""
    return y if whitening is None else 1 + (y - 1) @ whitening


def step(
    state: TrainState, data: Data, weights: LossWeights, rates: LearningRates, training: Training, batch_size: int
) -> tuple[TrainState, Losses]:
    """Update the discriminator, then f, g₁ and g₂ against the updated one; both see the same synthesised patients."""
    parameters, moments = state.parameters, state.optimisers
    adam = optimisers(training)
    n_patterns = parameters.transformation["severity"]["weight"].shape[0]
    key = jax.random.fold_in(state.key, state.step)
    draws = draw(key, batch_size, n_patterns, data.n_controls, data.n_patients)
    x, real = data.controls[draws.controls], data.seen_patients[draws.patients]

    def learn_discriminator(fake: Array) -> tuple[Array, dict, optax.OptState]:
        def loss(d: dict) -> Array:
            logits = networks.discriminate(d, jnp.concatenate([real, fake]))
            return terms.discriminator_loss(logits[:batch_size], logits[batch_size:])

        value, gradient = jax.value_and_grad(loss)(parameters.discriminator)
        change, new_moments = adam.discriminator.update(gradient, moments.discriminator, parameters.discriminator)
        return value, _move(parameters.discriminator, change, rates.discriminator), new_moments

    def terms_of(generator: tuple) -> tuple[Losses, dict, optax.OptState]:
        candidate = Parameters(*generator, parameters.discriminator)
        made = synthesise(candidate.transformation, x, draws, training)
        fake = seen_by_discriminator(made.patients, data.whitening)
        value, discriminator, new_moments = learn_discriminator(jax.lax.stop_gradient(fake))
        adversarial = terms.cross_entropy(networks.discriminate(discriminator, fake), 1)
        others = regularisers(candidate, x, draws, made, training)
        return Losses(adversarial=adversarial, discriminator=value, **others), discriminator, new_moments

    def whole(generator: tuple) -> tuple[Array, tuple]:
        everything = terms_of(generator)
        return terms.objective(everything[0], weights), everything

    generator = tuple(parameters[:3])
    gradients, (losses, discriminator, d_moments) = jax.grad(whole, has_aux=True)(generator)
    if training.updates == "separate":
        by_decomposition = jax.grad(lambda g1: terms_of((generator[0], g1, generator[2]))[0].decomposition)
        by_reconstruction = jax.grad(lambda g2: terms_of((*generator[:2], g2))[0].reconstruction)
        gradients = (gradients[0], by_decomposition(generator[1]), by_reconstruction(generator[2]))

    moved, new_moments = [], []
    for optimiser, gradient, moment, weight in zip(adam[:3], gradients, moments[:3], generator, strict=True):
        change, moment = optimiser.update(gradient, moment, weight)
        clipped = _move(weight, change, rates.generator)
        moved.append(jax.tree.map(lambda w: jnp.clip(w, -training.weight_clip, training.weight_clip), clipped))
        new_moments.append(moment)
    after = TrainState(
        Parameters(*moved, discriminator), Parameters(*new_moments, d_moments), state.key, state.step + 1, state.frozen
    )
    return (_freeze(state, after, losses, data, training) if training.freeze_below else after), losses


def _freeze(before: TrainState, after: TrainState, losses: Losses, data: Data, training: Training) -> TrainState:
    reconstruction, monotonicity = training.freeze_below
    good = (losses.reconstruction < reconstruction) & (losses.monotonicity < monotonicity)
    kept = jax.tree.map(lambda old, new: jnp.where(before.frozen, old, new), before, after._replace(key=before.key))
    return kept._replace(frozen=before.frozen | (good & (after.step >= data.min_steps)))


def _move(weights: dict, change: dict, rate: float) -> dict:
    return jax.tree.map(lambda w, c: w - rate * c, weights, change)
