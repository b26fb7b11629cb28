"""A user's table becomes a checked cohort."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd

from rindices.cohort.absent import Absent
from rindices.cohort.assembly import Parts, assemble, read_parts
from rindices.cohort.bids import read_source
from rindices.cohort.clinical import warn_of_clinical
from rindices.cohort.columns import Names, check_constant, wanted_names, warn_of_text
from rindices.cohort.covariates import check_covariates
from rindices.cohort.dictionary import Dictionary, read_dictionary, unit_of
from rindices.cohort.exclusions import (
    Record,
    leave_out_gaps,
    leave_out_outliers,
    leave_out_small_sites,
    refuse_own_sites,
)
from rindices.cohort.labels import Labels, check_group_sizes, warn_of_others
from rindices.cohort.overlap import refuse_apart, warn_of_background
from rindices.cohort.people import Cohort
from rindices.cohort.plausible import warn_of_many, warn_of_scores
from rindices.cohort.roles import assign_roles, explained
from rindices.cohort.workbooks import file_and_sheet
from rindices.errors import InputError, listed

__all__ = ["make_cohort", "read_cohort"]


class _Leaving(NamedTuple):
    """Who is left out: as in `make_cohort`, and whom joined tables do not know."""

    missing: bool
    outliers: bool
    small_sites: Literal["refuse", "drop"]
    proportion: str | None
    absent: tuple[Absent, ...] = ()


def read_cohort(
    path: str | Path,
    *,
    id: str = "participant_id",
    diagnosis: str = "diagnosis",
    control: Labels = None,
    patients: Labels = None,
    covariates: Names = (),
    site: str | None = None,
    visit: str | None = None,
    clinical: Names = (),
    features: Names = None,
    exclude: Names = (),
    drop_missing: bool = False,
    drop_outliers: bool = False,
    small_sites: Literal["refuse", "drop"] = "refuse",
    proportion: str | None = None,
    join: str | Path | Sequence[str | Path] = (),
    dictionary: Dictionary | str | Path | None = None,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Cohort:
    """Read and check a cohort from a file or a BIDS dataset.

    Parameters
    ----------
    path
        A table, the folder of a BIDS dataset, or its ``participants.tsv``.
    id, diagnosis, control, patients, covariates, site, visit, clinical
        Which columns are what, and which labels are whose, as in `make_cohort`.
    features, exclude, drop_missing, drop_outliers, small_sites, proportion
        Which regions and people are used, as in `make_cohort`.
    join
        A further table of the same people, or several, joined by id (and visit).
    dictionary
        A data dictionary or its file; it has the last word over JSON files beside the tables.
    prepare
        Changes the table after it was read and before it is checked.

    Returns
    -------
    Cohort
        Everything checked.

    Raises
    ------
    InputError
        If a file cannot be read, or the table cannot be used; the message says where and what to do.

    Examples
    --------
    >>> cohort = read_cohort("volumes.csv", control="CN", patients="MCI,AD", covariates="age,sex")  # doctest: +SKIP
    """
    source = read_source(path, text_columns=(id, diagnosis), id_column=id, visit_column=visit, join=join)
    files = source.files
    if isinstance(dictionary, str | Path):
        files, dictionary = (*files, file_and_sheet(dictionary)[0]), read_dictionary(dictionary)
    if dictionary is not None and source.dictionary is not None:
        dictionary = source.dictionary | dictionary
    frame = source.frame if prepare is None else prepare(source.frame)
    absent = source.absent if frame.index.equals(source.frame.index) else ()
    cohort = _made(
        frame,
        (id, diagnosis, wanted_names(covariates), site, visit, wanted_names(clinical)),
        (control, patients),
        (features, exclude),
        source.dictionary if dictionary is None else dictionary,
        _Leaving(drop_missing, drop_outliers, small_sites, proportion, absent),
    )
    warnings = source.notes + cohort.warnings
    return replace(cohort, sha256=_digest(files), warnings=warnings, source=Path(path).resolve().name)


def _digest(files: Sequence[Path]) -> str:
    """Return the SHA-256 of a file, or of several files' digests."""
    digests = []
    for path in files:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def make_cohort(
    frame: pd.DataFrame,
    *,
    id: str = "participant_id",
    diagnosis: str = "diagnosis",
    control: Labels = None,
    patients: Labels = None,
    covariates: Names = (),
    site: str | None = None,
    visit: str | None = None,
    clinical: Names = (),
    features: Names = None,
    exclude: Names = (),
    drop_missing: bool = False,
    drop_outliers: bool = False,
    small_sites: Literal["refuse", "drop"] = "refuse",
    proportion: str | None = None,
    dictionary: Dictionary | None = None,
    source: str = "table",
) -> Cohort:
    """Check a table in memory and make it a cohort.

    Parameters
    ----------
    frame
        One row per person or, with ``visit``, per visit. The ids may also be the index, if it has the name of the id
        column.
    id, diagnosis
        Names of the columns with ids and diagnosis labels.
    control, patients
        Labels of the groups: one, several separated by commas, or a sequence. Without ``control`` a usual name
        (CN, HC, control, 0, ...) is recognised; without ``patients`` the one remaining label is taken.
    covariates
        Columns whose effect is to be removed.
    site
        Column with the site of each person; it becomes the last covariate.
    visit
        Column that tells a person's visits apart: numbers, dates, or names such as ``baseline`` and ``m06``. Everybody
        is learned from once, at the first visit; later visits are scored only.
    clinical
        Columns that R-indices will be compared with: names or patterns; never regions, and gaps are allowed.
    features, exclude
        Regions to use and to leave out: names, patterns such as ``l*``, or a file with one name per line. Without
        ``features`` every column of numbers is a region, apart from age, sex, icv and other usual non-regions.
    drop_missing
        Leave out people with missing or impossible values in regions or covariates, instead of refusing the table.
    drop_outliers
        Leave out people who are far from everybody else; otherwise they are only named.
    small_sites
        ``"drop"`` leaves out people of sites with too few controls, ``"refuse"`` refuses the table.
    proportion
        The covariate that regions will be divided by, if any: its range needs no warning.
    dictionary
        What the columns mean: missing codes, levels, ranges, units.
    source
        Name of the table for the records.

    Returns
    -------
    Cohort
        Everything checked.

    Raises
    ------
    InputError
        If the table cannot be used; the message says where and what to do.

    Examples
    --------
    See `Cohort`.
    """
    cohort = _made(
        frame,
        (id, diagnosis, wanted_names(covariates), site, visit, wanted_names(clinical)),
        (control, patients),
        (features, exclude),
        dictionary,
        _Leaving(drop_missing, drop_outliers, small_sites, proportion),
    )
    return replace(cohort, source=source)


