"""The reader of model files: no score changes silently, and nothing but an `InputError` comes of damage."""

import copy
import functools
import hashlib
import json
import operator
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load

from rindices import InputError, load_model
from tests.fuzz.engine import Case, Failure, altered, chance, damaged, deep_stack, pick
from tests.longevity.freeze import PEOPLE, inputs_of, model_of
from tests.test_cli import run

# Entries of the header that scores follow from; a change of any other must leave every score as it is.
DECISIVE = (("preprocessing",), ("parameters", "inference"), ("contract", "features"), ("named",))
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 1e308, 10**40, 10**400, float("nan"), float("inf"), -(2**63)),
    *("", "text", "NaN", "3", "\ud800", "\x00", "é", "北京", "A" * 1000, [], {}, [[]], [None], [1], ["a"], [1, "a"]),
    *({"a": 1}, {"": None}, [["age", None, None]], [["age", ["A"], None]], ["age", 1.0], [[0, "why"]], [["x", "why"]]),
)
DEEP = "@deep@"  # stands for brackets that are too many to be written by `json`
# What safetensors itself may say about an array.
ODD_ARRAYS = {
    "data_offsets": ([0, 2**60], [-8, 0], [2**64, 2**65], [0]),
    "shape": ([2**60], [0, 2**62], [-1], [1.5], [2**32, 2**32]),
    "dtype": ("F16", "BF16", "I64", "F8_E4M3", "C64", "BOOL", "object", "", None),
}
TYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i8": "I64", "u1": "U8", "b1": "BOOL", "c8": "C64"}


