"""The common part of R-index estimators, and the methods of a fitted one: scores, maps and changes of people."""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rindices.core import inference
from rindices.core.networks import n_patterns
from rindices.judging.study import check_gaps, covariate_table
from rindices.preprocessing import SCALED_SD
from rindices.presets import Correction, Preset, adjusted, get_preset
from rindices.problems import InputError, OutsideTraining, Remedy, check_choice, joined
from rindices.schema import Contract, RegionField, Roster
from rindices.scoring.consensus_and_person import FittedModel, Scaled, Scores, score_people, spread_over_repetitions
from rindices.scoring.intervals import severity_intervals
from rindices.scoring.severity_and_reference import HeldOut
from rindices.settings import OutputSettings, SearchSettings
from rindices.value_kinds import check_level


class Controls(NamedTuple):
    """The controls of a fit: how unseen ones are scored, the change from leaving each one out, and their rows."""

    held_out: HeldOut
    left_out: np.ndarray
    rows: np.ndarray


class OfTwoGroups(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that learns from controls and patients, optionally with covariates."""

    contract_: Contract

    def fit_transform(self, X: Any, y: Any, covariates: Any = None) -> Any:
        """Fit, then transform the same people, without warnings about people unlike the others in training."""
        fitted = self.fit(X, y, covariates)
        with warnings.catch_warnings(action="ignore", category=OutsideTraining):
            return fitted.transform(X, covariates)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # not a classifier: this says that y has two values
        # Not `allow_nan`, which means any number of missing values; only a few are imputed.
        return tags

    def _new_people(
        self, X: Any, covariates: Any, *, unfilled: str = "", checked: bool = False
    ) -> tuple[np.ndarray, pd.DataFrame | None]:
        """Return the regions and covariates of people, matched by name, and refuse those that do not fit the model.

        Missing values are refused if `unfilled` gives a reason; with `checked`, units and values are not checked again.
        """
        names = getattr(self, "feature_names_in_", None)
        if names is not None and isinstance(X, pd.DataFrame) and set(X.columns) == set(names):
            X = X[list(names)]
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        table = covariate_table(covariates, len(X), index)
        check_gaps(X, unfilled=unfilled)
        if not checked:
            self._check_regions(X)
        return X, table

    def _check_regions(self, X: np.ndarray) -> None:
        """Refuse regions in another unit or with impossible values, and warn of people outside the training range."""
        contract = self.contract_
        field = RegionField(contract.features, contract.ranges, unit=contract.unit, fills=True)
        field.observe(
            pd.DataFrame(X, columns=list(contract.features)), Roster(pd.RangeIndex(len(X)), np.arange(len(X)))
        )
        if problems := field.check():
            raise InputError(joined([problem.what for problem in problems], "\n"), problems=problems)
        n_outside = int(contract.outside(X).any(axis=1).sum())
        if n_outside:
            warnings.warn(
                f"{n_outside} of {len(X)} people {'has' if n_outside == 1 else 'have'} regional values outside the "
                "training range.",
                OutsideTraining,
                stacklevel=5,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class RIndexEstimator(OfTwoGroups):
    """The base class of `SurrealGAN` and `rindices.SurrealGANSearch`, with the parameters that they share."""

    n_repetitions: int = SearchSettings.n_repetitions
    preset: str | Preset = SearchSettings.preset
    inference: Literal["consensus", "medoid"] = "consensus"
    max_steps: int | None = SearchSettings.max_steps
    latent: Literal["independent", "correlated"] | None = SearchSettings.latent
    correction: Correction | None = None
    output: Literal["r_indices", "severities"] = "r_indices"
    random_state: Any = None
    n_jobs: int | None = None
    models_per_chunk: int | None = None

    def preset_with(self, n_patterns: Any, orthogonality: float | None) -> Preset:
        """Check the parameters, and return the preset of one setting with its overrides."""
        check_number("n_patterns", n_patterns)
        check_number("n_repetitions", self.n_repetitions)
        check_number("models_per_chunk", 1 if self.models_per_chunk is None else self.models_per_chunk)
        check_choice(Remedy("inference"), self.inference, ("consensus", "medoid"))
        check_choice(Remedy("output"), self.output, ("r_indices", "severities"))
        if not isinstance(self.correction, Correction | None):
            raise ValueError(
                f"correction should be a Correction, such as Correction(smooth=['age']), but got {self.correction!r}."
            )
        return adjusted(get_preset(self.preset), orthogonality, self.max_steps, self.latent)


def check_number(name: str, value: object) -> None:
    """Refuse a setting that is not a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} should be a positive integer, but got {value!r}.")


