"""A user's table becomes a checked cohort of controls, patients and others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.cells import Roster, number_block, read_roster, require_column, tidy_table
from rindices.cohort.columns import BACKGROUND_NAMES, MIN_REGIONS, Names, check_constant, choose_features, wanted_names
from rindices.cohort.covariates import check_covariates, read_categories, read_covariates
from rindices.cohort.labels import MIN_PEOPLE, Labels, assign_groups, check_group_sizes
from rindices.cohort.plausible import check_plausible
from rindices.cohort.tables import read_table
from rindices.errors import InputError, counted, listed

__all__ = ["MIN_PEOPLE", "MIN_REGIONS", "Cohort", "make_cohort", "read_cohort"]


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """People with regional measures, labels, groups and covariates, all checked.

    Tables share one index: the participants' ids as text.

    Attributes
    ----------
    features
        People × regions, float64.
    diagnosis
        Label of each person, ``n/a`` where missing.
    group
        ``control``, ``patient`` or ``other`` (scored, never learned from).
    covariates
        Numbers as float64, categories as text; no columns if none were asked for.
    control_labels, patient_labels
        The labels that each group was made of.
    ignored_columns
        Columns of the table that are neither id, diagnosis, region nor covariate.
    warnings
        Sentences for the user.
    source, sha256
        Name of the file and its SHA-256 (empty for a table in memory).
    site
        Site of each person as text, if a site column was named.
    background
        Covariates, and columns such as age, sex and site that are not covariates: what the groups should not differ in.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(5, 1, (60, 4)), columns=["lHip", "rHip", "lAmy", "rAmy"])
    >>> table.insert(0, "participant_id", [f"p{number:02d}" for number in range(60)])
    >>> table.insert(1, "diagnosis", ["CN"] * 30 + ["AD"] * 30)
    >>> make_cohort(table)
    Cohort(30 controls, 30 patients, 0 others; 4 regions; covariates: none)
    """

    features: pd.DataFrame
    diagnosis: pd.Series
    group: pd.Series
    covariates: pd.DataFrame
    control_labels: tuple[str, ...]
    patient_labels: tuple[str, ...]
    ignored_columns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = "table"
    sha256: str = ""
    site: pd.Series | None = None
    background: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def n_controls(self) -> int:
        """Number of controls."""
        return int((self.group == "control").sum())

    @property
    def n_patients(self) -> int:
        """Number of patients."""
        return int((self.group == "patient").sum())

    @property
    def n_other(self) -> int:
        """Number of people who are scored only."""
        return int((self.group == "other").sum())

    @property
    def training(self) -> NDArray[np.bool_]:
        """True for controls and patients."""
        return (self.group != "other").to_numpy(dtype=bool)

    def __repr__(self) -> str:
        others = counted(self.n_other, "other")
        groups = f"{counted(self.n_controls, 'control')}, {counted(self.n_patients, 'patient')}, {others}"
        names = listed(self.covariates.columns) or "none"
        return f"Cohort({groups}; {counted(self.features.shape[1], 'region')}; covariates: {names})"


def read_cohort(
    path: str | Path,
    *,
    id: str = "participant_id",
    diagnosis: str = "diagnosis",
    control: Labels = None,
    patients: Labels = None,
    covariates: Names = (),
    site: str | None = None,
    features: Names = None,
    exclude: Names = (),
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Cohort:
    """Read and check a cohort from a file; `make_cohort` explains the parameters.

    `prepare` changes the table after it was read and before it is checked.

    Examples
    --------
    >>> cohort = read_cohort("volumes.csv", control="CN", patients="MCI,AD", covariates="age,sex")  # doctest: +SKIP
    """
    frame = read_table(path, text_columns=(id, diagnosis))
    cohort = make_cohort(
        frame if prepare is None else prepare(frame),
        id=id,
        diagnosis=diagnosis,
        control=control,
        patients=patients,
        covariates=covariates,
        site=site,
        features=features,
        exclude=exclude,
        source=Path(path).name,
    )
    with Path(path).open("rb") as file:
        return replace(cohort, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def make_cohort(
    frame: pd.DataFrame,
    *,
    id: str = "participant_id",
    diagnosis: str = "diagnosis",
    control: Labels = None,
    patients: Labels = None,
    covariates: Names = (),
    site: str | None = None,
    features: Names = None,
    exclude: Names = (),
    source: str = "table",
) -> Cohort:
    """Check a table in memory and make it a cohort.

    Parameters
    ----------
    frame
        One row per person. The ids may also be the index, if it has the name of the id column.
    id, diagnosis
        Names of the columns with ids and diagnosis labels.
    control, patients
        Labels of the groups: one, several separated by commas, or a sequence. Without ``control`` a usual name
        (CN, HC, control, 0, ...) is recognised; without ``patients`` the one remaining label is taken.
    covariates
        Columns whose effect is to be removed.
    site
        Column with the site of each person.
    features, exclude
        Regions to use and to leave out: names, patterns such as ``l*``, or a file with one name per line. Without
        ``features`` every column of numbers is a region, apart from age, sex, icv and other usual non-regions.
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
    covariate_names = wanted_names(covariates)
    roles = _roles(id, diagnosis, covariate_names, site)
    table = tidy_table(frame, (id, diagnosis))
    roster = read_roster(table, id)
    require_column(table, diagnosis, "the diagnosis", "Rename the column, or use --diagnosis COLUMN.")
    groups = assign_groups(table[diagnosis], control, patients)
    covariate_table = read_covariates(table, covariate_names, roster)
    sites = _read_site(table, site, roster)
    check_group_sizes(groups)
    regions = choose_features(table, roster, roles, features, exclude)
    block = number_block(table, regions, roster, kind="region", option="--exclude")
    check_constant(block, regions, groups.group)
    checked = (
        covariate_table if sites is None or site in covariate_names else covariate_table.assign(**{str(site): sites})
    )
    warnings = groups.warnings + _warn_of_empty(table, roles) + check_covariates(checked, groups.group)
    warnings += check_plausible(block, regions, groups.group, roster)
    used = {id, diagnosis, *covariate_names, *regions}
    return Cohort(
        features=pd.DataFrame(block, index=roster.ids, columns=list(regions)),
        diagnosis=_on_ids(groups.diagnosis, roster, "diagnosis"),
        group=_on_ids(groups.group, roster, "group"),
        covariates=covariate_table,
        control_labels=groups.control_labels,
        patient_labels=groups.patient_labels,
        ignored_columns=tuple(str(name) for name in table.columns if name not in used),
        warnings=warnings,
        source=source,
        site=sites,
        background=checked.join(_not_used(table, {*used, site or id}, roster)),
    )


