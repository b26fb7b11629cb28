"""Train one model of the authors' package, and record its R-indices of the patients over time.

    python official_quality_worker.py TABLE.csv SEED SECONDS OUT.npz

Runs in that package's own environment, through its public function and with its defaults; only looks at its model are
added, and their time is not counted. Times are processor times, unaffected by other work on the machine.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import torch
from SurrealGAN.model import SurrealGAN
from SurrealGAN.Surreal_GAN_representation_learning import repetitive_representation_learning

LOOK_SECONDS = 10.0
NEVER = 10**6  # epochs


class TimeIsUpError(Exception):
    """Ends a training that would otherwise continue for hours."""


def main() -> None:
    """Train until the time is up, and write the time, steps and R-indices of each look."""
    path, seed, seconds, out = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    table = pd.read_csv(path)
    regions, control = table.iloc[:, 2:].to_numpy(), (table["diagnosis"] == -1).to_numpy()
    mean, sd = regions[control].mean(axis=0), regions[control].std(axis=0)
    patients = torch.FloatTensor(1 + (regions[~control] - mean) / (10 * sd))
    train_one_batch = SurrealGAN.train_instance
    looks: list[tuple[float, int, np.ndarray]] = []
    start = time.process_time()
    spent_looking, steps = 0.0, 0

    def watched(self: SurrealGAN, *arguments: object) -> object:
        nonlocal spent_looking, steps
        now = time.process_time()
        trained = now - start - spent_looking
        if trained > LOOK_SECONDS * (len(looks) + 1):
            looks.append((trained, steps, self.predict_rindices(patients)))
            spent_looking += time.process_time() - now
        if trained > seconds:
            raise TimeIsUpError
        steps += 1
        return train_one_batch(self, *arguments)

    SurrealGAN.train_instance = watched
    quietly = contextlib.redirect_stdout(io.StringIO())
    try:
        with tempfile.TemporaryDirectory() as folder, quietly, contextlib.suppress(TimeIsUpError):
            # A single repetition fails when it is saved and compared with others, so saving is postponed forever.
            repetitive_representation_learning(
                table,
                3,
                seed + 1,
                1.0,
                NEVER,
                folder,
                saving_freq=NEVER // 4,
                start_repetition=seed,
                stop_repetition=seed + 1,
            )
    finally:  # the package may also end with an error
        seconds_, steps_, r_indices = zip(*looks, strict=True)
        np.savez(out, seconds=np.array(seconds_), steps=np.array(steps_), r_indices=np.array(r_indices))


if __name__ == "__main__":
    main()
