"""From repetitions to a person's results: R-indices and their uncertainty, severities, limits, centiles and flags.

The consensus brings repetitions to one order of patterns, without those that disagree.

Strangers are flagged by their distance from anything that a model can produce: healthy brains, with or without the
changes of its patterns. A plain distance from controls would flag the sick. Here, patients are among the expected
people, who are synthesised from the controls by the learned patterns, at severities that the model considers likely.
What counts as far is learned from controls who were left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
from scipy.special import ndtr

from rindices.core import inference
from rindices.core.networks import Parameters, n_patterns
from rindices.judging.agreement_and_misfit import faults, match_patterns, pairwise
from rindices.judging.selection import Judged, trajectories_of, usable_models
from rindices.preprocessing import SCALED_SD, ControlScaler, Preprocessing
from rindices.preprocessing.covariates import leverage_of, without_effects
from rindices.preprocessing.missing import HIDDEN, Population
from rindices.problems import listed
from rindices.schema.contract import Contract
from rindices.schema.diagnosis_and_region_fields import missing_regions
from rindices.scoring.intervals import Healthy, make_people, severity_intervals
from rindices.scoring.severity_and_reference import SeverityScale, leave_one_out
from rindices.settings import State
from rindices.training.chunks import Chunk, members_of
from rindices.training.execution import Execution

_KEPT_SHARE = 0.8  # members must agree with the medoid at least this far above chance, relative to the typical member


class Consensus(NamedTuple):
    """Models brought to the medoid's order of patterns; those that disagree with it are left out."""

    medoid: int
    kept: np.ndarray  # numbers of the models used
    orders: np.ndarray  # (kept, patterns): pattern i of the consensus is orders[k, i] of model kept[k]
    agreement_with_medoid: np.ndarray  # (models,)
    typical: float  # its median over the other models


def find_consensus(members: np.ndarray, pairs: np.ndarray | None = None) -> Consensus:
    """Choose the medoid (highest mean agreement with the others), leave out models that disagree, match patterns."""
    pairs = pairwise(members) if pairs is None else pairs
    n_members, _, n_patterns = members.shape
    if n_members == 1:
        return Consensus(0, np.arange(1), np.arange(n_patterns)[None], np.ones(1), 1.0)
    medoid = int(np.nanmean(pairs[..., 0], axis=1).argmax())
    with_medoid = pairs[medoid, :, 0].copy()
    with_medoid[medoid] = 1.0
    typical = float(np.median(np.delete(with_medoid, medoid)))
    kept = np.flatnonzero(with_medoid - 0.5 >= _KEPT_SHARE * (typical - 0.5))
    orders = np.array([match_patterns(members[medoid], members[k])[0] for k in kept])
    return Consensus(medoid, kept, orders, with_medoid, typical)


def aligned(members: np.ndarray, consensus: Consensus) -> np.ndarray:
    """Return R-indices of the kept models in the medoid's order of patterns → ``(kept, people, patterns)``."""
    return np.stack([members[k][:, order] for k, order in zip(consensus.kept, consensus.orders, strict=True)])


@dataclass(frozen=True, eq=False)
class Selected:
    """The models of the chosen checkpoint, brought to one order of patterns, the medoid first."""

    models: Parameters  # arrays with a leading axis
    members: list[int]  # their numbers
    left_out: dict[int, str]  # reasons by number of the model
    correlation: np.ndarray  # of severities, mean over these models


def consensus(judged: Judged, chunks: Sequence[Chunk], execution: Execution) -> Selected:
    """Bring the sound models of a setting's best checkpoint to one order of patterns; leave out those that disagree."""
    n_patterns = judged.point.n_patterns
    trajectories = trajectories_of(members_of([judged.point], range(judged.n_repetitions)), chunks, execution)
    patients = np.stack([of.r_indices[rows[judged.best], k, :, :n_patterns] for of, rows, k in trajectories]).astype(
        float
    )
    wrong = faults(patients)
    usable = usable_models(wrong)
    if not len(usable):
        raise FloatingPointError(
            "All models diverged (their weights are no longer finite). Check the table for extreme values, "
            'or fit linear models (the "linear" preset).'
        )
    agreed = find_consensus(patients[usable])
    left_out = {i: fault for i, fault in enumerate(wrong) if i not in usable}
    left_out |= {
        int(usable[place]): f"disagrees with the others (agreement {value:.3f} with the central repetition; "
        f"median {agreed.typical:.3f})"
        for place, value in enumerate(agreed.agreement_with_medoid)
        if place not in agreed.kept
    }
    orders = {int(usable[place]): order for place, order in zip(agreed.kept, agreed.orders, strict=True)}
    kept = sorted(orders, key=lambda member: member != usable[agreed.medoid])
    used = [(*trajectories[member], orders[member]) for member in kept]
    aligned = [
        inference.reorder_patterns(of.weights_of(k, n_patterns, judged.best_checkpoint.step), order)
        for of, _, k, order in used
    ]
    models = jax.tree.map(lambda *leaves: np.stack(leaves), *aligned)
    correlations = [of.correlations[rows[judged.best], k][np.ix_(order, order)] for of, rows, k, order in used]
    return Selected(models, kept, dict(sorted(left_out.items())), np.mean(correlations, axis=0))


