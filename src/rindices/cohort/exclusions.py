"""Who is left out, and why: gaps, impossible values, outliers, sites with too few controls. Everybody is recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.groups import MIN_PEOPLE
from rindices.errors import InputError, counted, listed, setting, shown
from rindices.schema.fields import MIN_SITE_CONTROLS, Observed, Roster

_PEOPLE_A_SITE = 3  # on average; with fewer, a column is something else than the site
# Generous: of simulated people less than 1 in 1,000 is flagged, of 1,000 real scans nobody had looked at 2 in 100.
_FAR_PERSON = 4.5  # robust sd of the logarithm of the distance
_FAR_SIZE = 4.0  # robust sd of overall size: 40 % less in all regions is 4 to 6 of them
_FAR_CELL = 10.0  # robust sd of one region: no person's brain lies there
_SMALLEST_SPREAD = 0.05  # with many unrelated regions distances hardly differ; that makes nobody an outlier
# A size of 0 counts as a tenth: small furrows that a person has not are no error.
_LARGEST_RATIO = 10.0


class Record:
    """What became of every row that was read; only this part of a cohort's making changes as it goes on.

    Examples
    --------
    >>> record = Record(3)
    >>> record.leave_out(np.array([True, False, False]), "outlier")
    >>> record.used.tolist(), record.warning()
    ([False, True, True], ['1 of 3 rows is left out: outlier (1).'])
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

    def _note_cells(self, marked: NDArray[np.bool_], columns: Sequence[str], texts: Sequence[str]) -> None:
        """Add which columns (of rows × columns) are concerned; a text for each marked cell, in reading order."""
        found: dict[int, list[str]] = {}
        for (row, column), text in zip(np.argwhere(marked).tolist(), texts, strict=True):
            found.setdefault(row, []).append(f"{columns[column]} {text}")
        for row, cells in found.items():
            self.note(row, listed(cells, 5))

    def leave_out_incomplete(self, found: Observed, regions: Sequence[str]) -> None:
        """Leave out who has missing or impossible values in covariates or regions."""
        parts = [("covariate", [name], seen) for name, seen in found.covariates.items()]
        parts.append(("region", list(regions), found.regions))
        for kind, columns, seen in parts:
            self._note_cells(seen.missing, columns, ["is missing"] * int(seen.missing.sum()))
            self.leave_out(np.any(seen.missing, axis=1), f"missing {kind}")
        for _, columns, seen in parts:
            values = seen.values[seen.impossible].tolist()
            self._note_cells(seen.impossible, columns, [f"= {shown(float(value))} is impossible" for value in values])
            self.leave_out(np.any(seen.impossible, axis=1), "impossible value")

    def warning(self) -> list[str]:
        """Return a sentence on who was left out."""
        left_out = pd.Series(self.reason[~self.used], dtype=object).value_counts()
        if not len(left_out):
            return []
        total, why = int(left_out.sum()), listed(f"{reason} ({number})" for reason, number in left_out.items())
        return [f"{total} of {len(self.reason)} rows {'is' if total == 1 else 'are'} left out: {why}."]

    def table(self, columns: dict[str, Sequence[object]]) -> pd.DataFrame:
        """Return the record with `columns` before what it knows itself."""
        flags = ["; ".join(self._flags.get(position, ())) for position in range(len(self.reason))]
        own = {"used": self.used, "reason": self.reason, "distance": self.distance, "flags": flags}
        return pd.DataFrame(columns | own)


def leave_out_outliers(
    record: Record, features: pd.DataFrame, group: pd.Series, roster: Roster, *, drop: bool
) -> list[str]:
    """Give everybody used a distance, note the outliers, and leave them out if asked; return warnings."""
    positions = np.flatnonzero(record.used)
    block, regions = features.to_numpy()[positions], [str(name) for name in features.columns]
    distance, notes = find_outliers(block, regions, group.to_numpy(dtype=object)[positions])
    record.distance[positions] = distance
    for position, text in notes.items():
        record.note(int(positions[position]), text)
    who = positions[list(notes)]
    if drop:
        record.leave_out(np.isin(np.arange(len(features)), who), "outlier")
    if drop or not notes:
        return []
    people = counted(len(notes), "person lies", "people lie")
    return [  # warnings are kept, so nobody's values are in them
        f"{people} far from everybody else, which may be errors: row {listed(roster.rows[who], 10)}. What is unusual "
        f"is in the column flags of people.csv. Look at them, or leave them out with {setting('drop_outliers', True)}."
    ]


def refuse_own_sites(sites: pd.Series) -> None:
    """Refuse a column in which nearly every person would have a site of their own."""
    n_sites = sites.nunique()
    if n_sites > len(sites) / _PEOPLE_A_SITE:
        raise InputError(
            f"Column {str(sites.name)!r} cannot be the site: it has {n_sites} different values for "
            f"{counted(len(sites), 'person', 'people')}, so that many would have a site of their own "
            f"(such as {listed(sites.dropna().unique()[:3])}).\n"
            f"Name the column of the site with {setting('site')}; if it is the right one, leave out people of small "
            f"sites with {setting('small_sites', 'drop')}."
        )


