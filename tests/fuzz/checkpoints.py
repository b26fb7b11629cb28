"""The importer of the authors' checkpoints: no code runs, and nothing but an `InputError` or the same scores comes."""

import contextlib
import gc
import io
import pickletools
import struct
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from rindices import InputError, SurrealGAN, load_model
from rindices.interop.official import import_official
from tests.fuzz.engine import Case, Failure
from tests.fuzz.hostile import CANARY, SHORT, hostile_snippets, other_entry
from tests.fuzz.mutations import chance, damaged, pick
from tests.interop.archives import checkpoint, dump, write_archive

ENTRY, N_REGIONS, N_PEOPLE = 15000, 12, 20
_CENTRAL, _LOCAL, _END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
# Where the fields of the zip structures are, and their formats.
_FIELDS = {
    _CENTRAL: ((8, "H"), (10, "H"), (16, "I"), (20, "I"), (24, "I"), (28, "H"), (30, "H"), (32, "H"), (42, "I")),
    _LOCAL: ((4, "H"), (6, "H"), (8, "H"), (14, "I"), (18, "I"), (22, "I"), (26, "H"), (28, "H")),
    _END: ((4, "H"), (6, "H"), (8, "H"), (10, "H"), (12, "I"), (16, "I"), (20, "H")),
}


# Python calls this before it imports, opens, runs or connects; a reader of data has no reason to.


_seen: list[str] | None = None  # None: nobody watches
_watched = 0  # the thread that is watched; others may have been left by an earlier test
_HARMLESS = frozenset({"object.__getattr__", "sys._getframe"})


def _watch(event: str, arguments: tuple) -> None:
    if _seen is None or event in _HARMLESS or threading.get_ident() != _watched:
        return
    if event == "open" and not set(arguments[1] or "r") & set("wax+"):
        return
    _seen.append(f"{event} {arguments!r:.200}")
    raise Failure(f"a checkpoint led to {_seen[-1]}")


