"""How many patterns are found by training from random weights? Searches over one to five. Intended for a GPU.

    python experiments/numbers/choice.py --controls healthy.csv            # writes results/choice.csv
    python experiments/numbers/choice.py --show                            # prints its counts

As in a user's search, each setting first gets three repetitions, and the contenders then get five; the choice is the
package's own. Seeds of cohorts are not used anywhere else.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
from cases import RESULTS, made, on_all_cores, parser, say, write
from people import Given, Recipe
from together import Job, Looks, Pretrained, train_jobs

from rindices.judging.selection import FIRST_REPETITIONS, choose, judge, rivals, sweep
from rindices.judging.study import Study
from rindices.presets import Preset, blind
from rindices.training.chunks import Point, cut, members_of
from rindices.training.execution import Execution

NUMBERS = (1, 2, 3, 4, 5)
FIRST_SEED = 30_000


def recipes(n_cohorts: int, real: bool, development: bool) -> dict[str, list[Recipe]]:
    """Return all cohorts by purpose."""
    first = FIRST_SEED - 1000 if development else FIRST_SEED
    seeds = range(first, first + n_cohorts)
    rows = {
        f"{kind} {m}": [Recipe(kind, seed, n_patterns=m) for seed in seeds]
        for kind in ("basic", "mild")
        for m in (1, 2, 3, 4)
    }
    few = range(first, first + max(1, n_cohorts // 2))
    for kind in ("basic", "mild"):
        rows[f"{kind} 3, absent"] = [Recipe(kind, seed, severities="absent") for seed in few]
        rows[f"{kind} 3, correlated"] = [Recipe(kind, seed, correlation=0.6) for seed in few]
        rows[f"{kind} 3, skewed"] = [Recipe(kind, seed, severities="mild") for seed in few]
        rows[f"{kind} 3, covariates"] = [Recipe(kind, seed, covariates=2) for seed in few]
    for m in (1, 2, 3, 4):
        rows[f"basic {m}, 100 + 100"] = [Recipe("basic", seed, 100, 100, n_patterns=m) for seed in seeds]
    rows["no disease"] = [Recipe("null", seed) for seed in range(first, first + 6 * n_cohorts)]
    rows["no disease, 30 covariates"] = [
        Recipe("null", seed, 100, 100, covariates=30) for seed in range(first, first + 2 * n_cohorts)
    ]
    if real:
        rows["real 3"] = [Recipe(kind, seed, 149, 298, real=True) for kind in ("basic", "mild") for seed in few]
        rows["real, no disease"] = [
            Recipe("null", seed, 149, 298, real=True) for seed in range(first, first + 9 * n_cohorts)
        ]
    return rows


def points(numbers: tuple[int, ...]) -> list[Point]:
    """Return the settings of a search."""
    return [Point(number, blind().weights.orthogonality) for number in numbers]


def after_first_look(study: Study, found: dict[int, Looks]) -> tuple[int, list[int]]:
    """Return the number of patterns chosen after the first repetitions, and the numbers that get all repetitions."""
    execution = Execution(Pretrained(found), models_per_chunk=FIRST_REPETITIONS)
    chunks = cut(members_of(points(NUMBERS), range(FIRST_REPETITIONS)), FIRST_REPETITIONS)
    first = [judge(study, point, FIRST_REPETITIONS, chunks, execution, with_misfit=True) for point in points(NUMBERS)]
    return choose(first).point.n_patterns, [point.n_patterns for point in rivals(first)]


def judged(purpose: str, given: Given, study: Study, found: dict[int, Looks], n_repetitions: int) -> dict[str, object]:
    """Search among the trained settings, and return the choice."""
    execution = Execution(Pretrained(found), models_per_chunk=n_repetitions)
    swept = sweep(study, points(NUMBERS), n_repetitions, execution)
    chosen = swept.chosen
    row = {"purpose": purpose, **given.recipe._asdict(), "chosen": chosen.point.n_patterns, "agreement": chosen.value}
    row |= {"low": chosen.best_checkpoint.low.pattern_agreement, "high": chosen.best_checkpoint.high.pattern_agreement}
    for one in swept.judged:
        m = one.point.n_patterns
        row |= {f"repetitions{m}": one.n_repetitions, f"agreement{m}": one.value}
        row |= {f"misfit{m}": one.misfit.value if one.misfit else np.nan}
    return row


def joined(first: Looks, more: Looks) -> Looks:
    """Join the repetitions of both."""
    at = first.steps[-1]
    weights = jax.tree.map(lambda *leaves: np.concatenate(leaves), first.weights[at], more.weights[at])
    r_indices, correlations = (np.concatenate([first[place], more[place]], axis=1) for place in (1, 2))
    return Looks(first.steps, r_indices, correlations, {at: weights})


def show(table: pd.DataFrame) -> None:
    """Print how often the correct number was chosen."""
    table["right"] = table["chosen"] == table["n_patterns"]
    counts = table.groupby("purpose", sort=False)["right"].agg(["sum", "size"])
    print(counts.rename(columns={"sum": "right number", "size": "of"}).to_string())


def main() -> None:
    """Train the first repetitions, then the remaining ones of the contenders, and judge."""
    warnings.simplefilter("ignore")
    arguments = parser(__doc__)
    arguments.add_argument("--development", action="store_true", help="other cohorts, for settling the rule")
    arguments.add_argument("--only", nargs="+", help="how the purposes begin that are wanted")
    arguments.add_argument("--cohorts", type=int, default=10)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    if options.show:
        show(pd.read_csv(RESULTS / "choice.csv"))
        return
    steps = 40 if options.small else blind().schedule.max_steps
    n_repetitions = 4 if options.small else 5
    preset: Preset = replace(blind(), schedule=replace(blind().schedule, min_steps=steps, max_steps=steps))
    wanted = recipes(1 if options.small else options.cohorts, options.controls is not None, options.development)
    asked = [
        (purpose, r)
        for purpose, rows in wanted.items()
        for r in rows
        if not options.only or purpose.startswith(tuple(options.only))
    ]
    cohorts = made([recipe for _, recipe in asked], options.controls, preset)
    found: dict[int, dict[int, Looks]] = defaultdict(dict)
    place = {id(study): k for k, (_, study) in enumerate(cohorts)}
    jobs = [Job(study, number, FIRST_REPETITIONS) for _, study in cohorts for number in NUMBERS]
    for job, looks in train_jobs(jobs, preset, [steps]):
        found[place[id(job.study)]][job.n_patterns] = looks
    looked = on_all_cores(after_first_look, [(cohorts[k][1], found[k]) for k in range(len(cohorts))])
    first = [
        {"purpose": name, **of._asdict(), "chosen": one} for (name, of), (one, _) in zip(asked, looked, strict=True)
    ]
    write(first, options.out / "choice_after_first_look.csv")
    close = [numbers for _, numbers in looked]
    say(f"first repetitions judged; {sum(map(len, close))} of {len(jobs)} settings get all repetitions")
    extra = n_repetitions - FIRST_REPETITIONS
    more = [
        Job(cohorts[k][1], number, extra, FIRST_REPETITIONS) for k, numbers in enumerate(close) for number in numbers
    ]
    for job, looks in train_jobs(more, preset, [steps]):
        own = found[place[id(job.study)]]
        own[job.n_patterns] = joined(own[job.n_patterns], looks)
    rows = on_all_cores(
        judged, [(purpose, *cohorts[k], found[k], n_repetitions) for k, (purpose, _) in enumerate(asked)]
    )
    table = write(rows, options.out / ("choice_development.csv" if options.development else "choice.csv"))
    show(table)
    say("done")


if __name__ == "__main__":
    sys.exit(main())
