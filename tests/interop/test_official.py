"""The authors' checkpoints: reading their archives, converting their networks, and the MUSE regions."""

import pickle
import re
import struct
import sys
import zipfile
from collections import OrderedDict

import jax
import numpy as np
import pandas as pd
import pytest

from rindices import load_model
from rindices.core import networks
from rindices.interop import torch_archive
from rindices.interop.checkpoint_contents import read_checkpoint
from rindices.interop.checkpoint_to_model import import_official
from rindices.interop.muse import MUSE72_NAMES, MUSE_REGIONS, muse72, with_muse72
from rindices.interop.torch_archive import ArchiveError, read_archive
from rindices.run.apply_table import people_for
from rindices.settings import ApplySettings
from tests.core.plain import leaky
from tests.interop.archives import (
    Global,
    Tensor,
    checkpoint,
    data_folder,
    dump,
    peak_memory,
    refused,
    save,
    write_archive,
)
from tests.refusal import refused_with
from tests.schema.contracts import check_people


def linear(arrays, place, inputs):
    return inputs @ arrays[f"{place}.weight"].T + arrays.get(f"{place}.bias", 0)


def plain_r_indices(content, arrays, regions, covariates):
    """Compute R-indices as the authors describe them, directly from torch's arrays."""
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
    model, rng = read_checkpoint(save(tmp_path / "model.pt", content)), np.random.default_rng(0)
    regions, covariates = rng.uniform(2000, 9000, (20, 12)), np.c_[rng.integers(0, 2, 20), rng.uniform(55, 95, 20)]
    brains = model.preprocessing(("sex", "age")).transform(regions, pd.DataFrame(covariates, columns=["sex", "age"]))
    one = jax.tree.map(lambda array: array[0], model.models)
    np.testing.assert_allclose(
        networks.predict_r_indices(one, brains),
        plain_r_indices(content, arrays, regions, covariates),
        rtol=1e-4,
        atol=1e-4,
    )
    z = rng.uniform(size=(20, n_patterns))
    change = networks.decode(one.transformation, networks.encode(one.transformation, brains), z[:, None])[:, 0]
    np.testing.assert_allclose(change, plain_change(arrays, brains, z), rtol=1e-4, atol=1e-4)
    assert (model.models.linear, {array.dtype for array in jax.tree.leaves(model.models)}) == (None, {np.dtype("f4")})


@pytest.mark.parametrize("outside", [False, True])
def test_correlation_of_severities(tmp_path, outside):
    content, _ = checkpoint(12, 3, phi_outside=outside)
    # Rows of ones: unit vectors along (1, 0, 0), (1, 1, 0) and (1, 1, 1).
    expected = [[1, 2**-0.5, 3**-0.5], [2**-0.5, 1, 2 / 6**0.5], [3**-0.5, 2 / 6**0.5, 1]]
    np.testing.assert_allclose(read_checkpoint(save(tmp_path / "model.pt", content)).correlation, expected, rtol=1e-6)
    (content if outside else content[15000]).pop("phi")
    assert read_checkpoint(save(tmp_path / "model.pt", content)).correlation is None


def changed(content, *keys, to=None):
    """Return a checkpoint with one entry replaced or removed."""
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
        ((15000, "netMapping"), None, "netMapping should contain an array"),
        ((15000, "netMapping", "model.5.weight"), None, "array of numbers called 'model.5.weight', but there is none"),
        ((15000, "netMapping", "model.9.weight"), Tensor(np.zeros(2, np.float32)), "unknown array 'model.9.weight'"),
        (
            (15000, "netMapping", "model.5.weight"),
            Tensor(np.zeros((2, 4), np.float32)),
            r"\(2, 4\), but 4 × 2 was expected",
        ),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.zeros(3, np.float32)), "0 patterns"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, np.nan, np.float32)), "not finite"),
        ((15000, "netDecomposer", "model.1.bias"), "text", "that entry has the type str"),
        ((15000, "phi"), Tensor(np.zeros(3, np.float32)), "row of zeros"),
        ((15000, "phi"), Tensor(np.ones(4, np.float32)), "but 3 was expected"),
        ((SCALE,), None, "normalization_variables should contain an array"),
        ((SCALE, "cn_std"), np.zeros(8), "above 0"),
        ((SCALE, "cn_std"), np.ones(9), "but 8 was expected"),
        ((SCALE, "cn_mean"), np.full(8, np.inf), "not finite"),
        ((CORRECTION, "max_cov"), np.array([0.0, 90.0]), "a maximum that is not above the minimum"),
        ((CORRECTION, "beta"), np.ones((3, 8)), r"\(3, 8\), but 2 × 8 was expected"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, 1e300)), "exceed 1e\\+30"),
        ((15000, "phi"), Tensor(np.full(3, 1e200)), "exceed 1e\\+30"),
        ((CORRECTION, "beta"), np.full((2, 8), 1.7e308), "exceed 1e\\+30"),
    ],
)
def test_other_checkpoints_are_refused(tmp_path, keys, to, words):
    path = save(tmp_path / "model.pt", changed(checkpoint()[0], *keys, to=to))
    assert str(path) in refused_with(words, read_checkpoint, path, error=ArchiveError)


