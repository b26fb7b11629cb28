"""The four networks of the paper's Tables 3 and 4, for one model.

Weights are plain dictionaries of arrays. Nothing here depends on how many models are trained at once.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Layer = dict[str, Array]
Network = dict[str, Layer]

_INITIAL_SD = 0.1  # as in the authors' code; the clipping at ±0.5 is tuned to it


class Parameters(NamedTuple):
    """The networks of one model: their weights, or something else for each of them (shapes, optimisers, moments)."""

    transformation: Any  # f
    decomposer: Any  # g₁
    reconstructor: Any  # g₂
    discriminator: Any  # D
    linear: Any = None  # the linear model whose R-indices are averaged with the networks', if any; it is not trained


class Sizes(NamedTuple):
    """Lengths of all axes of all weights."""

    regions: int
    wide: int
    narrow: int
    patterns: int
    classes: int = 2


# Axes of the weights and biases of each layer (Tables 3 and 4). The linear model is one of the same patterns: how it
# predicts severities and its share of each R-index; how it changes brains and its share of that change, a number.
AXES = Parameters(
    transformation={
        "encode1": {"weight": ("regions", "wide")},
        "encode2": {"weight": ("wide", "narrow")},
        "severity": {"weight": ("patterns", "narrow"), "bias": ("narrow",)},
        "decode1": {"weight": ("narrow", "wide")},
        "decode2": {"weight": ("wide", "regions")},
    },
    decomposer={"patterns": {"weight": ("regions", "patterns", "regions"), "bias": ("patterns", "regions")}},
    reconstructor={
        "layer1": {"weight": ("regions", "wide"), "bias": ("wide",)},
        "layer2": {"weight": ("wide", "narrow"), "bias": ("narrow",)},
        "output": {"weight": ("narrow", "patterns"), "bias": ("patterns",)},
    },
    discriminator={
        "layer1": {"weight": ("regions", "wide"), "bias": ("wide",)},
        "layer2": {"weight": ("wide", "narrow"), "bias": ("narrow",)},
        "output": {"weight": ("narrow", "classes"), "bias": ("classes",)},
    },
    linear={
        "reading": {"weight": ("regions", "patterns"), "bias": ("patterns",), "share": ("patterns",)},
        "change": {"map": ("patterns", "regions"), "exponent": ("patterns",), "share": ()},
    },
)


def axes_of(parameters: Parameters) -> Parameters:
    """Return the axes of every weight that one model or several have, in place of the arrays."""
    networks = AXES if parameters.transformation else Parameters({}, {}, {}, {})
    return networks._replace(linear=None if parameters.linear is None else AXES.linear)


def sizes(n_regions: int, n_patterns: int) -> Sizes:
    """Return the sizes of a model; hidden layers have half and a quarter of the regions, rounded down, at least 1."""
    return Sizes(n_regions, max(1, n_regions // 2), max(1, n_regions // 4), n_patterns)


def padded(real: Sizes, multiple: int) -> Sizes:
    """Round the large axes up to a `multiple`, as matrix units require."""
    return real._replace(
        **{axis: -(-getattr(real, axis) // multiple) * multiple for axis in ("regions", "wide", "narrow")}
    )


def shapes(lengths: Sizes, *, networks: bool = True, linear: bool = False) -> Parameters:
    """Return the shape of every weight and bias of the networks and of a linear model, in place of the arrays."""

    def of(network: dict[str, dict[str, tuple[str, ...]]]) -> dict[str, dict[str, tuple[int, ...]]]:
        return {
            layer: {kind: tuple(getattr(lengths, axis) for axis in axes) for kind, axes in kinds.items()}
            for layer, kinds in network.items()
        }

    f, g1, g2, d = (of(network) if networks else {} for network in AXES[:4])
    return Parameters(f, g1, g2, d, of(AXES.linear) if linear else None)


def n_patterns(models: Parameters) -> int:
    """Return the number of patterns of one model or of several."""
    if models.linear is not None:
        return models.linear["reading"]["bias"].shape[-1]
    return models.transformation["severity"]["weight"].shape[-2]


def initialise(key: Array, real: Sizes) -> Parameters:
    """Draw the initial weights of one model from N(0, 0.1²); biases are zero."""
    shape_of = shapes(real)[:4]
    ends = np.cumsum([math.prod(layer["weight"]) for network in shape_of for layer in network.values()])
    # One draw for all layers compiles several times faster than a draw for each.
    parts = iter(jnp.split(_INITIAL_SD * jax.random.normal(key, (ends[-1],)), ends[:-1]))

    def layer(shape: dict[str, tuple[int, ...]]) -> Layer:
        weight = {"weight": next(parts).reshape(shape["weight"])}
        return weight | ({"bias": jnp.zeros(shape["bias"])} if "bias" in shape else {})

    return Parameters(*({name: layer(shape) for name, shape in network.items()} for network in shape_of))


def pad(parameters: Parameters, to: Sizes) -> Parameters:
    """Pad with zeros to the lengths `to`. Gradients of these zeros are zero, so training never changes them."""

    def grow(array: Array, axes: tuple[str, ...]) -> Array:
        return jnp.pad(array, [(0, getattr(to, axis) - old) for axis, old in zip(axes, array.shape, strict=True)])

    return jax.tree.map(grow, parameters, axes_of(parameters))


def unpad(parameters: Parameters, real: Sizes) -> Parameters:
    """Remove the padding of `pad` from arrays that may have further leading axes."""

    def cut(array: Array, axes: tuple[str, ...]) -> Array:
        return array[(..., *(slice(getattr(real, axis)) for axis in axes))]

    return jax.tree.map(cut, parameters, axes_of(parameters))


def _linear(layer: Layer, inputs: Array) -> Array:
    # In the precision of the weights, and as a product of matrices: other products copy arrays to transpose them.
    weight = layer["weight"]
    rows = inputs.astype(weight.dtype).reshape(-1, len(weight))
    outputs = (rows @ weight.reshape(len(weight), -1)).reshape(*inputs.shape[:-1], *weight.shape[1:])
    return outputs + layer["bias"] if "bias" in layer else outputs


def _leaky(inputs: Array) -> Array:
    return jax.nn.leaky_relu(inputs, 0.2)


def encode(f: Network, x: Array) -> Array:
    """Encode brains ``(people, regions)``; shared by all passes of f over the same people."""
    return _leaky(_linear(f["encode2"], _leaky(_linear(f["encode1"], x))))


def decode(f: Network, encoding: Array, z: Array) -> Array:
    """Decode ``(people, narrow)`` at severities ``(people, passes, patterns)`` → ``(people, passes, regions)``."""
    severity = f["severity"]
    z = z.astype(severity["weight"].dtype)
    # Written as a sum, a product with so few rows is fused with its neighbours instead of being a separate kernel.
    weighted = sum(z[..., i, None] * severity["weight"][i] for i in range(z.shape[-1]))
    gate = jax.nn.sigmoid(weighted + severity["bias"])
    return _leaky(_linear(f["decode2"], _leaky(_linear(f["decode1"], _gated(encoding, gate)))))


@jax.custom_vjp
def _gated(encoding: Array, gate: Array) -> Array:
    return encoding[:, None] * gate


_gated.defvjp(
    lambda encoding, gate: (_gated(encoding, gate), (encoding, gate)),
    # Sums over a middle axis, unrolled: XLA's own are several times slower on a processor.
    lambda known, g: (sum(g[:, k] * known[1][:, k] for k in range(g.shape[1])), g * known[0][:, None]),
)


def decompose(g1: Network, y: Array) -> Array:
    """g₁: the change of each pattern in brains ``(people, regions)`` → ``(people, patterns, regions)``."""
    return _linear(g1["patterns"], _leaky(y))


def reconstruct(g2: Network, changes: Array) -> Array:
    """g₂: severities predicted from changes ``(..., regions)`` → ``(..., patterns)``; one network for all patterns."""
    return finish_reconstruction(g2, _linear(g2["layer1"], changes))


def finish_reconstruction(g2: Network, hidden: Array) -> Array:
    """Compute g₂ from the linear part of its first layer on."""
    return _linear(g2["output"], _leaky(_linear(g2["layer2"], _leaky(hidden))))


def discriminate(d: Network, y: Array) -> Array:
    """D: two logits per person, synthesised (0) or real (1)."""
    hidden = _leaky(_linear(d["layer2"], _leaky(_linear(d["layer1"], y))))
    return _linear(d["output"], hidden)


def predict_r_indices(parameters: Parameters, y: Array, active: Array | None = None) -> Array:
    """R-indices of people ``(people, regions)`` → ``(people, patterns)``: g₂'s outputs, summed over all changes."""
    read = reconstruct(parameters.reconstructor, decompose(parameters.decomposer, y))
    return only(active, read).sum(axis=1)


def only(active: Array | None, by_pattern: Array) -> Array:
    """Keep the active patterns of ``(people, patterns, ...)``; set those that are padding to zero."""
    return by_pattern if active is None else by_pattern * active[:, None]
