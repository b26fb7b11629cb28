"""Who is left out, and why: gaps, impossible values, outliers, sites with too few controls. Everybody is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.absent import Absent, absences
from rindices.cohort.cells import Roster
from rindices.cohort.covariates import MIN_SITE_CONTROLS
from rindices.cohort.gaps import Trouble, gaps, impossible, refuse
from rindices.cohort.plausible import impossible_covariate, impossible_regions, possible_scores
from rindices.cohort.quality import find_outliers
from rindices.errors import InputError, counted, listed, shown

__all__ = ["Record", "leave_out_gaps", "leave_out_outliers", "leave_out_small_sites", "refuse_own_sites"]

# The other reasons are "missing covariate" and "missing region".
IMPOSSIBLE = "impossible value"
OUTLIER = "outlier"
SMALL_SITE = "site without enough controls"
_PEOPLE_A_SITE = 3  # on average; with fewer, a column is something else than the site


class Record:
    """What became of every row that was read; only this part of a cohort's making changes as it goes on.

    Examples
    --------
    >>> record = Record(3)
    >>> record.leave_out(np.array([True, False, False]), "outlier")
    >>> record.used.tolist(), record.warning()
    ([False, True, True], ('1 of 3 rows is left out: outlier (1).',))
    """

    def __init__(self, n_rows: int) -> None:
        self.reason = np.full(n_rows, "", dtype=object)
        self.distance = np.full(n_rows, np.nan)
        self._flags: dict[int, list[str]] = {}

    @property
    def used(self) -> NDArray[np.bool_]:
        """True for who is not left out."""
        return self.reason == ""

    def leave_out(self, marked: NDArray[np.bool_], reason: str) -> None:
        """Leave out the marked ones, unless they are left out already: the first reason counts."""
        self.reason[marked & self.used] = reason

    def note(self, position: int, text: str) -> None:
        """Add what is unusual about a row."""
        self._flags.setdefault(position, []).append(text)

    def note_cells(self, marked: NDArray[np.bool_], columns: Sequence[str], texts: Sequence[str]) -> None:
        """Add which columns (of rows × columns) are concerned; a text for each marked cell, in reading order."""
        found: dict[int, list[str]] = {}
        for (row, column), text in zip(np.argwhere(marked).tolist(), texts, strict=True):
            found.setdefault(row, []).append(f"{columns[column]} {text}")
        for row, cells in found.items():
            self.note(row, listed(cells, 5))

    def leave_out_missing(self, bad: NDArray[np.bool_], columns: Sequence[str], kind: str) -> None:
        """Leave out who has missing cells (of rows × columns)."""
        if bad.any():
            self.note_cells(bad, columns, ["is missing"] * int(bad.sum()))
            self.leave_out(np.any(bad, axis=1), f"missing {kind}")

    def leave_out_impossible(self, bad: NDArray[np.bool_], values: NDArray[np.float64], columns: Sequence[str]) -> None:
        """Leave out who has impossible values (of rows × columns)."""
        if bad.any():
            self.note_cells(bad, columns, [f"= {shown(float(value))} is impossible" for value in values[bad]])
            self.leave_out(np.any(bad, axis=1), IMPOSSIBLE)

    def reasons(self) -> dict[str, int]:
        """Return how many were left out for each reason."""
        left_out = pd.Series(self.reason[~self.used], dtype=object)
        return {str(reason): int(number) for reason, number in left_out.value_counts().items()}

    def warning(self) -> tuple[str, ...]:
        """Return a sentence on who was left out."""
        reasons = self.reasons()
        if not reasons:
            return ()
        total, why = sum(reasons.values()), listed(f"{reason} ({number})" for reason, number in reasons.items())
        return (f"{total} of {len(self.reason)} rows {'is' if total == 1 else 'are'} left out: {why}.",)

    def table(self, columns: dict[str, Sequence[object]]) -> pd.DataFrame:
        """Return the record with `columns` before what it knows itself."""
        flags = ["; ".join(self._flags.get(position, ())) for position in range(len(self.reason))]
        own = {"used": self.used, "reason": self.reason, "distance": self.distance, "flags": flags}
        return pd.DataFrame(columns | own)


def leave_out_gaps(
    record: Record,
    features: pd.DataFrame,
    covariates: pd.DataFrame,
    roster: Roster,
    *,
    drop: bool,
    proportion: str | None = None,
    absent: Sequence[Absent] = (),
) -> None:
    """Leave out people with missing or impossible values, or refuse them.

    Parameters
    ----------
    record
        Who is used; it is changed.
    features
        People × regions.
    covariates
        Numbers as float64, categories as text, gaps as NaN.
    roster
        Who sits in which row.
    drop
        Whether to leave people out; otherwise their cells are refused.
    proportion
        The covariate that regions will be divided by.
    absent
        Who has gaps because a joined table does not know them.
    """
    names, regions = [str(name) for name in covariates.columns], [str(name) for name in features.columns]
    block = features.to_numpy()
    numbers = [name for name in names if covariates[name].dtype.kind == "f"]
    values = covariates[numbers].to_numpy(dtype=np.float64)
    odd = [
        impossible_covariate(name, values[:, position]) | ((values[:, position] <= 0) & (name == proportion))
        for position, name in enumerate(numbers)
    ]
    unknown, no_region = covariates.isna().to_numpy(dtype=bool), np.isnan(block)
    wrong = (
        (np.column_stack(odd) if odd else np.zeros((len(block), 0), dtype=bool), values, numbers),
        (impossible_regions(block), block, regions),
    )
    if not drop:
        troubles, bad = absences(absent, np.hstack([unknown, no_region]), [*names, *regions], roster)
        troubles += gaps(bad[:, : len(names)], names, roster, kind="covariate")
        troubles += gaps(bad[:, len(names) :], regions, roster, kind="region")
        scores = possible_scores(block, regions, np.flatnonzero(bad[:, len(names) :].any(axis=0)).tolist())
        troubles += _impossible(wrong, roster, proportion)
        refuse(troubles, n_regions=len(regions), can_drop=True, scores=scores)
    record.leave_out_missing(unknown, names, "covariate")
    record.leave_out_missing(no_region, regions, "region")
    for part in wrong:
        record.leave_out_impossible(*part)


def _impossible(
    parts: Sequence[tuple[NDArray[np.bool_], NDArray[np.float64], list[str]]], roster: Roster, proportion: str | None
) -> list[Trouble]:
    """Return the trouble with impossible covariates and regions; the columns of the latter can be done without."""
    bad, values = (np.column_stack([part[place] for part in parts]) for place in (0, 1))
    covariates, regions = parts[0][2], parts[1][2]
    return [
        trouble._replace(columns=tuple(name for name in trouble.columns if name not in covariates))
        for trouble in impossible(bad, values, [*covariates, *regions], roster, proportion=proportion)
    ]


def leave_out_outliers(
    record: Record, features: pd.DataFrame, group: pd.Series, roster: Roster, *, drop: bool
) -> tuple[str, ...]:
    """Give everybody used a distance, note the outliers, and leave them out if asked; return warnings."""
    block, regions = features.to_numpy(), [str(name) for name in features.columns]
    positions = np.flatnonzero(record.used)
    everybody = len(positions) == len(block)
    outliers = find_outliers(block if everybody else block[positions], regions, group.to_numpy(dtype=object)[positions])
    record.distance[positions] = outliers.distance
    for position, text in outliers.notes.items():
        record.note(int(positions[position]), text)
    if not drop:
        return outliers.warning(roster.rows[positions])
    marked = np.zeros(len(block), dtype=bool)
    marked[positions] = outliers.marked()
    record.leave_out(marked, OUTLIER)
    return ()


def refuse_own_sites(sites: pd.Series) -> None:
    """Refuse a column in which nearly every person would have a site of their own."""
    n_sites = sites.nunique()
    if n_sites > len(sites) / _PEOPLE_A_SITE:
        raise InputError(
            f"Column {str(sites.name)!r} cannot be the site: it has {n_sites} different values for "
            f"{counted(len(sites), 'person', 'people')}, so that many would have a site of their own "
            f"(such as {listed(sites.dropna().unique()[:3])}).\n"
            "Name the column of the site with --site; if it is the right one, leave out people of small sites with "
            "--small-sites drop."
        )


def leave_out_small_sites(record: Record, sites: pd.Series, controls: NDArray[np.bool_], *, drop: bool) -> None:
    """Refuse sites with too few controls, or leave their people out."""
    present = sites[record.used]
    n_controls = sites[record.used & controls].value_counts().reindex(present.unique(), fill_value=0)
    small = n_controls[n_controls < MIN_SITE_CONTROLS].sort_index()
    if not len(small):
        return
    if drop:
        record.leave_out(sites.isin(small.index).to_numpy(), SMALL_SITE)
        return
    people = {str(site): counted(int(number), "person", "people") for site, number in present.value_counts().items()}
    few = {str(site): counted(int(number), "control") for site, number in small.items()}
    which = listed((f"{site} ({few[site]} of {people[site]})" for site in few), 8)
    raise InputError(
        f"Every site needs at least {MIN_SITE_CONTROLS} controls for its shift to be told from disease, but "
        f"{counted(len(small), 'site has', 'sites have')} fewer (column {str(sites.name)!r}): {which}.\n"
        "Leave these people out with --small-sites drop, merge sites that share a scanner, or do without --site."
    )
