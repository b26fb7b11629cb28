"""One case against one reader, and damage to bytes. A case follows from its seed and its number alone.

A target is a reader under test: its first `n_systematic` cases are systematic, the others drawn. It has two methods:
``make(number, rng)`` returns a `Case`; ``judge(case, path)`` reads the file and returns ``read`` or ``refused``, and
raises anything else.
"""

import contextlib
import faulthandler
import resource
import sys
import time
import traceback
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CPU_SECONDS = 5.0  # for one case
WALL_SECONDS = 60.0  # after which the process is killed; the machine may be busy with something else
SPARE_BYTES = 300 << 20  # of address space that one case may add


class Failure(AssertionError):
    """A reader did something forbidden: it changed a value, ran something, or accepted nonsense."""


# One file for a reader: its name and bytes, and what the target needs to judge the outcome.
Case = namedtuple("Case", "name content expected")


def attempt(target: Any, seed: int, number: int, folder: Path, *, bounded: bool = False) -> tuple[str, str]:
    """Make a case and judge it; return the verdict and, if it failed, the error; the file then stays in `folder`.

    Time and memory are limited only if `bounded`, in a process that does nothing else.
    """
    case = target.make(number, np.random.default_rng([seed, number]))
    path = folder / f"{seed}-{number}-{case.name}"
    path.write_bytes(case.content)
    try:
        with _bounds() if bounded else contextlib.nullcontext():
            verdict = target.judge(case, path)
    except Exception:  # noqa: BLE001 (whatever it is, it is the finding)
        return "failed", f"{path}\n{traceback.format_exc(limit=-6)}"
    path.unlink()
    return verdict, ""


@contextlib.contextmanager
def _bounds() -> Iterator[None]:
    """Limit the further time and address space of the process; Linux reports its present size."""
    pages, begun = int(Path("/proc/self/statm").read_text().split()[0]), time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_BYTES, hard))
    faulthandler.dump_traceback_later(WALL_SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if (seconds := time.process_time() - begun) > CPU_SECONDS:
        raise Failure(f"took {seconds:.1f} s")


def deep_stack() -> int:
    """Return a depth of nesting beyond Python's recursion limit."""
    return 20 * sys.getrecursionlimit()


# Damage to bytes: what disks, transfers, editors and malicious people do to any file.


_TELLING = [b"\x00", b"\xff", b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\\", b" ", b"{", b"[", b"-", b"9", b"e"]


def chance(rng: np.random.Generator, share: float) -> bool:
    """Return True in this share of cases."""
    return bool(rng.random() < share)


def pick(rng: np.random.Generator, options):
    """Return one of the options at random."""
    return options[int(rng.integers(len(options)))]


def damaged(content: bytes, rng: np.random.Generator, low: int = 0, high: int | None = None) -> bytes:
    """Return bytes with damage between `low` and `high`, in one to three ways."""
    for _ in range(int(rng.integers(1, 4))):
        end = min(len(content), len(content) if high is None else high)
        place, size = int(rng.integers(min(low, end), end + 1)), int(2 ** rng.uniform(0, 9))
        size = min(size, max(1, len(content) // 4))
        pieces = content[place : place + size], content[place + size : place + 2 * size], content[place + 2 * size :]
        content = b"".join(pick(rng, _DAMAGES)(content[:place], *pieces, rng))
    return content


def altered(array: np.ndarray, rng: np.random.Generator, kinds: tuple[str, ...]) -> np.ndarray:
    """Return an array of another type among `kinds`, of another shape, or with other numbers."""
    place = np.arange(array.size).reshape(array.shape) == rng.integers(array.size)
    with np.errstate(all="ignore"):
        ways = [
            array.astype(pick(rng, kinds)),
            pick(rng, [array[..., :-1], array[None], array.T, array.ravel(), array[:0]]),
            np.where(place, pick(rng, [np.nan, np.inf, 0.0, -1.0, 1e39, 1e38, 1e-38, 1e300, -1e300]), array),
            array * pick(rng, [0.0, -1.0, np.nan, 1e30, 1e150, 1e300, 1e-300]),
        ]
    return pick(rng, ways)


# Kinds of damage, given a file's bytes before a place, two pieces of the same length, and the rest.
_DAMAGES = (
    lambda before, piece, after, rest, rng: [before],  # cut
    lambda before, piece, after, rest, rng: [piece, after, rest],  # its head cut off
    lambda before, piece, after, rest, rng: [  # a bit flipped
        *(before, bytes(piece[:1] and [piece[0] ^ 1 << rng.integers(8)])),
        *(piece[1:], after, rest),
    ],
    lambda before, piece, after, rest, rng: [before, rng.bytes(len(piece)), piece, after, rest],  # inserted
    lambda before, piece, after, rest, rng: [before, pick(rng, _TELLING), piece, after, rest],
    lambda before, piece, after, rest, rng: [before, rng.bytes(len(piece)), after, rest],  # overwritten
    lambda before, piece, after, rest, rng: [before, bytes(len(piece)), after, rest],
    lambda before, piece, after, rest, rng: [before, after, rest],  # removed
    lambda before, piece, after, rest, rng: [before, piece * int(rng.integers(2, 21)), after, rest],  # repeated
    lambda before, piece, after, rest, rng: [before, after, piece, rest],  # swapped
)
