"""How well do repetitions agree where there is no disease? Made for a GPU; a table of thresholds comes out.

    python experiments/calibrate_null.py                          # trains; goes on where it stopped
    python experiments/calibrate_null.py --summarise              # writes the table that is shipped
    python experiments/calibrate_null.py --regions 40 80 --sizes 50,50 250,250 1500,1500 --patterns 2 3 4 5

Patients of these cohorts are drawn like controls. The statistic of a cohort is what a user would be shown: the best
mean pattern agreement over the checkpoints. All repetitions of many cohorts train as members of one program; while the
device trains, the cores judge what is done and compile what comes next.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from many_cohorts import ALL_REGIONS, Cohort, Group, Trained, simulate_all, steps_of_looks, train_all

from rindices.core import devices
from rindices.judging import agreement
from rindices.settings import Preset, adjusted, fast

ROOT = Path(__file__).parents[1]
REPETITIONS = (2, 3, 5, 10)
FIRST_SEED = 1000  # far from the seeds of tests and examples, which are to be judged by the table
SIZES = ["492,900", "100,200", "250,250", "50,50", "200,100", "1500,1500"]
FEWEST_COHORTS = 5  # with too few in which models were sound, there is no spread to speak of
COHORT = ["n_controls", "n_patients", "n_regions"]  # columns that say what kind of cohort it is


def judge(looks: np.ndarray, steps: list[int], counts: Sequence[int] = REPETITIONS) -> list[dict[str, float]]:
    """Find the best agreement over the looks ``(looks, repetitions, patients, patterns)``, for 2, 3, … repetitions."""
    counts = [count for count in counts if count <= looks.shape[1]]
    best = {count: {"statistic": np.nan, "step": np.nan, "n_sound": np.nan} for count in counts}
    for at, members in zip(steps, looks, strict=True):
        sound = np.array([number for number, fault in enumerate(agreement.faults(members)) if not fault], int)
        pairs = agreement.pairwise(members[sound])
        for count in counts:
            first = np.flatnonzero(sound < count)
            value = agreement.mean_agreement(pairs[np.ix_(first, first)]).pattern_agreement
            if value > np.nan_to_num(best[count]["statistic"]):  # never where undefined
                best[count] = {"statistic": value, "step": at, "n_sound": len(first)}
    return [{"n_repetitions": count} | best[count] for count in counts]


def planned(options: argparse.Namespace, preset: Preset) -> Iterator[Group]:
    """Yield what is not yet in the table: some sizes at a time, all numbers of patterns of these."""
    known = set()
    if options.out.exists():
        known = set(pd.read_csv(options.out)[["n_patterns", *COHORT, "seed"]].itertuples(index=False, name=None))
    sizes = [tuple(int(part) for part in size.split(",")) for size in options.sizes]
    seeds = range(options.first_seed, options.first_seed + options.cohorts)
    for n_regions in options.regions:
        for begin in range(0, len(sizes), options.together):
            chosen = sizes[begin : begin + options.together]
            cohorts = [Cohort(size[0], size[1], n_regions, seed) for size in chosen for seed in seeds]
            for n_patterns in options.patterns:
                left = [cohort for cohort in cohorts if (n_patterns, *cohort[:4]) not in known]
                if left:
                    own_seeds = [cohort.seed for cohort in left]
                    yield Group(n_patterns, left, own_seeds, [preset.weights], options.repetitions)


def calibrate(options: argparse.Namespace) -> None:
    """Train what is missing in the table and add it, group by group."""
    preset = adjusted(fast(), max_steps=options.steps)
    groups = list(planned(options, preset))
    if not groups:
        print(f"{options.out} has everything already")
        return
    everything = sorted({cohort for group in groups for cohort in group.cohorts})
    with Parallel(n_jobs=-1) as cores:
        brains = simulate_all(everything, preset.schedule.whitening, cores)
        for group, trained in train_all(groups, brains, preset):
            add(record(group, trained, preset, cores), options.out)


def record(group: Group, trained: Trained, preset: Preset, cores: Parallel) -> list[dict]:
    """Judge a group on all cores; return its rows of the table."""
    own = [trained.of_cohort(place, cohort.n_patients)[:, 0] for place, cohort in enumerate(group.cohorts)]
    found = cores(delayed(judge)(looks, steps_of_looks(preset)) for looks in own)
    return [
        {"n_patterns": group.n_patterns} | cohort._asdict() | row
        for cohort, rows in zip(group.cohorts, found, strict=True)
        for row in rows
    ]


def add(rows: list[dict], path: Path) -> None:
    """Append a group to the table in one write."""
    order = [*COHORT, "n_patterns", "n_repetitions", "seed", "statistic", "step", "n_sound"]
    table = pd.DataFrame(rows).astype({"step": "Int64", "n_sound": "Int64"}).round({"statistic": 6})[order]
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, mode="a", header=not path.exists(), index=False)


def people(table: pd.DataFrame) -> pd.Series:
    """Harmonic mean of the sizes of the two groups: what decides how well a difference between them can be told."""
    return (2 / (1 / table["n_controls"] + 1 / table["n_patients"])).round(1)


def summarise(source: Path, target: Path) -> pd.DataFrame:
    """Write mean and sd of the statistic by patterns, people, regions and repetitions: the table that is shipped."""
    table = pd.read_csv(source).dropna(subset="statistic")
    table["n_people"] = people(table)
    groups = table.groupby(["n_patterns", "n_people", "n_regions", "n_repetitions"])["statistic"]
    summary = groups.agg(["mean", "std", "size"]).round({"mean": 5, "std": 5})
    summary = summary.set_axis(["mean", "sd", "n_cohorts"], axis=1).reset_index()
    summary = summary[summary["n_cohorts"] >= FEWEST_COHORTS]
    schedule = fast().schedule
    header = (
        "# Pattern agreement of repetitions without disease: the best mean over all pairs, over checkpoints.\n"
        f"# Simulated null cohorts; preset fast, looks every {schedule.checkpoint_every} "
        f"steps from {schedule.min_steps} to {schedule.max_steps}.\n"
        "# n_people: harmonic mean of the sizes of the two groups. Made by experiments/calibrate_null.py --summarise.\n"
    )
    target.write_text(header + summary.to_csv(index=False), encoding="utf-8")
    return summary


def main() -> None:
    """Train, or summarise what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patterns", type=int, nargs="+", default=[3, 2, 4, 5, 1, 6])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="controls,patients of each size of cohort")
    parser.add_argument("--together", type=int, default=3, help="sizes of cohorts that train at the same time")
    parser.add_argument("--regions", type=int, nargs="+", default=[ALL_REGIONS], help="use the first so many only")
    parser.add_argument("--cohorts", type=int, default=20, help="cohorts of each size")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--repetitions", type=int, default=max(REPETITIONS))
    parser.add_argument("--steps", type=int, help="stop earlier than the preset, to try this script")
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "results" / "null_agreement.csv")
    parser.add_argument("--summarise", action="store_true", help="make the shipped table from --out; train nothing")
    parser.add_argument(
        "--thresholds", type=Path, default=ROOT / "src" / "rindices" / "judging" / "null_thresholds.csv"
    )
    options = parser.parse_args()
    if options.summarise:
        print(summarise(options.out, options.thresholds).to_string(index=False))
        return
    devices.prepare()
    calibrate(options)


if __name__ == "__main__":
    main()
