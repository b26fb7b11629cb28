import jax
import numpy as np
import pytest

from rindices.core import networks
from rindices.core.losses import Draw
from tests.core import plain

N_REGIONS, N_PATTERNS, N_PEOPLE = 12, 3, 7
MODEL = plain.random_parameters(N_REGIONS, N_PATTERNS, seed=0)
BRAINS = np.random.default_rng(1).normal(0.3, 1, (N_PEOPLE, N_REGIONS))
DRAWS = Draw(None, None, *np.random.default_rng(2).uniform(size=(3, N_PEOPLE, N_PATTERNS)).astype(np.float32))


@pytest.fixture(scope="module", autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=1e-4, atol=1e-5)


def test_layers_have_the_sizes_and_biases_of_tables_3_and_4():
    hidden = {"layer1": {"weight": (139, 69), "bias": (69,)}, "layer2": {"weight": (69, 34), "bias": (34,)}}
    assert networks.shapes(networks.sizes(139, 3)) == networks.Parameters(
        transformation={
            "encode1": {"weight": (139, 69)},
            "encode2": {"weight": (69, 34)},
            "severity": {"weight": (3, 34), "bias": (34,)},
            "decode1": {"weight": (34, 69)},
            "decode2": {"weight": (69, 139)},
        },
        decomposer={"patterns": {"weight": (139, 3, 139), "bias": (3, 139)}},
        reconstructor=hidden | {"output": {"weight": (34, 3), "bias": (3,)}},
        discriminator=hidden | {"output": {"weight": (34, 2), "bias": (2,)}},
        linear=None,
    )


def test_a_linear_model_stands_beside_the_networks_or_alone():
    lengths = networks.sizes(139, 3)
    linear = {
        "reading": {"weight": (139, 3), "bias": (3,), "share": (3,)},
        "change": {"map": (3, 139), "exponent": (3,), "share": ()},
    }
    assert networks.shapes(lengths, linear=True) == (*networks.shapes(lengths)[:4], linear)
    assert networks.shapes(lengths, networks=False, linear=True) == ({}, {}, {}, {}, linear)


@pytest.mark.parametrize("parts", [{}, {"linear": True}, {"networks": False, "linear": True}])
def test_what_lies_beyond_a_models_own_lengths_is_cut(parts):
    large = plain.stacked([plain.random_parameters(16, 4, seed, **parts) for seed in (0, 1)])
    real = networks.sizes(12, 2)
    found, expected = networks.unpad(large, real), networks.shapes(real, **parts)
    is_shape = {"is_leaf": lambda part: type(part) is tuple}
    assert jax.tree.map(lambda leaf: leaf.shape[1:], found) == expected
    jax.tree.map(
        lambda shape, cut, whole: np.testing.assert_array_equal(cut, whole[(..., *map(slice, shape))]),
        *(expected, found, large),
        **is_shape,
    )
    assert networks.n_patterns(found) == 2


@pytest.mark.parametrize(("n_regions", "wide", "narrow"), [(2, 1, 1), (3, 1, 1), (5, 2, 1), (12, 6, 3), (139, 69, 34)])
def test_hidden_layers_are_never_empty(n_regions, wide, narrow):
    assert networks.sizes(n_regions, 4) == (n_regions, wide, narrow, 4, 2)


@pytest.mark.parametrize("n_regions", [2, 3, 5])
def test_few_regions_are_enough(n_regions):
    model = plain.random_parameters(n_regions, 2, seed=0)
    brains = np.random.default_rng(0).normal(1, 0.1, (4, n_regions))
    close(networks.predict_r_indices(model, brains), plain.r_indices(model, brains))


def test_networks_follow_tables_3_and_4():
    f, severities = MODEL.transformation, (DRAWS.earlier, DRAWS.later)
    out = networks.decode(f, networks.encode(f, BRAINS), np.stack(severities, axis=1))
    close(out, np.stack([plain.f_pass(f, BRAINS, z) for z in severities], axis=1))
    close(networks.decompose(MODEL.decomposer, BRAINS), plain.g1(MODEL.decomposer, BRAINS))
    close(networks.reconstruct(MODEL.reconstructor, BRAINS), plain.three_layers(MODEL.reconstructor, BRAINS))
    close(networks.discriminate(MODEL.discriminator, BRAINS), plain.three_layers(MODEL.discriminator, BRAINS))
    close(networks.predict_r_indices(MODEL, BRAINS), plain.r_indices(MODEL, BRAINS))


def test_padded_sizes_are_multiples():
    real = networks.sizes(139, 3)
    assert (networks.padded(real, 8), networks.padded(real, 1)) == ((144, 72, 40, 3, 2), real)


@pytest.fixture(scope="module")
def padded():
    return networks.pad(MODEL, networks.padded(networks.sizes(N_REGIONS, N_PATTERNS), 8))


def test_unpadding_takes_away_what_padding_added_and_keeps_leading_axes(padded):
    real = networks.sizes(N_REGIONS, N_PATTERNS)
    jax.tree.map(close, networks.unpad(padded, real), MODEL)
    two = jax.tree.map(lambda leaf: np.stack([leaf, 2 * leaf]), padded)
    jax.tree.map(lambda cut, leaf: close(cut[1], 2 * leaf), networks.unpad(two, real), MODEL)


def test_padding_changes_no_output(padded):
    wider = np.pad(BRAINS, [(0, 0), (0, 4)])
    close(networks.predict_r_indices(padded, wider), plain.r_indices(MODEL, BRAINS))
    close(networks.discriminate(padded.discriminator, wider), plain.three_layers(MODEL.discriminator, BRAINS))
    f = padded.transformation
    out = networks.decode(f, networks.encode(f, wider), DRAWS.earlier[:, None])[:, 0]
    close(out[:, :N_REGIONS], plain.f_pass(MODEL.transformation, BRAINS, DRAWS.earlier))
    np.testing.assert_array_equal(out[:, N_REGIONS:], 0)
