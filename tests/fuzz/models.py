"""The readers of model files and of the authors' checkpoints.

No score changes silently, no code runs, and damage raises nothing but an `InputError`.
"""

import contextlib
import copy
import functools
import gc
import io
import json
import operator
import pickletools
import struct
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load, save

from rindices import InputError, SurrealGAN, load_model
from rindices.files import checksum
from rindices.interop.checkpoint_to_model import import_official
from tests.fuzz.engine import Case, Failure, altered, chance, damaged, deep_stack, pick
from tests.interop.archives import Tensor, checkpoint, dump, write_archive
from tests.interop.test_official import hostile_pickles
from tests.longevity.freeze import FROZEN, PEOPLE, inputs_of, model_of
from tests.test_cli import run
from tests.trust.watch import reported_to

# Entries of the header that determine scores; a change of any other must leave every score unchanged.
DECISIVE = (("preprocessing",), ("parameters", "inference"), ("contract", "features"), ("named",))
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 1e308, 10**40, 10**400, float("nan"), float("inf"), -(2**63)),
    *("", "text", "NaN", "3", "\ud800", "\x00", "é", "北京", "A" * 1000, [], {}, [[]], [None], [1], ["a"], [1, "a"]),
    *({"a": 1}, {"": None}, [["age", None, None]], [["age", ["A"], None]], ["age", 1.0], [[0, "why"]], [["x", "why"]]),
)


