"""Measure the coverage of intervals at a new site, and for people whose regions of a lobe are missing.

    python experiments/numbers/elsewhere.py            # writes results/elsewhere.csv
    python experiments/numbers/elsewhere.py --real abide1_volumes.csv    # writes results/real_sites.csv
    python experiments/numbers/elsewhere.py --show

Five repetitions of the default preset, with 300 + 300 people from three sites. Site effects have an sd of 0.3 for the
shift common to all regions, 0.4 for each region's own shift, and 0.1 for log scales. The model is adapted to the new
site with the given number of local controls; fresh patients are scored there, or at a known site with a lobe missing.

With ``--real``, sites are those of real healthy people (ABIDE I: site, age, sex, icv and volumes); eight are left out
in turn. Patterns are added to two fifths of the people of the other sites, on whom linear models are trained, and to
the people of the left-out site who are not used for adaptation.
"""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from cases import parser, row_by_row
from figures import unit
from people import Given, Recipe, make

from rindices import SurrealGAN, simulate_cohort
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.presets import Correction

FIRST_SEED = 331_000
COHORTS = 2  # of each kind
LOCAL = (10, 20, 40)
DRAWS = 5  # of a new site and its controls
FRESH = 250
LEFT_OUT = ("KKI", "MAX_MUN", "NYU", "PITT", "UCLA_1", "UM_1", "USM", "YALE")  # real sites with at least 27 controls
ABIDE_OTHERS = ("participant_id", "site", "diagnosis", "age", "sex", "icv", "fiq", "ados_total", "srs_total")
COVARIATES = ["age", "sex", "icv", "site"]
LEAST_UNUSED = 12
MEDIAL = ("Hip", "Amy", "Ent", "ParHipGy", "TemPo")
LOBES = {
    "medial temporal lobe": MEDIAL,
    "temporal lobe": (*MEDIAL, "InfTemGy", "MidTemGy", "SupTemGy", "FusGy", "TemTraGy", "Pla", "Tem"),
    "occipital lobe": ("Cal+Cbr", "Cun", "InfOccGy", "LinGy", "MidOccGy", "OccPo", "OccFusGy", "SupOccGy"),
}


