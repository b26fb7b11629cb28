"""Simulate studies of many sizes, and write what they found: the table that ``rindices power`` reads.

python experiments/planning.py --repeats 7 --out src/rindices/run/planning_grid.csv

Healthy people are drawn from the embedded population (IXI), with a random subset of its regions; age and sex are
covariates. One to three patterns each change a quarter of the regions. ``--check 40 --out results/planning_check.csv``
compares the command's estimates for other sizes with new studies.
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rindices import linear
from rindices.judging import spectrum
from rindices.run.first_look_and_power import (
    N_PERMUTATIONS,
    PATTERNS,
    REGIONS,
    SHARE,
    SIZES,
    STRENGTHS,
    chances,
    simulated_study,
)
from rindices.simulate.healthy_people import drawn_people


def stamp() -> str:
    """Return a fingerprint of the procedure behind the table: the constants of the look and of the linear model."""
    versions = {
        f"{module.__name__}.{name}": value
        for module in (spectrum, linear)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float | tuple)
    }
    return hashlib.sha256(repr((sorted(versions.items()), N_PERMUTATIONS, SHARE)).encode()).hexdigest()[:12]


def one_study(
    n_controls: int, n_patients: int, n_regions: int, patterns: int, strength: float, seed: int
) -> dict[str, float]:
    """Simulate a study, and return its sizes and results."""
    rng = np.random.default_rng([seed, n_controls, n_patients, n_regions, patterns, int(10 * strength)])
    people = drawn_people(n_controls, n_patients, rng)
    regions = rng.choice(people.regions, n_regions, replace=False)
    design = np.column_stack([people.table["age"].to_numpy(float), pd.factorize(people.table["sex"])[0]])
    healthy = people.table[list(regions)].to_numpy(float)
    found = simulated_study(healthy, design, n_controls, patterns, strength, int(rng.integers(2**31)))
    sizes = {"controls": n_controls, "patients": n_patients, "regions": n_regions}
    return sizes | {
        "patterns": patterns,
        "strength": strength,
        "found": int(found.found),
        "error": round(found.error, 4),
        "concordance": round(found.concordance, 4),
    }


def compared(n_studies: int, n_sizes: int = 16) -> pd.DataFrame:
    """Simulate studies of sizes that are not in the table, and compare them with the estimates of `chances`."""
    rng, rows = np.random.default_rng(2), []
    for _ in range(n_sizes):
        n_controls, n_patients = np.round(2 ** rng.uniform(*np.log2([min(SIZES), max(SIZES)]), 2)).astype(int).tolist()
        n_regions = int(rng.integers(min(REGIONS), max(REGIONS) + 1))
        for kind in chances(n_controls, n_patients, n_regions).to_dict("records"):
            sizes = n_controls, n_patients, n_regions, int(kind["patterns"]), kind["strength"]
            seeds = range(2000, 2000 + n_studies)
            studies = pd.DataFrame(Parallel(n_jobs=-1)(delayed(one_study)(*sizes, seed=seed) for seed in seeds))
            new = studies[["found", "error", "concordance"]].mean().add_prefix("new_").to_dict()
            rows.append({"controls": n_controls, "patients": n_patients, "regions": n_regions} | kind | new)
        print(f"{len(rows)} kinds of studies", flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    """Write a row for each size; the table is complete after each repeat of all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--check", type=int, metavar="STUDIES", help="compare what power says with so many new studies")
    options = parser.parse_args()
    if options.check:
        compared(options.check).to_csv(options.out, index=False, float_format="%.4f")
        return
    rows: list[dict[str, float]] = []
    for seed in range(options.repeats):
        cells = product(SIZES, SIZES, REGIONS, PATTERNS, STRENGTHS)
        rows += Parallel(n_jobs=-1)(delayed(one_study)(*sizes, seed=seed) for sizes in cells)
        cell = pd.DataFrame(rows).groupby(["controls", "patients", "regions", "patterns", "strength"])
        table = cell[["error", "concordance"]].mean().round(4)
        table.insert(0, "found", cell["found"].sum())
        table.insert(0, "studies", cell.size())
        text = table.reset_index().to_csv(index=False)
        options.out.write_text(f"# simulated studies, linear look and model, stamp {stamp()}\n{text}", encoding="utf-8")
        print(f"{len(rows)} studies", flush=True)


if __name__ == "__main__":
    main()
