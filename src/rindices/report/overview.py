"""The run in short: which regions change in each pattern, and what it goes with in patients."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from rindices.plots.region_names import pair_sides
from rindices.record import Run
from rindices.report.elements import interval, listed, number, p_words

_MOST_REGIONS = 6
_MOST_VARIABLES = 2
_SHARE_OF_STRONGEST = 0.5
_LARGEST_Q = 0.05
_LETTERS = {"Pearson r": "r", "point-biserial r": "r", "eta²": "η²"}


class Change(NamedTuple):
    """Regions that are lower or higher than in controls, and by how much."""

    direction: str
    names: str
    size: str


class PatternInShort(NamedTuple):
    """The regions that change most, and the variables that go with the R-index; None where none were looked at."""

    changes: list[Change]
    related: str | None


def in_short(run: Run) -> list[PatternInShort]:
    """Return what there is to say about each pattern in a sentence or two."""
    return [
        PatternInShort(_changes(run.results.patterns, pattern), _related(run.analyses.get("associations"), pattern))
        for pattern in range(1, run.summary.n_patterns + 1)
    ]


def strongest(patterns: pd.DataFrame, pattern: int) -> pd.DataFrame:
    """Return the regions of one pattern, the largest change first."""
    rows = patterns[patterns["pattern"] == pattern]
    return rows.loc[rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index]


def variable_names(table: pd.DataFrame) -> list[str]:
    """Return the variables of a table of associations, with the level of those that have two."""
    pairs = zip(table["variable"], table["level"], strict=True)
    return [f"{name} = {level}" if level.strip() else name for name, level in pairs]


def _changes(patterns: pd.DataFrame, pattern: int) -> list[Change]:
    rows = strongest(patterns, pattern).head(_MOST_REGIONS)
    rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
    pairs = pair_sides(patterns["region"].unique())
    found = []
    for direction, part in (("lower", rows[rows["change_sd"] < 0]), ("higher", rows[rows["change_sd"] > 0])):
        sides: dict[str, list[str]] = {}
        for region in part["region"]:
            side, name = pairs.get(region, ("", region))
            sides.setdefault(name, []).append(side)
        names = listed(f"{' and '.join(sorted(one))} {name}".strip() for name, one in sides.items())
        change = part["change_sd"]
        size = number(change.iloc[0]) if len(part) == 1 else interval(change.min(), change.max())
        found += [Change(direction, names, size)] if len(part) else []
    return found


def _related(table: pd.DataFrame | None, pattern: int) -> str | None:
    """Return the associations in patients that are hardly chance, the strongest first."""
    if table is None or not (table["people"] == "patients").any():
        return None
    clear = table[(table["people"] == "patients") & (table["pattern"] == pattern) & (table["q"] < _LARGEST_Q)]
    clear = clear.loc[clear["coefficient"].abs().sort_values(ascending=False, kind="stable").index]
    clear = clear.head(_MOST_VARIABLES)
    rows = zip(variable_names(clear), clear["statistic"], clear["coefficient"], clear["q"], strict=True)
    return listed(
        f"{name} ({_LETTERS.get(statistic, statistic)} = {number(value)}, {p_words('q', q)})"
        for name, statistic, value, q in rows
    )