sys.addaudithook(_watch)  # such hooks stay for good


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Fail if anything is imported, run or written in the meantime, also where the reader swallowed the exception."""
    global _seen, _watched
    gc.disable()  # what an earlier test left would be cleared away just now
    _seen, _watched = [], threading.get_ident()
    try:
        yield
        seen = _seen
    finally:
        _seen = None
        gc.enable()
    if seen or CANARY.exists():
        raise Failure(f"a checkpoint led to {seen or 'the canary'}")


class Checkpoints:
    """A checkpoint as torch writes it, whose archive is damaged or whose pickle is altered."""

    n_systematic = 0

    def __init__(self) -> None:
        CANARY.unlink(missing_ok=True)
        str(b"a", "raw-unicode-escape")  # Python imports this codec when old pickles first need it
        self.pickle, self.blocks = dump(_valid())
        self.content = _archive(self.pickle, self.blocks)
        self.pieces = _instructions(self.pickle)
        rng = np.random.default_rng(0)
        self.names = [f"region{number}" for number in range(N_REGIONS)]
        self.regions = pd.DataFrame(rng.uniform(2000, 9000, (N_PEOPLE, N_REGIONS)), columns=self.names)
        self.covariates = pd.DataFrame({"sex": [0.0, 1.0] * (N_PEOPLE // 2), "age": rng.uniform(60, 90, N_PEOPLE)})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.pt")
            path.write_bytes(self.content)
            self.scores = self._score(import_official(path, self.names, ["sex", "age"]))

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Draw what happens to the archive, to the pickle in it, or to the numbers."""
        kinds = [self._damaged, self._structures, self._zipped, self._pickle_bytes, self._altered, self._altered]
        kinds += [self._hostile, self._hostile, self._stored, self._contents, self._contents, self._neutral]
        return pick(rng, kinds)(rng)

    def _damaged(self, rng: np.random.Generator) -> Case:
        if chance(rng, 0.5):
            content, place = bytearray(self.content), int(rng.integers(len(self.content)))
            content[place] ^= 1 << int(rng.integers(8))
            return _case(bytes(content), f"bit flipped at {place}")
        low = pick(rng, [0, self.content.index(_CENTRAL)])
        return _case(*damaged(self.content, rng, low))

    def _structures(self, rng: np.random.Generator) -> Case:
        """Overwrite fields of the zip structures."""
        content, words = bytearray(self.content), []
        for _ in range(int(rng.integers(1, 3))):
            sign = pick(rng, list(_FIELDS))
            places = [place for place in range(len(content)) if content.startswith(sign, place)]
            field, kind = pick(rng, _FIELDS[sign])
            most = 2 ** (8 * struct.calcsize(kind)) - 1
            value = pick(rng, [0, 1, 8, 12, 255, most, most - 1, most // 2, int(rng.integers(most))])
            struct.pack_into(f"<{kind}", content, pick(rng, places) + field, value)
            words.append(f"{sign[2:].hex()} field {field} = {value}")
        return _case(bytes(content), *words)

    def _zipped(self, rng: np.random.Generator) -> Case:
        """Pack the same, or more than the same, in another way."""
        what = pick(rng, ["deflated", "bomb", "many", "names", "prefix", "comment", "nested", "folder"])
        extra, options = {}, {}
        if what == "many":
            extra = {f"archive/data/x{number}": b"" for number in range(int(10 ** rng.uniform(0, 3)))}
        elif what == "names":
            extra = {
                pick(rng, ["archive/../x", "/etc/passwd", "archive/\ud7ff", "a" * 60000, "archive/data.pkl "]): b"x"
            }
        elif what in ("bomb", "nested"):
            extra = {"archive/data/99": bytes(20_000_000) if what == "bomb" else self.content}
            options = {"compression": zipfile.ZIP_DEFLATED} if what == "bomb" else {}
        elif what == "deflated":
            options = {"compression": pick(rng, [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])}
        elif what == "folder":
            options = {"folder": pick(rng, ["other", "..", "", "a/b", "é"])}
        content = _archive(self.pickle, self.blocks, **options, **extra)
        if what == "prefix":
            content = pick(rng, [b"#!/bin/sh\n", _LOCAL + bytes(26), b"\x80\x02."]) + content
        elif what == "comment":
            content = content[:-2] + struct.pack("<H", 100) + bytes(100)
        return _case(content, what)

    def _pickle_bytes(self, rng: np.random.Generator) -> Case:
        data, words = damaged(self.pickle, rng)
        return _case(_archive(data, self.blocks), "pickle", words, same=False)

    def _altered(self, rng: np.random.Generator) -> Case:
        """Remove, repeat, exchange and insert whole instructions."""
        pieces, words = list(self.pieces), []
        for _ in range(int(rng.integers(1, 4))):
            place, other = (int(number) for number in rng.integers(len(pieces), size=2))
            what = pick(rng, ["removed", "repeated", "exchanged", "inserted", "many times"])
            words.append(f"instruction {place} {what}")
            if what == "removed":
                del pieces[place]
            elif what == "repeated":
                pieces.insert(place, pieces[place])
            elif what == "exchanged":
                pieces[place], pieces[other] = pieces[other], pieces[place]
            elif what == "inserted":
                pieces.insert(place, pick(rng, [pieces[other], *SHORT]))
            else:
                pieces[place:place] = [pieces[place]] * int(10 ** rng.uniform(1, 4))
        return _case(_archive(b"".join(pieces), self.blocks), *words, same=False)

    def _hostile(self, rng: np.random.Generator) -> Case:
        """Put something that would run, or grow without end, in the place of a number or text."""
        places = [place for place, piece in enumerate(self.pieces) if piece[:1] in b"XGKMJ\x8c" and len(piece) > 1]
        place, pieces, snippets = pick(rng, places), list(self.pieces), hostile_snippets(rng)
        name = pick(rng, list(snippets))
        pieces[place] = snippets[name]
        return _case(_archive(b"".join(pieces), self.blocks), f"{name} at instruction {place}", same=False)

    def _stored(self, rng: np.random.Generator) -> Case:
        """Store more, fewer or other numbers than the pickle tells."""
        blocks = dict(self.blocks)
        key = pick(rng, list(blocks))
        numbers = np.frombuffer(blocks[key], "<f4").copy()
        numbers[int(rng.integers(len(numbers)))] = pick(rng, [np.nan, np.inf, 3e38, -3e38, 1e-40, 0.0])
        changes = {
            "shorter": blocks[key][: int(rng.integers(len(blocks[key])))],
            "longer": blocks[key] + bytes(int(rng.integers(1, 100))),
            "another's": blocks[pick(rng, list(blocks))],
            "one number": numbers.tobytes(),
            "missing": None,
        }
        what = pick(rng, list(changes))
        blocks[key] = changes[what]
        blocks = {name: block for name, block in blocks.items() if block is not None}
        return _case(_archive(self.pickle, blocks), f"block {key}: {what}", same=False)

    def _contents(self, rng: np.random.Generator) -> Case:
        """Write a sound checkpoint of other contents."""
        content = _valid()
        holders = [content, content["normalization_variables"], content["correction_variables"], content[ENTRY]]
        holders += [content[ENTRY][name] for name in ("netMapping", "netDecomposer", "netReconstruction")]
        holder = pick(rng, holders)
        key = pick(rng, list(holder))
        holder[key] = other_entry(holder[key], rng)
        return _case(_archive(*dump(content)), f"another {key}", same=False)

    def _neutral(self, rng: np.random.Generator) -> Case:
        """Insert instructions that change nothing."""
        pieces = list(self.pieces)
        for _ in range(int(rng.integers(1, 50))):
            pieces.insert(int(rng.integers(len(pieces))), pick(rng, [b"N0", b"(1", b"\x80\x02", b")0"]))
        return Case("model.pt", _archive(b"".join(pieces), self.blocks), ("neutral instructions",), "read")

    def judge(self, case: Case, path: Path) -> str:
        """Import the checkpoint and score people with it."""
        try:
            with watched():
                model = import_official(path, self.names, ["sex", "age"])
        except InputError:
            if case.expected == "read":
                raise
            return "refused"
        scores = self._score(model)
        if case.expected and not np.array_equal(scores, self.scores):
            raise Failure("the scores changed")
        if not case.expected:
            again = load_model(model.save(path.with_suffix(".safetensors")))
            path.with_suffix(".safetensors").unlink()
            if not np.array_equal(self._score(again), scores, equal_nan=True):
                raise Failure("the imported model gives other scores when it was saved")
        return "read"

    def _score(self, model: SurrealGAN) -> np.ndarray:
        with np.errstate(all="ignore"):
            return model.transform(self.regions, self.covariates)


def _case(content: bytes, *words: str, same: bool = True) -> Case:
    return Case("model.pt", content, words, same)


def _valid() -> dict:
    return checkpoint(N_REGIONS, 2, entries=(ENTRY,))[0]


def _archive(data: bytes, blocks: dict[str, bytes], **options) -> bytes:
    file = io.BytesIO()
    with mock.patch.object(time, "localtime", return_value=time.gmtime(2**30)):  # which is written into archives
        write_archive(file, data, blocks, **options)
    return file.getvalue()


def _instructions(data: bytes) -> list[bytes]:
    places = [place for _, _, place in pickletools.genops(data)] + [len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]
