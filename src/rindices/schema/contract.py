"""What a fitted model expects of a table; checked wherever a contract is made, and when it is read from a file."""

from __future__ import annotations

from statistics import NormalDist
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ConfigDict, ValidationError, model_validator
from pydantic.dataclasses import dataclass

# For all that is read from a file: kinds are as annotated, truth values are no numbers, nothing is unknown or infinite.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
# Share of a covariate's range that may be exceeded: with 80 people a sixteenth lies beyond each of its two quantiles,
# who should not be flagged themselves.
_COVARIATE_MARGIN = 0.2
# A model keeps quantiles of regions, rounded: a smallest value would be that of one person. At least five people lie
# beyond each. A new person is flagged beyond what a normal distribution through them has at four sd; in halves of two
# real cohorts that flags fewer than the ranges of before did (experiments/region_ranges.py).
QUANTILE, _FEWEST_BEYOND, _DIGITS, _FLAGGED_SD = 0.01, 5, 3, 4.0
STATISTICS = ("feature_minimum", "feature_median", "feature_maximum")


def first_problem(error: ValidationError) -> str:
    """Say in one line what is wrong first: the way to the entry, and why it is refused."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


@dataclass(frozen=True, config=STRICT)
class CovariateSpec:
    """What a model expects of one covariate: categories or a range.

    Attributes
    ----------
    name
        Name of the column.
    categories
        The categories seen in training; None for a number.
    minimum, maximum
        Range of a number in training: two quantiles, rounded; None for categories.
    quantile
        Share of the training people below the first and above the last; None for categories and codes, and in imported
        models, in which they are the smallest and the largest value.
    codes
        The two values of a number that had only two in training (sex as 0 and 1); otherwise None.

    Examples
    --------
    >>> CovariateSpec.from_values("sex", np.array([0.0, 1.0, 1.0]))
    CovariateSpec(name='sex', categories=None, minimum=0.0, maximum=1.0, codes=(0.0, 1.0), quantile=None)
    >>> CovariateSpec.from_values("age", np.linspace(50, 90, 401), 0.025).limits
    (43.4, 96.6)
    """

    name: str
    categories: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    codes: tuple[float, float] | None = None
    quantile: float | None = None

    @classmethod
    def from_values(cls, name: str, values: NDArray, quantile: float = 0.0) -> CovariateSpec:
        """Describe the values of a covariate in training, so many of which lie beyond each end of its range."""
        if values.dtype.kind != "f":
            return cls(name, categories=tuple(sorted(set(map(str, values)))))
        different = np.unique(values).tolist()
        low, high = different[0], different[-1]
        if len(different) <= 2 or not quantile:
            return cls(name, minimum=low, maximum=high, codes=(low, high) if len(different) == 2 else None)
        # The nearest values, so that whole numbers stay whole; whoever is not above 0 shows that 0 is possible.
        found = np.quantile(values, [quantile, 1 - quantile], method="nearest")
        least, most = (float(f"{end:.{_DIGITS}g}") for end in found)
        return cls(name, minimum=min(least, 0.0) if low <= 0 else least, maximum=most, quantile=quantile)

    @property
    def limits(self) -> tuple[float, float] | None:
        """Values beyond which new people are flagged; None for categories."""
        if self.minimum is None or self.maximum is None:
            return None
        margin = _COVARIATE_MARGIN * (self.maximum - self.minimum) if self.quantile else 0.0
        return self.minimum - margin, self.maximum + margin

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.categories is not None:
            if not self.categories or len(set(self.categories)) != len(self.categories):
                raise ValueError(f"the categories of {self.name!r} should be different, at least one")
        elif self.minimum is None or self.maximum is None or self.minimum > self.maximum:
            raise ValueError(f"{self.name!r} should have categories, or a range that begins before it ends")
        return self


@dataclass(frozen=True, config=STRICT)
class Contract:
    """What a fitted model expects of a table.

    Attributes
    ----------
    features
        Names of the regions, in the model's order.
    feature_minimum, feature_median, feature_maximum
        Of each region over the training people: two quantiles and the median, rounded; None where they are not known,
        as in imported models.
    quantile
        Share of the training people below the first and above the last of these.
    covariates
        What is expected of each covariate.
    ignored_columns
        Columns of the training table that had no role.
    id_column, diagnosis_column
        Names of these columns.
    control_labels, patient_labels
        The labels that each group was made of.
    unit
        Unit of the regions, if known.
    site_column, visit_column
        Names of these columns, if there were any; the site is one of the covariates.

    Examples
    --------
    >>> contract = Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), unit="mL")
    >>> contract.features, contract.id_column
    (('a', 'b'), 'participant_id')
    """

    features: tuple[str, ...]
    feature_minimum: tuple[float | None, ...]
    feature_median: tuple[float | None, ...]
    feature_maximum: tuple[float | None, ...]
    covariates: tuple[CovariateSpec, ...] = ()
    ignored_columns: tuple[str, ...] = ()
    id_column: str = "participant_id"
    diagnosis_column: str = "diagnosis"
    control_labels: tuple[str, ...] = ()
    patient_labels: tuple[str, ...] = ()
    unit: str | None = None
    site_column: str | None = None
    visit_column: str | None = None
    quantile: float = QUANTILE

    @classmethod
    def of_people(
        cls,
        features: pd.DataFrame,
        covariates: pd.DataFrame | None = None,
        *,
        ignored_columns: tuple[str, ...] = (),
        id_column: str = "participant_id",
        diagnosis_column: str = "diagnosis",
        control_labels: tuple[str, ...] = (),
        patient_labels: tuple[str, ...] = (),
        unit: str | None = None,
        site_column: str | None = None,
        visit_column: str | None = None,
    ) -> Contract:
        """Describe the regions and covariates of training people."""
        quantile = min(max(QUANTILE, _FEWEST_BEYOND / len(features)), 0.25)
        values = features.to_numpy()
        found = _rounded(np.nanquantile(values, [quantile, 0.5, 1 - quantile], axis=0))
        # Whoever is not above 0 shows that 0, or less than it, is possible.
        for beyond, at_most in (((values <= 0).any(axis=0), 0), ((values < 0).any(axis=0), -1e-3 * np.abs(found[2]))):
            found[0] = np.where(beyond, np.minimum(found[0], at_most), found[0])
        low, median, high = found.tolist()
        table = pd.DataFrame() if covariates is None else covariates
        return cls(
            features=tuple(map(str, features.columns)),
            feature_minimum=tuple(low),
            feature_median=tuple(median),
            feature_maximum=tuple(high),
            covariates=tuple(CovariateSpec.from_values(str(name), table[name].to_numpy(), quantile) for name in table),
            ignored_columns=ignored_columns,
            id_column=id_column,
            diagnosis_column=diagnosis_column,
            control_labels=control_labels,
            patient_labels=patient_labels,
            unit=unit,
            site_column=site_column,
            visit_column=visit_column,
            quantile=quantile,
        )

    @property
    def ranges(self) -> NDArray[np.float64]:
        """Lower end, median and upper end (rows) of each region in training; NaN where not known."""
        return np.array([getattr(self, name) for name in STATISTICS], dtype=float)

    def outside(self, regions: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mark what lies far outside the training range, see `limits`; where that is not known, nothing."""
        low, high = self.limits
        return (regions < low) | (regions > high)

    @property
    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of each region beyond which new people are flagged."""
        low, median, high = self.ranges
        stretch = _FLAGGED_SD / NormalDist().inv_cdf(1 - self.quantile)
        return median - stretch * (median - low), median + stretch * (high - median)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if not 0 < self.quantile < 0.5:
            raise ValueError("the quantile should lie between 0 and 0.5")
        statistics = [getattr(self, name) for name in STATISTICS]
        if not self.features or any(len(values) != len(self.features) for values in statistics):
            raise ValueError("there should be regions, each with minimum, median and maximum")
        for name, *of_region in zip(self.features, *statistics, strict=True):
            known = [value for value in of_region if value is not None]
            if known != sorted(known):
                raise ValueError(f"minimum, median and maximum of {name!r} are out of order")
        covariates = [spec.name for spec in self.covariates]
        if self.site_column is not None and self.site_column not in covariates:
            raise ValueError(f"the site {self.site_column!r} should be one of the covariates")
        visit = [] if self.visit_column is None else [self.visit_column]
        roles = [*self.features, *covariates, self.id_column, self.diagnosis_column, *visit]
        if len(set(roles)) != len(roles):
            raise ValueError("a column has more than one role")
        return self


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to a few digits that count."""
    size = np.floor(np.log10(np.abs(values, where=values != 0, out=np.ones_like(values))))
    return np.round(values / 10**size, _DIGITS - 1) * 10**size
