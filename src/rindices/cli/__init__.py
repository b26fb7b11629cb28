"""The command line: one function per command.

Options become settings, settings are passed to `rindices.run`, and its results are printed. Commands check their input
with the light modules first and load the training engine only when it is needed.
"""

import atexit
import gc
import os
import sys

from rindices.cli import fit  # isort: skip  # the first among the commands
from rindices.cli import check, results
from rindices.cli.options import app

__all__ = ["app", "check", "fit", "main", "results"]


def main() -> None:
    """Run a command in its own process."""
    # Matrices are small: several threads of linear algebra would wait for each other, on a busy machine for seconds.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Libraries create a million permanent objects: scanning these for garbage takes a second, and another at exit.
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # not all characters can be written on Windows
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="rindices")
