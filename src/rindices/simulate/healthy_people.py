"""The healthy people in a simulated cohort: drawn from the embedded population, or the user's own.

The population is described by one small parameter file. Volumes follow linear effects of age, squared age and sex; the
residuals keep each region's own distribution (quantiles) and the correlation between regions (Gaussian copula). No
drawn person is a real person.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import ndtr

from rindices.problems import InputError, Remedy, shown

_OWN = Remedy("controls")
N_CONTROLS, N_PATIENTS = 492, 900  # as in the paper
PLAIN = ("age_mean", "age_square_mean", "share_of_sex_1")
ARRAYS = ("probabilities", "age_quantiles", "smallest", "effects", "residual_quantiles")
_MOST_PEOPLE = 1_000_000  # per group: no cohort is larger, and a typing error could fill the memory
NOT_REGIONS = frozenset({"participant_id", "diagnosis", "age", "sex", "site", "icv", "tiv", "education"})


@dataclass(frozen=True, eq=False)
class ReferencePopulation:
    """Parameters of a healthy population, and draws from it.

    Attributes
    ----------
    age_mean, age_square_mean, share_of_sex_1 : float
        Means of age, of squared centred age and of sex (0/1); the effects refer to deviations from them.
    probabilities : ndarray of shape (n_probabilities,)
        Levels of the quantiles, from 0 to 1: the ends are the observed smallest and largest values.
    age_quantiles : ndarray of shape (n_probabilities,)
        Quantiles of age in years.
    regions : tuple of str
        Names of the regions.
    smallest : ndarray of shape (n_regions,)
        Smallest observed volumes; no draw goes below half of them, so that volumes stay above zero.
    effects : ndarray of shape (n_regions, 4)
        Mean volume, and its change per year, per squared year, and for sex 1 compared with sex 0.
    residual_quantiles : ndarray of shape (n_regions, n_probabilities)
        Quantiles of what age and sex leave unexplained.
    correlation : ndarray of shape (n_regions, n_regions)
        Correlation of the residuals' normal scores.

    Examples
    --------
    >>> import numpy as np
    >>> people = ReferencePopulation.load().draw(100, np.random.default_rng(0))
    >>> people.shape
    (100, 130)
    """

    age_mean: float
    age_square_mean: float
    share_of_sex_1: float
    probabilities: np.ndarray
    age_quantiles: np.ndarray
    regions: tuple[str, ...]
    smallest: np.ndarray
    effects: np.ndarray
    residual_quantiles: np.ndarray
    correlation: np.ndarray

    @classmethod
    @cache
    def load(cls) -> Self:
        """Read the parameter file that comes with the package (once per process)."""
        stored = json.loads(Path(__file__).with_name("reference_population.json").read_text(encoding="utf-8"))
        regions = tuple(stored["regions"])
        upper = np.zeros((len(regions), len(regions)))
        upper[np.triu_indices(len(regions), 1)] = np.concatenate(stored["correlation_upper"])
        arrays: Any = {name: np.array(stored[name], dtype=float) for name in ARRAYS}
        arrays["correlation"] = upper + upper.T + np.eye(len(regions))
        for array in arrays.values():
            array.setflags(write=False)  # all draws of a process share them
        return cls(**{name: stored[name] for name in PLAIN}, **arrays, regions=regions)

    def draw(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw new people.

        Parameters
        ----------
        n : int
            Number of people, at least 1.
        rng : numpy.random.Generator
            Source of randomness; the same state gives the same people.

        Returns
        -------
        DataFrame of shape (n, 2 + n_regions)
            ``age`` in years (two decimals), ``sex`` (0/1), then the volume of each region, all above zero.
        """
        age = np.interp(rng.random(n), self.probabilities, self.age_quantiles).round(2)
        sex = (rng.random(n) < self.share_of_sex_1).astype(int)
        volumes = self._expected(age, sex) + self._residuals(n, rng)
        return self._with_volumes(pd.DataFrame({"age": age, "sex": sex}), volumes)

    def aged(self, people: pd.DataFrame, years: float) -> pd.DataFrame:
        """Return people of the population `years` later, aged by its cross-sectional effects of age."""
        age, sex = (people[name].to_numpy(float) for name in ("age", "sex"))
        later = age + years
        volumes = people[list(self.regions)].to_numpy() + self._expected(later, sex) - self._expected(age, sex)
        return self._with_volumes(people[["age", "sex"]].assign(age=later.round(2)), volumes)

    def _with_volumes(self, people: pd.DataFrame, volumes: np.ndarray) -> pd.DataFrame:
        """Return age and sex with volumes, none of them below half of the smallest observed one."""
        return people.join(pd.DataFrame(np.maximum(volumes, self.smallest / 2), people.index, list(self.regions)))

    def scan_noise(self, n: int, share: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the noise of `n` scans; its sd is a `share` of that between people of the same age and sex.

        Half of its variance is correlated between regions as their volumes are, half is specific to each region.
        """
        own, common = rng.standard_normal((2, n, len(self.regions)))
        low, high = (
            np.array([np.interp(level, self.probabilities, of) for of in self.residual_quantiles])
            for level in ndtr([-1.0, 1.0])
        )
        correlated = common @ np.linalg.cholesky(self.correlation).T
        return share * (high - low) / 2 * np.sqrt(0.5) * (own + correlated)

    def _expected(self, age: np.ndarray, sex: np.ndarray) -> np.ndarray:
        years = age - self.age_mean
        terms = [np.ones(len(age)), years, years**2 - self.age_square_mean, sex - self.share_of_sex_1]
        return np.column_stack(terms) @ self.effects.T

    def _residuals(self, n: int, rng: np.random.Generator) -> np.ndarray:
        scores = rng.standard_normal((n, len(self.regions))) @ np.linalg.cholesky(self.correlation).T
        # Interpolation between quantiles, with the observed extremes at 0 and 1, yields no value beyond them.
        parts = zip(ndtr(scores).T, self.residual_quantiles, strict=True)
        return np.column_stack([np.interp(level, self.probabilities, quantiles) for level, quantiles in parts])


class HealthyPeople(NamedTuple):
    """People before any disease is added, in random order.

    Attributes
    ----------
    table : DataFrame
        Covariates and regions, one row per person; the index is that of the given table.
    regions : list of str
        Region columns of ``table``.
    n_controls : int
        Number of rows, from the first, that stay controls; the others become patients.
    """

    table: pd.DataFrame
    regions: list[str]
    n_controls: int


def check_between(name: str, value: Any, least: float, most: float) -> None:
    """Refuse a setting outside its range, or a fraction where the limits are integers."""
    kind, what = (Integral, "an integer") if isinstance(least, int) else (Real, "a number")
    if not isinstance(value, kind) or not least <= float(value) <= most:
        low, high, given = (f"{one:,}" if isinstance(one, Integral) else shown(one) for one in (least, most, value))
        raise InputError(
            "Expected ",
            Remedy(name),
            f" to be {what} between {low} and {high}, but got {given}. Choose a number in this range.",
        )


def drawn_people(n_controls: int | None, n_patients: int | None, rng: np.random.Generator) -> HealthyPeople:
    """Draw people from the embedded population.

    Examples
    --------
    >>> drawn_people(10, 20, np.random.default_rng(0)).table.shape
    (30, 130)
    """
    n_controls = N_CONTROLS if n_controls is None else n_controls
    n_patients = N_PATIENTS if n_patients is None else n_patients
    check_between("n_controls", n_controls, 1, _MOST_PEOPLE)
    check_between("n_patients", n_patients, 1, _MOST_PEOPLE)
    population = ReferencePopulation.load()
    return HealthyPeople(population.draw(n_controls + n_patients, rng), list(population.regions), n_controls)


def own_people(
    controls: pd.DataFrame,
    regions: Sequence[str] | None,
    n_controls: int | None,
    n_patients: int | None,
    rng: np.random.Generator,
) -> HealthyPeople:
    """Choose people at random from the user's table of controls, without replacement.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [50, 60, 70], "Hip": [3.1, 3.0, 2.9]})
    >>> people = own_people(table, None, None, None, np.random.default_rng(0))
    >>> people.regions, people.n_controls
    (['Hip'], 1)
    """
    names = _region_columns(controls, regions)
    _check_people(controls)
    _check_volumes(controls[names])
    n_controls, n_patients = _split_sizes(len(controls), n_controls, n_patients)
    return HealthyPeople(controls.iloc[rng.permutation(len(controls))[: n_controls + n_patients]], names, n_controls)


def _region_columns(controls: pd.DataFrame, regions: Sequence[str] | None) -> list[str]:
    repeated = controls.columns[controls.columns.duplicated()].tolist()
    if repeated:
        raise InputError(
            "Column names in ", _OWN, f" should be unique, but these are repeated: {repeated}. Rename or remove them."
        )
    numeric = list(controls.select_dtypes("number").columns)
    if regions is None:
        return [name for name in numeric if str(name).lower() not in NOT_REGIONS]
    unfit = [name for name in regions if name not in numeric]
    if unfit:
        raise InputError(
            "`regions` should name numeric columns of ", _OWN, f", but these are not: {unfit}. Remove them."
        )
    return list(dict.fromkeys(regions))


def _check_people(controls: pd.DataFrame) -> None:
    ids = controls.get("participant_id", pd.Series(dtype=str))
    bad = ids[ids.isna() | ids.duplicated()].tolist()
    if bad:
        cells = list(dict.fromkeys("an empty cell" if pd.isna(one) else repr(one) for one in bad))[:5]
        raise InputError(
            "Expected one row per person in ",
            _OWN,
            f", but some values of participant_id are missing or repeated: {', '.join(cells)}. "
            "Keep one row per person, or remove the column to have people numbered automatically.",
        )
    labels = controls.get("diagnosis", pd.Series(dtype=str)).value_counts()
    if len(labels) > 1:
        said = ", ".join(f"{label} ({number})" for label, number in labels[:5].items())
        raise InputError(
            "Expected only healthy people in ",
            _OWN,
            f", but column 'diagnosis' has {len(labels)} labels: {said}. Keep only the controls.",
        )


def _check_volumes(volumes: pd.DataFrame) -> None:
    # Atrophy removes a share of the volume, which would be meaningless in scaled values such as z-scores. A volume of
    # zero stays zero, and a missing one stays missing; both are left to the user's own analysis.
    values = volumes.to_numpy(dtype=float, na_value=np.nan)
    wrong = (values < 0) | np.isinf(values)
    if wrong.any():
        raise InputError(
            "Volumes in ",
            _OWN,
            f" should be finite and not negative, but found {first_of(volumes, wrong)}. Use raw rather than scaled "
            "volumes, correct such values or remove their rows, and remove any columns that are not regions.",
        )


def numbers_in(table: pd.DataFrame) -> np.ndarray:
    """Return the cells as numbers, with NaN for any that are not numbers.

    Examples
    --------
    >>> numbers_in(pd.DataFrame({"age": ["61", "old"]})).tolist()
    [[61.0], [nan]]
    """
    return table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def first_of(table: pd.DataFrame, wrong: np.ndarray) -> str:
    """Describe the first wrong cell and its position, with rows counted as in a file with a header.

    Examples
    --------
    >>> first_of(pd.DataFrame({"age": [61, -5]}), np.array([[False], [True]]))
    "-5 in column 'age', row 3"
    """
    row, column = np.argwhere(wrong)[0]
    cell, line = str(table.iat[row, column]), table.index[row]
    return (
        f"{'an empty cell' if cell == 'nan' else cell} in column {table.columns[column]!r}, "
        f"row {line + 2 if isinstance(line, int | np.integer) else line}"
    )


def _split_sizes(n_rows: int, n_controls: int | None, n_patients: int | None) -> tuple[int, int]:
    if n_controls is None:
        n_controls = n_rows // 3 if n_patients is None else n_rows - n_patients
    if n_patients is None:
        n_patients = n_rows - n_controls
    if n_controls + n_patients > n_rows or min(n_controls, n_patients) < 1:
        raise InputError(
            f"Expected at least 1 control and 1 patient, and at most {n_rows:,} people in total (the number of "
            "rows in ",
            _OWN,
            f"), but got {n_controls:,} controls and {n_patients:,} patients. Request fewer people, or provide a "
            "table with more people.",
        )
    return n_controls, n_patients