class Models:
    """A model that corrects in every way, damaged, and forged under a checksum that fits."""

    def __init__(self) -> None:
        model = model_of("every-correction")
        self.people = pd.read_csv(PEOPLE)
        self.scores = model.transform(*inputs_of(model, self.people))
        with tempfile.TemporaryDirectory() as folder:
            self.content = model.save(Path(folder, "model.safetensors")).read_bytes()
        self.header_end = 8 + int.from_bytes(self.content[:8], "little")
        self.outer = json.loads(self.content[8 : self.header_end])
        self.metadata = self.outer["__metadata__"]
        self.arrays = load(self.content)
        self.n_systematic = self.header_end + 64

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Cut at each byte of the header, flip each bit of its length, then draw."""
        if number < self.header_end:
            return _case(self.content[:number], f"cut at {number}")
        if number < self.n_systematic:
            length = int.from_bytes(self.content[:8], "little") ^ (1 << (number - self.header_end))
            return _case(length.to_bytes(8, "little") + self.content[8:], f"length {length}")
        return pick(rng, [self._damaged, self._outer, self._header, self._header, self._header_text, self._arrays])(rng)

    def _damaged(self, rng: np.random.Generator) -> Case:
        low, high = pick(rng, [(0, 8), (8, self.header_end), (self.header_end, len(self.content))])
        return _case(*damaged(self.content, rng, low, high))

    def _outer(self, rng: np.random.Generator) -> Case:
        """Edit what safetensors itself says about the arrays; the checksum is left as it is."""
        outer = copy.deepcopy(self.outer)
        holder = pick(rng, [outer, outer["__metadata__"], *[outer[pick(rng, list(self.arrays))]] * 4])
        name = pick(rng, list(holder))
        holder[name] = pick(rng, [*ODD_ARRAYS.get(name, ODD_VALUES), outer[pick(rng, list(self.arrays))].get(name)])
        text = json.dumps(outer).encode("utf-8", "surrogatepass")
        length = pick(rng, [2**60, 2**63, 2**64 - 1, 10**8, len(text) + 1]) if chance(rng, 0.1) else len(text)
        content = length.to_bytes(8, "little") + text + self.content[self.header_end :]
        return _case(content, f"safetensors {name}, length {length}")

    def _header(self, rng: np.random.Generator) -> Case:
        """Edit some entries of the header, and make the checksum fit."""
        header, words, decisive = json.loads(self.metadata["header"]), [], False
        for _ in range(1 if chance(rng, 0.8) else int(rng.integers(2, 5))):
            *way, last = path = pick(rng, list(_paths(header)))
            parent = functools.reduce(operator.getitem, way, header)
            parent[last] = copy.deepcopy(pick(rng, [*_variants(parent[last]), *[pick(rng, ODD_VALUES)] * 3, DEEP]))
            if chance(rng, 0.1):
                del parent[last]
            words.append(".".join(map(str, path)))
            decisive |= any(tuple(path[: len(key)]) == key[: len(path)] for key in DECISIVE)
        text = json.dumps(header).replace(f'"{DEEP}"', "[" * deep_stack() + "]" * deep_stack())
        return _case(self._sealed(text), *words, same=not decisive)

    def _header_text(self, rng: np.random.Generator) -> Case:
        """Damage the header's text, and make the checksum fit."""
        text, words = damaged(self.metadata["header"].encode(), rng)
        if chance(rng, 0.1):
            text = pick(rng, [b"[", b'{"a":', b" ", b"-", b"9", b'"']) * int(10 ** rng.uniform(1, 6))
            words = "a long text"
        return _case(self._sealed(text.decode("utf-8", "replace")), "header", words, same=False)

    def _arrays(self, rng: np.random.Generator) -> Case:
        """Replace an array by another one, and make the checksum fit."""
        name = pick(rng, list(self.arrays))
        changed = altered(self.arrays[name], rng, tuple(TYPES))
        other = pick(rng, [name, pick(rng, list(self.arrays)), "extra", "site.kept.extra", "", "scaler"])
        arrays = self.arrays | {other: np.ascontiguousarray(changed)}
        if chance(rng, 0.1):
            del arrays[name]
        return _case(self._sealed(self.metadata["header"], arrays), f"{name} as {other}", same=False)

    def _sealed(self, header: str, arrays: dict[str, np.ndarray] | None = None) -> bytes:
        """Return a model file under a checksum that fits: the header, then each array's name, type, shape and bytes."""
        arrays = self.arrays if arrays is None else arrays
        digest = hashlib.sha256(header.encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        return _written(arrays, self.metadata | {"header": header, "sha256": digest.hexdigest()})

    def judge(self, case: Case, path: Path) -> str:
        """Describe the model, load it and score people with it."""
        described = run("describe", path)
        if described.exit_code not in (0, 2):
            raise Failure("describe failed") from described.exception
        try:
            model = load_model(path)
            if described.exit_code:
                raise Failure("the model was loaded, but cannot be described")
            contract = model.contract_
            if not {*contract.features, *(spec.name for spec in contract.covariates)} <= {*self.people}:
                return "refused"  # it was trained with columns that nobody has
            with np.errstate(all="ignore"):
                scores = model.transform(*inputs_of(model, self.people))
        except InputError:
            return "refused"
        if case.expected and not np.array_equal(scores, self.scores):
            raise Failure("the scores changed")
        if scores.dtype != np.float64 or len(scores) != len(self.scores):
            raise Failure(f"scores of type {scores.dtype} and shape {scores.shape}")
        return "read"


def _written(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """Return a safetensors file; the library would write its parts in any order."""
    entries, data = {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        place = [len(data), len(data) + array.nbytes]
        entries[name] = {"dtype": TYPES[array.dtype.str[1:]], "shape": array.shape, "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


def _case(content: bytes, *words: str, same: bool = True) -> Case:
    return Case("model.safetensors", content, words, same)


def _paths(tree, path: tuple = ()) -> Iterator[tuple]:
    """Return the way to every entry of a tree of dictionaries and lists."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _variants(value) -> list:
    """Return values that are nearly the same."""
    if isinstance(value, list | str):
        return [value[:-1], value + value[-1:], [value]]
    return [-value, 2 * value, value + 1, str(value), [value]] if type(value) in (int, float) else [[value]]
