"""Fit one method in our own environment: decompositions, regression on the truth, linear models, rindices.

    python own_methods.py METHOD GIVEN.npz FOUND.npz SECONDS

`GIVEN` has everybody's regions, who is a patient, who is used for training, and the true severities, which define the
number of patterns; `FOUND` receives each patient's score for each pattern and, if the method has one, its verdict.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
from foreign_methods import peak_memory
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.append(str(Path(__file__).parents[2] / "experiments"))
from baselines import Baseline


class Given:
    """The input of a method; only regression uses `truth`."""

    def __init__(self, arrays: Any) -> None:
        self.regions, self.patient, self.train = arrays["regions"], arrays["patient"], arrays["train"]
        self.truth, self.seed = arrays["truth"], int(arrays["seed"])
        self.n_patterns = self.truth.shape[1]
        self.patients, self.known = self.regions[self.patient], self.train[self.patient]


def decomposition(method: str, given: Given) -> tuple[np.ndarray, str]:
    """Fit a decomposition as in the paper (section B.4)."""
    model = Baseline(method, given.n_patterns, random_state=given.seed)
    model.fit(given.regions[given.train], given.patient[given.train])
    scores = model.transform(given.patients)
    if method in ("fa", "dnmf"):  # signs of these components are arbitrary: larger scores are made to mean more loss
        loss = -standardised(given)[given.known].mean(axis=1)
        own = scores[given.known] - scores[given.known].mean(axis=0)
        scores = scores * np.sign(own.T @ (loss - loss.mean()))
    return scores, ""


def standardised(given: Given) -> np.ndarray:
    """Return z-scores of the patients relative to the training controls."""
    controls = given.regions[given.train & ~given.patient]
    return (given.patients - controls.mean(axis=0)) / controls.std(axis=0)


def components(given: Given) -> tuple[np.ndarray, str]:
    """Fit PCA to the patients' z-scores; components are signed so that patients have positive means."""
    z = standardised(given)
    model = PCA(given.n_patterns, random_state=given.seed).fit(z[given.known])
    return z @ (model.components_.T * np.sign(z[given.known].mean(axis=0) @ model.components_.T)), ""


def regression(given: Given) -> tuple[np.ndarray, str]:
    """Predict severities by ridge regression, in five folds; patients left out of training by a fit to all others."""
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 20)))
    known, scores = given.known, np.empty(given.truth.shape)
    folds = KFold(5, shuffle=True, random_state=0)
    shape = (-1, given.n_patterns)
    scores[known] = cross_val_predict(model, given.patients[known], given.truth[known], cv=folds).reshape(shape)
    if not known.all():
        scores[~known] = (
            model.fit(given.patients[known], given.truth[known]).predict(given.patients[~known]).reshape(shape)
        )
    return scores, ""


def ours(preset: str, given: Given, n_patterns: Literal["auto"] | int) -> tuple[np.ndarray, str]:
    """Fit rindices with its defaults, and return scores and verdict."""
    from rindices import SurrealGANSearch  # other methods need not wait for this import

    search = SurrealGANSearch(n_patterns, preset=preset, random_state=given.seed)
    search.fit(given.regions[given.train], given.patient[given.train])
    return np.asarray(search.transform(given.patients)), search.verdict_.state


METHODS = {
    "NMF": lambda given: decomposition("nmf", given),
    "opNMF": lambda given: decomposition("opnmf", given),
    "discriminant NMF": lambda given: decomposition("dnmf", given),
    "factor analysis": lambda given: decomposition("fa", given),
    "LDA": lambda given: decomposition("lda", given),
    "PCA of z-scores": components,
    "regression told the truth": regression,
    "rindices, linear": lambda given: ours("linear", given, given.n_patterns),
    "rindices, linear, number chosen": lambda given: ours("linear", given, "auto"),
    "rindices": lambda given: ours("fast", given, given.n_patterns),
}
COMPARABLE = ("regression told the truth", "rindices")  # scores of patterns share a scale


def main() -> None:
    """Fit and write; components have arbitrary scales, so they are standardised before the largest is taken."""
    method, source, target, _ = sys.argv[1:]
    warnings.simplefilter("ignore")
    scores, verdict = METHODS[method](Given(np.load(source)))
    alike = scores if method.startswith(COMPARABLE) else (scores - scores.mean(axis=0)) / scores.std(axis=0)
    found = {"scores": scores, "labels": alike.argmax(axis=1), "verdict": verdict, "finished": True, "note": ""}
    np.savez(target, **found, gib=peak_memory())


if __name__ == "__main__":
    main()
