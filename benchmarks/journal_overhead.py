"""Measure the cost of the journal: the fraction of a run's time spent writing, reading and checking its files.

    python benchmarks/journal_overhead.py                                   # a fit with ten repetitions
    python benchmarks/journal_overhead.py --patterns 2 3 4 5 --orthogonality 0.2 0.4 0.8    # an exhaustive sweep

On most machines, two runs differ by more than that, so the journal's own time is added up instead: all of it counts,
even while other threads continue training.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rindices import SurrealGANSearch, simulate_cohort
from rindices.training.journal import FileKeeper, Journal


class Clock:
    """A sum of the time spent in some methods."""

    def __init__(self) -> None:
        self.seconds, self._lock = 0.0, threading.Lock()

    def around(self, owner: type, name: str) -> None:
        """Count the time spent in a method; nested calls count once."""
        method: Callable[..., Any] = getattr(owner, name)
        inside = threading.local()

        def timed(*arguments: Any) -> Any:
            if getattr(inside, "already", False):
                return method(*arguments)
            inside.already, start = True, time.perf_counter()
            try:
                return method(*arguments)
            finally:
                inside.already = False
                with self._lock:
                    self.seconds += time.perf_counter() - start

        setattr(owner, name, timed)


def main() -> None:
    """Run once with a journal and print its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patterns", type=int, nargs="*", default=[3])
    parser.add_argument("--orthogonality", type=float, nargs="*", default=[0.8])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    clock = Clock()
    for owner, names in ((Journal, ("__contains__", "get", "put", "plan")), (FileKeeper, ("load", "save"))):
        for name in names:
            clock.around(owner, name)
    table = simulate_cohort("basic", seed=0).table
    regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    search = SurrealGANSearch(
        options.patterns,
        options.orthogonality,
        n_repetitions=options.repetitions,
        max_steps=options.steps,
        exhaustive=True,
        random_state=0,
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        start = time.perf_counter()
        search.fit(regions, table["diagnosis"] == "PT", store=Journal(Path(folder), "benchmark"))
        total = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
    print(
        f"{search.models_trained_} models, {total:.1f} s, of which the journal {clock.seconds:.2f} s "
        f"({100 * clock.seconds / (total - clock.seconds):.2f} % of the rest); {size:.0f} MiB on disk"
    )


if __name__ == "__main__":
    main()
