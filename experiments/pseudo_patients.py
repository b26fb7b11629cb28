"""How often is anything called reliable among real healthy people, of whom some are called patients? For a GPU.

    python experiments/pseudo_patients.py --ixi ixi.csv --abide abide.csv --train
    python experiments/pseudo_patients.py --ixi ixi.csv --train --refits 19 --only "17 years"
    python experiments/pseudo_patients.py                         # counts, with intervals

Healthy people are split at random, so that there is nothing to find; what is found is a false alarm. In other splits
the pseudo-patients are older: there is something to find, which is no disease. With `--refits` the test is the one of
`rindices fit --null`, with and without the error of removing covariates.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from calibrate_null import judge
from joblib import Parallel, delayed
from many_cohorts import BATCH_SIZE, Brains, Cohort, Group, steps_of_looks, train_all
from scipy.stats import binomtest

from rindices.core import devices
from rindices.judging.selection import FIRST_LOOK, Study
from rindices.judging.verdict import LEVEL, threshold
from rindices.preprocessing import Preprocessing
from rindices.preprocessing.covariates import design_of
from rindices.settings import Correction, Preset, adjusted, fast
from rindices.training.chunks import Settings

OUT = Path(__file__).parent / "results" / "pseudo_patients.csv"
REFITS = OUT.with_name("pseudo_patients_refits.csv")
PATTERNS = (2, 3, 4, 5)
SMALLEST_SITE = 20
WAYS = ("dealt out", "dealt out, corrected again")
AGES = Correction(), ("age", "sex")
CURVES = Correction(smooth=("age",)), ("age", "sex")
SITES = Correction(smooth=("age",), site="site"), ("age", "sex", "icv", "site")
NOTHING = None, None


class Case(NamedTuple):
    """One way of splitting healthy people."""

    name: str
    source: str
    sizes: tuple[int, int] | None  # None: halves, within each site
    correction: tuple
    tilt: float | None = None  # the older, the likelier to be a patient: years by which the odds grow e-fold
    all_ages: bool = False  # effects of age from everybody, which nobody knows who has patients


CASES = (
    Case("IXI", "ixi", (40, 40), AGES),
    Case("IXI", "ixi", (100, 100), AGES),
    Case("IXI", "ixi", (149, 298), AGES),
    Case("IXI", "ixi", (223, 224), AGES),
    Case("ABIDE, 12 sites", "abide", None, SITES),
    Case("ABIDE, 12 sites, nothing removed", "abide", None, NOTHING),
    *(
        Case(f"IXI, patients {years} years older, {removed}", "ixi", (149, 149), correction, tilt)
        for years, tilt in ((5, 50), (17, 12))
        for removed, correction in (("nothing removed", NOTHING), ("line of age", AGES), ("curve of age", CURVES))
    ),
    Case("IXI, patients 17 years older, curve of age of all 447", "ixi", (149, 149), CURVES, 12, all_ages=True),
)


def healthy(source: str, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read healthy people, without impossible values and small sites, and the names of their regions."""
    table = pd.read_csv(path)
    if source == "ixi":
        return table, list(table.columns[3:])
    regions = list(table.columns[9:])
    sound = (table["diagnosis"] == "CN") & (table["icv"] > 1e5) & (table[regions] > 0).all(axis=1)
    table = table[sound]
    return table[table.groupby("site")["site"].transform("size") >= SMALLEST_SITE].reset_index(drop=True), regions


