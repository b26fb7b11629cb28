"""Severities that are correlated: does it help to let the model know, and is the correlation found? Made for a GPU.

    python experiments/correlated.py --out results/correlated.csv

Three patterns, cohorts of two kinds, true correlation of normal scores 0, 0.3 and 0.6, three cohorts each, ten
repetitions. Independent severities, severities drawn from the copula that is learned (at several learning rates), and
severities weighted by its density. A row per variant and cohort, at the checkpoint of the best agreement: concordance
of the consensus with the truth, and the mean absolute error, over pairs of patterns, of two estimates of the
correlation: the one that was learned, and the one that the R-indices of the patients have.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from joblib import Parallel, delayed
from many_cohorts import ALL_REGIONS, BATCH_SIZE, Brains, score, stack, start
from scipy.stats import spearmanr

from rindices import simulate_cohort
from rindices.core.losses import unit_rows
from rindices.core.step import Data, TrainState, step
from rindices.judging import agreement
from rindices.preprocessing import ControlScaler, whitening_matrix
from rindices.presets import LearningRates, Training, blind
from rindices.scoring.consensus_and_person import aligned, find_consensus

N_PATTERNS = 3
BASE_RATE = LearningRates().generator


class Case(NamedTuple):
    """One cohort."""

    kind: str
    correlation: float
    seed: int


class Variant(NamedTuple):
    """How severities are treated; variants that differ in the rate only share a program."""

    latent: str
    penalty: float
    rate: float


VARIANTS = [
    Variant("independent", 0.02, BASE_RATE / 30),
    Variant("weighted", 0.02, BASE_RATE / 30),
    *(Variant("sampled", penalty, BASE_RATE / part) for penalty in (0.02, 0.01, 0.005) for part in (30, 10, 3)),
    *(Variant("sampled", 0.0, BASE_RATE / part) for part in (30, 10)),
]


def simulate(case: Case) -> Brains:
    """Draw a cohort and scale it by its controls."""
    made = simulate_cohort(case.kind, seed=case.seed, severity_correlation=case.correlation)
    regions = made.table.drop(columns=["participant_id", "diagnosis", "age", "sex"]).to_numpy()[:, :ALL_REGIONS]
    control = (made.table["diagnosis"] == "CN").to_numpy()
    scaled = ControlScaler.fit(regions[control]).transform(regions)
    whitening = whitening_matrix(scaled[control], 1.0)
    return Brains(scaled[control], scaled[~control], whitening, made.truth.drop(columns="participant_id").to_numpy())


@partial(jax.jit, static_argnames="training", donate_argnames="states")
def advance(
    states: TrainState, data: Data, place: Array, rates: Array, n_steps: int, *, training: Training
) -> TrainState:
    """Advance all models by `n_steps`, each on its own cohort at its own rate."""

    def one(state: TrainState, cohort: Array, rate: Array) -> TrainState:
        own = jax.tree.map(lambda leaf: leaf[cohort], data)
        all_rates = LearningRates()._replace(correlation=rate)
        return jax.lax.fori_loop(
            0, n_steps, lambda _, s: step(s, own, blind().weights, all_rates, training, BATCH_SIZE)[0], state
        )

    return jax.vmap(one)(states, place, rates)


def train(variants: list[Variant], brains: list[Brains], looks: list[int], n_repetitions: int) -> tuple[list, list]:
    """Train all variants of one program; return R-indices and correlations by look, variant, cohort, repetition."""
    training = replace(blind().training, latent=variants[0].latent, correlation_penalty=variants[0].penalty)
    shape = (len(variants), len(brains), n_repetitions)
    which, place, repetition = (axis.ravel() for axis in np.indices(shape))
    rates = jnp.asarray([variant.rate for variant in variants])[which]
    data, patients = stack(brains, max(len(one.patients) for one in brains))
    keys = jax.vmap(lambda number: jax.random.fold_in(jax.random.key(0), number))(jnp.asarray(repetition))
    preset = replace(blind(), training=training)
    states = start(keys, n_regions=data.controls.shape[-1], n_patterns=N_PATTERNS, preset=preset)
    place = jnp.asarray(place)
    r_indices, correlations, done = [], [], 0
    for at in looks:
        states = advance(states, data, place, rates, at - done, training=training)
        done = at
        scores = np.asarray(score(states.parameters, patients, place))
        r_indices.append(scores.reshape(*shape, *scores.shape[1:]))
        factors = np.broadcast_to(np.eye(N_PATTERNS), (len(keys), N_PATTERNS, N_PATTERNS))
        if states.copula is not None:
            factors = np.asarray(jax.vmap(unit_rows)(states.copula.raw))
        correlations.append((factors @ factors.swapaxes(1, 2)).reshape(*shape, N_PATTERNS, N_PATTERNS))
        print(f"{variants[0].latent} {variants[0].penalty}: step {at}", flush=True)
    return r_indices, correlations


def judge(members: list[np.ndarray], correlations: list[np.ndarray], truth: np.ndarray) -> dict[str, float]:
    """Choose the look of the best agreement, and compare its consensus with the truth."""
    found = []
    for scores, learned in zip(members, correlations, strict=True):
        scores = scores[:, : len(truth)].astype(float)
        sound = [k for k, fault in enumerate(agreement.faults(scores)) if not fault]
        if len(sound) > 1:
            pairs = agreement.pairwise(scores[sound])
            found.append((agreement.mean_agreement(pairs).pattern_agreement, scores[sound], learned[sound], pairs))
    value, scores, learned, pairs = max(found, key=lambda one: one[0])
    agreed = find_consensus(scores, pairs)
    together = aligned(scores, agreed).mean(axis=0)
    ordered = [learned[k][np.ix_(o, o)] for k, o in zip(agreed.kept, agreed.orders, strict=True)]
    upper = np.triu_indices(N_PATTERNS, 1)
    ranks = spearmanr(together).statistic
    return {
        "agreement": value,
        "concordance": agreement.pattern_concordance(truth, together),
        "single": float(np.mean([agreement.pattern_concordance(truth, one) for one in scores])),
        "learned": float(np.mean(ordered, axis=0)[upper].mean()),
        "of_r_indices": float((2 * np.sin(np.pi / 6 * ranks))[upper].mean()),
        "learned_pairs": np.mean(ordered, axis=0)[upper].round(4).tolist(),
        "r_index_pairs": (2 * np.sin(np.pi / 6 * ranks))[upper].round(4).tolist(),
        "n_used": len(agreed.kept),
    }


def main() -> None:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--kinds", nargs="*", default=["basic", "mild"])
    parser.add_argument("--correlations", type=float, nargs="*", default=[0.0, 0.3, 0.6])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--out", default="correlated.csv")
    options = parser.parse_args()
    cases = [Case(*of) for of in product(options.kinds, options.correlations, options.seeds)]
    looks = sorted({options.steps * tenth // 10 for tenth in range(5, 11)})
    rows = []
    with Parallel(n_jobs=-1) as cores:
        brains = cores(delayed(simulate)(case) for case in cases)
        for kind in dict.fromkeys((variant.latent, variant.penalty) for variant in VARIANTS):
            variants = [variant for variant in VARIANTS if variant[:2] == kind]
            r_indices, correlations = train(variants, brains, looks, options.repetitions)
            jobs = list(product(range(len(variants)), range(len(cases))))
            judged = cores(
                delayed(judge)(
                    [look[v, c] for look in r_indices], [look[v, c] for look in correlations], brains[c].truth
                )
                for v, c in jobs
            )
            for (v, c), found in zip(jobs, judged, strict=True):
                true = cases[c].correlation
                errors = {
                    f"{name}_error": float(np.mean(np.abs(np.array(found.pop(f"{name}_pairs")) - true)))
                    for name in ("learned", "r_index")
                }
                rows.append(variants[v]._asdict() | cases[c]._asdict() | found | errors)
            pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.5g")
    table = pd.DataFrame(rows)
    table["rate"] = (BASE_RATE / table["rate"]).round()
    by = ["latent", "penalty", "rate", "kind", "correlation"]
    shown = ["concordance", "agreement", "learned", "learned_error", "of_r_indices", "r_index_error"]
    print(table.groupby(by)[shown].mean().round(4).to_string())


if __name__ == "__main__":
    main()
