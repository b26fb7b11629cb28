"""Thresholds of agreement: how well repetitions agree where there is no disease. Made for a GPU.

    python experiments/numbers/calibrate.py                    # trains, writes results/null_agreement.csv
    python experiments/numbers/calibrate.py --summarise        # writes the table that is shipped
    python experiments/numbers/calibrate.py --rule             # the rule for the number of patterns, in its development

Patients of these cohorts are drawn like controls. With 300 regions, regions of the population are split into two or
three with noise of their own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from cases import RESULTS, made, parser, say, write
from people import Recipe
from rindices.judging.agreement_threshold import threshold
from together import Job, Looks, train_jobs

from rindices.judging import agreement
from rindices.judging.agreement import Agreement
from rindices.judging.misfit import Misfit, misfit
from rindices.judging.selection import Judged, Look, choose
from rindices.settings import fast
from rindices.training.chunks import Point

TABLE = Path(__file__).parents[2] / "src/rindices/judging/null_thresholds.csv"
SIZES = ((50, 50), (100, 200), (492, 900))
FIRST_SEED = 20_000
FEWEST_COHORTS = 5  # with fewer in which models were sound, there is no spread to speak of


def recipes(n_cohorts: int) -> list[Recipe]:
    """Return all cohorts; the large ones with many regions are fewer."""
    rows = [
        Recipe("null", FIRST_SEED + seed, *sizes, n_regions=n_regions)
        for n_regions in (30, 128)
        for sizes in SIZES
        for seed in range(n_cohorts)
    ]
    few = max(2, 2 * n_cohorts // 3)
    return rows + [
        Recipe("null", FIRST_SEED + seed, *sizes, n_regions=300) for sizes in SIZES[1:] for seed in range(few)
    ]


def repetitions(recipe: Recipe) -> int:
    """Return how many repetitions a cohort gets; many regions are costly."""
    return 3 if recipe.n_regions > 128 else 5


def numbers(recipe: Recipe) -> tuple[int, ...]:
    """Return the numbers of patterns."""
    return (1, 2, 3, 5) if recipe.n_regions > 128 else (1, 2, 3, 4, 5)


def judged(recipe: Recipe, n_patterns: int, looks: Looks) -> dict[str, object]:
    """Return the agreement of sound models, of all and of the first three."""
    members = looks.r_indices[-1].astype(float)
    sound = np.array([k for k, fault in enumerate(agreement.faults(members)) if not fault], int)
    pairs = agreement.pairwise(members[sound])
    row = {**recipe._asdict(), "true": recipe.n_patterns, "n_patterns": n_patterns, "n_sound": len(sound)}
    row["agreement"] = agreement.mean_agreement(pairs).pattern_agreement
    first = np.flatnonzero(sound < 3)
    row["of_three"] = agreement.mean_agreement(pairs[np.ix_(first, first)]).pattern_agreement
    return row


def development(n_cohorts: int) -> list[Recipe]:
    """Return cohorts with one to four patterns, in which the rule that chooses their number was settled."""
    seeds = range(FIRST_SEED + 500, FIRST_SEED + 500 + n_cohorts)
    return [Recipe(kind, seed, n_patterns=m) for kind in ("basic", "mild") for m in (1, 2, 3, 4) for seed in seeds]


def misfit_of(job: Job, looks: Looks) -> np.ndarray:
    """Return the products of a job's misfit."""
    preset, at = job.study.settings.preset, looks.steps[-1]
    correlations = looks.correlations[-1].astype(float)
    found = misfit(
        looks.weights[at], correlations, job.study.people(), preset.training.composition, job.study.settings.seed
    )
    return found.distances


