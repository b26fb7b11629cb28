"""Time and device memory for a large cohort: 50,000 people × 145 regions, five patterns, ten repetitions; for a GPU.

    python benchmarks/large.py

The embedded population has 128 regions; the others are noisy copies of some of them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from rindices import SurrealGAN, simulate_cohort
from rindices.core import devices


def main() -> None:
    """Fit once and print the time and memory used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controls", type=int, default=20_000)
    parser.add_argument("--patients", type=int, default=30_000)
    parser.add_argument("--regions", type=int, default=145)
    parser.add_argument("--patterns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    table = simulate_cohort("basic", n_controls=options.controls, n_patients=options.patients, seed=0).table
    regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"]).iloc[:, : options.regions].copy()
    rng = np.random.default_rng(0)
    for k in range(options.regions - regions.shape[1]):
        regions[f"copy{k}"] = regions.iloc[:, k] * (1 + 0.1 * rng.standard_normal(len(regions)))
    model = SurrealGAN(options.patterns, n_repetitions=options.repetitions, max_steps=options.steps, random_state=0)
    start = time.perf_counter()
    model.fit(regions, table["diagnosis"] == "PT")
    seconds, peak = time.perf_counter() - start, devices.peak_memory()
    memory = "unknown" if peak is None else f"{peak / 2**30:.2f} GiB"
    print(f"{regions.shape[0]:,} people x {regions.shape[1]} regions: {seconds:.0f} s, device memory at most {memory}")


if __name__ == "__main__":
    main()
