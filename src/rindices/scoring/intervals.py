"""Intervals of a person's severity, and of their true change between two visits.

A healthy brain is changed as one repetition has learned, to a given share of the full change of one pattern; other
patterns are drawn. Repetitions that neither synthesised that person nor learned from that brain score it. The interval
of a real person contains the severities that are compatible with the score.

For a change, that brain is changed to each severity and scanned twice, with the noise of the user's own scanner. What
differs between people persists from visit to visit, so changes are known more precisely than severities.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.covariance import LedoitWolf

from rindices.core import inference
from rindices.core.networks import Parameters
from rindices.preprocessing import SCALED_SD
from rindices.scoring.severity_and_reference import (
    CENTILES,
    DOSES,
    KNOTS,
    LEVELS,
    HeldOut,
    SeverityScale,
    doses_at,
    increasing,
    mean_known,
    shrinkage_of_means,
)

FEWEST = 3  # repetitions: one synthesises people, others score them
_PEOPLE = 400  # synthesised for each severity of each pattern
_ABSENT = 0.25  # share of people without a given pattern, other than the one in question
_BEYOND = 0.1  # share of the others in whom it is more severe than in anyone learned from
_FURTHEST = 1.5
_POWER = 0.16  # of excluding a severity that is not present; without such a limit, intervals end at 0 by chance
_FEW = 99  # as 200 controls and 200 patients, or 150 and 300: with more, repetitions alone give valid intervals
_FEWEST_HALVES = 5
_UNITS = (0.2, 5.0)  # limits for the unit of a half's map
_EDGE = 0.02  # normal scores of values closer to 0 or 1 would grow without bound
# f is evaluated at these
SEVERITIES_OF_F = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2, 2.5])


def severity_intervals(
    scale: SeverityScale, r_indices: np.ndarray, level: float, more_sd: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest severity that are compatible with an R-index; NaN if unknown.

    These are all severities for which the central `level` of R-indices contains the person's (Neyman construction):
    valid at each severity, whatever share of the patients has it. Limits are never below 0, and always include the
    severity itself. If an R-index is lower than those of most healthy people, chance would exclude every possible
    severity: the upper limit is at least that of the 16th centile of healthy people (power-constrained limits; Cowan et
    al., 2011). `more_sd` ``(people, patterns)`` is scatter of R-indices in addition to that of synthesised people.
    """
    if scale.quantiles is None:
        nothing = np.full(r_indices.shape, np.nan)
        return nothing, nothing
    more_sd = np.zeros(r_indices.shape) if more_sd is None else more_sd
    own, sides = scale.severities(r_indices), []
    for tail in ((1 + level) / 2, (1 - level) / 2):
        side = np.empty(r_indices.shape)
        for pattern, rows in enumerate(scale.quantiles):
            edge = np.array([np.interp(ndtri(tail), ndtri(LEVELS), row) for row in rows])
            middle, own_r = rows[:, len(LEVELS) // 2], r_indices[:, pattern]
            own_r = np.maximum(own_r, np.interp(_POWER, LEVELS, rows[0])) if tail < 0.5 else own_r
            side[:, pattern] = np.interp(own_r, increasing(edge), DOSES)
            some = np.flatnonzero(more_sd[:, pattern])
            wider = np.hypot(edge - middle, ndtri(tail) * more_sd[some, pattern, None])
            side[some, pattern] = doses_at(own_r[some], increasing(middle + np.sign(tail - 0.5) * wider))
        sides.append(side)
    return np.minimum(sides[0], own), np.maximum(sides[1], own)


class Healthy(NamedTuple):
    """Healthy brains to start from."""

    brains: np.ndarray  # (controls, regions), scaled
    held_out: np.ndarray  # (repetitions, controls): which repetitions have not learned from them


def quantiles(models: Parameters, healthy: Healthy, composition: str, correlation: np.ndarray, seed: int) -> np.ndarray:
    """Return quantiles of the consensus R-index given the severity → ``(patterns, DOSES, LEVELS)``.

    Parameters
    ----------
    models
        Models of the repetitions behind the consensus.
    healthy
        Controls.
    composition
        How patterns add up in f.
    correlation
        Correlation of the severities' normal scores.
    seed
        Seed of the draws.
    """
    rng, n_models = np.random.default_rng([seed, len(healthy.brains)]), len(healthy.held_out)
    wanted = _severities_of_doses(models, healthy.brains)
    by_pattern, known = [], np.flatnonzero(healthy.held_out.any(axis=0))
    known = known if len(known) else np.arange(len(healthy.brains))  # those seen by all repetitions are scored too well
    for pattern in range(len(correlation)):
        brain = known[rng.integers(len(known), size=(len(DOSES), _PEOPLE)).ravel()]
        unseen_by = healthy.held_out[:, brain]
        # Preferably a repetition that has learned from the brain; others then score the person.
        maker = (rng.random(unseen_by.shape) - unseen_by).argmax(axis=0)
        own = wanted[maker, pattern, np.repeat(np.arange(len(DOSES)), _PEOPLE)]
        z = draw_others(own, pattern, correlation, rng)
        made = make_people(models, healthy.brains[brain], z, maker, composition)
        scores = inference.r_indices(models, made)[:, :, pattern, None]
        others = np.arange(n_models)[:, None] != maker
        unseen = others & unseen_by
        by_pattern.append(_scatter(scores, np.where(unseen.any(axis=0), unseen, others), others))
    return np.stack(by_pattern)


def _severities_of_doses(models: Parameters, brains: np.ndarray) -> np.ndarray:
    """Return the severity at which f changes each pattern by each of `DOSES` → ``(models, patterns, DOSES)``."""
    curves = increasing(inference.doses(models, brains, SEVERITIES_OF_F))
    return np.array([[np.interp(DOSES, curve, SEVERITIES_OF_F) for curve in of] for of in curves])


def few(n_controls: int, n_patients: int) -> bool:
    """Return whether people are so few that errors shared by all repetitions matter.

    The criterion determines the error of a difference between two groups: half the harmonic mean of their sizes.

    Examples
    --------
    >>> few(120, 120), few(60, 600), few(150, 300), few(200, 200)
    (True, True, False, False)
    """
    return n_controls * n_patients < _FEW * (n_controls + n_patients)


def widened(
    scale: SeverityScale, models: Parameters, brains: np.ndarray, halves: np.ndarray, seed: int
) -> SeverityScale:
    """Return a scale whose intervals also allow for how imprecisely so few people show what the disease changes.

    All repetitions learn from nearly the same people and so share the sampling error, which does not show in people
    synthesised by one of them. People synthesised here deviate from what was learned as much as maps of halves of the
    people differ, each in the unit of the learned one, since an error in the unit is not an error in severity.

    Parameters
    ----------
    scale
        Scale from the repetitions alone; its severities are kept.
    models
        What was learned.
    brains
        Brains of healthy people, scaled.
    halves
        See `maps_of_halves`.
    seed
        Seed of the draws.
    """
    if scale.quantiles is None or len(halves) <= _FEWEST_HALVES:
        return scale
    learned = inference.pattern_changes(models, brains).mean(axis=0)
    errors = _errors_of_maps(halves, learned, brains)
    rng, n_patterns, spread = np.random.default_rng([seed, len(brains)]), len(learned), []
    for pattern in range(n_patterns):
        z = draw_others(np.repeat(DOSES, _PEOPLE), pattern, np.eye(n_patterns), rng)
        made = brains[rng.integers(len(brains), size=len(z))] + z @ learned
        other = made + np.einsum("pm,pmr->pr", z, errors[rng.integers(len(errors), size=len(z))])
        moved = (inference.r_indices(models, other) - inference.r_indices(models, made)).mean(axis=0)[:, pattern]
        spread.append(np.median(np.abs(moved).reshape(len(DOSES), -1), axis=1) / ndtri(0.75))  # robust to odd halves
    middle, normal = scale.quantiles[:, :, len(LEVELS) // 2, None], ndtri(LEVELS)
    sides = np.sign(normal) * np.hypot(scale.quantiles - middle, normal * np.array(spread)[:, :, None])
    return replace(scale, quantiles=increasing(increasing(middle + sides).swapaxes(1, 2)).swapaxes(1, 2))


def _errors_of_maps(halves: np.ndarray, learned: np.ndarray, brains: np.ndarray) -> np.ndarray:
    """Return how maps of halves differ from those of everybody, all matched to the learned maps and in their unit."""
    root = np.linalg.cholesky(LedoitWolf().fit(brains).precision_).T
    n_patterns, matched = len(learned), []
    for maps in halves:
        alike = np.corrcoef(learned, maps)[:n_patterns, n_patterns:]
        own = maps[linear_sum_assignment(-np.nan_to_num(alike))[1]]
        weights = np.diag(np.linalg.lstsq(root @ learned.T, root @ own.T)[0])
        matched.append(own / np.clip(weights, *_UNITS)[:, None])
    return np.array(matched[1:]) - matched[0]


def draw_others(own: np.ndarray, pattern: int, correlation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw severities ``(people, patterns)`` given those of one pattern; others may be absent, or beyond 1."""
    scores = rng.standard_normal((len(own), len(correlation))) @ np.linalg.cholesky(correlation).T
    surprise = ndtri(np.clip(own, _EDGE, 1 - _EDGE)) - scores[:, pattern]
    z = ndtr(scores + surprise[:, None] * correlation[pattern])
    beyond, absent = rng.random(z.shape) < _BEYOND, rng.random(z.shape) < _ABSENT
    z = np.where(absent, 0, np.where(beyond, 1 + (_FURTHEST - 1) * z, z))
    z[:, pattern] = own
    return z


def make_people(
    models: Parameters, brains: np.ndarray, z: np.ndarray, maker: np.ndarray, composition: str
) -> np.ndarray:
    """Return each brain as changed by its repetition (`maker`), relative to no disease."""
    made = np.empty_like(brains)
    for one in np.unique(maker):
        model, mine = jax.tree.map(lambda leaf, one=one: leaf[one : one + 1], models), maker == one
        changed, untouched = (
            inference.synthesise(model, brains[mine], severities, composition)[0]
            for severities in (z[mine], np.zeros_like(z[mine]))
        )
        made[mine] = brains[mine] + changed - untouched
    return made


def _scatter(scores: np.ndarray, unseen: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the quantiles of one pattern's consensus at each dose, from scores of people in the order of `DOSES`.

    `unseen` are the repetitions that score a person, `others` all that did not synthesise that person.
    """
    means = mean_known(scores, unseen)
    expected = increasing(means.reshape(len(DOSES), -1).mean(axis=1))
    centred = scores - np.repeat(expected, _PEOPLE)[None, :, None]
    shrinkage = shrinkage_of_means(centred, unseen, len(scores), others)
    errors = ((means - np.repeat(expected, _PEOPLE)[:, None]) * shrinkage).reshape(len(DOSES), -1)
    around = np.quantile(errors, LEVELS, axis=1).T
    smooth = np.pad(around, [(1, 1), (0, 0)], mode="edge")
    smooth = (smooth[:-2] + 2 * smooth[1:-1] + smooth[2:]) / 4
    return increasing((expected[:, None] + smooth).T).T


def fit_curves(models: Parameters, brains: np.ndarray) -> np.ndarray:
    """Return the curve of each pattern at `KNOTS`, averaged over models: increasing, from 0 to 1."""
    means = increasing(inference.doses(models, brains, KNOTS).mean(axis=0))
    return (means - means[:, :1]) / (means[:, -1:] - means[:, :1])


class Scored(NamedTuple):
    """The scale of a consensus, the R-indices of controls as if it had not seen them, and how these are obtained."""

    scale: SeverityScale
    r_indices: np.ndarray
    held_out: HeldOut


def fit_scale(
    models: Parameters, healthy: Healthy, composition: str, correlation: np.ndarray | None, seed: int
) -> Scored:
    """Return the scale of a consensus, and the scores of the controls.

    A person's severity is the one at which their R-index is the median: R-indices of people whom f changes fully are
    mostly below 1, and those of healthy people above 0. Such curves and intervals need several repetitions, and a
    reference needs held-out controls; otherwise, curves are those of f alone, and there is no reference.
    """
    n_models = len(healthy.held_out)
    scores = inference.r_indices(models, healthy.brains)
    unseen = HeldOut.of(scores, healthy.held_out, n_models)
    honest = unseen.scores(scores, np.arange(scores.shape[1]))
    reference = np.quantile(honest, CENTILES, axis=0, method="weibull").T if healthy.held_out.any() else None
    if n_models < FEWEST:
        return Scored(SeverityScale(fit_curves(models, healthy.brains), reference), honest, unseen)
    copula = np.eye(honest.shape[1]) if correlation is None else correlation
    by_dose = quantiles(models, healthy, composition, copula, seed)
    return Scored(SeverityScale(usual_severities(by_dose), reference, by_dose), honest, unseen)


def usual_severities(quantiles: np.ndarray) -> np.ndarray:
    """Return the severity at which each of `KNOTS` is the median R-index ``(patterns, knots)``; at least 0."""
    return np.stack([np.interp(KNOTS, increasing(of), DOSES) for of in quantiles[:, :, len(LEVELS) // 2]])


_PEOPLE_WHO_CHANGE = 500  # synthesised for each pattern
# Measured changes are 0.84 to 1.0 of the true ones in simulated people, depending on severity (0.93 on average).
_GAIN_SD = 0.15
_CHANGES = np.linspace(-2, 2, 401)  # candidates; limits are interpolated between them


class Noise(NamedTuple):
    """Noise of one scan: of regions, from controls with repeated visits, or of the severities, as given by the user."""

    vectors: np.ndarray | None  # (contrasts, regions) in sd of controls
    freedom: float
    sd: np.ndarray  # (patterns,) of severities; 0 if there are vectors

    def of_regions(self, n_people: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the noise of scans; a column of zeros if that of regions is not known.

        Examples
        --------
        >>> noise = Noise(vectors=np.diag([3.0, 6.0, 9.0]), freedom=9.0, sd=np.zeros(1))
        >>> (noise.of_regions(40_000, np.random.default_rng(0)).std(axis=0) / SCALED_SD).round(1).tolist()
        [1.0, 2.0, 3.0]
        """
        if self.vectors is None:
            return np.zeros((n_people, 1))
        return SCALED_SD * rng.standard_normal((n_people, len(self.vectors))) @ self.vectors / np.sqrt(self.freedom)


def paired_readings(
    models: Parameters,
    scale: SeverityScale,
    brains: np.ndarray,
    composition: str,
    correlation: np.ndarray | None,
    noise: Noise,
    seed: int,
) -> np.ndarray:
    """Return measured severities of synthesised people, in two scans each → ``(patterns, 2, people, DOSES)``.

    Parameters
    ----------
    models
        Models of the repetitions behind the consensus.
    scale
        Scale that converts R-indices to severities.
    brains
        Brains of healthy people, scaled.
    composition
        How patterns add up in f.
    correlation
        Correlation of the severities' normal scores; None for independence.
    noise
        Noise of one scan.
    seed
        Seed of the draws.
    """
    rng = np.random.default_rng([seed, len(brains)])
    wanted = _severities_of_doses(models, brains)
    n_models, n_patterns = wanted.shape[:2]
    correlation = np.eye(n_patterns) if correlation is None else correlation
    readings = []
    for pattern in range(n_patterns):
        brain, maker = (
            rng.integers(len(brains), size=_PEOPLE_WHO_CHANGE),
            rng.integers(n_models, size=_PEOPLE_WHO_CHANGE),
        )
        others = draw_others(rng.random(_PEOPLE_WHO_CHANGE), pattern, correlation, rng)
        z = np.repeat(others, len(DOSES), axis=0)
        z[:, pattern] = wanted[maker, pattern].ravel()
        by = np.repeat(maker, len(DOSES))
        made = make_people(models, np.repeat(brains[brain], len(DOSES), axis=0), z, by, composition)
        visits = []
        for _ in range(2):
            scan = np.repeat(noise.of_regions(_PEOPLE_WHO_CHANGE, rng), len(DOSES), axis=0)
            r_indices = mean_known(inference.r_indices(models, made + scan), np.arange(n_models)[:, None] != by)
            read = scale.severities(r_indices)[:, pattern].reshape(_PEOPLE_WHO_CHANGE, len(DOSES))
            visits.append(read + noise.sd[pattern] * rng.standard_normal((_PEOPLE_WHO_CHANGE, 1)))
        readings.append(visits)
    return np.array(readings)


def change_limits(
    readings: np.ndarray, change: np.ndarray, centre: np.ndarray, level: float, freedom: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of people's true change in one pattern; NaN if none is compatible with the measured change.

    Parameters
    ----------
    readings
        Measured severities of synthesised people ``(2, people, DOSES)``, see `paired_readings`.
    change
        Measured change from the first visit to the last.
    centre
        Mean severity of the visits: the true severities are assumed to be centred on it.
    level
        Confidence level of the intervals.
    freedom
        Degrees of freedom of the noise.
    """
    first, second = readings
    changes = second[:, None, :] - first[:, :, None]  # (people, severity at first, severity at last)
    sd = np.hypot(changes.std(axis=0), _GAIN_SD * (DOSES - DOSES[:, None]))
    middle, half = np.median(changes, axis=0), -stdtrit(freedom, (1 - level) / 2) * sd
    about = np.clip(centre, 0, DOSES[-1])[:, None]
    begin = np.clip(about - _CHANGES / 2, np.maximum(-_CHANGES, 0), np.minimum(DOSES[-1] - _CHANGES, DOSES[-1]))
    pairs = np.stack([begin, np.clip(begin + _CHANGES, 0, DOSES[-1])], axis=-1)
    least, most = (RegularGridInterpolator((DOSES, DOSES), of)(pairs) for of in (middle - half, middle + half))
    inside = np.minimum(change[:, None] - least, most - change[:, None])
    likely, last = inside >= 0, len(_CHANGES) - 1
    edge = np.stack([likely.argmax(axis=1), last - likely[:, ::-1].argmax(axis=1)])
    beyond = np.clip(edge + np.array([[-1], [1]]), 0, last)
    reached, missed = (inside[np.arange(len(change)), at] for at in (edge, beyond))
    share = np.where(likely.any(axis=1), reached / np.maximum(reached - missed, np.finfo(float).eps), np.nan)
    least, most = _CHANGES[edge] + share * (_CHANGES[beyond] - _CHANGES[edge])
    return least, most
