"""Measure how often people are flagged as unlike any that a model can produce: fresh people and planted strangers.

    python experiments/everyday/strangers.py FOLDER       # weights from trained.py; writes results/strangers.csv
    python experiments/everyday/strangers.py --show       # prints its means

Strangers are made from fresh controls and patients. `outside` is the proportion with a region outside the range of the
training people, who are flagged anyway.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent))
from trained import Made, measured

from rindices import SurrealGAN

RESULTS = Path(__file__).parents[2] / "results" / "strangers.csv"
SOME = 0.1  # proportion of regions in another unit


def planted(regions: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return several kinds of strangers made from these people; all people of a kind have the same error."""
    n_regions = regions.shape[1]
    some = rng.permutation(n_regions)[: int(SOME * n_regions)]
    by_size = np.argsort(regions.mean(axis=0))
    unit, near, order = np.ones(n_regions), np.arange(n_regions), rng.permutation(n_regions)
    unit[some] = 1.5
    for start in range(0, n_regions, 8):  # regions are swapped with others of similar size
        near[by_size[start : start + 8]] = rng.permutation(by_size[start : start + 8])
    atlas = np.exp(rng.normal(0, 0.15, n_regions))  # other boundaries: 15 % more or less
    return {
        "tenth of the regions in another unit (x 10)": regions * np.where(unit > 1, 10, 1),
        "tenth of the regions 1.5 times as large": regions * unit,
        "all regions shuffled": regions[:, order],
        "shuffled among regions of like size": regions[:, near],
        "another atlas (15 % more or less in each region)": regions * atlas,
        "another atlas (7 % more or less)": regions * atlas**0.5,
    }


def measure(of: Made, model: SurrealGAN) -> list[dict[str, object]]:
    """Return the proportion flagged of each kind of people."""
    given, rng = of.given, np.random.default_rng([of.case.recipe.seed, 8])
    fresh, patient = given.fresh.to_numpy(), given.fresh_patient
    people = {"controls": fresh[~patient], "patients": fresh[patient], "severest tenth of patients": fresh[patient]}
    severe = given.fresh_truth.sum(axis=1)
    people["severest tenth of patients"] = fresh[patient][severe > np.quantile(severe, 0.9)]
    covariates = {"controls": given.fresh_covariates[~patient], "patients": given.fresh_covariates[patient]}
    covariates["severest tenth of patients"] = covariates["patients"][severe > np.quantile(severe, 0.9)]
    everybody = planted(fresh, rng)
    people |= everybody
    covariates |= dict.fromkeys(everybody, given.fresh_covariates)
    rows = []
    for kind, regions in people.items():
        scaled = model.preprocessing_.transform(regions, covariates[kind].reset_index(drop=True))
        strangeness = model.familiar_.strangeness(scaled)
        row = {"cohort": of.case.name, "n_controls": int((~given.patient).sum()), "people": kind, "n": len(regions)}
        row |= {"strangers": (strangeness > 1).mean(), "median_strangeness": np.median(strangeness)}
        rows.append(row | {"outside": model.contract_.outside(regions).any(axis=1).mean()})
    return rows


def show(table: pd.DataFrame) -> None:
    """Print means over cohorts, and the extremes."""
    found = table.groupby(["n_controls", "people"], sort=False)
    means = found[["strangers", "median_strangeness", "outside"]].mean()
    print(means.assign(least=found["strangers"].min(), most=found["strangers"].max()).round(4).to_string())


def main() -> None:
    """Measure all trained cohorts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        measured(options.weights, measure).to_csv(RESULTS, index=False, float_format="%.5g")
    show(pd.read_csv(RESULTS))


if __name__ == "__main__":
    main()