def summarise(table: pd.DataFrame) -> None:
    """Write means and standard deviations over cohorts."""
    table = table.assign(n_people=(2 / (1 / table["n_controls"] + 1 / table["n_patients"])).round(1))
    found = table.groupby(["n_patterns", "n_people", "n_regions"])["agreement"].agg(["mean", "std", "count"])
    found = found.rename(columns={"std": "sd", "count": "n_cohorts"}).reset_index()
    found = found[found["n_cohorts"] >= FEWEST_COHORTS]  # in the others, models collapse
    about = (
        "# Pattern agreement of repetitions in simulated cohorts without disease, preset fast.\n"
        "# n_people: harmonic mean of the sizes of the groups. Made by experiments/numbers/calibrate.py --summarise.\n"
    )
    TABLE.write_text(about + found.to_csv(index=False, float_format="%.5g"), encoding="utf-8")
    print(found.to_string())


def rule(table: pd.DataFrame) -> None:
    """Count how often the package would choose the right number of patterns, with three and with five repetitions."""
    for n_models, column in ((3, "of_three"), (5, "agreement")):
        right = 0
        for _, rows in table.groupby(["kind", "true", "seed"]):
            judged = []
            for row in rows.to_dict("records"):
                known = Agreement(row[column], np.nan, np.nan)
                look = Look(fast().schedule.max_steps, n_models, known, known, known, known, {})
                distances = np.array([row[f"misfit{k + 1}"] for k in range(n_models)])
                limit, _ = threshold(row["n_patterns"], (row["n_controls"], row["n_patients"]), row["n_regions"])
                point = Point(row["n_patterns"], fast().weights.orthogonality)
                judged.append(Judged(point, n_models, [look], 0, Misfit(distances), limit))
            right += choose(judged).point.n_patterns == rows["true"].iloc[0]
        print(f"{n_models} repetitions: right in {right} of {table.groupby(['kind', 'true', 'seed']).ngroups} cohorts")


def main() -> None:
    """Train, or summarise what was trained."""
    arguments = parser(__doc__)
    arguments.add_argument("--summarise", action="store_true")
    arguments.add_argument("--rule", action="store_true")
    options = arguments.parse_args()
    if options.rule:
        rule(pd.read_csv(RESULTS / "development.csv"))
        return
    if options.summarise:
        summarise(pd.read_csv(RESULTS / "null_agreement.csv"))
        return
    steps = 40 if options.small else fast().schedule.max_steps
    preset = replace(fast(), schedule=replace(fast().schedule, min_steps=steps, max_steps=steps))
    asked = recipes(2 if options.small else 12)
    cohorts = made(asked, None, preset)
    jobs = [
        Job(study, n_patterns, repetitions(given.recipe))
        for given, study in cohorts
        for n_patterns in numbers(given.recipe)
    ]
    recipe_of = {id(study): given.recipe for given, study in cohorts}
    diseased = made(development(1 if options.small else 2), None, preset)
    recipe_of |= {id(study): given.recipe for given, study in diseased}
    jobs += [Job(study, n_patterns, 5) for _, study in diseased for n_patterns in (1, 2, 3, 4, 5)]
    with ThreadPoolExecutor(6) as pool:
        waiting, products = [], {}
        for job, looks in train_jobs(jobs, preset, [steps]):
            recipe = recipe_of[id(job.study)]
            waiting.append(pool.submit(judged, recipe, job.n_patterns, looks))
            if recipe.kind != "null":
                name = f"{recipe.kind} {recipe.n_patterns} {recipe.seed} {job.n_patterns}"
                products[name] = pool.submit(misfit_of, job, looks)
        rows = [one.result() for one in waiting]
        kept = {name: one.result() for name, one in products.items()}
    write([row for row in rows if row["kind"] == "null"], options.out / "null_agreement.csv")
    diseased_rows = [row for row in rows if row["kind"] != "null"]
    for row in diseased_rows:
        found = kept[f"{row['kind']} {row['true']} {row['seed']} {row['n_patterns']}"]
        row |= {f"misfit{k + 1}": value for k, value in enumerate(found)}
    write(diseased_rows, options.out / "development.csv")
    say("done")


if __name__ == "__main__":
    main()
