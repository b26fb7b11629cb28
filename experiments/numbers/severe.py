"""Where intervals fail, and whether that is recognised: cohorts in which nearly all patients are severe.

    python experiments/numbers/severe.py            # writes results/severe.csv
    python experiments/numbers/severe.py --show

Linear models alone. `ratio` is the mean severity of the patients in sd of severities by which intervals are withheld;
`inside` the share of fresh patients' true severities, in the model's unit, that 95 % intervals hold, and `raw` that of
the true severities themselves.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import RESULTS, one_by_one, parser
from figures import unit
from people import Recipe, make

from rindices import SurrealGAN, estimator
from rindices.judging.agreement import match_patterns

FIRST_SEED = 131_000
COHORTS = 2
KINDS = {
    "basic": {"kind": "basic"},
    "mild": {"kind": "mild"},
    "scarce": {"kind": "scarce"},
    "mild, half absent": {"kind": "mild", "severities": "absent"},
    "mild, Beta(1, 3)": {"kind": "mild", "severities": "mild"},
    "mild, correlated 0.6": {"kind": "mild", "correlation": 0.6},
    "shift": {"kind": "shift"},
    "half": {"kind": "half"},
    "dense": {"kind": "dense"},
    "basic, Beta(3, 1)": {"kind": "basic", "severities": "severe"},
    "mild, Beta(3, 1)": {"kind": "mild", "severities": "severe"},
}


def measured(name: str, seed: int) -> list[dict[str, object]]:
    """Fit one cohort, with intervals whatever its ratio is."""
    estimator.MOST_SEVERE = np.inf
    given = make(Recipe(seed=seed, n_controls=300, n_patients=600, n_fresh=300, covariates=2, **KINDS[name]))
    model = SurrealGAN(3, n_repetitions=4, preset="linear", random_state=seed)
    study = model._training_set(given.regions, given.patient, given.covariates).study
    model.fit(given.regions, given.patient, given.covariates)
    order, _ = match_patterns(given.truth, model.r_indices_[given.patient])
    fresh = given.fresh_patient
    low, high = (side[:, order] for side in model.intervals(given.fresh[fresh], given.fresh_covariates[fresh]))
    target = given.fresh_truth * unit(model, given, order)
    row = {"cohort": name, "seed": seed, "ratio": estimator.severe_patients(study, 3)}
    row["inside"] = ((low <= target) & (target <= high)).mean()
    return [row | {"raw": ((low <= given.fresh_truth) & (given.fresh_truth <= high)).mean()}]


def show(table: pd.DataFrame) -> None:
    """Print coverage and ratios, and how many failing cohorts are recognised."""
    of = table.groupby("cohort", sort=False)
    print(of.agg({"ratio": ["min", "max"], "inside": "mean", "raw": ["mean", "min"]}).round(2).to_string())
    failing, told = table[["inside", "raw"]].min(axis=1) < 0.85, table["ratio"] > 2.15
    print(f"recognised {int((failing & told).sum())} of {int(failing.sum())} failing,", end=" ")
    print(f"false alarm in {int((~failing & told).sum())} of {int((~failing).sum())}")


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    path = (options.out if options.small else RESULTS) / "severe.csv"
    if not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if options.small else COHORTS))
        one_by_one(measured, [(name, seed) for seed in seeds for name in KINDS], path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
