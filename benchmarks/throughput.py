"""Model steps per second, all models together, on the device that JAX finds.

python benchmarks/throughput.py                    # two usual sizes
python benchmarks/throughput.py --regions 139 --batch 112 --models 150
"""

from __future__ import annotations

import argparse

import numpy as np
from rate import models_steps_per_second

from rindices.core import devices
from rindices.core.train import TrainingPeople


def measure(n_regions: int, n_patterns: int, batch_size: int, n_models: int, every: int, seconds: float) -> float:
    """Return the model steps per second of `n_models` together."""
    rng = np.random.default_rng(0)
    people = TrainingPeople(
        1 + 0.1 * rng.standard_normal((492, n_regions)), 0.97 + 0.1 * rng.standard_normal((900, n_regions))
    )
    sizes = {"n_models": n_models, "n_patterns": n_patterns, "batch_size": batch_size}
    return models_steps_per_second(people, **sizes, every=every, seconds=seconds)


def main() -> None:
    """Measure the chosen sizes, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regions", type=int, default=139)
    parser.add_argument("--patterns", type=int, default=3)
    parser.add_argument("--batch", type=int, nargs="*", default=[112, 32])
    parser.add_argument("--models", type=int, nargs="*", default=[150, 240])
    parser.add_argument("--steps", type=int, default=1000, help="steps between two looks at the models")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    devices.prepare()
    import jax

    print(
        f"{jax.device_count()} x {jax.devices()[0].device_kind}, {options.regions} regions, {options.patterns} patterns"
    )
    for batch, models in zip(options.batch, options.models, strict=True):
        rate = measure(options.regions, options.patterns, batch, models, options.steps, options.seconds)
        print(f"batch {batch:4d}, {models:4d} models: {rate:10,.0f} models' steps per second")


if __name__ == "__main__":
    main()
