"""Do severities fall with age if the truth does not? A percentage loss is smaller if a region is already small.

    python experiments/severity_and_age.py                    # linear models: minutes on processor cores
    python experiments/severity_and_age.py --preset fast      # the default: for a GPU
    python experiments/severity_and_age.py --controls TABLE   # disease simulated in real healthy people

In these cohorts, disease takes the same percentage of a region at any age, and regions shrink with age. Severities are
estimated in sd of controls, after correction for age, so an equal percentage is a smaller change in older people. With
logarithms, equal percentages are equal changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from rindices import SurrealGAN, simulate_cohort
from rindices.judging.agreement_and_misfit import match_patterns

RESULTS = Path(__file__).parents[1] / "results"
SEEDS = range(910_000, 910_010)
KEYS = ["preset", "people", "scale", "seed", "pattern"]
SCALES = {"volumes": lambda volumes: volumes, "logarithms": lambda volumes: np.log(1000 * volumes)}  # of mm³


def correlations(seed: int, preset: str, healthy: pd.DataFrame | None) -> list[dict[str, object]]:
    """Return the correlations of patients' true and estimated severities with age."""
    cohort = simulate_cohort("basic", seed=seed, controls=healthy)
    people, patient = cohort.table[["age", "sex"]], cohort.table["diagnosis"] == "PT"
    volumes = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    ages, truth = people["age"][patient].to_numpy(), cohort.truth.drop(columns="participant_id").to_numpy()
    rows: list[dict[str, object]] = []
    for scale, scaled in SCALES.items():
        model = SurrealGAN(truth.shape[1], preset=preset, output="severities", random_state=seed)
        severities = model.fit_transform(scaled(volumes), patient, people)[patient]
        order, concordances = match_patterns(truth, severities)
        for pattern, own in enumerate(order):
            both = {"true": truth[:, pattern], "severity": severities[:, own]}
            row = {"preset": preset, "people": "simulated" if healthy is None else "real", "scale": scale}
            row |= {"seed": seed, "pattern": pattern + 1}
            row |= {f"{name}_with_age": np.corrcoef(of, ages)[0, 1] for name, of in both.items()}
            rows.append(row | {"concordance": concordances[pattern]})
    return rows


def main() -> None:
    """Measure all cohorts, and print means with standard errors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--preset", default="linear")
    options.add_argument("--controls", type=Path)
    options.add_argument("--out", type=Path, default=RESULTS / "severity_and_age.csv")
    chosen = options.parse_args()
    healthy = None if chosen.controls is None else pd.read_csv(chosen.controls)
    table = pd.DataFrame([row for seed in SEEDS for row in correlations(seed, chosen.preset, healthy)])
    if chosen.out.exists():
        table = pd.concat([pd.read_csv(chosen.out), table]).drop_duplicates(KEYS, keep="last")
    table.to_csv(chosen.out, index=False, float_format="%.4g")
    means = table.groupby(KEYS[:-1]).mean().groupby(KEYS[:-2])
    print(means.agg(["mean", "sem"]).drop(columns="pattern").round(3).to_string())


if __name__ == "__main__":
    main()
