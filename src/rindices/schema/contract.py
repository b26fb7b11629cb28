"""What a fitted model expects of a table; checked wherever a contract is made, and when it is read from a file."""

from __future__ import annotations

from statistics import NormalDist
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator
from pydantic.dataclasses import dataclass

from rindices.schema.covariate_field import CovariateField, CovariateSpec
from rindices.schema.field import QUANTILE, STRICT, kept_quantile
from rindices.schema.region_field import RegionField

# A new person is flagged beyond what a normal distribution through the quantiles has at four sd; in halves of two real
# cohorts that flags fewer than smallest and largest values do (experiments/region_ranges.py).
_FLAGGED_SD = 4.0
STATISTICS = ("feature_minimum", "feature_median", "feature_maximum")


def first_problem(error: ValidationError) -> str:
    """Say in one line what is wrong first: the way to the entry, and why it is refused."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


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
        regions = tuple(map(str, features.columns))
        low, median, high = RegionField(regions).learn(features.to_numpy()).tolist()
        table = pd.DataFrame() if covariates is None else covariates
        return cls(
            features=regions,
            feature_minimum=tuple(low),
            feature_median=tuple(median),
            feature_maximum=tuple(high),
            covariates=tuple(CovariateField(str(name)).learn(table[name].to_numpy()) for name in table),
            ignored_columns=ignored_columns,
            id_column=id_column,
            diagnosis_column=diagnosis_column,
            control_labels=control_labels,
            patient_labels=patient_labels,
            unit=unit,
            site_column=site_column,
            visit_column=visit_column,
            quantile=kept_quantile(len(features)),
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
            present = [value for value in of_region if value is not None]
            if present != sorted(present):
                raise ValueError(f"minimum, median and maximum of {name!r} are out of order")
        covariates = [spec.name for spec in self.covariates]
        if self.site_column is not None and self.site_column not in covariates:
            raise ValueError(f"the site {self.site_column!r} should be one of the covariates")
        visit = [] if self.visit_column is None else [self.visit_column]
        roles = [*self.features, *covariates, self.id_column, self.diagnosis_column, *visit]
        if len(set(roles)) != len(roles):
            raise ValueError("a column has more than one role")
        return self
