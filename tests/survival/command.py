"""`rindices` with a preset that is short but looks and saves often; run as a program, and loaded by Dask's workers."""

import itertools
import os
import signal
from dataclasses import replace

if __name__ == "__main__":  # a shell's background jobs ignore it, and so would the run
    signal.signal(signal.SIGINT, signal.default_int_handler)

from rindices import presets
from rindices.training import chunks, journal

SCHEDULE = presets.Schedule(batch_size=8, min_steps=800, max_steps=1200, checkpoint_every=100, whitening=0.0)


def shorten(_=None):
    """Make the default preset short, and save unfinished chunks at every checkpoint."""
    chunks._SAVE_SECONDS = 0.0
    presets.PRESETS["fast"] = lambda: replace(presets.fast(), schedule=SCHEDULE)


dask_setup = shorten  # what Dask calls in a worker that loads this file


def hold(kind, number):
    """Stop like a process at Ctrl-Z once so many files of a kind are in the journal: it waits there to be killed."""
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
