"""Which training should be the default? Accuracy of variants on all kinds of cohorts, simulated and real.

    python experiments/numbers/settle.py --controls healthy.csv --out results/settled_training.csv

Variants: all controls or four fifths of them in each repetition; independent or correlated severities; single or half
precision. Each is measured after several numbers of steps, without choosing among them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent))
from figures import measure, ridge
from people import Given, Recipe, make
from together import Job, Pretrained, train_jobs

from rindices import SurrealGAN
from rindices.core import devices
from rindices.judging.study import training_set
from rindices.presets import Preset, adjusted, blind

KINDS = ("basic", "overlap", "scarce", "noise", "mild")
REPETITIONS = 10


def variants() -> dict[str, tuple[Preset, str]]:
    """Return the presets compared, and the precision of each."""
    today = replace(
        blind(),
        schedule=replace(blind().schedule, folds=0),
        training=replace(blind().training, latent="independent"),
    )
    folds = replace(today, schedule=replace(today.schedule, folds=5))
    correlated = adjusted(folds, latent="correlated")
    return {
        "today": (today, "float32"),
        "folds": (folds, "bfloat16"),
        "folds, correlated": (correlated, "bfloat16"),
        "slower correlation": (replace(correlated, rates=correlated.rates._replace(correlation=4e-5)), "bfloat16"),
    }


def recipes(seeds: list[int], real: bool) -> list[Recipe]:
    """Return all cohorts."""
    rows = []
    for seed in seeds:
        rows += [Recipe(kind, seed, n_fresh=300) for kind in KINDS]
        rows += [Recipe(kind, seed, n_fresh=300, correlation=0.6) for kind in ("basic", "mild")]
        for severities in ("absent", "mild", "severe"):
            rows += [Recipe(kind, seed, n_fresh=300, severities=severities) for kind in ("basic", "mild")]
        rows += [Recipe("null", seed, n_fresh=300)]
        if real:
            rows += [Recipe(kind, seed, 149, 298, real=True) for kind in KINDS]
    return rows


def judged(given: Given, preset: Preset, store: Pretrained, n_patterns: int, above: float | None) -> dict[str, object]:
    """Fit from the trained networks, and compare with the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SurrealGAN(n_patterns, n_repetitions=REPETITIONS, preset=preset, random_state=given.recipe.seed)
        model.fit(given.regions, given.patient, given.covariates, store=store)
        if given.recipe.kind == "null":
            return {"agreement": model.agreement_.pattern_agreement}
        found = measure(model, given, with_ridge=False)
        return found | ({} if above is None else {"less_ridge": found["concordance"] - above})


def main() -> None:
    """Train all variants, measure them and print means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[501, 502])
    parser.add_argument("--steps", type=int, nargs="+", default=[12_000, 16_000, 20_000, 24_000])
    parser.add_argument("--controls", type=Path)
    parser.add_argument("--variants", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    devices.prepare()
    own = None if options.controls is None else pd.read_csv(options.controls)
    began = time.perf_counter()
    asked = recipes(options.seeds, own is not None)
    with Parallel(n_jobs=-1) as cores:
        cohorts = cores(delayed(make)(recipe, own) for recipe in asked)
        above = cores(
            delayed(ridge)(of.regions[of.patient].to_numpy(), of.truth)
            if of.recipe.kind != "null"
            else delayed(float)(0)
            for of in cohorts
        )
    print(f"{time.perf_counter() - began:.0f} s: {len(cohorts)} cohorts made", flush=True)
    rows: list[dict[str, object]] = []
    for name, (preset, precision) in variants().items():
        if options.variants and name not in options.variants:
            continue
        preset = replace(preset, schedule=replace(preset.schedule, min_steps=1, max_steps=options.steps[-1]))
        made = [
            training_set(SurrealGAN(3, random_state=of.recipe.seed), preset, of.regions, of.patient, of.covariates)
            for of in cohorts
        ]
        jobs = [Job(one.study, 3, REPETITIONS) for one in made]
        place = {id(job.study): k for k, job in enumerate(jobs)}
        with ThreadPoolExecutor(8) as pool:
            running = []
            for job, looks in train_jobs(jobs, preset, options.steps, precision):
                k = place[id(job.study)]
                for at in options.steps:
                    store = Pretrained({3: looks}, until=at)
                    future = pool.submit(judged, cohorts[k], preset, store, 3, above[k])
                    running.append(({"variant": name, "steps": at} | cohorts[k].recipe._asdict(), future))
            rows += [about | future.result() for about, future in running]
        table = pd.DataFrame(rows)
        table.to_csv(options.out, index=False, float_format="%.5f")
        print(f"{time.perf_counter() - began:.0f} s: {name} measured", flush=True)
    table["cohort"] = (
        table["kind"] + " " + table["severities"] + table["correlation"].map(lambda r: f" r={r}" if r else "")
    )
    table.loc[table["real"], "cohort"] = "real " + table["kind"]
    shown = ["concordance", "less_ridge", "agreement", "rmse", "cover95", "width95", "fresh_cover95", "above_95"]
    pd.set_option("display.width", 250)
    print(table.groupby(["cohort", "variant", "steps"], sort=False)[shown].mean().round(4).to_string())


if __name__ == "__main__":
    main()
