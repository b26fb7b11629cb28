"""Large tables and many calls: time and memory of scoring, compared with their targets; for two cores.

    python benchmarks/load.py

The models have realistic sizes (145 and 200 regions, three patterns, ten repetitions) but are hardly trained, which
does not affect time and memory. The command runs in a new process each time, with an empty compilation cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from rindices import SurrealGAN
from rindices.core import devices
from rindices.presets import Schedule, fast

_REPETITIONS, _PATTERNS = 10, 3
# A process starts with the peak memory of its parent, so a small process launches it.
_LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""
_LINES = 2_000  # different rows of a table; the others repeat their measures with other ids


class Measured(NamedTuple):
    """A line of the result."""

    what: str
    asked: str
    found: str


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=50_000, help="rows of the table with 145 regions")
    parser.add_argument("--long", type=int, default=200_000, help="rows of the table with 200 regions")
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=1, help="of each command; the fastest counts")
    options = parser.parse_args()
    devices.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = _model(145)
        lines = [_transform(model, options.people), _calls(model, options.calls)]
        model.save(folder / "145.safetensors")
        _model(200).save(folder / "200.safetensors")
        for n_people, n_regions, gap, seconds, megabytes in (
            (options.people, 145, False, 20, None),
            (options.long, 200, False, None, 1_000),
            (options.long, 200, True, None, 1_000),
        ):
            table = _table(folder / "people.csv", n_people, n_regions, gap=gap)
            lines += _apply(folder / f"{n_regions}.safetensors", table, options.runs, seconds, megabytes, gap=gap)
    print(pd.DataFrame(lines).to_string(index=False))


def _names(n_regions: int) -> list[str]:
    return [f"region{i}" for i in range(n_regions)]


def _measures(n_people: int, n_regions: int) -> np.ndarray:
    return 5000 + 500 * np.random.default_rng(0).standard_normal((n_people, n_regions))


def _covariates(n_people: int) -> pd.DataFrame:
    rows = np.arange(n_people)
    return pd.DataFrame({"age": 50.0 + rows % 40, "sex": np.where(rows % 2, "M", "F")})


def _model(n_regions: int) -> SurrealGAN:
    """Return a model of realistic size after two steps; its repetitions are copies, so none is left out."""
    people = pd.DataFrame(_measures(400, n_regions), columns=_names(n_regions))
    preset = replace(fast(), schedule=Schedule(32, 2, 2, checkpoint_every=2, whitening=0.0))
    model = SurrealGAN(_PATTERNS, n_repetitions=1, preset=preset, random_state=0)
    model.fit(people, np.repeat([0, 1], 200), _covariates(400))
    model.models_ = jax.tree.map(lambda leaf: np.repeat(leaf, _REPETITIONS, axis=0), model.models_)
    model.members_ = list(range(_REPETITIONS))
    return model


def _table(path: Path, n_people: int, n_regions: int, *, gap: bool) -> Path:
    """Write a table of people; the last row lacks a region if `gap`."""
    rows = [",".join(map("{:.4f}".format, row)) for row in _measures(_LINES, n_regions).tolist()]
    with path.open("w") as file:
        file.write(",".join(["participant_id", "diagnosis", "age", "sex", *_names(n_regions)]) + "\n")
        for i in range(n_people):
            who = f"sub-{i:07d},{'AD' if i % 3 else 'CN'},{50 + i % 40},{'M' if i % 2 else 'F'}"
            row = rows[i % _LINES]
            file.write(f"{who},{row[row.index(',') :] if gap and i == n_people - 1 else row}\n")
    return path


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _transform(model: SurrealGAN, n_people: int) -> Measured:
    people = pd.DataFrame(_measures(n_people, 145), columns=_names(145))
    covariates = _covariates(n_people)
    model.transform(people.iloc[:2000], covariates.iloc[:2000])  # compiles
    took = _seconds(lambda: model.transform(people, covariates))
    return Measured(f"transform of {n_people:,} x 145", "5 s", f"{took:.1f} s")


def _calls(model: SurrealGAN, n_calls: int) -> Measured:
    people, covariates = pd.DataFrame(_measures(300, 145), columns=_names(145)), _covariates(300)

    def hundred(first: int) -> float:
        sizes = [1 + (7 * number) % 300 for number in range(first, first + 100)]
        return _seconds(lambda: [model.transform(people.iloc[:size], covariates.iloc[:size]) for size in sizes])

    hundred(0)  # compiles
    before = _resident()
    times = [hundred(first) for first in range(0, n_calls, 100)]
    grown = _resident() - before
    found = f"{times[0]:.2f} s, {times[-1]:.2f} s, {grown:+.1f} MB"
    return Measured(f"{n_calls:,} calls: first, last hundred; growth", "the same, none", found)


def _resident() -> float:
    """Return the resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _apply(
    model: Path, table: Path, n_runs: int, seconds: int | None, megabytes: int | None, *, gap: bool
) -> list[Measured]:
    command = [str(Path(sys.executable).with_name("rindices")), "apply", str(model), str(table), "--out"]
    took, peak = float("inf"), 0.0
    for number in range(n_runs):
        cache = table.with_name(f"cache{number}-{model.stem}")
        done = subprocess.run(
            [sys.executable, "-c", _LAUNCHER, *command, str(table.with_name("scores.csv"))],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != (2 if gap else 0):
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
        one, most = map(float, done.stdout.split())
        took, peak = min(took, one), max(peak, most / 1e3)
    with table.open("rb") as file:
        n_people = sum(1 for _ in file) - 1
    error = ", a gap in the last row" if gap else ""
    what = f"rindices apply, {n_people:,} x {model.stem} ({table.stat().st_size / 1e6:.0f} MB{error})"
    return [
        Measured(what, f"{seconds} s" if seconds else "-", f"{took:.1f} s"),
        Measured("  its peak memory", f"{megabytes:,} MB" if megabytes else "-", f"{peak:.0f} MB"),
    ]


if __name__ == "__main__":
    main()
