"""Does the verdict depend on the number of repetitions? Borderline cohorts with 3, 5 and 10 of them. Made for a GPU.

    python experiments/numbers/contradictions.py

Small cohorts with three mild or basic patterns, whose agreement is anywhere between none and full. Those 60 are
borderline whose agreement over ten repetitions is nearest to the threshold. *Not testable* contradicts nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from cases import made, on_all_cores, parser, say, write
from people import Given, Recipe
from together import Job, Looks, Pretrained, train_jobs

from rindices.judging.selection import Study, sweep
from rindices.judging.verdict import calibrated
from rindices.settings import fast
from rindices.training.chunks import Point
from rindices.training.execution import Execution

FIRST_SEED = 50_000
SIZES = {("basic", "uniform"): (50, 60), ("mild", "uniform"): (50, 75), ("mild", "mild"): (50, 75, 100, 150)}
NUMBERS = (3, 5, 10)
N_BORDERLINE = 60


def verdicts(given: Given, study: Study, looks: Looks) -> dict[str, object]:
    """Return the verdict after each number of repetitions."""
    row: dict[str, object] = dict(given.recipe._asdict())
    for number in NUMBERS:
        execution = Execution(Pretrained({3: looks}), models_per_chunk=number)
        verdict = calibrated(sweep(study, [Point(3, fast().weights.orthogonality)], number, execution), study)
        row |= {f"state{number}": verdict.state, f"agreement{number}": verdict.statistic}
        row["threshold"] = verdict.threshold
    return row


def main() -> None:
    """Train, judge, and count contradictions."""
    options = parser(__doc__).parse_args()
    steps, n_seeds = (40, 1) if options.small else (fast().schedule.max_steps, 25)
    preset = replace(fast(), schedule=replace(fast().schedule, min_steps=steps, max_steps=steps))
    asked = [
        Recipe(kind, FIRST_SEED + k, size, size, severities=severities)
        for (kind, severities), sizes in SIZES.items()
        for size in sizes
        for k in range(n_seeds)
    ]
    cohorts = made(asked, None, preset)
    place = {id(study): k for k, (_, study) in enumerate(cohorts)}
    jobs = [Job(study, 3, max(NUMBERS)) for _, study in cohorts]
    found = {place[id(job.study)]: looks for job, looks in train_jobs(jobs, preset, [steps])}
    table = pd.DataFrame(on_all_cores(verdicts, [(*cohorts[k], found[k]) for k in range(len(cohorts))]))
    table["distance"] = (table[f"agreement{max(NUMBERS)}"] - table["threshold"]).abs()
    table["borderline"] = table["distance"].rank(method="first") <= N_BORDERLINE
    states = table[[f"state{number}" for number in NUMBERS]]
    table["contradicts"] = np.logical_and(
        states.eq("reproducible").any(axis=1), states.eq("not reproducible").any(axis=1)
    )
    write(table.to_dict("records"), options.out / "contradictions.csv")
    near = table[table["borderline"]]
    print(f"{near['contradicts'].sum()} contradictions in {len(near)} borderline cohorts")
    print(f"(agreement within {near['distance'].max():.3f} of the threshold), {table['contradicts'].sum()} in all")
    for number in NUMBERS:
        print(number, "repetitions:", pd.Series.to_dict(near[f"state{number}"].value_counts()))
    say("done")


if __name__ == "__main__":
    main()
