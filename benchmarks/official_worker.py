"""Measure the training steps per second of the authors' package, in that package's own environment.

    python official_worker.py TABLE.csv BATCH_SIZE SECONDS

The package is used through its public function; only the counting of steps is added.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time

import pandas as pd
from SurrealGAN.model import SurrealGAN
from SurrealGAN.Surreal_GAN_representation_learning import repetitive_representation_learning

WARM_UP = 20


class TimeIsUpError(Exception):
    """Ends a training that would otherwise continue for hours."""


def main() -> None:
    """Train until the time is up and print the rate."""
    table, batch_size, seconds = pd.read_csv(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    train_one_batch = SurrealGAN.train_instance
    count, start = 0, 0.0

    def counted(self: SurrealGAN, *arguments: object) -> object:
        nonlocal count, start
        if count == WARM_UP:
            start = time.perf_counter()
        if count > WARM_UP and time.perf_counter() - start > seconds:
            raise TimeIsUpError
        count += 1
        return train_one_batch(self, *arguments)

    SurrealGAN.train_instance = counted
    quietly = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, quietly, contextlib.suppress(TimeIsUpError):
        repetitive_representation_learning(table, 3, 1, 1.0, 100_000, folder, batchsize=batch_size)
    print((count - WARM_UP) / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
