"""A user's table becomes a checked cohort: controls and patients to learn from, and others who are only scored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.exclusions import Record, leave_out_outliers, leave_out_small_sites, refuse_own_sites
from rindices.cohort.groups import (
    NO_LABEL,
    assign_groups,
    background_warnings,
    check_covariates,
    check_group_sizes,
    other_warnings,
    refuse_apart,
)
from rindices.cohort.people import Cohort
from rindices.cohort.roles import (
    BACKGROUND_NAMES,
    assign_roles,
    check_constant,
    choose_regions,
    paths_of,
    possible_scores,
    region_warnings,
    wanted_names,
)
from rindices.cohort.visits import first_visits, read_timeline, years_since_first
from rindices.errors import InputError, Problem, counted, listed, refusal, setting
from rindices.schema.cells import meant_as_numbers, numbers_of, text_of, typed
from rindices.schema.fields import (
    MIN_REGIONS,
    CovariateField,
    FieldSet,
    IdField,
    RegionField,
    ScoreField,
    Seen,
    require_column,
)
from rindices.settings import Names, TableSettings
from rindices.tables import (
    Column,
    Dictionary,
    apply_dictionary,
    digest_of,
    read_dictionary,
    read_source,
    unit_of,
)


def read_cohort(
    path: str | Path,
    settings: TableSettings | None = None,
    *,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    **choices: object,
) -> Cohort:
    """Read and check a cohort from a file or a BIDS dataset.

    Parameters
    ----------
    path
        A table, the folder of a BIDS dataset, or its ``participants.tsv``.
    settings
        Which columns are what, and who is used.
    prepare
        Changes the table after it was read and before it is checked.
    choices
        Single settings by their names in `rindices.settings.TableSettings`.

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
    settings = replace(settings or TableSettings(), **choices)  # type: ignore[arg-type]
    source = read_source(
        path,
        text_columns=(settings.id, settings.diagnosis),
        id_column=settings.id,
        visit_column=settings.visit,
        join=paths_of(settings.join),
    )
    files, dictionary = source.files, source.dictionary
    if settings.dictionary is not None:
        given = read_dictionary(settings.dictionary)
        files, dictionary = (*files, Path(settings.dictionary)), given if dictionary is None else dictionary | given
    assert source.frame is not None  # it was asked for whole
    frame = source.frame if prepare is None else prepare(source.frame)
    with told_with(source.notes):
        cohort = _Reader(frame, settings, dictionary).cohort()
    return replace(
        cohort,
        sha256=digest_of(files),
        messages=source.notes + cohort.messages,
        source=Path(path).resolve().name,
        doi=source.doi,
    )


def make_cohort(
    frame: pd.DataFrame,
    settings: TableSettings | None = None,
    *,
    dictionary: Dictionary | None = None,
    source: str = "table",
    **choices: object,
) -> Cohort:
    """Check a table in memory and make it a cohort.

    Parameters
    ----------
    frame
        One row per person or, with visits, per visit. The ids may also be the index, if it has the name of the id
        column.
    settings, choices
        As in `read_cohort`.
    dictionary
        What the columns mean: missing codes, levels, ranges, units.
    source
        Name of the table for the records.

    Examples
    --------
    See `Cohort`.
    """
    settings = replace(settings or TableSettings(), **choices)  # type: ignore[arg-type]
    return replace(_Reader(frame, settings, dictionary).cohort(), source=source)


@contextmanager
def told_with(notes: Sequence[str]) -> Iterator[None]:
    """Tell what is wrong together with what joining tables found: whoever is not in one of them has gaps."""
    try:
        yield
    except InputError as error:
        raise InputError("\n".join([error.message, *notes]), error.problems) from error


def with_missing_codes(
    dictionary: Dictionary | None, columns: Sequence[str], missing: Names, kept: Collection[str]
) -> Dictionary:
    """Return a dictionary that knows these codes for missing values, in all columns but those that are `kept`.

    ``icv=0`` is a code in one column.
    """
    known = dict(dictionary or {})
    for code in wanted_names(missing):
        name, sign, one = code.rpartition("=")
        if sign and name not in columns:
            raise InputError(f"{name!r} (from {setting('missing')}) is not a column of the table.\nCorrect the name.")
        for column in [name] if sign else [column for column in columns if column not in kept]:
            described = known.get(column, Column())
            known[column] = replace(described, missing=(*described.missing, one if sign else code))
    return Dictionary(known)


