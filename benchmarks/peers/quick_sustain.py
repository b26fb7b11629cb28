"""pySuStaIn's z-score model, with the same search over sequences in a tenth of the time, and without sampling.

    PYSUSTAIN=~/pySuStaIn python benchmarks/peers/quick_sustain.py     # checks that sequences equal the package's

The likelihoods of all positions to which an event may move are computed as one matrix product; the package computes
them one by one. Random numbers are drawn in its order, so the same sequences are found. This also runs with NumPy 2.4
and later, which no longer accept arrays as numbers, as the package requires.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

import numpy as np

sys.path.insert(0, os.environ["PYSUSTAIN"])
from pySuStaIn.ZscoreSustain import ZscoreSustain


class QuickSustain(ZscoreSustain):
    """A z-score model with the most likely sequences as the only sample: Markov chains of 100,000 would take hours."""

    def stage_values(self, sequences: np.ndarray) -> np.ndarray:
        """Return the z-score of each marker at each stage of each sequence, (markers, sequences, stages)."""
        index, z = self.stage_biomarker_index[0], self.stage_zscore[0]
        n, places = len(index), np.argsort(sequences, axis=1)
        points = np.empty((len(self.max_biomarker_zscore), len(sequences), n + 2))
        for marker, top in enumerate(self.max_biomarker_zscore):
            values = [0, *z[index == marker], top]
            for row, own in enumerate(places[:, index == marker]):
                points[marker, row] = np.interp(np.arange(n + 2), [0, *(own + 1), n + 1], values)
        return 0.5 * (points[..., :-1] + points[..., 1:])

    def likelihoods(self, people: Any, sequences: np.ndarray) -> np.ndarray:
        """Return the likelihood of each person at each stage of each sequence, (people, sequences, stages)."""
        data, values = people.data, self.stage_values(sequences)
        logs = (data @ values.reshape(len(values), -1)).reshape(len(data), *values.shape[1:])
        logs -= 0.5 * np.square(values).sum(axis=0)
        logs -= (0.5 * np.square(data).sum(axis=1) + np.log(values.shape[2]) + 0.5 * np.log(2 * np.pi) * len(values))[
            :, None, None
        ]
        return np.exp(logs, out=logs)

    def _calculate_likelihood_stage(self, people: Any, sequence: np.ndarray) -> np.ndarray:
        return self.likelihoods(people, np.asarray(sequence)[None])[:, 0]

    def _optimise_parameters(self, people: Any, sequences: np.ndarray, shares: Any, rng: np.random.Generator) -> Any:
        """Move each event of each subtype once to its most likely position, as in the package."""
        best, n = sequences.copy(), self.stage_zscore.shape[1]
        chances = np.stack(
            [self.likelihoods(people, one[None])[:, 0].sum(axis=1) for one in best]
        )  # (subtypes, people)
        share = self._shares(chances, np.ravel(shares))
        for subtype in rng.permutation(len(best)):
            others = share @ chances - share[subtype] * chances[subtype]
            for event in rng.permutation(n):
                places = np.argsort(best[subtype])
                lower, upper = self._bounds(event, places)
                positions = [0] if lower == upper else range(lower, upper)
                rest = np.delete(best[subtype], places[event])
                tried = np.array([np.insert(rest, position, event) for position in positions])
                sums = self.likelihoods(people, tried).sum(axis=2)
                chosen = np.log(others[:, None] + share[subtype] * sums + 1e-250).sum(axis=0).argmax()
                best[subtype], chances[subtype] = tried[chosen], sums[:, chosen]
        share = self._shares(chances, share)
        return best, share, np.log(share @ chances + 1e-250).sum()

    @staticmethod
    def _shares(chances: np.ndarray, shares: np.ndarray) -> np.ndarray:
        weighted = shares[:, None] * chances
        sizes = (weighted / (weighted.sum(axis=0) + 1e-250)).sum(axis=1)
        return sizes / sizes.sum()

    def _bounds(self, event: int, places: np.ndarray) -> tuple[int, int]:
        z, same = self.stage_zscore[0], self.stage_biomarker_index[0] == self.stage_biomarker_index[0, event]
        below, above = np.flatnonzero(same & (z < z[event])), np.flatnonzero(same & (z > z[event]))
        lower = places[below[z[below].argmax()]] + 1 if len(below) else 0
        return lower, places[above[z[above].argmin()]] if len(above) else len(z)

    def _estimate_uncertainty_sustain_model(self, people: Any, sequences: Any, shares: Any) -> Any:
        sequences, shares = np.atleast_2d(sequences), np.ravel(shares)
        return sequences, shares, 0.0, sequences[:, :, None], shares[:, None], np.zeros(1)

    def subtype_and_stage_individuals(self, people: Any, sequences: Any, shares: Any, _: int) -> Any:
        """Return the probability of each stage of each subtype, largest subtype first; other outputs are dummies."""
        order = np.argsort(shares.mean(axis=1))[::-1]
        joint = self.likelihoods(people, sequences[order, :, 0]) * shares[order, 0][:, None]
        joint = joint.transpose(0, 2, 1) / joint.sum(axis=(1, 2))[:, None, None]
        return *[np.zeros(1)] * 6, joint


def main() -> None:
    """Compare with the package on people who follow two sequences."""
    rng, thresholds, names = np.random.default_rng(0), np.array([[1.0, 2.0, 3.0]] * 5), list("abcde")
    stages = rng.integers(0, 15, 300)
    data = np.clip(stages[:, None] / 3 - rng.permuted(np.tile(np.arange(5), (300, 1)), axis=1) / 2, 0, 5)
    data += rng.normal(size=data.shape)
    found = []
    for kind in (ZscoreSustain, QuickSustain):
        with tempfile.TemporaryDirectory() as folder:
            model = kind(data, thresholds, np.full(5, 5), names, 2, 2, 10, folder, "check", False, 1)
            start = time.process_time()
            sequences, _, value, *_ = model._estimate_ml_sustain_model_nplus1_clusters(
                model._AbstractSustain__sustainData,
                *model._estimate_ml_sustain_model_nplus1_clusters(model._AbstractSustain__sustainData, [], [])[:2],
            )
            found.append((np.asarray(sequences), float(np.ravel(value)[0])))
            print(f"{kind.__name__}: log-likelihood {found[-1][1]:.6f}, {time.process_time() - start:.1f} s")
    print("the same sequences:", np.array_equal(found[0][0], found[1][0]))


if __name__ == "__main__":
    main()
