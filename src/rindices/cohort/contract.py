"""What a fitted model expects of a table, and the check of new people against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.cohort.cells import Roster, has_numbers, number_block, read_roster, tidy_table
from rindices.cohort.columns import Names, expand_names, is_region_name, wanted_names
from rindices.cohort.covariates import CovariateSpec
from rindices.cohort.json_checks import check_entries, known_numbers_from, numbers_from, texts_from
from rindices.cohort.labels import NO_LABEL, label_text
from rindices.cohort.people import Cohort
from rindices.cohort.tables import read_table
from rindices.cohort.units import check_units
from rindices.errors import InputError, counted, did_you_mean, listed

__all__ = ["Contract", "CovariateSpec", "People", "check_people", "read_people"]

# A new person may exceed the training range of a region by this share of it before being flagged.
RANGE_MARGIN = 0.1


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

    @classmethod
    def from_cohort(
        cls,
        cohort: Cohort,
        *,
        id_column: str = "participant_id",
        diagnosis_column: str = "diagnosis",
        unit: str | None = None,
    ) -> Contract:
        """Describe the training people (controls and patients) of a cohort."""
        return cls.of_people(
            cohort.features[cohort.training],
            cohort.covariates[cohort.training],
            ignored_columns=cohort.ignored_columns,
            id_column=id_column,
            diagnosis_column=diagnosis_column,
            control_labels=cohort.control_labels,
            patient_labels=cohort.patient_labels,
            unit=unit,
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
        check_entries(data, cls)
        specs = data["covariates"]
        if not isinstance(specs, list):
            raise ValueError(f"contract: 'covariates' should be a list, found {type(specs).__name__}")
        numbers = {name: known_numbers_from(data[name], name) for name in _STATISTICS}
        texts = {name: texts_from(data[name], name) for name in _TEXT_LISTS}
        for name in ("id_column", "diagnosis_column"):
            texts_from([data[name]], name)
        if data["unit"] is not None:
            texts_from([data["unit"]], "unit")
        covariates = tuple(_spec_from_json(spec) for spec in specs)
        contract = cls(**(dict(data) | numbers | texts | {"covariates": covariates}))
        _check_consistent(contract)
        return contract


_STATISTICS = ("feature_minimum", "feature_median", "feature_maximum")
_TEXT_LISTS = ("features", "ignored_columns", "control_labels", "patient_labels")


def _spec_from_json(data: Mapping[str, Any]) -> CovariateSpec:
    check_entries(data, CovariateSpec)
    name = texts_from([data["name"]], "name")[0]
    if data["categories"] is not None:
        return CovariateSpec(name, categories=texts_from(data["categories"], name))
    minimum, maximum = numbers_from([data["minimum"], data["maximum"]], name)
    codes = None if data["codes"] is None else numbers_from(data["codes"], name)
    if minimum > maximum:
        raise ValueError(f"contract: the range of {name!r} ends ({maximum}) before it begins ({minimum})")
    return CovariateSpec(name, minimum=minimum, maximum=maximum, codes=codes)


def _check_consistent(contract: Contract) -> None:
    statistics = [getattr(contract, name) for name in _STATISTICS]
    if not contract.features or len(set(contract.features)) != len(contract.features):
        raise ValueError("contract: 'features' should be different names, at least one")
    if {len(values) for values in statistics} != {len(contract.features)}:
        raise ValueError(f"contract: each of {_STATISTICS} should have {len(contract.features)} numbers")
    for name, *of_region in zip(contract.features, *statistics, strict=True):
        known = [value for value in of_region if value is not None]
        if known != sorted(known):
            raise ValueError(f"contract: minimum, median and maximum of {name!r} are out of order")
    others = [spec.name for spec in contract.covariates] + [contract.id_column, contract.diagnosis_column]
    if len({*others, *contract.features}) != len(others) + len(contract.features):
        raise ValueError("contract: a column has more than one role")


@dataclass(frozen=True, eq=False)
class People:
    """New people, checked: all tables and series have the participants' ids as index.

    Attributes
    ----------
    features
        People × regions in the model's order, float64.
    covariates
        Numbers as float64, categories as text.
    diagnosis
        Labels, ``n/a`` where missing.
    flags
        ``""``, or what lies outside the training range.
    """

    features: pd.DataFrame
    covariates: pd.DataFrame
    diagnosis: pd.Series
    flags: pd.Series


def read_people(path: str | Path, contract: Contract, *, exclude: Names = ()) -> People:
    """Read new people from a file and check them; see `check_people`."""
    frame = read_table(path, text_columns=(contract.id_column, contract.diagnosis_column))
    return check_people(frame, contract, exclude=exclude)


def check_people(frame: pd.DataFrame, contract: Contract, *, exclude: Names = ()) -> People:
    """Check a table of new people against what the model expects.

    Parameters
    ----------
    frame
        Table from `rindices.cohort.tables.read_table`; the diagnosis column may be absent.
    contract
        What the model expects.
    exclude
        Additional columns of numbers that are no regions: names, patterns or a file with names.

    Returns
    -------
    People
        Regions in the model's order; people outside the training range are kept and flagged.

    Raises
    ------
    InputError
        If regions or covariates are missing, additional, coded otherwise or in another unit.

    Examples
    --------
    >>> contract = Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0))
    >>> table = pd.DataFrame({"participant_id": ["p1", "p2"], "b": [3.0, 3.1], "a": [2.0, 5.0]})
    >>> check_people(table, contract).flags.tolist()
    ['', '1 region outside the training range (a)']
    """
    table = tidy_table(frame, (contract.id_column, contract.diagnosis_column))
    roster = read_roster(table, contract.id_column, "Rename the column as in the training table.")
    _check_regions(table, contract, exclude)
    covariates = {spec.name: spec.read(table, roster) for spec in contract.covariates}
    block = number_block(table, contract.features, roster, kind="region")
    # What is not known becomes NaN, which nothing lies below or above.
    minimum, median, maximum = (np.array(getattr(contract, name), float) for name in _STATISTICS)
    check_units(block, contract.features, (minimum, median, maximum), contract.unit)
    has_labels = contract.diagnosis_column in table.columns
    labels = label_text(table[contract.diagnosis_column]).tolist() if has_labels else [NO_LABEL] * len(table)
    names = pd.Index([spec.name for spec in contract.covariates], dtype=None if contract.covariates else object)
    covariate_table = pd.DataFrame(covariates, index=roster.ids, columns=names)
    margin = RANGE_MARGIN * (maximum - minimum)
    outside = (block < minimum - margin) | (block > maximum + margin)
    return People(
        features=pd.DataFrame(block, index=roster.ids, columns=list(contract.features)),
        covariates=covariate_table,
        diagnosis=pd.Series(labels, index=roster.ids, name="diagnosis"),
        flags=_flags(outside, covariate_table, contract, roster),
    )


def _check_regions(table: pd.DataFrame, contract: Contract, exclude: Names) -> None:
    columns = [str(name) for name in table.columns]
    missing = [name for name in contract.features if name not in columns]
    needed = {contract.id_column, contract.diagnosis_column, *contract.features}
    needed |= {spec.name for spec in contract.covariates}
    free = [name for name in columns if name not in needed]
    if missing:
        raise InputError(
            f"The model needs {counted(len(contract.features), 'region')}, but the table lacks {len(missing)}: "
            f"{listed(missing)}.{did_you_mean(missing[0], free)}\n"
            "Add the columns, named as in the training table; a model cannot score people without them."
        )
    left_out = expand_names(wanted_names(exclude), columns, option="--exclude", pattern_columns=free)
    for name in left_out:
        if name in needed:
            raise InputError(f"The model needs column {name!r}, so it cannot be left out.\nTake it out of --exclude.")
    known = {*left_out, *contract.ignored_columns}
    extra = [name for name in free if name not in known and is_region_name(name) and has_numbers(table[name])]
    if extra:
        raise InputError(
            f"The table has {counted(len(extra), 'column')} of numbers that the model does not know: {listed(extra)}.\n"
            f"Expected the {counted(len(contract.features), 'region')} of the training table and nothing besides.\n"
            f"If they are not needed, leave them out with --exclude {','.join(extra[:20])}"
        )


def _flags(outside: np.ndarray, covariates: pd.DataFrame, contract: Contract, roster: Roster) -> pd.Series:
    parts: list[list[str]] = [[] for _ in roster.ids]
    regions = np.array(contract.features, dtype=object)
    for position in np.flatnonzero(outside.any(axis=1)).tolist():
        names = regions[outside[position]]
        parts[position].append(f"{counted(len(names), 'region')} outside the training range ({listed(names, limit=5)})")
    for spec in contract.covariates:
        for position, text in enumerate(spec.beyond(covariates[spec.name].to_numpy())):
            if text:
                parts[position].append(text)
    return pd.Series(["; ".join(part) for part in parts], index=roster.ids, name="flags")
