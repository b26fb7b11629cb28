"""The parts of a table, all rows; and the cohort that is made of the rows in use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.cells import (
    MOSTLY_NUMBERS,
    Roster,
    has_numbers,
    read_roster,
    require_column,
    share_of_numbers,
    tidy_table,
)
from rindices.cohort.clinical import read_clinical
from rindices.cohort.columns import BACKGROUND_NAMES, Names, choose_features
from rindices.cohort.covariates import read_covariates
from rindices.cohort.exclusions import Record
from rindices.cohort.labels import NO_LABEL, Groups, Labels, assign_groups
from rindices.cohort.people import Cohort
from rindices.cohort.roles import Roles
from rindices.cohort.visits import Timeline, first_visits, read_timeline, years_since_first
from rindices.errors import counted

__all__ = ["Parts", "assemble", "read_parts"]


@dataclass(frozen=True, eq=False)
class Parts:
    """A table by the parts that its columns play; all have its rows, also those that will be left out.

    Attributes
    ----------
    table
        All columns, as numbers or text.
    roles
        Which column plays which part.
    roster
        Who sits in which row.
    groups
        Labels and groups.
    features, covariates, clinical
        These columns, with their gaps.
    timeline
        When the visits were; None without visits.
    """

    table: pd.DataFrame
    roles: Roles
    roster: Roster
    groups: Groups
    features: pd.DataFrame
    covariates: pd.DataFrame
    clinical: pd.DataFrame
    timeline: Timeline | None

    def learned_from(self, record: Record) -> NDArray[np.bool_]:
        """Mark the rows in use, of each person only the first."""
        used = record.used
        if self.timeline is not None:
            used[used] = first_visits(self.roster.ids[used], self.timeline.rank[used])
        return used


def read_parts(
    frame: pd.DataFrame,
    roles: Roles,
    control: Labels,
    patients: Labels,
    features: Names,
    exclude: Names,
    categories: Collection[str],
) -> Parts:
    """Read the columns, refusing absent ones and cells of the wrong kind; `categories` are never numbers."""
    table = tidy_table(frame, (roles.id, roles.diagnosis, *categories))
    roster = read_roster(table, roles.id, visit_column=roles.visit)
    require_column(table.columns, roles.diagnosis, "the diagnosis", "Rename the column, or use --diagnosis COLUMN.")
    if roles.site is not None:
        require_column(table.columns, roles.site, "the site", "Correct the name in --site, or add the column.")
    groups = assign_groups(table[roles.diagnosis], control, patients)
    as_text = {*categories} if roles.site is None else {*categories, roles.site}
    covariates = read_covariates(table, roles.covariates, roster, as_text)
    clinical = read_clinical(table, roles.clinical, roster)
    regions = choose_features(table, roster, roles.taken(categories), features, exclude)
    numbers = table[list(regions)].astype(np.float64)
    timeline = None if roles.visit is None else read_timeline(table[roles.visit], roster)
    return Parts(table, roles, roster, groups, numbers, covariates, clinical, timeline)


def assemble(parts: Parts, record: Record) -> tuple[Cohort, tuple[str, ...]]:
    """Put together what is used of the table; return warnings about background and the time between visits as well."""
    used, roles = record.used, parts.roles
    ids, groups = parts.roster.ids[used], parts.groups

    def series(column: pd.Series, name: str) -> pd.Series:
        return pd.Series(column.to_numpy()[used], index=ids, name=name)

    def rows(part: pd.DataFrame) -> pd.DataFrame:
        return (part if used.all() else part[used]).set_axis(ids, axis=0)

    known, odd = _background(parts)
    background = rows(known)
    years, warnings = _years(parts, used, background)
    cohort = Cohort(
        features=rows(parts.features),
        diagnosis=series(groups.diagnosis, "diagnosis"),
        group=series(groups.group, "group"),
        covariates=rows(parts.covariates),
        control_labels=groups.control_labels,
        patient_labels=groups.patient_labels,
        first_visit=parts.learned_from(record)[used],
        clinical=rows(parts.clinical),
        visit=None if roles.visit is None else series(parts.table[roles.visit], "visit"),
        years=None if years is None else pd.Series(years, index=ids, name="years"),
        people=_people(parts, record),
        ignored_columns=tuple(_without_role(parts)),
        site=None if roles.site is None else series(parts.covariates[roles.site], roles.site),
        background=background,
    )
    return cohort, (*odd, *warnings)


def _years(
    parts: Parts, used: NDArray[np.bool_], background: pd.DataFrame
) -> tuple[NDArray[np.float64] | None, tuple[str, ...]]:
    line = parts.timeline
    if line is None:
        return None, ()
    line = Timeline(line.rank[used], None if line.years is None else line.years[used], line.exact)
    ages = [str(name) for name in background.columns if str(name).casefold() == "age" and has_numbers(background[name])]
    age = background[ages[0]].to_numpy(dtype=np.float64) if ages else None
    return years_since_first(parts.roster.ids[used], line, age, str(parts.roles.visit))


def _people(parts: Parts, record: Record) -> pd.DataFrame:
    """Return what became of every row."""
    columns: dict[str, Sequence[object]] = {"participant_id": parts.roster.ids.tolist()}
    if parts.roles.visit is not None:
        columns["visit"] = parts.table[parts.roles.visit].tolist()
    columns |= {"diagnosis": parts.groups.diagnosis.tolist(), "group": parts.groups.group.tolist()}
    if parts.roles.site is not None:
        columns["site"] = parts.covariates[parts.roles.site].fillna(NO_LABEL).tolist()
    return record.table(columns)


def _background(parts: Parts) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the covariates, and columns such as age and sex that have no role, with their gaps; and warnings.

    Text in a column that holds numbers otherwise is a gap.
    """
    columns, warnings = {}, []
    for name in _without_role(parts):
        column = parts.table[name]
        if name.casefold() not in BACKGROUND_NAMES or not column.notna().any():
            continue
        if not has_numbers(column) and share_of_numbers(column) >= MOSTLY_NUMBERS:
            numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
            odd = np.flatnonzero(column.notna() & numbers.isna())
            if len(odd):
                cells = counted(len(odd), "cell")
                warnings.append(
                    f"{name} has text among its numbers ({cells}, row {parts.roster.rows[odd[0]]}): not used."
                )
                column = numbers
        columns[name] = column
    return parts.covariates.assign(**columns), tuple(warnings)


def _without_role(parts: Parts) -> list[str]:
    return [str(name) for name in parts.table if name not in parts.roles.named and name not in parts.features.columns]
