"""Covariates of a cohort: reading them and asking whether their effect can be learned from the controls."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.cells import (
    MOSTLY_NUMBERS,
    Roster,
    has_numbers,
    require_column,
    share_of_numbers,
    text_of,
)
from rindices.cohort.gaps import impossible, number_block, refuse, refuse_gaps, refuse_spelled
from rindices.cohort.overlap import refuse_apart, warn_of_repetition, warn_of_separation
from rindices.cohort.plausible import impossible_newcomer
from rindices.cohort.spelling import spelled_numbers
from rindices.errors import InputError, counted, listed, shown
from rindices.schema.contract import CovariateSpec

__all__ = [
    "MIN_SITE_CONTROLS",
    "check_covariates",
    "impossible_covariate",
    "read_covariate",
    "read_covariates",
    "unusual",
]

# Numbers in these columns are names of places or machines: a slope over them would mean nothing.
ALWAYS_CATEGORIES = frozenset({"site", "scanner"})
MIN_SITE_CONTROLS = 5  # below, a site's shift and scale are mostly chance
RECODE = "Code it as in the training table, or remove these people."


def read_covariates(
    frame: pd.DataFrame, names: Sequence[str], roster: Roster, categories: Collection[str] = ()
) -> pd.DataFrame:
    """Return the covariates, row by row: numbers as float64, categories as text, gaps as NaN.

    ``categories`` are never numbers, whatever their cells look like.
    """
    columns: dict[str, NDArray] = {}
    for name in names:
        remedy = "Correct the name (--covariates, --smooth, --interactions or --proportion), or add the column."
        require_column(frame.columns, name, "a covariate", remedy)
        column = frame[name]
        text = name.casefold() in ALWAYS_CATEGORIES or name in categories
        if not text and not has_numbers(column):
            refuse_spelled(column, roster, kind="covariate")
            text = True
        cells = text_of(column) if text else column
        if text:
            _refuse_spellings(cells, roster)
        columns[name] = cells.to_numpy() if text else cells.to_numpy(dtype=np.float64)
    return pd.DataFrame(columns, index=frame.index, columns=pd.Index(list(names), dtype=object))


def _refuse_spellings(column: pd.Series, roster: Roster) -> None:
    """Refuse categories that are the same but for capitals and blanks, which would be corrected for one by one."""
    counts = column.value_counts()  # the most frequent first
    usual: dict[str, str] = {}
    for level in map(str, counts.index):
        same = usual.setdefault(" ".join(level.split()).casefold(), level)
        if same != level:
            rows = np.flatnonzero((column == level).to_numpy())
            raise InputError(
                f"Column {str(column.name)!r} has {same!r} ({counted(int(counts[same]), 'person', 'people')}) and "
                f"{level!r} ({counted(len(rows), 'person', 'people')}, the first in {roster.at(int(rows[0]))}), which "
                "would count as two categories.\n"
                f"Write both the same way, such as {same}."
            )


def _categories(column: pd.Series, roster: Roster) -> list[str]:
    """Return a column of categories as text, refusing missing cells."""
    text = text_of(column)
    missing = text.isna().to_numpy()
    if missing.any():
        refuse_gaps(missing[:, None], [str(column.name)], roster, kind="covariate", can_drop=True)
    return [str(cell) for cell in text]


def check_covariates(
    covariates: pd.DataFrame, group: pd.Series, *, site: str | None = None, proportion: str | None = None
) -> tuple[str, ...]:
    """Refuse covariates whose effect the controls cannot show; return warnings about the doubtful ones.

    Regions are divided by ``proportion``: that extrapolates nothing.
    """
    is_control, is_patient = (group == "control").to_numpy(), (group == "patient").to_numpy()
    warnings: list[str] = []
    for name in covariates.columns:
        values = covariates[name].to_numpy()
        refuse_apart(name, values[is_control], values[is_patient])
        if pd.unique(values[is_control]).size == 1:
            value = shown(values[is_control][0])
            raise InputError(
                f"The effect of {name!r} cannot be learned: it has the same value ({value}) in all controls.\n"
                f"Do without {'--site' if name == site else name}, or add controls who differ in it."
            )
        if values.dtype.kind != "f":
            _refuse_new_levels(covariates[name], is_control)
        elif name != proportion:
            warnings += _warn_of_range(name, values, is_control, is_patient)
        warnings += warn_of_separation(name, values[is_control], values[is_patient])
    return (*warnings, *warn_of_repetition(covariates[is_control]))


def _refuse_new_levels(column: pd.Series, is_control: NDArray[np.bool_]) -> None:
    name, known = str(column.name), set(column[is_control])
    strangers = column[~column.isin(known).to_numpy()]
    new = strangers.value_counts()
    if len(new):
        levels = listed(f"{level} ({counted(int(number), 'person', 'people')})" for level, number in new.items())
        raise InputError(
            f"Column {name!r} has {counted(len(new), 'category', 'categories')} without a single control: {levels}; "
            f"the first is participant {strangers.index[0]}.\n"
            f"Their effect cannot be learned. Categories among the controls: {listed(sorted(known), 10)}.\n"
            f"Remove these people, add controls of the same category, or do without {name}."
        )


def _warn_of_range(
    name: str, values: NDArray, is_control: NDArray[np.bool_], is_patient: NDArray[np.bool_]
) -> list[str]:
    low, high = float(values[is_control].min()), float(values[is_control].max())
    outside = int(((values < low) | (values > high))[is_patient].sum())
    if not outside:
        return []
    return [
        f"{outside} of {counted(int(is_patient.sum()), 'patient')} {'has' if outside == 1 else 'have'} {name} outside "
        "the controls' range: its effect is extrapolated there."
    ]


def read_covariate(
    spec: CovariateSpec,
    frame: pd.DataFrame,
    roster: Roster,
    *,
    strangers: bool = False,
    remedy: str = RECODE,
) -> list[float] | list[str]:
    """Return the covariate of new people, refusing another coding and, mostly, strangers.

    With ``strangers``, categories that training did not see may pass; ``remedy`` says what to do about them.
    """
    column = frame[spec.name]
    if spec.categories is not None:
        categories = _categories(column, roster)
        if not strangers:
            _refuse_others(spec, pd.Series(categories), spec.categories, roster, remedy)
        return categories
    if not has_numbers(column) and spelled_numbers(text_of(column)):
        refuse_spelled(column, roster, kind="covariate", surely=True)
    if not has_numbers(column) and column.notna().any() and share_of_numbers(column) < MOSTLY_NUMBERS:
        found = listed(sorted(set(column.dropna())))
        expected = " and ".join(map(shown, spec.codes)) if spec.codes else _range(spec)
        raise InputError(
            f"Covariate {spec.name!r} was a number in training ({expected}), but this table has text: {found}.\n"
            "Code it as in the training table."
        )
    block = number_block(frame, [spec.name], roster, kind="covariate")
    _refuse_other_unit(spec, block[:, 0])
    refuse(impossible(impossible_covariate(spec, block[:, 0])[:, None], block, [spec.name], roster), can_drop=True)
    numbers = block[:, 0]
    if spec.codes is not None:
        _refuse_others(spec, pd.Series(numbers), spec.codes, roster, remedy)
    return [float(number) for number in numbers]


def impossible_covariate(spec: CovariateSpec, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark numbers that cannot be values, such as a head size of 0; other codes and units are refused elsewhere."""
    return _marked(spec, values) & (not _has_other_unit(spec, values))