def sites_of(n_sites: int, n_regions: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw shifts, in sd between people, and scales of sites."""
    shifts = 0.3 * rng.standard_normal((n_sites, 1)) + 0.4 * rng.standard_normal((n_sites, n_regions))
    return shifts, np.exp(0.1 * rng.standard_normal((n_sites, n_regions)))


def at_site(regions: pd.DataFrame, mean: np.ndarray, sd: np.ndarray, shift: np.ndarray, scale: np.ndarray):
    """Return people as measured at a site."""
    return np.maximum(mean + (regions - mean) * scale + sd * shift, 0.05 * mean)


def inside(model: SurrealGAN, regions: pd.DataFrame, covariates: pd.DataFrame, truth: np.ndarray) -> dict[str, float]:
    """Return the coverage and the mean width of intervals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low, high = model.intervals(regions, covariates)
    held = (low <= truth) & (truth <= high)
    return {"inside": float(held.mean()), "width": float((high - low).mean()), "n": held.size}


def measured(kind: str, seed: int) -> list[dict[str, object]]:
    """Fit a model, and score people at other sites and with missing lobes."""
    rng = np.random.default_rng(seed)
    given = make(Recipe(kind, seed=seed, n_controls=300, n_patients=300, n_fresh=FRESH))
    mean, sd = (given.regions[~given.patient].agg(of).to_numpy() for of in ("mean", "std"))
    shifts, scales = sites_of(3, len(mean), rng)
    names = np.array(["A", "B", "C"])
    site, there = rng.integers(3, size=len(given.regions)), rng.integers(3, size=len(given.fresh))
    model = SurrealGAN(3, n_repetitions=5, random_state=0, correction=Correction(site="site"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            at_site(given.regions, mean, sd, shifts[site], scales[site]),
            given.patient,
            pd.DataFrame({"site": names[site]}),
        )
        order, _ = match_patterns(given.truth, model.r_indices_[given.patient])
        sited = given.__class__(**{**vars(given), "covariates": pd.DataFrame({"site": names[site]})})
        factor = unit(model, sited, order)
    ill, truth = given.fresh_patient, np.zeros((FRESH, 3))
    truth[:, order] = given.fresh_truth * factor
    known = at_site(given.fresh, mean, sd, shifts[there], scales[there])[ill]
    of_known = pd.DataFrame({"site": names[there][ill]})
    about = {"kind": kind, "seed": seed}
    rows = [about | {"what": "known site", "size": 0} | inside(model, known, of_known, truth)]
    for lobe, parts in LOBES.items():
        columns = [name for name in known if name[1:] in parts]
        gaps = known.assign(**dict.fromkeys(columns, np.nan))
        if columns:
            rows.append(
                about | {"what": f"without {lobe}", "size": len(columns)} | inside(model, gaps, of_known, truth)
            )
    for size in LOCAL:
        for _ in range(DRAWS):
            shift, scale = sites_of(1, len(mean), rng)
            local = rng.choice(np.flatnonzero(~ill), size, replace=False)
            moved = at_site(given.fresh, mean, sd, shift, scale)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                adapted = model.adapt(moved.iloc[local], pd.DataFrame({"site": ["new"] * size}))
            new = pd.DataFrame({"site": ["new"] * FRESH})
            rows.append(about | {"what": "new site", "size": size} | inside(adapted, moved[ill], new, truth))
    return rows


def real_site(path: Path, site: str) -> list[dict[str, object]]:
    """Fit a model to healthy people of the other sites, some with added patterns, and score people of this one."""
    table = pd.read_csv(path)
    regions = [name for name in table if name not in ABIDE_OTHERS]
    usable = (table["diagnosis"] == "CN") & (table["icv"] > 0) & (table[regions] > 0).all(axis=1)
    healthy = table[usable].reset_index(drop=True)
    away = (healthy["site"] == site).to_numpy()
    cohort = simulate_cohort(
        "basic",
        controls=healthy[~away].drop(columns=["diagnosis", "fiq", "ados_total", "srs_total"]),
        regions=regions,
        seed=FIRST_SEED,
        n_controls=int(0.6 * (~away).sum()),
    )
    people, patient = cohort.table, (cohort.table["diagnosis"] == "PT").to_numpy()
    counts = people.loc[~patient, "site"].value_counts()
    kept = people["site"].isin(counts[counts >= 5].index).to_numpy()
    true, losses = cohort.truth.drop(columns="participant_id").to_numpy()[kept[patient]], cohort.losses[regions]
    people, patient = people[kept].reset_index(drop=True), patient[kept]
    nobody = (people[regions][:0], None, patient[:0], true[:0])
    recipe = Recipe("basic", FIRST_SEED, real=True)
    given = Given(recipe, people[regions], patient, people[COVARIATES], true, *nobody, losses.to_numpy())
    model = SurrealGAN(3, n_repetitions=5, preset="linear", random_state=0, correction=Correction(site="site"))
    local, rows = healthy[away].reset_index(drop=True), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given.regions, patient, given.covariates)
        order, _ = match_patterns(true, model.r_indices_[patient])
        factor = unit(model, given, order)
        for size, draw in product(LOCAL, range(DRAWS)):
            rng = np.random.default_rng([FIRST_SEED, size, draw])
            used, rest = np.split(rng.permutation(len(local)), [size])
            if len(rest) < LEAST_UNUSED:
                continue
            severities = rng.uniform(size=(len(rest), 3))
            ill = local.iloc[rest][regions] * np.prod(1 - severities[:, :, None] * losses.to_numpy(), axis=1)
            adapted = model.adapt(local.iloc[used][regions], local.iloc[used][COVARIATES])
            truth = np.empty_like(severities)
            truth[:, order] = severities * factor
            rows.append({"site": site, "size": size, "draw": draw})
            rows[-1] |= inside(adapted, ill, local.iloc[rest][COVARIATES], truth)
    return rows


def show(table: pd.DataFrame) -> None:
    """Print coverage and width."""
    of = table.groupby(["kind", "what", "size"])[["inside", "width"]].mean().round(3)
    print(of.assign(cohorts=table.groupby(["kind", "what", "size"])["seed"].nunique()).to_string())


def main() -> None:
    """Fit and measure."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--real", type=Path, help="a table of healthy people of many sites")
    options = arguments.parse_args()
    if options.real:
        found = row_by_row(real_site, [(options.real, site) for site in LEFT_OUT], options.out / "real_sites.csv")
        print(found.groupby(["site", "size"])[["inside", "width"]].mean().round(3).to_string())
        print(found.groupby("size")[["inside", "width"]].mean().round(3).to_string())
        return
    if not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if options.small else COHORTS))
        jobs = [(kind, seed) for seed in seeds for kind in ("basic", "mild")]
        row_by_row(measured, jobs, options.out / "elsewhere.csv")
    show(pd.read_csv(options.out / "elsewhere.csv"))


if __name__ == "__main__":
    main()
