"""Readers of foreign files against cases by the thousand; ``python -m tests.fuzz`` runs them all."""

from tests.fuzz.models import Checkpoints, Models
from tests.fuzz.tables import Tables

TARGETS = {"tables": Tables, "models": Models, "checkpoints": Checkpoints}