@pytest.mark.parametrize("content", [[], 3, None, {}, {"model": 1}])
def test_other_contents_are_refused(tmp_path, content):
    refused_with(
        "not a checkpoint from the authors' package",
        read_checkpoint,
        save(tmp_path / "model.pt", content),
        error=ArchiveError,
    )


# Imported as rindices models

NAMES = [f"region{i}" for i in range(8)]


def with_ranges(content, low, high):
    return content | {"correction_variables": content["correction_variables"] | {"min_cov": low, "max_cov": high}}


@pytest.fixture
def ageing(tmp_path):
    """Return the content, arrays and path of a checkpoint laid out like the published model of ageing."""
    content, arrays = checkpoint(n_regions=72, n_patterns=5)
    content = with_ranges(content, np.array([0.0, 1031941.0]), np.array([1.0, 2022055.38]))
    return content, arrays, save(tmp_path / "ageing.pt", content)


@pytest.fixture
def source(tmp_path):
    content, arrays = checkpoint(entries=(100, 200))
    return save(tmp_path / "official.pt", content), content, arrays


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame(rng.uniform(2000, 9000, (30, 8)), columns=NAMES), pd.DataFrame(
        {"sex": rng.integers(0, 2, 30) * 1.0, "age": rng.uniform(60, 90, 30)}
    )


def test_imported_model_is_an_ordinary_model(source, people, tmp_path):
    (path, content, arrays), (regions, covariates) = source, people
    model = import_official(path, NAMES, ["sex", "age"], entry=200)
    scores = model.transform(regions[NAMES[::-1]], covariates)  # columns are matched by name
    np.testing.assert_allclose(
        scores, plain_r_indices(content, arrays, regions.to_numpy(), covariates.to_numpy()), atol=1e-6
    )
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.transform(regions, covariates), scores)
    assert loaded.contract_ == model.contract_
    made = loaded.decompose(regions, covariates), loaded.synthesize(regions, [0.5, 0.5], covariates)
    assert [one.shape for one in made] == [(30, 2, 8), (30, 8)]
    assert len(loaded.pattern_maps(regions, covariates)) == 16
    assert np.isfinite(loaded.severities(regions, covariates)).all()
    assert np.isnan(loaded.spread(regions, covariates)).all()
    assert np.isnan(loaded.intervals(regions, covariates)).all()
    known = loaded.step_, loaded.seed_, loaded.members_, loaded.preset_.training.composition
    assert known == (2000, None, [0], "additive")


