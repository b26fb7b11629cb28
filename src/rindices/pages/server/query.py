"""What was chosen about a table, as the part of an address after the question mark, and as words of a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from rindices.pages.server.safety import inside
from rindices.problems import InputError, Remedy, Text, Value, Wording, worded
from rindices.run.check_table import FoundRemedy
from rindices.settings import ApplySettings, TableSettings
from rindices.tables import Table

Pairs = list[tuple[str, str]]
Settings = TypeVar("Settings", TableSettings, ApplySettings)
_YES = "yes"
# What a column can be, and the setting that says so; a list has the column besides others.
ROLES = {
    "id": "id",
    "diagnosis": "diagnosis",
    "covariate": "covariates",
    "curve": "smooth",
    "head size": "proportion",
    "site": "site",
    "visit": "visit",
    "clinical score": "clinical",
    "region": "",
    "no role": "exclude",
}
_LISTS = ("covariates", "smooth", "interactions", "clinical", "join", "missing", "features", "exclude")
_LABELS = ("control", "patients")
_FILES = ("join", "dictionary")


@dataclass(frozen=True)
class Desk:
    """The folder that was opened, and how the command line is spoken and called.

    Attributes
    ----------
    folder
        Where tables and runs are.
    wording
        How a setting is written on the command line.
    program
        Words by which the command line is started.
    children
        Processes that were started from here, by the name of their run.
    """

    folder: Path
    wording: Wording
    program: tuple[str, ...]
    children: dict[str, Popen[bytes]] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return a file or folder of the folder; all else is refused."""
        return inside(self.folder, name)

    def words(self, command: str, *names: str, **settings: Value) -> list[str]:
        """Return the words of a command with some settings; those that are None are left out.

        Files come first; one that is called like an option is not taken for one.
        """
        files = [f"./{name}" if name.startswith("-") else name for name in names]
        given = {name: value for name, value in settings.items() if value is not None}
        options = (self.wording(Remedy(*pair)) for pair in given.items())
        return [command, *files, *(word for option in options for word in shlex.split(option))]

    def said(self, text: Text) -> str:
        """Return a message as the command line would say it."""
        return worded(text, self.wording)


def read_query(kind: type[Settings], query: QueryParams, desk: Desk) -> Settings:
    """Return the settings that an address has; files are those of the folder."""
    found: dict[str, object] = {}
    for name, default in ((one.name, one.default) for one in fields(kind)):
        values = tuple(value for value in query.getlist(name) if value)
        if not values:
            continue
        if any(value.startswith("@") for value in values):
            raise InputError(f"A name that begins with @ stands for a file, found {values[0]!r}.\nRename the column.")
        if name in _FILES:
            values = tuple(str(desk.path(value)) for value in values)
        several = name in _LISTS or name in _LABELS
        found[name] = tuple(dict.fromkeys(values)) if several else default is False or values[-1]
    return kind(**found)  # type: ignore[arg-type]


def pairs_of(settings: TableSettings | ApplySettings, desk: Desk) -> Pairs:
    """Return settings as an address has them: those that are not the usual ones."""
    pairs: Pairs = []
    for one in fields(settings):
        value = getattr(settings, one.name)
        if value == one.default or value in ((), None):
            continue
        values = [value] if isinstance(value, str | bool) else list(value)
        if one.name in _FILES:
            values = [Path(str(path)).relative_to(desk.folder).as_posix() for path in values]
        pairs += [(one.name, _YES if text is True else str(text)) for text in values]
    return pairs


def options_of(settings: TableSettings | ApplySettings, desk: Desk) -> dict[str, Value]:
    """Return settings for `Desk.words`; a list is one word, in which commas part the names."""
    grouped: dict[str, list[str]] = {}
    for name, text in pairs_of(settings, desk):
        grouped.setdefault(name, []).append(text)
    apart = [text for texts in grouped.values() for text in texts if "," in text]
    if apart:
        raise InputError(f"The name {apart[0]!r} has a comma, which parts two names in a command.\nRename the column.")
    kinds = {one.name: one.default for one in fields(settings)}
    return {name: True if kinds[name] is False else ",".join(texts) for name, texts in grouped.items()}


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return an address of ours with a query."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


def with_role(settings: TableSettings, column: str, role: str) -> TableSettings:
    """Return settings in which a column has another role, and no other besides.

    Examples
    --------
    >>> with_role(TableSettings(covariates=("age", "lHip")), "lHip", "no role").exclude
    ('lHip',)
    """
    if role not in ROLES:
        raise InputError(f"{role!r} is no role of a column.")
    changes: dict[str, object] = {}
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name in ("covariates", "smooth", "clinical", "exclude", "features") and value:
            changes[one.name] = tuple(name for name in value if name != column) or one.default
        elif one.name == "interactions" and value:
            changes[one.name] = tuple(pair for pair in value if column not in pair.split(":"))
        elif one.name in ("proportion", "site", "visit") and value == column:
            changes[one.name] = None
    settings = replace(settings, **changes)  # type: ignore[arg-type]
    name = ROLES[role]
    if not name:
        return settings
    several = name in _LISTS
    return replace(settings, **{name: (*(getattr(settings, name) or ()), column) if several else column})  # type: ignore[arg-type]


def with_group(settings: TableSettings, label: str, group: str) -> TableSettings:
    """Return settings in which people with a label are controls, patients, or neither."""
    control, patients = (
        tuple(one for one in getattr(settings, name) or () if one != label) for name in ("control", "patients")
    )
    control = (*control, label) if group == "control" else control
    patients = (*patients, label) if group == "patient" else patients
    return replace(settings, control=control or None, patients=patients or None)


class Button(NamedTuple):
    """A setting that would help, and what an address gets for it."""

    name: str
    values: tuple[str, ...]
    query: str


def buttons_of(fixes: Iterable[FoundRemedy], kind: type[TableSettings] | type[ApplySettings]) -> list[Button]:
    """Return a button for each setting that would help and that can be chosen here."""
    buttons, known = [], {one.name for one in fields(kind)}
    for fix in fixes:
        if fix.setting in known:
            values = fix.value if isinstance(fix.value, tuple) else (_YES if fix.value is True else str(fix.value),)
            buttons.append(Button(fix.setting, values, urlencode([(fix.setting, text) for text in values])))
    return buttons


def first_of(query: QueryParams) -> int:
    """Return the row that a page of a long table begins with."""
    text = query.get("first", "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns, without reading its rows."""
    return [str(name) for name in Table(path).columns]
