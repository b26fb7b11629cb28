"""`ContrastiveFactors`: the linear model alone, as a scikit-learn estimator; seconds, and no networks."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from rindices.estimator import SurrealGAN
from rindices.fitted_model import OfTwoGroups
from rindices.judging.spectrum import NotTestable, Spectrum
from rindices.linear.halves import METHODS, Method, fitted
from rindices.model.estimator_inputs import covariate_table
from rindices.preprocessing import SCALED_SD
from rindices.presets import Correction
from rindices.settings import AUTO
from rindices.training.starts import power_of_uniform


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

    def fit(self, X: Any, y: Any, covariates: Any = None) -> Self:
        """Test whether the groups differ, and find the patterns; the arguments are those of `SurrealGAN.fit`."""
        given = self.n_patterns if self.n_patterns != AUTO else 1
        if self.method not in (AUTO, *METHODS):
            raise ValueError(f"method should be 'auto', 'sparse' or 'ica', found {self.method!r}.")
        shell = SurrealGAN(given, preset="linear", correction=self.correction, random_state=self.random_state)
        training = shell._training_set(X, y, covariates)
        study = training.study
        self.spectrum_: Spectrum | None = None
        self.untestable_ = ""
        try:
            self.spectrum_ = study.spectrum
        except NotTestable as error:
            self.untestable_ = str(error)
        n_directions = self.spectrum_.found_again if self.spectrum_ is not None and self.spectrum_.differs else 0
        self.n_patterns_: int = max(n_directions, 1) if self.n_patterns == AUTO else int(given)
        if self.n_patterns_ > (n_regions := study.residuals.shape[1]):
            raise ValueError(
                f"{self.n_patterns_} patterns cannot be distinguished in few regions: n_features={n_regions}."
            )
        self.method_: Method = study.method(self.n_patterns_) if self.method == AUTO else self.method
        self.model_ = fitted(self.method_, *study.standardised(), self.n_patterns_, study.settings.seed)
        self.maps_ = self.model_.maps
        mean = self.model_.mean
        self.changes_ = (mean * (1 + power_of_uniform(mean)))[:, None] * self.maps_
        self.preprocessing_, self.n_features_in_ = training.preprocessing, shell.n_features_in_
        if hasattr(shell, "feature_names_in_"):
            self.feature_names_in_ = shell.feature_names_in_
        return self

    def transform(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return each person's severities ``(n_samples, n_patterns)``: posterior means, 0 for no disease.

        The unit is the sd of the severity among the training patients.
        """
        check_is_fitted(self, "model_")
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = self.preprocessing_.transform(X, covariate_table(covariates, len(X), index))
        return self.model_.severities((scaled - 1) / SCALED_SD)

    @property
    def _n_features_out(self) -> int:
        return self.n_patterns_
