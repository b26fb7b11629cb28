"""`SurrealGAN`: the scikit-learn shell around the engine. It validates, delegates and stores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

import rindices
from rindices.core import devices, inference
from rindices.core.networks import n_patterns
from rindices.core.train import held_out
from rindices.judging.agreement import Agreement
from rindices.judging.selection import Judged, sweep
from rindices.judging.study import Study
from rindices.model.estimator_inputs import (
    check_gaps,
    check_groups,
    check_residuals,
    check_roles,
    covariate_table,
    is_patient,
    seed_from,
)
from rindices.model.file import complete, read_model, write_model
from rindices.model.header import Header, Parameters, StoredAgreement
from rindices.preprocessing import SCALED_SD, Preprocessing
from rindices.preprocessing.covariates import TOO_UNCERTAIN, design_of, uncertainty_in_words
from rindices.preprocessing.missing import fill_training
from rindices.preprocessing.pipeline import describe
from rindices.presets import Correction, Preset, adjusted, get_preset
from rindices.problems import InputError, OutsideTraining, joined
from rindices.schema import Contract, RegionField, Roster
from rindices.scoring.consensus import Selected, consensus
from rindices.scoring.intervals import Healthy, fit_scale, severity_intervals
from rindices.scoring.person import DRAWS, Scaled, Scores, score_people, spread_over_repetitions
from rindices.scoring.reference import HeldOut, leave_one_out
from rindices.scoring.severity import SeverityScale
from rindices.scoring.strangers import fit_familiar
from rindices.setting_fields import check_level
from rindices.settings import SearchSettings, State
from rindices.training.chunks import Point, Settings
from rindices.training.execution import Execution, Memory, Progress, Store


class TrainingSet(NamedTuple):
    """A table made ready for training."""

    study: Study
    contract: Contract
    preprocessing: Preprocessing


class _Controls(NamedTuple):
    """The controls of a fit: how unseen ones are scored, what it adds to leave each out, and their rows."""

    held_out: HeldOut
    left_out: np.ndarray
    rows: np.ndarray


class OfTwoGroups(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that learns from controls and patients, and may have covariates of people."""

    def fit_transform(self, X: Any, y: Any, covariates: Any = None) -> Any:
        """Fit, then return what `transform` does of the same people."""
        return self.fit(X, y, covariates).transform(X, covariates)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = (
            True  # a few gaps are filled in, but the tag that allows NaN means any number of them
        )
        # Not a classifier; this only says that y has two values.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class RIndexEstimator(OfTwoGroups):
    """What `SurrealGAN` and `rindices.SurrealGANSearch` have in common: these parameters, and covariates."""

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