FEWEST_CONTROLS = 20  # fewer do not show how far healthy people lie
_FOLDS = 20  # the more, the closer is the population tested to the one used
_BEYOND = 2.2  # sd of held-out controls' log distances: exceeded by 1.4 % of them if normal


@dataclass(frozen=True, eq=False)
class Familiar:
    """People whom a model can produce, and how far healthy people lie from their mean.

    Attributes
    ----------
    population : Population
        Population of controls and of people synthesised from them, scaled.
    usual : ndarray of shape (2,)
        Mean and sd of the logarithm of the distances of controls that the population was not estimated from.
    surprise : ndarray of shape (1,)
        How far regions of such controls lie from their expectation given the others, relative to its estimated sd.
    """

    population: Population
    usual: np.ndarray
    surprise: np.ndarray

    def strangeness(self, people: np.ndarray, gaps: np.ndarray | None = None) -> np.ndarray:
        """Return how far people lie from anything that the model can produce; above 1, they are strangers.

        Regions in `gaps` are imputed by their expectation given the others, so the distance is that of the others.
        """
        mean, sd = self.usual
        share = 1 if gaps is None else 1 - gaps.mean(axis=1)
        return np.sqrt(self.population.distances(people) / share / np.exp(mean + _BEYOND * sd))

    def strangest(self, person: np.ndarray, number: int) -> np.ndarray:
        """Return the regions that add most to a person's distance, the strangest first."""
        away = person - self.population.mean
        return np.argsort(-away * (self.population.precision @ away), kind="stable")[:number]


def fit_familiar(
    models: Parameters,
    healthy: Healthy,
    fitted: np.ndarray,
    design: np.ndarray | None,
    composition: str,
    correlation: np.ndarray | None,
    seed: int,
) -> Familiar | None:
    """Learn which people a model can produce: controls, and as many synthesised from them; None with too few controls.

    Controls who are left out are also left out of the estimation of covariate effects: with few controls for the number
    of covariates, the residuals of a single fit to all of them would let each influence the others.

    Parameters
    ----------
    models, composition, correlation
        What was learned.
    healthy
        Controls, each as if it had been left out.
    fitted
        The same controls, scaled, as residuals of effects estimated in all of them.
    design
        Design of these effects, see `rindices.preprocessing.covariates.design_of`; None without covariates.
    seed
        Seed of the draws.
    """
    n_controls, n_models = len(healthy.brains), len(healthy.held_out)
    if n_controls < FEWEST_CONTROLS:
        return None
    rng = np.random.default_rng([seed, n_controls, 1])
    number = n_patterns(models)
    factor = np.eye(number) if correlation is None else np.linalg.cholesky(correlation)
    severities = ndtr(rng.standard_normal((n_controls, number)) @ factor.T)
    maker = rng.integers(n_models, size=n_controls)
    made = make_people(models, healthy.brains, severities, maker, composition)
    fold = rng.permutation(n_controls) % _FOLDS
    design = np.ones((n_controls, 1)) if design is None else design
    logarithms, surprises = np.empty(n_controls), []
    for one in range(_FOLDS):
        left = fold == one
        refitted = without_effects(fitted, design, left)
        refitted = ControlScaler.fit(refitted[~left]).transform(refitted)
        others = leave_one_out(refitted[~left], leverage_of(design, left)[~left])
        population = Population.of(np.concatenate([others, others + (made - healthy.brains)[~left]]))
        logarithms[left] = np.log(population.distances(refitted[left]))
        surprises.append(population.surprise(refitted[left], rng.random(refitted[left].shape) < HIDDEN))
    return Familiar(
        Population.of(np.concatenate([healthy.brains, made])),
        np.array([logarithms.mean(), logarithms.std(ddof=1)]),
        np.maximum(np.sqrt(np.mean(np.square(surprises), keepdims=True)), 1),
    )


