"""From a user's table to a checked cohort: each column gets one role, and each person a group.

Controls and patients are used for training; others are only scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd

from rindices.cohort.comparability import check_comparability
from rindices.cohort.exclusions_and_outliers import columns_to_leave_out, leave_out, unusable
from rindices.cohort.people import Cohort, Roles, follow_up_of
from rindices.cohort.region_candidates import choose_regions, why_no_region
from rindices.presets import Correction
from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, check_choice, listed, refusal
from rindices.schema import (
    BackgroundField,
    CovariateField,
    DiagnosisField,
    FieldSet,
    IdField,
    Observed,
    RegionField,
    ScoreField,
    VisitField,
    changed_people,
    years_since_first,
)
from rindices.schema.cells import typed
from rindices.schema.role_guesses import BACKGROUND_NAMES, guessed_settings
from rindices.schema.units_and_impossible_values import deviation_unit, refuse_mixed_units
from rindices.settings import FOLLOW_UP, TableSettings
from rindices.tables import (
    Column,
    Dictionary,
    Source,
    apply_dictionary,
    id_column_of,
    labelled_parts,
    read_source,
    require_column,
    table_in_memory,
    unit_of,
    with_missing_codes,
    with_notes,
)
from rindices.value_kinds import expand_names, paths_of, wanted_names

# The setting that requests each role.
_SETTINGS: dict[str, Text] = {
    "the participant id": Remedy("id", Blank("COLUMN")),
    "the diagnosis": Remedy("diagnosis", Blank("COLUMN")),
    "the visit": Remedy("visit"),
    "the site": Remedy("site"),
    "a clinical score": Remedy("clinical"),
    **{part: Remedy(name, Blank("COLUMN")) for name, part in FOLLOW_UP.items()},
}
_CHANGED = dict.fromkeys(("the participant id", "the diagnosis"), "change with ")  # a default, or a usual name


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
        A table, the folder of a BIDS dataset, its ``participants.tsv``, or several labelled tables:
        ``CN=controls.csv,SCZ=patients.csv``.
    settings
        Column roles, and which people are used.
    prepare
        Function that changes the table after it has been read and before it is checked.
    choices
        Individual settings, named as in `rindices.settings.TableSettings`.

    Returns
    -------
    Cohort
        The checked cohort.

    Raises
    ------
    InputError
        If a file cannot be read or the table cannot be used; the message says where the problem is and what to do.

    Examples
    --------
    >>> cohort = read_cohort("volumes.csv", control="CN", patients="MCI,AD", covariates="age,sex")  # doctest: +SKIP
    """
    return look_at(path, replace(settings or TableSettings(), **choices), prepare=prepare).cohort()  # type: ignore[arg-type]


def look_at(
    path: str | Path,
    settings: TableSettings,
    *,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    read: Callable[..., Source] = read_source,
) -> Looked:
    """Read a table and assign each column its role; `Looked.cohort` checks the rest. Arguments as for `read_cohort`.

    `read` lets callers that look at the same table repeatedly cache what was read.
    """
    source = read(
        path,
        id_column=settings.id,
        visit_column=settings.visit,
        join=paths_of(settings.join),
        dictionary=settings.dictionary,
        diagnosis_column=settings.diagnosis,
    )
    with with_notes(source.notes):
        looked = _look(
            source.frame if prepare is None else prepare(source.frame),
            replace(settings, id=source.id_column),
            source.dictionary,
        )
    name = " + ".join(part.path.resolve().name for part in labelled_parts(path)) or Path(path).resolve().name
    return replace(looked, source=name, sha256=source.sha256, doi=source.doi, told=source.notes)


def make_cohort(
    frame: pd.DataFrame,
    settings: TableSettings | None = None,
    *,
    dictionary: Dictionary | None = None,
    source: str = "table",
    **choices: object,
) -> Cohort:
    """Check a table in memory and return it as a cohort.

    Parameters
    ----------
    frame
        One row per person or, with visits, per visit. The ids may also be the index, if it is named like the id
        column.
    settings, choices
        As in `read_cohort`.
    dictionary
        Meaning of the columns: missing codes, levels, units.
    source
        Name of the table, for the record.

    Examples
    --------
    See `Cohort`.
    """
    settings = replace(settings or TableSettings(), **choices)  # type: ignore[arg-type]
    frame = table_in_memory(frame, settings.id)
    settings = replace(
        settings, id=id_column_of(frame, settings.id) if settings.id == TableSettings.id else settings.id
    )
    frame = typed(frame, (settings.id, settings.diagnosis))
    return replace(_look(frame, settings, dictionary or Dictionary()), source=source).cohort()


