"""The command line: one function a command.

Options become settings, settings go to `rindices.run`, and what it gives back is printed. Commands check their input
with the light modules first and load the training engine only when it is needed.
"""

from rindices.cli import fit  # isort: skip  # the first among the commands
from rindices.cli import check, results
from rindices.cli.options import app

__all__ = ["app", "check", "fit", "results"]