DRAWS = 40  # imputations of missing regions; in antithetic pairs, so that few give the expectation
_REFERENCE = [5, 50, 95]  # centiles of held-out controls that a report shows
_STRANGEST = 3  # regions that are named if a person is a stranger


class FittedModel:
    """What scoring needs from a model; a fitted `rindices.SurrealGAN` is one."""

    inference: Literal["consensus", "medoid"]
    models_: Parameters
    preprocessing_: Preprocessing
    contract_: Contract
    scale_: SeverityScale
    familiar_: Familiar | None
    seed_: int | None  # an imported model has none
    verdict_: tuple[State | None, str]


class Scaled(NamedTuple):
    """People as the networks see them, accepted instead of a table of regions, and then without covariates.

    Attributes
    ----------
    values
        Corrected and scaled regions.
    covariates
        Covariates as they were given.
    gaps
        Which regions were missing and are imputed by their expectation given the others; None if none were.
    """

    values: np.ndarray
    covariates: pd.DataFrame | None
    gaps: np.ndarray | None = None

    def of(self, rows: np.ndarray) -> Self:
        """Return some of the people."""
        covariates = None if self.covariates is None else self.covariates[rows]
        return type(self)(self.values[rows], covariates, None if self.gaps is None else self.gaps[rows])


class Scores(NamedTuple):
    """The scores of people, pattern by pattern.

    Attributes
    ----------
    r_indices, spread
        R-indices, and their standard deviation over repetitions.
    more_sd
        Standard deviation of the R-indices in addition to that of other people, from missing regions and from the error
        of estimated site effects; 0 without either.
    """

    r_indices: np.ndarray
    spread: np.ndarray
    more_sd: np.ndarray


def score_people(model: FittedModel, people: Scaled) -> Scores:
    """Return people's scores from a model's repetitions, by multiple imputation for people with missing regions."""
    members = inference.r_indices(model.models_, people.values)
    more_sd = _site_sd(model, people, members.mean(axis=0))
    medoid = model.inference == "medoid"
    if people.gaps is not None and model.familiar_ is not None:
        rows = people.gaps.any(axis=1)
        measured = np.where(people.gaps[rows], np.nan, people.values[rows])
        draws = model.familiar_.population.fill(measured, DRAWS, spread=float(model.familiar_.surprise[0]))
        by_draw = inference.r_indices(model.models_, draws.reshape(-1, draws.shape[2])).reshape(
            len(members), *draws.shape[:2], -1
        )
        members[:, rows] = by_draw.mean(axis=1)
        scored = by_draw[0] if medoid else by_draw.mean(axis=0)
        more_sd[rows] = np.hypot(more_sd[rows], scored.std(axis=0))
    return Scores(members[0] if medoid else members.mean(axis=0), spread_over_repetitions(members), more_sd)


def _site_sd(model: FittedModel, people: Scaled, r_indices: np.ndarray) -> np.ndarray:
    """Return the standard error of the R-indices due to uncertainty in the effects of people's sites.

    Errors in the offsets and scales of regions shift R-indices by their slopes; errors in offsets that covary as people
    do, in proportion to the spread of healthy people's R-indices; and errors in scales that covary, in proportion to
    the distance from those. Estimates of two regions' variances correlate by the square of the regions' correlation.
    """
    harmonizer, errors = model.preprocessing_.harmonizer, np.zeros(r_indices.shape)
    if harmonizer is None or people.covariates is None or model.scale_.reference is None:
        return errors
    shared, offsets, scales = harmonizer.errors_left(people.covariates)
    rows, healthy = shared > 0, model.scale_.reference
    if rows.any():
        together = 0.0 if model.familiar_ is None else model.familiar_.population.squared_correlation()
        away = (people.values[rows] - 1) ** 2
        of_regions = SCALED_SD**2 * offsets[rows] + away * scales[rows]
        slopes = inference.slopes(model.models_, people.values[rows])
        squares = np.einsum("pkr,pkr,pr->pk", slopes, slopes, of_regions)
        squares += (shared[rows, None] * healthy.std(axis=1)) ** 2
        away_from_healthy = (r_indices[rows] - healthy.mean(axis=1)) ** 2
        errors[rows] = np.sqrt(squares + together * shared[rows, None] ** 2 / 2 * away_from_healthy)
    return errors


