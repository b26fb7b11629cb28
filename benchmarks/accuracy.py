"""Accuracy of the default estimator on the paper's five cohorts, compared with ridge regression on the truth.

    python benchmarks/accuracy.py --seeds 0 1 2
    python benchmarks/accuracy.py --controls healthy.csv              # the same on real healthy people
    python benchmarks/accuracy.py --severities absent mild severe     # severities that are not uniform

Pattern-c-index of the consensus of ten repetitions, with all choices made without the truth; error of severities, and
coverage of 95 % intervals (both without converting the truth to the model's units). Ridge regression (penalty by
cross-validation, five shuffled folds, z-scored patients) is the ceiling for linear methods.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from rindices import SurrealGAN, simulate_cohort
from rindices.judging.agreement_and_misfit import concordance, match_patterns
from rindices.scoring.intervals import severity_intervals
from rindices.simulate import SEVERITIES

KINDS = ("basic", "overlap", "scarce", "noise", "mild")
NOT_REGIONS = ("participant_id", "diagnosis", "age", "sex")


def ridge_ceiling(patients: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean concordance of ridge regression's held-out predictions with the truth."""
    standardised = (patients - patients.mean(axis=0)) / patients.std(axis=0)
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(RidgeCV(np.logspace(-1, 4, 20)), standardised, truth, cv=folds)
    return float(np.mean([concordance(truth[:, i], predicted[:, i]) for i in range(truth.shape[1])]))


def measure(
    kind: str, severities: str, seed: int, own: pd.DataFrame | None, repetitions: int, covariates: list[str]
) -> dict[str, float | str | int]:
    """Fit one cohort and compare the result with the truth."""
    sizes = {} if own is None else {"controls": own, "n_controls": len(own) // 3}
    cohort = simulate_cohort(kind, severities=severities, seed=seed, **sizes)
    regions = cohort.table.drop(columns=[name for name in NOT_REGIONS if name in cohort.table])
    patient = (cohort.table["diagnosis"] == "PT").to_numpy()
    truth = cohort.truth.drop(columns="participant_id").to_numpy()
    start = time.perf_counter()
    model = SurrealGAN(n_repetitions=repetitions, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(regions, patient, cohort.table[covariates] if covariates else None)
    seconds = time.perf_counter() - start
    order, concordances = match_patterns(truth, model.r_indices_[patient])
    consensus = float(concordances.mean())
    scale, r_indices = model.scale_, model.r_indices_[patient]
    errors = scale.severities(r_indices)[:, order] - truth
    low, high = (side[:, order] for side in severity_intervals(scale, r_indices, 0.95))
    ceiling = ridge_ceiling(regions.to_numpy()[patient], truth)
    return {
        "cohort": kind if severities == "uniform" else f"{kind}, {severities}",
        "seed": seed,
        "consensus": consensus,
        "ridge": ceiling,
        "difference": consensus - ceiling,
        "bias": float(max(errors.mean(axis=0), key=abs)),  # of the pattern in which it is largest
        "rmse": float(np.sqrt((errors**2).mean())),
        "covered": float(((low <= truth) & (truth <= high)).mean()),
        "agreement": model.agreement_.pattern_agreement,
        "used": len(model.members_),
        "step": model.step_,
        "seconds": seconds,
    }


def main() -> None:
    """Measure all cohorts and print a table, then the means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--controls", help="a table of healthy people to build on, instead of the embedded population")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--severities", nargs="*", choices=SEVERITIES, default=["uniform"])
    parser.add_argument(
        "--covariates", nargs="*", default=[], help="columns whose effects are removed, such as age sex"
    )
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--out", help="CSV file for the table")
    options = parser.parse_args()
    own = None if options.controls is None else pd.read_csv(options.controls)
    rows = []
    for seed in options.seeds:
        for kind, severities in product(options.kinds, options.severities):
            rows.append(measure(kind, severities, seed, own, options.repetitions, options.covariates))
            print(
                " ".join(
                    f"{name} {value:.4g}" if isinstance(value, float) else str(value)
                    for name, value in rows[-1].items()
                ),
                flush=True,
            )
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False)
    means = table.groupby("cohort", sort=False)[
        ["consensus", "ridge", "difference", "bias", "rmse", "covered", "agreement", "step", "seconds"]
    ].mean()
    print(means.round(3).to_string())


if __name__ == "__main__":
    main()
