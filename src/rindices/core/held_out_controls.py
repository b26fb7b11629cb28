"""Which controls a repetition does not learn from, so that there are healthy people it has never seen."""

from __future__ import annotations

import numpy as np


def held_out(n_controls: int, seed: int, number: int, n_folds: int) -> np.ndarray:
    """Say which controls repetition `number` does not learn from → ``(controls,)`` of bool.

    Controls are dealt out to folds; each of as many repetitions leaves out another fold, then they are dealt out anew.
    It depends on the seed and the number only, so that repetitions can be added. With 0 folds, nobody is left out.
    """
    left_out = np.zeros(n_controls, bool)
    if n_folds:
        dealt = np.random.default_rng([seed, number // n_folds]).permutation(n_controls)
        left_out[dealt[number % n_folds :: n_folds]] = True
    return left_out
