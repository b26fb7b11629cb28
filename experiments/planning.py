"""Simulate studies of many sizes, and write what each found: the table that ``rindices power`` reads.

python experiments/planning.py --repeats 4 --out src/rindices/run/planning_grid.csv

Healthy people are drawn from the embedded population (IXI), with as many of its regions as a study has; age and sex are
covariates. One to three patterns change a quarter of the regions each.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rindices.run.first_look_and_power import CONTROLS, PATIENTS, PATTERNS, REGIONS, STRENGTHS, simulated_study, stamp
from rindices.simulate.healthy_people import drawn_people


def one_study(
    n_controls: int, n_patients: int, n_regions: int, patterns: int, strength: float, seed: int
) -> dict[str, float]:
    """Simulate a study."""
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


def main() -> None:
    """Write a row for each study; after each repeat of all sizes the table is whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows: list[dict[str, float]] = []
    for seed in range(options.repeats):
        cells = product(CONTROLS, PATIENTS, REGIONS, PATTERNS, STRENGTHS)
        rows += Parallel(n_jobs=-1)(delayed(one_study)(*sizes, seed=seed) for sizes in cells)
        text = pd.DataFrame(rows).to_csv(index=False)
        options.out.write_text(f"# simulated studies, linear look and model, stamp {stamp()}\n{text}", encoding="utf-8")
        print(f"{len(rows)} studies", flush=True)


if __name__ == "__main__":
    main()
