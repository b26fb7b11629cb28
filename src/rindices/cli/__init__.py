"""The command line: `rindices simulate | fit | apply | describe | report | voxelwise | import-official | demo`.

Options become settings, settings go to `rindices.run`, and what it gives back is printed. Commands check their input
with the light modules first and load the training engine only when it is needed.
"""

from rindices.cli import demo, fit, models, runs
from rindices.cli.application import app

__all__ = ["app", "demo", "fit", "models", "runs"]
