"""Results of trained models: R-indices, decomposed changes, synthesised brains.

Computed in double precision, so that a person's result does not depend on who else is in the table.
`models` are `Parameters` whose arrays have a leading axis of models, all with their patterns in the same order.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rindices.core import networks
from rindices.core.networks import Parameters

# Largest share of f's change at severity 1 that it may make at 0. The share is 0.02 to 0.06 if severities are uniform,
# and 0.4 if they follow a Beta(3, 1) distribution.
MOST_AT_ZERO = 0.2
_MOST_CONTROLS = 5000  # over whom f's change is averaged; more take time and memory
_BLOCK = 1024  # people at a time: memory stays small, and one compiled program serves tables of any length
_ROWS = 8  # severities at a time at which everybody is changed, for the same reasons


def r_indices(models: Parameters, brains: np.ndarray) -> np.ndarray:
    """Return each model's R-indices of scaled `brains` ``(people, regions)`` → ``(models, people, patterns)``."""
    return _by_blocks(partial(_r_indices, models), (brains,), axis=1)


def slopes(models: Parameters, brains: np.ndarray) -> np.ndarray:
    """Return the gradient of the mean R-indices with respect to scaled `brains` → ``(people, patterns, regions)``."""
    return _by_blocks(partial(_slopes, models), (brains,), axis=0)


def decompose(models: Parameters, brains: np.ndarray) -> np.ndarray:
    """Return each pattern's change in scaled `brains`, averaged over models → ``(people, patterns, regions)``."""
    return _by_blocks(partial(_decompose, models), (brains,), axis=0)


def decomposed_changes(models: Parameters, patients: np.ndarray) -> np.ndarray:
    """Return the change at severity 1 that g₁ finds in scaled `patients` → ``(models, patterns, regions)``.

    The slope of a regression through the origin of each model's changes c on its own R-indices r: Σ r c / Σ r².
    """
    scores = r_indices(models, patients)
    by_person = scores.swapaxes(0, 1).reshape(len(patients), -1)
    total = sum(np.asarray(_weighted_changes(models, *block)) for block, _ in _blocks((patients, by_person)))
    with np.errstate(invalid="ignore"):  # NaN if nobody has the pattern
        return total / (scores**2).sum(axis=1)[:, :, None]


def synthesise(models: Parameters, brains: np.ndarray, z: np.ndarray, composition: str) -> np.ndarray:
    """Transform scaled `brains` by severities `z` ``(people, patterns)`` → ``(models, people, regions)``."""
    return _by_blocks(partial(_synthesise, models, composition=composition), (brains, z), axis=1)


def pattern_changes(models: Parameters, controls: np.ndarray, severity: float = 1.0) -> np.ndarray:
    """Mean change of scaled `controls` by each pattern alone, relative to f(x, 0) → ``(models, patterns, regions)``."""
    return _changes(models, controls, np.array([severity]))[:, 0]


