"""Change one token of the source at random, run the tests of its folder, and list the changes that no test caught.

    python tools/mutate.py                       # 150 changes in core, judging, scoring and preprocessing
    python tools/mutate.py --number 20 --seed 1

Each change is made in a copy of the source. Quick tests run on every change, those of the changed module first; slow
tests run only on changes that the quick tests miss. A survivor is either equivalent to the original, or a test is
missing.
"""

from __future__ import annotations

import argparse
import importlib
import io
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import tokenize
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("core", "judging", "scoring", "preprocessing")
_PAIRS = "+ -, - +, * /, / *, ** *, @ *, < <=, <= <, > >=, >= >, == !=, != ==, and or, or and, True False, False True"
SWAPS: dict[str, str] = dict(pair.split() for pair in f"{_PAIRS}, min max, max min".split(", "))
LONGEST = 1200  # seconds for the tests of a folder; a change that makes them hang counts as caught
QUICK = 2.0  # seconds; faster tests run on every change
LARGE = ("jax", "optax", "pandas", "scipy.stats", "sklearn.decomposition", "statsmodels.api", "matplotlib.pyplot")
_FORK = multiprocessing.get_context("fork")


class Change(NamedTuple):
    """The replacement of one token by another."""

    path: Path
    row: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        """Return the place of the change and what it replaces."""
        line = self.path.read_text(encoding="utf-8").splitlines()[self.row - 1].strip()
        return f"{self.path.relative_to(ROOT)}:{self.row}: {self.old!r} becomes {self.new!r} in: {line}"

    def made(self) -> str:
        """Return the changed source."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = lines[self.row - 1]
        lines[self.row - 1] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "".join(lines)


def changes(path: Path) -> Iterator[Change]:
    """Yield all changes of a file that still compile."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        new = SWAPS.get(token.string)
        if token.type == tokenize.NUMBER and token.string.isdigit():
            new = str(int(token.string) + 1)
        if new is None or token.type == tokenize.STRING:
            continue
        change = Change(path, *token.start, token.string, new)
        try:
            compile(change.made(), str(path), "exec")
        except SyntaxError:
            continue
        yield change


class Watch:
    """The duration of each test, and the first failure."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of one phase of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.failed = self.failed or (report.nodeid if report.failed else "")


def _run(source: str, tests: list[str], answer: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    sys.path[:0] = [source, str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    watch = Watch()
    code = int(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests], plugins=[watch]))
    seen = "rindices" not in sys.modules or str(sys.modules["rindices"].__file__).startswith(source)
    answer.send((watch.failed or f"pytest ended with {code}" if code else "", watch.seconds, seen))


def noticed(source: Path, tests: list[str]) -> tuple[str, dict[str, float]]:
    """Run tests on a copy of the source; return the first failure ("" if none) and the seconds of each test.

    They run in a fork of this process, which has already loaded the large libraries.
    """
    mine, other = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_run, args=(str(source), tests, other))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns about forks; it has not computed anything yet
        process.start()
    other.close()
    try:
        failed, seconds, seen = mine.recv() if mine.poll(LONGEST) else ("endless", {}, True)
    except EOFError:
        return "the process ended", {}
    finally:
        process.kill()
        process.join()
    if not seen:
        raise RuntimeError("The tests imported another copy of the source.")
    return failed, seconds


def notices(change: Change, tests: list[str]) -> str:
    """Return the first of these tests that catches a change; "" if none does."""
    inside = change.path.relative_to(ROOT / "src")
    own = tuple(f"tests/{inside.parts[1]}/test_{name}.py" for name in inside.stem.split("_and_"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / inside).write_text(change.made(), encoding="utf-8")
        return noticed(Path(folder), sorted(tests, key=lambda test: not test.startswith(own)))[0] if tests else ""


def main() -> None:
    """Try changes one by one; exit with 1 if any survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [path for room in ROOMS for path in sorted((ROOT / "src" / "rindices" / room).glob("*.py"))]
    every = [change for path in files for change in changes(path)]
    left = random.Random(options.seed).sample(every, min(options.number, len(every)))
    for name in LARGE:
        importlib.import_module(name)
    seconds: dict[str, dict[str, float]] = {}
    for room in ROOMS:
        failed, seconds[room] = noticed(ROOT / "src", [f"tests/{room}"])
        if failed:
            sys.exit(f"The unchanged source fails {failed}.")
    n_changes = len(left)
    for which, slow in (("quick", False), ("slow", True)):
        tests = {room: [test for test, took in seconds[room].items() if (took > QUICK) == slow] for room in ROOMS}
        survivors = []
        for number, change in enumerate(left, start=1):
            found = notices(change, tests[change.path.parent.name])
            survivors += [] if found else [change]
            print(
                f"{which} tests, {number} of {len(left)}: {found or 'SURVIVED'}: {change}", file=sys.stderr, flush=True
            )
        left = survivors
    for change in left:
        print(f"survived: {change}")
    print(f"{len(left)} of {n_changes} changes survived ({len(every):,} possible)")
    sys.exit(len(left) > 0)


if __name__ == "__main__":
    main()
