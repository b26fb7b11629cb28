"""The four networks of the paper's Tables 3 and 4, for one model.

Weights are plain dictionaries of arrays. Nothing here knows that many models are trained at once.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

Layer = dict[str, Array]

_INITIAL_SD = 0.1  # as the authors release it; the clipping at ±0.5 is tuned to it


class Parameters(NamedTuple):
    """Weights of one model."""

    transformation: dict[str, Layer]  # f
    decomposer: dict[str, Layer]  # g₁
    reconstructor: dict[str, Layer]  # g₂
    discriminator: dict[str, Layer]  # D


def hidden_sizes(n_regions: int) -> tuple[int, int]:
    """Half and a quarter of the regions, rounded down, and never empty."""
    return max(1, n_regions // 2), max(1, n_regions // 4)


def initialise(key: Array, n_regions: int, n_patterns: int) -> Parameters:
    """Draw the initial weights of one model from N(0, 0.1²)."""
    wide, narrow = hidden_sizes(n_regions)
    keys = iter(jax.random.split(key, 12))

    def layer(n_in: int, n_out: int, bias: bool = True) -> Layer:
        weights = {"weight": _INITIAL_SD * jax.random.normal(next(keys), (n_in, n_out))}
        return weights | {"bias": jnp.zeros(n_out)} if bias else weights

    return Parameters(
        transformation={
            "encode1": layer(n_regions, wide, bias=False),
            "encode2": layer(wide, narrow, bias=False),
            "severity": layer(n_patterns, narrow),
            "decode1": layer(narrow, wide, bias=False),
            "decode2": layer(wide, n_regions, bias=False),
        },
        decomposer={"patterns": layer(n_regions, n_patterns * n_regions)},
        reconstructor={
            "layer1": layer(n_regions, wide),
            "layer2": layer(wide, narrow),
            "output": layer(narrow, n_patterns),
        },
        discriminator={
            "layer1": layer(n_regions, wide),
            "layer2": layer(wide, narrow),
            "output": layer(narrow, 2),
        },
    )


def _linear(layer: Layer, inputs: Array) -> Array:
    outputs = inputs @ layer["weight"]
    return outputs + layer["bias"] if "bias" in layer else outputs


def _leaky(inputs: Array) -> Array:
    return jax.nn.leaky_relu(inputs, 0.2)


def encode(f: dict[str, Layer], x: Array) -> Array:
    """Encode brains ``(people, regions)``; shared by all passes of f over the same people."""
    return _leaky(_linear(f["encode2"], _leaky(_linear(f["encode1"], x))))


def decode(f: dict[str, Layer], encoding: Array, z: Array) -> Array:
    """Decode ``(people, narrow)`` at each of the severities ``(people, passes, patterns)`` → ``(…, passes, regions)``."""
    gate = jax.nn.sigmoid(_linear(f["severity"], z))
    return _leaky(_linear(f["decode2"], _leaky(_linear(f["decode1"], encoding[:, None] * gate))))


def decompose(g1: dict[str, Layer], y: Array) -> Array:
    """g₁: the change of each pattern in brains ``(people, regions)`` → ``(people, patterns, regions)``."""
    return _linear(g1["patterns"], _leaky(y)).reshape(len(y), -1, y.shape[-1])


def reconstruct(g2: dict[str, Layer], changes: Array) -> Array:
    """g₂: severities told from changes ``(..., regions)`` → ``(..., patterns)``; one network for all patterns."""
    hidden = _leaky(_linear(g2["layer2"], _leaky(_linear(g2["layer1"], changes))))
    return _linear(g2["output"], hidden)


def discriminate(d: dict[str, Layer], y: Array) -> Array:
    """D: two logits a person, synthesised (0) or real (1)."""
    hidden = _leaky(_linear(d["layer2"], _leaky(_linear(d["layer1"], y))))
    return _linear(d["output"], hidden)


def predict_r_indices(parameters: Parameters, y: Array) -> Array:
    """R-indices of people ``(people, regions)`` → ``(people, patterns)``: what g₂ reads from all decomposed changes."""
    return reconstruct(parameters.reconstructor, decompose(parameters.decomposer, y)).sum(axis=1)
