"""Speed compared with the authors' package (PyPI `SurrealGAN` 0.1.1), on the same table and machine, in one run.

    make bench-official                          # once: installs the package into its own environment
    python benchmarks/versus_official.py         # batches of 32 and of 300

Ten of our models against one process of theirs with its default threads, and against two simultaneous processes. The
unit is model steps per second: one step of one model counts as one.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rate import models_steps_per_second

from rindices.core import devices
from rindices.core.train import TrainingPeople
from rindices.preprocessing import ControlScaler
from rindices.simulate import simulate_cohort

HERE = Path(__file__).parent
N_MODELS = 10


def shared_table(n_regions: int) -> pd.DataFrame:
    """Return a basic cohort with the first regions, labelled as the authors' package expects (-1 and 1)."""
    table = simulate_cohort("basic", seed=0).table.drop(columns=["age", "sex"])
    table["diagnosis"] = np.where(table["diagnosis"] == "CN", -1, 1)
    return table.iloc[:, : 2 + n_regions]


def our_rate(table: pd.DataFrame, batch_size: int, seconds: float) -> float:
    """Return our model steps per second, excluding compilation, as the other package's warm-up is excluded."""
    regions = table.iloc[:, 2:].to_numpy()
    is_control = (table["diagnosis"] == -1).to_numpy()
    scaled = ControlScaler.fit(regions[is_control]).transform(regions)
    people = TrainingPeople(scaled[is_control], scaled[~is_control])
    sizes = {"n_models": N_MODELS, "n_patterns": 3, "batch_size": batch_size, "every": max(100, 32_000 // batch_size)}
    return models_steps_per_second(people, **sizes, seconds=seconds)


def official_rate(python: Path, table: pd.DataFrame, batch_size: int, seconds: float, processes: int) -> float:
    """Return the total rate of simultaneous processes of the authors' package."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        command = [str(python), str(HERE / "official_worker.py"), str(path), str(batch_size), str(seconds)]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for _ in range(processes)
        ]
        return sum(float(process.communicate()[0].split()[-1]) for process in started)


def main() -> None:
    """Measure both packages in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", type=Path, default=HERE.parent / ".venv-official/bin/python")
    parser.add_argument("--batch", type=int, nargs="*", default=[32, 300])
    parser.add_argument("--regions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    devices.prepare()
    table = shared_table(options.regions)
    print(f"{len(table)} people, {options.regions} regions, 3 patterns, {devices.n_cores()} cores")
    for batch in options.batch:
        ours = our_rate(table, batch, options.seconds)
        print(f"batch {batch:4d}: rindices, {N_MODELS} models      {ours:8,.0f} models' steps per second", flush=True)
        if not options.official.is_file():
            print("            the authors' package is not installed: run `make bench-official` to compare")
            continue
        for processes in (1, 2):
            theirs = official_rate(options.official, table, batch, options.seconds, processes)
            name = f"authors' package, {processes} process{'es' if processes > 1 else ''}"
            print(f"            {name:<30} {theirs:8,.0f}   ratio {ours / theirs:5.1f}", flush=True)


if __name__ == "__main__":
    main()
