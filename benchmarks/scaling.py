"""Speed-up of two single-threaded Dask workers over one, on this machine.

python benchmarks/scaling.py                       # about three minutes on two idle cores
python benchmarks/scaling.py --workers 1 2 4 --models 8
"""

from __future__ import annotations

import argparse
import time

from rindices import SurrealGAN, simulate_cohort
from rindices.core import devices
from rindices.training.execution import parallel


def measure(workers: int, n_models: int, n_steps: int) -> float:
    """Return the seconds that a cluster takes to train the models, with programs already compiled."""
    table = simulate_cohort("basic", seed=0).table
    regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    patients = table["diagnosis"] == "PT"
    settings = {"n_patterns": 3, "max_steps": n_steps, "random_state": 0, "models_per_chunk": 1}
    with parallel("local", workers):
        # Enough models to give each worker the program, and as long as those measured, so that it is the same program.
        SurrealGAN(n_repetitions=2 * workers, **settings).fit(regions, patients)
        begin = time.perf_counter()
        SurrealGAN(n_repetitions=n_models, **settings).fit(regions, patients)
        return time.perf_counter() - begin


def main() -> None:
    """Measure each number of workers, and print the speed-up over the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many counts")
    options = parser.parse_args()
    devices.prepare()
    print(f"{devices.n_cores()} cores, {options.models} models of {options.steps} steps")
    first = None
    for workers in options.workers:
        seconds = min(measure(workers, options.models, options.steps) for _ in range(options.rounds))
        first = first or seconds
        print(f"{workers} {'worker' if workers == 1 else 'workers'}: {seconds:6.1f} s, {first / seconds:.2f} x")


if __name__ == "__main__":
    main()
