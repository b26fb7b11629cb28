"""Which numeric columns are regions: those requested or, by default, those that are neither set aside nor strangers.

Unless regions are named, a column is one if its name or its similarity to other columns suggests so. Columns that are
certainly not regions are set aside with a message; strangers are left for the user to identify.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, listed, shown
from rindices.regions import KnownColumn, known_columns, pairs_of_sides, words_of
from rindices.schema import MIN_REGIONS
from rindices.schema.cells import LARGEST, meant_as_numbers, numbers_of
from rindices.schema.role_guesses import (
    NEVER_REGIONS,
    copies_and_sums,
    is_code,
    is_region_name,
    kind_of,
    looks_like_score,
)
from rindices.settings import TableSettings
from rindices.value_kinds import expand_names, wanted_names

_MUSE = "nichart_dlmuse"  # whose tables contain all regions besides their sums
_MUSE_SUM = "a sum of MUSE's regions"
_FAMILY = 4  # columns whose names differ only in a number
_COMPANY = 10  # columns that are regions by name; with at least so many, all others have to resemble them
_TIED = 0.5  # correlation with a region; each of 128 regions in healthy adults has 0.55 or more with its closest match
_CHANCE = 4.0  # times the sd of a chance correlation
_FIELD = re.compile(r"(?:[fx]\.?|p)?\d{2,5}[-._]i?\d+(?:[._]a?\d+)?", re.IGNORECASE)  # field numbers of UK Biobank
# The setting for which a column that is not a region can be used.
_USES = {"age": "covariates", "sex": "covariates", "site": "site", "head size": "proportion", "visit": "visit"}
_WORDS = re.compile(r"rois?|regions?|muse")
_QUALITY = "quality measure"  # by name; if most columns have such names (fd, qa of tracts), it is what was measured


class Candidates(NamedTuple):
    """Numeric columns, sorted: regions, columns set aside with the reason, strangers, and messages about them."""

    regions: tuple[str, ...]
    aside: dict[str, str]
    strangers: tuple[str, ...]
    notes: list[Text]

    def problems(self) -> list[Problem]:
        """Report columns that may not be regions, with the remedies."""
        if not self.strangers:
            return []
        them, theirs = (
            ("they are regions", "the names nor the")
            if len(self.strangers) > 1
            else ("it is a region", "the name nor the")
        )
        like = f", unlike those of the other {len(self.regions)} numeric columns" if self.regions else ""
        what = (
            f"Neither {theirs} values of {listed(self.strangers, 12)} show that {them}{like}. Ages, scores, counts and "
            "scan numbers must not be used for training."
        )
        ways = [Message(f"if {them}, name all regions with ", Remedy("features", self.regions + self.strangers))]
        if not self.regions:
            ways.append(Message("join the table that contains the regions with ", Remedy("join", Blank("FILE"))))
        return [Problem(what, tuple(ways), self.strangers)]


def choose_regions(
    table: pd.DataFrame, taken: Mapping[str, str], settings: TableSettings
) -> tuple[tuple[str, ...], Candidates]:
    """Return the names of the region columns: those requested, or what `sort_candidates` takes for regions.

    Columns of numbers in an unusual format count, so that they are refused with a remedy rather than lost.

    Parameters
    ----------
    table
        Columns of numbers or text.
    taken
        Columns that already have another role, and that role (``{"age": "a covariate"}``).
    settings
        Specifies what is requested (`features`) and left out (`exclude`).
    """
    columns = [str(name) for name in table.columns]
    free = [name for name in columns if name not in taken]
    left_out = expand_names(settings.exclude, columns, source="exclude", pattern_columns=free)
    meant = [name for name in free if is_region_name(name) and meant_as_numbers(table[name])]
    wanted = wanted_names(settings.features)
    if isinstance(settings.features, str) and not wanted:
        raise InputError(
            Remedy("features"),
            f" should name regions, but got {settings.features!r}.\nName the regions, or omit ",
            Remedy("features"),
            " to use every numeric column.",
        )
    chosen = (
        expand_names(settings.features, columns, source="features", pattern_columns=meant) if wanted else tuple(meant)
    )
    for name in (*left_out, *chosen):
        if name in taken:
            raise InputError(
                f"Column {name!r} is {taken[name]}, so it cannot also be named with ",
                Remedy("exclude" if name in left_out else "features"),
                ".\nChoose one or the other.",
            )
    regions = tuple(name for name in chosen if name not in left_out)
    sorted_out = Candidates(regions, {}, (), []) if wanted else sort_candidates(table, regions)
    regions = tuple(name for name in regions if name not in sorted_out.aside)
    if len(regions) < MIN_REGIONS:
        few = f"{len(regions)}{': ' + listed(regions) if regions else ''}"
        aside = listed(f"{name} ({why})" for name, why in sorted_out.aside.items())
        raise InputError(
            f"At least {MIN_REGIONS} regions are needed, but the table has {few}.",
            f" These columns do not count as regions: {aside}." if aside else "",
            "\nCheck ",
            Remedy("features"),
            " and ",
            Remedy("exclude"),
            ", and make sure that the regions are numeric columns; to join regions from another table, use ",
            Remedy("join", Blank("FILE")),
            ".",
        )
    return regions, sorted_out


def sort_candidates(table: pd.DataFrame, names: Sequence[str]) -> Candidates:
    """Sort the columns of a table that might be regions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(5, 1, (60, 12)), columns=[f"{side}{n}" for n in "abcdef" for side in "lr"])
    >>> table = table.assign(scan=np.arange(60) + 7000, eTIV=1500.0)
    >>> sorted_out = sort_candidates(table, list(table))
    >>> sorted_out.strangers, sorted_out.aside
    (('scan',), {'eTIV': 'head size (estimated intracranial volume)'})
    """
    known = known_columns(map(str, table.columns))
    aside = {name: why for name in names if (why := _no_region(name, known.get(name)))}
    if (qualities := [*aside.values()].count(_QUALITY)) >= _COMPANY and 2 * qualities > len(names):
        aside = {name: why for name, why in aside.items() if why != _QUALITY}
    numbers = pd.DataFrame({name: numbers_of(table[name]) for name in names if name not in aside}, range(len(table)))
    finite = numbers.where(np.isfinite(numbers))
    is_constant = (finite.max() - finite.min() <= 1e-9 * finite.abs().max()) & (len(table) > 1)
    constant = {name: f"always {shown(float(finite[name].min()))}" for name in numbers.columns[is_constant]}
    totals = _totals(numbers.drop(columns=list(constant)), known)
    others = numbers.drop(columns=[*constant, *totals])
    strangers = _unidentified(others, {name for name in others if name in known})
    regions = tuple(str(name) for name in others if name not in strangers)
    computed = Message(
        f"Columns computed from others are excluded: {_with_reasons(totals)}. To include them, name all regions with ",
        Remedy("features"),
        ".",
    )
    notes: list[Text] = [
        *_notes(aside, known),
        *([f"Constant columns are excluded: {_with_reasons(constant)}."] if constant else []),
        *([computed] if totals else []),
    ]
    return Candidates(regions, aside | constant | totals, strangers, notes)


def _totals(numbers: pd.DataFrame, known: Mapping[str, KnownColumn]) -> dict[str, str]:
    """Return the columns computed from others, and how that is known: by values, or by name if there are regions."""
    by_name = {
        name: "a total, judging by its name"
        for name in map(str, numbers)
        if (known[name].kind == "total" if name in known else kind_of(name).suspicion == "total")
    }
    if numbers.shape[1] - len(by_name) < _COMPANY:
        by_name = {}
    left = [str(name) for name in numbers if name not in by_name]
    sums = {
        left[place]: f"{'the sum or mean' if len(parts) > 1 else 'a copy'} of {listed((left[k] for k in parts), 2)}"
        for place, parts in copies_and_sums(left, numbers[left].to_numpy()).items()
    }
    return by_name | sums


def _with_reasons(columns: Mapping[str, str]) -> str:
    """Return columns with the reasons why they are left out: ``a, b (always 0); c (a copy of d)``."""
    reasons = dict.fromkeys(columns.values())
    return listed((f"{listed(name for name in columns if columns[name] == why)} ({why})" for why in reasons), 4, "; ")


def _no_region(name: str, known: KnownColumn | None) -> str:
    """Return why a name is certainly not that of a region; empty if it may be."""
    if known is not None and known.kind == "total" and known.source == _MUSE:
        return _MUSE_SUM
    if known is not None and known.kind not in ("region", "total"):
        return (
            f"{known.kind} ({known.title})"
            if known.title not in ("", known.kind) and known.kind != "spread"
            else known.kind
        )
    told = kind_of(name).suspicion
    return told if known is None and told in NEVER_REGIONS else ""


def _notes(aside: dict[str, str], known: dict[str, KnownColumn]) -> list[Text]:
    """Report which columns are left out by name, and what they can be used for."""
    kinds = {name: known[name].kind if name in known and why != _MUSE_SUM else why for name, why in aside.items()}
    notes: list[Text] = [
        Message(
            f"{name} is the {kind}, not a region. To use it, name it with ",
            Remedy(_USES[kind], [name] if _USES[kind] == "covariates" else name),
            ".",
        )
        for name, kind in kinds.items()
        if kind in _USES
    ]
    for why in dict.fromkeys(kind for kind in kinds.values() if kind not in _USES):
        names = [name for name, kind in kinds.items() if kind == why]
        its, are, it, a_score, a_region = (
            ("its name", "is not a region", "it", "a clinical score", "a region")
            if len(names) == 1
            else ("their names", "are not regions", "them", "clinical scores", "regions")
        )
        left_out = f"Judging by {its}, {listed(names, 3)} {are} ({why})."
        use = (f" Use {it} as {a_score} with ", Remedy("clinical", names), ".") if why == "score" else ()
        back = (f" To use {it} as {a_region}, name all regions with ", Remedy("features"), ".")
        notes.append(Message(left_out, *use, *(back if why in ("score", _QUALITY) else ())))
        if why == _MUSE_SUM:
            notes.append(
                Message(
                    "To compute values for the 72 regions used in the authors' models, use ",
                    Remedy("features", "muse72"),
                    ".",
                )
            )
    return notes


def _unidentified(numbers: pd.DataFrame, by_name: set[str]) -> tuple[str, ...]:
    """Return the columns that neither their names nor their values identify as regions."""
    names, finite = [str(name) for name in numbers], numbers.where(numbers.abs() <= LARGEST)
    measured = {
        name for name in names if kind_of(name).measure != "measure" or any(map(_WORDS.fullmatch, words_of(name)))
    }
    by_name = by_name | measured | {name for pair in pairs_of_sides(names) for name in pair}
    families = _families(names)
    codes = [is_code(finite[name].dropna().to_numpy()) for name in names]
    suspected = np.array([kind_of(name).suspicion == "total" for name in names], bool)  # which a warning covers
    known = np.array(
        [name in by_name or (name in families and not code) for name, code in zip(names, codes, strict=True)], bool
    )
    company = known & ~suspected
    open_ = np.flatnonzero(~known & ~suspected).tolist()
    filled = finite.fillna(finite.median()).fillna(0.0).to_numpy()
    whole = (filled == np.rint(filled)).all(axis=0)
    among_named = company.sum() >= max(_COMPANY, len(names) / 2)
    odd = among_named | (whole & (2 * whole.sum() < len(names)))
    apart = closest_ties(filled, company if among_named else ~whole, open_) < max(
        _TIED, _CHANCE / np.sqrt(len(numbers))
    )
    return tuple(
        names[place]
        for place, is_apart in zip(open_, apart.tolist(), strict=True)
        if codes[place]
        or (is_apart and odd[place])
        or (whole[place] and looks_like_score(names[place], filled[:, place]))
    )


def closest_ties(values: NDArray[np.float64], others: NDArray[np.bool_], places: Sequence[int]) -> NDArray[np.float64]:
    """Return the largest correlation of each column in `places` with any other of `others`; 0 if none is positive.

    Regions of a brain covary, even one that a disease changes a great deal; a score covaries with none of them.
    """
    centred = values - values.mean(axis=0)
    sizes = np.sqrt((centred**2).sum(axis=0))
    centred /= np.where(sizes > 0, sizes, np.inf)
    correlations = centred[:, places].T @ centred
    apart = ~others | (np.array(places)[:, None] == np.arange(len(others)))
    return np.where(apart, 0.0, correlations).max(axis=1, initial=0.0)


def _families(names: Sequence[str]) -> set[str]:
    """Return the names that differ from several others only in a number: roi1, roi2 and so on."""
    stems = {name: re.sub(r"\d+", "#", name) for name in names if re.search(r"\d", name) and not _FIELD.fullmatch(name)}
    sizes = Counter(stems.values())
    return {name for name, stem in stems.items() if sizes[stem] >= _FAMILY}


def why_no_region(name: str, column: pd.Series, taken: Mapping[str, str], settings: TableSettings) -> Text:
    """Return why a column has no role."""
    reasons: tuple[tuple[bool, Text], ...] = (
        (bool(column.isna().all()), "no values"),
        (name in taken, taken.get(name, "")),
        (not is_region_name(name), "usually the name of something other than a region"),
        (not meant_as_numbers(column), "text, not numbers"),
        (settings.features is not None, Message("not named by ", Remedy("features"))),
    )
    return next((why for applies, why in reasons if applies), Message("excluded with ", Remedy("exclude")))