def leave_out_small_sites(record: Record, sites: pd.Series, controls: NDArray[np.bool_], *, drop: bool) -> None:
    """Refuse sites with too few controls, or leave their people out."""
    present = sites[record.used]
    n_controls = sites[record.used & controls].value_counts().reindex(present.unique(), fill_value=0)
    small = n_controls[n_controls < MIN_SITE_CONTROLS].sort_index()
    if not len(small):
        return
    if drop:
        record.leave_out(sites.isin(small.index).to_numpy(), "site without enough controls")
        return
    people = {str(site): counted(int(number), "person", "people") for site, number in present.value_counts().items()}
    few = {str(site): counted(int(number), "control") for site, number in small.items()}
    which = listed((f"{site} ({few[site]} of {people[site]})" for site in few), 8)
    raise InputError(
        f"Every site needs at least {MIN_SITE_CONTROLS} controls for its shift to be told from disease, but "
        f"{counted(len(small), 'site has', 'sites have')} fewer (column {str(sites.name)!r}): {which}.\n"
        f"Leave these people out with {setting('small_sites', 'drop')}, merge sites that share a scanner, or do "
        f"without {setting('site')}."
    )


def find_outliers(
    block: NDArray[np.float64], regions: Sequence[str], group: NDArray[np.object_]
) -> tuple[NDArray[np.float64], dict[int, str]]:
    """Find people who are far from the controls, and far from their own group as well.

    Patients differ from controls by their disease, and the more severe the more: they are outliers only if they are
    unusual among patients too. Distances use the regions as they are: covariates are not removed.

    Parameters
    ----------
    block
        People × regions, without gaps.
    regions
        Names of the regions.
    group
        ``control``, ``patient`` or ``other``; at least some are controls.

    Returns
    -------
    distance
        Root mean square over regions of the deviation from the controls' median, in robust sd of controls.
    notes
        What is unusual about each outlier, by position.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> volumes = rng.normal(5, 0.5, (60, 20))
    >>> volumes[7] *= 0.6
    >>> list(find_outliers(volumes, list("abcdefghijklmnopqrst"), np.array(["control"] * 60))[1])
    [7]
    """
    controls = group == "control"
    centre, spread = _centre_and_spread(block[controls])
    sizes = (block[controls] > 0).all(axis=0)
    ratio = np.clip(block[:, sizes] / centre[sizes], 1 / _LARGEST_RATIO, _LARGEST_RATIO)
    deviation = np.abs(block - centre) / spread
    # Half of a size is as far away as twice the size: otherwise a size much too small would look like little.
    deviation[:, sizes] /= np.minimum(ratio, 1.0)
    distance = np.sqrt(np.mean(deviation**2, axis=1))
    notes: defaultdict[int, list[str]] = defaultdict(list)
    logarithm = np.log(np.maximum(distance, 1e-9))
    _, limit = _usual_range(logarithm, group, _FAR_PERSON, _SMALLEST_SPREAD)
    for position in np.flatnonzero(logarithm > limit).tolist():
        most = int(np.argmax(deviation[position]))
        notes[position].append(
            f"distance {distance[position]:.2f}, usual is below {np.exp(limit[position]):.2f}, "
            f"most in {regions[most]} = {shown(float(block[position, most]))}"
        )
    if sizes.mean() > 0.5:  # all regions together too small or too large
        size = np.log(ratio).mean(axis=1)
        low, high = _usual_range(size, group, _FAR_SIZE, 0.0)
        for position in np.flatnonzero((size < low) | (size > high)).tolist():
            percent = 100 * np.expm1(size[position])
            larger = "larger" if percent > 0 else "smaller"
            notes[position].append(f"regions {abs(percent):.0f} % {larger} than usual throughout")
    centre, spread = _centre_and_spread(block)
    far = np.abs(block - centre) > _FAR_CELL * spread
    for position in np.flatnonzero(far.any(axis=1)).tolist():
        cells = [
            f"{regions[place]} = {shown(float(block[position, place]))}"
            for place in np.flatnonzero(far[position]).tolist()
        ]
        notes[position].append(f"{listed(cells, 3)} beyond {_FAR_CELL:.0f} robust sd")
    return distance, {position: "; ".join(notes[position]) for position in sorted(notes)}


def _usual_range(
    values: NDArray[np.float64], group: NDArray[np.object_], width: float, smallest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the limits beyond which each person is unusual among controls and in their own group, if it is large."""
    low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    for name in ("control", "patient", "other"):
        members = group == name
        if members.sum() >= MIN_PEOPLE or name == "control":
            centre, spread = _centre_and_spread(values[members][:, None], smallest)
            who = slice(None) if name == "control" else members
            low[who] = np.minimum(low[who], centre - width * spread)
            high[who] = np.maximum(high[who], centre + width * spread)
    return low, high


def _centre_and_spread(
    values: NDArray[np.float64], smallest: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return median and robust sd of each column; where that is 0, infinity."""
    centre = np.median(values, axis=0)
    spread = np.maximum(1.4826 * np.median(np.abs(values - centre), axis=0), smallest)
    return centre, np.where(spread > 0, spread, np.inf)
