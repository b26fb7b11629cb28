import sys
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path += [str(EXPERIMENTS / "paper"), str(EXPERIMENTS)]
