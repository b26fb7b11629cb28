"""Measure how far R-indices move under unimportant changes, what their spread covers, and errors of correlations.

    python experiments/numbers/stability.py         # writes results/stability.csv; 5 minutes of a core per cohort
    python experiments/numbers/stability.py --show

A cohort of twice 300 controls and 600 patients is halved. A model is fitted to one half; its patients are scored by
that model with values rounded to three digits and with 1 % noise, by a model with another seed, and by a model of the
other half: other people with the same disease. `covered` is the proportion within 1.96 times the reported spread
(`r1_sd`, the sd over repetitions). `correlation_error` is the mean absolute error of learned correlations over pairs of
patterns.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from cases import parser, row_by_row
from people import Recipe, make

from rindices import SurrealGAN
from rindices.judging.agreement_and_misfit import concordance, match_patterns

FIRST_SEED, REPETITIONS = 460_000, 5
KINDS, CORRELATIONS = ("basic", "mild"), (0.0, 0.6)
SIZES = {"n_controls": 300, "n_patients": 600}
BOUND = 1.96
FEW_DIGITS, NOISE = 3, 0.01


def compared(kind: str, correlation: float, seed: int) -> list[dict[str, object]]:
    """Fit both halves of a cohort, one of them twice; return a row per kind of change."""
    sizes = {name: 2 * number for name, number in SIZES.items()}
    given, rng = make(Recipe(kind, seed, correlation=correlation, **sizes)), np.random.default_rng(seed)
    first = np.zeros(len(given.patient), bool)
    for group in (given.patient, ~given.patient):
        first[rng.permutation(np.flatnonzero(group))[: group.sum() // 2]] = True

    def fitted(who: np.ndarray, random: int) -> SurrealGAN:
        model = SurrealGAN(3, n_repetitions=REPETITIONS, random_state=random)
        return model.fit(given.regions[who], given.patient[who])

    with ThreadPoolExecutor() as threads:
        models = list(threads.map(fitted, (first, first, ~first), (seed, seed + 1, seed)))
    people, truth = given.regions[first & given.patient], given.truth[first[given.patient]]
    values = people.to_numpy()
    unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - (FEW_DIGITS - 1))
    scored = {
        "scored with three digits": models[0].transform(_like(people, np.round(values / unit) * unit)),
        "scored with 1 % of noise": models[0].transform(
            _like(people, values * (1 + NOISE * rng.standard_normal(values.shape)))
        ),
        "trained with other random numbers": models[1].transform(people),
        "trained on other people": models[2].transform(people),
        "truth": truth,
    }
    own, spread = models[0].r_indices_[given.patient[first]], models[0].spread_[given.patient[first]]
    order, _ = match_patterns(truth, own)
    assumed = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    learned = np.abs(models[0].correlation_[np.ix_(order, order)] - assumed)[np.triu_indices(3, 1)]
    rows = []
    for what, other in scored.items():
        apart = other[:, match_patterns(own, other)[0]] - own
        in_order = np.mean([concordance(own[:, k], own[:, k] + apart[:, k]) for k in range(3)])
        rows.append(
            {
                "kind": kind,
                "correlation": correlation,
                "seed": seed,
                "what": what,
                "concordance": in_order,
                "rms": np.sqrt((apart**2).mean()),
                "spread": np.sqrt((spread**2).mean()),
                "covered": (np.abs(apart) <= BOUND * spread).mean(),
                "correlation_error": learned.mean(),
            }
        )
    return rows


def _like(people: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=people.columns)


def main() -> None:
    """Measure everything, and print means."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    path = options.out / "stability.csv"
    if not options.show:
        jobs = [(kind, correlation, FIRST_SEED) for kind in KINDS for correlation in CORRELATIONS]
        row_by_row(compared, jobs[:1] if options.small else jobs, path)
    table = pd.read_csv(path)
    print(table.groupby("what", sort=False).mean(numeric_only=True).drop(columns=["seed", "correlation"]).round(4))
    print(table.groupby(["kind", "correlation"])["correlation_error"].mean().round(3))


if __name__ == "__main__":
    main()
