"""Checkpoints as torch would write them, made without torch."""

import io
import os
import pickle
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from rindices.interop.torch_archive import ArchiveError, read_archive
from tests.refusal import refused_with

STORAGES = {"f4": "FloatStorage", "f8": "DoubleStorage", "i8": "LongStorage", "b1": "BoolStorage", "f2": "HalfStorage"}


class Global:
    """Something that a pickle mentions by name only."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):
        raise AssertionError("only a name")


class Stored:
    """A block of numbers beside the pickle."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)


class Tensor:
    """A tensor, written as torch does; `window` overrides offset, size and strides."""

    def __init__(self, array, parameter=False, **window):
        self.stored, self.parameter = Stored(array), parameter
        strides = tuple(step // array.itemsize for step in self.stored.array.strides)
        self.window = {"offset": 0, "size": array.shape, "strides": strides} | window

    def __reduce__(self):
        if self.parameter:
            inner = Tensor.__new__(Tensor)
            vars(inner).update(vars(self), parameter=False)
            return Global("torch._utils", "_rebuild_parameter"), (inner, True, OrderedDict())
        return Global("torch._utils", "_rebuild_tensor_v2"), (self.stored, *self.window.values(), False, OrderedDict())


class Writer(pickle._Pickler):
    """Writes names without importing them, and stored blocks as references."""

    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.blocks, self.names = {}, {}

    def save_name(self, name):
        self.write(f"c{name.module}\n{name.name}\n".encode())

    dispatch = pickle._Pickler.dispatch | {Global: save_name}

    def persistent_id(self, thing):
        if not isinstance(thing, Stored):
            return None
        key = self.blocks.setdefault(id(thing), (str(len(self.blocks)), thing))[0]
        return ("storage", Global("torch", STORAGES[thing.array.dtype.str[1:]]), key, "cuda:0", thing.array.size)


def dump(content):
    """Return the pickle of `content` and the blocks beside it."""
    file = io.BytesIO()
    writer = Writer(file)
    writer.dump(content)
    return file.getvalue(), {key: block.array.tobytes() for key, block in writer.blocks.values()}


def write_archive(path, data, blocks=None, *, folder="archive", compression=zipfile.ZIP_STORED, **extra):
    """Write the zip archive; `extra` maps other entries, whose names are taken as they are, to bytes."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {"data.pkl": data, "version": b"3\n"}.items():
            archive.writestr(f"{folder}/{name}", content)
        for key, block in (blocks or {}).items():
            archive.writestr(f"{folder}/data/{key}", block)
        for name, content in extra.items():
            archive.writestr(name, content)
    return path


def save(path, content, **options):
    """Write `content` as torch.save would."""
    return write_archive(path, *dump(content), **options)


def networks(n_regions, n_patterns, rng):
    """Return random state dictionaries of the four networks in torch's layout, under the authors' names."""
    wide, narrow = n_regions // 2, n_regions // 4
    shapes = {
        "netMapping": {
            "model.0.weight": (wide, n_regions),
            "model.2.weight": (narrow, wide),
            "model.4.add_noise.0.weight": (narrow, n_patterns),
            "model.4.add_noise.0.bias": (narrow,),
            "model.5.weight": (wide, narrow),
            "model.7.weight": (n_regions, wide),
        },
        "netDecomposer": {
            "model.1.weight": (n_patterns * n_regions, n_regions),
            "model.1.bias": (n_patterns * n_regions,),
        },
    }
    for name, outputs in (("netReconstruction", n_patterns), ("netDiscriminator", 2)):
        shapes[name] = {
            f"model.{place}.{kind}": (size, inputs)[: 2 if kind == "weight" else 1]
            for place, inputs, size in ((0, n_regions, wide), (2, wide, narrow), (4, narrow, outputs))
            for kind in ("weight", "bias")
        }
    arrays = {
        name: {key: 0.3 * rng.standard_normal(shape).astype(np.float32) for key, shape in own.items()}
        for name, own in shapes.items()
    }
    return {name: OrderedDict((key, Tensor(own[key])) for key in own) for name, own in arrays.items()}, arrays


def checkpoint(n_regions=8, n_patterns=2, entries=(15000,), seed=0, phi_outside=False):
    """Return the content of a checkpoint, and the arrays of its last entry."""
    rng = np.random.default_rng(seed)
    content = {
        "npattern": n_patterns,
        "nROI": n_regions,
        "lr": 0.0008,
        "normalization_variables": {
            "cn_mean": rng.uniform(2000, 9000, n_regions),
            "cn_std": rng.uniform(200, 400, n_regions),
        },
        "correction_variables": {
            "max_cov": np.array([1.0, 90.0]),
            "min_cov": np.array([0.0, 60.0]),
            "beta": np.asfortranarray(rng.normal(0, 300, (2, n_regions))),
        },
    }
    phi = Tensor(np.tril(np.ones((n_patterns, n_patterns), np.float32))[np.tril_indices(n_patterns)], parameter=True)
    if phi_outside:
        content["phi"] = phi
    for entry in entries:
        state, arrays = networks(n_regions, n_patterns, rng)
        state["optimizer_M"] = {"state": {0: {"step": 10 * entry}}, "param_groups": [{"betas": (0.5, 0.999)}]}
        content[entry] = state if phi_outside else state | {"phi": phi}
    return content, arrays


def data_folder():
    """Return the folder with the authors' published model; skip where there is none."""
    folder = os.environ.get("RINDICES_DATA")
    if not folder:
        pytest.skip("RINDICES_DATA is not set, so the authors' published model is not at hand")
    return Path(folder)


def refused(path, *words):
    """Check that a file is refused, in a message with these words."""
    told = refused_with(".", read_archive, path, error=ArchiveError)
    assert not [word for word in words if word not in told]


def peak_memory(action):
    """Return the peak memory of an action, in bytes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
