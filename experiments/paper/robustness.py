"""Section B.2, Fig. S1 a and b: each loss weight at 50 to 150 % of its value, in easy and hard cohorts. For a GPU.

    python experiments/paper/robustness.py --out results/robustness.csv

γ, κ, ζ, μ and η are varied one at a time; the others are those of the preset `blind`, and λ is the one with the best
agreement on the cohort (table1.csv in the same folder). Basic and mild, three cohorts each, ten models.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sweeps import Named, chosen_orthogonality, compare
from tables import Scope, parser, scope

from rindices.core import devices
from rindices.presets import LossWeights

VARIED = ("change", "decomposition", "reconstruction", "monotonicity", "near_control")
PERCENTS = (50, 75, 125, 150)
KINDS = ("basic", "mild")


def weightings(weights: LossWeights, varied: tuple[str, ...] = VARIED) -> list[Named]:
    """Return the preset's weights, then each weight changed alone."""
    found: list[Named] = [({"weight": "none", "percent": 100}, weights)]
    for name in varied:
        for percent in PERCENTS:
            value = getattr(weights, name) * percent / 100
            found.append(({"weight": name, "percent": percent}, weights._replace(**{name: value})))
    return found


def run(size: Scope, out: Path) -> None:
    """Train with all weightings."""
    varied = VARIED[:1] if size.small else VARIED
    chosen = chosen_orthogonality(out.with_name("table1.csv"))
    compare(size, out, partial(weightings, varied=varied), preset=size.preset, kinds=KINDS, chosen=chosen)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "robustness").parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
