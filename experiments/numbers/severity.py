"""Measure errors of severities, coverage and width of their intervals, and the controls' reference. Intended for a GPU.

    python experiments/numbers/severity.py --controls healthy.csv          # writes results/severity.csv
    python experiments/numbers/severity.py --show                          # prints its means
    python experiments/numbers/severity.py --told                          # regression on the truth: results/told.csv
    python experiments/numbers/severity.py --earlier --controls healthy.csv   # results/earlier_training.csv

Seeds of cohorts are not used anywhere else. The truth is in the model's units: the true severity times the true full
change in units of the learned one (`figures.unit`); `raw_` is without that factor.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import pandas as pd
from cases import RESULTS, made, on_all_cores, parser, say, write
from figures import errors_told, measure
from people import Given, Recipe, make
from together import Job, Looks, Pretrained, train_jobs

from rindices import SurrealGAN
from rindices.presets import Preset, blind

FIRST_SEED = 41_000
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
REPETITIONS = 10


def recipes(n_cohorts: int, real: bool, first: int = FIRST_SEED) -> dict[str, list[Recipe]]:
    """Return all cohorts by name."""
    seeds = range(first, first + n_cohorts)
    rows = {f"{kind}, uniform": [Recipe(kind, seed, n_fresh=300) for seed in seeds] for kind in KINDS}
    for kind in ("basic", "mild"):
        for severities in ("absent", "mild", "severe"):
            name = {"absent": "half absent", "mild": "Beta(1, 3)", "severe": "Beta(3, 1)"}[severities]
            rows[f"{kind}, {name}"] = [Recipe(kind, seed, n_fresh=300, severities=severities) for seed in seeds]
        rows[f"{kind}, correlated 0.6"] = [Recipe(kind, seed, n_fresh=300, correlation=0.6) for seed in seeds]
        rows[f"{kind}, covariates"] = [Recipe(kind, seed, n_fresh=300, covariates=2) for seed in seeds]
    for name, covariates in (("", 0), (" with covariates", 2)):
        rows[f"basic, 150 + 300{name}"] = [
            Recipe("basic", seed, 150, 300, n_fresh=300, covariates=covariates) for seed in seeds
        ]
    if real:
        rows |= {f"real {kind}": [Recipe(kind, seed, 149, 298, real=True) for seed in seeds] for kind in KINDS}
    return rows


def judged(name: str, given: Given, preset: Preset, looks: Looks) -> dict[str, object]:
    """Fit from the trained networks, and compare with the truth."""
    model = SurrealGAN(3, n_repetitions=REPETITIONS, preset=preset, random_state=given.recipe.seed)
    model.fit(given.regions, given.patient, given.covariates, store=Pretrained({3: looks}))
    return {"cohort": name, **given.recipe._asdict(), **measure(model, given)}


def earlier() -> Preset:
    """Return the training of version 0.1.0: all controls in every repetition, independent severities."""
    now = blind()
    return replace(now, schedule=replace(now.schedule, folds=0), training=replace(now.training, latent="independent"))


def show(table: pd.DataFrame) -> None:
    """Print means over cohorts."""
    means = table.groupby("cohort", sort=False).mean(numeric_only=True)
    pd.set_option("display.width", 250)
    print(
        means[["concordance", "less_ridge", "unit", "rmse", "raw_rmse", "r_rmse", "bias", "fresh_rmse"]]
        .round(4)
        .to_string()
    )
    covers = [name for name in means if name.startswith(("cover", "fresh_cover", "width", "fresh_width"))]
    print(means[covers].round(3).to_string())
    print(means[["above_95", "seen_above_95", "zero_inside", "fresh_controls_severity"]].dropna().round(4).to_string())


def supervised() -> list[dict[str, object]]:
    """Return the errors of regression trained on the truth, in the same cohorts and units."""
    known = pd.read_csv(RESULTS / "severity.csv")
    rows: list[dict[str, object]] = []
    for name in ("basic, uniform", "mild, uniform", "basic, half absent", "mild, half absent"):
        of = known[known["cohort"] == name].set_index("seed")
        for recipe in recipes(len(of), real=False)[name]:
            given, row = make(recipe), of.loc[recipe.seed]
            controls, patients = (given.regions[who].to_numpy() for who in (~given.patient, given.patient))
            scaled = (patients - controls.mean(axis=0)) / controls.std(axis=0)
            found = errors_told(scaled, given.truth, row["unit"])
            rows.append({"cohort": name, "seed": recipe.seed, "unit": row["unit"], "rmse": row["rmse"], **found})
            say(str(rows[-1]))
    return rows


def compare(table: pd.DataFrame) -> None:
    """Print concordance with the truth minus that of ridge regression, for both trainings on the same cohorts."""
    print(table.pivot_table("less_ridge", "cohort", "training", sort=False).round(4).to_string())


def main() -> None:
    """Train all cohorts, measure them and show the results."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--earlier", action="store_true", help="five kinds, simulated and real, as of version 0.1.0")
    arguments.add_argument("--told", action="store_true", help="on cores: regression told the truth")
    options = arguments.parse_args()
    if options.told:
        table = write(supervised(), options.out / "told.csv")
        print(table.groupby("cohort", sort=False).mean(numeric_only=True).round(4).to_string())
        return
    if options.show:
        show(pd.read_csv(RESULTS / "severity.csv"))
        return
    n_cohorts, real = 1 if options.small else 5, options.controls is not None
    if not options.earlier:
        show(write(trained(blind(), recipes(n_cohorts, real), options), options.out / "severity.csv"))
        return
    wanted = recipes(n_cohorts, real, FIRST_SEED - 1000)
    wanted = {name: of for name, of in wanted.items() if "uniform" in name or "real" in name}
    presets = {"now": blind(), "earlier": earlier()}
    rows = [{"training": name} | row for name, preset in presets.items() for row in trained(preset, wanted, options)]
    compare(write(rows, options.out / "earlier_training.csv"))


def trained(preset: Preset, wanted: dict[str, list[Recipe]], options: argparse.Namespace) -> list[dict[str, object]]:
    """Train on all cohorts, and measure the models."""
    steps = 40 if options.small else blind().schedule.max_steps
    preset = replace(preset, schedule=replace(preset.schedule, min_steps=steps, max_steps=steps))
    asked = [(name, recipe) for name, of in wanted.items() for recipe in of]
    cohorts = made([recipe for _, recipe in asked], options.controls, preset)
    place = {id(study): k for k, (_, study) in enumerate(cohorts)}
    precision = "bfloat16" if preset.schedule.folds else "float32"
    jobs = [Job(study, 3, REPETITIONS) for _, study in cohorts]
    found = {place[id(job.study)]: looks for job, looks in train_jobs(jobs, preset, [steps], precision)}
    say("trained")
    return on_all_cores(judged, [(name, cohorts[k][0], preset, found[k]) for k, (name, _) in enumerate(asked)])


if __name__ == "__main__":
    main()
