"""Tables 1, 6 and 7 of the paper for its five cohorts: decompositions and regressions compared with the truth.

    python experiments/scoring.py                            # three components (Table 1), the regressions (Table 6)
    python experiments/scoring.py --components 3 4 5 6 7 8 9 10      # and the best three of up to ten (Table 7)

Signs and order of components have no meaning: each decomposition gets those that fit the truth best.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from baselines import METHODS, Baseline, supervised_ceilings
from scipy.optimize import linear_sum_assignment

from rindices import simulate_cohort
from rindices.judging.agreement_and_misfit import concordance, pattern_concordance

KINDS = ("basic", "overlap", "scarce", "noise", "mild")
NOT_REGIONS = ["participant_id", "diagnosis", "age", "sex"]


class Match(NamedTuple):
    """Matched components: component ``order[i]`` times ``signs[i]`` represents severity i."""

    order: np.ndarray
    signs: np.ndarray
    concordances: np.ndarray


def best_components(components: np.ndarray, truth: np.ndarray) -> Match:
    """Assign each severity its own component and sign, maximising the mean concordance.

    With as many components as severities, this determines order and signs; with more, also the best components, for
    which the paper tries all combinations.
    """
    table = np.array([[concordance(severity, column) for column in components.T] for severity in truth.T])
    turned = np.maximum(table, 1 - table)  # reversing a component reverses the order of all pairs; ties stay one half
    rows, order = linear_sum_assignment(turned, maximize=True)
    return Match(order, np.where(table[rows, order] < 0.5, -1, 1), turned[rows, order])


def measure(kind: str, seed: int, counts: list[int]) -> tuple[list[dict[str, object]], pd.DataFrame]:
    """Fit all decompositions and regressions to one cohort."""
    cohort = simulate_cohort(kind, seed=seed)
    regions = cohort.table.drop(columns=NOT_REGIONS).to_numpy(float)
    patient = (cohort.table["diagnosis"] == "PT").to_numpy()
    truth = cohort.truth.drop(columns="participant_id").to_numpy()
    rows = []
    for method in METHODS:
        for n_components in counts:
            start = time.perf_counter()
            model = Baseline(method, n_components, random_state=seed).fit(regions, patient)
            found = best_components(model.transform(regions[patient]), truth)
            row = {"cohort": kind, "seed": seed, "method": method, "components": n_components}
            row |= {"concordance": found.concordances.mean(), "seconds": time.perf_counter() - start}
            rows.append(row)
    ceilings = supervised_ceilings(regions[patient], truth, pattern_concordance, seed=seed)
    return rows, ceilings.assign(cohort=kind, seed=seed)


def main() -> None:
    """Measure all cohorts and print the means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--components", type=int, nargs="+", default=[3])
    parser.add_argument("--out", help="CSV file for the decompositions")
    options = parser.parse_args()
    rows, ceilings = [], []
    for seed in options.seeds:
        for kind in options.kinds:
            found, told = measure(kind, seed, options.components)
            rows += found
            ceilings.append(told)
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False)
    first = table[table["components"] == options.components[0]]
    print(f"Concordance with {options.components[0]} components")
    print(first.pivot_table("concordance", "cohort", "method", sort=False).round(3).to_string())
    if len(options.components) > 1:
        best = table.groupby(["cohort", "seed", "method"], sort=False, as_index=False)["concordance"].max()
        print("\nBest number of components and best components of it")
        print(best.pivot_table("concordance", "cohort", "method", sort=False).round(3).to_string())
    print("\nRegressions with the truth, mean over folds")
    print(pd.concat(ceilings).pivot_table(["train", "test"], "cohort", "method", sort=False).round(3).to_string())
    print("\nLongest fit in seconds")
    print(table.groupby("method", sort=False)["seconds"].max().round(1).to_string())


if __name__ == "__main__":
    main()
