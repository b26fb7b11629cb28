"""A part of Table 1 small enough for two cores: basic and mild, one cohort each, the default λ, three models.

    python experiments/paper/reduced.py --out runs/reproduce/reduced.csv        # about three minutes on two cores

Trains through the estimator and compares the result with that of the whole experiment, if results/table1.csv exists.
The two may differ: three models are fewer than ten.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
from cases import Case, draw, ridge_ceiling
from judging import chosen_looks
from tables import RESULTS, Results, Scope, parser, scope

from rindices import SurrealGAN
from rindices.judging.agreement_and_misfit import pattern_concordance

KINDS = ("basic", "mild")
N_MODELS = 3


def whole_experiment(kind: str, seed: int, orthogonality: float) -> float:
    """Return the consensus of ten models on the same cohort, or NaN."""
    path = RESULTS / "table1.csv"
    if not path.exists():
        return float("nan")
    table = pd.read_csv(path)
    own = table[(table["kind"] == kind) & (table["seed"] == seed) & (table["orthogonality"] == orthogonality)]
    found = chosen_looks(own, ["kind"], 10_000)
    return float(found["consensus"].iloc[0]) if len(found) else float("nan")


def run(size: Scope, out: Path) -> None:
    """Fit what is missing, and print it."""
    results = Results(out, ["kind"], comparable=not size.small)
    results.describe(size.preset, seed=size.seeds[0], n_models=N_MODELS)
    seed = size.seeds[0]
    for kind in KINDS:
        if results.has(kind=kind):
            continue
        known = draw(Case(*size.size, kind, seed))
        model = SurrealGAN(n_repetitions=N_MODELS, preset=size.preset, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(known.regions, known.patient)
        row = {"kind": kind, "seed": seed, "agreement": model.agreement_.pattern_agreement, "step": model.step_}
        row["consensus"] = pattern_concordance(known.truth, model.r_indices_[known.patient])
        row["ridge"] = ridge_ceiling(known.regions[known.patient], known.truth)
        row["ten_models"] = whole_experiment(kind, seed, size.preset.weights.orthogonality)
        results.add([row])
    print(results.table.round(4).to_string(index=False))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "reduced").parse_args(arguments)
    run(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
