"""How many models are needed for a stable consensus, and how many people for a given accuracy? Intended for a GPU.

    python experiments/paper/models_and_people.py --out results/models_and_people.csv

Models: 30 repetitions are trained once on each cohort, and a consensus of 2 to 30 of them is drawn 20 times. Each is
compared with another that shares no model. People: cohorts of 100 to 2,000 patients and half as many controls, ten
models. Preset `blind`, looks chosen by agreement, five kinds of cohorts, three cohorts each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, all_whole
from joblib import Parallel, delayed
from judging import agree, best_look, together
from many_cohorts import Group, steps_of_looks, train_all
from tables import Results, Scope, parser, scope

from rindices.core import devices
from rindices.judging.agreement_and_misfit import pattern_concordance

COUNTS = (2, 3, 5, 10, 15, 20, 30)
PATIENTS = (100, 200, 400, 800, 1200, 2000)
N_DRAWS = 20


def draw_consensus(looks: np.ndarray, steps: list[int], truth: np.ndarray, counts: Sequence[int]) -> list[dict]:
    """Draw random models; return the concordance of their consensus, and its agreement with one of as many others.

    The look is chosen once, by the agreement of all models: the question is what more models add at a good look.
    """
    place, _ = best_look(looks, steps, 0)
    members, rng = looks[place].astype(float), np.random.default_rng(0)
    rows = []
    for count in counts:
        for draw in range(1 if count == len(members) else N_DRAWS):
            order = rng.permutation(len(members))
            one, other = (_consensus(members[some]) for some in (order[:count], order[count : 2 * count]))
            row: dict[str, Any] = {"n_models": count, "draw": draw, "step": steps[place]}
            row["concordance"] = np.nan if one is None else pattern_concordance(truth, one)
            known = one is not None and other is not None and 2 * count <= len(members)
            row["agreement_of_two"] = pattern_concordance(one, other) if known else np.nan
            rows.append(row)
    return rows


def _consensus(members: np.ndarray) -> np.ndarray | None:
    agreed = agree(members) if len(members) > 1 else None
    return None if agreed is None else together(members, agreed)


def consensus_of(looks: np.ndarray, steps: list[int], truth: np.ndarray) -> list[dict[str, Any]]:
    """Describe the consensus at the look with the highest agreement."""
    place, agreed = best_look(looks, steps, 0)
    if agreed is None:
        return [{"n_models": looks.shape[1]}]
    average = together(looks[place].astype(float), agreed)
    found = {"n_models": looks.shape[1], "step": steps[place], "pattern_agreement": agreed.value}
    return [found | {"concordance": pattern_concordance(truth, average)}]


def ridge(patients: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean concordance of ridge regression trained on the truth, in five folds."""
    from baselines import supervised_ceilings

    table = supervised_ceilings(patients, truth, pattern_concordance)
    return float(table.loc[table["method"] == "ridge", "test"].mean())


def groups_of(size: Scope, results: Results) -> dict[str, Group]:
    """Return the missing groups: one of many models, and one of many sizes."""
    weights, most = [size.preset.weights], size.n_models if size.small else max(COUNTS)
    same = [Case(*size.size, kind, seed) for kind in size.kinds for seed in size.seeds]
    numbers = size.size[1:] if size.small else PATIENTS
    sizes = [Case(n // 2, n, kind, seed) for n in numbers for kind in size.kinds for seed in size.seeds]
    groups = {
        "models": Group(3, same, [case.seed for case in same], weights, most),
        "people": Group(3, sizes, [case.seed for case in sizes], weights, size.n_models),
    }
    return {name: group for name, group in groups.items() if not results.has(question=name)}


def run(size: Scope, out: Path) -> None:
    """Train what is missing, and judge."""
    results = Results(out, ["question"], comparable=not size.small)
    preset, steps = size.preset, steps_of_looks(size.preset)
    results.describe(preset, seeds=size.seeds, n_draws=N_DRAWS)
    with Parallel(n_jobs=-1) as cores:
        groups = groups_of(size, results)
        if not groups:
            return
        brains = all_whole([case for group in groups.values() for case in group.cohorts], cores)
        for group, trained in train_all(list(groups.values()), brains, preset):
            question = next(name for name, one in groups.items() if one is group)
            own = [trained.of_cohort(place, case.n_patients)[:, 0] for place, case in enumerate(group.cohorts)]
            truths = [brains[case].truth for case in group.cohorts]
            if question == "models":
                counts = [count for count in COUNTS if count <= group.n_repetitions]
                judge = [delayed(draw_consensus)(*of, counts) for of in _each(own, steps, truths)]
                ceilings = [np.nan] * len(own)
            else:
                judge = [delayed(consensus_of)(*of) for of in _each(own, steps, truths)]
                ceilings = cores(delayed(ridge)(brains[case].patients, brains[case].truth) for case in group.cohorts)
            results.add(
                [
                    {"question": question, "kind": case.kind, "seed": case.seed, "n_patients": case.n_patients}
                    | {"ridge": ceiling}
                    | row
                    for case, ceiling, rows in zip(group.cohorts, ceilings, cores(judge), strict=True)
                    for row in rows
                ]
            )


def _each(own: list[np.ndarray], steps: list[int], truths: list[np.ndarray]) -> list[tuple]:
    return [(looks, steps, truth) for looks, truth in zip(own, truths, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "models_and_people").parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