class Models:
    """A model with every correction, damaged, or forged with a valid checksum."""

    def __init__(self) -> None:
        self.people = pd.read_csv(PEOPLE)
        self.scores = _scores_of(model_of("every-correction"), self.people)
        self.content = (FROZEN / "every-correction" / "model.safetensors").read_bytes()
        self.header_end = 8 + int.from_bytes(self.content[:8], "little")
        self.outer = json.loads(self.content[8 : self.header_end])
        self.arrays = load(self.content)
        self.n_systematic = self.header_end + 64

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Cut at each byte of the header, flip each bit of its length, then draw."""
        if number < self.header_end:
            return Case("model.safetensors", self.content[:number], True)
        if number < self.n_systematic:
            length = int.from_bytes(self.content[:8], "little") ^ (1 << (number - self.header_end))
            return Case("model.safetensors", length.to_bytes(8, "little") + self.content[8:], True)
        if chance(rng, 1 / 6):
            low, high = pick(rng, [(0, 8), (8, self.header_end), (self.header_end, len(self.content))])
            return Case("model.safetensors", damaged(self.content, rng, low, high), True)
        return pick(rng, [self._header, self._header, self._arrays])(rng)

    def _header(self, rng: np.random.Generator) -> Case:
        """Edit some entries of the header, and update the checksum."""
        header, same = json.loads(self.outer["__metadata__"]["header"]), True
        for _ in range(1 if chance(rng, 0.8) else int(rng.integers(2, 5))):
            *way, last = path = pick(rng, list(_paths(header)))
            parent = functools.reduce(operator.getitem, way, header)
            parent[last] = copy.deepcopy(pick(rng, [*_variants(parent[last]), *[pick(rng, ODD_VALUES)] * 3]))
            if chance(rng, 0.1):
                del parent[last]
            same &= not any(tuple(path[: len(key)]) == key[: len(path)] for key in DECISIVE)
        return self._sealed(json.dumps(header), self.arrays, same=same)

    def _arrays(self, rng: np.random.Generator) -> Case:
        """Replace an array with another one, and update the checksum."""
        name = pick(rng, list(self.arrays))
        other = pick(rng, [name, pick(rng, list(self.arrays)), "extra", "site.kept.extra", "", "scaler"])
        changed = altered(self.arrays[name], rng, ("f2", "f4", "f8", "i8", "u1", "b1", "c8"))
        arrays = self.arrays | {other: np.ascontiguousarray(changed)}
        if chance(rng, 0.1):
            del arrays[name]
        return self._sealed(self.outer["__metadata__"]["header"], arrays)

    def _sealed(self, header: str, arrays: dict[str, np.ndarray], *, same: bool = False) -> Case:
        """Return a model file with a valid checksum."""
        texts = {"header": header, "sha256": checksum(header, arrays)}
        return Case("model.safetensors", save(arrays, self.outer["__metadata__"] | texts), same)

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
                return "refused"  # it asks for columns that the people lack
            scores = _scores_of(model, self.people)
        except InputError:
            return "refused"
        if case.expected and not np.array_equal(scores, self.scores):
            raise Failure("the scores changed")
        if scores.dtype != np.float64 or len(scores) != len(self.scores):
            raise Failure(f"scores of type {scores.dtype} and shape {scores.shape}")
        return "read"


def _scores_of(model: SurrealGAN, people: pd.DataFrame) -> np.ndarray:
    with np.errstate(all="ignore"):
        return model.transform(*inputs_of(model, people))


def _paths(tree, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path to every entry of a tree of dictionaries and lists."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _variants(value) -> list:
    """Return values that are nearly the same."""
    if isinstance(value, list | str):
        return [value[:-1], value + value[-1:], [value]]
    return [-value, 2 * value, value + 1, str(value), [value]] if type(value) in (int, float) else [[value]]


# Content of a pickle meant to run, to grow without end or to mislead; none of it may have any effect.


CANARY = Path(tempfile.gettempdir(), "rindices-fuzz-canary")  # the file that hostile pickles would create if they ran
_HOSTILE = hostile_pickles(CANARY)
SHORT = tuple(bytes([code.code.encode("latin1")[0]]) for code in pickletools.opcodes if code.arg is None)


# Replacements for an entry of a checkpoint.
OTHER = (None, True, -1, 10**5000, 2**63, 1e308, float("nan"), "", "text", [], {}, {"a": 1}, [1, 2], (1,), "A" * 2000)


def hostile_snippets(rng: np.random.Generator) -> dict[str, bytes]:
    """Return instructions that leave one thing on the stack, each meant to do harm or to grow without end."""
    deep, number = deep_stack(), rng.bytes(int(10 ** rng.uniform(1, 5))) + b"\x01"
    places = [b"](" + b"h%c" % (200 + level % 50) * 10 + b"eq%c" % (200 + (level + 1) % 50) for level in range(40)]
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
    kind = pick(rng, [b"O8", b"V8", b"f8", b"S9", b"f16", b"(2,3)f8"])
    dtype = b"cnumpy\ndtype\n(X" + struct.pack("<I", len(kind)) + kind + b"K\x00K\x01tR"
    # Those that would run something come from the importer's own tests.
    hostile = {name: data.removesuffix(b".")[2 * (data[:1] == b"\x80") :] for name, (data, _) in _HOSTILE.items()}
    return hostile | {
        "persistent id": pick(rng, [b"Pstorage\n", b"NQ", b")Q", b"(NNNNtQ", b"K\x01Q"]),
        "deep tuples": b")" + b"\x85" * deep,
        "deep lists": b"]" * deep + b"a" * (deep - 1),
        "growing lists": b"]q\xc8" + b"".join(places),
        "growing tuples": b")q\xc8" + b"h\xc8h\xc8\x86q\xc8" * int(rng.integers(1, 3000)),
        "list in itself": b"]q\xc8h\xc8a",
        "long number": b"\x8b" + struct.pack("<i", len(number)) + number,
        "long decimal number": b"L" + b"9" * int(10 ** rng.uniform(1, 5)) + b"L\n",
        "claimed text": pick(
            rng, [b"X\xff\xff\xff\x7f", b"\x8d" + b"\xff" * 7 + b"\x0f", b"\x8e" + b"\xff" * 8, b"\x8b\xff\xff\xff\x7f"]
        ),
        "array": array
        + b"(K\x01"
        + pick(rng, [b"K\x02\x85", b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85", b"J\xff\xff\xff\xff\x85"])
        + dtype
        + b"\x89C\x10"
        + bytes(16)
        + b"tb",
        "unfinished array": array,
        "scalar": b"cnumpy.core.multiarray\nscalar\n" + dtype + b"C\x08" + rng.bytes(8) + b"\x86R",
        "halves of characters": b"X\x03\x00\x00\x00\xed\xa0\x80",
        "marks": b"(" * int(10 ** rng.uniform(1, 5)) + b"N",
        "endless memo": b"N" + b"".join(b"r" + struct.pack("<I", 2**32 - 1 - level) for level in range(1000)),
    }


def other_entry(value, rng: np.random.Generator):
    """Return a replacement for an entry of a checkpoint."""
    if isinstance(value, np.ndarray | Tensor) and chance(rng, 0.8):
        array = value.stored.array if isinstance(value, Tensor) else value
        changed = altered(array, rng, ("f8", "f4", "f2", "i8", "b1"))
        return Tensor(changed) if isinstance(value, Tensor) or chance(rng, 0.2) else changed
    return pick(rng, OTHER)


ENTRY, N_REGIONS, N_PEOPLE = 15000, 12, 20
_CENTRAL, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"
_HARMLESS = frozenset({"object.__getattr__", "sys._getframe"})


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Fail if anything is imported, run or written in the meantime, even if the reader swallows the exception."""
    seen, here = [], threading.get_ident()  # an earlier test may have left other threads

    def note(event: str, arguments: tuple) -> None:
        reading = event == "open" and not set(arguments[1] or "r") & set("wax+")
        if threading.get_ident() == here and event not in _HARMLESS and not reading:
            seen.append(f"{event} {arguments!r:.200}")
            raise Failure(f"a checkpoint led to {seen[-1]}")

    gc.disable()  # otherwise garbage of an earlier test may be collected just now
    try:
        with reported_to(note):
            yield
    finally:
        gc.enable()
    if seen or CANARY.exists():
        raise Failure(f"a checkpoint led to {seen or 'the canary'}")


