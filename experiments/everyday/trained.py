"""Train, once and on a GPU, the models with which the other scripts of this folder score people.

    python experiments/everyday/trained.py --out FOLDER                     # a few minutes on a GPU
    python experiments/everyday/trained.py --out FOLDER --table abide.csv   # and real people of many sites

Only the weights are kept; `models` fits from them with the current package, as if it had trained them itself.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

sys.path.append(str(Path(__file__).parents[1] / "numbers"))
from cases import on_all_cores
from people import Given, Recipe, make
from together import Job, Looks, Pretrained, train_jobs

from rindices import SurrealGAN, simulate_cohort
from rindices.core import devices, networks
from rindices.core.networks import Parameters
from rindices.judging.study import Study, training_set
from rindices.preprocessing.missing import fill_training
from rindices.presets import Correction, blind

FIRST_SEED = 60_000
REPETITIONS = 10
TRAINING_SITES, OTHER_SITES, SITE_PEOPLE = 6, 12, 150
SHIFT_SD, SCALES = 0.5, (0.8, 1.25)  # of sites, in sd of healthy people
LEFT_OUT = ("KKI", "MAX_MUN", "NYU", "PITT", "UCLA_1", "UM_1", "USM", "YALE")  # each with at least 27 controls
ABIDE_OTHERS = ("participant_id", "site", "diagnosis", "age", "sex", "icv", "fiq", "ados_total", "srs_total")


class Case(NamedTuple):
    """A cohort and its purpose."""

    purpose: str  # plain, gaps, sites or abide
    recipe: Recipe
    gaps: float = 0.0  # proportion of cells missing
    site: str = ""  # left out

    @property
    def name(self) -> str:
        """Name for files and tables."""
        of = f"{self.recipe.n_controls}+{self.recipe.n_patients}"
        rest = f" {100 * self.gaps:.0f}%" if self.gaps else f" {self.site}" if self.site else ""
        return f"{self.purpose}{rest} {self.recipe.kind} {of} {self.recipe.seed - FIRST_SEED}"


@dataclass(frozen=True, eq=False)
class Made:
    """The input of a fit; `given` also holds the truth and the fresh people."""

    case: Case
    given: Given
    regions: np.ndarray  # of the training people
    covariates: pd.DataFrame | None
    correction: Correction | None = None
    aside: pd.DataFrame | None = None  # controls of other sites, with covariates


def cases(real: bool) -> list[Case]:
    """Return all cohorts."""
    large = [
        Recipe(kind, FIRST_SEED + seed, n_fresh=300, covariates=2)
        for kind in ("basic", "mild", "scarce")
        for seed in (0, 1)
    ]
    small = [
        Recipe(kind, FIRST_SEED + seed, 150, 300, n_fresh=300, covariates=2)
        for kind in ("basic", "mild")
        for seed in (0, 1)
    ]
    rows = [Case("plain", recipe) for recipe in large + small]
    rows += [Case("gaps", recipe, share) for share in (0.1, 0.2) for recipe in large[:4] + small]
    rows += [
        Case("sites", Recipe(kind, FIRST_SEED + 10, 492, 900, n_fresh=300, covariates=2)) for kind in ("basic", "mild")
    ]
    if real:
        rows += [Case("abide", Recipe("basic", FIRST_SEED + 20, 0, 0, real=True), site=site) for site in LEFT_OUT]
    return rows


def made(case: Case, table: pd.DataFrame | None) -> Made:
    """Make one cohort."""
    if case.purpose == "abide":
        assert table is not None
        return _of_sites(case, table)
    given = make(case.recipe)
    regions, covariates = given.regions.to_numpy(), given.covariates
    if case.purpose == "gaps":
        regions = with_gaps(regions, case.gaps, case.recipe.seed)
    if case.purpose == "sites":
        return _with_sites(case, given)
    return Made(case, given, regions, covariates)


def with_gaps(regions: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Remove cells at random, at most a fifth per person."""
    order = np.random.default_rng([seed, 5]).random(regions.shape)
    few = order.argsort(axis=1).argsort(axis=1) < int(0.2 * regions.shape[1])
    return np.where((order < share) & few, np.nan, regions)