def _roles(id_column: str, diagnosis: str, covariates: Sequence[str], site: str | None) -> dict[str, str]:
    roles = {} if site is None else {site: "the site"}
    roles |= dict.fromkeys(covariates, "a covariate")
    if id_column == diagnosis:
        raise InputError(f"Column {id_column!r} cannot be both the id and the diagnosis.\nName another column.")
    for name, role in ((id_column, "the people's id"), (diagnosis, "the diagnosis")):
        if name in roles:
            raise InputError(f"Column {name!r} is {role}, so it cannot be {roles[name]} too.\nName another column.")
    return roles | {id_column: "the people's id", diagnosis: "the diagnosis"}


def _read_site(table: pd.DataFrame, site: str | None, roster: Roster) -> pd.Series | None:
    if site is None:
        return None
    require_column(table, site, "the site", "Correct the name in --site, or add the column.")
    return pd.Series(read_categories(table[site], roster, kind="site"), index=roster.ids, name=site)


def _not_used(table: pd.DataFrame, used: set[str], roster: Roster) -> pd.DataFrame:
    """Return columns such as age and sex that have no role, numbers as numbers, gaps as they are."""
    names = [name for name in table.columns if name not in used and str(name).casefold() in BACKGROUND_NAMES]
    columns = {name: table[name] for name in names if table[name].notna().any()}
    numbers = {name: pd.to_numeric(column, errors="coerce") for name, column in columns.items()}
    kept = {n: numbers[n] if numbers[n].notna().sum() == columns[n].notna().sum() else columns[n] for n in columns}
    return pd.DataFrame({str(name): column.to_numpy() for name, column in kept.items()}, index=roster.ids)


def _warn_of_empty(table: pd.DataFrame, roles: dict[str, str]) -> tuple[str, ...]:
    empty = [str(name) for name in table.columns if name not in roles and table[name].isna().all()]
    return (f"Columns without a single value are left out: {listed(empty)}.",) if empty else ()


def _on_ids(values: pd.Series, roster: Roster, name: str) -> pd.Series:
    return pd.Series(values.tolist(), index=roster.ids, name=name)
