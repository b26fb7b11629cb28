"""Section B.3, Fig. S1 c: the contribution of each regulariser, measured by leaving it out. Intended for a GPU.

    python experiments/paper/ablations.py --out results/ablations.csv
    python experiments/paper/ablations.py --matched --out results/matched_ablations.csv

Weights are set to 0; the others are those of the preset `blind` (`--matched`: `paper`), and λ is the one with the best
agreement on the cohort (table1.csv or matched_paper.csv in the same folder). Five kinds of cohorts, three cohorts each,
ten models (`--matched`: three). Section B.3 swaps two letters: its "ζ = 0 (no cn loss)" is η here. Without κ, λ, μ and
η, the terms of Smile-GAN remain (pseudo-Smile-GAN).
"""

from __future__ import annotations

from pathlib import Path

from sweeps import Named, chosen_orthogonality, compare
from tables import Scope, parser, scope

from rindices.core import devices
from rindices.presets import LossWeights

REMOVED = {
    "nothing": (),
    "decomposition": ("decomposition",),
    "orthogonality": ("orthogonality",),
    "monotonicity": ("monotonicity",),
    "near_control": ("near_control",),
    "monotonicity and near_control": ("monotonicity", "near_control"),
    "pseudo-Smile-GAN": ("decomposition", "orthogonality", "monotonicity", "near_control"),
}


def weightings(weights: LossWeights) -> list[Named]:
    """Return the weights with each set of terms removed."""
    return [({"removed": name}, weights._replace(**dict.fromkeys(terms, 0.0))) for name, terms in REMOVED.items()]


def run(size: Scope, out: Path) -> None:
    """Train with all weightings."""
    chosen_in = "table1.csv" if size.spread == 1 else "matched_paper.csv"
    compare(size, out, weightings, preset=size.preset, chosen=chosen_orthogonality(out.with_name(chosen_in)))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "ablations", matched=True).parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small, chosen.matched), chosen.out)


if __name__ == "__main__":
    main()
