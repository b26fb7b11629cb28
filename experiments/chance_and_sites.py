"""Test for a group difference before training, at real sites: rates of false positives and of detection.

    JAX_PLATFORMS=cpu LOKY_MAX_CPU_COUNT=1 python experiments/chance_and_sites.py --table abide1_volumes.csv --jobs 16

Healthy people of ABIDE I, from sites with 24 or more of them, are labelled at random: half of each site as patients
(``even``), or three quarters (``few controls``). With ``disease``, half are patients, and two patterns, each in a
quarter of the regions, reduce their volumes by 0 to 1 sd. Age (as a curve), sex and head size are covariates, and sites
are harmonised. Only group statistics are written.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from rindices import SurrealGAN
from rindices.cohort import read_cohort
from rindices.judging.study import training_set
from rindices.presets import Correction, linear

RESULTS = Path(__file__).parents[1] / "results"
SEEDS = range(940_000, 940_100)
SHARES = {"even": 0.5, "few controls": 0.75, "disease": 0.5}  # proportions of patients at each site
FEWEST = 24  # healthy people per site
STRENGTH = 1.0  # loss in sd at severity 1


def looked(case: tuple[str, int], path: Path) -> dict[str, object]:
    """Label people at random, and test for a difference."""
    kind, seed = case
    cohort = read_cohort(path, control="CN", patients="ASD", covariates="age,sex,icv", site="site", drop_missing=True)
    site = cohort.covariates["site"]
    own = (cohort.group == "control").to_numpy()
    own = own & (site.map(site[own].value_counts()).fillna(0).to_numpy() >= FEWEST)
    regions, covariates = cohort.features[own].to_numpy(float, copy=True), cohort.covariates[own]
    rng = np.random.default_rng(seed)
    order = pd.Series(rng.random(own.sum()), index=covariates.index).groupby(covariates["site"]).rank(pct=True)
    patient = (order <= SHARES[kind]).to_numpy()
    if kind == "disease":
        severities = rng.uniform(size=(patient.sum(), 2))
        maps = (rng.random((2, regions.shape[1])) < 0.25) * STRENGTH * regions[~patient].std(axis=0)
        regions[patient] -= severities @ maps
    learner = SurrealGAN(preset="linear", correction=Correction(smooth=("age",), site="site"), random_state=seed)
    seen = training_set(learner, linear(), regions, patient.astype(int), covariates).study.spectrum[0]
    groups = {"controls": int((~patient).sum()), "patients": int(patient.sum())}
    found = {"p": seen.p, "p_spread": seen.p_spread, "p_shift": seen.p_shift, "found_again": seen.found_again}
    return {"kind": kind, "seed": seed, "sites": covariates["site"].nunique()} | groups | found


def main() -> None:
    """Test all tables, and print how often a difference is found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--table", type=Path, required=True)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--out", type=Path, default=RESULTS / "chance_and_sites.csv")
    chosen = options.parse_args()
    cases = [(kind, seed) for kind in SHARES for seed in SEEDS]
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        table = pd.DataFrame(pool.map(partial(looked, path=chosen.table), cases, chunksize=5))
    table.to_csv(chosen.out, index=False, float_format="%.4g")
    values = ["p", "p_spread", "p_shift"]
    print((table.set_index("kind")[values] <= 0.05).groupby("kind").mean().round(3))
    print(table.groupby("kind")[["controls", "patients", "sites"]].median())
    print(table.groupby("kind")["found_again"].value_counts().unstack(fill_value=0))


if __name__ == "__main__":
    main()
