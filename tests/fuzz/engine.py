"""Cases by the thousand against one reader, and damage to bytes. A case follows from its seed and its number alone.

A target is a reader under test: its first `n_systematic` cases are systematic, the others drawn. It has two methods:
``make(number, rng)`` returns a `Case`; ``judge(case, path)`` reads the file and returns ``read`` or ``refused``, and
raises anything else.
"""

import contextlib
import multiprocessing
import resource
import sys
import time
import traceback
from collections import deque, namedtuple
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

CPU_SECONDS = 5.0  # that one case may take
WALL_SECONDS = 60.0  # after which a worker is ended; the machine may be busy with something else
SPARE_BYTES = 300 << 20  # that one case may add to the worker's address space


class Failure(AssertionError):
    """A reader did what it must not do: it changed a value, ran something, or accepted nonsense."""


# One file for a reader: its name and bytes, what was done to the valid file, in words, and what the target needs to
# judge the outcome.
Case = namedtuple("Case", "name content mutations expected", defaults=[None])
# What came of a case: ``read`` or ``refused``, or ``failed`` with the trouble.
Outcome = namedtuple("Outcome", "number verdict trouble seconds", defaults=["", 0.0])


def attempt(target: Any, seed: int, number: int, folder: Path, *, bounded: bool = False) -> Outcome:
    """Make a case and judge it; the file stays in `folder` if it failed.

    Time and memory count where they are `bounded`: in a process that does nothing else.
    """
    case = target.make(number, np.random.default_rng([seed, number]))
    path = folder / f"{seed}-{number}-{case.name}"
    path.write_bytes(case.content)
    begun, trouble, verdict = time.process_time(), "", "failed"
    try:
        with _spare_memory() if bounded else contextlib.nullcontext():
            verdict = target.judge(case, path)
    except Exception:  # noqa: BLE001 (whatever it is, it is the finding)
        trouble = traceback.format_exc(limit=-6)
    seconds = time.process_time() - begun
    if bounded and seconds > CPU_SECONDS and not trouble:
        trouble = f"took {seconds:.1f} s"
    if trouble:
        return Outcome(number, "failed", f"{', '.join(case.mutations)}\n{trouble}", seconds)
    path.unlink()
    return Outcome(number, verdict, "", seconds)


@contextlib.contextmanager
def _spare_memory() -> Iterator[None]:
    """Let the process take so much more address space and no more; Linux tells how much it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _work(make_target: Callable[[], Any], seed: int, numbers: Sequence[int], keep: Path, pipe: Connection) -> None:
    target = make_target()
    for number in numbers:
        pipe.send(attempt(target, seed, number, keep, bounded=True))


def outcomes(make_target: Callable[[], Any], seed: int, numbers: Sequence[int], keep: Path) -> Iterator[Outcome]:
    """Judge the cases in a process of their own, and in a new one whenever a case has ended or stopped it.

    Files of failed cases are kept in `keep`, each beside a text that tells what happened.
    """
    make_target()  # or a target that cannot be made would look like a case that ends its process
    keep.mkdir(parents=True, exist_ok=True)
    left = deque(numbers)
    while left:
        outcome = Outcome(0, "none yet")
        with _worker(make_target, seed, tuple(left), keep) as pipe:
            while left and not outcome.trouble.startswith("the worker"):
                outcome = _received(pipe, left.popleft())
                if outcome.trouble:
                    text = f"seed {seed}, case {outcome.number}: {outcome.trouble}\n"
                    file = keep / f"{seed}-{outcome.number}.txt"
                    file.write_text(text, encoding="utf-8", errors="backslashreplace")
                yield outcome


@contextlib.contextmanager
def _worker(*work: Any) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(*work, there), daemon=True)
    with there:
        process.start()
    try:
        with here:
            yield here
    finally:
        process.kill()
        process.join()


def _received(pipe: Connection, number: int) -> Outcome:
    try:
        if pipe.poll(WALL_SECONDS):
            return pipe.recv()
    except EOFError:
        return Outcome(number, "failed", "the worker died")
    return Outcome(number, "failed", "the worker took too long", WALL_SECONDS)


def deep_stack() -> int:
    """Return a depth of nesting that is beyond what Python recurses into."""
    return 20 * sys.getrecursionlimit()


# Damage to bytes: what disks, transfers, editors and people with bad intentions do to any file.


_TELLING = [b"\x00", b"\xff", b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\\", b" ", b"{", b"[", b"-", b"9", b"e"]


def chance(rng: np.random.Generator, share: float) -> bool:
    """Say yes in this share of cases."""
    return bool(rng.random() < share)


def pick(rng: np.random.Generator, options):
    """Return one of several."""
    return options[int(rng.integers(len(options)))]


def damaged(content: bytes, rng: np.random.Generator, low: int = 0, high: int | None = None) -> tuple[bytes, str]:
    """Damage bytes between `low` and `high` in one to three ways; return them and the words for it."""
    words = []
    for _ in range(int(rng.integers(1, 4))):
        end = min(len(content), len(content) if high is None else high)
        place, name = int(rng.integers(min(low, end), end + 1)), pick(rng, ["cut", "head cut off", *_DAMAGES])
        size = int(min(2 ** rng.uniform(0, 9), max(1, len(content) // 4)))
        before, piece, after = content[:place], content[place : place + size], content[place + size : place + 2 * size]
        ways = {"cut": [before], "head cut off": [content[place:]]}
        if name in _DAMAGES:
            ways[name] = [before, *_DAMAGES[name](piece, after, rng), content[place + 2 * size :]]
        content = b"".join(ways[name])
        words.append(f"{name} at {place}")
    return content, ", ".join(words)


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


# What becomes of the bytes that a piece of a file has, with the two pieces of the same length behind it.
_DAMAGES = {
    "bit flipped": lambda piece, after, rng: [bytes(piece[:1] and [piece[0] ^ 1 << rng.integers(8)]), piece[1:], after],
    "inserted": lambda piece, after, rng: [rng.bytes(len(piece)), piece, after],
    "sign inserted": lambda piece, after, rng: [pick(rng, _TELLING), piece, after],
    "overwritten": lambda piece, after, rng: [rng.bytes(len(piece)), after],
    "zeros": lambda piece, after, rng: [bytes(len(piece)), after],
    "removed": lambda piece, after, rng: [after],
    "repeated": lambda piece, after, rng: [piece * int(rng.integers(2, 21)), after],
    "swapped": lambda piece, after, rng: [after, piece],
}
