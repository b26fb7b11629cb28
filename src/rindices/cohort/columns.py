"""Which columns of a table are regions: names, patterns, lists in files, and what is never a region."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.cohort.cells import MOSTLY_NUMBERS, Roster, has_numbers, share_of_numbers
from rindices.cohort.gaps import MIN_REGIONS, refuse_text
from rindices.cohort.spelling import spelled_numbers, spelling_hint
from rindices.errors import InputError, counted, did_you_mean, excluding, listed, shown

__all__ = [
    "BACKGROUND_NAMES",
    "MIN_REGIONS",
    "NON_REGION_NAMES",
    "Names",
    "check_constant",
    "choose_features",
    "expand_names",
    "is_region_name",
    "wanted_names",
    "warn_of_text",
]

Names = str | Path | Sequence[str] | None

BACKGROUND_NAMES = frozenset({"age", "sex", "gender", "site", "scanner", "icv", "tiv", "etiv", "education", "educ"})
NON_REGION_NAMES = BACKGROUND_NAMES | {"visit", "session"}
_MANY_LOST = 0.25  # of what seem to be regions: with more of them in another spelling, the others are not the brain


def is_region_name(name: str) -> bool:
    """Tell whether a column of numbers with this name is taken for a region.

    Examples
    --------
    >>> is_region_name("lHip"), is_region_name("Age"), is_region_name("Unnamed: 0")
    (True, False, False)
    """
    # A column without a name is what spreadsheets and R write for row numbers.
    return name.casefold() not in NON_REGION_NAMES and not name.startswith("Unnamed: ")


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
    names: Sequence[str], columns: Sequence[str], *, option: str, pattern_columns: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns that the names and patterns stand for, refusing one that stands for nothing.

    Parameters
    ----------
    names
        Column names and patterns such as ``l*``.
    columns
        All columns of the table.
    option
        The option that the names came from, for the message.
    pattern_columns
        The columns that a pattern may pick (default: all).

    Examples
    --------
    >>> expand_names(["l*", "age"], ["age", "lHip", "lAmy"], option="--features")
    ('lHip', 'lAmy', 'age')
    """
    found: dict[str, None] = {}
    for name in names:
        if name in columns:
            found[name] = None
            continue
        candidates = columns if pattern_columns is None else pattern_columns
        matches = [column for column in candidates if fnmatchcase(column, name)]
        if not matches:
            what = "matches no column" if any(sign in name for sign in "*?[") else "is not a column"
            raise InputError(
                f"{name!r} (from {option}) {what} of the table.{did_you_mean(name, columns)}\n"
                f"Columns that can be chosen: {listed(candidates)}."
            )
        found.update(dict.fromkeys(matches))
    return tuple(found)


def choose_features(
    frame: pd.DataFrame, roster: Roster, roles: Mapping[str, str], features: Names, exclude: Names
) -> tuple[str, ...]:
    """Return the names of the region columns.

    Parameters
    ----------
    frame
        Table from `rindices.cohort.cells.with_numbers`.
    roster
        Who sits in which row.
    roles
        Columns that have another role already, and that role (``{"age": "a covariate"}``).
    features, exclude
        Names, patterns or a file with names; without ``features`` every column of numbers is a region,
        apart from those with another role and the usual names of other things (age, sex, icv and so on).
    """
    columns = [str(name) for name in frame.columns]
    free = [name for name in columns if name not in roles]
    usual = [name for name in free if is_region_name(name)]
    left_out = expand_names(wanted_names(exclude), columns, option="--exclude", pattern_columns=free)
    wanted = wanted_names(features)
    if isinstance(features, str) and not wanted:
        raise InputError(
            f"--features names no regions, found {features!r}.\n"
            "Name them, or leave out --features to take every column of numbers."
        )
    chosen = [name for name in usual if name not in left_out and _looks_numeric(frame[name])]
    spelled = _spelled(frame, roles, left_out)
    if wanted:
        # A pattern must not lose the columns whose numbers are only written otherwise.
        meant = [name for name in usual if name in spelled or _looks_numeric(frame[name])]
        chosen = list(expand_names(wanted, columns, option="--features", pattern_columns=meant))
    for name in (*left_out, *chosen):
        if name in roles:
            option = "--exclude" if name in left_out else "--features"
            raise InputError(
                f"Column {name!r} is {roles[name]}, so it cannot be in {option} too.\nTake it out of one of the two."
            )
    chosen = [name for name in chosen if name not in left_out]
    texts = [frame[name] for name in chosen if not has_numbers(frame[name])]
    refuse_text(texts, roster, kind="region" if wanted else "taken for a region", n_regions=len(chosen))
    if len(chosen) < MIN_REGIONS:
        found = f"{len(chosen)}{': ' + listed(chosen) if chosen else ''}"
        because = "" if wanted else _lost(frame, roster, spelled)
        raise InputError(
            f"At least {MIN_REGIONS} regions are needed; found {found}.{because}\n"
            "Check --features and --exclude, and that the regions are columns of numbers."
        )
    if not wanted and len(spelled) > _MANY_LOST * (len(spelled) + len(chosen)):
        raise InputError(
            f"Of {len(spelled) + len(chosen)} columns that seem to be regions, {len(spelled)} cannot be read."
            f"{_lost(frame, roster, spelled)}\nIf they are no regions, leave them out with {excluding(list(spelled))}."
        )
    return tuple(chosen)


