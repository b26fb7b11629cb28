"""Compare networks from a linear start, networks from random weights, and linear models, on the same cohorts (GPU).

    python experiments/numbers/linear_start.py --controls healthy.csv --authors FOLDER   # results/linear_start.csv
    python experiments/numbers/linear_start.py --matched     # at the paper's difficulty: results/matched.csv
    python experiments/numbers/linear_start.py --show

Seeds of cohorts are not used anywhere else; settings are those of the presets. `less_ridge` is the concordance of the
R-indices with the truth minus that of ridge regression trained on the truth; `networks`, `linear` and `blind` are the
same for the networks alone, the linear models alone and the preset `blind`. `agree_3` and `with_linear_3` are the
verdict's criteria for three trainings, for five and ten likewise: their agreement, and the concordance of their
consensus with a linear model of everybody.

With `--matched`, healthy brains vary so much that unregularised regression, trained on the true severities of four
fifths of the patients of `basic`, does as well in the last fifth as in the paper's Table 6. There is a row for each of
the paper's values of λ, for single models and for their consensus.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from cases import RESULTS, on_all_cores, parser, row_by_row, say, write
from figures import measure, ridge
from jax import Array
from people import Given, Recipe, make
from together import Job, Looks, Pretrained, _correlations, _Members, _score, _stacked, _start, train_jobs

from rindices import SurrealGAN
from rindices.core import inference
from rindices.core.losses import Prior
from rindices.core.step import COPULA_EVERY, Data, TrainState, step
from rindices.judging.agreement_and_misfit import matched_concordance, mean_agreement, pairwise, pattern_concordance
from rindices.judging.selection import MOST_REPLACED
from rindices.judging.study import Study, training_set
from rindices.linear import fitted
from rindices.presets import Preset, blind, fast
from rindices.scoring.consensus_and_person import aligned, find_consensus
from rindices.training.chunks import Chunk, Member, Point, Trajectory, starts_of
from rindices.training.starts import Start, beside_networks

FIRST_SEED = 320_000
REPETITIONS = 10
TRAINED = REPETITIONS + MOST_REPLACED  # the last ones only replace failed ones
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
MATCHED_SPREAD = 1.71  # regression then reaches 0.871 in held-out patients of basic, as in the paper
MATCHED_SEEDS = (20, 21, 22)  # those of experiments/paper
ORTHOGONALITIES = (0.1, 0.2, 0.4, 0.6, 0.8)
_NAMES = {"absent": "half absent", "mild": "Beta(1, 3)", "severe": "Beta(3, 1)"}


def recipes(n_cohorts: int, real: bool, first: int = 0) -> dict[str, list[Recipe]]:
    """Return all cohorts by name: the kinds of severity.csv, hard ones, and ones where a linear model should fail."""
    seeds = range(FIRST_SEED + first, FIRST_SEED + n_cohorts)

    def some(**of: object) -> list[Recipe]:
        return [Recipe(seed=seed, n_fresh=0 if of.get("real") else 300, **of) for seed in seeds]

    rows = {f"{kind}, uniform": some(kind=kind) for kind in KINDS}
    for kind in ("basic", "mild"):
        rows |= {f"{kind}, {name}": some(kind=kind, severities=of) for of, name in _NAMES.items()}
        rows[f"{kind}, correlated 0.6"] = some(kind=kind, correlation=0.6)
        rows[f"{kind}, covariates"] = some(kind=kind, covariates=2)
        rows[f"hard {kind}"] = some(kind=kind, spread=1.7)
    small = {"n_controls": 150, "n_patients": 300}
    rows["basic, 150 + 300"] = some(kind="basic", **small)
    rows["basic, 150 + 300 with covariates"] = some(kind="basic", covariates=2, **small)
    rows |= {kind: some(kind=kind) for kind in ("dense", "half", "graded", "signed", "shift")}
    if real:
        rows |= {f"real {kind}": some(kind=kind, n_controls=149, n_patients=298, real=True) for kind in KINDS}
    return rows


def authors_sample(folder: Path) -> Given:
    """Return the authors' own sample cohort with its truth."""
    table, truth = (pd.read_csv(folder / name) for name in ("sample_roi.csv", "sample_data_ground_truth.csv"))
    regions = table.drop(columns=["participant_id", "diagnosis"], errors="ignore").select_dtypes("number")
    severities = truth.select_dtypes("number").to_numpy(float)[:, -3:]
    nobody = (regions[:0], None, np.zeros(0, bool), severities[:0])
    changes = np.zeros((3, regions.shape[1]))
    recipe = Recipe("basic", FIRST_SEED, n_regions=regions.shape[1])
    return Given(recipe, regions, (table["diagnosis"] == 1).to_numpy(), None, severities, *nobody, changes)


