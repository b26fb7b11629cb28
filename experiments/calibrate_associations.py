"""Check the coverage of 95 % intervals of associations and the rate of false discoveries.

    python experiments/calibrate_associations.py --out results/calibrate_associations.csv

The default model, trained with three repetitions (or one given with ``--model``), estimates severities in two simulated
populations of 50,000 people: patients with uniform severities, and a whole study of mild disease (one third controls,
few patients with a severe pattern), whose severities are skewed. Scores with a known correlation with one severity are
added: linear with normal and skewed noise, cut into two and into three categories, and with a covariate related to
both. The truth is the coefficient in all 50,000. Samples are then drawn: a row per population, statistic, score, noise,
correlation and sample size has the coverage of the intervals of `rindices.analysis.associations`, and that of textbook
intervals (Fisher's z; noncentral F). A true η² of 0 cannot be below an interval: its nominal coverage is 97.5 %.

Finally, data sets without any association, three patterns by ten variables: how often is any q < 0.05?
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from rindices import SurrealGAN, load_model, simulate_cohort
from rindices.analysis import associations
from rindices.analysis.statistics import share_limits

NOT_REGIONS = ["participant_id", "diagnosis", "age", "sex"]
CORRELATIONS = (0.0, 0.2, 0.4, 0.6)
SIZES = (100, 200, 400)
SHARES = {"halves": (0.5, 0.5), "a fifth": (0.8, 0.2), "thirds": (0.34, 0.33, 0.33), "unequal": (0.6, 0.25, 0.15)}
NOISES = ("normal", "skewed")


def populations(model_path: Path | None, n_people: int, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Return the severities of many simulated people from a model trained on others."""
    if model_path is None:
        table = simulate_cohort("basic", seed=0).table
        model = SurrealGAN(n_repetitions=3, random_state=0)
        model.fit(table.drop(columns=NOT_REGIONS), table["diagnosis"] == "PT")
    else:
        model = load_model(model_path)
    made = simulate_cohort("basic", n_controls=n_people // 3, n_patients=n_people, seed=1)
    severities = model.scale_.severities(model.transform(made.table.drop(columns=NOT_REGIONS)))
    scores = pd.DataFrame(severities, columns=["severity1", "severity2", "severity3"])
    patient = (made.table["diagnosis"] == "PT").to_numpy()
    true = made.table[["participant_id"]].merge(made.truth, "left").drop(columns="participant_id").fillna(0).to_numpy()
    weights = np.where(patient, np.prod((1 - true) ** 2, axis=1), 0.0)
    mild = rng.choice(len(scores), n_people - n_people // 3, p=weights / weights.sum())
    everybody = np.concatenate([np.flatnonzero(~patient), mild])
    return {"patients": scores[patient].reset_index(drop=True), "mild": scores.iloc[everybody].reset_index(drop=True)}


def scores_of(severity: np.ndarray, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores related to `severity`, named ``kind|noise|correlation``, and a covariate related to both."""
    own = (severity - severity.mean()) / severity.std()
    between = 0.3 * own + np.sqrt(1 - 0.3**2) * rng.standard_normal(len(own))
    columns = {}
    for noise, correlation in product(NOISES, CORRELATIONS):
        drawn = rng.standard_normal(len(own)) if noise == "normal" else rng.exponential(size=len(own)) - 1
        score = correlation * own + np.sqrt(1 - correlation**2) * drawn
        columns[f"line|{noise}|{correlation}"] = score
        columns[f"line and covariate|{noise}|{correlation}"] = score + 0.5 * between
        for name, shares in SHARES.items():
            cuts = np.quantile(score, np.cumsum(shares)[:-1])
            columns[f"{name}|{noise}|{correlation}"] = np.array(list("ABC"))[np.searchsorted(cuts, score)]
    return pd.DataFrame(columns), pd.DataFrame({"between": between})


def textbook(found: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals that assume normal scores: Fisher's for r, from the noncentral F distribution for η²."""
    centre, half = np.arctanh(found["coefficient"]), norm.isf(0.025) / np.sqrt(found["n"] - 3)
    low, high = np.tanh(centre - half), np.tanh(centre + half)
    eta = (found["kind"] == "categorical").to_numpy()
    shares, within = found["coefficient"].to_numpy()[eta], int(found["n"].iloc[0]) - 3
    limits = share_limits(shares / (1 - shares) * within / 2, 2, within)
    low[eta], high[eta] = limits
    return low.to_numpy(), high.to_numpy()


def coverage(severities: pd.DataFrame, n_sets: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the coverage of intervals, from `n_sets` data sets per pattern and sample size."""
    rows = []
    for pattern in severities:
        variables, covariates = scores_of(severities[pattern].to_numpy(), rng)
        truth = associations(severities[[pattern]], variables, covariates)
        # η² of unrelated categories is 0; its value in 50,000 people is bias.
        zero = truth["variable"].str.endswith("|0.0") & (truth["kind"] == "categorical")
        true, true_partial = (np.where(zero, 0.0, truth[name]) for name in ("coefficient", "partial"))
        for size, _ in product(SIZES, range(n_sets)):
            chosen = rng.integers(len(severities), size=size)
            found = associations(severities[[pattern]].iloc[chosen], variables.iloc[chosen], covariates.iloc[chosen])
            low, high = textbook(found)
            rows.append(
                pd.DataFrame(
                    {
                        "variable": found["variable"],
                        "n": size,
                        "statistic": found["statistic"],
                        "truth": true,
                        "held": (found["low"] <= true) & (true <= found["high"]),
                        "textbook_held": (low <= true) & (true <= high),
                        "partial_held": (found["partial_low"] <= true_partial)
                        & (true_partial <= found["partial_high"]),
                    }
                )[found["coefficient"].notna()]
            )
    return summarise(pd.concat(rows, ignore_index=True))


def summarise(held: pd.DataFrame) -> pd.DataFrame:
    """Return a row per statistic, kind of score, noise, correlation and number of people."""
    held[["score", "noise", "correlation"]] = held["variable"].str.split("|", expand=True)
    keys = ["statistic", "score", "noise", "correlation", "n"]
    counted = held.groupby(keys).agg(
        truth=("truth", "mean"),
        data_sets=("held", "size"),
        coverage=("held", "mean"),
        textbook_coverage=("textbook_held", "mean"),
        partial_coverage=("partial_held", "mean"),
    )
    return counted.round(4).reset_index()


def unrelated(n_people: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return ten variables that correlate weakly with each other and with nothing else."""
    common = 0.5 * rng.standard_normal((n_people, 1)) + rng.standard_normal((n_people, 10))
    columns: dict[str, np.ndarray] = {f"normal{k}": common[:, k] for k in range(4)}
    columns |= {f"skewed{k}": np.exp(common[:, k] / 2) for k in range(4, 6)}
    columns |= {f"two{k}": np.where(common[:, k] > 0.5, "yes", "no") for k in range(6, 8)}
    columns |= {f"three{k}": np.array(list("ABC"))[np.searchsorted([-0.5, 0.7], common[:, k])] for k in range(8, 10)}
    return pd.DataFrame(columns)


def false_discoveries(severities: pd.DataFrame, n_sets: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return how often any q is below 0.05 although nothing is associated."""
    rows = []
    for size in SIZES:
        any_q, any_partial = [], []
        for _ in range(n_sets):
            chosen = severities.iloc[rng.integers(len(severities), size=size)]
            covariates = pd.DataFrame({"age": rng.normal(70, 8, size), "sex": rng.choice(["F", "M"], size)})
            found = associations(chosen, unrelated(size, rng), covariates)
            any_q.append((found["q"] < 0.05).any())
            any_partial.append((found["partial_q"] < 0.05).any())
        rows.append(("any q < 0.05", size, n_sets, np.mean(any_q), np.mean(any_partial)))
    columns = ["statistic", "n", "data_sets", "false_discoveries", "partial_false_discoveries"]
    return pd.DataFrame(rows, columns=columns).round(4)


def main() -> None:
    """Measure coverage and false discoveries, print them and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a model file of three patterns instead of a new training")
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--sets", type=int, default=334, help="data sets a pattern and number of people")
    parser.add_argument("--seed", type=int, default=0)
    out = Path(__file__).parents[1] / "results" / "calibrate_associations.csv"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    rng, tables = np.random.default_rng(options.seed), []
    for name, severities in populations(options.model, options.people, rng).items():
        print(
            name, "skewness", severities.skew().round(2).tolist(), "kurtosis", (severities.kurt() + 3).round(2).tolist()
        )
        print(severities.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).round(2), flush=True)
        found = [coverage(severities, options.sets, rng), false_discoveries(severities, 3 * options.sets, rng)]
        tables.append(pd.concat(found, ignore_index=True).assign(people=name))
    table = pd.concat(tables, ignore_index=True)
    table = table[["people", *table.columns.drop("people")]]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out, index=False)
    with pd.option_context("display.max_rows", None, "display.width", 200):
        print(table.to_string())


if __name__ == "__main__":
    main()
