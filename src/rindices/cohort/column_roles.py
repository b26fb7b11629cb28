"""Which column plays which part: names and patterns become columns, none has two parts, and the rest are regions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from rindices.cohort.region_candidates import choose_regions
from rindices.presets import Correction
from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, did_you_mean, joined, listed
from rindices.schema.cells import meant_as_numbers
from rindices.schema.role_guesses import BACKGROUND_NAMES, guessed_settings, is_region_name, kind_of
from rindices.settings import FOLLOW_UP, TableSettings
from rindices.value_kinds import expand_names, wanted_names

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
    parts = [(settings.id, "the participant id"), (settings.diagnosis, "the diagnosis"), (settings.visit, "the visit")]
    parts += [(getattr(settings, name), part) for name, part in FOLLOW_UP.items()]
    parts += [(name, "the site" if name == settings.site else "a covariate") for name in _named_covariates(settings)]
    return [(name, part) for name, part in parts if name is not None]


def _named_covariates(settings: TableSettings) -> dict[str, Remedy]:
    """Return the setting that names each covariate, the first of several; the site is one, too."""
    correction, options = correction_of(settings) or Correction(), dict[str, Remedy]()
    pairs = [name for pair in correction.interactions for name in pair]
    named = {"covariates": wanted_names(settings.covariates), "smooth": correction.smooth, "interactions": pairs}
    for option, names in (named | {"proportion": (settings.proportion,), "site": (settings.site,)}).items():
        options |= {name: Remedy(option) for name in names if name is not None and name not in options}
    return options


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
    scores = expand_names(settings.clinical, columns, source="clinical", pattern_columns=free)
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
    regions, chosen = choose_regions(table, taken, settings)
    covariates = tuple(name for name, part in parts.items() if part in ("a covariate", "the site"))
    others = tuple(name for name in columns if name not in parts and name not in regions)
    empty = tuple(name for name in others if table[name].isna().all())
    background = tuple(name for name in others if name.casefold() in BACKGROUND_NAMES and name not in empty)
    by = _named_covariates(settings)
    why: dict[str, tuple[str, Text]] = {
        name: (part, Message(_CHANGED.get(part, "set by "), by[name] if part == "a covariate" else _SETTINGS[part]))
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
    # icv and eTIV mean the same, but hardly share letters.
    sizes = [repr(one) for one in columns if kind_of(one).suspicion == kind_of(name).suspicion == "head size"][:2]
    alike = did_you_mean(name, columns) or (f" Did you mean {' or '.join(sizes)}?" if sizes else "")
    raise InputError(
        f"The table has no column {name!r} for {role}.{alike}\nColumns found: {shortened}.\n",
        remedy,
    )