def warn_of_text(frame: pd.DataFrame, roles: Collection[str], exclude: Names = ()) -> tuple[str, ...]:
    """Return a sentence on columns that are no regions only because of how their numbers are written.

    Examples
    --------
    >>> warn_of_text(pd.DataFrame({"lHip": ["3,410.5", "3,520.1"], "sex": ["F", "M"]}), ())[0]
    'Left out, because they hold text: lHip. Write numbers without separators of thousands.'
    """
    excluded = wanted_names(exclude)
    left_out = [name for name in map(str, frame) if any(fnmatchcase(name, pattern) for pattern in excluded)]
    hints = _spelled(frame, roles, left_out)
    if not hints:
        return ()
    rule = (
        next(iter(hints.values())).partition(":")[0].removesuffix(".")
    )  # what is kept, as warnings are, quotes no cell
    return (f"Left out, because they hold text: {listed(hints)}. {rule}.",)


def _lost(frame: pd.DataFrame, roster: Roster, hints: Mapping[str, str]) -> str:
    """Say for a message which columns are no regions because of how their numbers are written."""
    if not hints:
        return ""
    name, hint = next(iter(hints.items()))
    cells = frame[name]
    position = next(
        (place for place, cell in enumerate(cells) if spelling_hint(str(cell)) == hint), int(cells.notna().argmax())
    )
    others = f"s {name!r} and {len(hints) - 1} more hold" if len(hints) > 1 else f" {name!r} holds"
    cell = f"{cells.iloc[position]!r} in row {roster.rows[position]}"
    return f" Column{others} text, such as {cell}.\n{hint}"


def _spelled(frame: pd.DataFrame, roles: Collection[str], left_out: Collection[str]) -> dict[str, str]:
    """Return the columns of text that were meant as regions, and how to write their numbers."""
    return {
        str(name): hint
        for name in frame.columns
        if name not in roles
        and not is_numeric_dtype(frame[name])
        and is_region_name(str(name))
        and name not in left_out
        and (hint := spelled_numbers(frame[name]))
    }


def check_constant(block: NDArray[np.float64], regions: Sequence[str], group: pd.Series) -> None:
    """Refuse regions (columns of ``block``) that do not vary among the controls."""
    controls = block[(group == "control").to_numpy()]
    spread = controls.max(axis=0) - controls.min(axis=0)
    constant = (spread <= 1e-9 * np.abs(controls).max(axis=0)).tolist()
    names = [name for name, is_constant in zip(regions, constant, strict=True) if is_constant]
    if names:
        first = list(regions).index(names[0])
        who = "everybody" if np.ptp(block[:, first]) == 0 else "every control"
        raise InputError(
            f"A region must vary among the controls, but {counted(len(names), 'region does', 'regions do')} not: "
            f"{listed(names)}.\nIn column {names[0]!r} {who} has the value {shown(float(controls[0, first]))}.\n"
            f"Leave {'it' if len(names) == 1 else 'them'} out with {excluding(names)}."
        )


def _looks_numeric(column: pd.Series) -> bool:
    """Tell whether a column holds numbers, or text that was clearly meant as numbers."""
    if has_numbers(column):
        return True
    if column.dtype != object or column.str.fullmatch(r"[+-]?0\d+").any():
        return False
    return share_of_numbers(column) >= MOSTLY_NUMBERS
