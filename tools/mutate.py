"""Change one token of the source at random, run the room's own tests, and list the changes that no test noticed.

    python tools/mutate.py                       # 150 changes in core, judging, scoring and preprocessing
    python tools/mutate.py --number 20 --seed 1

Each change is made in a copy of the source. A survivor is either equivalent, or a test is missing.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("core", "judging", "scoring", "preprocessing")
_PAIRS = "+ -, - +, * /, / *, ** *, @ *, < <=, <= <, > >=, >= >, == !=, != ==, and or, or and, True False, False True"
SWAPS: dict[str, str] = dict(pair.split() for pair in f"{_PAIRS}, min max, max min".split(", "))
LONGEST = 300  # seconds of a room's tests; a change that makes them endless is noticed


class Change(NamedTuple):
    """One token that becomes another."""

    path: Path
    row: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        """Return where it is, and what it does."""
        line = self.path.read_text(encoding="utf-8").splitlines()[self.row - 1].strip()
        return f"{self.path.relative_to(ROOT)}:{self.row}: {self.old!r} becomes {self.new!r} in: {line}"

    def made(self) -> str:
        """Return the changed source."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = lines[self.row - 1]
        lines[self.row - 1] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "".join(lines)


def changes(path: Path) -> Iterator[Change]:
    """Yield all changes of a file that leave it a program."""
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


def survives(change: Change) -> bool:
    """Run the tests of the change's room on a changed copy of the source."""
    inside = change.path.relative_to(ROOT / "src")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / inside).write_text(change.made(), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        path = os.pathsep.join([folder, str(ROOT)])
        try:
            done = subprocess.run(
                [*command, f"tests/{inside.parts[1]}"],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": path},
                capture_output=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def main() -> None:
    """Try changes one by one; 1 where one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [path for room in ROOMS for path in sorted((ROOT / "src" / "rindices" / room).glob("*.py"))]
    every = [change for path in files for change in changes(path)]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    survivors = 0
    for number, change in enumerate(chosen, start=1):
        if survives(change):
            survivors += 1
            print(f"survived: {change}", flush=True)
        print(f"{number} of {len(chosen)} tried, {survivors} survived", file=sys.stderr, flush=True)
    print(f"{survivors} of {len(chosen)} changes survived ({len(every):,} possible)")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