def test_another_unit_and_coding_are_noticed_and_nobody_is_flagged_for_unknown_ranges(source, people):
    contract = import_official(source[0], NAMES, "sex,age", entry=100).contract_
    table = pd.concat(people, axis=1).assign(participant_id=[f"p{i}" for i in range(30)])
    for told, factor, code in (("1000 times smaller", 0.001, 0), ("coded 0, 1 in training", 1, 1)):
        refused_with(told, check_people, table.assign(**factor * table[NAMES], sex=table["sex"] + code), contract)
    table.loc[0, "age"] = 95.0
    assert (
        check_people(table.assign(**1.4 * table[NAMES]), contract).flags.tolist()
        == ["age 95 outside the training range (60 to 90)"] + [""] * 29
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": NAMES[:7]}, "8 regions, but 7 distinct names were given: region0"),
        ({"features": None}, "were given: none"),
        ({"features": "muse72"}, "8 regions, but 72 distinct names"),
        ({"features": [*NAMES[:7], "age"]}, "'age' is used more than once"),
        ({"features": [*NAMES[:7], "participant_id"]}, "'participant_id' is used more than once"),
        ({"covariates": "sex"}, r"2 covariates \(with the ranges 0 to 1, 60 to 90\), but 1 was named(?s:.*)'sex,age'"),
        (
            {"covariates": "sex,icv"},
            "'icv' cannot range from 60 to 90: these values do not look like a head size(?s:.*)'sex,age'",
        ),
        ({"covariates": "age,sex"}, "'age' cannot range from 0 to 1: these values do not look like years"),
        ({"covariates": "site,sex"}, "'sex' cannot range from 60 to 90"),
        ({"entry": None}, "2 entries: 100, 200"),
    ],
)
def test_names_that_do_not_fit_are_refused(source, change, words):
    refused_with(
        words, import_official, source[0], **{"features": NAMES, "covariates": "sex,age", "entry": 100} | change
    )


def test_a_model_whose_severities_change_nothing_is_refused(tmp_path):
    still = changed(checkpoint()[0], 15000, "netMapping", "model.5.weight", to=Tensor(np.zeros((4, 2), np.float32)))
    path = save(tmp_path / "still.pt", still)
    refused_with("the same at all severities", import_official, path, NAMES)


def test_ranges_say_what_a_model_was_corrected_for(tmp_path):
    path, content = tmp_path / "model.pt", checkpoint()[0]

    def covariates(low, high, *named):
        save(path, with_ranges(content, np.array(low), np.array(high)))
        return [spec.name for spec in import_official(path, NAMES, *named).contract_.covariates]

    assert covariates([0.0, 60.0], [1.0, 90.0]) == ["sex", "age"]
    head = ([0.0, 9e5], [1.0, 2e6])
    assert covariates(*head) == ["sex", "MUSE_Volume_702"]
    refused_with(
        "'age' cannot range from 900000 to 2000000: these values do not look like years",
        covariates,
        *head,
        "sex,age",
    )
    for unclear in (([0.0, -2.0], [1.0, 2.0]), ([10.0, 20.0], [50.0, 70.0])):
        refused_with("none were named(?s:.*)order with `covariates`", covariates, *unclear)
        assert covariates(*unclear, "severity,weight") == ["severity", "weight"]


def test_patterns_of_the_published_model_of_ageing_are_numbered_as_published(ageing):
    content, arrays, path = ageing
    source, model, rng = read_checkpoint(path), import_official(path, "muse72"), np.random.default_rng(0)
    regions, order = rng.uniform(2000, 30000, (20, 72)), [0, 4, 1, 2, 3]
    covariates = np.c_[rng.integers(0, 2, 20), rng.uniform(1.1e6, 2e6, 20)]
    people = pd.DataFrame(regions, columns=list(MUSE72_NAMES))
    others = pd.DataFrame(covariates, columns=["sex", "MUSE_Volume_702"])
    np.testing.assert_allclose(
        model.transform(people, others),
        plain_r_indices(content, arrays, regions, covariates)[:, order],
        rtol=1e-4,
        atol=1e-3,
    )
    np.testing.assert_array_equal(model.correlation_, source.correlation[np.ix_(order, order)])
    assert "numbered as in the publication; in the file, r2 is pattern 5, r3 is pattern 2" in model.verdict_[1]


def test_the_intracranial_volume_of_a_muse_table_is_a_covariate(ageing, tmp_path):
    model = import_official(ageing[2], "muse72").save(tmp_path / "ageing.safetensors")
    columns = [f"DL_MUSE_Volume_{n}" for name in MUSE72_NAMES for n in re.findall(r"\d+", name.split(" ")[0])]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(6, 14, (20, len(columns))), columns=columns)  # mL
    table = table.assign(participant_id=range(20), sex=rng.integers(0, 2, 20), DL_MUSE_Volume_702=1450.0)
    table.to_csv(tmp_path / "table.csv", index=False)
    (people, *_) = people_for(model, tmp_path / "table.csv", ApplySettings())
    assert (people.covariates["MUSE_Volume_702"] == 1.45e6).all()