class Made(NamedTuple):
    """A cohort prepared for training."""

    name: str
    given: Given
    study: Study
    starts: list[Start]
    ridge: float


def ready(name: str, recipe: Recipe | Given, own: pd.DataFrame | None) -> Made:
    """Simulate a cohort, and fit the linear models of its repetitions."""
    given = recipe if isinstance(recipe, Given) else make(recipe, own)
    seed = given.recipe.seed
    model = SurrealGAN(random_state=seed)
    study = training_set(model, fast(), given.regions, given.patient, given.covariates).study
    study.method(3)
    members = [Member(Point(3, 0.8), k) for k in range(TRAINED)]
    starts = starts_of(members, study.settings, study.people())
    return Made(name, given, study, starts, ridge(study.residuals[study.patient], given.truth))


class FromStarts(Pretrained):
    """A store of networks with the linear models from which they started."""

    def __init__(self, looks: Looks, starts: list[Start], patients: np.ndarray) -> None:
        super().__init__({3: looks})
        self._starts, self._patients = starts, patients

    def __getitem__(self, chunk: Chunk) -> Trajectory:
        found = super().__getitem__(chunk)
        starts = [self._starts[member.repetition] for member in chunk.members]
        part, r_indices = beside_networks(starts, found.r_indices[-1], self._patients)
        step_ = int(found.steps[-1])
        weights = {step_: found.weights[step_]._replace(linear=part)}
        return Trajectory(found.steps[-1:], r_indices[None], {}, found.correlations[-1:], weights)


