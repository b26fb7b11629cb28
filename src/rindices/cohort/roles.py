"""Which column plays which part, and what a data dictionary says about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from rindices.cohort.columns import expand_names
from rindices.cohort.dictionary import Column, Dictionary, apply_dictionary, resolve_levels
from rindices.cohort.labels import CONTROL_NAMES, Labels
from rindices.errors import InputError

__all__ = ["Roles", "assign_roles", "explained"]

_OPTIONS = {
    "the people's id": "--id",
    "the diagnosis": "--diagnosis",
    "the visit": "--visit",
    "the site": "--site",
    "a covariate": "--covariates",
    "a clinical score": "--clinical",
}


@dataclass(frozen=True)
class Roles:
    """The columns that have a part other than region.

    Attributes
    ----------
    named
        These columns, and the part of each in words.
    id, diagnosis, covariates, clinical, site, visit
        Names of the columns; the site is the last covariate.
    """

    named: dict[str, str]
    id: str
    diagnosis: str
    covariates: tuple[str, ...] = ()
    clinical: tuple[str, ...] = ()
    site: str | None = None
    visit: str | None = None

    def taken(self, categories: Collection[str]) -> dict[str, str]:
        """Return the columns that cannot be regions: those with a part, and categories of the dictionary."""
        return dict.fromkeys(categories, "a category by the data dictionary") | self.named


def assign_roles(
    columns: Sequence[str],
    id_column: str,
    diagnosis: str,
    covariates: Sequence[str],
    site: str | None,
    visit: str | None,
    clinical: Sequence[str],
) -> Roles:
    """Give each column its part, refusing columns with two; the site may be named as a covariate as well."""
    if site is not None and site not in covariates:
        covariates = (*covariates, site)
    parts = [(id_column, "the people's id"), (diagnosis, "the diagnosis")]
    parts += [(visit, "the visit")] if visit is not None else []
    parts += [(name, "the site" if name == site else "a covariate") for name in covariates]
    taken = {name for name, _ in parts}
    free = [name for name in columns if name not in taken]
    scores = expand_names(clinical, columns, option="--clinical", pattern_columns=free)
    named: dict[str, str] = {}
    for name, part in (*parts, *((name, "a clinical score") for name in scores)):
        if name in named:
            table = " If it comes from a table of scores, take it out there." if part == "a clinical score" else ""
            raise InputError(
                f"Column {name!r} is {named[name]}, so it cannot be {part} too.\n"
                f"Name another column with {_OPTIONS[part]}.{table}"
            )
        named[name] = part
    return Roles(named, id_column, diagnosis, tuple(covariates), scores, site, visit)


def explained(
    frame: pd.DataFrame, dictionary: Dictionary | None, roles: Roles, control: Labels, patients: Labels
) -> tuple[pd.DataFrame, Labels, Labels, tuple[str, ...]]:
    """Return the table, the labels of controls and patients, and notes, as the dictionary explains them."""
    if dictionary is None:
        return frame, control, patients, ()
    frame, notes = apply_dictionary(frame, dictionary, checked=roles.named)
    if roles.diagnosis in dictionary:
        column = dictionary[roles.diagnosis]
        control = _usual_controls(column) if control is None else resolve_levels(control, column)
        patients = resolve_levels(patients, column)
    return frame, control, patients, tuple(notes)


def _usual_controls(column: Column) -> Labels:
    """Return the one code that means controls; None where several or none do."""
    codes = [code for code, meaning in (column.levels or {}).items() if meaning.casefold() in CONTROL_NAMES]
    return codes[0] if len(codes) == 1 else None
