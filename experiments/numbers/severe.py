"""Measure intervals where they might fail: cohorts with mostly severe patients or few people, among others.

    python experiments/numbers/severe.py            # writes results/severe.csv; 3 minutes of a core per cohort
    python experiments/numbers/severe.py --few      # writes results/few_people.csv; 1 minute of a core per cohort
    python experiments/numbers/severe.py --show

`at_zero` is the fraction of f's change at severity 1 that is already present at 0; above `inference.MOST_AT_ZERO`, the
linear model beside the networks synthesises people instead of f. `inside` is the proportion of fresh patients' true
severities, in the model's units, within 95 % intervals; `raw` that of the severities as simulated; `f_…` the same if f
is used regardless. With few people, intervals allow for how well so few show the changes (`intervals.widened`);
`alone_…` is without that.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import parser, row_by_row
from figures import measure
from people import Given, Recipe, make

from rindices import SurrealGAN, estimator
from rindices.core import inference
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.training.execution import Memory

FIRST_SEED = 490_000
COHORTS = 2
REPETITIONS = 4
KINDS = {
    "basic, Beta(3, 1)": {"kind": "basic", "severities": "severe"},
    "mild, Beta(3, 1)": {"kind": "mild", "severities": "severe"},
    "basic": {"kind": "basic"},
    "mild, Beta(1, 3)": {"kind": "mild", "severities": "mild"},
    "half": {"kind": "half"},
    "scarce, Beta(3, 1)": {"kind": "scarce", "severities": "severe"},
    "overlap, Beta(3, 1)": {"kind": "overlap", "severities": "severe"},
    "signed, Beta(3, 1)": {"kind": "signed", "severities": "severe"},
    "noise, Beta(1, 3)": {"kind": "noise", "severities": "mild"},
    "basic, correlated by 0.7": {"kind": "basic", "correlation": 0.7},
    "mild, correlated by 0.7": {"kind": "mild", "correlation": 0.7},
    "basic, healthy spread 1.71": {"kind": "basic", "spread": 1.71},
    "mild, healthy spread 1.71": {"kind": "mild", "spread": 1.71},
    "scarce, healthy spread 1.71, Beta(3, 1)": {"kind": "scarce", "spread": 1.71, "severities": "severe"},
}
SIZES = {"n_controls": 300, "n_patients": 600, "n_fresh": 300}
FIRST_FEW, COHORTS_FEW = 470_000, 1
FEW_PEOPLE = [(60, 60), (60, 200), (200, 60), (100, 100), (80, 80), (150, 150)]
FEW_KINDS = ("basic", "noise", "mild", "signed")


def measured_few(kind: str, n_controls: int, n_patients: int, seed: int) -> list[dict[str, object]]:
    """Score one cohort twice: with the package's intervals, and with intervals from the repetitions alone."""
    given = make(Recipe(kind, seed, n_controls, n_patients, n_fresh=SIZES["n_fresh"]))
    row = {"kind": kind, "n_controls": n_controls, "n_patients": n_patients, "seed": seed}
    rule, store = estimator.few, Memory()
    try:
        for prefix, decides in (("", rule), ("alone_", lambda *_: False)):
            estimator.few = decides
            model = SurrealGAN(3, n_repetitions=REPETITIONS, random_state=seed)
            model.fit(given.regions, given.patient, store=store)  # the second time nothing is trained
            found = measure(model, given, with_ridge=False)
            columns = {"inside": "fresh_cover95", "raw": "fresh_raw_cover95", "width": "fresh_width95"}
            row |= {prefix + name: found[column] for name, column in columns.items()}
    finally:
        estimator.few = rule
    return [row | {"rmse": found["fresh_rmse"], "concordance": found["concordance"], "unit": found["unit"]}]


def measured(name: str, seed: int) -> list[dict[str, object]]:
    """Score one cohort twice: by the package's rule, and with f synthesising people whatever it does at severity 0."""
    given = make(Recipe(seed=seed, **SIZES | KINDS[name]))
    row, limit, store = {"cohort": name, "seed": seed}, inference.MOST_AT_ZERO, Memory()
    try:
        for prefix, most in (("", limit), ("f_", np.inf)):
            inference.MOST_AT_ZERO = most
            model = SurrealGAN(3, n_repetitions=REPETITIONS, random_state=seed)
            model.fit(given.regions, given.patient, store=store)  # the second time nothing is trained
            row |= {prefix + kind: value for kind, value in _figures(model, given).items()}
    finally:
        inference.MOST_AT_ZERO = limit
    return [row]


def _figures(model: SurrealGAN, given: Given) -> dict[str, float]:
    controls, composition = model.prepare(given.regions[~given.patient]).values, model.preset_.training.composition
    order, _ = match_patterns(given.truth, model.r_indices_[given.patient])
    low, high = (side[:, order] for side in model.intervals(given.fresh[given.fresh_patient]))
    found = measure(model, given, with_ridge=False)
    return {
        "at_zero": float(inference.change_at_zero(model.models_, controls, composition).mean()),
        "inside": found["fresh_cover95"],
        "raw": float(((low <= given.fresh_truth) & (given.fresh_truth <= high)).mean()),
        "rmse": found["fresh_rmse"],
        "unit": found["unit"],
        "healthy": found["fresh_controls_severity"],
    }


def show(table: pd.DataFrame) -> None:
    """Print coverage and errors, by the package's rule and without it."""
    by = ["n_controls", "n_patients"] if "n_controls" in table else "cohort"
    print(table.groupby(by, sort=False).mean(numeric_only=True).drop(columns="seed").round(3).to_string())


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--few", action="store_true")
    options = arguments.parse_args()
    path = options.out / ("few_people.csv" if options.few else "severe.csv")
    if options.few and not options.show:
        seeds = range(FIRST_FEW, FIRST_FEW + (1 if options.small else COHORTS_FEW))
        sizes = FEW_PEOPLE[:1] if options.small else FEW_PEOPLE
        jobs = [(kind, *size, seed) for seed in seeds for size in sizes for kind in FEW_KINDS]
        row_by_row(measured_few, jobs, path)
    elif not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if options.small else COHORTS))
        row_by_row(measured, [(name, seed) for seed in seeds for name in KINDS], path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
