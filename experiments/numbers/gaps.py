"""Test whether imputed cells reveal the diagnosis: tables without disease, imputed as for training.

    python experiments/numbers/gaps.py            # writes results/gaps.csv
    python experiments/numbers/gaps.py --show

`auc` is the AUC of five-fold linear discriminants with a shrunk covariance, in tables without disease, complete or with
a proportion of cells missing at random. `kept` is the proportion of the difference between mild patients and controls,
in regions that patterns change, that imputed cells retain. `state` is the verdict of a search with linear models.

    python experiments/numbers/gaps.py --fits     # writes results/gaps_fits.csv: ten minutes of a core per cohort

There, five repetitions of the default are trained on 300 + 300 people with gaps, and score new people with complete
data or with a tenth of the cells missing: concordance with the truth, and coverage of intervals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import parser, row_by_row
from figures import unit
from people import Recipe, make
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_score

from rindices import SurrealGAN, SurrealGANSearch
from rindices.judging.agreement_and_misfit import concordance, match_patterns
from rindices.preprocessing.missing import fill_training

FIRST_SEED = 141_000
FIRST_FIT = 421_000
SHARES = (0.0, 0.1, 0.2, 0.35)


def jobs(small: bool) -> list[tuple[str, int, int, int]]:
    """Return the measure, controls, patients and seed of each job."""
    kinds = [("auc", 492, 900)] * 8 + [("auc", 100, 200)] * 40 + [("state", 100, 200)] * 60 + [("kept", 100, 200)] * 16
    rows = [(*kind, FIRST_SEED + place) for place, kind in enumerate(kinds)]
    return rows[20::40] if small else rows


def measured(what: str, n_controls: int, n_patients: int, seed: int) -> list[dict[str, object]]:
    """Remove cells from a cohort and impute them."""
    given = make(Recipe("mild" if what == "kept" else "null", seed, n_controls, n_patients, n_fresh=40, covariates=2))
    complete, order = given.regions.to_numpy(), np.random.default_rng([seed, 5]).random(given.regions.shape)
    rows = []
    for share in (0.2,) if what == "state" else SHARES:
        gaps = order < share
        row: dict[str, object] = {"what": what, "n_controls": n_controls, "seed": seed, "gaps": share}
        if what == "state":
            few = order.argsort(axis=1).argsort(axis=1) < int(0.2 * order.shape[1])  # at most a fifth per person
            search = SurrealGANSearch(preset="linear", n_repetitions=3, random_state=seed)
            search.fit(given.regions.mask(gaps & few), given.patient, given.covariates)
            rows.append(row | {"state": search.verdict_.state, "value": search.verdict_.evidence.p})
            continue
        filled = fill_training(np.where(gaps, np.nan, complete), given.covariates, None, seed)[0]
        if what == "auc":
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            value = cross_val_score(rule, filled, given.patient, cv=folds, scoring="roc_auc").mean()
        elif share:
            changed = (np.abs(given.full_change) > 0).any(axis=0)
            value = _difference(filled, gaps & changed, given.patient) / _difference(
                complete, gaps & changed, given.patient
            )
        else:
            value = 1.0
        rows.append(row | {"value": value})
    return rows


def fitted(kind: str, share: float, seed: int) -> list[dict[str, object]]:
    """Fit a cohort with gaps, and score new people."""
    given = make(Recipe(kind, seed, 300, 300, n_fresh=300, covariates=2))
    rng, shape = np.random.default_rng([seed, 6]), given.regions.shape
    model = SurrealGAN(3, n_repetitions=5, random_state=0)
    model.fit(given.regions.mask(_gaps(rng, shape, share)), given.patient, given.covariates)
    matched, _ = match_patterns(given.truth, model.r_indices_[given.patient])
    factor, ill, rows = unit(model, given, matched), given.fresh_patient, []
    about = {"kind": kind, "seed": seed, "gaps": share, "left_out": len(model.left_out_)}
    for missing in (0.0, 0.1):
        people = given.fresh[ill].mask(_gaps(rng, (ill.sum(), shape[1]), missing))
        covariates, true = given.fresh_covariates[ill], given.fresh_truth
        scores = model.transform(people, covariates)[:, matched]
        low, high = (side[:, matched] for side in model.intervals(people, covariates))
        held, raw = ((low <= of) & (of <= high) for of in (true * factor, true))
        found = [concordance(true[:, k], scores[:, k]) for k in range(true.shape[1])]
        rows.append(
            about
            | {"missing": missing, "concordance": float(np.mean(found)), "inside": float(held.mean())}
            | {"raw": float(raw.mean()), "width": float((high - low).mean()), "n": held.size}
        )
    return rows


def _gaps(rng: np.random.Generator, shape: tuple[int, int], share: float) -> np.ndarray:
    """Return which cells are missing: a proportion of all, and at most a fifth per person."""
    order = rng.random(shape)
    return (order < share) & (order.argsort(axis=1).argsort(axis=1) < int(0.2 * shape[1]))


def _difference(regions: np.ndarray, cells: np.ndarray, patient: np.ndarray) -> float:
    """Return the mean difference between patients and controls in the given cells, in sd of controls."""
    z = (regions - regions[~patient].mean(axis=0)) / regions[~patient].std(axis=0)
    return float(z[cells & patient[:, None]].mean() - z[cells & ~patient[:, None]].mean())


def show(table: pd.DataFrame) -> None:
    """Print means with standard errors, and counts of verdicts."""
    numbers = table[table["what"] != "state"]
    print(numbers.groupby(["what", "n_controls", "gaps"])["value"].agg(["mean", "sem", "count"]).round(4).to_string())
    if (of := table[table["what"] == "state"]).size:
        print(of["state"].value_counts().to_string())


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--fits", action="store_true")
    options = arguments.parse_args()
    if options.fits:
        seeds = range(FIRST_FIT, FIRST_FIT + (1 if options.small else 4))
        cases = [(kind, share, seed) for seed in seeds for kind in ("basic", "mild") for share in (0.0, 0.1, 0.2)]
        found = row_by_row(fitted, cases, options.out / "gaps_fits.csv")
        print(found.groupby(["kind", "gaps", "missing"]).mean().round(4).to_string())
        return
    path = options.out / "gaps.csv"
    if not options.show:
        row_by_row(measured, jobs(options.small), path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
