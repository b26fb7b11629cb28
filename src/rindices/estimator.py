"""The scikit-learn estimators: `SurrealGAN` around the engine, and `ContrastiveFactors`, the linear model alone.

They check arguments, delegate the work, keep the results, and save them in a file.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import jax
import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

import rindices
from rindices.core import inference
from rindices.core.train import held_out
from rindices.files import check_writable
from rindices.fitted_model import Controls, FittedEstimator, OfTwoGroups, check_number
from rindices.judging.agreement_and_misfit import Agreement
from rindices.judging.selection import Judged, sweep
from rindices.judging.study import TrainingSet, training_set
from rindices.linear import METHODS, Method, fitted, unconverged_rotations
from rindices.model import (
    EstimatorParameters,
    Header,
    complete,
    read_model,
    write_model,
)
from rindices.preprocessing import SCALED_SD
from rindices.preprocessing.missing import Population
from rindices.preprocessing.pipeline import describe
from rindices.presets import Correction, get_preset
from rindices.problems import Remedy, check_choice
from rindices.scoring.consensus_and_person import Scaled, Selected, consensus, fit_familiar, score_people
from rindices.scoring.intervals import Healthy, few, fit_scale, widened
from rindices.scoring.severity_and_reference import leave_one_out
from rindices.settings import AUTO, State
from rindices.training.chunks import Point
from rindices.training.execution import Execution, Memory, Progress, Store
from rindices.training.starts import maps_of_halves, power_of_uniform


@dataclass(eq=False, repr=False)
class SurrealGAN(FittedEstimator):
    """R-indices and severities of each disease pattern in each person, learned from controls and patients.

    Small networks learn, in repeated trainings, how the disease transforms a healthy brain; trainings that agree are
    averaged. Regions are adjusted for covariates and scaled by the controls, so no preprocessing is needed.

    Parameters
    ----------
    n_patterns : int, default=3
        Number of disease patterns M.
    n_repetitions : int, default=10
        Number of trainings, which differ only in their random numbers.
    preset : {"fast", "linear", "blind", "paper", "official"} or Preset, default="fast"
        All other choices; see `rindices.presets`.
    inference : {"consensus", "medoid"}, default="consensus"
        Mean of the repetitions that agree, or the one that agrees best with the others (the paper's choice).
    orthogonality : float, optional
        Weight λ of the separation of patterns; by default the preset's.
    max_steps : int, optional
        Maximum number of steps; by default the preset's. Below the preset's minimum (6,000 for ``fast``), the last step
        is used without a choice among checkpoints: use this to try things out, not to obtain results.
    latent : str, optional
        Whether severities of different patterns are assumed to be independent (``"independent"``) or their correlation
        is learned (``"correlated"``); by default the preset's choice (correlated, except for ``paper``).
    correction : Correction, optional
        Curves and interactions of covariates, division by head size, and sites; by default, all covariates have linear
        effects.
    output : {"r_indices", "severities"}, default="r_indices"
        What `transform` returns.
    random_state : int, RandomState or None, default=None
        With an int, the result is bitwise identical on the same machine.
    n_jobs : int, optional
        Number of models or groups of models trained in parallel, as in joblib; by default one per core, or as set by
        ``joblib.parallel_config``. It does not change the result.
    models_per_chunk : int, optional
        Number of models that one worker trains together; by default one on a processor, and all that fit on an
        accelerator.

    Attributes
    ----------
    r_indices_ : ndarray of shape (n_samples, n_patterns)
        R-indices of the people given to `fit`: roughly their rank among the patients, from about 0.1 as in controls to
        about 1 as in the most severe; not clipped.
    held_out_r_indices_ : ndarray of shape (n_samples, n_patterns)
        R-indices of the controls from repetitions that were not trained on them; NaN for patients.
    scale_ : SeverityScale
        Converts R-indices into severities, intervals, and centiles among held-out controls.
    familiar_ : Familiar or None
        The people that the model can produce, and how far healthy people lie from them; None for imported models and
        with fewer than 20 controls.
    spread_ : ndarray of shape (n_samples, n_patterns)
        Standard deviation over repetitions: how much trainings differ. It is not a confidence interval.
    maps_ : dict of ndarray
        The effect of each pattern on each region ``(patterns, regions)`` in the training sample, by column of
        ``patterns.csv``; empty unless a run folder was written.
    agreement_ : Agreement
        Mean agreement of all valid repetitions in the patients.
    history_ : DataFrame
        Agreement and losses at each checkpoint; `chosen` marks the one that is used.
    members_ : list of int
        Repetitions that were used, the medoid first.
    left_out_ : dict
        Repetitions that were excluded, and why.
    step_ : int
        Training step of the chosen checkpoint.
    seed_ : int
        The seed that reproduces this fit.
    preset_ : Preset
        All choices, including `orthogonality` and `max_steps`.
    correlation_ : ndarray of shape (n_patterns, n_patterns) or None
        The learned correlation of severities (of their normal scores), averaged over repetitions; None if they were
        assumed to be independent.
    verdict_ : tuple of (str or None, str)
        The verdict of `SurrealGANSearch` (``reproducible``, ``weak``, ``confounded``, ``not reproducible``, ``no
        difference`` or ``not testable``) and the reason for it; None if there was no verdict.
    n_supported_ : int or None
        The number of patterns that held-out people support; None if that is unknown.
    models_ : Parameters
        Weights of the members, with the patterns in the same order in all of them.
    preprocessing_ : Preprocessing
        Effects and scales estimated in controls.
    contract_ : Contract
        The table that new people have to fit: regions, covariates and their ranges.
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

    @unconverged_rotations()
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
            Regional measures of controls and patients. A person may lack up to a fifth of the regions (NaN); these are
            imputed from the others and the covariates, without regard to the group.
        y : array-like of shape (n_samples,)
            0 for controls, 1 for patients. With two other numbers, the lower one marks controls, with a warning.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Numbers or categories whose effects, estimated in controls, are removed as specified by `correction`.
        progress : callable, optional
            Called with a `Progress` during training.
        store : Store, optional
            Where trained models are kept until all are done; a `rindices.training.journal.Journal` survives a crash.
        """
        preset = self.preset_with(self.n_patterns, self.orthogonality)
        training = training_set(self, preset, X, y, covariates)
        execution = Execution(Memory() if store is None else store, self.n_jobs, progress, self.models_per_chunk)
        point = Point(self.n_patterns, preset.weights.orthogonality)
        swept = sweep(training.study, [point], self.n_repetitions, execution)
        return self._keep(training, swept.chosen, consensus(swept.chosen, swept.chunks, execution))

    def _keep(self, training: TrainingSet, chosen: Judged, selected: Selected) -> Self:
        """Set all fitted attributes from the models of the chosen setting."""
        study = training.study
        preset, used = study.settings.preset, chosen.best_checkpoint
        self.preset_ = replace(preset, weights=preset.weights._replace(orthogonality=chosen.point.orthogonality))
        self.seed_ = study.settings.seed
        self.contract_, self.preprocessing_ = training.contract, training.preprocessing
        self.step_, self.agreement_ = used.step, used.agreement
        self.verdict_: tuple[State | None, str] = (None, "")  # set by a search
        self.n_supported_: int | None = None
        self.members_, self.left_out_ = selected.members, selected.left_out
        self.history_ = pd.DataFrame(
            {"step": one.step, "n_models": one.n_models} | one.agreement._asdict() | one.losses
            for one in chosen.checkpoints
        ).assign(chosen=[place == chosen.best for place in range(len(chosen.checkpoints))])
        controls, composition = study.residuals[~study.patient], preset.training.composition
        models = inference.from_zero(selected.models, controls, composition)
        self.models_, order = inference.order_by_change(models, controls)
        independent = preset.training.latent == "independent"
        self.correlation_ = None if independent else selected.correlation[np.ix_(order, order)]
        self.r_indices_, self.spread_, _ = score_people(self, Scaled(study.residuals, None))
        folds = [held_out(len(controls), study.settings.seed, k, preset.schedule.folds) for k in self.members_]
        full = Healthy(leave_one_out(controls, study.leverage[~study.patient]), np.stack(folds))
        # The medoid is a single repetition, to which the spread of the others does not apply.
        n_scored = 1 if self.inference == "medoid" else len(self.members_)
        scored = jax.tree.map(lambda leaf: leaf[:n_scored], self.models_)
        healthy = Healthy(full.brains, full.held_out[:n_scored])
        self.scale_, honest, unseen = fit_scale(scored, healthy, composition, self.correlation_, study.settings.seed)
        if self.scale_.quantiles is not None and few(len(controls), int(study.patient.sum())):
            n_patterns = chosen.point.n_patterns
            halves = maps_of_halves(
                controls, study.residuals[study.patient], n_patterns, study.method(n_patterns), study.settings.seed
            )
            self.scale_ = widened(self.scale_, scored, healthy.brains, halves, study.settings.seed)
        self._controls = Controls(unseen, healthy.brains - controls, np.flatnonzero(~study.patient))
        self.familiar_ = fit_familiar(
            self.models_,
            full,
            controls,
            None if study.design is None else study.design[~study.patient],
            composition,
            self.correlation_,
            study.settings.seed,
        )
        self.maps_: dict[str, np.ndarray] = {}
        self.held_out_r_indices_ = np.full(self.r_indices_.shape, np.nan)
        self.held_out_r_indices_[~study.patient] = honest
        if self.left_out_:
            reasons = "; ".join(f"no. {member} {why}" for member, why in self.left_out_.items())
            warnings.warn(f"Excluded repetitions: {reasons}.", UserWarning, stacklevel=3)
        return self

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a safetensors file, which contains numbers and text but no code."""
        check_is_fitted(self, "models_")
        check_writable(Path(path), "path")
        given = {
            **{field.name: getattr(self, field.name) for field in fields(EstimatorParameters)},
            "preset": get_preset(self.preset),
            "random_state": self.seed_,
        }
        header = Header(
            members=tuple(self.members_),
            step=self.step_,
            seed=self.seed_,
            # Settings may be NumPy scalars.
            parameters=EstimatorParameters(
                **{name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
            ),
            contract=self.contract_,
            agreement={name: None if np.isnan(of) else of for name, of in self.agreement_._asdict().items()},  # type: ignore[misc]
            verdict=self.verdict_,
            n_supported=self.n_supported_,
            left_out=tuple(self.left_out_.items()),
            correlation=None if self.correlation_ is None else tuple(map(tuple, self.correlation_.tolist())),
            named=hasattr(self, "feature_names_in_"),
            package_version=rindices.__version__,
            preprocessing=describe(self.preprocessing_),
        )
        return write_model(path, header, self.models_, self.preprocessing_, self.scale_, self.familiar_, self.maps_)


def load_model(path: str | Path) -> SurrealGAN:
    """Read a fitted model from a file written by `SurrealGAN.save`; this never runs code.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, foreign, of another format or not finite.
    """
    header, models, preprocessing, scale, familiar, known_maps = read_model(path)
    with complete(path):
        model = SurrealGAN(**vars(header.parameters))
        networks = get_preset(model.preset).schedule.max_steps  # linear models may have an unused weight
        model.preset_ = model.preset_with(model.n_patterns, model.orthogonality if networks else None)
        agreement = {name: np.nan if value is None else value for name, value in header.agreement.items()}
        model.agreement_, model.verdict_, model.scale_ = Agreement(**agreement), header.verdict, scale
        model.n_supported_ = header.n_supported
    model.members_, model.left_out_ = list(header.members), dict(header.left_out)
    model.step_, model.seed_ = header.step, header.seed
    model.correlation_ = None if header.correlation is None else np.array(header.correlation)
    model.contract_, model.n_features_in_ = header.contract, len(header.contract.features)
    if header.named:
        model.feature_names_in_ = np.array(header.contract.features, dtype=object)
    model.models_, model.preprocessing_, model.familiar_, model.maps_ = models, preprocessing, familiar, known_maps
    return model


@dataclass(eq=False, repr=False)
class ContrastiveFactors(OfTwoGroups):
    """How patients differ from controls, as a sum of patterns: v = s · maps + healthy variation.

    This is a good method in its own right, and the baseline that networks have to beat. `SurrealGANSearch` with
    ``preset="linear"`` combines several such models of parts of the sample, with severities, intervals and a verdict;
    this is a single model of the whole sample.

    Parameters
    ----------
    n_patterns : "auto" or int, default="auto"
        Number of patterns M; by default the number that held-out people support, but at least one.
    method : {"auto", "sparse", "ica"}, default="auto"
        Patterns that affect few regions and hardly overlap, or severities that are independent and non-normal; by
        default, the one on which halves of the patients agree better.
    correction : Correction, optional
        As in `SurrealGAN`.
    random_state : int, RandomState or None, default=None
        Seed of permutations, halves and starting values.

    Attributes
    ----------
    model_ : LinearModel
        The maps, and how severities are computed from them.
    maps_ : ndarray of shape (n_patterns, n_features)
        Change of each region, in sd of controls, with one sd of severity among the patients.
    changes_ : ndarray of shape (n_patterns, n_features)
        The same at severity 1 of `SurrealGAN`: the largest change, if severities are uniform or a power of a uniform.
    n_patterns_, method_
        The number and the method that were chosen.
    spectrum_ : Spectrum or None
        The test of whether patients and controls differ; None with too few people, and `untestable_` says why.
    preprocessing_ : Preprocessing
        Effects and scales estimated in controls.
    contract_ : Contract
        The table that new people have to fit: regions, covariates and their ranges.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from rindices import ContrastiveFactors, simulate_cohort
    >>> table = simulate_cohort("basic", n_controls=100, n_patients=200, n_patterns=2, seed=0).table
    >>> regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    >>> model = ContrastiveFactors(random_state=0).fit(regions, table["diagnosis"] == "PT", table[["age", "sex"]])
    >>> model.n_patterns_, model.transform(regions, table[["age", "sex"]]).shape
    (2, (300, 2))
    """

    n_patterns: Literal["auto"] | int = "auto"
    method: Literal["auto"] | Method = "auto"
    correction: Correction | None = None
    random_state: Any = None

    @unconverged_rotations()
    def fit(self, X: Any, y: Any, covariates: Any = None) -> Self:
        """Test whether the groups differ, and find the patterns; the arguments are those of `SurrealGAN.fit`."""
        given = self.n_patterns if self.n_patterns != AUTO else 1
        check_choice(Remedy("method"), self.method, (AUTO, *METHODS))
        check_number("n_patterns", given)
        study, self.contract_, self.preprocessing_ = training_set(self, get_preset("linear"), X, y, covariates)
        self._population = Population.of(study.residuals)  # of everybody, as for missing values in training
        self.spectrum_, self.untestable_ = study.spectrum
        n_directions = self.spectrum_.found_again if self.spectrum_ is not None and self.spectrum_.differs else 0
        self.n_patterns_: int = max(n_directions, 1) if self.n_patterns == AUTO else int(given)
        study.refuse_more_than_regions(self.n_patterns_)
        self.method_: Method = study.method(self.n_patterns_) if self.method == AUTO else self.method
        model = fitted(self.method_, *study.standardised(), self.n_patterns_, study.settings.seed)
        changes = (model.mean * (1 + power_of_uniform(model.mean)))[:, None] * model.maps
        order = np.argsort(-np.abs(changes).mean(axis=1), kind="stable")  # the largest first, as in `SurrealGAN`
        self.model_, self.changes_ = model.reordered(order), changes[order]
        self.maps_ = self.model_.maps
        return self

    def transform(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return each person's severities ``(n_samples, n_patterns)``: posterior means, 0 for no disease.

        The unit is the sd of the severity among the training patients.
        """
        check_is_fitted(self, "model_")
        scaled = self.preprocessing_.transform(*self._new_people(X, covariates))
        # Two draws are symmetric about the expected values.
        return self.model_.severities((self._population.fill(scaled, 2).mean(axis=0) - 1) / SCALED_SD)

    @property
    def _n_features_out(self) -> int:
        return self.n_patterns_
