"""Experiments that compare weightings of the objective: every weighting on every cohort, judged at every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from cases import Case, all_whole
from joblib import Parallel, delayed
from judging import judge
from many_cohorts import Brains, Group, Trained, steps_of_looks, train_all
from tables import Results, Scope

from rindices.settings import LossWeights, Preset

Named = tuple[Mapping[str, Any], LossWeights]  # a weighting and the columns that describe it


def compare(
    size: Scope,
    out: Path,
    weightings: Sequence[Named],
    *,
    preset: Preset,
    kinds: Sequence[str] | None = None,
    people: tuple[int, int] | None = None,
    controls: pd.DataFrame | None = None,
) -> None:
    """Train what is missing in `out`; a group is all kinds with one seed."""
    results = Results(out, ["seed"], comparable=not size.small)
    kinds, people = kinds or size.kinds, people or size.size
    of_seed = {seed: [Case(*people, kind, seed) for kind in kinds] for seed in size.seeds}
    weights = [one for _, one in weightings]
    groups = [
        Group(3, cases, [seed] * len(cases), weights, size.n_models)
        for seed, cases in of_seed.items()
        if not results.has(seed=seed)
    ]
    about = {"seeds": size.seeds, "n_controls": people[0], "n_patients": people[1], "n_models": size.n_models}
    results.describe(preset, **about, choose_from=size.preset.schedule.min_steps)
    if not groups:
        return
    with Parallel(n_jobs=-1) as cores:
        brains = all_whole([case for group in groups for case in group.cohorts], cores, controls)
        for group, trained in train_all(groups, brains, preset):
            results.add(_rows(group, trained, [name for name, _ in weightings], brains, preset, cores))


def _rows(
    group: Group,
    trained: Trained,
    names: Sequence[Mapping[str, Any]],
    brains: Mapping[Case, Brains],
    preset: Preset,
    cores: Parallel,
) -> list[dict[str, Any]]:
    """Judge a group on all cores; a row for each cohort, weighting and look."""
    jobs = [(place, case, which) for place, case in enumerate(group.cohorts) for which in range(len(names))]
    steps = steps_of_looks(preset)
    judged = cores(
        delayed(judge)(trained.of_cohort(place, case.n_patients)[:, which], steps, brains[case].truth)
        for place, case, which in jobs
    )
    return [
        {"kind": case.kind, "seed": case.seed} | dict(names[which]) | row
        for (_, case, which), rows in zip(jobs, judged, strict=True)
        for row in rows
    ]
