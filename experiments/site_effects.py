"""How well are site differences estimated in controls, and how much of them remains in others? Takes seconds.

    python experiments/site_effects.py                            # simulated sites with known offsets and scales
    python experiments/site_effects.py --table cohort.csv         # a table with site, diagnosis, age, sex and icv

Simulated: errors of offsets are compared with the error of a site's plain mean, sd / √n of its controls. In the table:
five folds over controls; everything, including the correction for age, sex and head size, is estimated in four of them.
Even unbiased estimates of site means leave an ω² of about sites / training controls in the fifth.

A classifier trained on the same controls from which sites were removed falls below chance after harmonisation, because
the remaining site effects have opposite signs in these and in others. It is therefore also trained and tested
(`accuracy_apart`) within one half of the controls, with everything estimated in the other half.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from rindices.preprocessing import SCALED_SD, CovariateResidualizer, Preprocessing, SiteHarmonizer
from rindices.presets import Correction
from rindices.simulate import simulate_cohort

RESULTS = Path(__file__).parents[1] / "results"
SIZES = np.linspace(20, 100, 10).astype(int)  # controls per simulated site
SHIFT_SD, SCALES = 0.5, (0.8, 1.25)  # in sd of healthy people of the same age and sex
NOT_REGIONS = ("participant_id", "site", "diagnosis", "age", "sex", "icv", "fiq", "ados_total", "srs_total")
CORRECTIONS = {"before": Correction(smooth=["age"]), "after": Correction(smooth=["age"], site="site")}


def simulated(seed: int) -> pd.DataFrame:
    """Return mean squared errors of offsets and scales in ten simulated sites, and their theoretical values."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(len(SIZES)), SIZES)
    table = simulate_cohort("null", n_controls=len(site), n_patients=20, seed=seed).table
    table = table[table["diagnosis"] == "CN"].reset_index(drop=True)
    people = table[["age", "sex"]].assign(site=[f"site{number:02d}" for number in site])
    healthy = table.drop(columns=["participant_id", "diagnosis", "age", "sex"]).to_numpy(float)
    effects = CovariateResidualizer.fit(healthy, people[["age", "sex"]]).effect(people)
    left = healthy - healthy.mean(axis=0) - effects
    sd, shape = left.std(axis=0), (len(SIZES), healthy.shape[1])
    offsets, scales = sd * rng.normal(0, SHIFT_SD, shape), rng.uniform(*SCALES, shape)
    volumes = healthy - left + offsets[site] + scales[site] * left
    fitted = SiteHarmonizer.fit(volumes, people, "site")
    truth = (offsets - SIZES @ offsets / SIZES.sum()) / sd
    without = volumes - fitted.mean - fitted.kept.effect(people)
    plain = np.stack([without[site == k].mean(axis=0) for k in range(len(SIZES))]) / sd
    relative = fitted.scales / (scales / np.sqrt(SIZES @ scales**2 / SIZES.sum())) - 1
    errors = {
        "plain": (plain - truth) ** 2,
        "shrunk": (fitted.offsets * fitted.sd / sd - truth) ** 2,
        "theory": scales**2 / SIZES[:, None],
        "scale": relative**2,
        "scale_theory": 1 / (2 * np.broadcast_to(SIZES[:, None], shape)),
    }
    return pd.DataFrame({name: squares.mean(axis=1) for name, squares in errors.items()}).assign(n_controls=SIZES)


def omega_squared(values: np.ndarray, site: np.ndarray) -> np.ndarray:
    """Return the fraction of each column's variance that sites explain, without the bias of η²."""
    names = np.unique(site)
    within = sum(((values[site == name] - values[site == name].mean(axis=0)) ** 2).sum(axis=0) for name in names)
    total = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    mean_square = within / (len(values) - len(names))
    return (total - within - (len(names) - 1) * mean_square) / (total + mean_square)


def held_out(controls: pd.DataFrame, strength: float) -> pd.DataFrame:
    """Return the variance explained by site in held-out controls, and how well site is predicted, before and after."""
    regions = controls.drop(columns=list(NOT_REGIONS), errors="ignore").to_numpy(float)
    people, site = controls[["age", "sex", "icv", "site"]].reset_index(drop=True), controls["site"].to_numpy()
    classifier = LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)
    rows = []
    for name, correction in CORRECTIONS.items():
        table = people if correction.site else people.drop(columns="site")
        omega, told, apart = [], np.empty_like(site), np.empty_like(site)
        for train, test in folds(5, site):
            scores = corrected(regions, table, train, correction)
            omega.append(omega_squared(scores[test], site[test]))
            told[test] = classifier.fit(scores[train], site[train]).predict(scores[test])
        for estimated, rest in folds(2, site):
            scores = corrected(regions, table, estimated, correction)[rest]
            for train, test in folds(5, site[rest]):
                apart[rest[test]] = classifier.fit(scores[train], site[rest][train]).predict(scores[test])
        quartiles = np.quantile(np.mean(omega, axis=0), [0.25, 0.5, 0.75])
        accuracy = [balanced_accuracy_score(site, guess) for guess in (told, apart)]
        rows.append((name, len(controls), len(set(site)), *quartiles, *accuracy, 1 / len(set(site))))
    names = ["correction", "n_controls", "n_sites", "omega2_q25", "omega2_median", "omega2_q75"]
    return pd.DataFrame(rows, columns=[*names, "accuracy", "accuracy_apart", "chance"])


def folds(number: int, site: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds stratified by site."""
    return list(StratifiedKFold(number, shuffle=True, random_state=0).split(site, site))


def corrected(regions: np.ndarray, people: pd.DataFrame, train: np.ndarray, correction: Correction) -> np.ndarray:
    """Return everybody's regions in sd of the training controls."""
    fitted = Preprocessing.fit(regions[train], people.iloc[train], correction)
    return (fitted.transform(regions, people) - 1) / SCALED_SD


def main() -> None:
    """Measure simulated sites, or those of a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--control", default="CN", help="diagnosis of controls in the table")
    parser.add_argument("--strength", type=float, default=0.01, help="inverse of the classifier's penalty")
    parser.add_argument("--cohorts", type=int, default=20, help="simulated")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.table is not None:
        table = pd.read_csv(options.table)
        controls = table[(table["diagnosis"] == options.control) & (table["icv"] > 0)]
        result, name = held_out(controls, options.strength), "site_effects_held_out.csv"
    else:
        squares = pd.concat([simulated(seed) for seed in range(options.cohorts)])
        by_size = np.sqrt(squares.groupby("n_controls").mean())
        overall = np.sqrt(squares.drop(columns="n_controls").mean()).to_frame("all").T
        result, name = (
            pd.concat([by_size, overall]).rename_axis("n_controls").reset_index(),
            "site_effects_simulated.csv",
        )
        result["plain_ratio"], result["shrunk_ratio"] = (
            result[kind] / result["theory"] for kind in ("plain", "shrunk")
        )
    print(result.round(4).to_string(index=False))
    result.round(4).to_csv(options.out / name, index=False)


if __name__ == "__main__":
    main()
