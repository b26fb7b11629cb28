"""Sections B.7 and B.8: a model of one half of the people, applied to the other half. Intended for a GPU.

    python experiments/paper/split_half.py --out results/split_half.csv
    python experiments/paper/split_half.py --diagnose --out results/split_half_diagnosis.csv    # from there, on cores

B.7: the five kinds of cohorts with three patterns, and cohorts as large as the paper's (850 + 2204) with two; three
cohorts each, ten models per half, preset `blind`. There is a row per cohort and half: concordance with the truth in the
other half, agreement of the two models there, and correlation of their pattern maps. R-indices from the first half's
model are kept in the same folder. B.8, in a second table: support vector machines classify patients and controls of the
second half by these R-indices and by all regions.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from cases import Case, Known, draw, scaled
from joblib import Parallel, delayed
from judging import best_look, together
from many_cohorts import Brains, Group, Trained, steps_of_looks, train_all
from sklearn.model_selection import StratifiedKFold
from tables import Results, Scope, parser, scope

from rindices.core import devices
from rindices.judging.agreement_and_misfit import match_patterns, pattern_concordance

LARGE = (850, 2204)  # the people of section 4.3
LARGE_KIND = "mild"
N_SPLITS = 100
SCORES = "split_half_scores.npz"


class Half(NamedTuple):
    """Everybody's R-indices from the model of one half, in the order of the table, and its maps."""

    r_indices: np.ndarray  # (people, patterns)
    maps: np.ndarray  # (patterns, regions)
    step: int


def in_first_half(known: Known, seed: int) -> np.ndarray:
    """Assign people to halves, stratified by group."""
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    first = np.zeros(len(known.patient), bool)
    first[next(folds.split(known.patient[:, None], known.patient))[0]] = True
    return first


def half_of(case: Case) -> np.ndarray:
    """Return who belongs to the half named by the case."""
    known = draw(case)
    first = in_first_half(known, case.seed)
    return first if case.part == "1" else ~first


def half_brains(case: Case) -> Brains:
    """Return brains that train on one half and score everybody else after its patients."""
    known, inside = draw(case), half_of(case)
    trained = inside & known.patient
    return scaled(
        known.regions[inside & ~known.patient],
        known.regions[trained],
        known.truth[trained[known.patient]],
        known.regions[~trained],
    )


def describe_half(case: Case, looks: np.ndarray, changes: np.ndarray, steps: list[int]) -> Half:
    """Choose the look by agreement within the half; return everybody's R-indices in the order of the table."""
    known, inside = draw(case), half_of(case)
    trained = inside & known.patient
    place, agreed = best_look(looks[:, :, : trained.sum()], steps, 0)
    if agreed is None:
        raise RuntimeError(f"fewer than two sound models on {case}")
    behind_each_other = np.concatenate([np.flatnonzero(trained), np.flatnonzero(~trained)])
    scores = np.empty((len(known.patient), looks.shape[-1]))
    scores[behind_each_other] = together(looks[place].astype(float), agreed)
    maps = np.mean([changes[place, k][o] for k, o in zip(agreed.members, agreed.orders, strict=True)], axis=0)
    return Half(scores, maps, steps[place])


def compare_halves(case: Case, first: Half, second: Half) -> list[dict]:
    """Evaluate each model in the patients of the other half."""
    known = draw(case)
    in_first = in_first_half(known, case.seed)[known.patient]
    one, two = first.r_indices[known.patient], second.r_indices[known.patient]
    order, _ = match_patterns(one, two)
    maps = [float(np.corrcoef(first.maps[i], second.maps[k])[0, 1]) for i, k in enumerate(order)]
    rows = []
    for name, scores, held_out, step in (("1", one, ~in_first, first.step), ("2", two, in_first, second.step)):
        rows.append(
            {
                "kind": case.kind,
                "seed": case.seed,
                "n_patients": case.n_patients,
                "n_patterns": case.n_patterns,
                "half": int(name),
                "step": step,
                "train": pattern_concordance(known.truth[~held_out], scores[~held_out]),
                "held_out": pattern_concordance(known.truth[held_out], scores[held_out]),
                "agreement": pattern_concordance(one[held_out], two[held_out]),
                "map_correlation": float(np.mean(maps)),
                "lowest_map_correlation": min(maps),
            }
        )
    return rows


