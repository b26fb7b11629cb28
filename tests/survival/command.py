"""`rindices` with a short preset that checkpoints and saves often; run as a program and preloaded by Dask workers."""

import itertools
import os
import signal
from dataclasses import replace

if __name__ == "__main__":  # shells' background jobs ignore SIGINT, and the run would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

from rindices import presets
from rindices.training import chunks, journal

SCHEDULE = presets.Schedule(batch_size=8, min_steps=800, max_steps=1200, checkpoint_every=100, whitening=0.0)


def shorten(_=None):
    """Shorten the default preset and save unfinished chunks at every checkpoint."""
    chunks._SAVE_SECONDS = 0.0
    presets.PRESETS["fast"] = lambda: replace(presets.fast(), schedule=SCHEDULE)


dask_setup = shorten  # called by Dask in each worker that preloads this file


def hold(kind, number):
    """Suspend the process, as Ctrl-Z does, once `number` files of a kind are in the journal, so it can be killed."""
    write, written = journal.write_arrays, itertools.count(1)

    def writing(path, *content):
        write(path, *content)
        if path.suffix == kind and next(written) == int(number):
            os.kill(os.getpid(), signal.SIGSTOP)

    journal.write_arrays = writing


if __name__ == "__main__":
    shorten()
    if os.environ.get("RINDICES_HOLD"):
        hold(*os.environ["RINDICES_HOLD"].split())
    from rindices.cli import app

    app()