class Checkpoints:
    """A checkpoint as torch writes it, whose archive is damaged or whose pickle is altered."""

    n_systematic = 0

    def __init__(self) -> None:
        CANARY.unlink(missing_ok=True)
        str(b"a", "raw-unicode-escape")  # Python imports this codec when old pickles first need it
        self.pickle, self.blocks = dump(checkpoint(N_REGIONS, 2, entries=(ENTRY,))[0])
        self.content = self._archive(self.pickle).content
        places = [place for _, _, place in pickletools.genops(self.pickle)] + [len(self.pickle)]
        self.instructions = [self.pickle[begin:end] for begin, end in pairwise(places)]
        rng = np.random.default_rng(0)
        self.names = [f"region{number}" for number in range(N_REGIONS)]
        self.people = pd.DataFrame(rng.uniform(2000, 9000, (N_PEOPLE, N_REGIONS)), columns=self.names)
        self.people = self.people.assign(sex=[0.0, 1.0] * (N_PEOPLE // 2), age=rng.uniform(60, 90, N_PEOPLE))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.pt")
            path.write_bytes(self.content)
            self.scores = _scores_of(import_official(path, self.names, ["sex", "age"]), self.people)

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Draw a change of the archive, of the pickle in it, or of the numbers."""
        ways = (
            *(self._bytes, self._zipped, self._altered, self._altered),
            *(self._hostile, self._hostile, self._contents, self._contents),
        )
        return pick(rng, ways)(rng)

    def _archive(self, data: bytes, *, same: bool = False, **options) -> Case:
        file = io.BytesIO()
        write_archive(file, data, **{"blocks": self.blocks} | options)
        return Case("model.pt", file.getvalue(), same)

    def _bytes(self, rng: np.random.Generator) -> Case:
        """Damage the archive, or the pickle in it."""
        if chance(rng, 0.5):
            return self._archive(damaged(self.pickle, rng))
        return Case("model.pt", damaged(self.content, rng, pick(rng, [0, self.content.index(_CENTRAL)])), True)

    def _zipped(self, rng: np.random.Generator) -> Case:
        """Pack the same content in another way, or with additions."""
        names = ["archive/../x", "/etc/passwd", "archive/\ud7ff", "a" * 60000, "archive/data.pkl "]
        ways = (
            {"compression": pick(rng, [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])},
            {"compression": zipfile.ZIP_DEFLATED, "archive/data/99": bytes(20_000_000)},
            {f"archive/data/x{number}": b"" for number in range(int(10 ** rng.uniform(0, 3)))},
            {pick(rng, names): b"x"},
            {"archive/data/99": self.content},
            {"folder": pick(rng, ["other", "..", "", "a/b", "é"])},
        )
        before = pick(rng, [b"#!/bin/sh\n", _LOCAL + bytes(26), b"\x80\x02."]) if chance(rng, 0.15) else b""
        case = self._archive(self.pickle, same=True, **pick(rng, ways))
        return case._replace(content=before + case.content)

    def _altered(self, rng: np.random.Generator) -> Case:
        """Remove, repeat, exchange and insert whole instructions."""
        made = list(self.instructions)
        for _ in range(int(rng.integers(1, 4))):
            place, other = (int(number) for number in rng.integers(len(made), size=2))
            repeated = [made[place]] * int(10 ** rng.uniform(0.4, 4))
            inserted = [pick(rng, [made[other], *SHORT]), made[place]]
            made[place : place + 1] = pick(rng, [[], repeated, [made[other]], inserted])
        return self._archive(b"".join(made))

    def _hostile(self, rng: np.random.Generator) -> Case:
        """Replace a number or text with something that would run, or grow without end."""
        made, snippets = list(self.instructions), list(hostile_snippets(rng).values())
        place = pick(rng, [place for place, one in enumerate(made) if one[:1] in b"XGKMJ\x8c" and len(one) > 1])
        made[place] = pick(rng, snippets)
        return self._archive(b"".join(made))

    def _contents(self, rng: np.random.Generator) -> Case:
        """Write a checkpoint with one entry replaced."""
        content, _ = checkpoint(N_REGIONS, 2, entries=(ENTRY,))
        holders = [content, content["normalization_variables"], content["correction_variables"], content[ENTRY]]
        holders += [content[ENTRY][name] for name in ("netMapping", "netDecomposer", "netReconstruction")]
        holder = pick(rng, holders)
        key = pick(rng, list(holder))
        holder[key] = other_entry(holder[key], rng)
        data, blocks = dump(content)
        return self._archive(data, blocks=blocks)

    def judge(self, case: Case, path: Path) -> str:
        """Import the checkpoint and score people with it."""
        try:
            with watched():
                model = import_official(path, self.names, ["sex", "age"])
        except InputError:
            return "refused"
        scores = _scores_of(model, self.people)
        if case.expected and not np.array_equal(scores, self.scores):
            raise Failure("the scores changed")
        saved = model.save(path.with_name("again.safetensors"))
        again = load_model(saved)
        saved.unlink()
        if not np.array_equal(_scores_of(again, self.people), scores, equal_nan=True):
            raise Failure("the imported model gives other scores when it was saved")
        return "read"