def split(table: pd.DataFrame, case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the pseudo-controls and pseudo-patients."""
    if case.sizes is None:
        order = pd.Series(rng.random(len(table))).groupby(table["site"]).rank(method="first")
        half = order.groupby(table["site"]).transform("size") / 2
        patient = (order > half).to_numpy()
        return np.flatnonzero(~patient), np.flatnonzero(patient)
    n_controls, n_patients = case.sizes
    if case.tilt is not None:
        chance = 1 / (1 + np.exp(-(table["age"] - table["age"].median()) / case.tilt))
        patients = rng.choice(len(table), n_patients, replace=False, p=chance / chance.sum())
        rest = np.setdiff1d(np.arange(len(table)), patients)
        young = 1 - chance.to_numpy()[rest]
        return rng.choice(rest, n_controls, replace=False, p=young / young.sum()), patients
    order = rng.permutation(len(table))
    return order[:n_controls], order[n_controls : n_controls + n_patients]


def prepare(table: pd.DataFrame, regions: list[str], case: Case, seed: int, preset: Preset) -> Study:
    """Split healthy people and prepare them as a fit does: everything is estimated in the pseudo-controls."""
    controls, patients = split(table, case, np.random.default_rng([seed, CASES.index(case)]))
    rows, patient = np.concatenate([controls, patients]), np.repeat([False, True], [len(controls), len(patients)])
    correction, names = case.correction
    values = table[regions].to_numpy(float)
    covariates = None if names is None else table[list(names)]
    learn = np.arange(len(table)) if case.all_ages else controls
    fitted = Preprocessing.fit(values[learn], None if covariates is None else covariates.iloc[learn], correction)
    own = None if covariates is None else covariates.iloc[rows].reset_index(drop=True)
    design = None if own is None else design_of(own, patient, correction)
    return Study(fitted.transform(values[rows], own), patient, Settings(preset, BATCH_SIZE, seed), design)


def brains_of(study: Study, cohort: int = 0) -> Brains:
    """Return the people of a study, or the same people dealt out anew."""
    people = study.people(cohort)
    return Brains(people.controls, people.patients, people.whitening, np.zeros((len(people.patients), 0)))


def drawn(options: argparse.Namespace, preset: Preset, cores: Parallel) -> Iterator[dict[Cohort, Brains]]:
    """Yield the cohorts of each source; a cohort's kind says its case, how it was dealt out, and the refit."""
    for source in ("ixi", "abide"):
        path = getattr(options, source)
        if path is None:
            continue
        table, regions = healthy(source, path)
        cases = [case for case in CASES if case.source == source and options.only in case.name]
        wanted = [(case, seed) for case in cases for seed in range(options.splits)]
        studies = cores(delayed(prepare)(table, regions, case, seed, preset) for case, seed in wanted)
        named = {
            (case, seed, way, refit): (study if way == "dealt out, corrected again" else replace(study, design=None))
            for (case, seed), study in zip(wanted, studies, strict=True)
            for way in WAYS[: 1 if study.design is None else 2]
            for refit in range(options.refits + 1)
            if refit or way == WAYS[0]
        }
        brains = cores(delayed(brains_of)(study, refit) for (_, _, _, refit), study in named.items())
        yield {
            Cohort(len(own.controls), len(own.patients), len(regions), seed, f"{CASES.index(case)}/{way}/{refit}"): own
            for (case, seed, way, refit), own in zip(named, brains, strict=True)
        }


def train(options: argparse.Namespace) -> None:
    """Train repetitions on all splits; add a block of rows for each number of patterns."""
    preset = adjusted(fast(), max_steps=options.steps)
    steps = steps_of_looks(preset)
    with Parallel(n_jobs=-1) as cores:
        for brains in drawn(options, preset, cores):
            cohorts = list(brains)
            seeds = [cohort.seed for cohort in cohorts]
            n_repetitions = FIRST_LOOK if options.refits else options.repetitions
            groups = [Group(n, cohorts, seeds, [preset.weights], n_repetitions) for n in options.patterns]
            for group, trained in train_all(groups, brains, preset):
                looks = [trained.of_cohort(place, cohort.n_patients)[:, 0] for place, cohort in enumerate(cohorts)]
                found = cores(delayed(judge)(own, steps, [n_repetitions]) for own in looks)
                rows = [verdict(cohort, group.n_patterns, own[0]) for cohort, own in zip(cohorts, found, strict=True)]
                table = pd.DataFrame(tested(rows) if options.refits else rows)
                table = table.drop(columns=["way", "refit"], errors="ignore").round({"statistic": 6, "threshold": 6})
                options.out.parent.mkdir(parents=True, exist_ok=True)
                table.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)


