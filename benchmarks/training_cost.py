"""Processor cost of training from random weights, compared with that of version 0.1.0, in one run.

    python benchmarks/training_cost.py

Processor time of all cores, hardly affected by other work on the machine: of a step of one model, from two lengths of
training, and of the work after training (scale, intervals, reference). Both are combined into the cost of a fit.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np

from rindices import SurrealGAN, simulate_cohort
from rindices.presets import Preset, blind

SHORT, LONG, REPETITIONS, ROUNDS = 500, 2500, 4, 3


def earlier() -> Preset:
    """Return the training of version 0.1.0: all controls in every repetition, independent severities."""
    now = blind()
    return replace(now, schedule=replace(now.schedule, folds=0), training=replace(now.training, latent="independent"))


def cost(preset: Preset, steps: int) -> tuple[float, float]:
    """Return the processor seconds of training and of the whole fit."""
    table = simulate_cohort("basic", seed=0).table
    regions, patient = table.iloc[:, 4:], (table["diagnosis"] == "PT").to_numpy()
    preset = replace(preset, schedule=replace(preset.schedule, min_steps=steps, max_steps=steps))
    ends: list[float] = []
    model = SurrealGAN(preset=preset, n_repetitions=REPETITIONS, random_state=0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(regions, patient, progress=lambda *_: ends.append(time.process_time()))
    return ends[-1] - began, time.process_time() - began


def main() -> None:
    """Measure both trainings, and compare them."""
    trainings = {"now": blind(), "earlier": earlier()}
    for preset in trainings.values():
        cost(preset, SHORT)  # compiles
    steps_of_a_fit, totals = blind().schedule.max_steps, {}
    for name, preset in trainings.items():
        found = np.array([[cost(preset, steps) for steps in (SHORT, LONG)] for _ in range(ROUNDS)])
        step = (found[:, 1, 0] - found[:, 0, 0]).min() / (LONG - SHORT) / REPETITIONS
        after = (found[..., 1] - found[..., 0]).min()
        totals[name] = 10 * steps_of_a_fit * step + after
        print(f"{name}: {1e3 * step:.3f} ms a step of a model, {after:.1f} s after; whole fit {totals[name]:.0f} s")
    print(f"extra: {100 * (totals['now'] / totals['earlier'] - 1):.0f} %")


if __name__ == "__main__":
    main()
