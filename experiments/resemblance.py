"""Are patterns made from ENIGMA's maps recognised, and unrelated ones not? Simulated cohorts, whole fits.

    python experiments/resemblance.py --cohorts 100 --out results/resemblance.csv
    … --cohorts 100 --patterns 1 --first 3000 --maps 0 --out results/resemblance_single.csv
    … --cohorts 60 --people 500 --first 1000 --strengths 2.5 --maps 0 --out results/resemblance_large.csv

A cohort has 250 controls and 250 patients (see `--people`) with 68 thicknesses: normal, with correlations between
neighbours on the cortex, between the hemispheres and, weakly, between all regions. Patients have two patterns (see
`--patterns`) of uniform severity, with a largest change of 1.5 or 2.5 sd at severity 1. ``enigma``: disorders drawn at
random. ``unrelated``: random maps with the spatial correlation of healthy thicknesses. Patterns are estimated by the
linear model and compared with all disorders.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from rindices import ContrastiveFactors
from rindices.analysis import resemblance

FOLDER = Path(__file__).parents[1] / "src" / "rindices" / "analysis" / "reference_maps"
N_PEOPLE, STRENGTHS = 250, (1.5, 2.5)
WIDTH, OTHER_SIDE, EVERYWHERE = 0.45, 0.5, 0.15  # width of neighbourhoods on the sphere (radius 1); correlations


def covariance() -> tuple[np.ndarray, list[str]]:
    """Return the covariance of thicknesses in healthy people, and their names."""
    table = pd.read_csv(FOLDER / "desikan_positions.csv")
    places = table[["x", "y", "z"]].to_numpy()
    near = np.exp(-(np.linalg.norm(places[:, None] - places, axis=-1) ** 2) / (2 * WIDTH**2))
    near = 0.6 * near + 0.4 * np.eye(len(near))
    both = np.kron(np.array([[1, OTHER_SIDE], [OTHER_SIDE, 1]]), near)
    names = [f"{side}h_{region}_thickness" for side in "lr" for region in table["region"]]
    return (1 - EVERYWHERE) * both + EVERYWHERE, names


def maps_of(
    kind: str, n_patterns: int, around: np.ndarray, names: list[str], rng: np.random.Generator
) -> tuple[np.ndarray, list[str]]:
    """Return maps whose largest change is 1, and their disorders."""
    if kind == "unrelated":
        drawn, whose = rng.multivariate_normal(np.zeros(len(around)), around, n_patterns), [""] * n_patterns
    else:
        table = pd.read_csv(FOLDER / "enigma.csv").query("measure == 'thickness'")
        table["name"] = table["side"].str[0] + "h_" + table["region"] + "_thickness"
        wide = table.pivot(index="disorder", columns="name", values="d")[names]
        whose = list(rng.choice(wide.index, n_patterns, replace=False))
        drawn = wide.loc[whose].to_numpy()
    return drawn / np.abs(drawn).max(axis=1, keepdims=True), whose


def one_cohort(kind: str, strength: float, seed: int, n_people: int, n_patterns: int) -> list[dict[str, object]]:
    """Simulate and fit a cohort, and return which disorder each pattern resembles."""
    rng = np.random.default_rng(seed)
    around, names = covariance()
    people = rng.multivariate_normal(np.zeros(len(names)), around, 2 * n_people)
    maps, whose = maps_of(kind, n_patterns, around, names, rng)
    people[n_people:] += rng.uniform(0, 1, (n_people, n_patterns)) @ (strength * maps)
    model = ContrastiveFactors(n_patterns=n_patterns, random_state=seed)
    model.fit(pd.DataFrame(people, columns=names), np.repeat([0, 1], n_people))
    found = model.changes_
    close = np.corrcoef(found, maps)[:n_patterns, n_patterns:]
    order = linear_sum_assignment(-close)[1]
    who = {"pattern": np.repeat(np.arange(n_patterns) + 1, len(names)), "region": names * n_patterns}
    long = pd.DataFrame(who | {"change_sd": found.ravel()})
    table, rows = resemblance(long, seed=seed), []
    for pattern, own in table.groupby("pattern"):
        truth, best = whose[order[pattern - 1]], own.sort_values("r").iloc[-1]
        rows.append(
            {
                "kind": kind,
                "strength": strength,
                "people": n_people,
                "seed": seed,
                "pattern": pattern,
                "truth": truth,
                "recovered": round(close[pattern - 1, order[pattern - 1]], 3),
                "best": best["disorder"],
                "r": round(best["r"], 3),
                "p_corrected": round(best["p_corrected"], 4),
                "true_p_corrected": round(own.set_index("disorder")["p_corrected"].get(truth, np.nan), 4),
                "beyond_p_corrected": round(own["beyond_p_corrected"].min(), 4),
            }
        )
    return rows


def unrelated_maps(n_maps: int, seed: int) -> list[dict[str, object]]:
    """Compare random maps directly with all disorders, without people, to see how exact the test is."""
    around, names = covariance()
    drawn = np.random.default_rng(seed).multivariate_normal(np.zeros(len(around)), around, n_maps)
    who = {"pattern": np.repeat(np.arange(n_maps), len(names)), "region": names * n_maps}
    best = resemblance(pd.DataFrame(who | {"change_sd": drawn.ravel()})).sort_values("r").groupby("pattern").last()
    about = {"kind": "unrelated, no people", "strength": 0.0, "seed": seed, "pattern": best.index, "truth": ""}
    columns = {"best": best["disorder"], "r": best["r"].round(3), "p_corrected": best["p_corrected"].round(4)}
    return pd.DataFrame(about | columns).to_dict("records")


def main() -> None:
    """Write a row for each pattern, and print proportions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=100, help="of each kind")
    parser.add_argument("--people", type=int, default=N_PEOPLE, help="controls, and as many patients")
    parser.add_argument("--patterns", type=int, default=2, help="in each cohort")
    parser.add_argument("--maps", type=int, default=400, help="random maps without people")
    parser.add_argument("--first", type=int, default=0, help="seed of the first cohort")
    parser.add_argument("--kinds", nargs="+", default=["enigma", "unrelated"])
    parser.add_argument("--strengths", nargs="+", type=float, default=STRENGTHS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [
        row
        for kind, strength in product(options.kinds, options.strengths)
        for seed in range(options.first, options.first + options.cohorts)
        for row in one_cohort(kind, strength, seed, options.people, options.patterns)
    ]
    table = pd.DataFrame(rows + (unrelated_maps(options.maps, options.first) if options.maps else []))
    table.to_csv(options.out, index=False)
    for kind, own in table.groupby(["kind", "strength"]):
        clear = own["p_corrected"] < 0.05
        right = (own["true_p_corrected"] < 0.05).mean()
        same = (own["best"] == own["truth"]).mean()
        shares = f"recognised {clear.mean():.3f}, the true one {right:.3f}, best {same:.3f}"
        print(f"{kind[0]}, {kind[1]} sd: {len(own)} patterns, {shares}")


if __name__ == "__main__":
    main()
