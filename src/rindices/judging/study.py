"""The people and settings of a run in the form that training and judging use, made from the input of an estimator.

Labels, covariates and seeds are brought into one form, corrections are estimated in controls, and everybody is scaled.
"""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from rindices.core import devices
from rindices.core.train import TrainingPeople
from rindices.judging.agreement_and_misfit import suited
from rindices.judging.spectrum import NotTestable, Spectrum, look
from rindices.linear import Method
from rindices.preprocessing import SCALED_SD, ControlScaler, Preprocessing, whitening_matrix
from rindices.preprocessing.covariates import (
    TOO_UNCERTAIN,
    design_of,
    leverage_of,
    numbers_of,
    rescaled_by_leverage,
    uncertainty_in_words,
    uncertainty_of_patients,
    without_effects,
)
from rindices.preprocessing.missing import fill_training
from rindices.presets import Correction, Preset
from rindices.problems import InputError, counted
from rindices.schema import MOST_LACKING, MOST_MISSING, Contract
from rindices.training.chunks import Settings

FEW_PEOPLE = 20  # in a group; with fewer, results are not reliable
_FEWEST_CONTROLS, _FEWEST_PATIENTS = 4, 2  # halves are compared, and one control has no covariance
_NOTHING_LEFT = 1e-6  # of the sd: less than this is rounding error


