"""Measure how often held-out people have a region outside the training range, by quantiles or by minimum and maximum.

python experiments/region_ranges.py abide1_volumes.csv ixi_gm_volumes.csv --out results/region_ranges.csv

Every table is split at random 20 times: a given number of people define the ranges, the others are checked. Apart from
errors in the tables, nobody should be flagged. Regions are all columns except identifiers, covariates and scores.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.schema import Contract

SIZES, SPLITS = (520, 220, 150, 80, 40), 20
_NO_REGIONS = ("participant_id", "site", "diagnosis", "age", "sex", "icv", "fiq", "ados_total", "srs_total")


def flagged(regions: pd.DataFrame, n_training: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the percentage of held-out people who are flagged, by rule."""
    order = rng.permutation(len(regions))
    training, unused = regions.iloc[order[:n_training]], regions.iloc[order[n_training:]].to_numpy()
    contract = Contract.of_people(training)
    ends = {"feature_minimum": training.min(), "feature_median": training.median(), "feature_maximum": training.max()}
    early = replace(contract, quantile=None, **{name: tuple(of.tolist()) for name, of in ends.items()})
    rules = {"quantiles": contract, "smallest_and_largest": early}
    return {name: 100 * float(one.outside(unused).any(axis=1).mean()) for name, one in rules.items()}


def main() -> None:
    """Write a row for each table and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given, rows = parser.parse_args(), []
    for path in given.tables:
        regions = pd.read_csv(path).drop(columns=list(_NO_REGIONS), errors="ignore").astype(float)
        regions = regions[(regions > 0).all(axis=1)]  # fit and apply reject the others
        rng = np.random.default_rng(0)
        for size in (size for size in SIZES if size <= len(regions) / 2 + 10):
            splits = pd.DataFrame([flagged(regions, size, rng) for _ in range(SPLITS)])
            rows.append(
                {"table": path.stem, "n_training": size, "n_regions": regions.shape[1]}
                | splits.mean().round(2).to_dict()
            )
    pd.DataFrame(rows).to_csv(given.out, index=False)
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
