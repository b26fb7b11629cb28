"""Cases by the thousand against one reader. A case follows from its seed and its number alone."""

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
from typing import Any, Protocol

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


class Target(Protocol):
    """A reader under test: the first cases are systematic, the others drawn."""

    n_systematic: int

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Return the case of this number."""

    def judge(self, case: Case, path: Path) -> str:
        """Read the file and return ``read`` or ``refused``; anything else is raised."""


def attempt(target: Target, seed: int, number: int, folder: Path, *, bounded: bool = False) -> Outcome:
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


def _work(make_target: Callable[[], Target], seed: int, numbers: Sequence[int], keep: Path, pipe: Connection) -> None:
    target = make_target()
    for number in numbers:
        pipe.send(attempt(target, seed, number, keep, bounded=True))


def outcomes(make_target: Callable[[], Target], seed: int, numbers: Sequence[int], keep: Path) -> Iterator[Outcome]:
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
def _worker(make_target: Callable[[], Target], seed: int, numbers: list[int], keep: Path) -> Iterator[Connection]:
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