class _Reader:
    """From a table to a cohort, in four steps: read the columns, leave people out, check the groups, put together."""

    def __init__(
        self,
        frame: pd.DataFrame,
        settings: TableSettings,
        dictionary: Dictionary | None = None,
    ) -> None:
        if settings.small_sites not in ("refuse", "drop"):
            raise InputError(f"{setting('small_sites')} should be refuse or drop, found {settings.small_sites!r}.")
        if frame.index.name == settings.id and settings.id not in frame.columns:
            frame = frame.reset_index()
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        repeated = frame.columns[frame.columns.duplicated()].unique()
        if len(repeated):
            raise InputError(
                f"Column names must differ, but there are several {listed(map(repr, repeated))}.\nRename them."
            )
        if frame.empty:
            raise InputError("The table has no people.\nExpected one row per person.")
        self._settings = settings
        self._roles = assign_roles(list(frame.columns), settings)
        kept = {settings.id, settings.diagnosis, settings.visit, settings.site}
        if wanted_names(settings.missing):
            dictionary = with_missing_codes(
                dictionary, list(frame.columns), settings.missing, {str(name) for name in kept}
            )
        self._dictionary, self._categories = dictionary, () if dictionary is None else dictionary.categories
        self._notes: list[str] = []
        if dictionary is not None:
            frame, self._notes = apply_dictionary(frame, dictionary, checked=self._roles.parts)
        self._table = typed(frame, (settings.id, settings.diagnosis, *self._categories))
        self._record = Record(len(frame))

    def cohort(self) -> Cohort:
        """Return the cohort, everything checked."""
        everybody = self._read()
        doubts = self._leave_out(everybody)
        used, settings = self._record.used, self._settings
        people: dict[str, Sequence[object]] = {"participant_id": everybody.features.index.tolist()}
        people |= {} if everybody.visit is None else {"visit": everybody.visit.tolist()}
        people |= {"diagnosis": everybody.diagnosis.tolist(), "group": everybody.group.tolist()}
        people |= {} if everybody.site is None else {"site": everybody.site.fillna(NO_LABEL).tolist()}
        cohort = replace(everybody.take(used), first_visit=self._learned_from[used], people=self._record.table(people))
        if self._line is not None:
            years, told = years_since_first(
                cohort.features.index, self._line.take(used), cohort.background, str(settings.visit)
            )
            cohort, doubts = replace(cohort, years=years), [*doubts, *told]
        messages = [*self._notes, *self._record.warning(), *self._checked(cohort), *doubts]
        unit = settings.unit or (
            None if self._dictionary is None else unit_of(self._dictionary, list(cohort.features.columns))
        )
        return replace(cohort, messages=tuple(messages), unit=unit)

    def _read(self) -> Cohort:
        """Return everybody in the table, read through fields; refuse, or leave out, cells that cannot be used."""
        settings, table, roles = self._settings, self._table, self._roles
        self._require_columns()
        taken = dict.fromkeys(self._categories, "a category by the data dictionary") | roles.parts
        categories = {*self._categories, settings.site}
        fields = FieldSet(
            IdField(settings.id, settings.visit),
            [
                CovariateField(name, is_category=name in categories, is_divisor=name == settings.proportion)
                for name in roles.covariates
            ],
            RegionField(choose_regions(table, taken, settings)),
            [ScoreField(name) for name in roles.clinical],
            drop=settings.drop_missing,
        )
        found = fields.observe(table)
        self._roster, ids, regions = found.roster, found.roster.ids, fields.regions.columns
        if problems := fields.problems():
            raise refusal(problems, *self._without_columns(problems, regions, found.regions))
        described = (self._dictionary or Dictionary()).get(settings.diagnosis, Column())
        labels = settings.control, settings.patients, described.levels
        self._groups = assign_groups(table[settings.diagnosis], *labels)
        self._line = None if settings.visit is None else read_timeline(table[settings.visit], found.roster)
        self._notes += fields.notes
        self._record.leave_out_incomplete(found, regions)
        values = {name: seen.values[:, 0] for name, seen in found.covariates.items()}
        covariates = pd.DataFrame(values, ids, pd.Index(roles.covariates, dtype=object)).infer_objects()
        others = [name for name in map(str, table) if name not in roles.parts and name not in regions]
        return Cohort(
            features=pd.DataFrame(found.regions.values, ids, regions),
            diagnosis=self._groups.diagnosis.set_axis(ids).rename("diagnosis"),
            group=self._groups.group.set_axis(ids).rename("group"),
            covariates=covariates,
            control_labels=self._groups.control_labels,
            patient_labels=self._groups.patient_labels,
            first_visit=np.ones(len(table), dtype=bool),
            clinical=pd.DataFrame(found.scores, ids, pd.Index(roles.clinical, dtype=object)),
            visit=None if settings.visit is None else table[settings.visit].set_axis(ids).rename("visit"),
            ignored_columns=tuple(others),
            site=None if settings.site is None else covariates[settings.site],
            background=covariates.assign(**self._background(others)),
            settings=replace(settings, covariates=roles.covariates, clinical=roles.clinical),
        )

    @property
    def _learned_from(self) -> NDArray[np.bool_]:
        """True for the rows in use, of each person only the first."""
        used = self._record.used
        if self._line is not None:
            used[used] = first_visits(self._roster.ids[used], self._line.rank[used])
        return used

    def _require_columns(self) -> None:
        settings = self._settings
        sources = " or ".join(setting(name) for name in ("covariates", "smooth", "interactions", "proportion"))
        wanted = {
            settings.id: ("the people's ids", setting("id", "COLUMN")),
            settings.diagnosis: ("the diagnosis", setting("diagnosis", "COLUMN")),
        }
        wanted |= {} if settings.visit is None else {settings.visit: ("the visit", setting("visit"))}
        wanted |= dict.fromkeys(self._roles.covariates, ("a covariate", sources))
        wanted |= {} if settings.site is None else {settings.site: ("the site", setting("site"))}
        for name, (role, where) in wanted.items():
            require_column(self._table.columns, name, role, f"Rename the column, add it, or correct the name: {where}.")

    def _without_columns(self, problems: list[Problem], regions: Sequence[str], found: Seen) -> Iterator[str]:
        """Say which columns could be left out, where enough remain."""
        names = [name for name in regions if any(name in problem.columns for problem in problems)]
        if names and len(regions) - len(names) >= MIN_REGIONS:
            yield f"leave the column{'s' if len(names) > 1 else ''} out with {setting('exclude', names)}"
            gappy = [regions[place] for place in np.flatnonzero(np.any(found.missing, axis=0)).tolist()]
            if scores := possible_scores(found.values, regions, gappy):
                it, they = (
                    ("it", "it is a score and no region")
                    if len(scores) == 1
                    else ("them", "they are scores and no regions")
                )
                yield f"name {it} with {setting('clinical', scores)} if {they}"

    def _leave_out(self, everybody: Cohort) -> list[str]:
        """Leave out who else is to be left out, refuse groups and sites too small, and return warnings of outliers."""
        settings, record = self._settings, self._record
        check_group_sizes(self._groups, self._learned_from, *record.warning())
        far = leave_out_outliers(record, everybody.features, everybody.group, self._roster, drop=settings.drop_outliers)
        if everybody.site is not None:
            learned = self._learned_from
            place = everybody.site
            controls, patients = ((everybody.group == name).to_numpy() & learned for name in ("control", "patient"))
            if settings.small_sites != "drop":
                refuse_own_sites(place[learned])
            refuse_apart(str(settings.site), place[controls].to_numpy(), place[patients].to_numpy())
            leave_out_small_sites(record, place, controls, drop=settings.small_sites == "drop")
        check_group_sizes(self._groups, self._learned_from, *record.warning())
        return far

    def _background(self, names: Sequence[str]) -> dict[str, NDArray]:
        """Return columns such as age and sex that have no role; text among their numbers is a gap, with a note."""
        columns = {}
        empty = [name for name in names if self._table[name].isna().all()]
        self._notes += [f"Columns without a single value are left out: {listed(empty)}."] if empty else []
        for name in names:
            column, numbers = self._table[name], numbers_of(self._table[name])
            if name.casefold() not in BACKGROUND_NAMES or column.isna().all():
                continue
            odd = np.flatnonzero(column.notna() & np.isnan(numbers))
            few = 0 < len(odd) < column.notna().sum() and meant_as_numbers(text_of(column))
            if few:
                where = f"{counted(len(odd), 'cell')}, row {self._roster.rows[odd[0]]}"
                self._notes.append(f"{name} has text among its numbers ({where}): not used.")
            columns[name] = numbers if few else column.to_numpy()
        return columns

    def _checked(self, cohort: Cohort) -> list[str]:
        """Refuse regions and covariates that cannot be learned from, and return warnings about the doubtful ones."""
        first = cohort.first_visit
        learned = cohort.group.where(first, "other")
        controls, patients = ((learned == name).to_numpy() for name in ("control", "patient"))
        block, regions = cohort.features.to_numpy(), [str(name) for name in cohort.features.columns]
        check_constant(block, regions, controls)
        others = cohort.background.drop(columns=list(cohort.covariates.columns))
        site, proportion = self._settings.site, self._settings.proportion
        empty = [str(name) for name in cohort.clinical if cohort.clinical[name].isna().all()]
        return [
            *other_warnings(cohort.diagnosis[first], cohort.group[first]),
            *check_covariates(cohort.covariates, learned, site=site, proportion=proportion),
            *background_warnings(others, learned),
            *region_warnings(block, regions, controls, patients),
            *([f"Clinical columns without a single value: {listed(empty)}."] if empty else []),
        ]