def correction_of(settings: TableSettings) -> Correction | None:
    """Return how covariates and sites are corrected for; None if only by straight lines.

    Examples
    --------
    >>> correction_of(TableSettings(smooth="age", interactions="age:sex"))
    Correction(smooth=('age',), interactions=(('age', 'sex'),), proportion=None, site=None)
    """
    pairs = []
    for text in wanted_names(settings.interactions):
        first, _, second = (part.strip() for part in text.partition(":"))
        if not first or not second or first == second or ":" in second:
            raise InputError(
                Remedy("interactions"), f" should be pairs of covariates such as age:sex, but got {text!r}."
            )
        pairs.append((first, second))
    correction = Correction(wanted_names(settings.smooth), tuple(pairs), settings.proportion, settings.site)
    return None if correction == Correction() else correction


def named_parts(settings: TableSettings) -> list[tuple[str, str]]:
    """Return the columns that are named individually, each with its role; the covariates last.

    Covariates named only in the correction count as well, and the site may also be named as a covariate.
    """
    parts = [
        (settings.id, "the participant id"),
        (settings.diagnosis, "the diagnosis"),
        (settings.visit, "the visit"),
        *((getattr(settings, name), part) for name, part in FOLLOW_UP.items()),
        *((name, "the site" if name == settings.site else "a covariate") for name in _named_covariates(settings)),
    ]
    return [(name, part) for name, part in parts if name is not None]


def _named_covariates(settings: TableSettings) -> dict[str, Remedy]:
    """Return the first setting that names each covariate, including the site."""
    correction, options = correction_of(settings) or Correction(), dict[str, Remedy]()
    named: dict[str, Iterable[str | None]] = {
        "covariates": wanted_names(settings.covariates),
        "smooth": correction.smooth,
        "interactions": chain(*correction.interactions),
        "proportion": (settings.proportion,),
        "site": (settings.site,),
    }
    for option, names in named.items():
        options |= {name: Remedy(option) for name in names if name is not None and name not in options}
    return options


def assign_roles(table: pd.DataFrame, settings: TableSettings, categories: Sequence[str] = ()) -> Roles:
    """Assign each column its role, refusing columns with two roles, and roles without a column.

    Parameters
    ----------
    table
        Columns of numbers or text.
    settings
        The requested roles.
    categories
        Columns whose numbers are labels, so they cannot be regions.
    """
    columns, one_by_one = [str(name) for name in table.columns], named_parts(settings)
    named, covariate_by, parts = dict(one_by_one), _named_covariates(settings), dict[str, str]()
    free = [name for name in columns if name not in named]
    scores = expand_names(settings.clinical, columns, source="clinical", pattern_columns=free)
    given = [
        (name, part, covariate_by[name] if part == "a covariate" else _SETTINGS[part])
        for name, part in (*one_by_one, *((name, "a clinical score") for name in scores))
    ]
    for name, part, option in given:
        if name in parts:
            from_table = (
                f" If {name!r} comes from a table of scores, remove it from that table." if name in scores else ""
            )
            raise InputError(
                f"Column {name!r} is {parts[name]}, so it cannot also be {part}.\nName another column with ",
                option,
                f".{from_table}",
            )
        parts[name] = part
        joining: tuple[Text, ...] = ()
        if part == "the diagnosis":
            joining = "; to join a table that contains the column, use ", Remedy("join", Blank("FILE"))
            if (usual := guessed_settings(columns).diagnosis) in columns:
                option = Remedy("diagnosis", usual)
        remedy = Message(
            "Add the column, rename an existing one, or give the correct name with ", option, *joining, "."
        )
        require_column(columns, name, part, remedy)
    taken = dict.fromkeys(categories, "a category according to the data dictionary") | parts
    regions, chosen = choose_regions(table, taken, settings)
    covariates = tuple(name for name, part in parts.items() if part in ("a covariate", "the site"))
    others = tuple(name for name in columns if name not in parts and name not in regions)
    empty = tuple(name for name in others if table[name].isna().all())
    background = tuple(name for name in others if name.casefold() in BACKGROUND_NAMES and name not in empty)
    by_default, by_features = "numbers without another role", Message("set by ", Remedy("features"))
    why: dict[str, tuple[str, Text]] = {
        **{name: (part, Message(_CHANGED.get(part, "set by "), option)) for name, part, option in given},
        **dict.fromkeys(regions, ("a region", by_default if settings.features is None else by_features)),
        **{
            name: ("no role", chosen.aside.get(name) or why_no_region(name, table[name], taken, settings))
            for name in others
        },
    }
    return Roles(
        covariates=covariates,
        clinical=scores,
        regions=regions,
        others=others,
        background=background,
        why={name: why[name] for name in columns},
        problems=tuple(chosen.problems()),
        notes=(*chosen.notes, *([f"Columns without any values are excluded: {listed(empty)}."] if empty else [])),
    )


