"""Patterns by linear algebra, in a second and without training: v = s · maps + healthy variation.

A method in its own right, the baseline that networks have to beat, and their starting point. People are rows of regions
in standard deviations of the controls, whose mean is 0. Severities s have their own mean and covariance; a person's are
estimated by their posterior mean. There are two ways to find the maps: `sparse_factors` assumes that patterns affect
few regions and hardly overlap, `contrastive_ica` that severities are independent and not normal. Contrastive PCA (Abid
et al., 2018) begins in the same way; signals above noise-only samples are from Nadakuditi and Silverstein (2010).
"""

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np
from joblib import cpu_count
from scipy.optimize import minimize
from sklearn import covariance as estimated
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from rindices.problems import InputError, Remedy, counted

_ROUNDS = 12  # of EM; severities hardly change afterwards
DIFFERENT = 2.0  # standard errors of the group difference from which a region is searched for patterns first
_CUT = 4.0  # standard errors below which a region's change is removed from a map
_CUTS = 2  # per round: leaving regions out makes the other changes more certain
_RESTARTS = 6  # of the rotation, which has local minima
_QUICK = (4, 3)  # rounds and restarts if many models are only compared with each other
_SMOOTHING = 0.02  # of the absolute value, relative to a map's size
_LEAST_VARIANCE = 0.05  # of severities along a direction, relative to healthy variation
_MANY = 5000  # people from which it pays to compute sums over them only once

_limited = RLock()  # a library's number of threads is set for the process, not for one of its threads

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the linear algebra library use one thread: matrices are small, and several would wait for each other."""
    with _limited, threadpool_limits(limits=1, user_api="blas"):
        yield


@contextmanager
def unconverged_rotations() -> Iterator[None]:
    """Accept rotations that do not converge: the last one is as good as any.

    Use it around a whole fit: warning filters are set for the process, and threads would undo each other's.
    """
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        yield


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yield the results for all items in order, computed by one thread per core, at most eight.

    The linear algebra library uses one thread in each, so results do not depend on the number of cores. `work` must
    not call this function. Once the generator is closed, no further item is begun.
    """
    with one_thread(), ThreadPoolExecutor(min(cpu_count(), 8)) as pool:  # each may copy the table
        try:
            yield from pool.map(work, items)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class TooFewPatients(InputError, np.linalg.LinAlgError):
    """Too few patients to distinguish the patterns; where models are only compared, this counts as a failed fit."""


def ledoit_wolf(people: np.ndarray, *, assume_centered: bool = False) -> tuple[np.ndarray, float]:
    """Return scikit-learn's Ledoit-Wolf covariance and its shrinkage; with many people, in a third of the time."""
    if len(people) < _MANY:
        return estimated.ledoit_wolf(people, assume_centered=assume_centered)
    away = people if assume_centered else people - people.mean(axis=0)
    share = ledoit_wolf_share(covariance := away.T @ away / len(away), (away**2).sum(axis=1))
    return estimated.shrunk_covariance(covariance, share), share


def ledoit_wolf_share(covariance: np.ndarray, squares: np.ndarray) -> float:
    """Return the Ledoit-Wolf shrinkage of a covariance, given each person's sum of squares."""
    size, total = len(covariance), float((covariance**2).sum())
    away = total / size - (float(np.trace(covariance)) / size) ** 2
    error = (float((squares**2).mean()) - total) / (size * len(squares))
    return max(0.0, min(error / away, 1.0)) if away > 0 else 0.0