def doses(models: Parameters, controls: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Share of the mean model's full change that each model makes at severities `z` → ``(models, patterns, len(z))``.

    The change of controls by one pattern alone, relative to f(x, 0), projected onto its mean over models at severity 1.
    """
    changes = _changes(models, controls, np.append(z, 1))
    full = changes[:, -1].mean(axis=0)
    return np.einsum("kzmr,mr->kmz", changes[:, :-1], full) / (full**2).sum(axis=1)[None, :, None]


def _changes(models: Parameters, controls: np.ndarray, severities: np.ndarray) -> np.ndarray:
    """Mean change by each pattern alone, at each severity → ``(models, severities, patterns, regions)``."""
    n_patterns, controls = networks.n_patterns(models), controls[:: -(-len(controls) // _MOST_CONTROLS)]
    everybody = controls, np.ones((len(controls), 1))
    z = np.concatenate([np.zeros((1, n_patterns)), *(severity * np.eye(n_patterns) for severity in severities)])
    batches = np.pad(z, [(0, -len(z) % _ROWS), (0, 0)]).reshape(-1, _ROWS, n_patterns)
    totals = [sum(np.asarray(_totals(models, *block, batch)) for block, _ in _blocks(everybody)) for batch in batches]
    means = np.concatenate(totals, axis=1) / len(controls)
    changes = means[:, 1 : len(z)] - means[:, :1]
    return changes.reshape(len(means), len(severities), n_patterns, -1)


def order_by_change(models: Parameters, controls: np.ndarray) -> tuple[Parameters, np.ndarray]:
    """Sort the patterns of aligned models by their mean absolute change, largest first; also return the order."""
    sizes = np.abs(pattern_changes(models, controls)).mean(axis=(0, 2))
    order = np.argsort(-sizes, kind="stable")
    return reorder_patterns(models, order), order


def reorder_patterns(parameters: Parameters, order: np.ndarray) -> Parameters:
    """Make pattern ``order[i]`` pattern i in f's severities, g₁'s changes and g₂'s outputs, for one model or many.

    An accompanying linear model is reordered, too.
    """

    def take(array: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
        return np.take(array, order, axes.index("patterns") - len(axes)) if "patterns" in axes else array

    reordered = jax.tree.map(take, parameters, networks.axes_of(parameters))
    return reordered._replace(discriminator=parameters.discriminator)


def without_linear(models: Parameters) -> Parameters:
    """Return the networks alone, whose R-indices are the paper's R = g₂(g₁(y))."""
    return models._replace(linear=None)


def change_at_zero(models: Parameters, controls: np.ndarray, composition: str) -> np.ndarray:
    """Return f's mean change with all severities at 0, as a share of that with all at 1 → ``(models,)``."""
    f, n_patterns = without_linear(models), networks.n_patterns(models)

    def size_at(severity: float) -> np.ndarray:
        made = synthesise(f, controls, np.full((len(controls), n_patterns), severity), composition)
        return np.linalg.norm((made - controls).mean(axis=1), axis=-1)

    return size_at(0) / size_at(1)


def from_zero(models: Parameters, controls: np.ndarray, composition: str) -> Parameters:
    """Let the linear model synthesise people in place of f if f already changes brains at severity 0.

    If nearly all patients are severely affected, f never sees mild forms of a pattern and learns that part of the
    change is common to everybody. Severities are counted from f(x, 0), so that part would be missing from all of them.
    """
    if models.linear is None or not models.transformation:
        return models
    share = float(change_at_zero(models, controls, composition).mean() > MOST_AT_ZERO)
    change = models.linear["change"]
    return models._replace(linear=models.linear | {"change": change | {"share": np.full_like(change["share"], share)}})


def linear_makes_people(models: Parameters) -> bool:
    """Return whether the linear model synthesises people in place of the networks, see `from_zero`."""
    return bool(models.transformation and models.linear is not None and np.any(models.linear["change"]["share"]))


def _by_blocks(function: Callable[..., Array], people: tuple[np.ndarray, ...], axis: int) -> np.ndarray:
    parts = [np.take(np.asarray(function(*block)), range(n_real), axis) for block, n_real in _blocks(people)]
    return np.concatenate(parts, axis)


def _blocks(people: tuple[np.ndarray, ...]) -> Iterator[tuple[list[np.ndarray], int]]:
    """Yield people in double-precision blocks, the last padded with zeros, and the number of real people in each."""
    n_people = len(people[0])
    size = min(_BLOCK, 1 << max(n_people - 1, 15).bit_length())  # few sizes, few compilations
    with jax.enable_x64(True):
        for start in range(0, n_people, size):
            block = [np.asarray(rows[start : start + size], float) for rows in people]
            n_real = len(block[0])
            yield [np.pad(rows, [(0, size - n_real), (0, 0)]) for rows in block], n_real


def _double(models: Parameters) -> Parameters:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), models)


@jax.jit
def _r_indices(models: Parameters, brains: Array) -> Array:
    def one(model: Parameters) -> Any:
        """Return the R-indices of the networks, averaged with those of the accompanying linear model, if any."""
        read = _network_reading(model, brains) if model.decomposer else 0.0
        if model.linear is None:
            return read
        reading = model.linear["reading"]
        return (1 - reading["share"]) * read + reading["share"] * (reading["bias"] + (brains - 1) @ reading["weight"])

    return jax.lax.map(one, _double(models))


