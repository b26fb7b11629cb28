"""Does a search in two stages choose what an exhaustive one chooses, and at what cost? Training is made for a GPU.

    python experiments/choose_setting.py --train                  # all repetitions of all settings on ten cohorts
    python experiments/choose_setting.py                          # plays searches in two stages; writes the table

What trainings showed is kept as agreements of pairs of models, so that any rule can be tried afterwards: a first look
with the repetitions as they are numbered, and with random ones.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from many_cohorts import ALL_REGIONS, Cohort, Group, simulate_all, steps_of_looks, train_all

from rindices.core import devices
from rindices.judging import agreement
from rindices.settings import adjusted, fast

RESULTS = Path(__file__).parent / "results"
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
ORTHOGONALITIES = (0.2, 0.4, 0.8)
N_TRUE = 3
FIRST_LOOKS, FACTORS, MARGINS = (2, 3, 4), (0.0, 1.0, 2.0, 3.0), (0.0, 0.01, 0.02, 0.03)
N_ORDERS = 100


def see(looks: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Keep of one setting's looks ``(looks, repetitions, patients, patterns)`` what a search needs, and the truth.

    ``pairs``: agreements, NaN with a faulty model; ``consensus``: concordance with the truth of the first three
    repetitions and of all.
    """
    n_looks, n_models = looks.shape[:2]
    pairs = np.full((n_looks, n_models, n_models), np.nan, np.float32)
    sound = np.zeros((n_looks, n_models), bool)
    consensus = np.full((n_looks, 2), np.nan)
    for place, members in enumerate(looks.astype(float)):
        sound[place] = [not fault for fault in agreement.faults(members)]
        numbers = np.flatnonzero(sound[place])
        indices = agreement.pairwise(members[numbers])
        pairs[place][np.ix_(numbers, numbers)] = indices[..., 0]
        for which, first in enumerate((numbers < 3, numbers < n_models)):
            if looks.shape[-1] == truth.shape[1] and first.any():
                agreed = agreement.find_consensus(members[numbers[first]], indices[np.ix_(first, first)])
                together = agreement.aligned(members[numbers[first]], agreed).mean(axis=0)
                consensus[place, which] = agreement.pattern_concordance(truth, together)
    return {"pairs": pairs, "sound": sound, "consensus": consensus}


def train(options: argparse.Namespace) -> None:
    """Train all repetitions of all settings; write a file for each number of patterns."""
    preset = adjusted(fast(), max_steps=options.steps)
    sizes = options.size
    cohorts = [Cohort(*sizes, ALL_REGIONS, seed, kind) for kind in KINDS for seed in options.seeds]
    weightings = [preset.weights._replace(orthogonality=value) for value in ORTHOGONALITIES]
    same = [0] * len(cohorts)
    groups = [Group(n, cohorts, same, weightings, options.repetitions) for n in options.patterns]
    names = [f"{cohort.kind} {cohort.seed}" for cohort in cohorts]
    with Parallel(n_jobs=-1) as cores:
        brains = simulate_all(cohorts, preset.schedule.whitening, cores)
        for group, trained in train_all(groups, brains, preset):
            seen = cores(
                delayed(see)(trained.of_cohort(place, cohort.n_patients)[:, weighting], brains[cohort].truth)
                for place, cohort in enumerate(cohorts)
                for weighting in range(len(weightings))
            )
            shape = (len(cohorts), len(weightings))
            arrays = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
            arrays = {name: values.reshape(*shape, *values.shape[1:]) for name, values in arrays.items()}
            options.folder.mkdir(parents=True, exist_ok=True)
            target = options.folder / f"settings_{group.n_patterns}.npz"
            np.savez_compressed(target, cohorts=names, steps=steps_of_looks(preset), **arrays)


class Setting(NamedTuple):
    """What the repetitions of one setting showed on one cohort."""

    n_patterns: int
    orthogonality: float
    pairs: np.ndarray  # (looks, repetitions, repetitions)
    sound: np.ndarray  # (looks, repetitions)
    consensus: np.ndarray  # (looks, 2)


class Seen(NamedTuple):
    """A setting as some of its repetitions show it: at its best look."""

    value: float
    n_models: int
    error: float
    look: int


