"""How many patterns, and is there anything to find? `SurrealGANSearch`, in the manner of scikit-learn's searches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rindices.estimator import SurrealGAN
from rindices.fitted_model import RIndexEstimator
from rindices.judging.selection import basis_of, explain, sweep
from rindices.judging.study import Study, training_set
from rindices.judging.verdict_and_separation import Verdict, judged, not_testable, supported
from rindices.linear import unconverged_rotations
from rindices.presets import get_preset
from rindices.scoring.consensus_and_person import consensus
from rindices.settings import AUTO, SearchSettings
from rindices.training.chunks import Point
from rindices.training.execution import Execution, Memory, Progress, Store

_COLLAPSED = (
    "Training failed: in every repetition, an R-index collapsed to nearly the same value in all patients. Do not use "
    "these R-indices. Request fewer patterns, or provide more regions; with few regions, training rarely succeeds."
)


@dataclass(eq=False, repr=False)
class SurrealGANSearch(RIndexEstimator):
    """Estimate the number of patterns, train, and judge whether there is anything to find.

    Before training, the number of patterns is estimated as the number of directions in which patients vary more than
    controls, also in held-out people. From random weights (preset ``blind`` or ``paper``), or with `exhaustive`, all
    numbers are trained, and the smallest whose synthesised patients fit and whose repetitions agree is chosen.

    Parameters
    ----------
    n_patterns : "auto", int or sequence of int, default="auto"
        Number of patterns M; of several, the one nearest to the estimate.
    orthogonality : float, sequence of float or None, default=None
        Weights λ of the separation of patterns to try; by default that of the preset.
    n_repetitions : int, default=10
        Number of trainings per setting, which differ only in their random numbers.
    exhaustive : bool, default=False
        Train all repetitions of all settings.
    preset, inference, max_steps, latent, correction, random_state, n_jobs, models_per_chunk
        As in `SurrealGAN`.

    Attributes
    ----------
    best_estimator_ : SurrealGAN
        The fitted estimator with the chosen setting.
    best_params_ : dict
        Its ``n_patterns`` and ``orthogonality``.
    best_score_ : float
        Pattern agreement of its repetitions.
    results_ : DataFrame
        One row per setting at its best checkpoint: agreement by three indices with 95 % jackknife intervals over
        models, and the misfit, the squared distance of the covariances of synthesised and real patients.
    history_ : DataFrame
        The same at every checkpoint.
    spectrum_ : Spectrum or None
        The test before training; None with too few people.
    verdict_ : Verdict
        Whether there is anything to find, and why.
    basis_ : str
        How the number of patterns was determined: ``given``; ``counted`` before training; by ``fit`` and agreement of
        several numbers; or ``unsupported``.
    reason_ : str
        Why this setting was chosen.
    models_trained_, models_exhaustive_ : int
        Numbers of models that were trained, and that an exhaustive search would have trained.
    models_per_chunk_ : int
        Number of models that were trained together.

    Examples
    --------
    >>> from rindices import SurrealGANSearch, simulate_cohort
    >>> table = simulate_cohort("basic", n_controls=100, n_patients=200, n_patterns=2, seed=0).table
    >>> regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    >>> search = SurrealGANSearch(n_repetitions=2, preset="linear", random_state=0)
    >>> search.fit(regions, table["diagnosis"] == "PT").best_params_["n_patterns"]
    2
    """

    n_patterns: Literal["auto"] | int | Sequence[int] = SearchSettings.n_patterns
    orthogonality: float | Sequence[float] | None = None
    exhaustive: bool = field(default=SearchSettings.exhaustive, kw_only=True)

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
        """Test the table, train, choose and judge; the arguments are those of `SurrealGAN.fit`."""
        points = self._points()  # first, because this checks the settings
        best = SurrealGAN(**{shared.name: getattr(self, shared.name) for shared in fields(RIndexEstimator)})
        tell = progress or (lambda _: None)
        tell(Progress("Preparing the regions"))
        training = training_set(best, self.preset_with(*points[0]), X, y, covariates)
        study = training.study
        tell(Progress("Comparing patients and controls"))
        self.spectrum_, untestable = study.spectrum
        points = self._promising(points, study)
        execution = Execution(Memory() if store is None else store, self.n_jobs, progress, self.models_per_chunk)
        swept = sweep(
            study,
            points,
            self.n_repetitions,
            execution,
            usual=get_preset(self.preset).weights.orthogonality,
            exhaustive=self.exhaustive,
        )
        self.best_params_ = swept.chosen.point._asdict()
        best.set_params(**self.best_params_)
        tell(Progress("Combining the repetitions"))
        self.best_estimator_ = best._keep(training, swept.chosen, consensus(swept.chosen, swept.chunks, execution))
        self.best_score_ = swept.chosen.value
        self.history_ = swept.table()
        self.results_ = self.history_[self.history_["best"]].drop(columns="best").reset_index(drop=True)
        self.results_.insert(3, "n_repetitions", [one.n_repetitions for one in swept.judged])
        self.basis_ = basis_of(swept, self.n_patterns, self.spectrum_)
        tell(Progress("Testing whether the patterns replicate in other people"))
        self.reason_ = explain(swept, self.basis_, self.n_patterns, self.spectrum_)
        self.verdict_: Verdict = (
            not_testable(untestable)
            if self.spectrum_ is None
            else judged(self.spectrum_, study, best.r_indices_[study.patient], swept.chosen.value)
        )
        if swept.chosen.best_checkpoint.n_models == 0 and self.verdict_.evidence.with_linear is not None:
            self.verdict_ = replace(self.verdict_, state="not reproducible", message=_COLLAPSED)
        best.verdict_ = self.verdict_.state, str(self.verdict_.message)
        if self.verdict_.evidence.found_again is not None:
            best.n_supported_ = supported(best.n_patterns, self.verdict_.evidence)
        self.models_trained_, self.models_per_chunk_ = swept.models_trained, execution.models_per_chunk
        self.models_exhaustive_ = swept.models_exhaustive
        return self

    def _points(self) -> list[Point]:
        """Return all settings that are requested, with one pattern if their number is to be estimated."""
        if isinstance(self.n_patterns, str) and self.n_patterns != AUTO:
            raise ValueError(
                f"n_patterns should be {AUTO!r}, a number or a list of numbers, but got {self.n_patterns!r}."
            )
        numbers = [1] if isinstance(self.n_patterns, str) else _several(self.n_patterns)
        weights = _several(self.orthogonality)
        if not numbers or not weights:
            raise ValueError("n_patterns and orthogonality should each have at least one value.")
        return [
            Point(int(number), float(self.preset_with(number, weight).weights.orthogonality))
            for number in numbers
            for weight in weights
        ]

    def _promising(self, points: list[Point], study: Study) -> list[Point]:
        """Return the settings to train: those that the test before training suggests, unless all were requested."""
        spectrum, asked = self.spectrum_, {point.n_patterns for point in points}
        n_directions = spectrum.found_again if spectrum is not None and spectrum.differs else 0
        if isinstance(self.n_patterns, str):
            numbers = [n_directions] if n_directions else [1, 2][: study.residuals.shape[1]]
            return [point._replace(n_patterns=number) for number in numbers for point in points]
        if len(asked) == 1 or study.settings.preset.training.start == "random" or self.exhaustive:
            return points
        nearest = min(asked, key=lambda number: (abs(number - n_directions), number))
        return [point for point in points if point.n_patterns == nearest]

    def transform(self, X: Any, covariates: Any = None) -> Any:
        """Return the R-indices of people from the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.transform(X, covariates)

    def save(self, path: str | Path) -> Path:
        """Write the best estimator to one safetensors file, as `SurrealGAN.save`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.save(path)

    @property
    def n_features_in_(self) -> int:
        """Number of regions."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the regions, if any."""
        return self.best_estimator_.feature_names_in_

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names r1, r2, ... of the R-indices."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.get_feature_names_out(input_features)


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Sequence | np.ndarray | range) else [values]
