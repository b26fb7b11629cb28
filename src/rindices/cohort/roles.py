"""Which column plays which part: names, patterns and lists in files become columns, and none has two parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rindices.errors import InputError, did_you_mean, listed, setting
from rindices.settings import Correction, Names, TableSettings

__all__ = ["Roles", "assign_roles", "correction_of", "expand_names", "paths_of", "wanted_names"]

_SETTINGS = {
    "the people's id": "id",
    "the diagnosis": "diagnosis",
    "the visit": "visit",
    "the site": "site",
    "a covariate": "covariates",
    "a clinical score": "clinical",
}


def wanted_names(wanted: Names) -> tuple[str, ...]:
    """Return the names asked for: a sequence, comma-separated text, or a file with one name per line.

    A file is given as ``@file`` or as the path of an existing file; empty lines and comments (#) are skipped.

    Examples
    --------
    >>> wanted_names("lHip, rHip"), wanted_names(["l*"]), wanted_names(None)
    (('lHip', 'rHip'), ('l*',), ())
    """
    if wanted is None:
        return ()
    if isinstance(wanted, Path):
        return _names_in_file(wanted)
    if not isinstance(wanted, str):
        names = [name for item in wanted for name in (wanted_names(item) if item.startswith("@") else (item.strip(),))]
    elif wanted.startswith("@"):
        return _names_in_file(Path(wanted[1:]))
    elif _is_file(wanted):
        return _names_in_file(Path(wanted))
    else:
        names = [name.strip() for name in wanted.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def paths_of(files: Names) -> tuple[Path, ...]:
    """Return the files that are named: one, several separated by commas, or a sequence."""
    several = files.split(",") if isinstance(files, str) else [files] if isinstance(files, Path) else files or ()
    return tuple(Path(str(file).strip()) for file in several)


def _is_file(text: str) -> bool:
    path = Path(text)
    if not path.suffix and len(path.parts) < 2:
        return False  # a file that happens to be called "age" must not hide the column
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long list of names is no possible file name
        return False


def _names_in_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The list of columns {path} cannot be read.\nExpected a text file with one name per line."
        ) from error
    names = tuple(dict.fromkeys(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")))
    if not names:
        raise InputError(f"The list of columns {path} has no names in it.\nExpected one name per line.")
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
    found: dict[str, None] = {}
    candidates = columns if pattern_columns is None else pattern_columns
    for name in names:
        matches = [name] if name in columns else [column for column in candidates if fnmatchcase(column, name)]
        if not matches:
            what = "matches no column" if any(sign in name for sign in "*?[") else "is not a column"
            raise InputError(
                f"{name!r} (from {setting(source)}) {what} of the table.{did_you_mean(name, columns)}\n"
                f"Columns that can be chosen: {listed(candidates)}."
            )
        found.update(dict.fromkeys(matches))
    return tuple(found)


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
                f"{setting('interactions')} should be pairs of covariates such as age:sex, found {text!r}."
            )
        pairs.append((first, second))
    correction = Correction(wanted_names(settings.smooth), tuple(pairs), settings.proportion, settings.site)
    return None if correction == Correction() else correction


@dataclass(frozen=True)
class Roles:
    """The columns that have a part other than region.

    Attributes
    ----------
    parts
        These columns, and the part of each in words.
    covariates, clinical
        Their names; the site is the last covariate.
    """

    parts: dict[str, str]
    covariates: tuple[str, ...]
    clinical: tuple[str, ...]


def assign_roles(columns: Sequence[str], settings: TableSettings) -> Roles:
    """Give each column its part, refusing columns with two.

    Covariates that only the correction names are covariates, too, and the site may be named as one.
    """
    correction = correction_of(settings) or Correction()
    pairs = [name for pair in correction.interactions for name in pair]
    named = [*wanted_names(settings.covariates), *correction.smooth, *pairs]
    named += [name for name in (settings.proportion, settings.site) if name is not None]
    covariates = tuple(dict.fromkeys(named))
    given = [(settings.id, "the people's id"), (settings.diagnosis, "the diagnosis")]
    given += [] if settings.visit is None else [(settings.visit, "the visit")]
    given += [(name, "the site" if name == settings.site else "a covariate") for name in covariates]
    free = [name for name in columns if name not in {name for name, _ in given}]
    scores = expand_names(wanted_names(settings.clinical), columns, source="clinical", pattern_columns=free)
    parts: dict[str, str] = {}
    for name, part in (*given, *((name, "a clinical score") for name in scores)):
        if name in parts:
            table = " If it comes from a table of scores, take it out there." if part == "a clinical score" else ""
            raise InputError(
                f"Column {name!r} is {parts[name]}, so it cannot be {part} too.\n"
                f"Name another column with {setting(_SETTINGS[part])}.{table}"
            )
        parts[name] = part
    return Roles(parts, covariates, scores)
