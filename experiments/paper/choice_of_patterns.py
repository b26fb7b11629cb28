"""How often is the correct number of patterns chosen? Cohorts with 2, 3 and 4 true patterns. Intended for a GPU.

    python experiments/paper/choice_of_patterns.py --out results/choice_of_patterns.csv

Ten cohorts each (and ten without disease), M = 1 to 5, eight models, settings of the preset `blind`. A row per cohort
and M has the highest agreement over looks. M = 1 is shown but never chosen, because its agreement is inflated.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from cases import Case, all_whole
from joblib import Parallel, delayed
from judging import chosen_looks, judge
from many_cohorts import Group, steps_of_looks, train_all
from tables import Results, Scope, parser, scope

from rindices.core import devices

TRUE_PATTERNS = (2, 3, 4)
TRIED = (3, 2, 4, 5, 1)
N_MODELS = 8
N_COHORTS = 10


def best_agreement(looks: np.ndarray, steps: list[int]) -> dict[str, float]:
    """Return the look with the highest agreement, without using the truth."""
    table = pd.DataFrame(judge(looks, steps, None)).assign(of="one")
    found = chosen_looks(table, ["of"], 0)
    return found.drop(columns="of").iloc[0].to_dict() if len(found) else {"step": steps[-1]}


def cohorts_of(size: Scope, kind: str) -> list[Case]:
    """Return cohorts with each number of true patterns, and cohorts without disease."""
    seeds = [size.seeds[0] + k for k in range(1 if size.small else N_COHORTS)]
    numbers = TRUE_PATTERNS[:2] if size.small else TRUE_PATTERNS
    cases = [Case(*size.size, kind, seed, n) for n in numbers for seed in seeds]
    return cases + [Case(*size.size, "null", seed) for seed in seeds]


def run(size: Scope, out: Path, kind: str = "basic") -> None:
    """Train what is missing; a group consists of all cohorts with one M."""
    results = Results(out, ["n_patterns"], comparable=not size.small)
    preset = size.preset
    cases = cohorts_of(size, kind)
    n_models = size.n_models if size.small else N_MODELS
    tried = TRIED[:2] if size.small else TRIED
    groups = [
        Group(n, cases, [case.seed for case in cases], [preset.weights], n_models)
        for n in tried
        if not results.has(n_patterns=n)
    ]
    results.describe(preset, kind=kind, seeds=sorted({case.seed for case in cases}), n_models=n_models)
    if not groups:
        return
    steps = steps_of_looks(preset)
    with Parallel(n_jobs=-1) as cores:
        brains = all_whole(cases, cores)
        for group, trained in train_all(groups, brains, preset):
            found = cores(
                delayed(best_agreement)(trained.of_cohort(place, case.n_patients)[:, 0], steps)
                for place, case in enumerate(cases)
            )
            results.add(
                [
                    {"kind": case.kind, "seed": case.seed, "n_patterns": group.n_patterns}
                    | {"true_patterns": 0 if case.kind == "null" else case.n_patterns}
                    | row
                    for case, row in zip(cases, found, strict=True)
                ]
            )


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    options = parser(__doc__, "choice_of_patterns")
    options.add_argument("--kind", default="basic", help="of the cohorts with a disease")
    chosen = options.parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out, chosen.kind)


if __name__ == "__main__":
    main()
