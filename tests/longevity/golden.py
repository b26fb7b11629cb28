"""Results that must not change unintentionally: read README.md before running this.

    python -m tests.longevity.golden NAME...

rewrites `golden/NAME.json`.
"""

import argparse
import json
from dataclasses import replace

import jax
import numpy as np
import pandas as pd

from rindices import SurrealGANSearch, simulate_cohort
from rindices.analysis import associations
from rindices.core.losses import Prior
from rindices.core.train import TrainingPeople, make_members, train
from rindices.judging.agreement_and_misfit import interval, mean_agreement, pairwise, pattern_concordance
from rindices.judging.spectrum import look
from rindices.preprocessing import Preprocessing
from rindices.presets import Correction, LossWeights, Schedule, Training, fast
from rindices.scoring.consensus_and_person import aligned, find_consensus
from tests.conftest import BATCH_SIZE, N_PATTERNS, N_REGIONS
from tests.longevity.freeze import COHORT, HERE, PEOPLE

GOLDEN, TABLE = HERE / "golden", pd.read_csv(COHORT)
PATIENT = (TABLE["diagnosis"] == "PT").to_numpy()
N_STEPS = 5  # more amplify rounding: 5 steps 5e-7, 10 steps 3e-5, 20 steps 4e-3 between JAX 0.8.0 and 0.10.2
# μ matters only where patterns recede, which they hardly do in the first steps: here a million times its default.
WEIGHTS, COVARIATES = LossWeights(monotonicity=500e6), ["age", "sex", "icv", "site"]


def weights(loss_weights=WEIGHTS, prior=None):
    """Train a small model for a few steps from random weights and return all its weights."""
    volumes = TABLE.iloc[:, -24:].iloc[:, :N_REGIONS].to_numpy()
    scaled = Preprocessing.fit(volumes[~PATIENT], None).transform(volumes, None)
    *_, last = train(
        TrainingPeople(scaled[~PATIENT][:120], scaled[PATIENT][:120]),
        make_members(0, [loss_weights], [fast().rates], 120, n_folds=fast().schedule.folds, priors=prior),
        Training(),
        Schedule(BATCH_SIZE, 0, N_STEPS, N_STEPS),
        n_patterns=N_PATTERNS,
    )
    return {jax.tree_util.keystr(place): leaf for place, leaf in jax.tree.leaves_with_path(last.parameters())}


def weights_near_a_linear_model(loss_weights=WEIGHTS):
    """Train the same model near a linear one."""
    maps = np.random.default_rng(0).normal(0, 0.1, (N_PATTERNS, N_REGIONS))
    return weights(loss_weights, [Prior(maps, np.array([0.5, 1.0, 2.0]))])


def spectrum():
    """Look for differences between the groups, given age and sex."""
    design = np.column_stack([TABLE["age"], TABLE["sex"] == "M"]).astype(float)
    found = look(TABLE.iloc[:, -24:].to_numpy(), PATIENT, design, n_permutations=49)._asdict()
    return {name: value for name, value in found.items() if name not in ("null", "null_shift")}


def preprocessing():
    """Estimate every correction in the controls of `cohort.csv` and return ten scaled people."""
    people, regions, controls = pd.read_csv(PEOPLE).head(10), list(TABLE)[-24:], TABLE[~PATIENT]
    correction = Correction(smooth=["age"], interactions=[("age", "sex")], proportion="icv", site="site")
    fitted = Preprocessing.fit(controls[regions].to_numpy(), controls[COVARIATES], correction)
    return {"scaled": fitted.transform(people[regions].to_numpy(), people[COVARIATES])}


def repetitions():
    """Return R-indices of the people of `people.csv` from each repetition: (repetitions, people, patterns)."""
    return pd.read_csv(GOLDEN / "repetitions.csv").to_numpy().reshape(len(pd.read_csv(PEOPLE)), -1, 3).swapaxes(0, 1)


def consensus():
    """Compare the repetitions of a model."""
    members = repetitions()[:, :, [2, 0, 1]]
    members[1] = members[1][:, [1, 2, 0]]  # the order of patterns must be recovered
    pairs = pairwise(members)
    found = find_consensus(members, pairs)
    return {
        "pairs": pairs[np.triu_indices(len(pairs), 1)],
        "mean": mean_agreement(pairs),
        "interval": interval(pairs),
        "medoid": found.medoid,
        "kept": found.kept,
        "orders": found.orders,
        "consensus": aligned(members, found).mean(axis=0)[:5],
    }


def associated():
    """Associate R-indices with a number and with categories of two and three levels, age removed."""
    scores, people = pd.DataFrame(repetitions().mean(axis=0), columns=["r1", "r2", "r3"]), pd.read_csv(PEOPLE)
    table = associations(scores, people[["icv", "sex", "site"]], people[["age"]])
    return {name: table[name] for name in table if table[name].dtype.kind == "f"}


def fit():
    """Recover a known truth (about a minute)."""
    cohort = simulate_cohort("basic", n_controls=300, n_patients=600, seed=1)
    patient = (cohort.table["diagnosis"] == "PT").to_numpy()
    regions = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    preset = replace(fast(), schedule=Schedule(min_steps=6_000, max_steps=6_000, checkpoint_every=6_000))
    search = SurrealGANSearch(3, n_repetitions=3, preset=preset, random_state=0).fit(regions, patient)
    best, truth = search.best_estimator_, cohort.truth[["s1", "s2", "s3"]].to_numpy()
    maps = best.pattern_maps(regions[~patient]).pivot(index="pattern", columns="region", values="change_sd")
    return {
        "concordance": pattern_concordance(truth, best.r_indices_[patient]),
        "agreement": best.agreement_,
        "reliable": search.verdict_.reliable,
        "scores": best.r_indices_[:100].round(4),
        "maps": maps[list(regions)].round(4),
    }


RESULTS = {
    function.__name__: function
    for function in (weights, weights_near_a_linear_model, preprocessing, spectrum, consensus, associated, fit)
}


def read(name):
    """Return the arrays of a golden result."""
    kept = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return {key: np.array(value, float) for key, value in kept.items()}


def write(name):
    """Save the current result; single precision needs nine digits."""
    short = np.vectorize(lambda number: float(f"{number:.9g}"))
    arrays = {key: np.asarray(value) for key, value in RESULTS[name]().items()}
    lines = {key: (short(value) if value.dtype == np.float32 else value).tolist() for key, value in arrays.items()}
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in lines.items())
    (GOLDEN / f"{name}.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Keep results as they are now.")
    parser.add_argument("names", nargs="+", choices=RESULTS)
    for given in parser.parse_args().names:
        write(given)
