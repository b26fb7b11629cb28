"""Which columns of numbers are regions, where nobody named them: the plain ones, those set aside, and the strangers.

A column is a region if its name or its company says so. What is certainly none is set aside with a sentence; a stranger
is for whoever has the table to name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Message, Problem, Remedy, Text, counted, listed, shown
from rindices.schema.cells import numbers_of
from rindices.schema.column_relations import pairs_of_sides
from rindices.schema.role_guesses import (
    NEVER_REGIONS,
    biobank_number,
    field_meaning,
    is_code,
    kind_of,
    looks_like_score,
    muse_number,
    words_of,
)

_ANATOMY = re.compile(
    r"hippo\w*|amyg\w*|\w*thal\w*|caud\w*|put|putamen|pal\w*|accumb\w*|\w*vent(?:ricles?)?|stem|brainstem|csf|chiasm|cc|"
    r"callosum|cerebell\w*|cerebr\w*|vermi\w*|\w*cort(?:ex|ical)|gyr\w*|sulc\w*|lob[eu]\w*|\w*pole|insula|\w*cing\w*|"
    r"\w*front\w*|tempo\w*|\w*pariet\w*|\w*occip\w*|fusiform|\w*cuneus|lingual|\w*hypointensities|plexus|vessel|fornix|"
    r"pons|medulla|oper\w*|matter|muse|rois?|regions?|brain"
)
_FIRST_SUM, _HEAD_SIZE = 300, 702  # numbers of MUSE: regions are below, sums of them above
_FEWEST_NUMBERED, _FEWEST_NAMED = 100, 20  # bare numbers, or names with MUSE and a number, that are taken for MUSE's
_FAMILY = 4  # columns whose names differ in a number only
_COMPANY = 10  # columns that are regions by their names, from which on all others have to be like them
_TIED = (
    0.5  # correlation with a region; 128 regions of healthy adults have 0.55 or more with the one they are most like
)
_CHANCE = 4.0  # times the sd of a correlation by chance
_IMAGING = range(25000, 28000)  # fields of UK Biobank
_BY_NAME = "{} by its name"
_USES = {"age": "covariates", "sex": "covariates", "site": "site", "head size": "proportion"}


class Candidates(NamedTuple):
    """Columns of numbers, sorted: regions, those set aside with the reason, strangers, and sentences on all of it."""

    regions: tuple[str, ...]
    aside: dict[str, str]
    strangers: tuple[str, ...]
    notes: list[Text]

    def problems(self) -> list[Problem]:
        """Say which columns may be no regions, and both ways out."""
        if not self.strangers:
            return []
        them = "it is a region" if len(self.strangers) == 1 else "they are regions"
        like = f", as of the other {len(self.regions)} columns of numbers" if self.regions else ""
        what = (
            f"{listed(self.strangers, 12)}: neither name nor values say that {them}{like}. Ages, scores, counts and "
            "numbers of scans are not to be trained on."
        )
        name_all = Message(f"if {them}, name all regions with ", Remedy("features", self.regions + self.strangers))
        return [Problem(what, (name_all,), self.strangers)]


def sort_candidates(table: pd.DataFrame, names: Sequence[str]) -> Candidates:
    """Sort the columns of a table that might be regions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(5, 1, (60, 12)), columns=[f"{side}{n}" for n in "abcdef" for side in "lr"])
    >>> table = table.assign(scan=np.arange(60) + 7000, eTIV=1500.0)
    >>> sorted_out = sort_candidates(table, list(table))
    >>> sorted_out.strangers, sorted_out.aside
    (('scan',), {'eTIV': 'head size by its name'})
    """
    aside, notes = _muse_sums(names)
    aside |= {
        name: _BY_NAME.format(what)
        for name in names
        if (what := kind_of(name).suspicion) in NEVER_REGIONS and name not in aside
    }
    rest = [name for name in names if name not in aside]
    values = np.column_stack([numbers_of(table[name]) for name in rest]) if rest else np.empty((len(table), 0))
    constant = {
        name: f"always {shown(one)}" for name, one in zip(rest, _only_values(values), strict=True) if one is not None
    }
    strangers = _strangers(
        [name for name in rest if name not in constant], values[:, [name not in constant for name in rest]]
    )
    notes += _named_notes([name for name in table.columns if field_meaning(str(name))], aside)
    if constant:
        same = {what: [name for name in constant if constant[name] == what] for what in constant.values()}
        which = "; ".join(f"{listed(columns)} ({what})" for what, columns in same.items())
        notes.append(f"Columns in which everybody has the same value are left out: {which}.")
    regions = tuple(name for name in rest if name not in constant and name not in strangers)
    return Candidates(regions, aside | constant, strangers, notes)


def _muse_sums(names: Sequence[str]) -> tuple[dict[str, str], list[Text]]:
    """Find sums of regions and the head size among MUSE's numbers."""
    numbered = {name: number for name in names if (number := muse_number(name)) is not None}
    if len(numbered) < (_FEWEST_NUMBERED if all(name.isdecimal() for name in numbered) else _FEWEST_NAMED):
        return {}, []
    sums = [name for name, number in numbered.items() if number >= _FIRST_SUM and number != _HEAD_SIZE]
    heads = [name for name, number in numbered.items() if number == _HEAD_SIZE]
    notes: list[Text] = []
    if sums:
        what = (
            f"{counted(len(sums), 'column')} of MUSE that sum up other regions are left out: {listed(sums, 3)}. For the"
        )
        notes.append(Message(what, " 72 regions of the authors' models give ", Remedy("features", "muse72"), "."))
    notes += _offered(dict.fromkeys(heads, "head size"))
    return dict.fromkeys(sums, "a sum of regions by its MUSE number") | dict.fromkeys(
        heads, "the head size of MUSE"
    ), notes


