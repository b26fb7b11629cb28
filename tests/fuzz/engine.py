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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

CPU_SECONDS = 5.0  # that one case may take
WALL_SECONDS = 60.0  # after which a worker is ended; the machine may be busy with something else
SPARE_BYTES = 300 << 20  # that one case may add to the worker's address space


class Failure(AssertionError):
    """A reader did what it must not do: it changed a value, ran something, or accepted nonsense."""


@dataclass(frozen=True)
class Case:
    """One file for a reader.

    Attributes
    ----------
    name
        File name.
    content
        The bytes of the file.
    mutations
        What was done to the valid file, in words.
    expected
        What the target needs to judge the outcome.
    """

    name: str
    content: bytes
    mutations: tuple[str, ...]
    expected: Any = None


@dataclass(frozen=True)
class Outcome:
    """What came of a case: ``read`` or ``refused``, or ``failed`` with the trouble."""

    number: int
    verdict: str
    trouble: str = ""
    seconds: float = 0.0


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
    trouble = trouble or (f"took {seconds:.1f} s" if bounded and seconds > CPU_SECONDS else "")
    if trouble:
        return Outcome(number, "failed", f"{', '.join(case.mutations)}\n{trouble}", seconds)
    path.unlink()
    return Outcome(number, verdict, seconds=seconds)


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
    left = list(numbers)
    while left:
        with _worker(make_target, seed, left, keep) as pipe:
            for number in tuple(left):
                outcome = _received(pipe, number)
                left.remove(number)
                if outcome.trouble:
                    text = f"seed {seed}, case {number}: {outcome.trouble}\n"
                    (keep / f"{seed}-{number}.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
                yield outcome
                if outcome.trouble.startswith("the worker"):
                    break


@contextlib.contextmanager
def _worker(make_target: Callable[[], Any], seed: int, numbers: list[int], keep: Path) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(make_target, seed, tuple(numbers), keep, there), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()
        here.close()


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
        place, name = int(rng.integers(min(low, end), end + 1)), pick(rng, list(_DAMAGES))
        content = _DAMAGES[name](content, place, rng)
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


def _flip(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    return _replaced(content, place, bytes([content[place] ^ (1 << int(rng.integers(8)))])) if content[place:] else b""


def _replaced(content: bytes, place: int, by: bytes) -> bytes:
    return content[:place] + by + content[place + len(by) :]


def _length(rng: np.random.Generator, content: bytes) -> int:
    return int(min(2 ** rng.uniform(0, 9), max(1, len(content) // 4)))


def _repeat(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    return content[:place] + content[place : place + _length(rng, content)] * int(rng.integers(1, 20)) + content[place:]


def _swap(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    size = _length(rng, content)
    first, second = content[place : place + size], content[place + size : place + 2 * size]
    return content[:place] + second + first + content[place + 2 * size :]


_DAMAGES = {
    "bit flipped": _flip,
    "cut": lambda content, place, rng: content[:place],
    "head cut off": lambda content, place, rng: content[place:],
    "inserted": lambda content, place, rng: content[:place] + rng.bytes(_length(rng, content)) + content[place:],
    "sign inserted": lambda content, place, rng: content[:place] + pick(rng, _TELLING) + content[place:],
    "overwritten": lambda content, place, rng: _replaced(content, place, rng.bytes(_length(rng, content))),
    "zeros": lambda content, place, rng: _replaced(content, place, bytes(_length(rng, content))),
    "removed": lambda content, place, rng: content[:place] + content[place + _length(rng, content) :],
    "repeated": _repeat,
    "swapped": _swap,
}
