"""Fit the embedded reference population: a few hundred kilobytes of real data become one small parameter file.

Run as ``python experiments/fit_reference.py --table ixi_gm_volumes.csv --out reference_population.json``.
The table has participant_id, age, sex (0/1) and one column per region.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.covariance import LedoitWolf

AGE_LIMIT = 70  # the paper's controls are under 70
N_PROBABILITIES = 33

HEADER = {
    "source": (
        "IXI, Imperial College London and partners (https://brain-development.org/ixi-dataset/); "
        "regional grey-matter volumes in mL from CAT12, Neuromorphometrics atlas, people under 70"
    ),
    "licence": "CC BY-SA 3.0",
    "made_by": "experiments/fit_reference.py of rindices",
}


def probabilities() -> np.ndarray:
    """Return 0, 1 and values equally spaced as normal scores, which describe the tails as finely as the middle."""
    middle = norm.cdf(np.linspace(-2.8, 2.8, N_PROBABILITIES - 2))
    return np.concatenate([[0.0], middle, [1.0]]).round(5)


def shrunk_correlation(residuals: np.ndarray) -> np.ndarray:
    """Return the Ledoit–Wolf correlation of the residuals' normal scores, as a Gaussian copula needs it."""
    scores = norm.ppf((rankdata(residuals, axis=0) - 0.5) / len(residuals))
    covariance = LedoitWolf().fit(scores).covariance_
    sd = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sd, sd)


def fit(table: pd.DataFrame) -> dict[str, Any]:
    """Fit covariate effects, residual quantiles and residual correlation to the people under 70."""
    people = table[table["age"] < AGE_LIMIT]
    regions = [name for name in table.columns if name not in ("participant_id", "age", "sex")]
    volumes = people[regions].to_numpy(float)
    age, sex = people["age"].to_numpy(float), people["sex"].to_numpy(float)
    age_mean, share = round(age.mean(), 4), round(sex.mean(), 6)
    square_mean = round(((age - age_mean) ** 2).mean(), 4)
    terms = np.column_stack([np.ones(len(age)), age - age_mean, (age - age_mean) ** 2 - square_mean, sex - share])
    effects = np.linalg.lstsq(terms, volumes, rcond=None)[0].T
    residuals = volumes - terms @ effects.T
    levels = probabilities()
    correlation = shrunk_correlation(residuals)
    return HEADER | {
        "n_people": len(people),
        "unit": "mL",
        "age_mean": age_mean,
        "age_square_mean": square_mean,
        "share_of_sex_1": share,
        "probabilities": levels.tolist(),
        "age_quantiles": np.quantile(age, levels).round(2).tolist(),
        "regions": regions,
        "smallest": volumes.min(axis=0).round(4).tolist(),
        "effect_names": ["mean", "per year", "per squared year", "sex 1 against sex 0"],
        "effects": [[round(m, 4), round(a, 6), round(q, 8), round(s, 5)] for m, a, q, s in effects.tolist()],
        "residual_quantiles": np.quantile(residuals, levels, axis=0).T.round(4).tolist(),
        "correlation_upper": [row[i + 1 :].round(4).tolist() for i, row in enumerate(correlation[:-1])],
    }


def to_json(parameters: dict[str, Any]) -> str:
    """Return JSON with one line per entry and one line per row of a matrix, to keep the file readable."""
    entries = []
    for key, value in parameters.items():
        if isinstance(value, list) and isinstance(value[0], list):
            rows = ",\n".join(f"  {json.dumps(row, separators=(',', ':'))}" for row in value)
            entries.append(f'"{key}": [\n{rows}\n]')
        else:
            entries.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(entries) + "\n}\n"


def main() -> None:
    """Fit the reference population, write it and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="CSV of healthy people: age, sex, regions")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    parameters = fit(pd.read_csv(arguments.table))
    beside = arguments.out.with_name(arguments.out.name + ".partial")
    beside.write_text(to_json(parameters), encoding="utf-8")
    os.replace(beside, arguments.out)
    print(
        f"{arguments.out}: {parameters['n_people']} people under {AGE_LIMIT}, {len(parameters['regions'])} regions, "
        f"{arguments.out.stat().st_size / 1000:.0f} kB"
    )


if __name__ == "__main__":
    main()
