"""What a fitted model expects of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from rindices.cohort.covariates import CovariateSpec
from rindices.cohort.json_checks import check_entries, known_numbers_from, numbers_from, texts_from
from rindices.cohort.people import Cohort

__all__ = ["STATISTICS", "Contract", "CovariateSpec"]


@dataclass(frozen=True)
class Contract:
    """What a fitted model expects of a table.

    Attributes
    ----------
    features
        Names of the regions, in the model's order.
    feature_minimum, feature_median, feature_maximum
        Of each region over the training people; None where they are not known, as in imported models.
    covariates
        What is expected of each covariate.
    ignored_columns
        Columns of the training table that had no role.
    id_column, diagnosis_column
        Names of these columns.
    site_column, visit_column
        Names of these columns, if there were any; the site is one of the covariates.
    control_labels, patient_labels
        The labels that each group was made of.
    unit
        Unit of the regions, if known.

    Examples
    --------
    >>> contract = Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), unit="mL")
    >>> Contract.from_json(contract.to_json()) == contract
    True
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

    @classmethod
    def from_cohort(
        cls,
        cohort: Cohort,
        *,
        id_column: str = "participant_id",
        diagnosis_column: str = "diagnosis",
        unit: str | None = None,
        visit_column: str | None = None,
    ) -> Contract:
        """Describe the training people (controls and patients) of a cohort."""
        return cls.of_people(
            cohort.features[cohort.training],
            cohort.covariates[cohort.training],
            ignored_columns=cohort.ignored_columns + tuple(map(str, cohort.clinical.columns)),
            id_column=id_column,
            diagnosis_column=diagnosis_column,
            control_labels=cohort.control_labels,
            patient_labels=cohort.patient_labels,
            unit=unit,
            site_column=None if cohort.site is None else str(cohort.site.name),
            visit_column=visit_column,
        )

    @classmethod
    def of_people(cls, features: pd.DataFrame, covariates: pd.DataFrame | None, **rest: Any) -> Contract:
        """Describe the regions and covariates of training people; `rest` are the other fields."""
        values = features.to_numpy()
        table = pd.DataFrame() if covariates is None else covariates
        return cls(
            features=tuple(map(str, features.columns)),
            feature_minimum=tuple(values.min(axis=0).tolist()),
            feature_median=tuple(np.median(values, axis=0).tolist()),
            feature_maximum=tuple(values.max(axis=0).tolist()),
            covariates=tuple(CovariateSpec.from_values(str(name), table[name].to_numpy()) for name in table),
            **rest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the contract in plain JSON types."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()} | {
            "covariates": [
                {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(spec).items()}
                for spec in self.covariates
            ]
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Contract:
        """Return the contract that `to_json` wrote; anything else is a ValueError."""
        check_entries(data, cls, optional=_ADDED_LATER)
        specs = data["covariates"]
        if not isinstance(specs, list):
            raise ValueError(f"contract: 'covariates' should be a list, found {type(specs).__name__}")
        numbers = {name: known_numbers_from(data[name], name) for name in STATISTICS}
        texts = {name: texts_from(data[name], name) for name in _TEXT_LISTS}
        for name in ("id_column", "diagnosis_column"):
            texts_from([data[name]], name)
        for name in ("unit", *_ADDED_LATER):
            if data.get(name) is not None:
                texts_from([data[name]], name)
        covariates = tuple(_spec_from_json(spec) for spec in specs)
        contract = cls(**(dict(data) | numbers | texts | {"covariates": covariates}))
        _check_consistent(contract)
        return contract


STATISTICS = ("feature_minimum", "feature_median", "feature_maximum")
_ADDED_LATER = ("site_column", "visit_column")  # models of earlier versions have none
_TEXT_LISTS = ("features", "ignored_columns", "control_labels", "patient_labels")


def _spec_from_json(data: Mapping[str, Any]) -> CovariateSpec:
    check_entries(data, CovariateSpec)
    name = texts_from([data["name"]], "name")[0]
    if data["categories"] is not None:
        categories = texts_from(data["categories"], name)
        if not categories or len(set(categories)) != len(categories):
            raise ValueError(f"contract: the categories of {name!r} should be different, at least one")
        return CovariateSpec(name, categories=categories)
    minimum, maximum = numbers_from([data["minimum"], data["maximum"]], name)
    codes = None if data["codes"] is None else numbers_from(data["codes"], name)
    if minimum > maximum:
        raise ValueError(f"contract: the range of {name!r} ends ({maximum}) before it begins ({minimum})")
    if codes is not None and len(codes) != 2:
        raise ValueError(f"contract: {name!r} should have two codes, found {len(codes)}")
    return CovariateSpec(name, minimum=minimum, maximum=maximum, codes=codes)


def _check_consistent(contract: Contract) -> None:
    statistics = [getattr(contract, name) for name in STATISTICS]
    if not contract.features or len(set(contract.features)) != len(contract.features):
        raise ValueError("contract: 'features' should be different names, at least one")
    if {len(values) for values in statistics} != {len(contract.features)}:
        raise ValueError(f"contract: each of {STATISTICS} should have {len(contract.features)} numbers")
    for name, *of_region in zip(contract.features, *statistics, strict=True):
        known = [value for value in of_region if value is not None]
        if known != sorted(known):
            raise ValueError(f"contract: minimum, median and maximum of {name!r} are out of order")
    others = [spec.name for spec in contract.covariates] + [contract.id_column, contract.diagnosis_column]
    if contract.site_column is not None and contract.site_column not in others[:-2]:
        raise ValueError(f"contract: the site {contract.site_column!r} should be one of the covariates")
    others += [] if contract.visit_column is None else [contract.visit_column]
    if len({*others, *contract.features}) != len(others) + len(contract.features):
        raise ValueError("contract: a column has more than one role")
