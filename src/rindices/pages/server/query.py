"""The choices made for a table, as the query of an address and as the words of a command."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request

from rindices.pages.server.page import Desk
from rindices.problems import InputError, Value
from rindices.run.check_table import FoundRemedy
from rindices.schema.role_guesses import guessed_settings, id_by_name
from rindices.settings import TableSettings
from rindices.tables import Table, labelled_parts
from rindices.value_kinds import Setting, paths_of, settings_of

Pairs = list[tuple[str, str]]
Settings = TypeVar("Settings")
_YES = "yes"
_MOST_FORM = 2**20  # bytes
# The roles of a column, and the setting for each; a setting that is a list can hold several columns.
ROLES = {one.label: one.name for one in settings_of(TableSettings) if one.label} | {"region": ""}


def read_query(kind: type[Settings], query: QueryParams, desk: Desk) -> Settings:
    """Return the settings in the query of an address; files are looked up in the folder."""
    chosen: dict[str, object] = {}
    for one in settings_of(kind):
        texts = tuple(text.strip() for text in query.getlist(one.parameter) if text.strip())
        if not texts:
            continue
        if any(text.startswith("@") for text in texts):
            raise InputError(f"{texts[0]!r} begins with @, which denotes a file.\nRename the column.")
        if one.kind.is_file:
            texts = tuple(str(desk.path(text)) for text in texts)
        chosen[one.name] = tuple(dict.fromkeys(texts)) if one.kind.several else one.read(texts[-1])
    return kind(**chosen)  # type: ignore[return-value]


def pairs_of(settings: object, desk: Desk) -> Pairs:
    """Return settings as pairs for an address, without those at their defaults."""
    pairs: Pairs = []
    for one in settings_of(type(settings)):
        value = getattr(settings, one.name)
        if value == one.default or value in ((), None):
            continue
        texts = (
            [str(text) for text in value]
            if one.kind.several and not isinstance(value, str)
            else [one.kind.write(value)]
        )
        if one.kind.is_file:
            texts = list(map(desk.name, texts))
        pairs += [(one.parameter, _YES if value is True else text) for text in texts]
    return pairs


def options_of(settings: object, desk: Desk) -> dict[str, Value]:
    """Return settings for `Desk.words`; a list becomes one word, with its names separated by commas."""
    kinds, pairs = {one.parameter: one.kind for one in settings_of(type(settings))}, pairs_of(settings, desk)
    if apart := [text for name, text in pairs if kinds[name].several and "," in text]:
        raise InputError(f"{apart[0]!r} contains a comma, which separates names in a command.\nRename the column.")
    names = dict.fromkeys(name for name, _ in pairs)
    texts = {name: ",".join(text for own, text in pairs if own == name) for name in names}
    return {name: True if kinds[name].type is bool else text for name, text in texts.items()}


def form_of(kind: type, query: QueryParams) -> list[tuple[Setting, str]]:
    """Return the settings in a form, each with its text from an address or otherwise with its default."""
    return [
        (one, query.get(one.parameter, "").strip() or (one.kind.write(one.default) if one.default else ""))
        for one in settings_of(kind)
        if one.label
    ]


def with_role(settings: TableSettings, column: str, role: str) -> TableSettings:
    """Return settings in which a column has a given role and no other.

    Examples
    --------
    >>> with_role(TableSettings(covariates=("age", "lHip")), "lHip", "no role").exclude
    ('lHip',)
    """
    if role not in ROLES:
        raise InputError(f"{role!r} is not a column role.")
    changes: dict[str, object] = {}
    about = {one.name: one for one in settings_of(TableSettings)}
    for name in (*filter(None, ROLES.values()), "features", "interactions"):
        value, usual = getattr(settings, name), about[name].default
        if about[name].kind.several and value:
            changes[name] = tuple(one for one in value if column not in one.split(":")) or usual
        elif value == column and usual is None:
            changes[name] = None
    if name := ROLES[role]:
        others = getattr(replace(settings, **changes), name) or ()  # type: ignore[arg-type]
        changes[name] = (*others, column) if about[name].kind.several else column
    return replace(settings, **changes)  # type: ignore[arg-type]


def with_group(settings: TableSettings, label: str, group: str) -> TableSettings:
    """Return settings in which people with a label are controls, patients, or neither."""
    control, patients = (
        tuple(one for one in getattr(settings, name) or () if one != label) for name in ("control", "patients")
    )
    control = (*control, label) if group == "controls" else control
    patients = (*patients, label) if group == "patients" else patients
    return replace(settings, control=control or None, patients=patients or None)


class Button(NamedTuple):
    """A setting that would help, and the query that it adds to an address."""

    name: str
    values: tuple[str, ...]
    query: str


def buttons_of(fixes: Iterable[FoundRemedy], kind: type, table: str = "") -> list[Button]:
    """Return a button for each sheet of the table, and for each setting that would help and can be chosen here."""
    buttons, names = [], {one.name for one in settings_of(kind)}
    for fix in fixes:
        if fix.setting == "sheet" and str(fix.value).startswith(f"{Path(table).name}#"):
            meant = Path(table).with_name(str(fix.value))
            buttons.append(Button("Sheet", (meant.name.partition("#")[2],), urlencode({"table": meant.as_posix()})))
        elif fix.setting in names:
            values = fix.value if isinstance(fix.value, tuple) else (_YES if fix.value is True else str(fix.value),)
            buttons.append(Button(fix.setting, values, urlencode([(fix.setting, text) for text in values])))
    return buttons


async def posted(request: Request) -> Pairs:
    """Return the fields of a submitted form."""
    body = await request.body()
    if len(body) > _MOST_FORM:
        raise InputError("The form contains too much text.")
    return parse_qsl(body.decode("utf-8", errors="replace"))


def all_columns(path: Path, settings: TableSettings) -> list[str]:
    """Return the column names of a table and of the tables joined to it, without reading their rows."""
    return list(dict.fromkeys(column for table in (path, *paths_of(settings.join)) for column in _columns_of(table)))


def _columns_of(path: Path) -> list[str]:
    """Return a table's column names; of several tables, the names common to all."""
    parts = labelled_parts(path)
    names, *others = [[str(name) for name in Table(part).columns] for part in [one.path for one in parts] or [path]]
    ids = id_by_name(names) or names[0]
    both = [name for name in names if name == ids or all(name in other for other in others)]
    return [*both, TableSettings.diagnosis] if parts else names


def guessed(settings: TableSettings, path: Path, *, again: bool = False) -> TableSettings:
    """Return settings with the roles of columns guessed from their names; choices that were made are kept.

    If anything but files was chosen, nothing is guessed unless `again`.
    """
    chosen = [one for one in settings_of(TableSettings) if getattr(settings, one.name) != one.default]
    if not again and not all(one.kind.is_file for one in chosen):
        return settings
    by_name = guessed_settings(all_columns(path, settings))
    return replace(by_name, **{one.name: getattr(settings, one.name) for one in chosen})
