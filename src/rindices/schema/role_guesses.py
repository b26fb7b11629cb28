"""Guesses of column roles from names and values: the only place where roles are guessed.

The command line, Python and the pages all rely on it: which columns are the id, the diagnosis and covariates; which
numeric columns cannot be regions, judging by their names; and what a region measures, or what it may be instead: a
score, a total, a code. Suspects are reported, and the user decides. Relations between columns are found as well: left
and right, sums and their parts, copies in another unit.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rindices.problems import listed
from rindices.regions import MEASURES, known_columns, measure_of, pairs_of_sides, words_of
from rindices.settings import TableSettings

_MOST_PEOPLE = 2000  # who are examined
_MORE_PEOPLE = 20  # than columns: with fewer, any column is a combination of others
_LEFT_OVER = 0.01  # share of a column's sd; the best predicted of 164 real volumes retains a quarter
_SAME_COLUMN = 1 - _LEFT_OVER**2 / 2  # correlation; 1 - r² is the unexplained share of the variance
_FAR = 5.0  # times the median distance from the centre
_SAME = 0.02  # by which the weights of a sum's parts may differ


def copies_and_sums(names: Sequence[str], values: NDArray[np.float64]) -> dict[int, tuple[int, ...]]:
    """Return the columns that are sums, means or multiples of others, each with its parts, by position.

    Sums of left and right do not require more people than columns; other sums do.

    Examples
    --------
    >>> block = np.random.default_rng(0).normal(5, 1, (60, 3))
    >>> copies_and_sums(["a", "b", "c", "both"], np.column_stack([block, block[:, 0] + block[:, 2]]))
    {3: (0, 2)}
    """
    complete = values[np.isfinite(values).all(axis=1)][:_MOST_PEOPLE]
    if len(complete) < _MORE_PEOPLE or not len(names):
        return {}
    distance = np.abs(complete - np.median(complete, axis=0)).sum(axis=1)
    complete = complete[distance <= _FAR * np.median(distance)]  # people in another unit would make columns look alike
    centred = complete - complete.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    unit = centred / np.where(spread > 0, spread, np.inf)
    later, earlier = np.nonzero(np.tril(unit.T @ unit, -1) > _SAME_COLUMN)
    found: dict[int, tuple[int, ...]] = dict(zip(later.tolist(), zip(earlier.tolist()), strict=True))
    found |= {place: pair for place, pair in _sums_of_sides(names, centred, unit).items() if place not in found}
    # A sum is larger than its parts; means are not, but correlate more closely with the other columns than parts do.
    for height in (np.abs(np.median(complete, axis=0)), (unit.T @ unit).sum(axis=0)):
        by_height = np.argsort(height, kind="stable").tolist()
        order = [place for place in by_height if spread[place] and place not in found][: len(complete) - _MORE_PEOPLE]
        found |= _sums_in_order(order, centred, spread)
    return found


def _sums_in_order(
    order: Sequence[int], centred: NDArray[np.float64], spread: NDArray[np.float64]
) -> dict[int, tuple[int, ...]]:
    """Return the columns that are sums or means of others, adding one column at a time in the given order."""
    left_over = np.abs(np.diag(np.linalg.qr(centred[:, order], mode="r")))
    found, plain = dict[int, tuple[int, ...]](), list[int]()
    for place, rest in zip(order, left_over.tolist(), strict=True):
        plain.append(place)
        if rest <= _LEFT_OVER * spread[place] and len(plain) > 2:
            weights, *_ = np.linalg.lstsq(centred[:, plain[:-1]], centred[:, place])
            if sum_of := _whole_and_parts(weights):
                whole, parts = sum_of
                found[plain[whole]] = tuple(plain[part] for part in parts)
                plain.pop(whole)
    return found


def _whole_and_parts(weights: NDArray[np.floating]) -> tuple[int, list[int]] | None:
    """Return the positions of a sum or mean and of its parts, given the weights that reproduce the next column.

    The whole is that next column, with equal weights; or a weighted one: a mean is smaller than its largest part, which
    is n times the mean less the other parts. Other combinations, such as shares that add up to 1, do not count.
    """
    largest, last = int(weights.argmax()), len(weights)
    is_part = weights > weights[largest] / 2
    if is_part.sum() > 1:
        alike = np.abs(np.where(is_part, weights - weights[largest], weights)).max() < _SAME * weights[largest]
        return (last, np.flatnonzero(is_part).tolist()) if alike else None
    is_part = np.abs(weights + 1) < _SAME
    neither = ~is_part & (np.arange(last) != largest)
    if weights[largest] < 2 - _SAME or not is_part.any() or np.abs(weights[neither]).max(initial=0.0) > _SAME:
        return None
    return largest, [*np.flatnonzero(is_part).tolist(), last]


def _sums_of_sides(
    names: Sequence[str], centred: NDArray[np.float64], unit: NDArray[np.float64]
) -> dict[int, tuple[int, ...]]:
    """Return the columns that are sums or means of a left and a right one."""
    place_of, found = {name: place for place, name in enumerate(names)}, dict[int, tuple[int, ...]]()
    for left, right in pairs_of_sides(names):
        pair = place_of[left], place_of[right]
        both = centred[:, pair[0]] + centred[:, pair[1]]
        alike = np.flatnonzero(unit.T @ both > _SAME_COLUMN * np.linalg.norm(both)).tolist()
        found.update(dict.fromkeys([place for place in alike if place not in pair], pair))
    return found


# Usual names of columns, by setting.
USUAL_NAMES = {
    "id": (
        *("participant_id", "subject_id", "src_subject_id", "participant", "subject", "subjid", "ptid", "mrid", "rid"),
        *("eid", "subjectkey", "sub", "id"),
    ),
    "diagnosis": ("diagnosis", "dx", "diag", "group", "label"),
    "visit": ("visit", "session", "session_id", "viscode", "eventname", "timepoint", "wave"),
    "site": ("site", "scanner", "centre", "center"),
    "covariates": ("age", "sex", "gender"),
}
SEX_NAMES = USUAL_NAMES["covariates"][1:]  # numeric columns have two codes
# Columns in which groups should not differ, even if they are not covariates; and all names that rule out a region.
BACKGROUND_NAMES = frozenset(
    {*USUAL_NAMES["site"], *USUAL_NAMES["covariates"], "icv", "tiv", "etiv", "education", "educ"}
)
_NOT_REGIONS = BACKGROUND_NAMES.union(*USUAL_NAMES.values())
# Headings of the id column in FreeSurfer's tables: Measure:volume, lh.aparc.thickness, rh.aparc.a2009s.area.
_STATS_TABLE = re.compile(r"measure:\w+|[lr]h\.aparc[\w.]*\.\w+")
Suspicion = Literal[
    "", "total", "copy", "head size", "quality measure", "age or time", "personal characteristic", "score", "code"
]
# Common clinical columns, which are numeric but not brain regions.
_CLINICAL = re.compile(
    r"(mmse|mmst|moca|demtect|cdr|adas|updrs|ados|srs|panss|hamd|madrs|bdi|bmi|weight|height|apoe|[fvp]?iq)([_ .-].*)?"
)
_SIDE_WORDS = frozenset({"l", "r", "lh", "rh", "left", "right", "hemisphere", "both"})
# A name made up only of these spans several regions: TotalGrayVol, BrainSegVolNotVent, lh_MeanThickness.
_WHOLE = re.compile(
    "tot|total|whole|sum|global|brain|seg|not|vent|without|gr[ae]y|white|matter|[gw]m|csf|tissue|parenchyma|cortex|cortical|"
    "sub|cort|subcortical|cerebral|cerebrum|supra|tentorial|supratentorial|surf|surface|mean|average|mask|vox|mm|"
    "tbv|tgv|tgm|twm"
)
HEAD_SIZE = re.compile("icv|tiv|etiv|intracranial")
_NAMED: dict[Suspicion, re.Pattern[str]] = {
    "head size": HEAD_SIZE,
    "quality measure": re.compile("qc|qa|snr|cnr|cjv|efc|fber|euler|holes?|defects?|motion|fd|iqr|inu|rating|quality"),
    "age or time": re.compile("ages?|years?|months?|days|date|dob|yob|birth|onset|duration"),
    "personal characteristic": re.compile("sex|gender|education|educ|edu|handedness|race|ethnicity"),
    "score": re.compile("scores?|scale|subscale|questionnaire"),
}
# Left out unless requested, whatever else the name suggests.
NEVER_REGIONS = ("head size", "age or time", "personal characteristic", "score", "quality measure")
_DEVIATIONS = frozenset({"zscore", "zscores", "wscore", "wscores"})  # of regions, as at the end of lh_insula_z_score
_SHARE_OF_VALUES = 0.25  # share of distinct values; with fewer, a column holds a score, whose gaps must not be imputed
_FEW_VALUES = 20  # distinct ones, each shared by at least five people on average; measures vary more
_PEOPLE_A_VALUE = 5
_FEWEST_REGIONS = 10  # with fewer, one region may well be half of the total


def guessed_settings(columns: Sequence[str]) -> TableSettings:
    """Return settings with the column roles guessed from names alone.

    Examples
    --------
    >>> guessed = guessed_settings(["subject_id", "DX", "age", "lHip"])
    >>> guessed.id, guessed.diagnosis, guessed.covariates
    ('subject_id', 'DX', ('age',))
    """
    settings = TableSettings()
    usual = {setting: usual_columns(columns, setting) for setting in USUAL_NAMES}
    guessed = {
        setting: names if setting == "covariates" else names[0]
        for setting, names in usual.items()
        if names and getattr(settings, setting) not in columns
    }
    return replace(settings, **guessed)  # type: ignore[arg-type]


def usual_columns(columns: Iterable[str], setting: str) -> tuple[str, ...]:
    """Return the columns with a usual name for a role, the most usual first; ids may be those of FreeSurfer's tables.

    Examples
    --------
    >>> usual_columns(["Sex", "lHip", "AGE"], "covariates")
    ('AGE', 'Sex')
    """
    by_name = {str(name).casefold(): str(name) for name in reversed([*columns])}
    tables = [by_name[name] for name in reversed(by_name) if setting == "id" and _STATS_TABLE.fullmatch(name)]
    return (*(by_name[name] for name in USUAL_NAMES[setting] if name in by_name), *tables)


def id_by_name(columns: Sequence[str]) -> str | None:
    """Return the column with the most usual name for ids; None if there is none.

    Examples
    --------
    >>> id_by_name(["MRID", "DL_MUSE_Volume_47"]), id_by_name(["lh.aparc.thickness", "lh_insula_thickness"])
    ('MRID', 'lh.aparc.thickness')
    """
    return next(iter(usual_columns(columns, "id")), None)


def is_region_name(name: str) -> bool:
    """Return whether a numeric column with this name is taken for a region.

    Examples
    --------
    >>> is_region_name("lHip"), is_region_name("Age"), is_region_name("Unnamed: 0")
    (True, False, False)
    """
    # Spreadsheets and R write row numbers as a column without a name.
    plain = name.casefold()
    return plain not in _NOT_REGIONS and not name.startswith("Unnamed: ") and not _STATS_TABLE.fullmatch(plain)


def looks_like_score(name: str, values: NDArray[np.float64], share: float = _SHARE_OF_VALUES) -> bool:
    """Return whether a numeric column without gaps looks like a score, by its name or its few distinct values.

    Examples
    --------
    >>> looks_like_score("MMSE", np.linspace(20, 30, 50)), looks_like_score("lHip", np.linspace(2, 4, 50))
    (True, False)
    """
    return bool(_CLINICAL.fullmatch(name.casefold())) or len(np.unique(values)) < share * len(values)


class Kind(NamedTuple):
    """What a column measures, whether it may not be a region, and why.

    Examples
    --------
    >>> kind_of("lh_G_cuneus_volume"), kind_of("EstimatedTotalIntraCranialVol").suspicion, kind_of("age_at_scan").why
    (Kind(measure='volume', suspicion='', why=''), 'head size', 'its name')
    """

    measure: str
    suspicion: Suspicion = ""
    why: str = ""


def is_code(values: NDArray[np.float64]) -> bool:
    """Return whether there are so few distinct values that they are codes or counts."""
    return 0 < len(np.unique(values)) <= min(_FEW_VALUES, len(values) // _PEOPLE_A_VALUE)


def kind_of(name: str) -> Kind:
    """Classify a column by its name."""
    words = words_of(name)
    terms = [*words, *(first + second for first, second in pairwise(words))]
    measure = measure_of(words) or "measure"
    if _CLINICAL.fullmatch(name.casefold()):
        return Kind(measure, "score", "its name")
    for suspicion, telling in _NAMED.items():
        if any(map(telling.fullmatch, terms)) and not (suspicion == "score" and _DEVIATIONS & {*terms}):
            return Kind(measure, suspicion, "its name")
    no_sides = [word for word in words if word not in _SIDE_WORDS]
    whole = bool(no_sides) and all(word in MEASURES or _WHOLE.fullmatch(word) for word in no_sides)
    return Kind(measure, "total" if whole else "", "its name" if whole else "")


def kinds_of(names: Sequence[str], values: NDArray[np.float64]) -> list[Kind]:
    """Classify columns by their names or, if these are uninformative, by their values (people × columns).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> regions = rng.normal(5, 1, (200, 12))
    >>> names = [*(f"roi{number}" for number in range(12)), "everything", "grade"]
    >>> block = np.column_stack([regions, regions.sum(axis=1), rng.integers(4, size=200)])
    >>> [(name, kind.suspicion) for name, kind in zip(names, kinds_of(names, block)) if kind.suspicion]
    [('everything', 'total'), ('grade', 'code')]
    """
    kinds = _kinds_by_name(names)
    measured = np.isfinite(values)
    medians = np.array(
        [np.median(column[of]) if of.any() else 0.0 for column, of in zip(values.T, measured.T, strict=True)]
    )
    plain = np.array([not kind.suspicion for kind in kinds], bool)
    thickness = np.array([kind.measure == "thickness" for kind in kinds], bool)
    for place in np.flatnonzero(plain).tolist():
        of_people = values[measured[:, place], place]
        alike = plain & (thickness == thickness[place])
        if is_code(of_people):
            kinds[place] = kinds[place]._replace(
                suspicion="code", why=f"only {len(np.unique(of_people))} different values"
            )
        elif alike.sum() >= _FEWEST_REGIONS and 3 * medians[place] > np.abs(medians[alike]).sum():
            kinds[place] = kinds[place]._replace(
                suspicion="total", why="its size, more than half that of all other regions combined"
            )
    for place, parts in copies_and_sums(names, values).items():
        if not kinds[place].suspicion:
            of = f"its values, which equal those of {listed((names[part] for part in parts), 2, ' + ')}"
            kinds[place] = kinds[place]._replace(suspicion="total" if len(parts) > 1 else "copy", why=of)
    return kinds


def _kinds_by_name(names: Sequence[str]) -> list[Kind]:
    """Classify columns by name and by lists of known columns: aseg's csf is not a sum, ADNI's ST24TA is a thickness."""
    kinds = [kind_of(name) for name in names]
    known = {name: one for name, one in known_columns(names).items() if one.kind == "region"}
    told = {name: one.measure for name, one in known.items() if one.measure}
    unsaid = {name for name, kind in zip(names, kinds, strict=True) if kind.measure == "measure"}
    if 2 * len(unsaid & {*told}) <= len(unsaid):  # one or two names may come from another study
        told = {}
    return [
        Kind(told.get(name, kind.measure), *(("", "") if name in known and kind.suspicion == "total" else kind[1:]))
        for name, kind in zip(names, kinds, strict=True)
    ]


_PLURALS: dict[str, str] = {
    "volume": "volumes",
    "thickness": "thicknesses",
    "area": "areas",
    "measure": "regions",  # of unknown kind
    "total": "totals",
    "copy": "copies of other columns",
    "head size": "head sizes",
    "quality measure": "quality measures",
    "age or time": "ages or times",
    "personal characteristic": "personal characteristics",
    "score": "scores",
    "code": "codes",
}


def grouped(names: Sequence[str], kinds: Sequence[Kind]) -> dict[str, list[str]]:
    """Group columns by what they measure, and suspects by what they may be instead; the keys are plurals."""
    groups: dict[str, list[str]] = {}
    for name, kind in sorted(zip(names, kinds, strict=True), key=lambda pair: bool(pair[1].suspicion)):
        groups.setdefault(_PLURALS[kind.suspicion or kind.measure], []).append(name)
    return groups
