"""All fields of a table together, and what a fitted model expects of a table.

All fields examine the same rows, and each problem is reported once. The training table and new people pass through the
same fields; for new people, the model's contract specifies what the columns must contain. A contract is validated
whenever one is constructed, including when it is read from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator
from pydantic.dataclasses import dataclass

from rindices.problems import Problem, Text, refusal
from rindices.schema.covariate_and_score_fields import CovariateField, CovariateSpec, ScoreField
from rindices.schema.diagnosis_and_region_fields import DiagnosisField, RegionField
from rindices.schema.field import QUANTILE, STRICT, Field, Roster, Seen, kept_quantile
from rindices.schema.id_and_visit_fields import IdField, Timeline, VisitField

# New people are flagged beyond four sd of a normal distribution through the quantiles; in halves of two real cohorts,
# this flags fewer people than the smallest and largest values do (experiments/region_ranges.py).
_FLAGGED_SD = 4.0
STATISTICS = ("feature_minimum", "feature_median", "feature_maximum")


def first_problem(error: ValidationError) -> str:
    """Return the first validation error in one line: the path to the entry, and why it is refused."""
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
        Lower quantile, median and upper quantile of each region in the training sample, rounded; None if unknown, as in
        imported models.
    quantile
        Proportion of the training sample below the first and above the last of these.
    covariates
        What is expected of each covariate.
    ignored_columns
        Columns of the training table that had no role.
    id_column, diagnosis_column
        Names of these columns.
    control_labels, patient_labels
        The labels that define each group.
    unit
        Unit of the regions, if known.
    site_column, visit_column
        Names of these columns, if any; the site is one of the covariates.

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
    def of_people(cls, features: pd.DataFrame, covariates: pd.DataFrame | None = None) -> Contract:
        """Summarise the regions and covariates of the training sample."""
        regions = tuple(map(str, features.columns))
        low, median, high = RegionField(regions).learn(features.to_numpy()).tolist()
        table = pd.DataFrame() if covariates is None else covariates
        return cls(
            features=regions,
            feature_minimum=tuple(low),
            feature_median=tuple(median),
            feature_maximum=tuple(high),
            covariates=tuple(CovariateField(str(name)).learn(table[name].to_numpy()) for name in table),
            quantile=kept_quantile(len(features)),
        )

    @property
    def ranges(self) -> NDArray[np.float64]:
        """Lower end, median and upper end (rows) of each region in training; NaN where unknown."""
        return np.array([getattr(self, name) for name in STATISTICS], dtype=float)

    def outside(self, regions: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mark values far outside the training range (see `limits`); none if it is unknown."""
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
            raise ValueError("there should be at least one region, and a minimum, median and maximum for each")
        for name, *of_region in zip(self.features, *statistics, strict=True):
            present = [value for value in of_region if value is not None]
            if present != sorted(present):
                raise ValueError(f"the minimum, median and maximum of {name!r} are out of order")
        covariates = [spec.name for spec in self.covariates]
        if self.site_column is not None and self.site_column not in covariates:
            raise ValueError(f"the site column {self.site_column!r} should be one of the covariates")
        visit = [] if self.visit_column is None else [self.visit_column]
        roles = [*self.features, *covariates, self.id_column, self.diagnosis_column, *visit]
        if len(set(roles)) != len(roles):
            raise ValueError("a column has more than one role")
        return self


class Observed(NamedTuple):
    """The contents of some rows, as read by all fields.

    Attributes
    ----------
    roster
        The id and row number of each person.
    labels
        The diagnosis as text, ``n/a`` where there is none.
    timeline
        Order and times of the visits.
    covariates, regions
        Contents of the columns that are required for scoring.
    background
        People × covariates and further columns in which the groups should not differ: numbers as float64, or text.
    scores
        People × clinical scores, with gaps.
    """

    roster: Roster
    labels: pd.Series
    timeline: Timeline
    covariates: dict[str, Seen]
    regions: Seen
    background: pd.DataFrame
    scores: pd.DataFrame


class FieldSet(NamedTuple):
    """The fields of a table, in the order in which problems are reported."""

    people: IdField
    visit: VisitField
    diagnosis: DiagnosisField
    covariates: Sequence[CovariateField]
    regions: RegionField
    scores: Sequence[ScoreField]
    background: Sequence[ScoreField] = ()

    def observe(self, batch: pd.DataFrame) -> Observed:
        """Read some rows; missing ids are refused at once, because nothing else can be checked without them."""
        roster = Roster.of(batch, self.people.name)
        if self.people.observe(batch, roster).hasnans:
            raise refusal(self.people.check())
        seen, background, scores = (
            {field.name: field.observe(batch, roster) for field in fields}
            for fields in (self.covariates, self.background, self.scores)
        )
        return Observed(
            roster,
            self.diagnosis.observe(batch, roster),
            self.visit.observe(batch, roster),
            seen,
            self.regions.observe(batch, roster),
            _columns(seen, roster).infer_objects().assign(**_columns(background, roster)),
            _columns(scores, roster),
        )

    @property
    def _every(self) -> list[Field]:
        own = (self.people, self.visit, self.diagnosis)
        return [*own, *self.covariates, self.regions, *self.scores, *self.background]

    def check(self) -> list[Problem]:
        """Return the problems of all rows so far; a problem shared by several fields is listed only once."""
        return list(dict.fromkeys(one for field in reversed(self._every) for one in reversed(field.check())))[::-1]

    @property
    def notes(self) -> list[Text]:
        """Messages for the user."""
        return [note for field in self._every for note in field.notes]


def _columns(seen: dict[str, Seen], roster: Roster) -> pd.DataFrame:
    values = {name: one.values[:, 0] for name, one in seen.items()}
    return pd.DataFrame(values, roster.ids, pd.Index([*values], dtype=object))
