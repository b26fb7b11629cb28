"""How far do R-indices move when nothing of importance changed, and what does their spread cover? For a GPU.

    python experiments/stability.py --train
    python experiments/stability.py --train --controls healthy.csv    # patterns put into real people
    python experiments/stability.py                                   # the table

Each cohort is fitted as it is; then its people are scored by the same models with values moved by one rounding step, by
rounding to three digits and by 1 % of noise; then models are trained again: with other seeds, on moved values, and on
other people with the same disease. The spread is what `r1_sd` says: the sd over repetitions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from many_cohorts import NOT_REGIONS, Brains, Cohort, Group, steps_of_looks, train_all

from rindices import simulate_cohort
from rindices.core import devices
from rindices.judging import agreement
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.presets import adjusted, blind
from rindices.scoring.consensus_and_person import aligned, find_consensus

OUT = Path(__file__).parents[1] / "results" / "stability.csv"
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
OTHER_PEOPLE = 500  # added to the seed of a cohort
WRITTEN_DIGITS, FEW_DIGITS = 6, 3
BOUND = 1.96


def last_digit(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move every value up or down by one unit of the last digit that is written."""
    unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - (WRITTEN_DIGITS - 1))
    return values + rng.choice([-1, 1], values.shape) * unit


def three_digits(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Round to three significant digits."""
    unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - (FEW_DIGITS - 1))
    return np.round(values / unit) * unit


def one_percent(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Multiply by independent factors with an sd of 1 %."""
    return values * (1 + 0.01 * rng.standard_normal(values.shape))


MOVES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "last digit": last_digit,
    "three digits": three_digits,
    "1 % noise": one_percent,
}


class Table(NamedTuple):
    """Values of controls and patients, and the patients' severities."""

    controls: np.ndarray
    patients: np.ndarray
    truth: np.ndarray

    def moved(self, how: str, seed: int) -> Table:
        """Return the same people, measured a little differently."""
        rng = np.random.default_rng([seed, list(MOVES).index(how)])
        return self._replace(controls=MOVES[how](self.controls, rng), patients=MOVES[how](self.patients, rng))


def draw(kind: str, seed: int, healthy: pd.DataFrame | None) -> Table:
    """Simulate a cohort."""
    made = simulate_cohort(kind, seed=seed, controls=healthy)
    regions = made.table.drop(columns=NOT_REGIONS).to_numpy(float)
    control = (made.table["diagnosis"] == "CN").to_numpy()
    return Table(regions[control], regions[~control], made.truth.drop(columns="participant_id").to_numpy(float))


def prepare(learn: Table, score: list[np.ndarray], strength: float) -> Brains:
    """Scale people by the controls that are learned from; `score` are further people to be scored."""
    scaler = ControlScaler.fit(learn.controls)
    controls, patients = scaler.transform(learn.controls), scaler.transform(learn.patients)
    others = np.concatenate([scaler.transform(people) for people in score]) if score else None
    return Brains(controls, patients, whitening_matrix(controls, strength), learn.truth, others)


def fits_of(kind: str, seed: int, healthy: pd.DataFrame | None, strength: float) -> dict[str, tuple[Brains, int]]:
    """Return all trainings about one cohort by name, with the seed of their models."""
    table = draw(kind, seed, healthy)
    moved = {how: table.moved(how, seed) for how in MOVES}
    fits = {
        "as it is": (prepare(table, [own.patients for own in moved.values()], strength), 0),
        "trained again": (prepare(table, [], strength), 1),
    }
    for how, own in moved.items():  # the people scored are always those of the table as it is
        fits[f"trained on {how}"] = (prepare(own, [table.patients], strength), 0)
    if healthy is None:
        other = draw(kind, seed + OTHER_PEOPLE, None)
        fits["trained on other people"] = (prepare(other, [table.patients], strength), 0)
    return fits


class Consensus(NamedTuple):
    """What a user is shown: R-indices and their spread, of everybody scored."""

    r_indices: np.ndarray
    spread: np.ndarray
    pattern_agreement: float


def consensus(looks: np.ndarray, n_patients: int) -> Consensus:
    """Average the repetitions that agree, at the look at which they agree best on the patients they were trained on."""
    best = Consensus(np.empty(0), np.empty(0), -1.0)
    for members in looks.astype(float):
        own = members[:, :n_patients]
        sound = [number for number, fault in enumerate(agreement.faults(own)) if not fault]
        pairs = agreement.pairwise(own[sound])
        value = agreement.mean_agreement(pairs).pattern_agreement
        if value > best.pattern_agreement:
            all_scores = aligned(members[sound], find_consensus(own[sound], pairs))
            best = Consensus(all_scores.mean(axis=0), all_scores.std(axis=0, ddof=1), value)
    return best