def spread_over_repetitions(members: np.ndarray) -> np.ndarray:
    """Return the standard deviation over repetitions, NaN with a single one."""
    return members.std(axis=0, ddof=1) if len(members) > 1 else np.full(members.shape[1:], np.nan)


def person_columns(
    scale: SeverityScale, scores: Scores, level: float, networks: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Return the columns of ``r_indices.csv`` with people's scores, one value per person.

    There are no columns for what is not available, such as intervals and centiles of imported models.

    Parameters
    ----------
    scale
        The model's scale.
    scores
        The model's scores of the people.
    level
        Confidence level of the intervals of severities.
    networks
        R-indices of the networks alone, if the R-indices are not just these.
    """
    parts = {"r{}": scores.r_indices, "r{}_sd": scores.spread, "severity{}": scale.severities(scores.r_indices)}
    if scale.quantiles is not None:
        parts["severity{}_low"], parts["severity{}_high"] = severity_intervals(
            scale, scores.r_indices, level, scores.more_sd
        )
    if scale.reference is not None:
        parts["centile{}"] = scale.centiles(scores.r_indices)
    parts |= {} if networks is None else {"r{}_networks": networks}
    return {name.format(k + 1): of[:, k] for name, of in parts.items() for k in range(of.shape[1])}


def person_flags(model: FittedModel, people: Scaled, said: Iterable[str], strangeness: np.ndarray) -> list[str]:
    """Add flags for missing regions, and for people unlike anyone the model can produce, to those in `said`."""
    regions, parts = np.array(model.contract_.features, dtype=object), [[text] if text else [] for text in said]
    if people.gaps is not None:
        for row in np.flatnonzero(people.gaps.any(axis=1)).tolist():
            parts[row].append(missing_regions(regions[people.gaps[row]].tolist()))
    if model.familiar_ is not None:
        for row in np.flatnonzero(strangeness > 1).tolist():
            most = listed(regions[model.familiar_.strangest(people.values[row], _STRANGEST)])
            far = f"strangeness {strangeness[row]:.2f}, mainly because of {most}"
            parts[row].append(f"unlike anyone the model can produce ({far})")
    return ["; ".join(part) for part in parts]


def training_of(model: FittedModel) -> dict[str, list[list[float]]]:
    """Return the centiles of severity in a model's training sample by group, without groups that are unknown."""
    scale = model.scale_
    centiles = {"control": scale.reference, "patient": scale.patients}
    return {group: scale.severities(of.T).T.tolist() for group, of in centiles.items() if of is not None}


def reference_of(model: FittedModel) -> list[list[float]] | None:
    """Return the 5th, 50th and 95th centile of the severities of held-out controls, or None if they are not known."""
    scale = model.scale_
    return None if scale.reference is None else scale.severities(scale.reference[:, _REFERENCE].T).T.tolist()


def unknown_of(model: FittedModel) -> list[str]:
    """Return sentences on what a model cannot provide for people, and why."""
    scale = model.scale_
    if model.seed_ is None:
        return ["The model was imported without its training data, so severities have no intervals or centiles."]
    few = (
        "Severities have no intervals. Intervals require at least three repetitions that agree, so that people "
        "synthesised by one repetition can be scored by the others."
    )
    nobody = "Severities have no centiles: no controls were held out of any repetition."
    severe = (
        "The networks changed brains even at severity 0, which may mean that nearly all patients are severely "
        "affected. Severities and their intervals were therefore derived from the linear models. The order of people "
        "is not affected, but if nearly all patients are severely affected, severities are too low (by about a third "
        "in simulated cohorts). Compare people's severities with each other rather than with 1."
    )
    # Without reproducible patterns, f has little to change at any severity.
    from_linear = model.verdict_[0] in ("reproducible", "weak") and inference.linear_makes_people(model.models_)
    cases = {few: scale.quantiles is None, nobody: scale.reference is None, severe: from_linear}
    return [sentence for sentence, holds in cases.items() if holds]