@dataclass(frozen=True, eq=False)
class Study:
    """People and settings of a run.

    Parameters
    ----------
    residuals : ndarray of shape (people, regions)
        Controls and patients, adjusted for covariates and scaled by the controls, as new people are.
    patient : ndarray of bool
        True for patients.
    settings : Settings
        Settings that all models share.
    design : ndarray of shape (people, columns), optional
        Design of the effects removed, see `rindices.preprocessing.covariates.design_of`; None without covariates.
    site : ndarray of shape (people,), optional
        Each person's site.
    redrawn : ndarray of shape (draws, people, regions), optional
        Residuals with other draws of missing values; repetitions take all draws in turn.
    measured : ndarray of shape (people, regions), optional
        Regions before anything was estimated in a site's controls, for the test before training; None without sites.
    """

    residuals: np.ndarray
    patient: np.ndarray
    settings: Settings
    design: np.ndarray | None = None
    site: np.ndarray | None = None
    redrawn: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    measured: np.ndarray | None = None
    _methods: dict[int, Method] = field(default_factory=dict, init=False)

    @cached_property
    def spectrum(self) -> tuple[Spectrum | None, str]:
        """The test before training, or None and the reason."""
        regions = self.residuals if self.measured is None else self.measured
        try:
            return look(regions, self.patient, self.design, self.site, self.settings.seed), ""
        except NotTestable as error:
            return None, str(error)

    def method(self, n_patterns: int) -> Method:
        """Return the method by which linear models with `n_patterns` find them best in these people."""
        self.refuse_more_than_regions(n_patterns)
        if n_patterns not in self._methods:
            self._methods[n_patterns] = (
                suited(*self.standardised(), n_patterns, self.settings.seed)[0]
                if n_patterns > 1  # otherwise there is nothing to rotate
                else "sparse"
            )
        return self._methods[n_patterns]

    def refuse_more_than_regions(self, n_patterns: int) -> None:
        """Refuse more patterns than there are regions."""
        n_regions = self.residuals.shape[1]
        if n_patterns > n_regions:
            raise ValueError(
                f"{n_patterns} patterns cannot be distinguished in so few regions (n_features={n_regions})."
            )

    def standardised(self, cohort: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return controls and patients in sd of the controls: cohort 0 is the data, the others have no disease.

        Residuals are permuted among the people, who keep their group and covariates. Then everything estimated in
        controls is estimated and removed again (Freedman and Lane, 1983): in such a cohort, the groups differ only by
        chance and by the error that removing covariates makes in patients.
        """
        scaled = self._permuted(cohort) if cohort else self.trained_on
        return (scaled[~self.patient] - 1) / SCALED_SD, (scaled[self.patient] - 1) / SCALED_SD

    @cached_property
    def leverage(self) -> np.ndarray:
        """Each person's leverage in the effects estimated in controls."""
        return (
            np.full(len(self.patient), 1 / (~self.patient).sum())
            if self.design is None
            else leverage_of(self.design, self.patient)
        )

    @cached_property
    def trained_on(self) -> np.ndarray:
        """Residuals of equal variance, whether or not effects were estimated in that person."""
        return self._of_one_variance(self.residuals)

    def _of_one_variance(self, residuals: np.ndarray) -> np.ndarray:
        if self.design is None:
            return residuals
        even = rescaled_by_leverage(residuals, self.leverage, self.patient)
        return ControlScaler.fit(even[~self.patient]).transform(even)

    def people(self, repetition: int = 0) -> TrainingPeople:
        """Return what a repetition learns from: all have the same people, but their own draws of missing regions."""
        draw = repetition % (len(self.redrawn) + 1)
        people = self._grouped(self._of_one_variance(self.redrawn[draw - 1])) if draw else self._data
        return people._replace(methods=dict(self._methods))

    def _permuted(self, cohort: int) -> np.ndarray:
        scaled = np.random.default_rng([self.settings.seed, cohort]).permutation(self.trained_on)
        scaled = scaled if self.design is None else without_effects(scaled, self.design, self.patient)
        return self._of_one_variance(ControlScaler.fit(scaled[~self.patient]).transform(scaled))

    @cached_property
    def _data(self) -> TrainingPeople:
        return self._grouped(self.trained_on)

    def _grouped(self, scaled: np.ndarray) -> TrainingPeople:
        controls, schedule = scaled[~self.patient], self.settings.preset.schedule
        return TrainingPeople(controls, scaled[self.patient], whitening_matrix(controls, schedule.whitening))


class TrainingSet(NamedTuple):
    """A table prepared for training."""

    study: Study
    contract: Contract
    preprocessing: Preprocessing


class Learner(Protocol):
    """A scikit-learn estimator with a correction and a random state."""

    correction: Correction | None
    random_state: Any


def training_set(learner: Learner, preset: Preset, X: Any, y: Any, covariates: Any = None) -> TrainingSet:
    """Check the arguments of `fit`, estimate corrections in controls, and scale everybody.

    Parameters
    ----------
    learner
        The estimator to fit; the number of regions and their names are stored in it.
    preset
        All other choices.
    X, y, covariates
        As in `rindices.SurrealGAN.fit`.
    """
    correction = learner.correction
    index = X.index if isinstance(X, pd.DataFrame) else None
    _check_order(index, y, "y")
    X, y = validate_data(learner, X, y, dtype=np.float64, ensure_min_samples=2, ensure_all_finite="allow-nan")
    patient, seed = is_patient(y), seed_from(learner.random_state)
    check_gaps(X, training=True)
    table = covariate_table(covariates, len(X), index)
    regions = [str(name) for name in getattr(learner, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])]
    check_roles(regions, [*([] if table is None else table), Contract.id_column, Contract.diagnosis_column])
    contract = Contract.of_people(pd.DataFrame(X, columns=regions), table)
    drawn = fill_training(X, table, correction, seed)  # several draws of missing values, or the table
    X = drawn[0].copy()
    check_groups(X[~patient], int(patient.sum()), regions)
    preprocessing = Preprocessing.fit(X[~patient], None if table is None else table[~patient], correction)
    check_residuals(X[~patient].std(axis=0), preprocessing.scaler.sd, regions)
    devices.prepare()
    design = None if table is None else design_of(table, patient, correction)
    sites, measured = None, None
    if preprocessing.harmonizer is not None and table is not None:
        sites, measured = pd.factorize(table[preprocessing.harmonizer.name])[0], preprocessing.sized(X, table)
    for draw in drawn:  # in place: ten draws of a large table take much memory
        draw[:] = preprocessing.transform(draw, table)
    study = Study(drawn[0], patient, Settings(preset, seed), design, sites, drawn[1:], measured)
    uncertainty = 1.0 if design is None else uncertainty_of_patients(design, patient)
    if uncertainty > TOO_UNCERTAIN:
        warnings.warn(uncertainty_in_words(uncertainty), UserWarning, stacklevel=3)
    return TrainingSet(study, contract, preprocessing)


def is_patient(y: np.ndarray) -> np.ndarray:
    """Return True for patients: 1 if controls are 0; of two other numbers, the higher one, with a warning."""
    y = pd.Series(y).infer_objects().to_numpy()  # 0 and 1 may come as objects
    labels = pd.unique(y)
    if len(labels) != 2 or labels.dtype.kind not in "biuf":
        classes = ", ".join(map(repr, labels[:5].tolist())) + (", ..." if len(labels) > 5 else "")
        raise InputError(
            f"y should contain 0 for controls and 1 for patients, but has {counted(len(labels), 'class', 'classes')}: "
            f"{classes}. Use a True/False column such as diagnosis == 'AD'."
        )
    low, high = sorted(labels.tolist())
    if (low, high) != (0, 1):
        warnings.warn(
            f"y contains {low} and {high}, not 0 and 1: treating {low} as controls and {high} as patients.",
            UserWarning,
            stacklevel=3,
        )
    return y == high