class Whitening(NamedTuple):
    """The controls' covariance, shrunk after Ledoit and Wolf, its symmetric square root, and the root's inverse."""

    covariance: np.ndarray
    root: np.ndarray
    inverse_root: np.ndarray

    @classmethod
    def of(cls, controls: np.ndarray) -> Self:
        """Estimate them from the controls."""
        covariance = ledoit_wolf(controls)[0]
        if len(controls) == 2:  # they vary along a line and would not be shrunk: there would be no inverse
            covariance = estimated.shrunk_covariance(covariance, 0.5)
        values, vectors = np.linalg.eigh(covariance)
        return cls(covariance, (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T)


class LinearModel(NamedTuple):
    """A linear model of the patients, whose severities have unit variance.

    Attributes
    ----------
    maps : ndarray of shape (patterns, regions)
        Change of each region with a severity of 1.
    mean, covariance : ndarray of shape (patterns,) and (patterns, patterns)
        Of the patients' severities; healthy people have 0.
    gain : ndarray of shape (patterns, regions)
        Contribution of each region to a person's posterior mean.
    offset : ndarray of shape (patterns,)
        Posterior mean of an average control.
    """

    maps: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    gain: np.ndarray
    offset: np.ndarray

    def reordered(self, order: np.ndarray) -> Self:
        """Return the same model with its patterns in another order."""
        maps, mean, covariance, gain, offset = (part[order] for part in self)
        return type(self)(maps, mean, covariance[:, order], gain, offset)

    def severities(self, people: np.ndarray) -> np.ndarray:
        """Return the posterior mean of each person's severities ``(people, patterns)``."""
        return self.offset + people @ self.gain.T


def sparse_factors(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0, *, quick: bool = False
) -> LinearModel:
    """Fit by sparse contrastive factor analysis.

    The directions in which patients vary most beyond healthy variation, among regions whose means differ between the
    groups, are rotated obliquely to maps that overlap as little as possible. EM then alternates between severities
    (posterior) and maps (generalised least squares, in all regions), and changes within four standard errors of zero
    are removed from each map. Both steps keep healthy variation in unaffected regions out of the patterns.

    Parameters
    ----------
    controls, patients : ndarray of shape (people, regions)
        In sd of the controls.
    n_patterns : int
        Number of patterns M.
    seed : int
        Seed of the rotation's starting values.
    quick : bool
        Whether to use fewer rounds and starts, which takes a third of the time when many models are only compared.
    """
    _check_number(patients, n_patterns)
    whitening = Whitening.of(controls)
    rounds, restarts = _QUICK if quick else (_ROUNDS, _RESTARTS)
    maps, covariance = _rotated_start(controls, patients, n_patterns, whitening, seed, restarts)
    return _refined(controls, patients, maps, covariance, whitening.covariance, rounds, sparse=True)


def contrastive_ica(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0, *, quick: bool = False
) -> LinearModel:
    """Fit by independent components of the patients' variation beyond healthy variation; maps may be dense.

    The parameters are those of `sparse_factors`.
    """
    _check_number(patients, n_patterns)
    whitening = Whitening.of(controls)
    white = patients @ whitening.inverse_root
    directions = np.linalg.eigh(np.atleast_2d(np.cov(white.T)))[1][:, ::-1][:, :n_patterns]
    mixing = directions @ _independent(white @ directions, seed)
    maps = whitening.root @ (mixing * np.sign(mixing.T @ white.mean(axis=0)))
    rounds = _QUICK[0] if quick else _ROUNDS
    return _refined(controls, patients, maps, np.eye(n_patterns), whitening.covariance, rounds, sparse=False)


def _independent(projected: np.ndarray, seed: int) -> np.ndarray:
    """Return the mixing matrix of independent components; the identity if they cannot be computed."""
    n_patterns = projected.shape[1]
    ica = FastICA(n_patterns, fun="cube", random_state=seed, max_iter=1000, tol=1e-5, whiten="unit-variance")
    with np.errstate(all="ignore"):
        try:
            mixing = ica.fit(projected).mixing_
        except (ValueError, np.linalg.LinAlgError):  # hardly anybody differs from the others in a direction
            mixing = np.full((n_patterns, n_patterns), np.nan)
    return mixing if np.isfinite(mixing).all() else np.eye(n_patterns)


def _check_number(patients: np.ndarray, n_patterns: int) -> None:
    if len(patients) < max(2, n_patterns):
        raise TooFewPatients(
            f"{counted(n_patterns, 'pattern')} cannot be distinguished in the {counted(len(patients), 'patient')} "
            "from which each repetition learns.\nAdd patients, or request fewer patterns with ",
            Remedy("n_patterns"),
            ".",
        )


def _rotated_start(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, whitening: Whitening, seed: int, restarts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return maps (regions, patterns) that overlap least, and the covariance of their severities."""
    errors = np.sqrt(controls.var(axis=0) / len(controls) + patients.var(axis=0) / len(patients))
    different = np.abs(patients.mean(axis=0) - controls.mean(axis=0)) > DIFFERENT * errors
    if different.sum() <= n_patterns:
        different[:] = True
    space = np.linalg.qr(whitening.inverse_root[:, different])[0]  # whitened maps of these regions alone
    white = patients @ whitening.inverse_root @ space
    directions = np.linalg.eigh(np.atleast_2d(np.cov(white.T)))[1][:, ::-1][:, :n_patterns]
    projected = white @ directions
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(projected.T)))
    signal = (vectors * _signal_variance(values, white.shape[1] / len(white))) @ vectors.T
    spanned = whitening.root @ space @ directions
    basis, triangle = np.linalg.qr(spanned)
    mixing = np.linalg.solve(triangle, least_overlap(basis, seed, n_starts=restarts))
    back = np.linalg.inv(mixing)
    mixing = mixing * np.sqrt(np.diag(back @ signal @ back.T))  # severities of unit variance
    mixing = mixing * np.sign(mixing.T @ projected.mean(axis=0))  # and growing towards the patients
    back = np.linalg.inv(mixing)
    return spanned @ mixing, back @ signal @ back.T


def _signal_variance(values: np.ndarray, regions_a_person: float) -> np.ndarray:
    """Return the variances, beyond noise of variance 1, behind these sample eigenvalues (spiked covariance model)."""
    beyond = values - 1 - regions_a_person
    root = np.sqrt(np.maximum(beyond**2 - 4 * regions_a_person, 0))
    return np.maximum((beyond + root) / 2, _LEAST_VARIANCE)


def least_overlap(
    basis: np.ndarray, seed: int = 0, start: np.ndarray | None = None, n_starts: int = _RESTARTS
) -> np.ndarray:
    """Return unit columns W ``(patterns, patterns)`` for which the maps ``basis @ W`` overlap least in regions.

    Overlap is the paper's orthogonality loss: squared off-diagonal cosines of the absolute maps. It is minimised from
    several starts, or from the `start` that is given.
    """
    n_patterns = basis.shape[1]
    if n_patterns == 1:
        return np.ones((1, 1))
    at_random = np.random.default_rng(seed).standard_normal((n_starts, n_patterns, n_patterns))
    starts = np.linalg.qr(at_random)[0] if start is None else [start]
    scaled = np.sqrt(len(basis)) * basis
    ends = [
        minimize(_overlap, one.ravel(), args=(scaled,), jac=True, method="L-BFGS-B", options={"maxiter": 300})
        for one in starts
    ]
    columns = min(ends, key=lambda end: end.fun).x.reshape(n_patterns, n_patterns)
    return columns / np.linalg.norm(columns, axis=0)


def _overlap(flat: np.ndarray, basis: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the overlap of the maps and its gradient; columns of `basis` have a mean square of 1."""
    raw = flat.reshape(basis.shape[1], basis.shape[1])
    lengths = np.sqrt((raw * raw).sum(axis=0))
    columns = raw / lengths
    maps = basis @ columns
    absolute = np.sqrt(maps * maps + _SMOOTHING**2)
    sizes = np.sqrt((absolute * absolute).sum(axis=0))
    unit = absolute / sizes
    cosines = unit.T @ unit - np.eye(len(raw))
    by_unit = 4 * unit @ cosines
    by_absolute = (by_unit - unit * (unit * by_unit).sum(axis=0)) / sizes
    by_column = basis.T @ (by_absolute * maps / absolute)
    gradient = (by_column - columns * (columns * by_column).sum(axis=0)) / lengths
    return float((cosines**2).sum()), gradient.ravel()


def _refined(
    controls: np.ndarray,
    patients: np.ndarray,
    maps: np.ndarray,
    covariance: np.ndarray,
    healthy: np.ndarray,
    rounds: int,
    *,
    sparse: bool,
) -> LinearModel:
    """Alternate between severities and maps (EM); `maps` are (regions, patterns) here."""
    n_patients, precision = len(patients), np.linalg.inv(healthy)
    of_controls, of_patients, many = controls.T @ controls, patients.T @ patients, len(controls) + n_patients >= _MANY
    mean = np.linalg.lstsq(maps.T @ precision @ maps, maps.T @ precision @ patients.mean(axis=0), rcond=None)[0]
    for _ in range(rounds):
        scores, error = _posterior(patients, maps, precision, mean, covariance)
        squares = scores.T @ scores + n_patients * error
        mean, covariance = scores.mean(axis=0), np.atleast_2d(np.cov(scores.T)) + error
        maps = np.linalg.solve(squares, scores.T @ patients).T
        if sparse:
            basis, triangle = np.linalg.qr(maps)
            turn = np.linalg.solve(triangle, least_overlap(basis, start=triangle / np.linalg.norm(triangle, axis=0)))
            maps, back = maps @ turn, np.linalg.inv(turn)
            mean, scores = back @ mean, scores @ back.T
            covariance, squares, error = (back @ matrix @ back.T for matrix in (covariance, squares, error))
            maps = _cut(maps, squares, healthy, precision, precision @ (patients.T @ scores))
        sd = np.sqrt(np.diag(covariance))
        maps, mean, scores = maps * sd, mean / sd, scores / sd
        covariance, error = covariance / np.outer(sd, sd), error / np.outer(sd, sd)
        residuals = patients - scores @ maps.T
        crossed = maps @ (scores.T @ patients - scores.T @ scores @ maps.T / 2)
        squares = of_patients - crossed - crossed.T if many else residuals.T @ residuals
        total = of_controls + squares + n_patients * maps @ error @ maps.T
        healthy = _shrunk(
            total / (len(controls) + n_patients),
            np.concatenate([controls, residuals]),
            of_controls + squares if many else None,
        )
        precision = np.linalg.inv(healthy)
    return _finished(maps, mean, covariance, precision)


def _cut(
    maps: np.ndarray, squares: np.ndarray, healthy: np.ndarray, precision: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Leave regions that hardly change out of each map, and estimate the changes of the others without them.

    Regions share healthy variation, so those that a pattern leaves unaffected show how much of the others' is healthy:
    all changes are estimated at once by generalised least squares.

    Parameters
    ----------
    maps
        Estimated region by region ``(regions, patterns)``.
    squares
        Sums of products of severities.
    healthy, precision
        Covariance of healthy variation, and its inverse.
    products
        The precision times the sums of products of regions and severities.
    """
    # By a Cholesky root, which fails if patterns no longer differ: an inverse could then have negative variances.
    inverse_root = np.linalg.inv(np.linalg.cholesky(squares))
    kept = np.abs(maps) > _CUT * np.sqrt(np.outer(np.diag(healthy), (inverse_root**2).sum(axis=0)))
    for _ in range(_CUTS):
        kept |= kept.sum(axis=0) < 2
        regions, patterns = np.nonzero(kept)
        errors = np.linalg.inv(precision[np.ix_(regions, regions)] * squares[np.ix_(patterns, patterns)])
        changes = errors @ products[regions, patterns]
        maps = np.zeros_like(maps)
        maps[regions, patterns] = changes
        kept[regions, patterns] = np.abs(changes) > _CUT * np.sqrt(np.diag(errors))
    return np.where(kept | (kept.sum(axis=0) < 2), maps, 0)


def _finished(maps: np.ndarray, mean: np.ndarray, covariance: np.ndarray, precision: np.ndarray) -> LinearModel:
    """Return the model with signs such that severities grow towards the patients."""
    sign = np.where(mean < 0, -1.0, 1.0)
    maps, mean, covariance = maps * sign, mean * sign, covariance * np.outer(sign, sign)
    gain = np.linalg.inv(maps.T @ precision @ maps + np.linalg.inv(covariance)) @ maps.T @ precision
    return LinearModel(maps.T, mean, covariance, gain, mean - gain @ maps @ mean)


def _posterior(
    people: np.ndarray, maps: np.ndarray, precision: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means of severities, and their covariance, which is the same for everybody."""
    error = np.linalg.inv(maps.T @ precision @ maps + np.linalg.inv(covariance))
    away, read = people - mean @ maps.T, precision @ maps @ error
    return mean + (away @ read if len(people) >= _MANY else away @ precision @ maps @ error), error


def _shrunk(covariance: np.ndarray, people: np.ndarray, products: np.ndarray | None) -> np.ndarray:
    """Shrink a covariance as Ledoit and Wolf would shrink that of these people, whose `products` may be known."""
    n_regions = len(covariance)
    if products is None:
        share = estimated.ledoit_wolf_shrinkage(people)
    else:
        mean = people.mean(axis=0)
        share = ledoit_wolf_share(products / len(people) - np.outer(mean, mean), ((people - mean) ** 2).sum(axis=1))
    return (1 - share) * covariance + share * np.trace(covariance) / n_regions * np.eye(n_regions)


Method = Literal["sparse", "ica"]
METHODS: dict[Method, Callable[..., LinearModel]] = {"sparse": sparse_factors, "ica": contrastive_ica}


def fitted(method: Method, controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0) -> LinearModel:
    """Fit a linear model; if its maps no longer differ, fit dense ones, which always do."""
    try:
        return METHODS[method](controls, patients, n_patterns, seed)
    except np.linalg.LinAlgError:
        return contrastive_ica(controls, patients, n_patterns, seed)
