import numpy as np
import pandas as pd
import pytest

from rindices import InputError
from rindices.core import networks
from rindices.interop.official import read_checkpoint
from rindices.interop.torch_archive import ArchiveError
from tests.interop.archives import Tensor, checkpoint, data_folder, save


def leaky(values):
    return np.where(values > 0, values, 0.2 * values)


def linear(arrays, place, inputs):
    return inputs @ arrays[f"{place}.weight"].T + arrays.get(f"{place}.bias", 0)


def plain_r_indices(content, arrays, regions, covariates):
    """Compute R-indices as the authors describe them, from torch's arrays as they are."""
    correction, scale = content["correction_variables"], content["normalization_variables"]
    share = (covariates - correction["min_cov"]) / (correction["max_cov"] - correction["min_cov"])
    brains = 1 + (regions - share @ correction["beta"] - scale["cn_mean"]) / (10 * scale["cn_std"])
    changes = linear(arrays["netDecomposer"], "model.1", leaky(brains)).reshape(len(brains), -1, brains.shape[1])
    hidden = leaky(linear(arrays["netReconstruction"], "model.0", changes))
    hidden = leaky(linear(arrays["netReconstruction"], "model.2", hidden))
    return linear(arrays["netReconstruction"], "model.4", hidden).sum(axis=1)


def plain_change(arrays, brains, z):
    """Compute what f adds to brains at severities `z`."""
    f = arrays["netMapping"]
    hidden = leaky(linear(f, "model.2", leaky(linear(f, "model.0", brains))))
    gate = 1 / (1 + np.exp(-linear(f, "model.4.add_noise.0", z)))
    return leaky(linear(f, "model.7", leaky(linear(f, "model.5", hidden * gate))))


@pytest.mark.parametrize("n_patterns", [1, 2, 3])
def test_layers_go_where_they_belong(tmp_path, n_patterns):
    content, arrays = checkpoint(12, n_patterns, seed=n_patterns)
    model = read_checkpoint(save(tmp_path / "model.pt", content))
    rng = np.random.default_rng(0)
    regions, covariates = rng.uniform(2000, 9000, (20, 12)), np.c_[rng.integers(0, 2, 20), rng.uniform(55, 95, 20)]
    table = pd.DataFrame(covariates, columns=["sex", "age"])
    brains = model.preprocessing(("sex", "age")).transform(regions, table)
    one = networks.Parameters(
        *({name: {kind: a[0] for kind, a in layer.items()} for name, layer in net.items()} for net in model.models)
    )
    expected = plain_r_indices(content, arrays, regions, covariates)
    np.testing.assert_allclose(networks.predict_r_indices(one, brains), expected, rtol=1e-4, atol=1e-4)
    z = rng.uniform(size=(20, n_patterns))
    change = networks.decode(one.transformation, networks.encode(one.transformation, brains), z[:, None])[:, 0]
    np.testing.assert_allclose(change, plain_change(arrays, brains, z), rtol=1e-4, atol=1e-4)
    d = arrays["netDiscriminator"]
    logits = linear(d, "model.4", leaky(linear(d, "model.2", leaky(linear(d, "model.0", brains)))))
    np.testing.assert_allclose(networks.discriminate(one.discriminator, brains), logits, rtol=1e-4, atol=1e-4)
    assert {a.dtype for net in model.models for layer in net.values() for a in layer.values()} == {np.dtype("f4")}


def test_says_what_it_is(tmp_path):
    model = read_checkpoint(save(tmp_path / "model.pt", checkpoint(entries=(5000,))[0]))
    assert (model.entry, model.n_updates) == (5000, 50_000)
    assert (model.n_patterns, model.n_regions) == (2, 8)


@pytest.mark.parametrize("outside", [False, True])
def test_correlation_of_severities(tmp_path, outside):
    content, _ = checkpoint(12, 3, phi_outside=outside)
    model = read_checkpoint(save(tmp_path / "model.pt", content))
    # Rows of ones: unit vectors along (1, 0, 0), (1, 1, 0) and (1, 1, 1).
    expected = [[1, 2**-0.5, 3**-0.5], [2**-0.5, 1, 2 / 6**0.5], [3**-0.5, 2 / 6**0.5, 1]]
    np.testing.assert_allclose(model.correlation, expected, rtol=1e-6)


