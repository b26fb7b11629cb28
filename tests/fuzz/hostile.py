"""What could stand in a pickle to run, to grow without end or to mislead; none of it may have any effect."""

import pickletools
import struct
import tempfile
from pathlib import Path

import numpy as np

from tests.fuzz.engine import deep_stack
from tests.fuzz.mutations import altered, chance, pick
from tests.interop.archives import Tensor

CANARY = Path(tempfile.gettempdir(), "rindices-fuzz-canary")  # what hostile pickles would make, could they run
_COMMAND = f"touch {CANARY}".encode()
SHORT = tuple(bytes([code.code.encode("latin1")[0]]) for code in pickletools.opcodes if code.arg is None)


# What may stand for an entry of a checkpoint.
OTHER = (None, True, -1, 10**5000, 2**63, 1e308, float("nan"), "", "text", [], {}, {"a": 1}, [1, 2], (1,), "A" * 2000)


def _text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def hostile_snippets(rng: np.random.Generator) -> dict[str, bytes]:
    """Return instructions that leave one thing on the stack, each of them meant to do harm."""
    module, name = pick(rng, [("os", "system"), ("posix", "system"), ("subprocess", "call"), ("builtins", "eval")])
    called, deep = f"c{module}\n{name}\n".encode(), deep_stack()
    wide = b"".join(
        b"](" + b"h%c" % (200 + level % 50) * 10 + b"eq%c" % (200 + (level + 1) % 50) for level in range(40)
    )
    number = rng.bytes(int(10 ** rng.uniform(1, 5))) + b"\x01"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
    dtype = b"cnumpy\ndtype\n(" + _text(pick(rng, [b"O8", b"V8", b"f8", b"S9", b"f16", b"(2,3)f8"])) + b"K\x00K\x01tR"
    return {
        "GLOBAL and REDUCE": called + _text(_COMMAND) + b"\x85R",
        "STACK_GLOBAL": _text(module.encode()) + _text(name.encode()) + b"\x93" + _text(_COMMAND) + b"\x85R",
        "INST": b"(" + _text(_COMMAND) + f"i{module}\n{name}\n".encode(),
        "OBJ": b"(" + called + _text(_COMMAND) + b"o",
        "NEWOBJ": b"csubprocess\nPopen\n" + _text(_COMMAND) + b"\x85\x81",
        "call of what is known": b"ccollections\nOrderedDict\n" + _text(_COMMAND) + b"\x85R",
        "state of what is known": b"ccollections\nOrderedDict\n)R}" + _text(b"__class__") + _text(b"x") + b"sb",
        "extension": b"\x82\x01",
        "persistent id": pick(rng, [b"Pstorage\n", b"NQ", b")Q", b"(" + _text(b"storage") + b"NNNNtQ", b"K\x01Q"]),
        "deep tuples": b")" + b"\x85" * deep,
        "deep lists": b"]" * deep + b"a" * (deep - 1),
        "deep dictionaries": (b"}" + _text(b"a")) * deep + b"N" + b"s" * deep,
        "growing lists": b"]q\xc8" + wide,
        "growing tuples": b")q\xc8" + b"h\xc8h\xc8\x86q\xc8" * int(rng.integers(1, 3000)),
        "list in itself": b"]q\xc8h\xc8a",
        "dictionary in itself": b"}q\xc8" + _text(b"a") + b"h\xc8s",
        "long number": b"\x8b" + struct.pack("<i", len(number)) + number,
        "long decimal number": b"L" + b"9" * int(10 ** rng.uniform(1, 5)) + b"L\n",
        "long text": _text(b"A" * int(10 ** rng.uniform(3, 6))),
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
        "array in an array": array + b"q\xc8(K\x01K\x02\x85" + dtype + b"h\xc8C\x10" + bytes(16) + b"tb",
        "scalar": b"cnumpy.core.multiarray\nscalar\n" + dtype + b"C\x08" + rng.bytes(8) + b"\x86R",
        "halves of characters": b"X\x03\x00\x00\x00\xed\xa0\x80",
        "marks": b"(" * int(10 ** rng.uniform(1, 5)) + b"N",
        "unicode": b"V\\ud800\\u0000\n",
        "endless memo": b"N" + b"".join(b"r" + struct.pack("<I", 2**32 - 1 - level) for level in range(1000)),
    }


def other_entry(value, rng: np.random.Generator):
    """Return something else for an entry of a checkpoint."""
    if isinstance(value, np.ndarray | Tensor) and chance(rng, 0.8):
        array = value.stored.array if isinstance(value, Tensor) else value
        changed = altered(array, rng, ("f8", "f4", "f2", "i8", "b1"))
        return Tensor(changed) if isinstance(value, Tensor) or chance(rng, 0.2) else changed
    return pick(rng, OTHER)