def halves_of(group: Group, trained: Trained, steps: list[int], cores: Parallel) -> list[tuple[Case, Half, Half]]:
    """Return each cohort with its two halves."""
    found = cores(
        delayed(describe_half)(
            case, trained.of_cohort(place, case.n_controls + case.n_patients)[:, 0], trained.changes[:, place, 0], steps
        )
        for place, case in enumerate(group.cohorts)
    )
    return [(group.cohorts[k], found[k], found[k + 1]) for k in range(0, len(found), 2)]


def diagnose(case: Case, r_indices: np.ndarray, n_splits: int) -> list[dict]:
    """Classify people of the second half by R-indices from the first half's model, and by all regions."""
    from diagnosis import diagnosis_auc

    known = draw(case)
    inside = ~in_first_half(known, case.seed)
    table = diagnosis_auc(r_indices[inside], known.regions[inside], known.patient[inside], n_splits=n_splits, n_jobs=-1)
    about = {"kind": case.kind, "seed": case.seed, "n_patients": case.n_patients}
    return [about | row for row in table.to_dict("records")]


def diagnose_all(size: Scope, out: Path) -> None:
    """Compute B.8 from the R-indices kept in the same folder."""
    auc = Results(out, ["kind", "seed"], comparable=not size.small)
    n_splits = 2 if size.small else N_SPLITS
    auc.describe(size.preset, seeds=size.seeds, n_splits=n_splits)
    for name, scores in np.load(out.with_name(SCORES)).items():
        kind, *numbers = name.split("/")
        seed, n_controls, n_patients, n_patterns = map(int, numbers)
        if not auc.has(kind=kind, seed=seed, n_patients=n_patients):
            auc.add(diagnose(Case(n_controls, n_patients, kind, seed, n_patterns), scores.astype(float), n_splits))


def run(size: Scope, out: Path) -> None:
    """Train what is missing; a group consists of all cohorts of one size."""
    results = Results(out, ["n_patterns"], comparable=not size.small)
    preset, steps = size.preset, steps_of_looks(size.preset)
    large = (60, 80) if size.small else LARGE
    wholes = {
        3: [Case(*size.size, kind, seed) for kind in size.kinds for seed in size.seeds],
        2: [Case(*large, LARGE_KIND, seed, 2) for seed in size.seeds],
    }
    if size.small:
        del wholes[3]  # repeats the same with another program
    results.describe(preset, seeds=size.seeds, n_models=size.n_models, size=size.size, large=large)
    kept: dict[str, np.ndarray] = {}
    with Parallel(n_jobs=-1) as cores:
        groups = []
        for n_patterns, cases in wholes.items():
            if not results.has(n_patterns=n_patterns):
                halves = [case._replace(part=part) for case in cases for part in ("1", "2")]
                seeds = [2 * half.seed + int(half.part) for half in halves]  # halves must not agree by the same start
                groups.append(Group(n_patterns, halves, seeds, [preset.weights], size.n_models))
        if not groups:
            return
        halves = [half for group in groups for half in group.cohorts]
        brains = dict(zip(halves, cores(delayed(half_brains)(half) for half in halves), strict=True))
        for group, trained in train_all(groups, brains, preset):
            found = halves_of(group, trained, steps, cores)
            for case, first, _ in found:
                name = "/".join(map(str, (case.kind, case.seed, case.n_controls, case.n_patients, case.n_patterns)))
                kept[name] = first.r_indices.astype(np.float32)
            np.savez_compressed(out.with_name(SCORES), **kept)
            rows = cores(delayed(compare_halves)(*of) for of in found)
            results.add([row for of in rows for row in of])


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    options = parser(__doc__, "split_half")
    options.add_argument("--diagnose", action="store_true", help="B.8 from what was trained")
    chosen = options.parse_args(arguments)
    devices.prepare()
    (diagnose_all if chosen.diagnose else run)(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
