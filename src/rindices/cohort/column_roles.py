"""Which column plays which part: names and patterns become columns, none has two parts, and the rest are regions."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from rindices.cohort.region_candidates import Candidates, sort_candidates
from rindices.presets import Correction
from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, did_you_mean, joined, listed
from rindices.schema import MIN_REGIONS
from rindices.schema.cells import meant_as_numbers
from rindices.schema.role_guesses import BACKGROUND_NAMES, guessed_settings, is_region_name
from rindices.settings import FOLLOW_UP, Names, TableSettings

_A_ROW = 0.5  # a header with a larger share of numbers is a row of values
# How each part is asked for.
_SETTINGS: dict[str, Text] = {
    "the participant id": Remedy("id", Blank("COLUMN")),
    "the diagnosis": Remedy("diagnosis", Blank("COLUMN")),
    "the visit": Remedy("visit"),
    "the site": Remedy("site"),
    "a covariate": joined(map(Remedy, ("covariates", "smooth", "interactions", "proportion")), " or "),
    "a clinical score": Remedy("clinical"),
    **{part: Remedy(name, Blank("COLUMN")) for name, part in FOLLOW_UP.items()},
}
_CHANGED = dict.fromkeys(("the participant id", "the diagnosis"), "change with ")  # a default, or a usual name


def wanted_names(wanted: Names) -> tuple[str, ...]:
    """Return the names asked for: a sequence, comma-separated text, or a file with one name per line.

    A file is given as ``@file`` or as the path of an existing file; empty lines and comments (#) are skipped.

    Examples
    --------
    >>> wanted_names("lHip, rHip"), wanted_names(["l*"]), wanted_names(None)
    (('lHip', 'rHip'), ('l*',), ())
    """
    if isinstance(wanted, str) and (wanted.startswith("@") or _is_file(wanted)):
        wanted = Path(wanted.removeprefix("@"))
    if isinstance(wanted, Path):
        return _names_in_file(wanted)
    items = wanted.split(",") if isinstance(wanted, str) else wanted or ()
    names = [name for item in items for name in (wanted_names(item) if item.startswith("@") else (item.strip(),))]
    return tuple(dict.fromkeys(filter(None, names)))


def paths_of(files: Names) -> tuple[Path, ...]:
    """Return the files that are named: one, several separated by commas, or a sequence."""
    several = files.split(",") if isinstance(files, str) else [files] if isinstance(files, Path) else files or ()
    return tuple(Path(str(file).strip()) for file in several if str(file).strip())


def _is_file(text: str) -> bool:
    # A file that happens to be called "age" must not hide the column; a long list of names is no possible file name.
    return bool(Path(text).suffix or len(Path(text).parts) > 1) and os.path.isfile(text)


def _names_in_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The list of columns {path} cannot be read.\nExpected a text file with one name per line."
        ) from error
    names = tuple(dict.fromkeys(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")))
    if not names:
        raise InputError(f"The list of columns {path} contains no names.\nExpected one name per line.")
    return names


def expand_names(
    names: Sequence[str], columns: Sequence[str], *, source: str, pattern_columns: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns that the names and patterns stand for, refusing one that stands for nothing.

    Parameters
    ----------
    names
        Column names and patterns such as ``l*``.
    columns
        All columns of the table.
    source
        The setting that the names came from, for the message.
    pattern_columns
        The columns that a pattern may pick (default: all).

    Examples
    --------
    >>> expand_names(["l*", "age"], ["age", "lHip", "lAmy"], source="features")
    ('lHip', 'lAmy', 'age')
    """
    expanded: dict[str, None] = {}
    candidates = columns if pattern_columns is None else pattern_columns
    for name in names:
        matches = [name] if name in columns else [column for column in candidates if fnmatchcase(column, name)]
        if not matches:
            what = "matches no column" if any(sign in name for sign in "*?[") else "is not a column"
            raise InputError(
                f"{name!r} (from ",
                Remedy(source),
                f") {what} of the table.{did_you_mean(name, columns)}\n"
                f"Available columns: {listed(candidates) or 'none'}.",
            )
        expanded.update(dict.fromkeys(matches))
    return tuple(expanded)


def correction_of(settings: TableSettings) -> Correction | None:
    """Return how covariates and sites are corrected for; None where it is by lines alone.

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


@dataclass(frozen=True)
class Roles:
    """The part of each column.

    Attributes
    ----------
    covariates, clinical, regions
        Names of these columns; the site is the last covariate.
    others, empty, background
        Columns without a part; those of them without a single value; and those such as age in which the groups should
        not differ.
    why
        Of every column, its part and the reason.
    follow_up
        Columns of the time, the event and what else is known of the follow-up.
    problems, notes
        Columns that may be no regions, and sentences on those that are none.
    """

    covariates: tuple[str, ...]
    clinical: tuple[str, ...]
    regions: tuple[str, ...]
    others: tuple[str, ...]
    empty: tuple[str, ...]
    background: tuple[str, ...]
    why: dict[str, tuple[str, Text]]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Text, ...] = ()
    follow_up: tuple[str, ...] = ()


def named_parts(settings: TableSettings) -> list[tuple[str, str]]:
    """Return the columns that are named one by one, each with its part; the covariates last.

    Covariates that only the correction names are covariates, too, and the site may be named as one.
    """
    correction = correction_of(settings) or Correction()
    pairs = [name for pair in correction.interactions for name in pair]
    named = [*wanted_names(settings.covariates), *correction.smooth, *pairs, settings.proportion, settings.site]
    parts = [(settings.id, "the participant id"), (settings.diagnosis, "the diagnosis"), (settings.visit, "the visit")]
    parts += [(getattr(settings, name), part) for name, part in FOLLOW_UP.items()]
    parts += [(name, "the site" if name == settings.site else "a covariate") for name in dict.fromkeys(named)]
    return [(name, part) for name, part in parts if name is not None]


def _options_of_covariates(settings: TableSettings) -> dict[str, Remedy]:
    """Return the setting that names each covariate, the first of several."""
    correction = correction_of(settings) or Correction()
    pairs = tuple(name for pair in correction.interactions for name in pair)
    named = {"proportion": (settings.proportion,), "interactions": pairs, "smooth": correction.smooth}
    named |= {"covariates": wanted_names(settings.covariates)}
    return {str(name): Remedy(option) for option, names in named.items() for name in names if name is not None}


def assign_roles(table: pd.DataFrame, settings: TableSettings, categories: Sequence[str] = ()) -> Roles:
    """Give each column its part, refusing columns with two, and parts without a column.

    Parameters
    ----------
    table
        Columns of numbers or text.
    settings
        Which columns are what.
    categories
        Columns whose numbers are names, which are no regions.
    """
    columns, given = [str(name) for name in table.columns], named_parts(settings)
    named = {name for name, _ in given}
    free = [name for name in columns if name not in named]
    scores = expand_names(wanted_names(settings.clinical), columns, source="clinical", pattern_columns=free)
    parts: dict[str, str] = {}
    for name, part in (*given, *((name, "a clinical score") for name in scores)):
        if name in parts:
            from_table = f" If {name!r} comes from a table of scores, remove it there." if name in scores else ""
            raise InputError(
                f"Column {name!r} is {parts[name]}, so it cannot also be {part}.\nName another column with ",
                _SETTINGS[part],
                f".{from_table}",
            )
        parts[name] = part
    for name, part in parts.items():
        option, joining = (
            _SETTINGS[part],
            Message("; to join a table that contains the column, use ", Remedy("join", Blank("FILE"))),
        )
        if part == "the diagnosis" and (usual := guessed_settings(columns).diagnosis) in columns:
            option = Remedy("diagnosis", usual)
        tail = (joining, ".") if part == "the diagnosis" else (".",)
        remedy = Message("Add the column, rename an existing one, or correct the name with ", option, *tail)
        require_column(columns, name, part, remedy)
    taken = dict.fromkeys(categories, "a category according to the data dictionary") | parts
    regions, chosen = _choose_regions(table, taken, settings)
    covariates = tuple(name for name, part in parts.items() if part in ("a covariate", "the site"))
    others = tuple(name for name in columns if name not in parts and name not in regions)
    empty = tuple(name for name in others if table[name].isna().all())
    background = tuple(name for name in others if name.casefold() in BACKGROUND_NAMES and name not in empty)
    by = _options_of_covariates(settings)
    why: dict[str, tuple[str, Text]] = {
        name: (
            part,
            Message(
                _CHANGED.get(part, "set by "),
                by.get(name, _SETTINGS[part]) if part == "a covariate" else _SETTINGS[part],
            ),
        )
        for name, part in parts.items()
    }
    is_chosen = settings.features is not None
    asked = Message("set by ", Remedy("features")) if is_chosen else Message("numbers without another role")
    why |= dict.fromkeys(regions, ("a region", asked))
    why |= {name: ("no role", chosen.aside.get(name) or _reason(name, table[name], taken, settings)) for name in others}
    ordered = {name: why[name] for name in columns}
    problems, notes = tuple(chosen.problems()), tuple(chosen.notes)
    follow_up = tuple(name for name, part in parts.items() if part in FOLLOW_UP.values())
    return Roles(covariates, scores, regions, others, empty, background, ordered, problems, notes, follow_up)


def _reason(name: str, column: pd.Series, taken: Mapping[str, str], settings: TableSettings) -> Text:
    """Say why a column has no role."""
    if column.isna().all():
        return "no values"
    if name in taken:
        return taken[name]
    if not is_region_name(name):
        return "usually the name of something other than a region"
    if not meant_as_numbers(column):
        return "text, not numbers"
    if settings.features is not None:
        return Message("not named by ", Remedy("features"))
    return Message("excluded with ", Remedy("exclude"))


def require_column(names: Collection[str], name: str, role: str, remedy: Text) -> None:
    """Refuse a table that has columns of these names, but none called ``name``."""
    if name in names:
        return
    columns = [str(column) for column in names]
    numbers = pd.to_numeric(pd.Series(columns, dtype=object), errors="coerce").notna().mean()
    if len(columns) == 1:
        remedy = "Only one column was found. Columns must be separated by commas, semicolons or tabs."
    elif numbers > _A_ROW:
        remedy = "The first line should contain the column names, but it contains numbers."
    shortened = listed(column if len(column) < 60 else f"{column[:60]}..." for column in columns)
    raise InputError(
        f"The table has no column {name!r} for {role}.{did_you_mean(name, columns)}\nColumns found: {shortened}.\n",
        remedy,
    )


def _choose_regions(
    table: pd.DataFrame, taken: Mapping[str, str], settings: TableSettings
) -> tuple[tuple[str, ...], Candidates]:
    """Return the names of the region columns: those asked for, or what `sort_candidates` takes for regions.

    Columns of numbers in another spelling count, so that they are refused with a remedy and not lost.

    Parameters
    ----------
    table
        Columns of numbers or text.
    taken
        Columns that have another part already, and that part (``{"age": "a covariate"}``).
    settings
        Says what is asked for (`features`) and left out (`exclude`).
    """
    columns = [str(name) for name in table.columns]
    free = [name for name in columns if name not in taken]
    left_out = expand_names(wanted_names(settings.exclude), columns, source="exclude", pattern_columns=free)
    meant = [name for name in free if is_region_name(name) and meant_as_numbers(table[name])]
    wanted = wanted_names(settings.features)
    if isinstance(settings.features, str) and not wanted:
        raise InputError(
            Remedy("features"),
            f" should name regions, but got {settings.features!r}.\nName the regions, or omit ",
            Remedy("features"),
            " to use every numeric column.",
        )
    chosen = expand_names(wanted, columns, source="features", pattern_columns=meant) if wanted else tuple(meant)
    for name in (*left_out, *chosen):
        if name in taken:
            asked = Remedy("exclude" if name in left_out else "features")
            both = f"Column {name!r} is {taken[name]}, so it cannot also be in "
            raise InputError(both, asked, ".\nChoose one or the other.")
    regions = tuple(name for name in chosen if name not in left_out)
    sorted_out = Candidates(regions, {}, (), []) if wanted else sort_candidates(table, regions)
    regions = tuple(name for name in regions if name not in sorted_out.aside)
    if len(regions) < MIN_REGIONS:
        few = f"{len(regions)}{': ' + listed(regions) if regions else ''}"
        aside = listed(f"{name} ({why})" for name, why in sorted_out.aside.items())
        none = f" Not regions: {aside}." if aside else ""
        raise InputError(
            f"At least {MIN_REGIONS} regions are needed, but the table has {few}.{none}\nCheck ",
            Remedy("features"),
            " and ",
            Remedy("exclude"),
            ", and make sure that the regions are numeric columns; to join regions from another table, use ",
            Remedy("join", Blank("FILE")),
            ".",
        )
    return regions, sorted_out