@dataclass(frozen=True, eq=False)
class Looked:
    """A table with the roles of its columns, and what the fields found in them.

    Attributes
    ----------
    settings, dictionary
        The requested settings, and the meaning of the columns.
    roles, fields, found
        The role of each column, the fields that have read the columns, and their contents.
    problems
        Problems of columns and cells.
    notes
        Messages for the user.
    source, sha256, doi, told
        Origin of the table, and notes from reading and joining it.
    """

    settings: TableSettings
    dictionary: Dictionary
    roles: Roles
    fields: FieldSet
    found: Observed
    problems: tuple[Problem, ...]
    notes: tuple[Text, ...]
    source: str = "table"
    sha256: str = ""
    doi: str | None = None
    told: tuple[Text, ...] = ()

    def cohort(self, **choices: object) -> Cohort:
        """Check everything and assign people to groups; `choices` say who is left out, as in `TableSettings`."""
        settings = replace(self.settings, **choices)  # type: ignore[arg-type]
        roles, observed = self.roles, self.found
        with with_notes(self.told):
            if problems := unusable(self.problems, drop_missing=settings.drop_missing):
                raise refusal(problems, *columns_to_leave_out(problems, roles, observed.regions))
            groups = self.fields.diagnosis.learn(observed.labels)
            regions = pd.DataFrame(observed.regions.values, columns=roles.regions)
            refuse_mixed_units(regions, observed.covariates, observed.roster.rows, groups.group)
            record = leave_out(observed, groups, roles, settings)
            used, line, background = record.used, observed.timeline.take(record.used), observed.background[record.used]
            years, years_from, untimed = years_since_first(line, background, settings.visit, training=True)
            controls = observed.regions.values[used & (groups.group == "control").to_numpy()]
            unit, seem = deviation_unit(
                settings.unit or unit_of(self.dictionary, roles.regions), controls, settings, roles.covariates
            )
            cohort = Cohort(
                features=pd.DataFrame(observed.regions.values[used], line.ids, roles.regions),
                diagnosis=observed.labels[used].rename("diagnosis"),
                group=groups.group[used],
                covariates=background[[*roles.covariates]],
                control_labels=groups.control_labels,
                patient_labels=groups.patient_labels,
                first_visit=line.first(),
                clinical=observed.scores[used],
                visit=line.visits,
                years=years,
                years_from=years_from,
                people=record.table(observed, groups.group, settings.site),
                ignored_columns=roles.others,
                source=self.source,
                sha256=self.sha256,
                site=None if settings.site is None else background[settings.site],
                unit=unit,
                region_names={
                    name: self.dictionary[name].description for name in roles.regions if name in self.dictionary
                },
                background=background,
                doi=self.doi,
                settings=replace(settings, covariates=roles.covariates, clinical=roles.clinical),
                outliers=tuple(record.outliers),
            )
            messages = (
                *self.told,
                *self.notes,
                *record.warning(),
                *check_comparability(cohort),
                *record.doubts,
                *seem,
                *untimed,
                *changed_people(line.ids, cohort.group, background),
            )
            return replace(cohort, messages=messages)


def _look(table: pd.DataFrame, settings: TableSettings, dictionary: Dictionary) -> Looked:
    """Examine a table of numbers and text, each column through its field."""
    check_choice(Remedy("small_sites"), settings.small_sites, ("refuse", "drop"))
    kept = (settings.id, settings.diagnosis, settings.visit, settings.site)
    dictionary = with_missing_codes(dictionary, list(table.columns), wanted_names(settings.missing), kept)
    table, notes, problems = apply_dictionary(table, dictionary)
    roles = assign_roles(table, settings, dictionary.categories)
    fields = _fields(roles, settings, dictionary)
    observed = fields.observe(table)
    problems = [one for one in problems if not {*one.where} & {*roles.others}] + [*roles.problems, *fields.check()]
    messages = (*notes, *roles.notes, *fields.notes)
    return Looked(settings, dictionary, roles, fields, observed, tuple(problems), messages)


def _fields(roles: Roles, settings: TableSettings, dictionary: Dictionary) -> FieldSet:
    """Return the fields of a training table, which learn from its columns."""
    categories = {*dictionary.categories, settings.site}
    levels = dictionary.get(settings.diagnosis, Column()).levels
    return FieldSet(
        IdField(settings.id, settings.visit),
        VisitField(settings.visit or ""),
        DiagnosisField(settings.diagnosis, settings.control, settings.patients, levels),
        [
            CovariateField(name, is_category=name in categories, is_divisor=name == settings.proportion)
            for name in roles.covariates
        ],
        RegionField(roles.regions, fills=not settings.complete_only),
        [ScoreField(name) for name in (*roles.clinical, *follow_up_of(settings).values())],
        [BackgroundField(name) for name in roles.background],
    )