def covariate_table(covariates: Any, n_people: int, index: pd.Index | None = None) -> pd.DataFrame | None:
    """Return covariates as a table with text names; None if there are none."""
    if covariates is None:
        return None
    if isinstance(covariates, Mapping):
        raise InputError("covariates should be a table, but got a dictionary: use pandas.DataFrame(covariates).")
    _check_order(index, covariates, "covariates")
    table: Any = covariates.to_frame() if isinstance(covariates, pd.Series) else covariates
    if hasattr(table, "to_pandas"):  # a pyarrow or polars table, as X may be, too
        table = table.to_pandas()
    elif not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(table).add_prefix("covariate")
    if len(table) != n_people:
        raise InputError(f"covariates should have as many rows as X ({n_people}), but have {len(table)}.")
    if table.shape[1] == 0:
        return None
    missing = table.isna().to_numpy()
    if missing.any():
        row, column = (int(place[0]) for place in np.nonzero(missing))
        raise InputError(f"Covariate {table.columns[column]!r} is missing in row {row}: fill it in, or drop the row.")
    table = table.rename(columns=str).reset_index(drop=True).infer_objects()  # numbers may come as objects
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise InputError(f"Covariate {twice[0]!r} is listed twice; each covariate needs a unique name.")
    number = [name for name in table if is_numeric_dtype(table[name]) and not is_bool_dtype(table[name])]
    # Booleans stay objects: the categories False and True of a file, or 0 and 1 where a model expects numbers.
    return table.astype(object).assign(**{name: numbers_of(table, name) for name in number})


def _check_order(index: pd.Index | None, other: Any, name: str) -> None:
    """Refuse a table with the rows of X in another order: its values would be assigned to the wrong people."""
    if index is None or not isinstance(other, pd.Series | pd.DataFrame) or index.equals(other.index):
        return
    if set(other.index) == set(index):
        raise InputError(f"The rows of {name} and X are in different orders: sort both the same way.")


def seed_from(random_state: Any) -> int:
    """Return a seed that reproduces the fit; a fresh one for None."""
    return int(
        random_state
        if isinstance(random_state, int | np.integer)
        else check_random_state(random_state).randint(2**31 - 1)
    )


def check_roles(regions: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a name with two roles: new people could not be matched to the model by it."""
    twice = [name for name, number in Counter([*regions, *others]).items() if number > 1]
    if twice:
        raise InputError(
            f"The name {twice[0]!r} is used more than once among regions, covariates, participant_id and diagnosis: "
            "each column can have only one role."
        )


def check_residuals(before: np.ndarray, after: np.ndarray, names: list[str]) -> None:
    """Refuse regions that covariates explain completely, given the sd of controls before and after adjustment."""
    gone = np.flatnonzero(after < _NOTHING_LEFT * before)
    if len(gone):
        raise InputError(
            f"The covariates completely explain region {names[gone[0]]!r} in controls "
            f"({counted(len(gone), 'region')} affected): omit such regions or a covariate, or add controls."
        )


def check_gaps(X: np.ndarray, *, unfilled: str = "", training: bool = False) -> None:
    """Refuse people with too many missing regions, or with any if `unfilled` gives a reason not to impute them.

    In `training`, regions that are missing in too many people are refused, too.
    """
    gaps = np.isnan(X)
    if unfilled and gaps.any():
        row = int(np.argwhere(gaps)[0, 0])
        raise InputError(f"X has missing values (NaN), the first in row {row}, but {unfilled}. Drop these rows.")
    limits = [(1, MOST_MISSING, "row", "Drop the row")]
    limits += [(0, MOST_LACKING, "column", "Omit the column")] if training else []
    for axis, most, what, remedy in limits:
        share = gaps.mean(axis=axis)
        if (share > most).any():
            place = int(np.flatnonzero(share > most)[0])
            gap = f"{100 * share[place]:.0f} % of the values in {what} {place} of X are missing (NaN)"
            raise InputError(f"{gap}, but at most {100 * most:.0f} % can be imputed. {remedy}.")


def check_groups(controls: np.ndarray, n_patients: int, names: list[str]) -> None:
    """Refuse groups that cannot be learned from, and warn about small ones."""
    if len(controls) < _FEWEST_CONTROLS or n_patients < _FEWEST_PATIENTS:
        raise InputError(
            f"Too few people to compare: {counted(len(controls), 'control')} and {counted(n_patients, 'patient')}. "
            f"Provide at least {_FEWEST_CONTROLS} controls and {_FEWEST_PATIENTS} patients, preferably hundreds of "
            "each."
        )
    constant = np.flatnonzero(np.ptp(controls, axis=0) == 0)
    if len(constant):
        raise InputError(
            f"Region {names[constant[0]]!r} has the same value in all {len(controls)} controls "
            f"({counted(len(constant), 'region')} affected): omit any such region."
        )
    if min(len(controls), n_patients) < FEW_PEOPLE:
        warnings.warn(
            f"Only {len(controls)} controls and {n_patients} patients: with fewer than {FEW_PEOPLE} per group, "
            "R-indices are not reliable.",
            UserWarning,
            stacklevel=3,
        )
