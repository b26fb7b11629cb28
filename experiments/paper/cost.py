"""Measure the cost of the paper's protocol on this device, and how time grows with the sizes of a problem.

    python experiments/paper/cost.py --part protocol --out results/cost.csv      # a GPU
    python experiments/paper/cost.py --part growth --out results/growth.csv      # any device, noted in the rows

Protocol: M = 2, 3 and 4, five λ, ten models, 100,000 steps, batches of 112, on 492 + 900 people × 128 regions, through
`rindices.core.train`, which the estimators use; once with the paper's formulas (preset "paper"), once with ours. All
models run in one program, as in a search on an accelerator. Times include the looks and exclude compilation, which has
its own column. Growth: rates of short trainings with the default formulas, varying one size at a time (regions, people,
patterns, models, batch).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from cases import SIZE, Case, whole
from rate import models_steps_per_second
from table1 import ORTHOGONALITIES
from tables import Results, Scope, parser, scope

from rindices.core import devices
from rindices.core.train import Checkpoint, TrainingPeople, make_members, train
from rindices.presets import Preset, Schedule, Training, paper

PATTERNS = (2, 3, 4)
N_MODELS = 10  # of each λ
N_STEPS = 100_000
EVERY = 5_000
BASE = {"n_regions": 128, "n_people": 1392, "n_patterns": 3, "n_models": 50, "batch": 32}
GROWTH = {
    "batch": (112,),
    "n_regions": (64, 256, 512),
    "n_people": (5_000, 20_000),
    "n_patterns": (2, 4, 6),
    "n_models": (1, 10, 150, 300),
}
FORMULAS = {"paper": paper().training, "default": Training()}


def looks(
    people: TrainingPeople, patterns: Sequence[int], formulas: Training, preset: Preset, n_steps: int
) -> Iterator[Checkpoint]:
    """Train all λ and repetitions for some values of M."""
    values = [(n, value) for n in patterns for value in ORTHOGONALITIES for _ in range(N_MODELS)]
    weights = [preset.weights._replace(orthogonality=value) for _, value in values]
    members = make_members(0, weights, [preset.rates] * len(weights), len(people.controls))
    batch = max(1, len(people.patients) // 8)
    steps = {"checkpoint_every": min(EVERY, n_steps), "min_steps": N_STEPS, "max_steps": n_steps}
    return train(people, members, formulas, Schedule(batch, **steps), n_patterns=[n for n, _ in values])


def protocol(size: Scope, results: Results, chosen: Sequence[str]) -> None:
    """Time the whole protocol, a row per set of formulas."""
    brains = whole(Case(*(size.size if size.small else SIZE), "basic", size.seeds[0]))
    people = TrainingPeople(brains.controls, brains.patients)
    n_steps = 20 if size.small else N_STEPS
    device = devices.describe().kind
    for formulas in chosen:
        name, training = f"protocol, {formulas} formulas", FORMULAS[formulas]
        patterns = PATTERNS[:2] if size.small else PATTERNS
        if results.has(part=name, device=device):
            continue
        start = time.perf_counter()
        list(looks(people, patterns, training, paper(), 1))  # compiles; the number of steps is not part of the program
        compilation = time.perf_counter() - start
        start = time.perf_counter()
        (last,) = deque(looks(people, patterns, training, paper(), n_steps), maxlen=1)
        seconds = time.perf_counter() - start
        n_models = len(patterns) * len(ORTHOGONALITIES) * N_MODELS
        row: dict[str, Any] = {"part": name, "device": device, "n_regions": people.controls.shape[1]}
        row |= {"n_people": len(people.controls) + len(people.patients), "n_patterns": "-".join(map(str, patterns))}
        row |= {"n_models": n_models, "n_steps": n_steps, "batch": max(1, len(people.patients) // 8)}
        row |= {"compilation": compilation, "seconds": seconds, "rate": n_models * n_steps / seconds}
        row["n_finite"] = int(np.isfinite(last.r_indices).all(axis=(1, 2)).sum())
        results.add([row])
        print({key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}, flush=True)


def growth(size: Scope, results: Results, seconds: float) -> None:
    """Measure rates, varying one size at a time."""
    device = devices.describe().kind
    base, sizes = BASE, GROWTH
    if device == "cpu":  # one model per core
        base = BASE | {"n_models": devices.n_cores()}
        sizes = {name: values for name, values in GROWTH.items() if name != "n_models"}
    points = [base] + [base | {name: value} for name, values in sizes.items() for value in values]
    points = [BASE | {"n_models": 2}] if size.small else points
    missing = [point for point in points if not results.has(part="growth", device=device, **point)]
    every = 20 if size.small else 500
    if device != "cpu":
        with ThreadPoolExecutor(4) as pool:  # compiles, and runs the first steps
            list(pool.map(lambda point: _rate(point, every, 0.0), missing))
    for point in missing:
        rate = _rate(point, every, seconds)
        results.add([{"part": "growth", "device": device, "rate": rate} | point])
        print(point, f"{rate:,.0f} models' steps per second", flush=True)


def _rate(point: dict[str, int], every: int, seconds: float) -> float:
    rng = np.random.default_rng(0)
    n_controls = point["n_people"] * SIZE[0] // sum(SIZE)
    made = 1 + 0.1 * rng.standard_normal((point["n_people"], point["n_regions"]))
    people = TrainingPeople(made[:n_controls], made[n_controls:] - 0.03)
    sizes = {"n_models": point["n_models"], "n_patterns": point["n_patterns"], "batch_size": point["batch"]}
    return models_steps_per_second(people, **sizes, every=every, seconds=seconds)


def main(arguments: list[str] | None = None) -> None:
    """Run one part or both."""
    options = parser(__doc__, "cost")
    options.add_argument("--part", choices=["protocol", "growth", "both"], default="both")
    options.add_argument("--formulas", nargs="+", choices=list(FORMULAS), default=list(FORMULAS))
    options.add_argument("--seconds", type=float, default=3.0, help="of each short training")
    chosen = options.parse_args(arguments)
    devices.prepare()
    size = scope(chosen.small)
    run(size, chosen.out, chosen.part, chosen.formulas, min(chosen.seconds, 1.0) if size.small else chosen.seconds)


def run(size: Scope, out: Path, part: str, formulas: Sequence[str], seconds: float) -> None:
    """Measure what is missing."""
    results = Results(out, ["part", "device"], comparable=not size.small)
    results.describe(paper())
    if part != "growth":
        protocol(size, results, formulas)
    if part != "protocol":
        growth(size, results, seconds)


if __name__ == "__main__":
    main()
