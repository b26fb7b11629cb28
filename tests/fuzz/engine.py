"""Cases by the thousand against one reader. A case follows from its seed and its number alone."""

import contextlib
import multiprocessing
import resource
import shutil
import sys
import tempfile
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
    mutations: tuple[str, ...] = ()
    trouble: str = ""
    seconds: float = 0.0
    file: str = ""


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
    path = folder / f"{number}-{case.name}"  # the next case must not write over it before it is kept
    path.write_bytes(case.content)
    begun, trouble, verdict = time.process_time(), "", "failed"
    try:
        with _spare_memory() if bounded else contextlib.nullcontext():
            verdict = target.judge(case, path)
    except Exception:  # noqa: BLE001 (whatever it is, it is the finding)
        trouble = traceback.format_exc(limit=-6)
    seconds = time.process_time() - begun
    if bounded and not trouble and seconds > CPU_SECONDS:
        trouble = f"took {seconds:.1f} s"
    if trouble:
        return Outcome(number, "failed", case.mutations, trouble, seconds, path.name)
    path.unlink()
    return Outcome(number, verdict, case.mutations, seconds=seconds)


@contextlib.contextmanager
def _spare_memory() -> Iterator[None]:
    """Let the process take so much more address space and no more, where the system can tell how much it has."""
    usage = Path("/proc/self/statm")
    if not usage.exists():
        yield
        return
    pages = int(usage.read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _work(make_target: Callable[[], Target], seed: int, numbers: Sequence[int], folder: str, pipe: Connection) -> None:
    try:
        target = make_target()
    except Exception:  # noqa: BLE001 (told to the parent, who ends)
        pipe.send(traceback.format_exc())
        return
    pipe.send("")
    for number in numbers:
        pipe.send(attempt(target, seed, number, Path(folder), bounded=True))


def outcomes(make_target: Callable[[], Target], seed: int, numbers: Sequence[int], keep: Path) -> Iterator[Outcome]:
    """Judge the cases in a process of their own, and in a new one whenever a case has ended or stopped it.

    Files of failed cases are kept in `keep`, each beside a text that tells what happened.
    """
    left = list(numbers)
    while left:
        with tempfile.TemporaryDirectory() as folder, _worker(make_target, seed, left, folder) as pipe:
            while left:
                outcome = _receive(pipe, left[0], Path(folder))
                left.pop(0)
                if outcome.verdict == "failed":
                    _keep(outcome, seed, Path(folder), keep)
                yield outcome
                if outcome.trouble.startswith("the worker"):
                    break


@contextlib.contextmanager
def _worker(make_target: Callable[[], Target], seed: int, numbers: list[int], folder: str) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(make_target, seed, tuple(numbers), folder, there), daemon=True)
    process.start()
    there.close()
    try:
        if trouble := here.recv():
            raise RuntimeError(f"The valid files could not be made:\n{trouble}")
        yield here
    finally:
        process.kill()
        process.join()
        here.close()


def _receive(pipe: Connection, number: int, folder: Path) -> Outcome:
    trouble = f"the worker was ended after {WALL_SECONDS:.0f} s"
    if pipe.poll(WALL_SECONDS):
        try:
            return pipe.recv()
        except EOFError:
            trouble = "the worker died"
    file = next((path.name for path in folder.glob(f"{number}-*")), "")
    return Outcome(number, "failed", (), trouble, WALL_SECONDS, file)


def _keep(outcome: Outcome, seed: int, folder: Path, keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    if outcome.file:
        shutil.move(folder / outcome.file, keep / f"{seed}-{outcome.file}")
    text = f"seed {seed}, case {outcome.number}: {', '.join(outcome.mutations)}\n{outcome.trouble}\n"
    (keep / f"{seed}-{outcome.number}.txt").write_text(text, encoding="utf-8", errors="backslashreplace")


def deep_stack() -> int:
    """Return a depth of nesting that is beyond what Python recurses into."""
    return 20 * sys.getrecursionlimit()