def _network_reading(model: Parameters, brains: Array) -> Array:
    # g₁ and g₂'s first layer are both linear: multiplying their weights first halves the work.
    g1, first = model.decomposer["patterns"], model.reconstructor["layer1"]
    merged = {
        "weight": g1["weight"] @ first["weight"],
        "bias": g1["bias"] @ first["weight"] + first["bias"],
    }
    hidden = networks.decompose({"patterns": merged}, brains)
    return networks.finish_reconstruction(model.reconstructor, hidden).sum(axis=1)


@jax.jit
def _slopes(models: Parameters, brains: Array) -> Array:
    return jax.vmap(jax.jacrev(lambda brain: _r_indices(models, brain[None]).mean(axis=(0, 1))))(brains)


@jax.jit
def _decompose(models: Parameters, brains: Array) -> Array:
    def add(total: Array, g1: dict) -> tuple[Array, None]:
        return total + networks.decompose(g1, brains), None

    if not models.decomposer:  # for a linear model, the change that its severity makes
        severities = jnp.maximum(_r_indices(models, brains), 0)
        return jnp.mean(_linear_changes(_double(models), severities), axis=0)
    doubled = _double(models).decomposer
    n_models, n_regions, n_patterns, _ = doubled["patterns"]["weight"].shape
    return jax.lax.scan(add, jnp.zeros((len(brains), n_patterns, n_regions)), doubled)[0] / n_models


@jax.jit
def _weighted_changes(models: Parameters, brains: Array, scores: Array) -> Array:
    def one(model: tuple[dict, Array]) -> Array:
        return jnp.einsum("pm,pmr->mr", model[1], networks.decompose(model[0], brains))

    n_models = len(jax.tree.leaves(models)[0])
    by_model = scores.reshape(len(brains), n_models, -1).swapaxes(0, 1)
    if not models.decomposer:
        changes = _linear_changes(_double(models), jnp.maximum(by_model, 0))
        return jnp.einsum("kpm,kpmr->kmr", by_model, changes)
    return jax.lax.map(one, (_double(models).decomposer, by_model))


def _linear_changes(models: Parameters, z: Array) -> Array:
    """Return each pattern's change at severities ``(models, people, patterns)`` by linear models."""
    change = models.linear["change"]
    return (z ** change["exponent"][:, None])[..., None] * change["map"][:, None]


@partial(jax.jit, static_argnames="composition")
def _synthesise(models: Parameters, brains: Array, z: Array, composition: str) -> Array:
    models = _double(models)
    alone = z[:, :, None] * jnp.eye(z.shape[1])

    def one(f: dict) -> Array:
        encoding = networks.encode(f, brains)
        if composition == "additive":
            return brains + networks.decode(f, encoding, alone).sum(axis=1)
        out = networks.decode(f, encoding, z[:, None])[:, 0]
        return out if composition == "joint" else brains + out

    made = jax.lax.map(one, models.transformation) if models.transformation else brains
    if models.linear is None:
        return made
    change = models.linear["change"]
    everybody = jnp.broadcast_to(z, (len(change["share"]), *z.shape))
    share = change["share"][:, None, None]
    return (1 - share) * made + share * (brains + _linear_changes(models, everybody).sum(axis=2))


@jax.jit
def _totals(models: Parameters, brains: Array, counted: Array, z: Array) -> Array:
    """Sum over people the change of one pass of f at each row of `z` → ``(models, rows, regions)``.

    However patterns are composed, f adds the same for a pattern alone as this, apart from a constant. `counted` is 1
    for people, and 0 for rows that only pad the block.
    """
    models = _double(models)

    def one(f: dict) -> Array:
        everybody = jnp.broadcast_to(z, (len(brains), *z.shape))
        return jnp.einsum("p,pzr->zr", counted[:, 0], networks.decode(f, networks.encode(f, brains), everybody))

    made = jax.lax.map(one, models.transformation) if models.transformation else jnp.zeros(())
    if models.linear is None:
        return made
    share = models.linear["change"]["share"][:, None, None]
    linear = _linear_changes(models, jnp.broadcast_to(z, (len(share), *z.shape))).sum(axis=2)
    return (1 - share) * made + share * counted.sum() * linear