@pytest.mark.parametrize("nothing", [None, {}])
def test_model_without_covariates(tmp_path, people, nothing):
    path = save(tmp_path / "official.pt", checkpoint()[0] | {"correction_variables": nothing})
    model = import_official(path, NAMES)
    assert (model.preprocessing_.residualizer, model.transform(people[0]).shape) == (None, (30, 2))
    assert read_checkpoint(path).effects.shape == (0, 8)
    refused_with("corrected for no covariates", import_official, path, NAMES, "age")


@pytest.fixture(scope="module")
def published():
    return import_official(data_folder() / "official_ad_2rindices.pt", "muse72", "sex,age")


def test_published_model_gives_the_published_r_indices_of_muse_tables(published):
    expected, columns = pd.read_csv(data_folder() / "official_ad_2rindices_expected.csv"), {}
    for position, name in enumerate(MUSE72_NAMES):
        numbers = name.split(" ")[0].removeprefix("MUSE_").split("+")
        for share, number in zip((0.3, 0.7) if len(numbers) == 2 else (1.0,), numbers, strict=True):
            columns[f"DL_MUSE_Volume_{number}"] = share * expected[f"roi{position}"] / 1000  # in mL
    people = check_people(
        with_muse72(pd.DataFrame(columns).assign(**expected[["participant_id", "sex", "age"]])), published.contract_
    )
    assert (people.flags == "").all()
    np.testing.assert_allclose(
        published.transform(people.features, people.covariates), expected[["r1", "r2"]], atol=1e-5
    )


# Torch's archives are read without torch, and nothing in them is run


class Noted(OrderedDict):
    """A dictionary with version metadata, which the reader ignores."""

    def __reduce__(self):
        return Global("collections", "OrderedDict"), (), {"_metadata": OrderedDict()}, None, iter(self.items())