def _with_sites(case: Case, given: Given) -> Made:
    """Assign people to sites with offsets and scales; controls of further sites are set aside."""
    (mean, offsets, scales), rng = _site_effects(case, given), np.random.default_rng([case.recipe.seed, 7])

    def moved(regions: np.ndarray, site: np.ndarray) -> np.ndarray:
        return mean + offsets[site] + scales[site] * (regions - mean)

    site = rng.integers(TRAINING_SITES, size=len(given.regions))
    covariates = given.covariates.assign(site=[f"site{k:02d}" for k in site])
    number = OTHER_SITES * SITE_PEOPLE
    more = simulate_cohort("null", n_controls=number, n_patients=20, seed=case.recipe.seed + 500).table
    more = more[more["diagnosis"] == "CN"].reset_index(drop=True)
    where = TRAINING_SITES + np.repeat(np.arange(OTHER_SITES), SITE_PEOPLE)
    names = list(given.regions.columns)
    aside = more[["age", "sex"]].assign(site=[f"site{k:02d}" for k in where])
    aside = pd.concat([aside, pd.DataFrame(moved(more[names].to_numpy(), where), columns=names)], axis=1)
    correction = Correction(site="site")
    return Made(case, given, moved(given.regions.to_numpy(), site), covariates, correction, aside)


def _of_sites(case: Case, table: pd.DataFrame) -> Made:
    """Plant patterns in 40 % of the healthy people of all sites but one, whose people are set aside."""
    healthy = table[(table["diagnosis"] == "CN") & (table["icv"] > 0)].reset_index(drop=True)
    regions = [name for name in healthy if name not in ABIDE_OTHERS]
    away = (healthy["site"] == case.site).to_numpy()
    others = healthy[~away].drop(columns=["diagnosis", "fiq", "ados_total", "srs_total"])
    sizes = {"n_controls": int(0.6 * len(others)), "n_patients": len(others) - int(0.6 * len(others))}
    cohort = simulate_cohort("basic", controls=others, regions=regions, seed=case.recipe.seed, **sizes)
    people, patient = cohort.table, (cohort.table["diagnosis"] == "PT").to_numpy()
    counts = people.loc[~patient, "site"].value_counts()
    kept = people["site"].isin(counts[counts >= 5].index).to_numpy()
    people, patient = people[kept].reset_index(drop=True), patient[kept]
    truth = cohort.truth.drop(columns="participant_id").to_numpy()[kept[(cohort.table["diagnosis"] == "PT").to_numpy()]]
    covariates = people[["age", "sex", "icv", "site"]]
    given = Given(
        case.recipe,
        people[regions],
        patient,
        covariates,
        truth,
        people[regions][:0],
        None,
        patient[:0],
        truth[:0],
        np.empty((3, 0)),
    )
    aside = healthy[away].reset_index(drop=True)[["age", "sex", "icv", "site", *regions]]
    return Made(case, given, people[regions].to_numpy(float), covariates, Correction(site="site"), aside)


