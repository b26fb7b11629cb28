"""Which column plays which part: names and patterns become columns, none has two parts, and the rest are regions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.groups import group_separation
from rindices.errors import InputError, counted, did_you_mean, listed, setting, shown
from rindices.schema.cells import has_numbers, meant_as_numbers, text_of
from rindices.schema.fields import MIN_REGIONS
from rindices.settings import Correction, Names, TableSettings

BACKGROUND_NAMES = frozenset({"age", "sex", "gender", "site", "scanner", "icv", "tiv", "etiv", "education", "educ"})
NON_REGION_NAMES = BACKGROUND_NAMES | {"visit", "session"}
_MANY_REGIONS = 1000
_DIFFERENT = 0.5  # measures differ: where less than this share of the values do, they may be scores
_MOST_SCORES = 12  # of the columns with gaps; where there are more, they are regions
_MANY_GAPS = 0.1  # share of the people; who was scanned has nearly all regions
# Usual clinical columns, which are numbers but no brain regions.
_CLINICAL = re.compile(
    r"(mmse|mmst|moca|demtect|cdr|adas|updrs|ados|srs|panss|hamd|madrs|bdi|bmi|weight|height|apoe|[fvp]?iq)([_ .-].*)?"
)
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
    return tuple(Path(str(file).strip()) for file in several if str(file).strip())


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


def is_region_name(name: str) -> bool:
    """Tell whether a column of numbers with this name is taken for a region.

    Examples
    --------
    >>> is_region_name("lHip"), is_region_name("Age"), is_region_name("Unnamed: 0")
    (True, False, False)
    """
    # A column without a name is what spreadsheets and R write for row numbers.
    return name.casefold() not in NON_REGION_NAMES and not name.startswith("Unnamed: ")


def choose_regions(table: pd.DataFrame, taken: Mapping[str, str], settings: TableSettings) -> tuple[str, ...]:
    """Return the names of the region columns: those asked for, or every column of numbers without another part.

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
    meant = [name for name in free if is_region_name(name) and _meant(table[name])]
    wanted = wanted_names(settings.features)
    if isinstance(settings.features, str) and not wanted:
        raise InputError(
            f"{setting('features')} names no regions, found {settings.features!r}.\n"
            f"Name them, or leave out {setting('features')} to take every column of numbers."
        )
    chosen = expand_names(wanted, columns, source="features", pattern_columns=meant) if wanted else tuple(meant)
    for name in (*left_out, *chosen):
        if name in taken:
            told = setting("exclude" if name in left_out else "features")
            raise InputError(
                f"Column {name!r} is {taken[name]}, so it cannot be in {told} too.\nTake it out of one of the two."
            )
    regions = tuple(name for name in chosen if name not in left_out)
    if len(regions) < MIN_REGIONS:
        found = f"{len(regions)}{': ' + listed(regions) if regions else ''}"
        raise InputError(
            f"At least {MIN_REGIONS} regions are needed; found {found}.\n"
            f"Check {setting('features')} and {setting('exclude')}, and that the regions are columns of numbers."
        )
    return regions


def _meant(column: pd.Series) -> bool:
    return has_numbers(column) or (column.dtype.kind != "f" and meant_as_numbers(text_of(column)))


def check_constant(block: NDArray[np.float64], regions: Sequence[str], controls: NDArray[np.bool_]) -> None:
    """Refuse regions (columns of ``block``) that do not vary among the controls."""
    values = block[controls]
    constant = np.ptp(values, axis=0) <= 1e-9 * np.abs(values).max(axis=0)
    names = [name for name, is_constant in zip(regions, constant.tolist(), strict=True) if is_constant]
    if names:
        first = list(regions).index(names[0])
        who = "everybody" if np.ptp(block[:, first]) == 0 else "every control"
        raise InputError(
            f"A region must vary among the controls, but {counted(len(names), 'region does', 'regions do')} not: "
            f"{listed(names)}.\nIn column {names[0]!r} {who} has the value {shown(float(values[0, first]))}.\n"
            f"Leave {'it' if len(names) == 1 else 'them'} out with {setting('exclude', names)}."
        )


def possible_scores(block: NDArray[np.float64], regions: Sequence[str], with_gaps: Collection[str]) -> list[str]:
    """Return those of the columns with gaps that may be scores: by many gaps, few different values, or a usual name.

    Examples
    --------
    >>> possible_scores(np.array([[29.0], [np.nan], [30.0], [29.0]]), ["MMST"], ["MMST"])
    ['MMST']
    """
    found: list[str] = []
    for name in with_gaps if len(with_gaps) <= _MOST_SCORES else ():
        values = block[:, list(regions).index(name)]
        known = values[~np.isnan(values)]
        few = len(np.unique(known)) < _DIFFERENT * len(known)
        if few or len(known) < (1 - _MANY_GAPS) * len(block) or _CLINICAL.fullmatch(name.casefold()):
            found.append(name)
    return found


def region_warnings(
    block: NDArray[np.float64], regions: Sequence[str], controls: NDArray[np.bool_], patients: NDArray[np.bool_]
) -> list[str]:
    """Warn of regions that look like clinical scores, and of more regions than the method is meant for."""
    clinical = [name for name in regions if _CLINICAL.fullmatch(name.casefold())]
    # Where half the patients lie below the controls' 80 % quantile, the area under the curve is at most 0.9.
    low, high = np.quantile(block[controls], [0.2, 0.8], axis=0)
    middle = np.median(block[patients], axis=0)
    telling = [
        regions[place]
        for place in np.flatnonzero((middle > high) | (middle < low)).tolist()
        if regions[place] not in clinical and group_separation(block[controls, place], block[patients, place])
    ]
    warnings = []
    if clinical:
        warnings.append(
            f"Taken for regions, but named like clinical scores: {listed(clinical)}. Name them with "
            f"{setting('clinical')}, or leave them out with {setting('exclude')}?"
        )
    if telling:
        warnings.append(
            f"These nearly tell controls and patients apart by themselves: {listed(telling)}. Are they regions? "
            f"If not, leave them out with {setting('exclude')}."
        )
    if len(regions) > _MANY_REGIONS:
        warnings.append(
            f"{len(regions):,} regions are many: time and memory grow with their number, and the method is meant for "
            f"70 to 200. Choose regions of an atlas with {setting('features')}."
        )
    return warnings
