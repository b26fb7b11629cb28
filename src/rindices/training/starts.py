"""The start of a repetition: a linear model of its own controls and of nine tenths of the patients.

Training keeps f close to it (`core.losses.prior`), and the R-index is the mean of those of the networks and of the
linear model. Both depend only on the seed and the repetition's number, like everything else in a repetition.
"""

from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from rindices.core.losses import Prior
from rindices.core.train import held_out
from rindices.linear import METHODS, LinearModel, Method, fitted, side_by_side
from rindices.presets import SCALED_SD

PATIENTS = 0.9  # share of the patients that a repetition's linear model is fitted to
SHARE = 0.5  # of the linear model in the R-index; shares from a quarter to three quarters differ little
_SPLITS = 10  # of the people into halves
_UNIFORM_MEAN, _UNIFORM_SD = 0.5, 12**-0.5  # of severities as they are drawn for f
# Limits for the exponents of severities that are powers of a uniform. If most patients are severely affected, exponents
# would be below 1; f cannot rise that steeply from 0, and what it lacks there would be missing from every severity.
_LEAST, _LARGEST = 1.0, 5.0


Linear = dict[str, dict[str, np.ndarray]]  # see `core.networks.AXES`


class Start(NamedTuple):
    """A linear model in the form that training and scoring need; regions are scaled.

    Attributes
    ----------
    prior : Prior
        The changes that f should make.
    gain, offset : ndarray of shape (regions, patterns) and (patterns,)
        Coefficients that predict severities, with mean 0 and sd 1 among the patients.
    correlation : ndarray of shape (patterns, patterns)
        Correlation of the severities.
    """

    prior: Prior
    gain: np.ndarray
    offset: np.ndarray
    correlation: np.ndarray

    def beside(self, r_indices: np.ndarray | None) -> Linear:
        """Return the linear part of a model, on the scale of the networks' R-indices of the same patients.

        Without networks, the linear model stands alone, on the scale of severities that are uniform among the patients.
        """
        n_patterns = len(self.offset)
        if r_indices is None:
            mean, sd, share = np.full(n_patterns, _UNIFORM_MEAN), np.full(n_patterns, _UNIFORM_SD), 1.0
        else:
            mean, sd, share = r_indices.mean(axis=0), r_indices.std(axis=0), SHARE
        return {
            "reading": {
                "weight": (self.gain * sd).astype(np.float32),
                "bias": (mean + self.offset * sd).astype(np.float32),
                "share": np.full(n_patterns, share, np.float32),
            },
            "change": {
                "map": self.prior.maps,
                "exponent": self.prior.exponents,
                "share": np.float32(r_indices is None),  # f synthesises people, until its change at 0 is known
            },
        }


def start_of(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, method: Method, seed: int, number: int, n_folds: int
) -> Start:
    """Fit the linear model of a repetition.

    Parameters
    ----------
    controls, patients
        Scaled people.
    n_patterns
        Number of patterns.
    method
        Method by which they are found.
    seed, number, n_folds
        Seed of the run, number of the repetition, and number of folds of controls that repetitions leave out in turn.
    """
    rng = np.random.default_rng([seed, number, n_patterns])
    some = rng.permutation(len(patients))[: max(2, round(PATIENTS * len(patients)))]
    own = controls[~held_out(len(controls), seed, number, n_folds)]
    healthy, sick = ((of - 1) / SCALED_SD for of in (own, patients[np.sort(some)]))
    return from_model(fitted(method, healthy, sick, n_patterns, number), patients)


def maps_of_halves(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, method: Method, seed: int
) -> np.ndarray:
    """Return the full changes that linear models find in everybody, then in random halves ``(1 + halves, …)``.

    Halves differ from the sample as the sample does from the population (delete-half jackknife). Halves to which no
    model can be fitted are left out. The parameters are those of `start_of`.
    """
    healthy, sick = ((of - 1) / SCALED_SD for of in (controls, patients))
    groups = [(healthy, sick)]
    for split in range(_SPLITS):
        rng = np.random.default_rng([seed, split, n_patterns])
        groups += zip(*(np.array_split(of[rng.permutation(len(of))], 2) for of in (healthy, sick)), strict=True)

    def maps_of(half: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
        with suppress(np.linalg.LinAlgError):
            fit = partial(fitted, method) if half is groups[0] else METHODS[method]  # everybody is always fitted
            return [from_model(fit(*half, n_patterns), patients).prior.maps]
        return []

    return np.array(list(chain(*side_by_side(maps_of, groups)))).reshape(-1, n_patterns, controls.shape[1])


def from_model(model: LinearModel, patients: np.ndarray) -> Start:
    """Return a linear model in the form that training needs, given the scaled patients of the cohort."""
    exponents = power_of_uniform(model.mean)
    full = SCALED_SD * (model.mean * (1 + exponents))[:, None] * model.maps
    scores = model.severities((patients - 1) / SCALED_SD)
    mean, sd = scores.mean(axis=0), scores.std(axis=0)
    gain = (model.gain / sd[:, None]).T / SCALED_SD
    prior = Prior(np.float32(full), np.float32(exponents))
    return Start(prior, gain, (model.offset - mean) / sd, model.covariance)


def power_of_uniform(mean: np.ndarray) -> np.ndarray:
    """Return exponents a such that a uniform severity to the power a has these means in units of its own sd.

    The mean of uᵃ is 1 / (1 + a) and that of its square 1 / (1 + 2a).

    Examples
    --------
    >>> uniform, squared = 0.5 * np.sqrt(12), (1 / 3) / np.sqrt(4 / 45)
    >>> power_of_uniform(np.array([uniform, squared])).round(3).tolist()
    [1.0, 2.0]
    """
    share = mean**2 / (mean**2 + 1)  # of the squared mean in the mean square: (1 + 2a) / (1 + a)²
    return np.clip((1 + np.sqrt(1 - share)) / np.maximum(share, 1e-9) - 1, _LEAST, _LARGEST)


def beside_networks(
    starts: list[Start], r_indices: np.ndarray | None, patients: np.ndarray
) -> tuple[Linear, np.ndarray]:
    """Return the linear parts of all models at a checkpoint, and the R-indices of networks and linear models combined.

    Parameters
    ----------
    starts
        One per model.
    r_indices
        The networks' R-indices of the patients ``(models, patients, patterns)``, with zeros beyond a model's own
        patterns; None without networks.
    patients
        Scaled patients.
    """
    most = max(len(start.offset) for start in starts)
    together, parts = np.zeros((len(starts), len(patients), most), np.float32), []
    for k, start in enumerate(starts):
        n_patterns = len(start.offset)
        own = None if r_indices is None else r_indices[k, :, :n_patterns].astype(float)
        part = start.beside(own)
        reading = part["reading"]
        read = reading["bias"] + (patients - 1) @ reading["weight"]
        together[k, :, :n_patterns] = read if own is None else (1 - reading["share"]) * own + reading["share"] * read
        parts.append(
            {name: {kind: _padded(kind, of, most) for kind, of in kinds.items()} for name, kinds in part.items()}
        )
    stacked = {
        name: {kind: np.stack([part[name][kind] for part in parts]) for kind in kinds}
        for name, kinds in parts[0].items()
    }
    return stacked, together


def _padded(kind: str, array: np.ndarray, n_patterns: int) -> np.ndarray:
    """Add zeros for patterns that only other models of a chunk have."""
    if not np.ndim(array):
        return array
    axis = 0 if kind == "map" else array.ndim - 1
    return np.pad(array, [(0, n_patterns - array.shape[axis] if k == axis else 0) for k in range(array.ndim)])
