"""The command line: `rindices simulate | fit | apply | describe | report | voxelwise | import-official | demo`.

Commands check their input with the light modules first and load the training engine only when it is needed.
"""

from rindices.cli import cohorts, fit, models, runs
from rindices.cli.application import app

__all__ = ["app", "cohorts", "fit", "models", "runs"]
