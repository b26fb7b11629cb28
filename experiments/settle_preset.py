"""Compare settings on the five simulated cohorts, and on the same built from real people; intended for a GPU.

    python experiments/settle_preset.py --seeds 0 --controls healthy.csv --out settings.csv

All settings with the same whitening train together, as members of one compiled program. Each setting is judged at the
checkpoint with the best agreement, by the concordance of its consensus minus that of ridge regression on the truth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices import simulate_cohort
from rindices.core import devices
from rindices.judging import agreement_and_misfit as agreement
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.presets import LearningRates, LossWeights, Schedule, Training, blind
from rindices.scoring.consensus_and_person import aligned, find_consensus

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from accuracy import KINDS, NOT_REGIONS, ridge_ceiling

N_REPETITIONS = 10


class Setting(NamedTuple):
    """A row of the comparison."""

    name: str
    weights: LossWeights
    discriminator_rate: float = LearningRates().discriminator
    whitening: float = blind().schedule.whitening


def settings() -> list[Setting]:
    """Return the default, and the default with one thing changed."""
    default = LossWeights()
    slow = LearningRates().discriminator / 2
    changed = {
        "change 6": {"change": 6.0},
        "change 12": {"change": 12.0},
        "reconstruction 10": {"reconstruction": 10.0},
        "reconstruction 40": {"reconstruction": 40.0},
        "decomposition 80": {"decomposition": 80.0},
        "orthogonality 0.4": {"orthogonality": 0.4},
        "change 6, reconstruction 40": {"change": 6.0, "reconstruction": 40.0},
    }
    rows = [Setting("default", default), *(Setting(name, default._replace(**to)) for name, to in changed.items())]
    rows.append(Setting("discriminator half as fast", default, slow))
    for strength in (0.0, 0.5):
        rows += [
            Setting(f"whitening {strength}", default, whitening=strength),
            Setting(f"whitening {strength}, discriminator half as fast", default, slow, strength),
        ]
    return rows


def cohorts(seeds: list[int], own: pd.DataFrame | None) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the name, scaled controls, scaled patients and truth of each cohort."""
    for seed in seeds:
        for people in (None,) if own is None else (None, own):
            for kind in KINDS:
                sizes = {} if people is None else {"controls": people, "n_controls": len(people) // 3}
                cohort = simulate_cohort(kind, seed=seed, **sizes)
                regions = cohort.table.drop(columns=[n for n in NOT_REGIONS if n in cohort.table]).to_numpy()
                control = (cohort.table["diagnosis"] == "CN").to_numpy()
                scaled = ControlScaler.fit(regions[control]).transform(regions)
                truth = cohort.truth.drop(columns="participant_id").to_numpy()
                yield f"{'real ' if people is not None else ''}{kind} {seed}", scaled[control], scaled[~control], truth


def compare(rows: list[Setting], controls: np.ndarray, patients: np.ndarray, truth: np.ndarray, steps: int) -> dict:
    """Train all rows (with the same whitening) at once; return agreement, accuracy and step of the best checkpoints."""
    from rindices.core.train import TrainingPeople, make_members, train

    people = TrainingPeople(controls, patients, whitening_matrix(controls, rows[0].whitening))
    weights = [row.weights for row in rows for _ in range(N_REPETITIONS)]
    rates = [LearningRates(discriminator=row.discriminator_rate) for row in rows for _ in range(N_REPETITIONS)]
    every = max(1, steps // 8)
    schedule = {"batch_size": 32, "checkpoint_every": every, "min_steps": 0, "max_steps": steps}
    best: dict[str, tuple[float, float, int]] = {}
    models = make_members(0, weights, rates, len(controls))
    for look in train(people, models, Training(), Schedule(**schedule), n_patterns=truth.shape[1]):
        for place, row in enumerate(rows):
            members = look.r_indices[place * N_REPETITIONS : (place + 1) * N_REPETITIONS]
            sound = members[[not fault for fault in agreement.faults(members)]]
            if len(sound) < 2:
                continue
            pairs = agreement.pairwise(sound)
            value = agreement.mean_agreement(pairs).pattern_agreement
            if value > best.get(row.name, (0.0,))[0]:
                together = aligned(sound, find_consensus(sound, pairs)).mean(axis=0)
                best[row.name] = (value, agreement.pattern_concordance(truth, together), look.step)
    return best


def main() -> None:
    """Compare all settings and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--controls", help="a table of healthy people, for cohorts built from real people too")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--out", default="settings.csv")
    options = parser.parse_args()
    devices.prepare()
    own = None if options.controls is None else pd.read_csv(options.controls)
    found = []
    for name, controls, patients, truth in cohorts(options.seeds, own):
        ceiling = ridge_ceiling(patients, truth)
        for strength in sorted({row.whitening for row in settings()}):
            rows = [row for row in settings() if row.whitening == strength]
            for setting, (value, accuracy, step) in compare(rows, controls, patients, truth, options.steps).items():
                found.append((setting, name, accuracy - ceiling, value, step))
        print(f"{name}: ridge with the truth {ceiling:.3f}", flush=True)
    table = pd.DataFrame(found, columns=["setting", "cohort", "difference", "agreement", "step"])
    table.to_csv(options.out, index=False)
    print(table.groupby("setting", sort=False)["difference"].agg(["mean", "min"]).round(4).to_string())


if __name__ == "__main__":
    main()
