"""Section 4.3 with features of real studies: covariates, sites, unequal and correlated severities, noisy variables.

    python experiments/paper/study.py --out results/study.csv           # two cores: see --repetitions; a GPU: a minute
    python experiments/paper/study.py --draw --out results/study.csv    # then the voxel-wise figure; no GPU

850 controls and 2204 patients from four sites, two patterns (medial temporal and frontal; 0 to 20 % atrophy). Patients
are older. Severities are unequal (mostly mild for the first pattern; a third of patients lack the second), correlated,
and rise with age. Sites shift and scale every region, and differ in the proportion of patients. Ten clinical variables
depend on severities and age, and are measured with noise. The study is analysed by `SurrealGANSearch` with the preset
`blind`, correction for age, sex and head size, and harmonisation of sites; then again without harmonisation.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from clinical import draw_variables
from scipy.stats import norm
from tables import Results, parser

from rindices import SurrealGANSearch, simulate_cohort
from rindices.analysis import associations
from rindices.core import devices
from rindices.judging.agreement_and_misfit import concordance, match_patterns
from rindices.presets import Correction, blind

SIZE = (850, 2204)
SITES = {"A": (0.4, 0.25), "B": (0.3, 0.3), "C": (0.2, 0.3), "D": (0.1, 0.15)}  # shares of controls and of patients
ATROPHY, NOISE = 0.2, 0.05  # as in the paper's mild cohorts
OLDER = 0.25  # log weight for being drawn as a patient, per sd of age
AGE_EFFECT, CORRELATION = 0.3, 0.4  # of severities, as normal scores
RELIABILITY = 0.8  # of the clinical variables
NAMES = ("medial temporal", "frontal")
COVARIATES = ["age", "sex", "icv", "site"]


class Study(NamedTuple):
    """A simulated study and the truth about it."""

    regions: pd.DataFrame
    patient: np.ndarray
    covariates: pd.DataFrame
    truth: np.ndarray  # (patients, patterns)
    clinical: pd.DataFrame  # of the patients
    affected: dict[str, tuple[str, ...]]


def make(n_controls: int, n_patients: int, seed: int) -> Study:
    """Draw healthy people, give some of them a disease, and measure everybody at one of four sites."""
    rng = np.random.default_rng(seed)
    n_people = n_controls + n_patients
    healthy = simulate_cohort("null", n_controls=n_people, n_patients=20, seed=seed).table
    healthy = healthy[healthy["diagnosis"] == "CN"].reset_index(drop=True)
    age = ((healthy["age"] - healthy["age"].mean()) / healthy["age"].std()).to_numpy()
    likely = np.argsort(-(OLDER * age + rng.gumbel(size=n_people)), kind="stable")
    patient = np.zeros(n_people, bool)
    patient[likely[:n_patients]] = True
    volumes = healthy.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    regions = volumes.to_numpy(float, copy=True)
    truth = _severities(age[patient], rng)
    patterns = simulate_cohort("mild", n_controls=20, n_patients=20, n_patterns=2).patterns
    for k, names in enumerate(patterns.values()):
        cells = np.ix_(np.flatnonzero(patient), [volumes.columns.get_loc(name) for name in names])
        factor = rng.normal(1, NOISE, (n_patients, len(names)))
        regions[cells] *= 1 - truth[:, [k]] * factor * ATROPHY
    icv = volumes.sum(axis=1).to_numpy() * rng.normal(1, 0.05, n_people)  # head size: total volume before disease
    site = _sites(patient, rng)
    sd = regions[~patient].std(axis=0)
    for name in SITES:
        here = site == name
        shift, scale = 0.5 * sd * rng.standard_normal(len(sd)), rng.uniform(0.85, 1.15, len(sd))
        middle = regions[here & ~patient].mean(axis=0)
        regions[here] = middle + scale * (regions[here] - middle) + shift
    covariates = pd.DataFrame({"age": healthy["age"], "sex": healthy["sex"], "icv": icv, "site": site})
    measured = _measured(draw_variables(truth, seed), age[patient], rng)
    return Study(pd.DataFrame(regions, columns=volumes.columns), patient, covariates, truth, measured, patterns)


def _severities(age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw severities: mostly mild for the first pattern (Beta(1, 2)), a third of the second 0; related to age."""
    normal = rng.multivariate_normal([0, 0], [[1, CORRELATION], [CORRELATION, 1]], len(age))
    own = (age - age.mean()) / age.std()
    place = norm.cdf((normal + AGE_EFFECT * own[:, None]) / np.sqrt(1 + AGE_EFFECT**2))
    return np.column_stack([1 - np.sqrt(1 - place[:, 0]), np.clip(1.5 * place[:, 1] - 0.5, 0, 1)])


