"""The paper's networks, losses and optimiser in plain double-precision NumPy, one obvious line each."""

from functools import partial

import jax
import numpy as np
from scipy.special import expit, log_softmax
from scipy.stats import multivariate_normal, norm

from rindices.core import networks


def random_parameters(n_regions, n_patterns, seed, sd=0.4, **parts):
    """Draw nonzero weights and biases for the networks, or for other `parts` if requested."""
    rng = np.random.default_rng(seed)
    template = networks.shapes(networks.sizes(n_regions, n_patterns), **parts)
    draw = partial(rng.normal, 0, sd)
    return networks.Parameters(*(None if network is None else _fill(network, draw) for network in template))


def _fill(tree, draw):
    return {name: _fill(part, draw) if isinstance(part, dict) else draw(part) for name, part in tree.items()}


def stacked(models):
    """Stack models along a new first axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *models)


def leaky(a):
    return np.where(a > 0, a, 0.2 * a)


def linear(layer, a):
    return a @ layer["weight"] + layer.get("bias", 0.0)


def f_pass(f, x, z):
    """Return the output of Table 3's network for brains (people, regions) and severities (people, patterns)."""
    encoding = leaky(linear(f["encode2"], leaky(linear(f["encode1"], x))))
    gated = encoding * expit(linear(f["severity"], z))
    return leaky(linear(f["decode2"], leaky(linear(f["decode1"], gated))))


def alone(z, i):
    """Return a^i: severity of pattern i, zeros elsewhere."""
    only = np.zeros_like(z)
    only[:, i] = z[:, i]
    return only


def change_of(f, x, z, i, composition):
    """Return q_i."""
    out = f_pass(f, x, alone(z, i))
    return out - x if composition == "joint" else out


def transformed(f, x, z, composition):
    """Return y' = f(x, z)."""
    if composition == "additive":
        return x + sum(f_pass(f, x, alone(z, i)) for i in range(z.shape[1]))
    return f_pass(f, x, z) + (x if composition == "one_pass" else 0)


def g1(network, y):
    layer = network["patterns"]
    n_patterns = layer["weight"].shape[1]
    return np.stack([leaky(y) @ layer["weight"][:, i] + layer["bias"][i] for i in range(n_patterns)], axis=1)


def three_layers(network, a):
    """Compute g₂ or the logits of D (Table 4)."""
    hidden = leaky(linear(network["layer2"], leaky(linear(network["layer1"], a))))
    return linear(network["output"], hidden)


def r_indices(parameters, y):
    changes = g1(parameters.decomposer, y)
    return sum(three_layers(parameters.reconstructor, changes[:, i]) for i in range(changes.shape[1]))


def overlap(columns):
    """Return the mean square of AᵀA − I for columns |q_i| / ‖q_i‖ given as the rows of an array."""
    a = np.abs(columns).T / np.linalg.norm(columns, axis=1)
    return np.mean((a.T @ a - np.eye(a.shape[1])) ** 2)


def cross_entropy(logits, label):
    return -log_softmax(logits, axis=1)[:, label].mean()


def generator_losses(parameters, x, draws, d, whiten, training):
    """Return all terms of the objective of f, g₁ and g₂ against the discriminator `d`."""
    f, composition = parameters.transformation, training.composition
    z, later, near = (np.asarray(a, float) for a in (draws.earlier, draws.later, draws.near_control))
    n_patterns, y = z.shape[1], transformed(f, x, z, composition)
    q = np.stack([change_of(f, x, z, i, composition) for i in range(n_patterns)], axis=1)
    q_later = np.stack([change_of(f, x, later, i, composition) for i in range(n_patterns)], axis=1)
    if composition == "additive":
        small, large, near_change = q, q_later, f_pass(f, x, near)
        patterns = np.concatenate([q, q_later])
    else:
        small, large, near_change = (transformed(f, x, severity, composition) - x for severity in (z, later, near))
        patterns = q
    people = [patterns.mean(axis=0)] if training.orthogonality == "batch" else q
    decomposed = g1(parameters.decomposer, y)
    told = np.stack([three_layers(parameters.reconstructor, decomposed[:, i]) for i in range(n_patterns)], axis=1)
    wanted = np.stack([alone(z, i) for i in range(n_patterns)], axis=1)
    return {
        "adversarial": cross_entropy(three_layers(d, whiten(y)), 1),
        "change": np.abs(y - x).mean(),
        "decomposition": ((decomposed - q) ** 2).mean(),
        "reconstruction": ((told - wanted) ** 2).mean(),
        "orthogonality": np.mean([overlap(person) for person in people]),
        "monotonicity": (np.clip(np.abs(small) - np.abs(large), 0, None) ** 2).mean(),
        "near_control": np.abs(near_change).mean(),
        "prior": 0.0,  # no linear prior
    }


def factor_of(raw):
    """Return the Cholesky factor of a correlation matrix (unit rows) from unconstrained parameters."""
    rows = np.tril(raw, -1) + np.diag(np.exp(np.diag(raw)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def normal_scores(z):
    return norm.ppf(np.clip(np.asarray(z, float), 1e-4, 1 - 1e-4))


def copula_density(z, factor):
    scores = normal_scores(z)
    return multivariate_normal(cov=factor @ factor.T).pdf(scores) / norm.pdf(scores).prod(axis=1)


def divergence(factor):
    correlation = factor @ factor.T
    return (np.trace(np.linalg.inv(correlation)) - len(factor) + np.linalg.slogdet(correlation)[1]) / 2


def numerical_gradient(function, network, step=1e-6):
    """Differentiate `function()` by central differences with respect to every number in `network`, in place."""
    gradient = jax.tree.map(np.zeros_like, network)
    for name, layer in network.items():
        for kind, array in layer.items():
            for place in np.ndindex(array.shape):
                before = array[place]
                array[place] = before + step
                above = function()
                array[place] = before - step
                gradient[name][kind][place] = (above - function()) / (2 * step)
                array[place] = before
    return gradient


def length(gradient):
    return np.sqrt(sum((array**2).sum() for layer in gradient.values() for array in layer.values()))


def adam(weights, gradient, first, second, n_before, rate, decay=0.0):
    """Return weights after one Adam step with L2 decay inside the gradient, β = (0.5, 0.999)."""
    gradient = gradient + decay * weights
    first, second = 0.5 * first + 0.5 * gradient, 0.999 * second + 0.001 * gradient**2
    first, second = first / (1 - 0.5 ** (n_before + 1)), second / (1 - 0.999 ** (n_before + 1))
    return weights - rate * first / (np.sqrt(second) + 1e-8)
