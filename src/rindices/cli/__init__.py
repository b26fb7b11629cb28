"""The command line: one function a command.

Options become settings, settings go to `rindices.run`, and what it gives back is printed. Commands check their input
with the light modules first and load the training engine only when it is needed.
"""

import atexit
import gc
import sys

from rindices.cli import fit  # isort: skip  # the first among the commands
from rindices.cli import check, results
from rindices.cli.options import app

__all__ = ["app", "check", "fit", "main", "results"]


def main() -> None:
    """Run a command in a process of its own."""
    # Libraries make a million objects that stay: to look through them for garbage takes a second, and one at the end.
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a file on Windows takes few letters beyond English
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="rindices")
