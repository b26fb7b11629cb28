"""Coverage of intervals of hazard ratios when severities come from a model of the same people, in whole fits.

python experiments/prognosis.py --cohorts 400 --out results/prognosis.csv

A cohort has 100 controls and 200 patients, the regions changed by two patterns of the kind "basic" (24 or more), and
severities estimated by ``preset="linear"``. The hazard of an event rises with the *true* severity of one pattern (log
hazard 1.5 at severity 1) and with age; a third of the people are censored. The true hazard ratio of an *estimated*
severity is that of a Cox model of the same people with 100 independent draws of their times. For type I errors, the
same people have times that depend only on age.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rindices import SurrealGAN, simulate_cohort
from rindices.analysis.prognosis import FollowUp, _quick_cox, prognosis

FIRST_SEED = 170_000
N_CONTROLS, N_PATIENTS, N_REGIONS, N_PATTERNS = 100, 200, 24, 2
SLOPE, AGE, DRAWS = 1.5, 0.03, 100


def drawn(log_hazard: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return follow-up times and event indicators."""
    time, end = (
        rng.exponential(np.exp(-log_hazard)),
        rng.exponential(2 * np.exp(-np.median(log_hazard)), len(log_hazard)),
    )
    return np.minimum(time, end), (time <= end).astype(float)


def one_cohort(seed: int) -> list[dict[str, float]]:
    """Fit a cohort, and return a row for each pattern."""
    rng = np.random.default_rng(seed)
    cohort = simulate_cohort("basic", n_controls=N_CONTROLS, n_patients=N_PATIENTS, n_patterns=N_PATTERNS, seed=seed)
    table, truth = cohort.table, cohort.truth.set_index("participant_id")
    changed = sorted({name for names in cohort.patterns.values() for name in names})
    every = [name for name in table if name not in ("participant_id", "diagnosis", "age", "sex")]
    regions = (changed + [name for name in every if name not in changed])[: max(N_REGIONS, len(changed))]
    patient = (table["diagnosis"] == "PT").to_numpy()
    model = SurrealGAN(N_PATTERNS, preset="linear", random_state=seed)
    model.fit(table[regions], patient, table[["age", "sex"]])
    scores = model.transform(table.loc[patient, regions], table.loc[patient, ["age", "sex"]])
    severities = pd.DataFrame(model.scale_.severities(scores), columns=["severity1", "severity2"])
    age = table.loc[patient, ["age"]].reset_index(drop=True)
    true = truth.loc[table.loc[patient, "participant_id"], "s1"].to_numpy()
    by_age = AGE * (age["age"] - age["age"].mean()).to_numpy()
    found = prognosis(severities, FollowUp(*drawn(SLOPE * true + by_age, rng)), age, n_resamples=0)
    null = prognosis(severities, FollowUp(*drawn(by_age, rng)), age, n_resamples=0)
    many = [drawn(SLOPE * true + by_age, rng) for _ in range(DRAWS)]
    rows = []
    for place, name in enumerate(severities):
        columns = np.column_stack([severities[name], by_age])
        limit = _quick_cox(*map(np.concatenate, zip(*many, strict=True)), np.tile(columns, (DRAWS, 1)))[0]
        own = found.iloc[place]
        rows.append(
            {
                "seed": seed,
                "pattern": place + 1,
                "correlation": round(float(np.corrcoef(severities[name], true)[0, 1]), 3),
                "true_ratio": round(float(np.exp(0.1 * limit)), 4),
                **{name: round(float(own[name]), 4) for name in ("hazard_ratio", "low", "high")},
                "n_events": int(own["n_events"]),
                "held": bool(own["low"] <= np.exp(0.1 * limit) <= own["high"]),
                "p_without_effect": round(float(null["p"].iloc[place]), 4),
            }
        )
    return rows


def main() -> None:
    """Write a row for each pattern, and print coverage and type I errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + options.cohorts)
    found = Parallel(n_jobs=-1)(delayed(one_cohort)(seed) for seed in seeds)
    table = pd.DataFrame([row for rows in found for row in rows])
    table.to_csv(options.out, index=False)
    wrong = (table["p_without_effect"] < 0.05).mean()
    print(f"{len(table)} patterns of {options.cohorts} cohorts: {table['held'].mean():.3f} held, type I {wrong:.3f}")


if __name__ == "__main__":
    main()