def test_without_phi_and_without_covariates(tmp_path):
    content, _ = checkpoint(phi_outside=True)
    del content["phi"]
    for nothing in (None, {}):
        content["correction_variables"] = nothing
        model = read_checkpoint(save(tmp_path / "model.pt", content))
        assert model.correlation is None
        assert model.preprocessing(()).residualizer is None
        assert model.effects.shape == (0, 8)


def test_entries_are_chosen_by_number(tmp_path):
    content, arrays = checkpoint(entries=(10, 30, 20))
    path = save(tmp_path / "model.pt", content)
    with pytest.raises(InputError, match=r"3 entries: 10, 20, 30.\nChoose one with `entry`"):
        read_checkpoint(path)
    with pytest.raises(InputError, match=r"no entry 15.\nIt has: 10, 20, 30"):
        read_checkpoint(path, 15)
    model = read_checkpoint(path, 20)
    first = model.models.reconstructor["layer1"]["weight"][0]
    np.testing.assert_array_equal(first, arrays["netReconstruction"]["model.0.weight"].T)


def changed(content, *keys, to=None):
    """Return a checkpoint with something in it replaced, or left out."""
    content = dict(content)
    if len(keys) > 1:
        content[keys[0]] = changed(content[keys[0]], *keys[1:], to=to)
    elif to is None:
        del content[keys[0]]
    else:
        content[keys[0]] = to
    return content


SCALE, CORRECTION = "normalization_variables", "correction_variables"


@pytest.mark.parametrize(
    ("keys", "to", "words"),
    [
        ((15000,), None, "no numbered entry"),
        ((15000,), [1], "entry 15000 should be a dictionary"),
        ((15000, "netMapping"), None, "netMapping should be a dictionary"),
        ((15000, "netMapping", "model.5.weight"), None, "array of numbers 'model.5.weight'"),
        ((15000, "netMapping", "model.9.weight"), Tensor(np.zeros(2, np.float32)), "unknown array 'model.9.weight'"),
        ((15000, "netMapping", "model.5.weight"), Tensor(np.zeros((2, 4), np.float32)), r"\(2, 4\), expected 4 × 2"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.zeros(3, np.float32)), "0 patterns"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, np.nan, np.float32)), "not finite"),
        ((15000, "netDecomposer", "model.1.bias"), "text", "found a str"),
        ((15000, "phi"), Tensor(np.zeros(3, np.float32)), "row of zeros"),
        ((15000, "phi"), Tensor(np.ones(4, np.float32)), "expected 3"),
        ((SCALE,), None, "normalization_variables should be a dictionary"),
        ((SCALE, "cn_std"), np.zeros(8), "above 0"),
        ((SCALE, "cn_std"), np.ones(9), "expected 8"),
        ((SCALE, "cn_mean"), np.full(8, np.inf), "not finite"),
        ((CORRECTION, "max_cov"), np.array([0.0, 90.0]), "no range"),
        ((CORRECTION, "beta"), np.ones((3, 8)), r"\(3, 8\), expected 2 × 8"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, 1e300)), "beyond 1e\\+30"),
        ((15000, "phi"), Tensor(np.full(3, 1e200)), "beyond 1e\\+30"),
        ((CORRECTION, "beta"), np.full((2, 8), 1.7e308), "beyond 1e\\+30"),
    ],
)
def test_other_checkpoints_are_refused(tmp_path, keys, to, words):
    path = save(tmp_path / "model.pt", changed(checkpoint()[0], *keys, to=to))
    with pytest.raises(ArchiveError, match=words) as caught:
        read_checkpoint(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [[], 3, None, {}, {"model": 1}])
def test_other_contents_are_refused(tmp_path, content):
    with pytest.raises(ArchiveError, match="not a checkpoint of the authors' package"):
        read_checkpoint(save(tmp_path / "model.pt", content))


def test_published_model():
    model = read_checkpoint(data_folder() / "official_ad_2rindices.pt")
    assert (model.entry, model.n_regions, model.n_patterns) == (15000, 72, 2)
    np.testing.assert_array_equal(model.correlation, np.eye(2))
    np.testing.assert_allclose(model.covariate_maximum, [1, 90.06167], rtol=1e-6)
