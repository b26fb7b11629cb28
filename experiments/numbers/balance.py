"""Measure how often randomised studies are called confounded, and how often an age difference is detected.

    python experiments/numbers/balance.py            # writes results/balance.csv (ten minutes on one core)
    python experiments/numbers/balance.py --show

People are drawn, with their age and sex, from 3,000 simulated healthy ones; patients lose up to a tenth of every sixth
region. Further variables are noise: numbers, some of them correlated with age, and categories. `before` is the rule of
earlier versions: any variable with an uncorrected p < 0.05.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import on_all_cores, parser, write

from rindices import simulate_cohort
from rindices.analysis import group_balance
from rindices.judging.verdict_and_separation import differences_that_count

FIRST_SEED = 120_000
STUDIES, AT_SITES = 300, 2_000


def cells() -> list[tuple[int, int, float, int]]:
    """Return people per group, number of variables, age difference in sd, and number of sites."""
    null = [(size, number, 0.0, 1) for size in (50, 100, 150) for number in (1, 2, 6, 20)]
    return [*null, (100, 20, 0.0, 4), (100, 20, 0.5, 1), (100, 6, 0.5, 1), (100, 20, 0.5, 4)]


def study(
    people: pd.DataFrame, size: int, number: int, older: float, n_sites: int, seed: int
) -> tuple[pd.DataFrame, np.ndarray, pd.Series | None, pd.DataFrame]:
    """Return the variables, who is a patient, the sites and the regions."""
    rng = np.random.default_rng(seed)
    age = ((people["age"] - people["age"].mean()) / people["age"].std()).to_numpy()
    site = np.zeros(len(age), int) if n_sites == 1 else np.argsort(np.argsort(age + 2 * rng.standard_normal(len(age))))
    site = site * n_sites // len(age)
    tilt = np.exp(older * age)  # shifts the mean of normally distributed ages by `older` sd
    rows = np.concatenate([rng.choice(len(age), size, replace=False, p=p / p.sum()) for p in (np.ones(len(age)), tilt)])
    patient = np.arange(2 * size) >= size
    regions = people.drop(columns=["age", "sex"]).iloc[rows].reset_index(drop=True)
    lost = 0.1 * rng.uniform(size=(2 * size, 1)) * patient[:, None] * (np.arange(regions.shape[1]) % 6 == 0)
    variables = people[["age", "sex"]].iloc[rows].reset_index(drop=True)
    for k in range(2, number - (n_sites > 1)):
        value = rng.standard_normal(2 * size) + (0.5 * age[rows] if k % 3 == 0 else 0)
        variables[f"x{k}"] = pd.Series(np.digitize(value, [-1, 0, 1])).astype(str) if k % 3 == 1 else value
    sites = None if n_sites == 1 else pd.Series(site[rows].astype(str))
    if sites is not None:
        variables["site"] = sites
    return variables.iloc[:, :number], patient, sites, regions * (1 - lost)


def judged(people: pd.DataFrame, cell: tuple[int, int, float, int], seed: int) -> dict[str, object]:
    """Compare the groups of one study."""
    variables, patient, site, regions = study(people, *cell, seed)
    found = group_balance(variables, patient, site, regions)
    called = differences_that_count(found)
    before = differences_that_count(found.assign(imbalanced=(found["p"] < 0.05) & (found["difference"].abs() > 0.1)))
    row = dict(zip(("a_group", "variables", "older_sd", "sites"), cell, strict=True)) | {"seed": seed}
    return row | {"confounded": bool(called), "age": "age" in called, "before": bool(before)}


def show(table: pd.DataFrame) -> None:
    """Print percentages of studies."""
    of = table.groupby(["older_sd", "sites", "a_group", "variables"])
    print(of[["confounded", "age", "before"]].mean().mul(100).round(1).assign(studies=of.size()).to_string())


def main() -> None:
    """Judge all studies."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    if not options.show:
        pool = simulate_cohort("null", n_controls=3000, n_patients=20, seed=FIRST_SEED).table
        pool = pool[pool["diagnosis"] == "CN"].drop(columns=["participant_id", "diagnosis"]).reset_index(drop=True)
        n_studies = 2 if options.small else STUDIES
        jobs = [
            (pool, cell, 3000 * (20 + k) + one)
            for k, cell in enumerate(cells())
            for one in range(n_studies if options.small or cell[-1] == 1 else AT_SITES)
        ]
        write(on_all_cores(judged, jobs), options.out / "balance.csv")
    show(pd.read_csv(options.out / "balance.csv"))


if __name__ == "__main__":
    main()