def _made(
    frame: pd.DataFrame,
    columns: tuple[str, str, tuple[str, ...], str | None, str | None, tuple[str, ...]],
    labels: tuple[Labels, Labels],
    regions: tuple[Names, Names],
    dictionary: Dictionary | None,
    leaving: _Leaving,
) -> Cohort:
    """Make a cohort of a table whose columns have these roles."""
    if leaving.small_sites not in ("refuse", "drop"):
        raise InputError(f"--small-sites should be refuse or drop, found {leaving.small_sites!r}.")
    roles = assign_roles([str(name) for name in frame.columns], *columns)
    frame, control, patients, notes = explained(frame, dictionary, roles, *labels)
    categories = () if dictionary is None else dictionary.categories
    parts = read_parts(frame, roles, control, patients, *regions, categories)
    features, exclude = regions
    record, proportion = Record(len(parts.table)), leaving.proportion
    leave_out_gaps(
        record,
        parts.features,
        parts.covariates,
        parts.roster,
        drop=leaving.missing,
        proportion=proportion,
        absent=leaving.absent,
    )
    far = _leave_out(parts, record, outliers=leaving.outliers, sites=leaving.small_sites == "drop")
    cohort, doubts = assemble(parts, record)
    unit = None if dictionary is None else unit_of(dictionary, list(cohort.features.columns))
    lost = () if wanted_names(features) else warn_of_text(parts.table, roles.taken(categories), exclude)
    doubts = (*_warn_of_empty(parts), *lost, *far, *doubts)
    warnings = (*notes, *record.warning(), *_checked(cohort, roles.site, proportion), *doubts)
    return replace(cohort, warnings=warnings, unit=unit)


def _leave_out(parts: Parts, record: Record, *, outliers: bool, sites: bool) -> tuple[str, ...]:
    """Leave out who else is to be left out, refuse groups and sites too small, and return warnings of outliers."""
    check_group_sizes(parts.groups, parts.learned_from(record), *record.warning())
    far = leave_out_outliers(record, parts.features, parts.groups.group, parts.roster, drop=outliers)
    if parts.roles.site is not None:
        place, used = parts.covariates[parts.roles.site], parts.learned_from(record)
        controls, patients = ((parts.groups.group == name).to_numpy() & used for name in ("control", "patient"))
        if not sites:
            refuse_own_sites(place[used])
        refuse_apart(parts.roles.site, place[controls].to_numpy(), place[patients].to_numpy())
        leave_out_small_sites(record, place, controls, drop=sites)
    check_group_sizes(parts.groups, parts.learned_from(record), *record.warning())
    return far


def _checked(cohort: Cohort, site: str | None, proportion: str | None) -> tuple[str, ...]:
    """Refuse regions and covariates that cannot be learned from, and return warnings about the doubtful ones."""
    first = cohort.first_visit
    learned = cohort.group.where(first, "other")
    block, regions = cohort.features.to_numpy(), [str(name) for name in cohort.features.columns]
    check_constant(block, regions, learned)
    others = cohort.background.drop(columns=list(cohort.covariates.columns))
    return (
        *warn_of_others(cohort.diagnosis[first], cohort.group[first]),
        *check_covariates(cohort.covariates, learned, site=site, proportion=proportion),
        *warn_of_background(others, learned),
        *warn_of_scores(block, regions, learned),
        *warn_of_many(len(regions)),
        *warn_of_clinical(cohort.clinical),
    )


def _warn_of_empty(parts: Parts) -> tuple[str, ...]:
    table = parts.table
    empty = [str(name) for name in table.columns if name not in parts.roles.named and table[name].isna().all()]
    return (f"Columns without a single value are left out: {listed(empty)}.",) if empty else ()