def test_reads_tensors_arrays_and_plain_containers(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {kind: (10 * rng.standard_normal((3, 4))).astype(kind) for kind in ("f4", "f8", "i8", "f2", "b1")}
    plain = {"a": [1, 2.5, None, True, "text"], "b": (1, (2, 3)), 7: {}, "long": 2**70}
    by_columns = np.asfortranarray(rng.standard_normal((2, 5)))
    content = OrderedDict(
        plain=plain,
        tensors={kind: Tensor(array) for kind, array in arrays.items()},
        parameter=Tensor(arrays["f4"], parameter=True),
        by_columns=by_columns,
        again=[by_columns, by_columns],
        number=np.float64(0.1),
        empty=Tensor(np.zeros((0, 3), np.float32)),
        window=Tensor(np.arange(20, dtype=np.float32), offset=3, size=(4, 2), strides=(1, 5)),
        noted=Noted(a=1),
    )
    found = read_archive(save(tmp_path / "model.pt", content))
    assert found["plain"] == plain
    for kind, array in arrays.items():
        np.testing.assert_array_equal(found["tensors"][kind], array, strict=True)
    np.testing.assert_array_equal(found["parameter"], arrays["f4"])
    np.testing.assert_array_equal([found["by_columns"], *found["again"]], [by_columns] * 3)
    np.testing.assert_array_equal(found["window"], [[3, 8], [4, 9], [5, 10], [6, 11]])  # a window onto its storage
    assert (found["number"], found["empty"].shape, found["noted"]) == (0.1, (0, 3), {"a": 1})
    assert "torch" not in sys.modules


@pytest.mark.parametrize(
    "window",
    [
        {"offset": -1},
        {"offset": 10},
        {"offset": 2**80},
        {"offset": True},
        {"size": (3, 5)},
        {"size": (-3, -4)},
        {"size": (3,)},
        {"size": [3, 4]},
        {"size": (3, 4.0)},
        {"size": (2**40, 2**40)},
        {"strides": (4, 2)},
        {"strides": (-4, -1)},
        {"strides": (2**50, 1)},
        {"size": (10**9,), "strides": (0,)},
        {"size": (13, 1), "strides": (0, 1)},
        {"size": (1,) * 40, "strides": (1,) * 40},
    ],
)
def test_windows_that_do_not_fit_are_refused(tmp_path, window):
    refused(save(tmp_path / "model.pt", [Tensor(np.zeros((3, 4), np.float32), **window)]), "not read")


class Wrong:
    """A numpy array of 16 bytes that claims another shape."""

    def __init__(self, *shape):
        self.shape = shape

    def __reduce__(self):
        state = (1, self.shape, np.dtype("<f8"), False, b"\0" * 16)
        return Global("numpy._core.multiarray", "_reconstruct"), (Global("numpy", "ndarray"), (0,), b"b"), state


def test_storage_and_arrays_should_have_all_their_bytes_and_one_description(tmp_path):
    path = tmp_path / "model.pt"
    data, blocks = dump([Tensor(np.zeros(10, np.float32))])
    assert len(blocks["0"]) == 40
    for length in (0, 39, 41, 80):
        refused(write_archive(path, data, {"0": bytes(length)}), "10 numbers of 4 bytes", str(length))
    refused(write_archive(path, data), "data/0 is missing")
    for shape in ((3,), (2, 3), (2**63, 2**63), (-2, -1)):
        refused(save(path, [Wrong(*shape)]), "not read")
    data = dump([Tensor(np.zeros(4, np.float32)), Tensor(np.zeros(2))])[0]
    assert data.count(b"X\x01\x00\x00\x001") == 1
    refused(
        write_archive(path, data.replace(b"X\x01\x00\x00\x001", b"X\x01\x00\x00\x000"), {"0": bytes(16)}), "two ways"
    )


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_other_archives_and_byte_orders_are_refused(tmp_path):
    path, content = tmp_path / "model.pt", [Tensor(np.arange(3, dtype=np.float32))]
    for folder, told in {"archive": "same name", "second": "one folder"}.items():
        refused(save(path, {}, **{f"{folder}/data.pkl": b"\x80\x02}."}), told)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/file.txt", "text")
    refused(path, "exactly one folder with a data.pkl file, but it has 0")
    read_archive(save(path, content, **{"archive/byteorder": b"little"}))
    refused(save(path, content, **{"archive/byteorder": b"big"}), "byte order big")
    refused(save(path, [np.arange(3.0).astype(">f8")]), "state of a")


def test_what_is_too_large_is_refused_unopened(tmp_path, monkeypatch):
    data, _ = dump([Tensor(np.zeros(25_000_000, np.float32))])
    path = write_archive(tmp_path / "bomb.pt", data, {"0": bytes(100_000_000)}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    assert peak_memory(lambda: refused(path, "compressed")) < 5e6
    save(path, [Tensor(np.zeros(100, np.float32))])
    content = bytearray(path.read_bytes())
    place = content.index(b"archive/data/0", content.index(b"PK\x01\x02")) - 46
    content[place + 20 : place + 28] = struct.pack("<II", 2**31, 2**31)
    path.write_bytes(content)
    refused(path, "larger than the file")
    monkeypatch.setattr(torch_archive, "MOST_INSTRUCTIONS", 100)
    refused(write_archive(path, b"\x80\x02" + b"N0" * 60 + b"N."), "more than 100 instructions")
    read_archive(save(path, {"a": "b" * 100}))
    monkeypatch.setattr(torch_archive, "MOST_BYTES", 1)
    refused(path, "at most 1 are accepted")


def test_old_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "model.pt"
    for content in (b"", b"PK", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", b"hello"):
        path.write_bytes(content)
        refused(path, "not a zip archive", "since version 1.6")
    refused(tmp_path / "absent.pt", "There is no checkpoint")
    refused(tmp_path, "There is no checkpoint")


def _texts(*words):
    return b"".join(b"\x8c" + bytes([len(word)]) + word for word in words)


# Python's own unpickler would run each of these; those with a payload would create the file `marker`.
def hostile_pickles(marker):
    touch = f"touch {marker}".encode()
    text = b"X" + struct.pack("<I", len(touch)) + touch
    code = f"open({str(marker)!r}, 'w').close()".encode()
    source = b"X" + struct.pack("<I", len(code)) + code
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    return {
        "GLOBAL": (b"\x80\x02cos\nsystem\n" + text + b"\x85R.", "os.system"),
        "STACK_GLOBAL": (b"\x80\x04" + _texts(b"posix", b"system") + b"\x93" + text + b"\x85R.", "posix"),
        "eval": (b"\x80\x02cbuiltins\neval\n" + source + b"\x85R.", "builtins.eval"),
        "dotted": (b"\x80\x04" + _texts(b"collections", b"OrderedDict.fromkeys") + b"\x93.", "collections"),
        "INST": (b"(" + text + b"ios\nsystem\n.", "INST (os system)"),
        "OBJ": (b"(cos\nsystem\n" + text + b"o.", "os.system"),
        "OBJ of a known name": (b"(ccollections\nOrderedDict\no.", "OBJ"),
        "NEWOBJ": (b"\x80\x02csubprocess\nPopen\n" + text + b"\x85\x81.", "subprocess.Popen"),
        "NEWOBJ of a known name": (b"\x80\x02cnumpy\nndarray\n(K\x01t\x85\x81.", "NEWOBJ"),
        "NEWOBJ_EX": (b"\x80\x04cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX"),
        "EXT": (b"\x80\x02\x82\x01.", "EXT1"),
        "partial": (b"\x80\x02cfunctools\npartial\n.", "functools.partial"),
        "getattr": (b"\x80\x02cbuiltins\ngetattr\n.", "builtins.getattr"),
        "numpy function": (b"\x80\x02cnumpy\nload\n" + text + b"\x85R.", "numpy.load"),
        "numpy test runner": (b"\x80\x02cnumpy.testing._private.utils\nrunstring\n.", "runstring"),
        "torch function": (b"\x80\x02ctorch\nload\n" + text + b"\x85R.", "torch.load"),
        "call of a storage type": (b"\x80\x02ctorch\nFloatStorage\n)R.", "torch.FloatStorage"),
        "call of an array type": (b"\x80\x02cnumpy\nndarray\n)R.", "numpy.ndarray"),
        "call of text": (b"\x80\x02" + text + b")R.", "call a str"),
        "BUILD of a list": (b"\x80\x02]}b.", "state of a list"),
        "BUILD of a name": (b"\x80\x02ccollections\nOrderedDict\n}b.", "state of a Name"),
        "BUILD with a list": (b"\x80\x02ccollections\nOrderedDict\n)R]b.", "state of a dict"),
        "objects": (array + b"(K\x01(K\x01tcnumpy\ndtype\n(X\x02\x00\x00\x00O8\x89\x88tR\x89](" + text + b"etb.", "O8"),
        "structure": (b"cnumpy\ndtype\n(X\x03\x00\x00\x00V16\x89\x88tR.", "V16"),
        "fields": (
            b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8\x89\x88tR(K\x03X\x01\x00\x00\x00<N)}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb.",
            "state of a",
        ),
        "codec": (b"c_codecs\nencode\n(" + text + b"X\x03\x00\x00\x00zip\x74R.", "_codecs.encode"),
        "PERSID": (b"P../../secret\n.", "PERSID"),
        "tuple as key": (b"\x80\x02}K\x01\x85K\x02s.", "key of type tuple"),
        "dictionary of an array": (array + b"K\x01K\x02s.", "puts items"),
        "append to an array": (array + b"K\x01a.", "puts items"),
    }  # fmt: skip


@pytest.mark.parametrize("route", ["GLOBAL", "STACK_GLOBAL", "eval", "INST", "OBJ"])
def test_the_hostile_pickles_are_hostile(tmp_path, route):
    marker = tmp_path / "marker"
    pickle.loads(hostile_pickles(marker)[route][0])
    assert marker.exists()


@pytest.mark.parametrize("route", hostile_pickles("x"))
def test_nothing_in_a_pickle_is_run(tmp_path, route):
    marker = tmp_path / "marker"
    data, word = hostile_pickles(marker)[route]
    refused(write_archive(tmp_path / "model.pt", data), word, "No code in it was run")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("data", "word"),
    {
        "empty": (b"", "damaged"),
        "no end": (b"\x80\x02}", "damaged"),
        "after the end": (b"\x80\x02}.}", "after the end"),
        "stack empty": (b"\x80\x02.", "truncated"),
        "mark left": (b"\x80\x02(}.", "truncated"),
        "below the mark": (b"\x80\x02}(K\x01s.", "damaged"),
        "no such memo": (b"\x80\x02h\x07.", "damaged"),
        "odd pairs": (b"\x80\x02}(K\x01u.", "damaged"),
        "long text": (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.", "damaged"),
        "long bytes": (b"B\xff\xff\xff\x7fabc.", "damaged"),
        "not an instruction": (b"\xff.", "damaged"),
    }.values(),
)
def test_damaged_pickles_are_refused(tmp_path, data, word):
    refused(write_archive(tmp_path / "model.pt", data), word)


def test_no_pickle_takes_much_memory(tmp_path):
    path = tmp_path / "model.pt"
    write_archive(path, b"\x80\x02}r\xff\xff\xff\x7f.")  # a very large memo index
    assert peak_memory(lambda: read_archive(path)) < 10e6
    text = b"X" + struct.pack("<I", 1 << 22) + b"a" * (1 << 22) + b"q\x00"
    write_archive(path, b"(" + text + b"c_codecs\nencode\n(h\x00X\x06\x00\x00\x00latin1tR" * 5_000 + b"t.")
    assert peak_memory(lambda: refused(path, "bytes of text")) < 200e6
    doubled = b"\x80\x02)" + b"".join(b"q\x00h\x00\x86" for _ in range(60))
    for data in (b"]" * 200_000 + b"a" * 199_999 + b".", b")" + b"\x85" * 300_000 + b"."):
        read_archive(write_archive(path, data))  # deeply nested
    for ending in (b"cnumpy\ndtype\nh\x00\x85R.", b"h\x00\x93.", b"Q.", b"}b.", b"0ccollections\nOrderedDict\nh\x00R."):
        refused(write_archive(path, doubled + ending))  # shared references


# MUSE regions


VENTRICLES = {4, 11, 49, 50, 51, 52}


@pytest.fixture(scope="module")
def volumes():
    """Volumes (mm³) of three people by region number; each brain totals 1.1 litres."""
    values = np.random.default_rng(0).uniform(0.5, 1.5, (3, len(MUSE_REGIONS)))
    return pd.DataFrame(1.1e6 * values / values.sum(axis=1, keepdims=True), columns=list(MUSE_REGIONS))


def test_table_of_regions():
    assert {number for number, region in MUSE_REGIONS.items() if "ventricle" in region.what} == VENTRICLES
    sides = pd.DataFrame(MUSE_REGIONS.values()).groupby("what")["side"].agg(lambda column: tuple(sorted(column)))
    assert set(sides) == {("",), ("left", "right")}
    # From 100 on, even numbers are right-sided; the basal forebrain (75, 76) is numbered the other way round.
    assert all(
        (region.side == "right") == (number % 2 == 0) for number, region in MUSE_REGIONS.items() if number >= 100
    )
    assert [MUSE_REGIONS[number].side for number in (75, 76)] == ["left", "right"]


def test_recipe_is_in_the_published_order():
    starts = [name.split(" ")[0].removeprefix("MUSE_") for name in MUSE72_NAMES]
    assert (starts[:9], starts[-1]) == (["35", "71", "72", "73", "95", "23+30", "31+32", "36+37", "38+39"], "206+207")
    assert sorted([int(n) for start in starts for n in start.split("+")]) == sorted(set(MUSE_REGIONS) - VENTRICLES)


def full_name(number):
    region = MUSE_REGIONS[number]
    return region.title.title() if region.side else region.what


def side_last(number):
    side, _, rest = full_name(number).partition(" ")
    return f"{rest} {side}" if side in ("Left", "Right") else full_name(number)


OWN = {
    100: "Right ACgG  anterior cingulate gyrus",
    101: "Left_ACgG",
    81: "frontal lobe WM right",
    82: "frontal lobe WM left",
    93: "posterior limb of internal capsule inc. cerebral peduncle right",
    71: "Cerebellar Vermal Lobules I-V",
    61: "Right Ventral DC",
    35: "Brain Stem",
    59: "Right Thalamus Proper",
    60: "left thalamus",
}


@pytest.mark.parametrize(
    "naming",
    [
        lambda number: OWN.get(number, f"MUSE_Volume_{number}"),  # names used by MUSE itself
        "MUSE_Volume_{}".format,
        "H_MUSE_Volume_{}".format,
        "h_muse_volume_{}".format,
        "DL_MUSE_Volume_{}".format,
        "MUSE.Volume.{}".format,
        "DLMUSE_{}".format,
        "MUSE {}".format,
        str,
        int,
        full_name,
        lambda number: full_name(number).replace(" ", "_").lower(),
        lambda number: full_name(number).replace(" ", ".").upper(),
        lambda number: f"{full_name(number)} volume",
        side_last,
    ],
)
def test_columns_are_found_summed_and_ordered(volumes, naming):
    table = volumes.set_axis([naming(number) for number in volumes.columns], axis=1)
    table = table.sample(frac=1, axis=1, random_state=0).assign(age=[60, 70, 80])
    found = muse72(table)
    assert tuple(found.columns) == MUSE72_NAMES
    pd.testing.assert_frame_equal(found, muse72(volumes))
    some = found[["MUSE_35 brain stem", "MUSE_47+48 hippocampus", "MUSE_75+76 basal forebrain"]].T
    np.testing.assert_allclose(some, [volumes[35], volumes[47] + volumes[48], volumes[75] + volumes[76]])
    np.testing.assert_allclose(found.sum(axis=1), volumes.drop(columns=VENTRICLES).sum(axis=1))


def test_missing_regions_are_listed(volumes):
    for table, message in (
        (
            volumes.drop(columns=[31, 48]).add_prefix("MUSE_Volume_"),
            r"lacks 2 of 139 MUSE regions: 31 \(right amygdala\), 48 \(left hippo[\s\S]*columns found: MUSE_Volume_4",
        ),
        (
            pd.DataFrame({"RES_ICV_Sex_MUSE_Volume_47": [1.0], "hippocampus": [2.0], "age": [60.0]}),
            "No column looks like a MUSE region",
        ),
    ):
        refused_with(message, muse72, table)
    muse72(volumes.drop(columns=VENTRICLES))  # these are not needed


def test_raw_and_harmonised_together_are_refused_and_other_columns_stay(volumes):
    table = volumes.add_prefix("MUSE_Volume_").assign(participant_id=["a", "b", "c"], age=60.0, MUSE_Volume_702=1.2e6)
    found = with_muse72(table)
    assert list(found.columns) == ["participant_id", "age", *MUSE72_NAMES]
    pd.testing.assert_frame_equal(found[list(MUSE72_NAMES)], muse72(volumes))
    pd.testing.assert_frame_equal(with_muse72(found), found)
    both = table.join(volumes.add_prefix("H_MUSE_Volume_"))
    refused_with("is in 2 columns: MUSE_Volume_35, H_MUSE_Volume_35", muse72, both)
    pd.testing.assert_frame_equal(with_muse72(both, exclude="H_MUSE_*"), found)


def test_units_are_told_apart(volumes):
    pd.testing.assert_frame_equal(muse72(volumes / 1000), muse72(volumes))
    differ = "volumes are in {}, but those of 1 person are in a different unit: row {}"
    for factors, told in (
        *(([factor] * 3, "about 1,100,000 mm³ or 1,100 mL") for factor in (10, 1e6, 0.1, -1)),
        ([1, 1, 1000], differ.format("mm³", 4)),
        ([1, 1000, 1000], differ.format("mL", 2)),
    ):
        refused_with(told, muse72, volumes.div(factors, axis=0))


def test_gaps_stay_gaps_and_text_is_refused(volumes):
    table = volumes.astype(object)
    table.loc[1, 47] = "NA"
    gaps = muse72(table).isna().stack()
    assert gaps[gaps].index.tolist() == [(1, "MUSE_47+48 hippocampus")]
    table.loc[1, 47] = "about 3000"
    refused_with("47 should contain volumes, but row 3 contains the text 'about 3000'", muse72, table)


def test_another_segmentation_may_lack_a_fifth_of_the_inputs(volumes):
    named, kept = volumes.add_prefix("MUSE_Volume_"), list(MUSE72_NAMES[19:])
    # One side of each of 15 pairs.
    lacking = [f"MUSE_Volume_{name.partition('+')[2].partition(' ')[0]}" for name in MUSE72_NAMES[5:20]]
    some = named.drop(columns=lacking[:14])
    found = with_muse72(some)
    assert [name for name in found if name in MUSE72_NAMES] == [*MUSE72_NAMES[:5], *kept]
    pd.testing.assert_frame_equal(found[kept], muse72(named)[kept])
    # as in training
    refused_with("lacks 14 of 139 MUSE regions", with_muse72, some, complete=True)
    refused_with(
        r"lacks 15 of 139 .* As a result, 15 of the 72 inputs are missing, more than a fifth",
        with_muse72,
        named.drop(columns=lacking),
    )