class FittedEstimator(RIndexEstimator, FittedModel):
    """The methods of a fitted `rindices.SurrealGAN`."""

    preset_: Preset
    _controls: Controls

    def held_out_again(self, X: Any, first: np.ndarray, covariates: Any = None) -> np.ndarray:
        """Return the R-indices of further scans of training controls, from repetitions that were not trained on them.

        Only available if this estimator was fitted, not read from a file.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The further scans.
        first : ndarray of shape (n_samples,)
            The row of the same person in `fit`.
        covariates : array-like, optional
            As in `fit`.
        """
        check_is_fitted(self, "models_")
        if not hasattr(self, "_controls"):
            raise InputError(
                "A model that was read from a file has no record of its training controls. Fit the model again."
            )
        place = pd.Index(self._controls.rows).get_indexer(pd.Index(first))
        if (place < 0).any():
            raise InputError(
                f"Row {np.asarray(first)[place < 0][0]} of the data passed to fit does not belong to a control."
            )
        # The shift that leaves the first scan out of means and sds is applied to further scans, too.
        brains = self.prepare(X, covariates).values + self._controls.left_out[place]
        scores = inference.r_indices(self.models_, brains)
        return self._controls.held_out.scores(scores[: len(self._controls.held_out.held_out)], place)

    def transform(self, X: Any, covariates: Any = None) -> Any:
        """Return the R-indices of people, or their severities, depending on `output`.

        They need not have been in `fit`; columns are matched by name.
        """
        r_indices = self.scores(X, covariates).r_indices
        return self.scale_.severities(r_indices) if self.output == "severities" else r_indices

    def severities(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return each person's severity of each pattern: a fraction of the largest change that was learned.

        Some patients exceed 1; healthy people average slightly above 0.
        """
        return self.scale_.severities(self.scores(X, covariates).r_indices)

    def intervals(
        self, X: Any, covariates: Any = None, level: float = OutputSettings.level
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper limits of each person's severities, which contain the truth in a proportion `level`.

        NaN with fewer than three repetitions, and for imported models.
        """
        scores = self.scores(X, covariates)
        return severity_intervals(self.scale_, scores.r_indices, check_level(level), scores.more_sd)

    def strangeness(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return how far each person lies from anyone the model can produce; a person above 1 is a stranger.

        One or two in a hundred healthy people are. NaN if `familiar_` is None.
        """
        people, _, gaps = self.prepare(X, covariates)
        return np.full(len(people), np.nan) if self.familiar_ is None else self.familiar_.strangeness(people, gaps)

    def adapt(self, X: Any, covariates: Any, *, few_controls: bool = False) -> Self:
        """Return this model with additional sites, learned from controls measured there.

        Scores at the training sites do not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Regional measures of controls from new sites, complete.
        covariates : DataFrame
            As in `fit`, with the names of the new sites.
        few_controls : bool
            Whether to estimate the effects of sites with five to nine controls, too; they are refused otherwise.
        """
        check_is_fitted(self, "models_")
        X, table = self._new_people(X, covariates, unfilled="site effects are estimated only from complete data")
        model, site = copy(self), None if self.correction is None else self.correction.site
        model.preprocessing_ = self.preprocessing_.with_new_sites(
            X, pd.DataFrame() if table is None else table, few_controls=few_controls
        )
        sites = () if model.preprocessing_.harmonizer is None else model.preprocessing_.harmonizer.sites
        model.contract_ = replace(
            self.contract_,
            covariates=tuple(
                # Sites that are numbers are no longer limited to two codes.
                replace(spec, categories=None if spec.categories is None else sites, codes=None)
                if spec.name == site
                else spec
                for spec in self.contract_.covariates
            ),
        )
        return model

    def spread(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the standard deviation over repetitions of each R-index (NaN with a single one)."""
        return self.scores(X, covariates).spread

    def scores(self, X: Any, covariates: Any = None) -> Scores:
        """Return R-indices, their spread over repetitions, and their uncertainty due to missing regions and sites."""
        return score_people(self, self.prepare(X, covariates))

    def network_r_indices(self, X: Any, covariates: Any = None) -> np.ndarray | None:
        """Return the paper's R = g₂(g₁(y)), the mean of repetitions; None if R-indices are just that, or linear."""
        check_is_fitted(self, "models_")
        if self.models_.linear is None or not self.models_.decomposer:
            return None
        return inference.r_indices(inference.without_linear(self.models_), self.prepare(X, covariates).values).mean(0)

    def z_scores(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the corrected regions in sd of controls, as the networks see them (W-scores)."""
        return (self.prepare(X, covariates).values - 1) / SCALED_SD

    def decompose(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the change in each person's regions that g₁ attributes to each pattern, in the units of `X`.

        If the correction includes head size or sites, it is the change in a head of average size, without site effects.

        Returns
        -------
        ndarray of shape (n_samples, n_patterns, n_features)
            Negative where the pattern made a region smaller.
        """
        changes = inference.decompose(self.models_, self.prepare(X, covariates).values)
        return changes * self.preprocessing_.scaler.sd / SCALED_SD

    def synthesize(self, X: Any, z: ArrayLike, covariates: Any = None) -> np.ndarray:
        """Return controls as f transforms them by severities `z`, in the units of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Regional measures of controls.
        z : array-like of shape (n_patterns,) or (n_samples, n_patterns)
            Severities from 0 to 1, the same for everybody or one row per person.
        covariates : array-like, optional
            As in `fit`.
        """
        scaled, table, _ = self.prepare(X, covariates)
        shape = (len(scaled), self._n_features_out)
        z = np.asarray(z, float)
        if z.shape not in {shape, shape[1:]} or not ((z >= 0) & (z <= 1)).all():
            raise ValueError(
                f"z should contain {shape[1]} severities between 0 and 1, either a single row for everyone or one row "
                f"for each of the {shape[0]} people, but its shape is {z.shape} and its values range from "
                f"{z.min(initial=1):g} to {z.max(initial=0):g}."
            )
        made = inference.synthesise(self.models_, scaled, np.broadcast_to(z, shape), self.preset_.training.composition)
        return self.preprocessing_.inverse_transform(made.mean(axis=0), table)

    def pattern_maps(self, X: Any, covariates: Any = None, severity: float = 1.0) -> pd.DataFrame:
        """Return how each pattern at a `severity` changes each region of controls `X`, relative to severity 0.

        Returns
        -------
        DataFrame
            Columns region, pattern, change_sd (in sd of controls), change_percent (of the controls' mean) and
            spread_sd (sd of change_sd over repetitions).
        """
        scaled = self.prepare(X, covariates).values
        changes = inference.pattern_changes(self.models_, scaled, severity)
        return self._maps(changes, ("change_sd", "change_percent", "spread_sd"))

    def decomposed_maps(self, X: Any, covariates: Any = None) -> pd.DataFrame:
        """Return the change in each region of patients `X` that g₁ attributes to each pattern, at severity 1.

        In each repetition, this is the slope through the origin of the decomposed changes on its own R-indices.

        Returns
        -------
        DataFrame
            Columns region, pattern, decomposed_sd (in sd of controls), decomposed_percent (of the controls' mean) and
            decomposed_spread_sd (sd of decomposed_sd over repetitions).
        """
        changes = inference.decomposed_changes(self.models_, self.prepare(X, covariates).values)
        return self._maps(changes, ("decomposed_sd", "decomposed_percent", "decomposed_spread_sd"))

    def _maps(self, changes: np.ndarray, names: tuple[str, str, str]) -> pd.DataFrame:
        """Tabulate changes of scaled regions ``(repetitions, patterns, regions)``, one row per pattern and region.

        `names` are those of the mean change in sd of controls, in % of the controls' mean, and of the sd of the first.
        """
        scaler, regions, n_patterns = self.preprocessing_.scaler, list(self.contract_.features), changes.shape[1]
        in_sd = changes / SCALED_SD
        # A percentage is meaningless for values that may be negative, such as z-scores.
        sizes = np.where(self.contract_.ranges[0] < 0, np.nan, np.abs(scaler.mean))
        percent = 100 * in_sd.mean(axis=0) * scaler.sd / sizes
        values = map(np.ravel, (in_sd.mean(axis=0), percent, spread_over_repetitions(in_sd)))
        return pd.DataFrame(
            {"region": regions * n_patterns, "pattern": np.repeat(np.arange(n_patterns) + 1, len(regions))}
            | dict(zip(names, values, strict=True))
        )

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names r1, r2, ... of the R-indices, or severity1, severity2, ..."""
        super().get_feature_names_out(input_features)  # refuses names that are not the regions'
        name = "severity" if self.output == "severities" else "r"
        return np.array([f"{name}{i + 1}" for i in range(self._n_features_out)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return n_patterns(self.models_)

    def prepare(self, X: Any, covariates: Any = None, *, checked: bool = False) -> Scaled:
        """Check, correct and scale people once, for all further calls.

        With `checked`, units and impossible values are not checked again: they were when a training table was read.

        After ``people = model.prepare(X, covariates)``, use ``model.transform(people)`` and ``model.z_scores(people)``.
        """
        check_is_fitted(self, "models_")
        if isinstance(X, Scaled):
            return X
        unfilled = "" if self.familiar_ else "a model that was imported or trained on few controls cannot impute them"
        X, table = self._new_people(X, covariates, unfilled=unfilled, checked=checked)
        scaled, gaps = self.preprocessing_.transform(X, table), np.isnan(X)
        if self.familiar_ is None or not gaps.any():
            return Scaled(scaled, table)
        # Two draws are symmetric about the expected values.
        return Scaled(self.familiar_.population.fill(scaled, 2).mean(axis=0), table, gaps)