def _offered(uses: dict[str, str]) -> list[Text]:
    """Say what columns are good for that are no regions."""
    return [
        Message(
            f"{name} is the {what}, not a region: use it with ",
            Remedy(_USES[what], [name] if _USES[what] == "covariates" else name),
            ".",
        )
        for name, what in uses.items()
        if what in _USES
    ]


def _named_notes(fields: Sequence[str], aside: dict[str, str]) -> list[Text]:
    """Say which columns are no regions by their names, and what they are good for."""
    heads = [name for name, why in aside.items() if why == _BY_NAME.format("head size")]
    notes = _offered({name: field_meaning(name) for name in fields} | dict.fromkeys(heads, "head size"))
    others = [name for name, why in aside.items() if why.endswith(_BY_NAME.removeprefix("{}")) and name not in heads]
    if others:
        which = (
            f"{listed(others)}: taken neither for {'a region' if len(others) == 1 else 'regions'} nor for covariates"
        )
        notes.append(Message(f"{which}, by name. Name covariates with ", Remedy("covariates", others), "."))
    return notes


def _only_values(values: NDArray[np.float64]) -> list[float | None]:
    """Return the one value of each column that has no other; else None."""
    present = (column[np.isfinite(column)] for column in values.T)
    return [float(one[0]) if len(one) and np.ptp(one) <= 1e-9 * np.abs(one).max() else None for one in present]


def _strangers(names: Sequence[str], values: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the columns that neither their names nor their values make regions."""
    by_name = _known_by_name(names)
    codes = [is_code(column[np.isfinite(column)]) for column in values.T]
    suspected = np.array([bool(kind_of(name).suspicion) for name in names], bool)  # which are warned of
    known = np.array(
        [
            by_name[name] == "word" or (by_name[name] == "family" and not code)
            for name, code in zip(names, codes, strict=True)
        ],
        bool,
    )
    company = known & ~suspected
    open_ = np.flatnonzero(~known & ~suspected).tolist()
    if not open_:
        return ()
    filled = np.where(np.isfinite(values), values, np.nan_to_num(np.nanmedian(values, axis=0)))
    whole = (filled == np.rint(filled)).all(axis=0)
    among_named = company.sum() >= max(_COMPANY, len(names) / 2)
    others = company if among_named else ~whole
    found = []
    for place in open_:
        tie = _tie(filled[:, place], filled[:, others & (np.arange(len(names)) != place)])
        apart = tie < max(_TIED, _CHANCE / np.sqrt(len(values)))
        odd = among_named or (whole[place] and 2 * whole.sum() < len(names))
        few = whole[place] and looks_like_score(names[place], filled[:, place])
        if codes[place] or few or (apart and odd):
            found.append(names[place])
    return tuple(found)


def _tie(column: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Return the largest correlation of a column with others."""
    if not others.shape[1] or not np.ptp(column):
        return 0.0
    centred, rest = column - column.mean(), others - others.mean(axis=0)
    scale = np.sqrt((centred**2).sum() * (rest**2).sum(axis=0))
    return float(np.max(centred @ rest / np.where(scale > 0, scale, np.inf), initial=0.0))


def _known_by_name(names: Sequence[str]) -> dict[str, str]:
    """Tell of each name whether a word or its twin makes it a region, or a family of names that differ in a number."""
    both = {name for pair in pairs_of_sides(names) for name in pair}
    stems = {name: re.sub(r"\d+", "#", name) for name in names}
    sizes = Counter(stems.values())
    by_name = dict.fromkeys(names, "")
    for name in names:
        is_family = "#" in stems[name] and sizes[stems[name]] >= _FAMILY and biobank_number(name) in (None, *_IMAGING)
        if name in both or kind_of(name).measure != "measure" or any(map(_ANATOMY.fullmatch, words_of(name))):
            by_name[name] = "word"
        elif is_family:
            by_name[name] = "family"
    return by_name
