"""What a small reconstruction error guarantees (appendix A of the paper): the two bounds on the method page."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from rindices.core import inference
from tests.longevity.freeze import model_of

N_PEOPLE = 400


@pytest.fixture(scope="module")
def model():
    """The networks of one repetition of a trained model, whose f and g match."""
    return jax.tree.map(lambda leaf: np.asarray(leaf[:1], float), inference.without_linear(model_of("linear").models_))


def lipschitz_constant(model):
    """Bound how far g can spread two brains apart, from products of the largest singular values of its layers."""

    def largest(matrix):
        return np.linalg.norm(matrix, 2)

    g1, g2 = model.decomposer["patterns"]["weight"][0], model.reconstructor
    readers = [largest(g2[layer]["weight"][0]) for layer in ("layer1", "layer2", "output")]
    return sum(largest(g1[:, k]) for k in range(g1.shape[1])) * np.prod(readers)


def test_brains_at_different_severities_differ_at_least_as_much_as_the_lemma_says(model):
    rng = np.random.default_rng(0)
    controls = rng.normal(1, 0.1, (N_PEOPLE, model.transformation["encode1"]["weight"].shape[1]))
    severities = rng.uniform(size=(2, N_PEOPLE, 3))
    made = [inference.synthesise(model, controls, z, "additive")[0] for z in severities]
    read = [inference.r_indices(model, brains)[0] for brains in made]
    apart = np.linalg.norm(severities[0] - severities[1], axis=1)
    errors = sum(np.linalg.norm(g - z, axis=1) for g, z in zip(read, severities, strict=True))
    bound = (apart - errors) / lipschitz_constant(model)
    assert (np.linalg.norm(made[0] - made[1], axis=1) >= bound).all()
    assert (bound > 0).mean() > 0.4  # so the bound is informative for many of these people


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("shrink", [1.0, 0.8])
def test_what_brains_know_of_severities_is_at_least_what_the_error_of_reading_them_says(noise, shrink):
    """For a uniform severity and a single region that adds noise to it, the mutual information can be integrated."""

    def density(y):
        return norm.cdf(y / noise) - norm.cdf((y - 1) / noise)

    def surprise(y):
        return -density(y) * np.log(density(y)) if density(y) > 0 else 0.0

    entropy, _ = quad(surprise, -6 * noise, 1 + 6 * noise, points=[0, 1], limit=200)
    information = entropy - norm.entropy(scale=noise)
    # g(y) = 1/2 + shrink (y - 1/2): its mean squared error, worked out by hand.
    bound = -0.5 * np.log(2 * np.pi * np.e * ((1 - shrink) ** 2 / 12 + shrink**2 * noise**2))
    assert bound <= information
    if shrink == 1 and noise == 0.02:
        assert bound > 0.9 * information  # for an accurate g, the bound is almost tight
