"""The paper's whole protocol, with M and λ chosen by agreement alone: section 4.3 and the authors' sample (GPU).

    python experiments/paper/own_protocol.py --study                     # results/own_study.csv, 150 models
    python experiments/paper/own_protocol.py --authors FOLDER            # results/own_authors.csv, 25 models

`--study` is the simulated study of study.py (850 + 2204 people from four sites, two true patterns), with M from 2 to 4,
the paper's five λ and ten models each, trained with the preset `paper`. `--authors` is the sample cohort of the
authors' package (600 + 900 people, 100 regions, three patterns), with M = 3 and five models each. There is a row for
each M and λ: agreement and, if M is correct, the concordance of single models with the truth; for the authors' sample
also rows for regression trained on the truth, our default and its linear model, and two decompositions.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cases import ridge_ceiling
from scoring import Baseline, best_components
from sklearn.decomposition import FastICA
from study import SIZE, make
from table1 import ORTHOGONALITIES
from tables import RESULTS

from rindices import SurrealGAN
from rindices.core import devices
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.judging.selection import sweep
from rindices.judging.study import training_set
from rindices.presets import Correction, Preset, fast, linear, paper
from rindices.training.chunks import Point
from rindices.training.execution import Execution

NUMBERS = (2, 3, 4)


def protocol(
    model: SurrealGAN, people: tuple[Any, ...], truth: np.ndarray, numbers: Sequence[int], n_models: int
) -> list[dict[str, Any]]:
    """Train every M and λ, and return the agreement of models and their concordance with the truth."""
    study = training_set(model, model.preset_with(model.n_patterns, model.orthogonality), *people).study
    points = [Point(number, value) for number in numbers for value in ORTHOGONALITIES]
    execution = Execution()
    swept = sweep(study, points, n_models, execution, exhaustive=True)
    scores: dict[Point, list[np.ndarray]] = {point: [] for point in points}
    for chunk in swept.chunks:
        last = execution.store[chunk].r_indices[-1]
        for place, member in enumerate(chunk.members):
            scores[member.point].append(last[place, :, : member.point.n_patterns].astype(float))
    rows = []
    for one in swept.judged:
        row = {"method": "paper", "n_patterns": one.point.n_patterns, "orthogonality": one.point.orthogonality}
        row |= {
            "agreement": one.best_checkpoint.agreement.pattern_agreement,
            "step": one.best_checkpoint.step,
            "n_models": one.best_checkpoint.n_models,
        }
        if one.point.n_patterns == truth.shape[1]:
            row["concordance"] = np.mean([pattern_concordance(truth, of) for of in scores[one.point]])
        rows.append(row)
    best = max(rows, key=lambda row: row["agreement"])
    return [row | {"chosen": row is best} for row in rows]


def others(regions: pd.DataFrame, patient: np.ndarray, truth: np.ndarray, max_steps: int) -> list[dict[str, Any]]:
    """Return the concordances of the default, its linear model, ridge regression and two decompositions."""
    table, n_patterns = regions.to_numpy(float), truth.shape[1]
    rows = []
    for name, preset in (("default", fast()), ("linear", linear())):
        steps = min(max_steps, preset.schedule.max_steps)
        model = SurrealGAN(n_patterns, n_repetitions=5, preset=preset, max_steps=steps or None, random_state=0)
        model.fit(regions, patient)
        rows.append({"method": name, "n_models": 5, "agreement": model.agreement_.pattern_agreement})
        rows[-1]["concordance"] = pattern_concordance(truth, model.r_indices_[patient])
    rows.insert(0, {"method": "default, one model", "n_models": 5, "concordance": one_model(regions, patient, truth)})
    nmf = Baseline("nmf", n_patterns, random_state=0).fit(table, patient).transform(table[patient])
    standard = (table - table[~patient].mean(axis=0)) / table[~patient].std(axis=0)
    ica = FastICA(n_patterns, random_state=0, max_iter=1000).fit_transform(standard[patient])
    for name, components in (("nmf", nmf), ("ica", ica)):
        rows.append({"method": name, "concordance": best_components(components, truth).concordances.mean()})
    rows.append({"method": "ridge", "concordance": ridge_ceiling(table[patient], truth)})
    return [row | {"n_patterns": n_patterns} for row in rows]


def one_model(regions: pd.DataFrame, patient: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean concordance of five fits of the default with one repetition each."""
    models = [SurrealGAN(truth.shape[1], n_repetitions=1, random_state=seed).fit(regions, patient) for seed in range(5)]
    return float(np.mean([pattern_concordance(truth, model.r_indices_[patient]) for model in models]))


def authors(folder: Path, preset: Preset, n_models: int) -> list[dict[str, Any]]:
    """Compare methods in the authors' sample."""
    table, told = (pd.read_csv(folder / name) for name in ("sample_roi.csv", "sample_data_ground_truth.csv"))
    regions, patient = table.drop(columns=["participant_id", "diagnosis"]), (table["diagnosis"] == 1).to_numpy()
    truth = told.set_index("participant_id").loc[table.loc[patient, "participant_id"]].to_numpy()
    model = SurrealGAN(3, preset=preset, random_state=0)
    beside = others(regions, patient, truth, preset.schedule.max_steps)
    return protocol(model, (regions, patient), truth, [3], n_models) + beside


def made_up_study(preset: Preset, n_models: int, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Simulate the study of section 4.3, and search it as in the paper."""
    study = make(*size, seed=30)
    model = SurrealGAN(2, preset=preset, correction=Correction(site="site"), random_state=1)
    people = (study.regions, study.patient, study.covariates)
    return protocol(model, people, study.truth, NUMBERS, n_models)


def main() -> None:
    """Run the chosen parts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--study", action="store_true")
    options.add_argument("--authors", type=Path)
    options.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    options.add_argument("--small", action="store_true", help="a minute on two cores; results are not comparable")
    chosen = options.parse_args()
    devices.prepare()
    warnings.simplefilter("ignore", UserWarning)
    schedule = replace(paper().schedule, **({"min_steps": 20, "max_steps": 20} if chosen.small else {}))
    preset = replace(paper(), schedule=schedule)
    jobs = {}
    if chosen.authors:
        jobs["own_authors"] = lambda: authors(chosen.authors, preset, 2 if chosen.small else 5)
    if chosen.study:
        jobs["own_study"] = lambda: made_up_study(preset, *((2, (60, 90)) if chosen.small else (10, SIZE)))
    for name, job in jobs.items():
        table = pd.DataFrame(job())
        table.to_csv(chosen.out / f"{name}.csv", index=False, float_format="%.5g")
        print(table.to_string(), flush=True)


if __name__ == "__main__":
    main()
