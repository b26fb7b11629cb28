"""Table 6: Surreal-GAN, linear and support vector regression in the same five folds, train and test. For a GPU.

    python experiments/paper/folds.py --out results/folds.csv
    python experiments/paper/folds.py --matched --out results/matched_folds.csv
    python experiments/paper/folds.py --default --out results/matched_default_folds.csv   # on cores, one model per fold

Surreal-GAN trains on the patients of four folds and all controls; held-out patients are scored by the same models. The
regressions are trained on the true severities, Surreal-GAN is not. There is a row per cohort, method and fold.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Known, draw, scaled
from joblib import Parallel, delayed
from judging import best_look, together
from many_cohorts import Brains, Group, steps_of_looks, train_all
from sklearn.model_selection import KFold
from tables import Results, Scope, parser, scope

from rindices import SurrealGAN
from rindices.core import devices
from rindices.judging.agreement_and_misfit import concordance, match_patterns, pattern_concordance
from rindices.presets import get_preset

N_FOLDS = 5
FOLD_SEED = 0  # the folds of `supervised_ceilings`


def splits(n_patients: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and the held-out patients of each fold."""
    return list(KFold(N_FOLDS, shuffle=True, random_state=FOLD_SEED).split(np.arange(n_patients)))


def fold_brains(case: Case, fold: int, spread: float) -> Brains:
    """Return brains that train on four folds and also score the fifth; the truth is in the order of scoring."""
    known = draw(case, spread=spread)
    patients = known.regions[known.patient]
    train, test = splits(len(patients))[fold]
    truth = known.truth[np.concatenate([train, test])]
    return scaled(known.regions[~known.patient], patients[train], truth, patients[test])


def concordances(truth: np.ndarray, scores: np.ndarray, n_train: int) -> tuple[float, float]:
    """Match patterns with the truth in training patients; return the concordance in these and in the others."""
    order, matched = match_patterns(truth[:n_train], scores[:n_train])
    test = [concordance(truth[n_train:, i], scores[n_train:, k]) for i, k in enumerate(order)]
    return float(matched.mean()), float(np.mean(test))


def judge_fold(looks: np.ndarray, steps: list[int], truth: np.ndarray, n_train: int) -> list[dict[str, float | str]]:
    """Choose the look by agreement in training patients; return results of its consensus and the mean of its models."""
    place, agreed = best_look(looks[:, :, :n_train], steps, 0)
    members = looks[place].astype(float)
    rows: list[dict[str, float | str]] = []
    if agreed is not None:
        train, test = concordances(truth, together(members, agreed), n_train)
        rows.append({"method": "surreal_gan_consensus", "train": train, "test": test, "n_used": len(agreed.members)})
    finite = members[np.isfinite(members).all(axis=(1, 2))]
    single = np.array([concordances(truth, one, n_train) for one in finite]).mean(axis=0)
    rows.append({"method": "surreal_gan", "train": single[0], "test": single[1], "n_used": len(finite)})
    return [row | {"step": steps[place]} for row in rows]


def regressions(known: Known) -> list[dict]:
    """Return the scores of regressions trained on the truth."""
    from baselines import supervised_ceilings

    table = supervised_ceilings(known.regions[known.patient], known.truth, pattern_concordance, seed=FOLD_SEED)
    return table.to_dict("records")


def run(size: Scope, out: Path) -> None:
    """Train what is missing: all kinds, folds and seeds together."""
    results = Results(out, ["seed"], comparable=not size.small)
    preset = size.preset
    seeds = [seed for seed in size.seeds if not results.has(seed=seed)]
    folds = [str(fold) for fold in range(N_FOLDS)]
    cases = [Case(*size.size, kind, seed, part=fold) for seed in seeds for kind in size.kinds for fold in folds]
    results.describe(preset, seeds=size.seeds, n_folds=N_FOLDS, n_models=size.n_models, size=size.size)
    if not cases:
        return
    steps = steps_of_looks(preset)
    groups = [Group(3, cases, [case.seed for case in cases], [preset.weights], size.n_models)]
    with Parallel(n_jobs=-1) as cores:
        made = cores(delayed(fold_brains)(case, int(case.part), size.spread) for case in cases)
        brains = dict(zip(cases, made, strict=True))
        for group, trained in train_all(groups, brains, preset):
            own = [brains[case] for case in group.cohorts]
            judged = cores(
                delayed(judge_fold)(trained.of_cohort(place, len(one.truth))[:, 0], steps, one.truth, len(one.patients))
                for place, one in enumerate(own)
            )
            names = [{"kind": case.kind, "seed": case.seed} for case in group.cohorts]
            rows = [
                name | {"fold": int(case.part)} | row
                for name, case, found in zip(names, group.cohorts, judged, strict=True)
                for row in found
            ]
            firsts = [case for case in group.cohorts if case.part == "0"]
            told = cores(delayed(regressions)(draw(case, spread=size.spread)) for case in firsts)
            rows += [
                {"kind": case.kind, "seed": case.seed} | row
                for case, found in zip(firsts, told, strict=True)
                for row in found
            ]
            results.add(rows)


def default_fold(case: Case, fold: int, spread: float) -> dict[str, Any]:
    """Return the concordances of one model of the default."""
    known = draw(case, spread=spread)
    controls, patients = known.regions[~known.patient], known.regions[known.patient]
    train, test = splits(len(patients))[fold]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SurrealGAN(3, n_repetitions=1, random_state=case.seed, n_jobs=1)
        model.fit(np.vstack([controls, patients[train]]), np.arange(len(controls) + len(train)) >= len(controls))
        scores = model.transform(patients[np.concatenate([train, test])])
    found = concordances(known.truth[np.concatenate([train, test])], scores, len(train))
    about = {"kind": case.kind, "seed": case.seed, "fold": fold, "method": "default"}
    return about | {"train": found[0], "test": found[1], "n_used": 1}


def run_default(size: Scope, out: Path) -> None:
    """Fit the default on all cores, leaving the accelerator alone."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    cases = [Case(*size.size, kind, seed) for seed in size.seeds for kind in size.kinds]
    jobs = [(case, fold, size.spread) for case in cases for fold in range(N_FOLDS)]
    results = Results(out, ["seed"], comparable=not size.small)
    for row in Parallel(n_jobs=-1, return_as="generator")(delayed(default_fold)(*job) for job in jobs):
        results.add([row])
    results.describe(get_preset("fast"), seeds=size.seeds, n_folds=N_FOLDS, n_models=1, size=size.size)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    options = parser(__doc__, "folds", matched=True)
    options.add_argument("--default", action="store_true", help="one model of the default, at the paper's difficulty")
    chosen = options.parse_args(arguments)
    if chosen.default:
        return run_default(scope(chosen.small, matched=True), chosen.out)
    devices.prepare()
    size = scope(chosen.small, chosen.matched)
    return run(size._replace(n_models=2) if chosen.matched else size, chosen.out)


if __name__ == "__main__":
    main()