def _sites(patient: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    names = np.array(list(SITES))
    shares = np.array(list(SITES.values()))
    drawn = [rng.choice(names, len(patient), p=shares[:, k] / shares[:, k].sum()) for k in (0, 1)]
    return np.where(patient, drawn[1], drawn[0])


def _measured(variables: pd.DataFrame, age: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Add effects of age and measurement noise to the variables; dichotomous ones are known without error."""
    measured = variables.copy()
    for name in variables.columns[variables.nunique() > 2]:
        spread = variables[name].std()
        error = spread * np.sqrt(1 / RELIABILITY - 1) * rng.standard_normal(len(age))
        measured[name] += 0.2 * spread * age + error
    return measured


def fit(study: Study, harmonised: bool, n_repetitions: int, tried: tuple[int, ...], preset: Any) -> SurrealGANSearch:
    """Search for the number of patterns, as a user would."""
    correction = Correction(site="site" if harmonised else None)
    covariates = study.covariates if harmonised else study.covariates.drop(columns="site")
    search = SurrealGANSearch(
        n_patterns=tried, n_repetitions=n_repetitions, preset=preset, correction=correction, random_state=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return search.fit(study.regions, study.patient, covariates)


def found_patterns(study: Study, search: SurrealGANSearch, harmonised: bool) -> list[dict[str, Any]]:
    """Compare the R-indices and severities of the patients with the truth, pattern by pattern."""
    best = search.best_estimator_
    covariates = study.covariates if harmonised else study.covariates.drop(columns="site")
    scores = best.r_indices_[study.patient]
    severities = best.severities(study.regions, covariates)[study.patient]
    order, _ = match_patterns(study.truth, scores)
    maps = best.pattern_maps(study.regions[~study.patient], covariates[~study.patient])
    rows = []
    site = pd.get_dummies(study.covariates.loc[study.patient, "site"]).to_numpy(float)
    for k, place in enumerate(order):
        severity, true = severities[:, place], study.truth[:, k]
        own = maps[maps["pattern"] == place + 1].set_index("region")["change_sd"] if "pattern" in maps else None
        row: dict[str, Any] = {"pattern": NAMES[k], "concordance": concordance(true, scores[:, place])}
        row |= {"bias": float((severity - true).mean()), "rmse": float(np.sqrt(((severity - true) ** 2).mean()))}
        if own is not None:
            largest = own.abs().sort_values(ascending=False).index[: len(list(study.affected.values())[k])]
            row["regions"] = len(set(largest) & set(list(study.affected.values())[k])) / len(largest)
        left = scores[:, place] - _explained(true, scores[:, place])
        row["site_share"] = float(1 - ((left - _group_means(left, site)) ** 2).sum() / (left**2).sum())
        rows.append(row)
    return rows


def _explained(true: np.ndarray, score: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(true)), true, true**2])
    return design @ np.linalg.lstsq(design, score, rcond=None)[0]


def _group_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return groups @ ((groups.T @ values) / groups.sum(axis=0))


def correlations(study: Study, search: SurrealGANSearch) -> pd.DataFrame:
    """Associate R-indices and true severities with the clinical variables, given age, sex and site."""
    scores = search.best_estimator_.r_indices_[study.patient]
    order, _ = match_patterns(study.truth, scores)
    given = study.covariates[study.patient].reset_index(drop=True)[["age", "sex", "site"]]
    tables = {}
    for name, values in (("r_index", scores[:, order]), ("truth", study.truth)):
        table = associations(pd.DataFrame(values, columns=["r1", "r2"]), study.clinical, given)
        tables[name] = table.set_index(["variable", "pattern"])
    found = tables["r_index"][["n", "coefficient", "partial", "partial_q"]].rename(columns={"partial_q": "q"})
    true = tables["truth"][["coefficient", "partial", "partial_q"]].add_prefix("true_")
    return found.join(true.rename(columns={"true_partial_q": "true_q"})).reset_index()


def run(out: Path, n_repetitions: int, small: bool) -> None:
    """Fit with and without harmonisation, and write the tables."""
    preset = replace(blind(), schedule=replace(blind().schedule, min_steps=20, max_steps=20)) if small else blind()
    size, tried = ((60, 90), (2,)) if small else (SIZE, (1, 2, 3, 4))
    study = make(*size, seed=30)
    numbers, patterns = (
        Results(_beside(out, part), ["correction"], comparable=not small) for part in ("", "_patterns")
    )
    for name, harmonised in (("harmonised", True), ("sites left in", False)):
        if patterns.has(correction=name):
            continue
        search = fit(study, harmonised, n_repetitions, tried, preset)
        chosen = search.best_params_["n_patterns"]
        print(name, "chosen:", chosen, "verdict:", search.verdict_.state, flush=True)
        results = search.results_.assign(chosen=search.results_["n_patterns"] == chosen, correction=name)
        numbers.add(results.assign(verdict=search.verdict_.state).to_dict("records"))
        if chosen != 2:
            patterns.add([{"correction": name, "pattern": "none matched"}])
            continue
        patterns.add([{"correction": name} | row for row in found_patterns(study, search, harmonised)])
        if harmonised:
            correlations(study, search).to_csv(_beside(out, "_clinical"), index=False, float_format="%.5g")
            scores = pd.DataFrame(search.best_estimator_.r_indices_, columns=["r1", "r2"])
            scores.to_csv(_beside(out, "_scores"), index=False, float_format="%.4f")
    numbers.describe(preset, seeds=[30], n_models=n_repetitions, size=size)


def draw(out: Path, small: bool) -> None:
    """Compare subgroups with controls voxel-wise in maps made from the same volumes, and draw the differences."""
    from maps import draw_comparisons, made_maps

    from rindices.imaging import compare_maps

    size = (60, 90) if small else SIZE
    study = make(*size, seed=30)
    scores = pd.read_csv(_beside(out, "_scores"))
    order, _ = match_patterns(study.truth, scores[study.patient].to_numpy())
    scores = scores.iloc[:, order].set_axis(["r1", "r2"], axis=1)
    scores.insert(0, "participant_id", [f"person{k:04d}" for k in range(len(scores))])
    group = np.where(study.patient, "patient", "control")
    with tempfile.TemporaryDirectory() as folder:
        maps = made_maps(study.regions, ~study.patient, Path(folder), 30)
        maps.insert(0, "participant_id", scores["participant_id"])
        found = compare_maps(maps, scores, group, study.covariates[["age", "sex", "site"]])
    for one in found:
        lower = None if one.result is None else int(((one.result.q < 0.05) & (one.result.t < 0)).sum())
        print(one.pattern, one.level, one.n_patients, one.n_controls, lower, one.note, flush=True)
    draw_comparisons(found, NAMES, _beside(out, "_voxelwise").with_suffix(".png"))


def _beside(out: Path, part: str) -> Path:
    return out.with_name(f"{out.stem}{part}.csv")


def main(arguments: list[str] | None = None) -> None:
    """Run the study, or draw its figure."""
    options = parser(__doc__, "study")
    options.add_argument("--repetitions", type=int, default=10, help="5 halve the time on two cores")
    options.add_argument("--draw", action="store_true")
    chosen = options.parse_args(arguments)
    devices.prepare()
    if chosen.draw:
        draw(chosen.out, chosen.small)
    else:
        run(chosen.out, 2 if chosen.small else chosen.repetitions, chosen.small)


if __name__ == "__main__":
    main()