def compare(reference: Consensus, other: np.ndarray, n_patients: int, *, match: bool) -> dict[str, float]:
    """Say how far `other` lies from the R-indices of the cohort as it is, in units of them and of their spread."""
    scores, spread = reference.r_indices[:n_patients], reference.spread[:n_patients]
    if match:
        other = other[:, agreement.match_patterns(scores, other)[0]]
    distance = np.abs(other - scores)
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(scores.T, other.T, strict=True)]
    return {
        "concordance": agreement.pattern_concordance(other, scores),
        "correlation": float(np.mean(correlations)),
        "rms": float(np.sqrt((distance**2).mean())),
        "p99": float(np.quantile(distance, 0.99)),
        "rms_of_spread": float(np.sqrt((spread**2).mean())),
        "covered": float((distance <= BOUND * spread).mean()),
    }


def describe(fits: dict[str, np.ndarray], truth: np.ndarray) -> list[dict[str, object]]:
    """Compare all that was trained about one cohort with the cohort as it is."""
    n_patients = len(truth)
    reference = consensus(fits["as it is"], n_patients)
    rows: list[dict[str, object]] = [{"what": "truth"} | compare(reference, truth, n_patients, match=True)]
    for place, how in enumerate(MOVES, start=1):
        moved = reference.r_indices[place * n_patients : (place + 1) * n_patients]
        rows.append({"what": f"scored with {how}"} | compare(reference, moved, n_patients, match=False))
    for name, looks in fits.items():
        if name != "as it is":
            other = consensus(looks, n_patients)
            # Those trained on moved or other values score the people of the table as it is behind their own.
            scored = other.r_indices[:n_patients] if name == "trained again" else other.r_indices[n_patients:]
            rows.append({"what": name} | compare(reference, scored, n_patients, match=True))
    return rows


def train(options: argparse.Namespace) -> None:
    """Train all models as one group and append the comparisons."""
    preset = adjusted(blind(), max_steps=options.steps)
    healthy = None if options.controls is None else pd.read_csv(options.controls)
    wanted = [(kind, seed) for kind in options.kinds for seed in options.seeds]
    with Parallel(n_jobs=-1) as cores:
        made = cores(delayed(fits_of)(*one, healthy, preset.schedule.whitening) for one in wanted)
        brains, seeds = {}, []
        for (kind, seed), fits in zip(wanted, made, strict=True):
            for name, (own, models) in fits.items():
                sizes = (len(own.controls), len(own.patients), own.controls.shape[1])
                brains[Cohort(*sizes, seed, f"{kind}/{name}")] = own
                seeds.append(models)
        group = Group(3, list(brains), seeds, [preset.weights], options.repetitions)
        (_, trained), *_ = train_all([group], brains, preset)
        places = {(cohort.kind, cohort.seed): place for place, cohort in enumerate(brains)}
        looks = [
            {
                name: trained.r_indices[:, places[f"{kind}/{name}", seed], 0, :, : len(own.scored())]
                for name, (own, _) in fits.items()
            }
            for (kind, seed), fits in zip(wanted, made, strict=True)
        ]
        truths = [fits["as it is"][0].truth for fits in made]
        found = cores(delayed(describe)(*one) for one in zip(looks, truths, strict=True))
    people = "simulated" if healthy is None else options.name
    rows = [
        {"people": people, "kind": kind, "seed": seed} | row
        for (kind, seed), own in zip(wanted, found, strict=True)
        for row in own
    ]
    print(len(steps_of_looks(preset)), "looks at", len(brains), "fits")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).round(5).to_csv(options.out, mode="a", header=not options.out.exists(), index=False)


def main() -> None:
    """Train, or show what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[20, 21, 22], help="of the cohorts")
    parser.add_argument("--controls", type=Path, help="table of real healthy people to put the patterns into")
    parser.add_argument("--name", default="IXI", help="what to call these people")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, help="stop earlier than the preset, to try this script")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.train:
        devices.prepare()
        train(options)
    else:
        table = pd.read_csv(options.out)
        print(table.drop(columns="seed").groupby(["people", "kind", "what"], sort=False).mean().round(4).to_string())


if __name__ == "__main__":
    main()
