"""Tables 1 and 7: the five decompositions, and ridge regression trained on the truth. Does not need a GPU.

    python experiments/paper/comparison.py --out results/baselines.csv
    python experiments/paper/comparison.py --controls healthy.csv --out results/real_baselines.csv
    python experiments/paper/comparison.py --matched --out results/matched_baselines.csv

Cohorts are those of table1.py (or, with --controls, of real_controls.py). Each decomposition has three components from
three random starts (Table 1) and, from one start, four to ten, of which the best three count ("practical upper bounds",
Table 7). Signs and order of components are those that fit the truth best. There is a row for each fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from cases import Case, Known, draw, ridge_ceiling
from joblib import Parallel, delayed
from scoring import METHODS, Baseline, best_components
from sklearn.exceptions import ConvergenceWarning
from table1 import SIZE_OF_REAL
from tables import Results, Scope, parser, scope

COMPONENTS = range(3, 11)
N_STARTS = 3


def fit(known: Known, method: str, n_components: int, start: int) -> float:
    """Return the concordance of the best components with the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Baseline(method, n_components, random_state=start).fit(known.regions, known.patient)
    return float(best_components(model.transform(known.regions[known.patient]), known.truth).concordances.mean())


def rows_of(
    cases: list[Case], controls: pd.DataFrame | None, size: Scope, cores: Parallel, methods: Sequence[str]
) -> list[dict]:
    """Fit all methods to some cohorts."""
    drawn = dict(zip(cases, cores(delayed(draw)(case, controls, size.spread) for case in cases), strict=True))
    small, numbers = size.small, COMPONENTS[:2] if size.small else COMPONENTS
    jobs = [
        (case, method, n, start)
        for case in cases
        for method in methods
        for n in reversed(numbers)  # the longest first, to keep all cores busy until the end
        for start in range(N_STARTS if n == numbers[0] and not small else 1)
    ]
    found = cores(delayed(fit)(drawn[case], *job) for case, *job in jobs)
    rows = [
        {
            "kind": case.kind,
            "seed": case.seed,
            "method": method,
            "n_components": n,
            "start": start,
            "concordance": value,
        }
        for (case, method, n, start), value in zip(jobs, found, strict=True)
    ]
    told = cores(delayed(ridge_ceiling)(known.regions[known.patient], known.truth) for known in drawn.values())
    return rows + [
        {"kind": case.kind, "seed": case.seed, "method": "ridge", "n_components": 3, "start": 0, "concordance": value}
        for case, value in zip(cases, told, strict=True)
    ]


def run(size: Scope, out: Path, controls: pd.DataFrame | None = None, methods: Sequence[str] = METHODS) -> None:
    """Fit what is missing; all kinds with one seed are a group."""
    results = Results(out, ["seed"], comparable=not size.small)
    people = SIZE_OF_REAL if controls is not None and not size.small else size.size
    results.describe(seeds=size.seeds, n_controls=people[0], n_patients=people[1])
    with Parallel(n_jobs=-1) as cores:
        for seed in size.seeds:
            if not results.has(seed=seed):
                cases = [Case(*people, kind, seed) for kind in size.kinds]
                results.add(rows_of(cases, controls, size, cores, methods))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    options = parser(__doc__, "baselines", matched=True)
    options.add_argument("--controls", type=Path, help="table of real healthy people to build the cohorts from")
    options.add_argument("--methods", nargs="+", default=METHODS, help="some of the decompositions")
    chosen = options.parse_args(arguments)
    size = scope(chosen.small, chosen.matched)
    people = None if chosen.controls is None else pd.read_csv(chosen.controls)
    run(size, chosen.out, people, chosen.methods)


if __name__ == "__main__":
    main()
