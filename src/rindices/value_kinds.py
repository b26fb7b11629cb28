"""The one description of a setting: its kind, default and help, and its name in each interface.

A setting is a field of a dataclass, made by `setting`; `settings_of` returns the descriptions of all fields. The
options of the command line, the sections of a ``run.toml``, and the forms and addresses of the page are made from them.

Names of columns and files are also read here: text, a sequence, or a file of names; patterns stand for several columns.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from rindices.problems import InputError, Remedy, did_you_mean, listed

Names = str | Path | Sequence[str] | None


def _together(value: object) -> object:
    """Return one or several values as a tuple; strings, paths and None are unchanged."""
    if value is None or isinstance(value, str | Path):
        return value
    return tuple(value) if isinstance(value, Iterable) else (value,)


def _listed(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _in_ranges(value: object) -> str:
    """Return whole numbers as they are typed: three or more consecutive ones as a range."""
    match value:
        case (int() as first, _, *_, int() as last) if value == tuple(range(first, last + 1)):
            return f"{first}-{last}"
    return _listed(value)


@dataclass(frozen=True)
class Kind:
    """The values that a setting takes, and how they are written as text.

    Attributes
    ----------
    type
        Type on the command line.
    several, is_file
        Whether there may be several, and whether they name files.
    choices
        The possible values, if there are only a few.
    least, most
        Limits of a number.
    read
        Turns text into a value; raises ValueError.
    should
        What text should be, for error messages: "a whole number".
    take
        Turns what is given in Python into the value, such as one number into a tuple.
    write
        Turns a value into text.
    """

    type: type = str
    several: bool = False
    is_file: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    read: Callable[[str], object] = str
    should: str = ""
    take: Callable[[Any], object] = lambda value: value
    write: Callable[[object], str] = _listed

    @property
    def is_number(self) -> bool:
        """Whether it is one whole number."""
        return self.type is int


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _limits(text: str) -> tuple[float, ...]:
    low, high = _numbers(text)
    if not 0 < low < high < float("inf"):
        raise ValueError
    return low, high


def whole(least: int | None = None, most: int | None = None) -> Kind:
    """Return the kind of whole numbers within limits."""
    return Kind(int, least=least, most=most, read=int, should="a whole number")


def choice(*choices: str) -> Kind:
    """Return the kind of a choice among words."""
    return Kind(choices=choices)


def counts(*words: str) -> Kind:
    """Return the kind of one number, several, a range, or one of some words.

    Examples
    --------
    >>> kind = counts("auto")
    >>> kind.read("3"), kind.read("2,4"), kind.read("2-5"), kind.read("auto"), kind.take(3)
    ((3,), (2, 4), (2, 3, 4, 5), 'auto', (3,))
    """

    def read(text: str) -> object:
        if text.strip() in words:
            return text.strip()
        parts = "".join(text.split()).split(",")
        ends = [part.split("-") for part in parts if re.fullmatch(r"\d+(-\d+)?", part)]
        ranges = [range(int(part[0]), int(part[-1]) + 1) for part in ends]
        if len(ranges) < len(parts) or not all(ranges):
            raise ValueError
        return tuple(dict.fromkeys(chain.from_iterable(ranges)))

    should = ", ".join([*words, "a number such as 3", "a list such as 2,3 or a range such as 2-5"])
    return Kind(read=read, should=should, take=_together, write=_in_ranges)


def numbers(like: str) -> Kind:
    """Return the kind of one number or several."""
    return Kind(read=_numbers, should=f"one number or a list, such as {like}", take=_together)


def some_of(*words: str) -> Kind:
    """Return the kind of one or more of a few words.

    Examples
    --------
    >>> some_of("volume", "area").read("area,volume")
    ('area', 'volume')
    """

    def read(text: str) -> object:
        given = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        if not {*given} <= {*words}:
            raise ValueError
        return given

    return Kind(read=read, should=f"one or more of {', '.join(words)}", take=lambda given: read(_listed(given)))


FLAG = Kind(bool, read=lambda _: True)
TEXT = Kind()
NUMBER = Kind(float, read=float, should="a number")
NAMES = Kind(several=True, take=_together)
FILE, FILES = Kind(is_file=True), Kind(several=True, is_file=True, take=_together)
PATH = Kind(Path, is_file=True, read=Path, take=lambda value: None if value is None else Path(value))
LIMITS = Kind(read=_limits, should="two increasing numbers such as 0.4,0.7", take=_together)


@dataclass(frozen=True)
class Setting:
    """A setting, as described by `setting`."""

    kind: Kind
    help: str
    option: str = ""
    unset: str = ""
    label: str = ""
    resumes: Literal["same", "more", "each"] = "same"
    always: bool = False
    also: str = ""
    name: str = ""
    default: Any = None

    @property
    def parameter(self) -> str:
        """Its name in an address, and among a command's parameters."""
        return self.option.replace("-", "_")

    def read(self, text: str) -> object:
        """Return the value that a text stands for."""
        try:
            return self.kind.read(text)
        except ValueError as error:
            raise InputError(Remedy(self.name), f" should be {self.kind.should}, but got {text!r}.") from error


