"""How few regions are too few? Two known patterns in 250 of 500 simulated people, each in a fraction of the regions.

python experiments/few_regions.py --share 0.5 --regions 12 24 40 80
python experiments/few_regions.py --share 0.25 --regions 12 24
"""

from __future__ import annotations

import argparse

import numpy as np

from rindices import SurrealGAN
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.simulate import simulate_cohort

N_PEOPLE, N_PATTERNS = 250, 2  # in each group
SHRINKAGE, NOISE = 0.3, 0.1  # loss at severity 1; sd of its variation between people and regions


def concordance(n_regions: int, share: float, seed: int) -> tuple[np.ndarray, int]:
    """Return the concordance of each pattern's R-indices with the truth, and how many of four trainings were sound."""
    rng = np.random.default_rng(seed)
    healthy = simulate_cohort("basic", n_controls=600, n_patients=30, n_patterns=N_PATTERNS, seed=1).table
    healthy = healthy[healthy["diagnosis"] == "CN"].drop(columns=["participant_id", "diagnosis", "age", "sex"])
    regions = rng.choice(healthy.columns, n_regions, replace=False)
    brains = healthy[list(regions)].to_numpy()[rng.permutation(len(healthy))[: 2 * N_PEOPLE]]
    severity, changed = rng.uniform(0, 1, (N_PEOPLE, N_PATTERNS)), int(n_regions * share)
    for pattern, places in enumerate((range(changed), range(n_regions - changed, n_regions))):
        for place in places:
            brains[N_PEOPLE:, place] *= 1 - SHRINKAGE * severity[:, pattern] * rng.normal(1, NOISE, N_PEOPLE)
    model = SurrealGAN(n_patterns=N_PATTERNS, n_repetitions=4, preset="blind", random_state=seed)
    model.fit(brains, np.repeat([0, 1], N_PEOPLE))
    found = match_patterns(severity, model.r_indices_[N_PEOPLE:])[1]
    return np.asarray(found), int(model.history_.loc[model.history_["chosen"], "n_models"].iloc[0])


def main() -> None:
    """Print a line per number of regions and cohort."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.5, help="of the regions that each pattern changes")
    parser.add_argument("--regions", type=int, nargs="+", default=[12, 24, 40, 80])
    options = parser.parse_args()
    for n_regions in options.regions:
        for seed in (0, 1):
            found, n_sound = concordance(n_regions, options.share, seed)
            print(
                f"{n_regions} regions: concordance {found.round(3).tolist()}, {n_sound} of 4 trainings sound",
                flush=True,
            )


if __name__ == "__main__":
    main()
