"""Quality compared with the authors' package (PyPI `SurrealGAN` 0.1.1), by time and steps.

    make bench-official                                         # once: installs the package into its own environment
    python benchmarks/quality_versus_official.py --minutes 20   # two of their models, 20 minutes per cohort

On the same cohorts and cores, one model per core: two of theirs with the package's defaults; two of ours with the same
settings (`official`); two of ours with our training from random weights (`blind`). Mean pattern concordance of single
models with the truth, by time (excluding the reading of the table on both sides, including our compilation) and by
steps. Their time is processor time, unaffected by other work on the machine; ours is wall-clock time, so nothing else
should run.
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

from rindices.core import devices
from rindices.core.train import TrainingPeople, make_members, train
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.presets import Preset, Schedule, blind, official
from rindices.simulate import simulate_cohort

HERE = Path(__file__).parent
TARGETS = {"basic": (0.85, 0.89), "mild": (0.80, 0.84)}
N_MODELS = 2


class Cohort:
    """A simulated cohort in the formats of both packages."""

    def __init__(self, kind: str) -> None:
        made = simulate_cohort(kind, seed=0)
        self.table = made.table.drop(columns=["age", "sex"])
        self.control = (self.table["diagnosis"] == "CN").to_numpy()
        self.truth = made.truth.drop(columns="participant_id").to_numpy()

    def people(self, preset: Preset) -> TrainingPeople:
        """Return scaled controls and patients."""
        regions = self.table.iloc[:, 2:].to_numpy()
        scaled = ControlScaler.fit(regions[self.control]).transform(regions)
        controls = scaled[self.control]
        return TrainingPeople(controls, scaled[~self.control], whitening_matrix(controls, preset.schedule.whitening))

    def relabelled(self) -> pd.DataFrame:
        """Return the table with the labels that the authors' package expects."""
        return self.table.assign(diagnosis=np.where(self.control, -1, 1))


class Curve:
    """Looks at models that train simultaneously."""

    def __init__(self, seconds: np.ndarray, steps: np.ndarray, r_indices: list[np.ndarray], truth: np.ndarray) -> None:
        self.seconds, self.steps = seconds, steps
        self.concordance = np.array([np.mean([pattern_concordance(truth, one) for one in look]) for look in r_indices])
        several = len(r_indices[0]) > 1
        self.agreement = np.array([pattern_concordance(look[0], look[1]) if several else np.nan for look in r_indices])

    def time_to(self, target: float) -> float:
        """Return the seconds after which the mean concordance reaches a target; NaN if it never does."""
        reached = np.flatnonzero(self.concordance >= target)
        return float(self.seconds[reached[0]]) if len(reached) else float("nan")

    def rows(self) -> pd.DataFrame:
        """Return all looks as a table."""
        return pd.DataFrame({name: getattr(self, name) for name in ("seconds", "steps", "concordance", "agreement")})


def theirs(python: Path, cohort: Cohort, seconds: float) -> Curve:
    """Train models of the authors' package, each in its own process on one core."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohort.relabelled().to_csv(folder / "cohort.csv", index=False)
        worker = [str(python), str(HERE / "official_quality_worker.py"), str(folder / "cohort.csv")]
        started = []
        for seed in range(N_MODELS):
            with (folder / f"{seed}.log").open("w", encoding="utf-8") as log:
                command = [*worker, str(seed), str(seconds), str(folder / f"{seed}.npz")]
                started.append(subprocess.Popen(command, stderr=log))
        for seed, process in enumerate(started):
            if process.wait():
                print(f"their training {seed} ended with: {(folder / f'{seed}.log').read_text()[-300:]}")
        found = [dict(np.load(folder / f"{seed}.npz")) for seed in range(N_MODELS)]
    n_looks = min(len(one["seconds"]) for one in found)
    looks = [np.stack([one["r_indices"][look] for one in found]) for look in range(n_looks)]
    times, steps = (np.mean([one[what][:n_looks] for one in found], axis=0) for what in ("seconds", "steps"))
    return Curve(times, steps, looks, cohort.truth)


def ours(preset: Preset, people: TrainingPeople, truth: np.ndarray, max_steps: int) -> Curve:
    """Train our models, each in its own thread."""
    start = time.perf_counter()

    def looks(number: int) -> Iterator[tuple[float, int, np.ndarray]]:
        members = make_members(
            0, [preset.weights], [preset.rates], len(people.controls), [number], preset.schedule.folds
        )
        schedule = Schedule(preset.schedule.batch_size, 0, max_steps, 1000)
        for look in train(people, members, preset.training, schedule, n_patterns=3):
            yield time.perf_counter() - start, look.step, look.r_indices[0].astype(float)

    with ThreadPoolExecutor(N_MODELS) as pool:
        found = list(pool.map(lambda number: list(looks(number)), range(N_MODELS)))
    together = [np.stack([model[k][2] for model in found]) for k in range(len(found[0]))]
    seconds = np.array([max(model[k][0] for model in found) for k in range(len(found[0]))])
    return Curve(seconds, np.array([look[1] for look in found[0]]), together, truth)


def main() -> None:
    """Compare the packages on each kind of cohort, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", type=Path, default=HERE.parent / ".venv-official/bin/python")
    parser.add_argument("--kinds", nargs="*", default=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--same-steps", type=int, default=20_000, help="steps of our `official` models")
    parser.add_argument("--only-theirs", action="store_true", help="leave out our models")
    parser.add_argument("--out", type=Path, help="write all looks to this CSV file")
    options = parser.parse_args()
    devices.prepare()
    cohorts = {kind: Cohort(kind) for kind in options.kinds}
    curves = {
        (kind, who): ours(preset, cohort.people(preset), cohort.truth, steps)
        for kind, cohort in cohorts.items()
        for who, preset, steps in (
            ("rindices, blind", blind(), blind().schedule.max_steps),
            ("rindices, official", official(), options.same_steps),
        )
        if not options.only_theirs
    }
    if options.official.is_file():
        for kind, cohort in cohorts.items():
            curves[kind, "authors' package"] = theirs(options.official, cohort, 60 * options.minutes)
    for (kind, who), curve in sorted(curves.items()):
        times = ", ".join(f"{target} after {curve.time_to(target):.0f} s" for target in TARGETS.get(kind, ()))
        print(
            f"{kind}, {who:<19} best {curve.concordance.max():.3f}, last {curve.concordance[-1]:.3f} "
            f"(agreement {curve.agreement[-1]:.3f}) after {curve.steps[-1]:,.0f} steps, {curve.seconds[-1]:.0f} s; "
            f"{times}"
        )
    if options.out is not None:
        tables_ = [curve.rows().assign(kind=kind, who=who) for (kind, who), curve in curves.items()]
        pd.concat(tables_).to_csv(options.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