def setting(
    default: Any,
    kind: Kind,
    help: str,
    *,
    option: str = "",
    unset: str = "",
    label: str = "",
    resumes: Literal["same", "more", "each"] = "same",
    always: bool = False,
) -> Any:
    """Return a field of a dataclass of settings.

    Parameters
    ----------
    default, kind, help
        Its default, the values it takes, and what it does.
    option
        Its name on the command line if that differs, or two names, ``"preset,method"``.
    unset
        What happens if it is not given, in words.
    label
        Its label on the page, in a form or in the menu of a column's roles; the page does not show others.
    resumes
        Whether a resumed run must have the ``same`` value; may have ``more``, because no trained model depends on it;
        or whether ``each`` trained model records its own.
    always
        Whether a ``run.toml`` must contain it, whatever the default is.
    """
    own, _, also = option.partition(",")
    return field(default=default, metadata={"setting": Setting(kind, help, own, unset, label, resumes, always, also)})


def settings_of(settings: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass, in the order of its fields.

    Examples
    --------
    >>> from rindices.settings import SearchSettings
    >>> first = settings_of(SearchSettings)[0]
    >>> first.name, first.parameter, first.read("2-4")
    ('n_patterns', 'patterns', (2, 3, 4))
    """
    return tuple(
        replace(about, name=one.name, default=one.default, option=about.option or one.name.replace("_", "-"))
        for one in fields(settings)
        if (about := one.metadata.get("setting"))
    )


class TakesPlainValues:
    """Base of settings in which one number may stand for several, and text is read as on the command line."""

    def __post_init__(self) -> None:
        for one in settings_of(self.__class__):
            value = getattr(self, one.name)
            if isinstance(value, str) and one.kind is FLAG:
                raise InputError(Remedy(one.name), f" should be True or False, but got {value!r}.")
            if one.kind is LIMITS and value is not None:
                value = _listed(_together(value))  # checked like typed text
            object.__setattr__(self, one.name, one.kind.take(one.read(value) if isinstance(value, str) else value))


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
    # A file that happens to be named "age" must not hide the column; a long list of names cannot be a file name.
    return bool(Path(text).suffix or len(Path(text).parts) > 1) and os.path.isfile(text)


def _names_in_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The list of columns in {path} cannot be read.\nIt should be a text file with one name per line."
        ) from error
    names = tuple(dict.fromkeys(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")))
    if not names:
        raise InputError(f"The list of columns in {path} contains no names.\nIt should contain one name per line.")
    return names


def expand_names(
    wanted: Names, columns: Sequence[str], *, source: str, pattern_columns: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns that names and patterns stand for; raise if one of them matches no column.

    Parameters
    ----------
    wanted
        Column names and patterns such as ``l*``, see `wanted_names`.
    columns
        All columns of the table.
    source
        The setting that the names came from, for the message.
    pattern_columns
        The columns that a pattern may match (default: all).

    Examples
    --------
    >>> expand_names(["l*", "age"], ["age", "lHip", "lAmy"], source="features")
    ('lHip', 'lAmy', 'age')
    """
    expanded: dict[str, None] = {}
    candidates = columns if pattern_columns is None else pattern_columns
    for name in wanted_names(wanted):
        matches = [name] if name in columns else [column for column in candidates if fnmatchcase(column, name)]
        if not matches:
            what = "matches no column" if any(sign in name for sign in "*?[") else "is not a column"
            raise InputError(
                f"{name!r} (from ",
                Remedy(source),
                f") {what} in the table.{did_you_mean(name, columns)}\n"
                f"Available columns: {listed(candidates) or 'none'}.",
            )
        expanded.update(dict.fromkeys(matches))
    return tuple(expanded)


_LEAST_LEVEL, _LARGEST_LEVEL = 0.5, 0.99  # models do not store rarer scores


def check_level(level: float) -> float:
    """Return the level of an interval, which must lie between 0.5 and 0.99."""
    if not _LEAST_LEVEL <= level <= _LARGEST_LEVEL:
        raise InputError(
            Remedy("level"),
            f" should lie between {_LEAST_LEVEL} and {_LARGEST_LEVEL}, but got {level}.\nThe default is 0.95.",
        )
    return level


def check_scan_noise(noise: Sequence[float], n_patterns: Sequence[int], *, visits: bool) -> None:
    """Refuse scan noise that is impossible, not one number or one per pattern, or given without repeat visits."""
    if not noise:
        return
    if not visits:
        raise InputError(
            Remedy("scan_noise"),
            " applies only to repeated visits, but there are none.\nOmit this setting, or use a table with repeated "
            "visits and specify its visit column with ",
            Remedy("visit"),
            ".",
        )
    if wrong := [sd for sd in noise if not 0 < sd < float("inf")]:
        raise InputError(
            Remedy("scan_noise"),
            f" should be a finite positive number such as 0.04, but got {wrong[0]:g}.\n"
            "It is the standard deviation of severity across repeated scans of a person whose true severity has not "
            "changed.",
        )
    if len(noise) > 1 and {*n_patterns} != {len(noise)}:
        each = f", or one for each of {' or '.join(map(str, n_patterns))} patterns" if n_patterns else ""
        unknown = "" if n_patterns else " if the number of patterns is estimated before training"
        raise InputError(Remedy("scan_noise"), f" should be one number{each}{unknown}, but got {len(noise)} numbers.")
