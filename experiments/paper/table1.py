"""Table 1 and Fig. 2: accuracy and agreement of repeated trainings for each λ, in five kinds of cohorts (GPU).

    python experiments/paper/table1.py --out results/table1.csv

Three cohorts of each kind, λ from 0.1 to 0.8, ten models; all other settings are those of the preset `blind`. Each λ
and look has a row: agreement, and the concordance of single models and of their consensus with the truth.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sweeps import Named, compare
from tables import Scope, parser, scope

from rindices.core import devices
from rindices.presets import LossWeights

ORTHOGONALITIES = (0.1, 0.2, 0.4, 0.6, 0.8)
SIZE_OF_REAL = (147, 300)


def run(size: Scope, out: Path, controls: pd.DataFrame | None = None) -> None:
    """Train with all λ; cohorts are drawn from the embedded population, or built from given healthy people."""
    preset = size.looking()

    def weightings(weights: LossWeights) -> list[Named]:
        return [({}, weights._replace(orthogonality=value)) for value in ORTHOGONALITIES]

    people = SIZE_OF_REAL if controls is not None and not size.small else None
    compare(size, out, weightings, preset=preset, people=people, controls=controls)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "table1").parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
