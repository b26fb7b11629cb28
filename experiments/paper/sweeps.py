"""Compare weightings of the objective: every weighting on every cohort, judged at every look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from cases import Case, all_whole
from joblib import Parallel, delayed
from judging import chosen_looks, judge
from many_cohorts import Brains, Group, Trained, steps_of_looks, train_all
from tables import Results, Scope

from rindices.presets import LossWeights, Preset

Named = tuple[Mapping[str, Any], LossWeights]  # a weighting and the columns that describe it
Chosen = Mapping[tuple[str, int], float]  # λ of a cohort, by kind and seed


def chosen_orthogonality(table: Path) -> Chosen:
    """Return the λ with the best agreement on each cohort, from a table of `table1.py`."""
    if not table.is_file():
        raise SystemExit(f"{table} is missing: run the experiment that writes it into the same folder first.")
    looks = pd.read_csv(table)
    best = chosen_looks(looks, ["kind", "seed"], int(looks["step"].max()))
    return {(row.kind, row.seed): row.orthogonality for row in best.itertuples()}


def compare(
    size: Scope,
    out: Path,
    weightings: Callable[[LossWeights], Sequence[Named]],
    *,
    preset: Preset,
    kinds: Sequence[str] | None = None,
    people: tuple[int, int] | None = None,
    controls: pd.DataFrame | None = None,
    chosen: Chosen | None = None,
) -> None:
    """Train what is missing in `out`, all cohorts together, each with its own λ if given in `chosen`."""
    results = Results(out, ["seed"], comparable=not size.small)
    kinds, people = kinds or size.kinds, people or size.size
    seeds = [seed for seed in size.seeds if not results.has(seed=seed)]
    cases = [Case(*people, kind, seed) for seed in seeds for kind in kinds]
    own = {case: (chosen or {}).get((case.kind, case.seed), preset.weights.orthogonality) for case in cases}
    named = {case: weightings(preset.weights._replace(orthogonality=value)) for case, value in own.items()}
    about = {"seeds": size.seeds, "n_controls": people[0], "n_patients": people[1], "n_models": size.n_models}
    results.describe(preset, **about, choose_from=size.preset.schedule.min_steps)
    if not cases:
        return
    weights = [[one for _, one in named[case]] for case in cases]
    group = Group(3, cases, [case.seed for case in cases], weights, size.n_models)
    with Parallel(n_jobs=-1) as cores:
        brains = all_whole(cases, cores, controls, size.spread)
        for _, trained in train_all([group], brains, preset):
            results.add(_rows(group, trained, named, brains, preset, cores))


def _rows(
    group: Group,
    trained: Trained,
    named: Mapping[Case, Sequence[Named]],
    brains: Mapping[Case, Brains],
    preset: Preset,
    cores: Parallel,
) -> list[dict[str, Any]]:
    """Judge a group on all cores → a row for each cohort, weighting and look."""
    jobs = [(place, case, which) for place, case in enumerate(group.cohorts) for which in range(len(named[case]))]
    steps = steps_of_looks(preset)
    judged = cores(
        delayed(judge)(trained.of_cohort(place, case.n_patients)[:, which], steps, brains[case].truth)
        for place, case, which in jobs
    )
    return [
        {"kind": case.kind, "seed": case.seed, "orthogonality": named[case][which][1].orthogonality}
        | dict(named[case][which][0])
        | row
        for (_, case, which), rows in zip(jobs, judged, strict=True)
        for row in rows
    ]