def clean_of(of: Made) -> Callable[[pd.DataFrame], tuple[np.ndarray, pd.DataFrame]] | None:
    """Return a function that maps people of simulated sites to the first site, which the model knows."""
    if of.case.purpose != "sites":
        return None
    mean, offsets, scales = _site_effects(of.case, of.given)
    names = list(of.given.regions.columns)

    def clean(people: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
        site = people["site"].str[4:].astype(int).to_numpy()
        healthy = mean + (people[names].to_numpy() - mean - offsets[site]) / scales[site]
        there = mean + offsets[0] + scales[0] * (healthy - mean)
        return there, people.drop(columns=names).reset_index(drop=True).assign(site="site00")

    return clean


def _site_effects(case: Case, given: Given) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the regions' means in controls, and the offsets and scales of all simulated sites."""
    healthy = given.regions[~given.patient].to_numpy()
    rng, shape = np.random.default_rng([case.recipe.seed, 6]), (TRAINING_SITES + OTHER_SITES, healthy.shape[1])
    return healthy.mean(axis=0), healthy.std(axis=0) * rng.normal(0, SHIFT_SD, shape), rng.uniform(*SCALES, shape)


def estimator(of: Made) -> SurrealGAN:
    """Return the estimator for a cohort."""
    return SurrealGAN(
        3, n_repetitions=REPETITIONS, preset="blind", correction=of.correction, random_state=of.case.recipe.seed
    )


def study_of(of: Made) -> Study:
    """Return a cohort ready for training."""
    seed = of.case.recipe.seed
    regions = fill_training(of.regions, of.covariates, of.correction, seed)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, table = estimator(of), pd.DataFrame(regions, columns=of.given.regions.columns)
        preset = model.preset_with(model.n_patterns, model.orthogonality)
        study = training_set(model, preset, table, of.given.patient, of.covariates).study
    study.people()  # computes the whitening here
    return study


def models(
    folder: Path, table: pd.DataFrame | None = None, purposes: tuple[str, ...] = ("plain",), only: tuple[str, ...] = ()
) -> Iterator[tuple[Made, SurrealGAN]]:
    """Yield each cohort and its model, fitted from the weights in a folder."""
    for case in cases(table is not None):
        if case.purpose in purposes and (not only or case.name in only):
            of = made(case, table)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                regions = pd.DataFrame(of.regions, columns=of.given.regions.columns)
                model = estimator(of).fit(
                    regions,
                    of.given.patient,
                    of.covariates,
                    store=Pretrained({3: _stored(folder, case, regions.shape[1])}),
                )
            yield of, model


def measured(
    folder: Path, measure: Callable[[Made, SurrealGAN], list[dict[str, object]]], purposes: tuple[str, ...] = ("plain",)
) -> pd.DataFrame:
    """Return the rows of all cohorts with these purposes, fitted and measured on all cores."""
    names = [case.name for case in cases(real=False) if case.purpose in purposes]
    found = on_all_cores(_measured, [(folder, measure, purposes, name) for name in names])
    return pd.DataFrame([row for rows in found for row in rows])


def _measured(
    folder: Path, measure: Callable[[Made, SurrealGAN], list[dict[str, object]]], purposes: tuple[str, ...], name: str
) -> list[dict[str, object]]:
    return [row for of, model in models(folder, purposes=purposes, only=(name,)) for row in measure(of, model)]


def _flat(name: str, looks: Looks) -> dict[str, np.ndarray]:
    """Return the arrays kept for a cohort, by name; half precision is finer than the precision of training."""
    found = {f"{name}/r_indices": looks.r_indices.astype(np.float16), f"{name}/correlations": looks.correlations}
    for network in ("transformation", "decomposer", "reconstructor"):
        layers = getattr(looks.weights[looks.steps[-1]], network)
        found |= {
            f"{name}/{network}/{layer}/{kind}": np.asarray(array, np.float16)
            for layer, kinds in layers.items()
            for kind, array in kinds.items()
        }
    return found


def _stored(folder: Path, case: Case, n_regions: int) -> Looks:
    step = blind().schedule.max_steps
    for path in sorted(folder.glob("weights*.npz")):
        with np.load(path) as arrays:
            if f"{case.name}/r_indices" not in arrays:
                continue
            shapes = networks.shapes(networks.sizes(n_regions, 3))._asdict()
            weights = {
                network: {
                    layer: {
                        kind: _array(arrays, f"{case.name}/{network}/{layer}/{kind}", shape)
                        for kind, shape in kinds.items()
                    }
                    for layer, kinds in layers.items()
                }
                for network, layers in shapes.items()
                if layers is not None
            }
            r_indices, correlations = (
                arrays[f"{case.name}/{name}"].astype(float) for name in ("r_indices", "correlations")
            )
            return Looks([step], r_indices, correlations, {step: Parameters(**weights)})
    raise FileNotFoundError(f"no weights of {case.name} in {folder}")


def _array(arrays: np.lib.npyio.NpzFile, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights; those of the discriminator are zeros, because scores do not need them and they are not kept."""
    return arrays[name].astype(np.float32) if name in arrays else np.zeros((REPETITIONS, *shape), np.float32)


def main() -> None:
    """Train everything, and keep the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path, help="real people of many sites: site, diagnosis, age, sex, icv, regions")
    parser.add_argument("--purpose", nargs="*", help="train only some: plain, gaps, sites, abide")
    parser.add_argument("--small", action="store_true", help="few steps, to try the script")
    options = parser.parse_args()
    devices.prepare()
    table = None if options.table is None else pd.read_csv(options.table)
    steps = 3 if options.small else blind().schedule.max_steps
    preset = replace(blind(), schedule=replace(blind().schedule, min_steps=steps, max_steps=steps))
    wanted = [case for case in cases(table is not None) if not options.purpose or case.purpose in options.purpose]
    wanted = wanted[:: 6 if options.small else 1]
    with Parallel(n_jobs=-1) as cores:
        studies = cores(delayed(lambda case: study_of(made(case, table)))(case) for case in wanted)
    place = {id(study): case for study, case in zip(studies, wanted, strict=True)}
    kept: dict[str, np.ndarray] = {}
    for job, looks in train_jobs([Job(study, 3, REPETITIONS) for study in studies], preset, [steps]):
        kept |= _flat(place[id(job.study)].name, looks)
    options.out.mkdir(parents=True, exist_ok=True)
    names = sorted({name.split("/")[0] for name in kept})
    for number, start in enumerate(range(0, len(names), 5)):  # files stay small
        some = {name: of for name, of in kept.items() if name.split("/")[0] in names[start : start + 5]}
        np.savez(options.out / f"weights{number}.npz", **some)
    print(f"{len(names)} cohorts trained")


if __name__ == "__main__":
    main()
