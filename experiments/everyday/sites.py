"""Measure errors of severities at sites that were not in training, against the number of local controls.

    python experiments/everyday/sites.py FOLDER                      # weights from trained.py; simulated sites
    python experiments/everyday/sites.py FOLDER --table abide.csv    # real people, some sites left out in turn
    python experiments/everyday/sites.py --show                      # prints the means of results/new_sites.csv

Errors are measured in local controls that were not used for adaptation. `bias` is the error of their mean severity:
root mean square over sites and patterns, less the sampling error of so few people. The reference is, at simulated
sites, the severities of the same people at a training site; in real people, the mean held-out severity of the training
controls. With `prior`, offsets are shrunk towards those of the training sites instead of towards those of the other
regions of the new site.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent))
from trained import Made, clean_of, models

from rindices import SurrealGAN
from rindices.core import inference
from rindices.preprocessing import Preprocessing
from rindices.scoring.intervals import severity_intervals

RESULTS = Path(__file__).parents[2] / "results" / "new_sites.csv"
SIZES = (5, 10, 20, 40, 50, 100)
DRAWS = 4  # of the controls used for adaptation
LEAST_UNUSED = 12


def severities(model: SurrealGAN, preprocessing: Preprocessing, regions: np.ndarray, table: pd.DataFrame) -> np.ndarray:
    """Return the severities of people with a given preprocessing."""
    return model.scale_.severities(r_indices(model, preprocessing, regions, table))


def r_indices(model: SurrealGAN, preprocessing: Preprocessing, regions: np.ndarray, table: pd.DataFrame) -> np.ndarray:
    """Return the R-indices of people with a given preprocessing."""
    return inference.r_indices(model.models_, preprocessing.transform(regions, table)).mean(axis=0)


def by_prior(known: Preprocessing, fitted: Preprocessing, n_controls: int, plain: np.ndarray) -> Preprocessing:
    """Return a preprocessing whose last site has offsets shrunk according to the spread of the training sites'."""
    spread = (known.harmonizer.offsets**2).mean()
    delta = fitted.harmonizer.scales[-1:] ** 2
    offsets = fitted.harmonizer.offsets.copy()
    offsets[-1] = n_controls * spread * plain / (n_controls * spread + delta)[0]
    return replace(fitted, harmonizer=replace(fitted.harmonizer, offsets=offsets))


def measure(of: Made, model: SurrealGAN) -> Iterator[dict[str, object]]:
    """Yield the errors at each site for each number of local controls."""
    names, known = list(of.given.regions.columns), model.preprocessing_
    usual = model.scale_.severities(model.held_out_r_indices_[~of.given.patient]).mean(axis=0)
    clean = clean_of(of)
    for place, (site, people) in enumerate(of.aside.groupby("site")):
        regions, table = people[names].to_numpy(float), people.drop(columns=names).reset_index(drop=True)
        truth = None if clean is None else model.scale_.severities(r_indices(model, known, *clean(people)))
        for size in (0, *SIZES):
            if len(people) - size < LEAST_UNUSED:
                continue
            for draw in range(DRAWS if size else 1):
                order = np.random.default_rng([of.case.recipe.seed, place, size, draw]).permutation(len(people))
                used, rest = order[:size], order[size:] if size else order
                row = {"purpose": of.case.purpose, "kind": of.case.recipe.kind, "site": site, "n_used": size}
                row |= {"draw": draw, "n_unused": len(rest)}
                ways = {"uncorrected": known}
                if size:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fitted = known.with_new_sites(regions[used], table.iloc[used])
                    kept = fitted.harmonizer
                    sized = regions[used] - kept.mean - kept.kept.effect(table.iloc[used])
                    prior = by_prior(known, fitted, size, (sized / kept.sd).mean(axis=0))
                    ways = {"adapted": fitted, "prior": prior}
                for way, preprocessing in ways.items():
                    own = table.iloc[rest] if size else known.leave_new_sites(table.iloc[rest])
                    found = r_indices(model, preprocessing, regions[rest], own)
                    severity = model.scale_.severities(found)
                    target = usual if truth is None else truth[rest]
                    more = np.full(found.shape, 1 / np.sqrt(size) if size else 0) * model.scale_.reference.std(axis=1)
                    zero = [(severity_intervals(model.scale_, found, 0.95, sd)[0] <= 0).mean() for sd in (more, None)]
                    for pattern, off in enumerate((severity - target).mean(axis=0)):
                        spread = 0.0 if truth is None else np.sqrt(((severity - target)[:, pattern] ** 2).mean())
                        chance = (severity - target)[:, pattern].std(ddof=1) / np.sqrt(len(rest))
                        about = {"way": way, "pattern": pattern + 1, "bias": off, "chance": chance, "rmse": spread}
                        yield row | about | {"zero_inside": zero[0], "zero_inside_not_widened": zero[1]}


def show(table: pd.DataFrame) -> None:
    """Print root mean squares over sites, and the remaining proportion of the bias."""
    keys = ["purpose", "kind", "way", "n_used"]
    found = table.assign(square=table["bias"] ** 2 - table["chance"] ** 2).groupby(keys, sort=False)
    columns = {
        "bias": np.sqrt(found["square"].mean().clip(lower=0)),
        "rmse": found["rmse"].mean(),
        "sites": found["site"].nunique(),
    }
    means = pd.DataFrame(columns).join(found[["zero_inside", "zero_inside_not_widened"]].mean())
    without = means.xs("uncorrected", level="way")["bias"].droplevel("n_used")
    left = means["bias"] / [without.loc[key[:2]] for key in means.index]
    print(means.assign(left=left).round(4).to_string())


def main() -> None:
    """Measure all trained cohorts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        table = None if options.table is None else pd.read_csv(options.table)
        found = models(options.weights, table, ("sites", "abide"))
        rows = [row for of, model in found for row in measure(of, model)]
        pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.5g")
    show(pd.read_csv(RESULTS))


if __name__ == "__main__":
    main()
