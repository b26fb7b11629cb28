"""How often are patterns called reliable in fresh cohorts, without and with a disease? Training is made for a GPU.

    python experiments/check_reliability.py --train               # goes through 100 cohorts of the default size
    python experiments/check_reliability.py                       # judges them by the calibrated thresholds

The rule is that of the package: the highest agreement over the numbers of patterns must exceed the highest of their
thresholds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from calibrate_null import FEWEST_COHORTS, judge, people
from joblib import Parallel, delayed
from many_cohorts import ALL_REGIONS, Cohort, Group, simulate_all, steps_of_looks, train_all

from rindices.core import devices
from rindices.judging.verdict import highest_threshold
from rindices.settings import adjusted, fast

RESULTS = Path(__file__).parent / "results"
SIZE = (492, 900)
FRESH = {"null": (5000, 60), "basic": (6000, 20), "mild": (6000, 20)}  # first seed, cohorts: none of them calibrated
COUNTS = (3, 10)
LEAST_SD = 0.005  # few cohorts may look alike by chance


def train(options: argparse.Namespace) -> None:
    """Train repetitions on all cohorts; add a block of rows for each number of patterns."""
    preset = adjusted(fast(), max_steps=options.steps)
    cohorts = [
        Cohort(*options.size, ALL_REGIONS, first + k, kind)
        for kind, (first, n_cohorts) in FRESH.items()
        for k in range(min(n_cohorts, options.cohorts))
    ]
    same = [0] * len(cohorts)
    groups = [Group(n, cohorts, same, [preset.weights], options.repetitions) for n in options.patterns]
    steps = steps_of_looks(preset)
    with Parallel(n_jobs=-1) as cores:
        brains = simulate_all(cohorts, preset.schedule.whitening, cores)
        for group, trained in train_all(groups, brains, preset):
            own = [trained.of_cohort(place, cohort.n_patients)[:, 0] for place, cohort in enumerate(cohorts)]
            found = cores(delayed(judge)(looks, steps, COUNTS) for looks in own)
            rows = [
                {"kind": cohort.kind, "seed": cohort.seed, "n_patterns": group.n_patterns} | row
                for cohort, judged in zip(cohorts, found, strict=True)
                for row in judged
            ]
            table = pd.DataFrame(rows).astype({"step": "Int64", "n_sound": "Int64"}).round({"statistic": 6})
            options.out.parent.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)


def verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """Count cohorts called reliable, and those in which three patterns were chosen, by kind and search."""
    rows = []
    for n_repetitions, of in found.groupby("n_repetitions"):
        best = of.loc[of.groupby(["kind", "seed"])["statistic"].idxmax()]
        searches = {"2 to 5": (best, range(2, 6)), "3 alone": (of[of["n_patterns"] == 3], [3])}
        for search, (chosen, tried) in searches.items():
            limits = [highest_threshold(tried, SIZE, ALL_REGIONS, sound)[0] for sound in chosen["n_sound"]]
            reliable, right = chosen["statistic"] > limits, chosen["n_patterns"] == 3
            for kind in FRESH:
                here = chosen["kind"] == kind
                numbers = [int(which.sum()) for which in (here, here & reliable, here & right)]
                rows.append((n_repetitions, search, kind, *numbers))
    return pd.DataFrame(rows, columns=["n_repetitions", "patterns", "kind", "n_cohorts", "n_reliable", "n_three"])


def left_out(source: Path, factor: float = 4.0) -> pd.DataFrame:
    """Share of the calibration's own cohorts above mean + `factor` sd of the others like them."""
    table = pd.read_csv(source).dropna(subset="statistic")
    table["n_people"] = people(table)
    rows = []
    for key, of in table.groupby(["n_regions", "n_people", "n_patterns", "n_repetitions"]):
        values = of["statistic"].to_numpy()
        if len(values) < FEWEST_COHORTS:
            continue
        others = np.array([np.delete(values, k) for k in range(len(values))])
        limits = others.mean(axis=1) + factor * np.maximum(others.std(axis=1, ddof=1), LEAST_SD)
        rows.append((*key, len(values), int((values > limits).sum())))
    names = ["n_regions", "n_people", "n_patterns", "n_repetitions", "n_cohorts", "n_above"]
    return pd.DataFrame(rows, columns=names)


def evaluate(options: argparse.Namespace) -> None:
    """Print how often patterns are called reliable."""
    found = verdicts(pd.read_csv(options.out, keep_default_na=False, na_values=""))  # "null" is a name
    wide = found.pivot(index=["n_repetitions", "patterns"], columns="kind")
    print(wide.to_string())
    above = left_out(options.null)
    above = above[above["n_repetitions"].isin([3, 5, 10])]
    counts = above.pivot_table(
        index=["n_regions", "n_people"], columns=["n_repetitions", "n_patterns"], values="n_above", aggfunc="sum"
    )
    print("\ncalibrated cohorts above mean + 4 sd of the others", counts.to_string(na_rep=""), sep="\n")
    print(above.groupby("n_repetitions")[["n_above", "n_cohorts"]].sum().to_string())


def main() -> None:
    """Train, or judge what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--patterns", type=int, nargs="+", default=[3, 2, 4, 5])
    parser.add_argument("--cohorts", type=int, default=60, help="at most so many of each kind, to try this script")
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, help="controls and patients, to try this script")
    parser.add_argument("--repetitions", type=int, default=max(COUNTS))
    parser.add_argument("--steps", type=int, help="stop earlier than the preset, to try this script")
    parser.add_argument("--out", type=Path, default=RESULTS / "reliability.csv")
    parser.add_argument("--null", type=Path, default=RESULTS / "null_agreement.csv")
    options = parser.parse_args()
    if options.train:
        devices.prepare()
        train(options)
    else:
        evaluate(options)


if __name__ == "__main__":
    main()