def seen_by(setting: Setting, repetitions: np.ndarray) -> Seen:
    """Return the best mean agreement over the looks, and its jackknife error (0 where it has none)."""
    square = setting.pairs[:, repetitions[:, None], repetitions].astype(float)
    upper = square[:, *np.triu_indices(len(repetitions), 1)]
    known = ~np.isnan(upper)
    values = np.where(known, upper, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    if not known.any():
        return Seen(-1.0, 0, 0.0, len(values) - 1)
    look = int(values.argmax())
    models = np.flatnonzero(setting.sound[look, repetitions])
    table = np.repeat(square[look][np.ix_(models, models)][..., None], 3, axis=2)
    error = float(np.nan_to_num(agreement.jackknife(table)[0]))
    return Seen(float(values[look]), len(models), error, look)


def rivals(first: list[Seen], factor: float, margin: float) -> list[int]:
    """Return the places of the best setting and of those too close to call after the first look."""
    best = max(range(len(first)), key=lambda place: first[place][:2])
    limit = first[best].value
    return [k for k, one in enumerate(first) if k == best or one.value + max(factor * one.error, margin) >= limit]


def load(folder: Path) -> dict[str, list[Setting]]:
    """Read the settings of each cohort."""
    found: dict[str, list[Setting]] = {}
    for path in sorted(folder.glob("settings_*.npz")):
        with np.load(path) as file:
            n_patterns = int(path.stem.split("_")[1])
            for place, name in enumerate(file["cohorts"].tolist()):
                for k, value in enumerate(ORTHOGONALITIES):
                    arrays = (file[key][place, k] for key in ("pairs", "sound", "consensus"))
                    found.setdefault(name, []).append(Setting(n_patterns, value, *arrays))
    return found


def play(name: str, settings: list[Setting]) -> list[dict]:
    """Search one cohort in two stages by every rule, with the repetitions in their own and in random orders."""
    n_repetitions = settings[0].pairs.shape[1]
    full = [seen_by(setting, np.arange(n_repetitions)) for setting in settings]
    best = max(range(len(full)), key=lambda place: full[place][:2])
    rng = np.random.default_rng(0)
    orders = [np.arange(n_repetitions), *(rng.permutation(n_repetitions) for _ in range(N_ORDERS))]
    kind, seed = name.split()
    rows = []
    for n_first in FIRST_LOOKS:
        firsts = [[seen_by(setting, np.sort(order[:n_first])) for setting in settings] for order in orders]
        for factor, margin in product(FACTORS, MARGINS):
            for number, first in enumerate(firsts):
                close = rivals(first, factor, margin)
                chosen = max(close, key=lambda place: full[place][:2])
                trained = n_first * len(settings) + (n_repetitions - n_first) * len(close)
                rows.append(
                    {
                        "kind": kind,
                        "seed": int(seed),
                        "first_look": n_first,
                        "errors": factor,
                        "margin": margin,
                        "random": number > 0,
                        "n_patterns": settings[chosen].n_patterns,
                        "same_patterns": settings[chosen].n_patterns == settings[best].n_patterns,
                        "same_setting": chosen == best,
                        "loss": _loss(settings, full, best, chosen),
                        "agreement_loss": full[best].value - full[chosen].value,
                        "share": trained / (n_repetitions * len(settings)),
                    }
                )
    return rows


def _loss(settings: list[Setting], full: list[Seen], best: int, chosen: int) -> float:
    """How much worse the consensus of `chosen` is; NaN where a number of patterns cannot be compared with the truth."""
    if chosen == best:
        return 0.0
    return _concordance(settings[best], full[best]) - _concordance(settings[chosen], full[chosen])


def _concordance(setting: Setting, seen: Seen) -> float:
    return float(setting.consensus[seen.look, 1])


def exhaustive(settings: list[Setting]) -> pd.DataFrame:
    """Return agreement and consensus of each setting in full, best first."""
    rows = []
    for setting in settings:
        seen = seen_by(setting, np.arange(setting.pairs.shape[1]))
        rows.append((*setting[:2], seen.value, seen.error, seen.n_models, seen.look, _concordance(setting, seen)))
    names = ["n_patterns", "orthogonality", "agreement", "error", "n_models", "look", "consensus"]
    return pd.DataFrame(rows, columns=names).sort_values("agreement", ascending=False)


RULE = ["first_look", "errors", "margin"]


def summary(plays: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return how often the same was chosen, the worst losses and the mean share of the models trained."""
    groups = plays.groupby(by)
    kept = {
        "same_patterns": groups["same_patterns"].mean(),
        "same_setting": groups["same_setting"].mean(),
        "worst_loss": groups["loss"].max(),
        "worst_agreement_loss": groups["agreement_loss"].max(),
        "share": groups["share"].mean(),
    }
    return pd.DataFrame(kept).round(4).reset_index()


def analyse(options: argparse.Namespace) -> None:
    """Play all searches, write the table, print it by rule."""
    cohorts = load(options.folder)
    for name, settings in cohorts.items():
        print(f"{name}\n{exhaustive(settings).round(4).head(options.show).to_string(index=False)}")
    plays = pd.DataFrame([row for name, settings in cohorts.items() for row in play(name, settings)])
    summary(plays, [*RULE, "kind", "seed", "random"]).to_csv(options.out, index=False)
    for random in (False, True):
        print(f"\n{'random orders' if random else 'repetitions as they are numbered'}")
        print(summary(plays[plays["random"] == random], RULE).to_string(index=False))


def main() -> None:
    """Train, or play searches with what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--patterns", type=int, nargs="+", default=[3, 2, 4, 5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--size", type=int, nargs=2, default=[492, 900], help="controls and patients")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, help="stop earlier than the preset, to try this script")
    parser.add_argument("--folder", type=Path, default=RESULTS / "two_stage", help="what trainings showed")
    parser.add_argument("--show", type=int, default=4, help="settings to print of each cohort")
    parser.add_argument("--out", type=Path, default=RESULTS / "two_stage.csv")
    options = parser.parse_args()
    if options.train:
        devices.prepare()
        train(options)
    else:
        analyse(options)


if __name__ == "__main__":
    main()