@dataclass(eq=False, repr=False)
class SurrealGAN(RIndexEstimator):
    """R-indices and severities of each disease pattern in each person, learned from controls and patients.

    Repeated trainings of small networks learn how the disease transforms a healthy brain; those that agree are
    averaged. Regions are residualised on covariates and scaled by the controls; nothing needs to be done before.

    Parameters
    ----------
    n_patterns : int, default=3
        Number of disease patterns M.
    n_repetitions : int, default=10
        Trainings that differ in their random numbers only.
    preset : {"fast", "linear", "blind", "paper", "official"} or Preset, default="fast"
        All other choices; see `rindices.settings`.
    inference : {"consensus", "medoid"}, default="consensus"
        R-indices are the mean of the agreeing repetitions, or those of the one that agrees best (the paper's choice).
    orthogonality : float, optional
        Weight λ of the separation of patterns; by default the preset's.
    max_steps : int, optional
        Longest training; by default the preset's. Below the preset's least number of steps (6,000 for ``fast``) the
        last step is taken, without a choice among checkpoints: that is for trying, not for results.
    latent : str, optional
        Whether severities of patterns are taken to be independent (``"independent"``), or their correlation is learned
        (``"correlated"``); by default the preset's choice (correlated, but for ``paper``).
    correction : Correction, optional
        Curves and interactions of covariates, head size by proportion, sites; by default all covariates have linear
        effects.
    output : {"r_indices", "severities"}, default="r_indices"
        What `transform` returns.
    random_state : int, RandomState or None, default=None
        An int makes the result repeatable to the bit on the same machine.
    n_jobs : int, optional
        Models or groups of models trained at the same time, as in joblib; by default one a core, or what
        ``joblib.parallel_config`` says. It does not change the result.
    models_per_chunk : int, optional
        Models that one worker trains together; by default one on a processor, on an accelerator all that fit.

    Attributes
    ----------
    r_indices_ : ndarray of shape (n_samples, n_patterns)
        R-indices of the people given to `fit`: about their place among the patients, from about 0.1 like controls to
        about 1 like the most severe; not clipped.
    held_out_r_indices_ : ndarray of shape (n_samples, n_patterns)
        R-indices of the controls by repetitions that did not learn from them; NaN for patients.
    scale_ : SeverityScale
        Turns R-indices into severities, intervals, and centiles among held-out controls.
    familiar_ : Familiar or None
        People whom the model can produce, and how far healthy people lie from them; None in imported models, and with
        fewer than 20 controls.
    spread_ : ndarray of shape (n_samples, n_patterns)
        Standard deviation over repetitions: how much trainings differ. It is no confidence interval of a severity.
    maps_ : dict of ndarray
        What each pattern did to each region ``(patterns, regions)`` of the people of the training, by columns of
        ``patterns.csv``; empty unless a run folder was written.
    agreement_ : Agreement
        Mean agreement of all sound repetitions, over the patients.
    history_ : DataFrame
        Agreement and losses at each checkpoint; `chosen` marks the one that was kept.
    members_ : list of int
        Repetitions that were used, the medoid first.
    left_out_ : dict
        Repetitions that were not, and why.
    step_ : int
        Training step of the chosen checkpoint.
    seed_ : int
        The seed that repeats this fit.
    preset_ : Preset
        All choices, with `orthogonality` and `max_steps` put in.
    correlation_ : ndarray of shape (n_patterns, n_patterns) or None
        Correlation of severities (of their normal scores) that was learned, mean over repetitions; None where they were
        taken to be independent.
    verdict_ : tuple of (str or None, str)
        What `SurrealGANSearch` found: ``reproducible``, ``weak``, ``confounded``, ``not found again``, ``no
        difference`` or ``not testable``, and why; None where that was not judged.
    models_ : Parameters
        Weights of the members, patterns in the same order in all.
    preprocessing_ : Preprocessing
        What was estimated in controls.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from rindices import SurrealGAN, simulate_cohort
    >>> table = simulate_cohort("basic", n_controls=100, n_patients=100, seed=0).table
    >>> regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    >>> model = SurrealGAN(n_patterns=3, n_repetitions=2, max_steps=100, random_state=0)
    >>> model.fit(regions, table["diagnosis"] == "PT").transform(regions).shape
    (200, 3)
    """

    n_patterns: int = 3
    orthogonality: float | None = field(default=None, kw_only=True)

    def fit(
        self,
        X: Any,
        y: Any,
        covariates: Any = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        store: Store | None = None,
    ) -> Self:
        """Learn the patterns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Regional measures of controls and patients. People may lack a fifth of the regions (NaN): these are drawn,
            given the others and the covariates; the group is not looked at.
        y : array-like of shape (n_samples,)
            0 for controls, 1 for patients. Of two other numbers the lower marks controls, with a warning.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Numbers or categories whose effects, estimated in controls, are removed; `correction` says how.
        progress : callable, optional
            Called with a `Progress` as training goes on.
        store : Store, optional
            Where trained models are kept until all are; a `rindices.training.journal.Journal` outlives a sudden end.
        """
        training = self._training_set(X, y, covariates)
        execution = Execution(Memory() if store is None else store, self.n_jobs, progress, self.models_per_chunk)
        point = Point(self.n_patterns, training.study.settings.preset.weights.orthogonality)
        swept = sweep(training.study, [point], self.n_repetitions, execution)
        return self._keep(training, swept.chosen, consensus(swept.chosen, swept.chunks, execution))

    def _training_set(self, X: Any, y: Any, covariates: Any = None) -> TrainingSet:
        """Check the arguments of `fit`, estimate in controls what is estimated there, and scale everybody."""
        preset = self._preset()
        index = X.index if isinstance(X, pd.DataFrame) else None
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, ensure_all_finite="allow-nan")
        patient, seed = is_patient(y), seed_from(self.random_state)
        check_gaps(X, training=True)
        table = covariate_table(covariates, len(X), index)
        regions = [str(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])]
        check_roles(regions, [*([] if table is None else table), Contract.id_column, Contract.diagnosis_column])
        contract = Contract.of_people(pd.DataFrame(X, columns=regions), table)
        batch_size = preset.schedule.batch_size or max(1, int(patient.sum()) // 8)
        X = fill_training(X, table, self.correction, seed)
        check_groups(X[~patient], int(patient.sum()), regions)
        preprocessing = Preprocessing.fit(X[~patient], None if table is None else table[~patient], self.correction)
        check_residuals(X[~patient].std(axis=0), preprocessing.scaler.sd, regions)
        devices.prepare()
        settings = Settings(preset, batch_size, seed)
        design = None if table is None else design_of(table, patient, self.correction)
        site = None if self.correction is None or self.correction.site is None else self.correction.site
        sites = None if site is None or table is None else pd.factorize(table[site])[0]
        study = Study(preprocessing.transform(X, table), patient, settings, design, sites)
        if study.uncertainty > TOO_UNCERTAIN:
            warnings.warn(uncertainty_in_words(study.uncertainty), UserWarning, stacklevel=3)
        return TrainingSet(study, contract, preprocessing)

    def _keep(self, training: TrainingSet, chosen: Judged, selected: Selected) -> Self:
        """Become fitted: keep the models of a chosen setting, which are this estimator's from now on."""
        study = training.study
        preset, look = study.settings.preset, chosen.look
        weights = preset.weights._replace(orthogonality=chosen.point.orthogonality)
        self.preset_ = replace(preset, weights=weights)
        self.seed_: int | None = study.settings.seed  # an imported model has none
        self.contract_, self.preprocessing_ = training.contract, training.preprocessing
        self.step_, self.agreement_ = look.step, look.agreement
        self.verdict_: tuple[State | None, str] = (None, "")  # a search judges it
        self.members_, self.left_out_ = selected.members, selected.left_out
        self.history_ = pd.DataFrame(
            {"step": look.step, "n_models": look.n_models} | look.agreement._asdict() | look.losses
            for look in chosen.looks
        ).assign(chosen=[place == chosen.best for place in range(len(chosen.looks))])
        controls, composition = study.residuals[~study.patient], preset.training.composition
        models = inference.from_zero(selected.models, controls, composition)
        self.models_, order = inference.order_by_change(models, controls, composition)
        independent = preset.training.latent == "independent"
        self.correlation_ = None if independent else selected.correlation[np.ix_(order, order)]
        self.r_indices_, self.spread_, _ = score_people(self, Scaled(study.residuals, None))
        folds = [held_out(len(controls), study.settings.seed, k, preset.schedule.folds) for k in self.members_]
        full = healthy = Healthy(leave_one_out(controls, study.leverage[~study.patient]), np.stack(folds))
        if self.inference == "medoid":  # one repetition, which the others say nothing about
            scored, healthy = jax.tree.map(lambda leaf: leaf[:1], self.models_), healthy.of(1)
        else:
            scored = self.models_
        self.scale_: SeverityScale
        self.scale_, honest, unseen = fit_scale(scored, healthy, composition, self.correlation_, study.settings.seed)
        self._controls = _Controls(unseen, healthy.brains - controls, np.flatnonzero(~study.patient))
        self.familiar_ = fit_familiar(self.models_, full, composition, self.correlation_, study.settings.seed)
        self.maps_: dict[str, np.ndarray] = {}
        self.held_out_r_indices_ = np.full(self.r_indices_.shape, np.nan)
        self.held_out_r_indices_[~study.patient] = honest
        if self.left_out_:
            reasons = ", ".join(f"no. {member} {why}" for member, why in self.left_out_.items())
            warnings.warn(f"Excluded repetitions: {reasons}.", UserWarning, stacklevel=3)
        return self

    def held_out_again(self, X: Any, first: np.ndarray, covariates: Any = None) -> np.ndarray:
        """Return R-indices of further scans of controls of `fit`, by the repetitions that did not learn from them.

        Only where this estimator was fitted and not read from a file.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The further scans.
        first : ndarray of shape (n_samples,)
            The row of the same person in `fit`.
        covariates : array-like, optional
            As in `fit`.
        """
        place = np.searchsorted(self._controls.rows, first)
        # Beyond the first scan, which is as if it had been left out of means and sds, there is what has changed.
        brains = self.prepare(X, covariates).values + self._controls.left_out[place]
        scores = inference.r_indices(self.models_, brains)
        return self._controls.held_out.scores(scores[: len(self._controls.held_out.held_out)], place)

    def transform(self, X: Any, covariates: Any = None) -> Any:
        """Return the R-indices of people, or their severities where `output` says so.

        They need not have been in `fit`; columns are matched by name.
        """
        r_indices = self.transform_with_spread(X, covariates)[0]
        return self._scale().severities(r_indices) if self.output == "severities" else r_indices

    def severities(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the severity of each pattern in people: the share of the largest change that was learned.

        Some patients exceed 1; healthy people average slightly above 0.
        """
        return self._scale().severities(self.transform_with_spread(X, covariates)[0])

    def intervals(
        self, X: Any, covariates: Any = None, level: float = SearchSettings.level
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper limits of each person's severities, which hold the truth in `level` of people.

        NaN with fewer than three repetitions, and for imported models.
        """
        scores = self.scores(X, covariates)
        return severity_intervals(self._scale(), scores.r_indices, check_level(level), scores.more_sd)

    def _scale(self) -> SeverityScale:
        check_is_fitted(self, "models_")
        return self.scale_

    def strangeness(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return how far each person lies from all that the model can produce; above 1 they are strangers.

        Of healthy people, one or two in a hundred are; NaN where the model does not know, see `familiar_`.
        """
        people, _, gaps = self.prepare(X, covariates)
        return np.full(len(people), np.nan) if self.familiar_ is None else self.familiar_.strangeness(people, gaps)

    def adapt(self, X: Any, covariates: Any, *, few_controls: bool = False) -> SurrealGAN:
        """Return this model with further sites, learned from controls who were measured there.

        Nobody's scores at the sites of the training change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Regional measures of controls of new sites, complete.
        covariates : DataFrame
            As in `fit`; the site names the new ones.
        few_controls : bool
            Whether sites with five to nine controls are learned, too; they are refused otherwise.
        """
        check_is_fitted(self, "models_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        table = covariate_table(covariates, len(X))
        model, site = copy(self), None if self.correction is None else self.correction.site
        covariates_there = pd.DataFrame() if table is None else table
        model.preprocessing_ = self.preprocessing_.with_new_sites(X, covariates_there, few_controls=few_controls)
        sites = () if model.preprocessing_.harmonizer is None else model.preprocessing_.harmonizer.sites
        model.contract_ = replace(
            self.contract_,
            covariates=tuple(
                # Sites that were given as numbers may be any others from now on.
                replace(spec, categories=None if spec.categories is None else sites, codes=None)
                if spec.name == site
                else spec
                for spec in self.contract_.covariates
            ),
        )
        return model

    def spread(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the standard deviation over repetitions of each R-index (NaN with a single one)."""
        return self.transform_with_spread(X, covariates)[1]

    def transform_with_spread(self, X: Any, covariates: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return what `transform` and `spread` return, in the time of one of them."""
        return self.scores(X, covariates)[:2]

    def scores(self, X: Any, covariates: Any = None) -> Scores:
        """Return R-indices, their spread over repetitions, and how uncertain missing regions make them."""
        return score_people(self, self.prepare(X, covariates))

    def network_r_indices(self, X: Any, covariates: Any = None) -> np.ndarray | None:
        """Return the paper's R = g₂(g₁(y)), the mean of repetitions; None where R-indices are just that, or linear."""
        if self.models_.linear is None or not self.models_.decomposer:
            return None
        return inference.r_indices(inference.without_linear(self.models_), self.prepare(X, covariates).values).mean(0)

    def z_scores(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the corrected regions in sd of controls, as the networks see them (W-scores)."""
        return (self.prepare(X, covariates).values - 1) / SCALED_SD

    def decompose(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the change that each pattern made to each person's regions, as g₁ sees it, in the units of `X`.

        Where the correction has head size or sites, it is the change in a head of average size, without a site.

        Returns
        -------
        ndarray of shape (n_samples, n_patterns, n_features)
            Negative where the pattern made a region smaller.
        """
        scaled = self.prepare(X, covariates).values
        return inference.decompose(self.models_, scaled) * self.preprocessing_.scaler.sd / SCALED_SD

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
        if z.shape not in {shape, shape[1:]} or not np.isfinite(z).all():
            raise ValueError(
                f"z should contain {shape[1]} finite severities, for all or for each of {shape[0]} people; "
                f"found shape {z.shape}."
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
        changes = inference.pattern_changes(self.models_, scaled, self.preset_.training.composition, severity)
        return self._maps(changes, ("change_sd", "change_percent", "spread_sd"))

    def decomposed_maps(self, X: Any, covariates: Any = None) -> pd.DataFrame:
        """Return how each pattern at severity 1 changed each region of patients `X`, as g₁ sees it.

        In each repetition a line through the origin of the decomposed changes over the repetition's own R-indices.

        Returns
        -------
        DataFrame
            Columns region, pattern, decomposed_sd (in sd of controls), decomposed_percent (of the controls' mean) and
            decomposed_spread_sd (sd of decomposed_sd over repetitions).
        """
        changes = inference.decomposed_changes(self.models_, self.prepare(X, covariates).values)
        return self._maps(changes, ("decomposed_sd", "decomposed_percent", "decomposed_spread_sd"))

    def _maps(self, changes: np.ndarray, names: tuple[str, str, str]) -> pd.DataFrame:
        """Return changes of scaled regions, (repetitions, patterns, regions), with a row for each pattern and region.

        `names` are those of the mean change in sd of controls, in % of the controls' mean, and of the sd of the first.
        """
        scaler, regions, n_patterns = self.preprocessing_.scaler, list(self.contract_.features), changes.shape[1]
        in_sd = changes / SCALED_SD
        # What may be negative, such as a z-score, has no zero to take percent of.
        sizes = np.where(self.contract_.ranges[0] < 0, np.nan, np.abs(scaler.mean))
        percent = 100 * in_sd.mean(axis=0) * scaler.sd / sizes
        values = zip(names, (in_sd.mean(axis=0), percent, spread_over_repetitions(in_sd)), strict=True)
        return pd.DataFrame(
            {"region": regions * n_patterns, "pattern": np.repeat(np.arange(n_patterns) + 1, len(regions))}
            | {name: numbers.ravel() for name, numbers in values}
        )

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names r1, r2, ... of the R-indices, or severity1, severity2, ..."""
        super().get_feature_names_out(input_features)  # refuses names that are not the regions'
        name = "severity" if self.output == "severities" else "r"
        return np.array([f"{name}{i + 1}" for i in range(self._n_features_out)], dtype=object)

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one safetensors file, which holds numbers and text but no code."""
        check_is_fitted(self, "models_")
        given = {field.name: getattr(self, field.name) for field in fields(Parameters)}
        given |= {"preset": get_preset(self.preset), "random_state": self.seed_}
        agreement = {name: None if np.isnan(value) else value for name, value in self.agreement_._asdict().items()}
        header = Header(
            members=tuple(self.members_),
            step=self.step_,
            seed=self.seed_,
            # NumPy's numbers may come in settings.
            parameters=Parameters(
                **{name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
            ),
            contract=self.contract_,
            agreement=StoredAgreement(**agreement),
            verdict=self.verdict_,
            left_out=tuple(self.left_out_.items()),
            correlation=None if self.correlation_ is None else tuple(map(tuple, self.correlation_.tolist())),
            named=hasattr(self, "feature_names_in_"),
            package_version=rindices.__version__,
            preprocessing=describe(self.preprocessing_),
        )
        return write_model(path, header, self.models_, self.preprocessing_, self.scale_, self.familiar_, self.maps_)

    @property
    def _n_features_out(self) -> int:
        return n_patterns(self.models_)

    def _preset(self) -> Preset:
        """Return the preset with what was overridden; settings are checked here."""
        for name, value in (("n_patterns", self.n_patterns), ("n_repetitions", self.n_repetitions)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} should be a whole number of 1 or more, found {value!r}.")
        if self.inference not in ("consensus", "medoid"):
            raise ValueError(f"inference should be 'consensus' or 'medoid', found {self.inference!r}.")
        if self.output not in ("r_indices", "severities"):
            raise ValueError(f"output should be 'r_indices' or 'severities', found {self.output!r}.")
        return adjusted(get_preset(self.preset), self.orthogonality, self.max_steps, self.latent)

    def prepare(self, X: Any, covariates: Any = None) -> Scaled:
        """Check people, correct and scale them: once, for all that is then asked about them.

        With ``people = model.prepare(X, covariates)``, ask ``model.transform(people)`` and ``model.z_scores(people)``.
        """
        check_is_fitted(self, "models_")
        if isinstance(X, Scaled):
            return X
        names = getattr(self, "feature_names_in_", None)
        if names is not None and isinstance(X, pd.DataFrame) and set(X.columns) == set(names):
            X = X[list(names)]
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        table, gaps = covariate_table(covariates, len(X), index), np.isnan(X)
        check_gaps(X, can_fill=self.familiar_ is not None)
        self._check_regions(X)
        scaled = self.preprocessing_.transform(X, table)
        if self.familiar_ is None or not gaps.any():
            return Scaled(scaled, table)
        return Scaled(self.familiar_.population.fill(scaled, DRAWS).mean(axis=0), table, gaps)

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
                f"{n_outside} of {len(X)} people have regional values outside the training range.",
                OutsideTraining,
                stacklevel=4,
            )


def load_model(path: str | Path) -> SurrealGAN:
    """Read a fitted model from a file that `SurrealGAN.save` wrote; no code is run from it.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, foreign, of another format or not finite.
    """
    header, models, preprocessing, scale, familiar, known_maps = read_model(path)
    with complete(path):
        model = SurrealGAN(**vars(header.parameters))
        model.preset_ = model._preset()
        agreement = {name: np.nan if value is None else value for name, value in vars(header.agreement).items()}
        model.agreement_, model.verdict_, model.scale_ = Agreement(**agreement), header.verdict, scale
    model.members_, model.left_out_ = list(header.members), dict(header.left_out)
    model.step_, model.seed_ = header.step, header.seed
    model.correlation_ = None if header.correlation is None else np.array(header.correlation)
    model.contract_, model.n_features_in_ = header.contract, len(header.contract.features)
    if header.named:
        model.feature_names_in_ = np.array(header.contract.features, dtype=object)
    model.models_, model.preprocessing_, model.familiar_, model.maps_ = models, preprocessing, familiar, known_maps
    return model