def tested(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a row for each split and way of dealing out, with its p value."""
    table = pd.DataFrame(rows)
    found = []
    for _, of in table.groupby(["people", "n_controls", "split"], sort=False):
        data = of[of["refit"] == 0].iloc[0]
        for way, refits in of[of["refit"] > 0].groupby("way", sort=False):
            p = (1 + (refits["statistic"] >= data["statistic"]).sum()) / (1 + len(refits))
            kept = data[["people", "n_controls", "n_patients", "split", "n_patterns", "statistic"]].to_dict()
            found.append(kept | {"refits": way, "p": p, "reliable": bool(p <= LEVEL)})
    return found


def verdict(cohort: Cohort, n_patterns: int, found: dict[str, float]) -> dict[str, object]:
    """Judge one fit as the command line does."""
    sizes = (cohort.n_controls, cohort.n_patients)
    sound = 0 if np.isnan(found["n_sound"]) else int(found["n_sound"])
    limit = threshold(n_patterns, sizes, cohort.n_regions, sound)[0] if sound > 1 else np.nan
    number, way, refit = cohort.kind.split("/")
    case = CASES[int(number)]
    return {
        "way": way,
        "refit": int(refit),
        "people": case.name,
        "n_controls": sizes[0],
        "n_patients": sizes[1],
        "split": cohort.seed,
        "n_patterns": n_patterns,
        "n_sound": sound,
        "statistic": found["statistic"],
        "threshold": limit,
        "reliable": bool(found["statistic"] > limit),
    }


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count fits, and searches over the numbers of patterns, that are called reliable; intervals of Clopper-Pearson."""
    if "refits" in table:
        cases = table.groupby(["people", "n_controls", "n_patients", "refits"], sort=False)
        return pd.DataFrame([(*key, *_interval(own)) for key, own in cases], columns=[*cases.keys, *_COUNTED])
    split_of = ["people", "n_controls", "n_patients", "split"]
    splits = table.groupby(split_of, sort=False)
    best = table.loc[splits["statistic"].idxmax()]
    best = best.assign(reliable=best["statistic"].to_numpy() > splits["threshold"].max().to_numpy())
    every = [("each number of patterns", table), ("best of 2 to 5", best)]
    rows = []
    for what, of in every:
        for key, own in [*of.groupby(split_of[:3], sort=False), *_random(of)]:
            if len(own):
                rows.append((*key, what, *_interval(own)))
    return pd.DataFrame(rows, columns=["people", "n_controls", "n_patients", "patterns", *_COUNTED])


_COUNTED = ["n", "n_reliable", "share", "low", "high"]


def _interval(table: pd.DataFrame) -> tuple[int, int, float, float, float]:
    n, n_reliable = len(table), int(table["reliable"].sum())
    return n, n_reliable, n_reliable / n, *binomtest(n_reliable, n).proportion_ci()


def _random(table: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    random = {case.name for case in CASES if case.tilt is None}
    return [(("all random splits", "", ""), table[table["people"].isin(random)])]


def main() -> None:
    """Train, or count what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--ixi", type=Path, help="table of healthy people: id, age, sex, regions")
    parser.add_argument("--abide", type=Path, help="table of ABIDE I: nine columns, then regions")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--patterns", type=int, nargs="+", default=PATTERNS)
    parser.add_argument("--refits", type=int, default=0, help="test each split by so many refits instead")
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, help="stop earlier than the preset, to try this script")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.out = options.out or (REFITS if options.refits else OUT)
    if options.train:
        devices.prepare()
        train(options)
    else:
        print(counts(pd.read_csv(options.out)).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
