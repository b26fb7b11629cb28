"""Quality against the authors' package (PyPI `SurrealGAN` 0.1.1), against time and steps.

    make bench-official                                         # once: installs the package into its own environment
    python benchmarks/quality_versus_official.py --minutes 20   # per kind of cohort; two of their models at once

On the same cohorts and cores, one model a core: theirs with its defaults; ours with the same settings (`official`);
ours with its default (`fast`). Mean pattern concordance of the single models with the truth, against time (reading the
table left out on both sides, our compilation included) and against steps.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.agreement import compare, pattern_concordance
from rindices.config import Preset, fast, official
from rindices.core import devices
from rindices.core.train import People, make_members, train
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.simulate import simulate_cohort

HERE = Path(__file__).parent
TARGETS = {"basic": (0.85, 0.89), "mild": (0.80,)}
N_MODELS = 2


class Curve:
    """Looks at some models that train at the same time."""

    def __init__(self, seconds: np.ndarray, steps: np.ndarray, r_indices: list[np.ndarray], truth: np.ndarray) -> None:
        self.seconds, self.steps = seconds, steps
        self.concordance = np.array([np.mean([pattern_concordance(truth, one) for one in look]) for look in r_indices])
        self.agreement = np.array([compare(look[0], look[1]).pattern_agreement for look in r_indices])

    def time_to(self, target: float) -> float:
        """Return the seconds after which the mean concordance reaches a target; NaN if it never does."""
        reached = np.flatnonzero(self.concordance >= target)
        return float(self.seconds[reached[0]]) if len(reached) else float("nan")

    def rows(self) -> pd.DataFrame:
        """Return all looks as a table."""
        return pd.DataFrame({name: getattr(self, name) for name in ("seconds", "steps", "concordance", "agreement")})


def theirs(python: Path, table: pd.DataFrame, truth: np.ndarray, seconds: float) -> Curve:
    """Train models of the authors' package, a process each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        outs = [Path(folder, f"{seed}.npz") for seed in range(N_MODELS)]
        worker = [str(python), str(HERE / "official_quality_worker.py"), str(path)]
        started = [
            subprocess.Popen([*worker, str(seed), str(seconds), str(out)], stderr=subprocess.DEVNULL)
            for seed, out in enumerate(outs)
        ]
        for process in started:
            process.wait()
        found = [dict(np.load(out)) for out in outs]
    n_looks = min(len(one["seconds"]) for one in found)
    looks = [np.stack([one["r_indices"][k] for one in found]) for k in range(n_looks)]
    seconds_, steps = (np.mean([one[name][:n_looks] for one in found], axis=0) for name in ("seconds", "steps"))
    return Curve(seconds_, steps, looks, truth)


def ours(preset: Preset, people: People, truth: np.ndarray, max_steps: int) -> Curve:
    """Train our models, a thread each."""
    batch_size = preset.schedule.batch_size or len(people.patients) // 8
    start = time.perf_counter()

    def looks(number: int) -> Iterator[tuple[float, int, np.ndarray]]:
        members = make_members(0, [preset.weights], [preset.rates], [number])
        schedule = {"checkpoint_every": 1000, "min_steps": 0, "max_steps": max_steps, "batch_size": batch_size}
        for look in train(people, members, preset.training, n_patterns=3, **schedule):
            yield time.perf_counter() - start, look.step, look.r_indices[0].astype(float)

    with ThreadPoolExecutor(N_MODELS) as pool:
        found = list(pool.map(lambda number: list(looks(number)), range(N_MODELS)))
    together = [np.stack([model[k][2] for model in found]) for k in range(len(found[0]))]
    seconds = np.array([max(model[k][0] for model in found) for k in range(len(found[0]))])
    return Curve(seconds, np.array([look[1] for look in found[0]]), together, truth)


def main() -> None:
    """Compare on each kind of cohort and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", type=Path, default=HERE.parent / ".venv-official/bin/python")
    parser.add_argument("--kinds", nargs="*", default=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--same-steps", type=int, default=20_000, help="steps of our `official` models")
    parser.add_argument("--out", type=Path, help="write all looks to this CSV file")
    options = parser.parse_args()
    devices.prepare()
    tables = []
    for kind in options.kinds:
        cohort = simulate_cohort(kind, seed=0)
        table = cohort.table.drop(columns=["age", "sex"])
        control = (table["diagnosis"] == "CN").to_numpy()
        truth = cohort.truth.drop(columns="participant_id").to_numpy()
        regions = table.iloc[:, 2:].to_numpy()
        scaled = ControlScaler.fit(regions[control]).transform(regions)
        people = People(scaled[control], scaled[~control])
        whitened = people._replace(whitening=whitening_matrix(people.controls, fast().schedule.whitening))
        curves = {
            "rindices, fast": ours(fast(), whitened, truth, fast().schedule.max_steps),
            "rindices, official": ours(official(), people, truth, options.same_steps),
        }
        if options.official.is_file():
            relabelled = table.assign(diagnosis=np.where(control, -1, 1))
            curves["authors' package"] = theirs(options.official, relabelled, truth, 60 * options.minutes)
        print(f"{kind}: {control.sum()} controls, {(~control).sum()} patients, {regions.shape[1]} regions")
        for name, curve in curves.items():
            times = ", ".join(f"{target} after {curve.time_to(target):.0f} s" for target in TARGETS.get(kind, ()))
            print(
                f"  {name:<20} best {curve.concordance.max():.3f}, last {curve.concordance[-1]:.3f} "
                f"(agreement {curve.agreement[-1]:.3f}) after {curve.steps[-1]:,.0f} steps, {curve.seconds[-1]:.0f} s; "
                f"{times}",
                flush=True,
            )
            tables.append(curve.rows().assign(kind=kind, who=name))
    if options.out is not None:
        pd.concat(tables).to_csv(options.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