def train(cohorts: list[Made], preset: Preset, steps: int) -> list[Looks]:
    """Train the repetitions of all cohorts with the same number of regions together, each with its own prior."""
    group = [Job(one.study, 3, TRAINED) for one in cohorts]
    n_rows = -(-max(max((~j.study.patient).sum(), j.study.patient.sum()) for j in group) // 128) * 128
    data, patients, members = _stacked(group, preset, int(n_rows))
    priors = [start.prior for one in cohorts for start in one.starts]
    prior = Prior(*(jnp.asarray(np.stack(part), jnp.float32) for part in zip(*priors, strict=True)))
    states = _start(members.key, n_regions=data.controls.shape[-1], n_patterns=3, preset=preset)
    began = time.perf_counter()
    states = _advance(states, data, members, prior, steps, preset=preset)
    r_indices = np.asarray(_score(states.parameters, patients, members.cohort))
    say(f"{len(priors)} networks, {len(priors) * steps / (time.perf_counter() - began):,.0f} steps a second")
    correlations, weights = _correlations(states, 3), jax.tree.map(np.asarray, states.parameters)
    looks = []
    for place, one in enumerate(cohorts):
        mine = slice(place * TRAINED, (place + 1) * TRAINED)
        own = {steps: jax.tree.map(lambda leaf, mine=mine: leaf[mine], weights)}
        looks.append(Looks([steps], r_indices[None, mine, : one.study.patient.sum()], correlations[None, mine], own))
    return looks


@partial(jax.jit, static_argnames="preset", donate_argnames="states")
def _advance(
    states: TrainState, data: Data, members: _Members, prior: Prior, n_steps: int, *, preset: Preset
) -> TrainState:
    def one_member(state: TrainState, member: _Members, prior: Prior) -> TrainState:
        own = jax.tree.map(lambda leaf: leaf[member.cohort], data)
        own = own._replace(drawn=member.controls, n_controls=member.n_controls, prior=prior)

        def one_step(number: Array, before: TrainState) -> TrainState:
            moves = number % COPULA_EVERY == 0
            return step(before, own, preset.weights, preset.rates, preset.training, 32, "bfloat16", moves)[0]

        return jax.lax.fori_loop(0, n_steps, one_step, state)

    return jax.vmap(one_member)(states, members, prior)


def judged(one: Made, looks: Looks, blind_looks: Looks | None, steps: int) -> list[dict[str, object]]:
    """Fit from the trained networks, and compare with the truth."""
    given, people = one.given, one.study.people()
    model = SurrealGAN(3, n_repetitions=REPETITIONS, preset=fast(), max_steps=steps, random_state=given.recipe.seed)
    model.fit(given.regions, given.patient, given.covariates, store=FromStarts(looks, one.starts, people.patients))
    row = {"cohort": one.name, **given.recipe._asdict(), **measure(model, given, with_ridge=False)}
    alone = inference.r_indices(inference.without_linear(model.models_), people.patients)
    readings = {"networks": alone.mean(axis=0)}
    _, by_linear = beside_networks(one.starts[:REPETITIONS], None, people.patients)
    readings["linear"] = aligned(by_linear.astype(float), find_consensus(by_linear.astype(float))).mean(axis=0)
    if blind_looks is not None:
        random = blind_looks.r_indices[-1].astype(float)
        sound = random[np.isfinite(random).all(axis=(1, 2))]
        agreed = find_consensus(sound)
        readings["blind"], row["blind_kept"] = aligned(sound, agreed).mean(axis=0), len(agreed.kept)
    row |= {name: pattern_concordance(given.truth, read) - one.ridge for name, read in readings.items()}
    row |= {"ridge": one.ridge, "less_ridge": float(row["concordance"]) - one.ridge}
    row |= {"method": one.study.method(3), "left_out": len(model.left_out_)}
    controls, patients = one.study.standardised()
    everybody = fitted(one.study.method(3), controls, patients, 3).severities(patients)
    _, rule = beside_networks(one.starts, looks.r_indices[-1], people.patients)
    for number in (3, 5, 10):
        row |= {f"agree_{number}": _agreement(rule[:number])}
        row |= {f"with_linear_{number}": matched_concordance(_consensus(rule[:number]), everybody)}
    return [row]


def _agreement(members: np.ndarray) -> float:
    return mean_agreement(pairwise(members.astype(float))).pattern_agreement


def _consensus(members: np.ndarray) -> np.ndarray:
    sound = members[np.isfinite(members).all(axis=(1, 2))].astype(float)
    return aligned(sound, find_consensus(sound)).mean(axis=0)


def matched(small: bool) -> list[dict[str, object]]:
    """Train on cohorts of the paper's difficulty at each λ, from a linear start and from random weights."""
    seeds = MATCHED_SEEDS[: 1 if small else None]
    asked = [Recipe(kind, seed, spread=MATCHED_SPREAD) for kind in KINDS[:: 4 if small else 1] for seed in seeds]
    cohorts: list[Made] = on_all_cores(ready, [(recipe.kind, recipe, None) for recipe in asked])
    say(f"{len(cohorts)} cohorts with their linear models")
    rows: list[dict[str, object]] = []
    for value in ORTHOGONALITIES[:: 4 if small else 1]:
        presets = [replace(of, weights=of.weights._replace(orthogonality=value)) for of in (fast(), blind())]
        steps = [20 if small else of.schedule.max_steps for of in presets]
        started = train(cohorts, presets[0], steps[0])
        random = [
            looks for _, looks in train_jobs([Job(one.study, 3, TRAINED) for one in cohorts], presets[1], steps[1:])
        ]
        for one, own, other in zip(cohorts, started, random, strict=True):
            patients = one.study.people().patients
            readings = {"default": beside_networks(one.starts, own.r_indices[-1], patients)[1]}
            readings |= {"networks": own.r_indices[-1], "random start": other.r_indices[-1]}
            readings["linear"] = beside_networks(one.starts, None, patients)[1]
            for name, members in readings.items():
                members = members[:REPETITIONS].astype(float)
                single = [pattern_concordance(one.given.truth, of) for of in members if np.isfinite(of).all()]
                row = {"preset": name, "kind": one.name, "seed": one.given.recipe.seed, "orthogonality": value}
                row |= {"ridge": one.ridge, "single": float(np.mean(single)), "n_models": len(single)}
                row |= {"consensus": pattern_concordance(one.given.truth, _consensus(members))}
                rows.append(row | {"agreement": _agreement(members[np.isfinite(members).all(axis=(1, 2))])})
    return rows


def show(table: pd.DataFrame) -> None:
    """Print means over cohorts, and standard errors of the gain over `blind`."""
    groups = table.groupby("cohort", sort=False)
    names = ["ridge", "less_ridge", "networks", "linear", "blind"]
    means = groups[names].mean()
    means["n"] = groups.size()
    means["gain"] = means["less_ridge"] - means["blind"]
    means["gain_se"] = (table["less_ridge"] - table["blind"]).groupby(table["cohort"], sort=False).sem()
    means["left_out"] = groups["left_out"].sum()
    pd.set_option("display.width", 250)
    print(means.round(4).to_string())
    print(means.mean().round(4).to_string())
    others = ["rmse", "cover95", "fresh_cover95", "fresh_raw_cover95", "width95", "above_95", "fresh_controls_severity"]
    print(groups[[name for name in others if name in table]].mean().round(3).to_string())
    for number in (3, 5, 10):
        least = table[[f"agree_{number}", f"with_linear_{number}"]].min(axis=1)
        print(f"{number} repetitions: {(least < 0.6).sum()} of {least.notna().sum()} cohorts would not be reproducible")


def show_matched(table: pd.DataFrame) -> None:
    """Print results at the λ of the best agreement, by preset and kind: single models, consensus, and regression."""
    best = table.loc[table.groupby(["preset", "kind", "seed"])["agreement"].idxmax()]
    for reading in ("single", "consensus"):
        print(reading, best.pivot_table(index="preset", columns="kind", values=reading).round(3).to_string(), sep="\n")
    print(best.groupby("kind")["ridge"].mean().round(3).to_string())


def main() -> None:
    """Train all cohorts, measure them and show the results."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--authors", type=Path, help="folder with the authors' sample cohort")
    arguments.add_argument("--cohorts", type=int, default=10)
    arguments.add_argument("--first", type=int, default=0, help="number of the first cohort of a row")
    arguments.add_argument("--matched", action="store_true", help="the five kinds at the paper's difficulty")
    options = arguments.parse_args()
    if options.show:
        show(pd.read_csv(RESULTS / "linear_start.csv"))
        show_matched(pd.read_csv(RESULTS / "matched.csv"))
        return
    warnings.simplefilter("ignore")
    if options.matched:
        show_matched(write(matched(options.small), options.out / "matched.csv"))
        return
    own = None if options.controls is None else pd.read_csv(options.controls)
    wanted = recipes(1 if options.small else options.cohorts, own is not None, 0 if options.small else options.first)
    asked: list[tuple[str, object, pd.DataFrame | None]] = [
        (name, one, own) for name, of in wanted.items() for one in of
    ]
    if options.authors is not None:
        asked.append(("the authors' sample", authors_sample(options.authors), None))
    if options.small:
        asked = asked[::9]
    cohorts: list[Made] = on_all_cores(ready, asked)
    say(f"{len(cohorts)} cohorts with their linear models")
    steps = (20, 20) if options.small else (fast().schedule.max_steps, blind().schedule.max_steps)
    by_regions: dict[int, list[Made]] = {}
    for one in cohorts:
        by_regions.setdefault(one.study.residuals.shape[1], []).append(one)
    jobs = []
    for group in by_regions.values():
        started = train(group, fast(), steps[0])
        random = dict(train_jobs([Job(one.study, 3, REPETITIONS) for one in group], blind(), [steps[1]]))
        by_study = {id(job.study): looks for job, looks in random.items()} if random else {}
        jobs += [(one, looks, by_study.get(id(one.study)), steps[0]) for one, looks in zip(group, started, strict=True)]
    say("trained")
    show(row_by_row(judged, jobs, options.out / "linear_start.csv"))


if __name__ == "__main__":
    main()