def _marked(spec: CovariateSpec, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    if spec.codes is not None or spec.minimum is None or spec.maximum is None:
        return np.zeros(len(values), dtype=bool)
    return impossible_newcomer(spec.name, values, spec.minimum, spec.maximum)


def _has_other_unit(spec: CovariateSpec, values: NDArray[np.float64]) -> bool:
    """Whether nobody has what is possible, nor a code for what is missing, such as 0 or -9."""
    known = values[~np.isnan(values)]
    return bool(len(known) and (known > 0).all() and _marked(spec, known).all())


def _refuse_other_unit(spec: CovariateSpec, values: NDArray[np.float64]) -> None:
    if _has_other_unit(spec, values):
        raise InputError(
            f"Covariate {spec.name!r} was {_range(spec)} in training, but is {shown(float(values.min()))} to "
            f"{shown(float(values.max()))} here.\nConvert it to the unit of the training table."
        )


def _range(spec: CovariateSpec) -> str:
    return f"{shown(spec.minimum)} to {shown(spec.maximum)}"


def _refuse_others(
    spec: CovariateSpec, values: pd.Series, known: Sequence[object], roster: Roster, remedy: str
) -> None:
    unknown = np.flatnonzero(~values.isin(list(known)))
    if len(unknown):
        first = int(unknown[0])
        raise InputError(
            f"Covariate {spec.name!r} was coded {listed(map(shown, known), 10)} in training, "
            f"but this table has {listed(map(shown, sorted(set(values))), 10)}.\n"
            f"The first unknown value is {shown(values.iloc[first])!r} in {roster.at(first)} "
            f"({counted(len(unknown), 'person', 'people')} in all).\n" + remedy
        )


def unusual(spec: CovariateSpec, values: NDArray) -> list[str]:
    """Return for each person ``""`` or what is unusual, such as ``age 91 above 86``."""
    if spec.minimum is None or spec.maximum is None:
        return [""] * len(values)
    low, high = f"below {shown(spec.minimum)}", f"above {shown(spec.maximum)}"
    return [
        f"{spec.name} {shown(value)} {low if value < spec.minimum else high}" if outside else ""
        for value, outside in zip(values, (values < spec.minimum) | (values > spec.maximum), strict=True)
    ]
