"""Exclusions and their reasons: gaps, impossible values, outliers, small sites. Every row is recorded.

The rule for gaps is in `unusable`, for the training table and new people alike. An outlier is far from everyone else in
all regions together, in overall size, or in a single region.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.comparability import refuse_apart
from rindices.cohort.people import Outlier, Roles
from rindices.problems import InputError, Message, Problem, Remedy, Text, counted, listed, listed_rows, shown
from rindices.schema import LEAVE_OUT, MIN_REGIONS, MIN_SITE_CONTROLS, NO_LABEL, Groups, Observed, Seen
from rindices.schema.diagnosis_and_region_fields import missing_regions
from rindices.schema.role_guesses import looks_like_score
from rindices.settings import TableSettings

MIN_PEOPLE = 20  # in each group; with fewer, neither means nor patterns are meaningful
# Generous: fewer than 1 in 1,000 simulated people are flagged, and 2 in 100 of 1,000 unchecked real scans.
_FAR_PERSON = 4.5  # robust sd of the logarithm of the distance
_FAR_SIZE = 4.0  # robust sd of overall size; 40 % less in all regions amounts to 4 to 6
_FAR_CELL = 10.0  # robust sd of one region; no real brain is that far away
MEASURES = ("distance", "size", "farthest")  # by which a person may be an outlier
_SMALLEST_SPREAD = 0.05  # with many unrelated regions, distances hardly differ, which must not make anyone an outlier
# A size of 0 counts as a tenth of the median: a small sulcus that a person lacks is not an error.
_LARGEST_RATIO = 10.0


def find_outliers(
    block: NDArray[np.float64], regions: Sequence[str], group: NDArray[np.object_]
) -> tuple[pd.DataFrame, dict[int, Outlier], dict[int, list[str]]]:
    """Find people who are far from the controls, and far from their own group as well.

    Patients differ from controls because of their disease, and more so the more severe it is: they are outliers only if
    they are also unusual among patients. Distances use uncorrected regions: covariate effects are not removed.

    Parameters
    ----------
    block
        People × regions, without gaps.
    regions
        Names of the regions.
    group
        ``control``, ``patient`` or ``other``; there must be controls.

    Returns
    -------
    measures
        For each person: ``distance`` (root mean square over regions of the deviation from the controls' median, in
        robust sd of controls), ``size`` (of all regions together, in % above or below the controls' median) and
        ``farthest`` (the largest deviation of a region, in robust sd of everyone).
    outliers, far_in
        Outliers by position, which also serves as their row, and the measures by which each is one.

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
    # Half the size is as far away as twice the size; otherwise, a size that is far too small would seem close.
    deviation[:, sizes] /= np.minimum(ratio, 1.0)
    distance = np.sqrt(np.mean(deviation**2, axis=1))
    measures = pd.DataFrame({"distance": distance}, columns=list(MEASURES))
    notes, cells = defaultdict[int, dict[str, str]](dict), defaultdict[int, dict[str, float]](dict)
    logarithm = np.log(np.maximum(distance, 1e-9))
    _, limit = _usual_range(logarithm, group, _FAR_PERSON, _SMALLEST_SPREAD)
    for position in np.flatnonzero(logarithm > limit).tolist():
        most = int(np.argmax(deviation[position]))
        cells[position][regions[most]] = value = float(block[position, most])
        notes[position]["distance"] = (
            f"the distance from the controls is {distance[position]:.2f} (usually below "
            f"{np.exp(limit[position]):.2f}), mainly because of {regions[most]} = {shown(value)}"
        )
    if sizes.mean() > 0.5:  # all regions together too small or too large
        size = np.log(ratio).mean(axis=1)
        low, high = _usual_range(size, group, _FAR_SIZE, 0.0)
        measures["size"] = 100 * np.expm1(size)
        for position in np.flatnonzero((size < low) | (size > high)).tolist():
            percent = measures["size"][position]
            notes[position]["size"] = (
                f"all regions together are {abs(percent):.0f} % {'larger' if percent > 0 else 'smaller'} than usual"
            )
    centre, spread = _centre_and_spread(block)
    far = np.abs(block - centre) > _FAR_CELL * spread
    measures["farthest"] = np.max(np.abs(block - centre) / spread, axis=1)
    for position in np.flatnonzero(far.any(axis=1)).tolist():
        beyond = {regions[place]: float(block[position, place]) for place in np.flatnonzero(far[position]).tolist()}
        cells[position] |= beyond
        said = listed((f"{region} = {shown(value)}" for region, value in beyond.items()), 3)
        notes[position]["farthest"] = f"more than {_FAR_CELL:.0f} robust SDs from the median: {said}"
    outliers = {at: Outlier(at, "; ".join(notes[at].values()), cells[at]) for at in sorted(notes)}
    return measures, outliers, {at: [*notes[at]] for at in outliers}


def _usual_range(
    values: NDArray[np.float64], group: NDArray[np.object_], width: float, smallest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return limits beyond which each person is unusual among controls and in their own group, if that is large."""
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
    """Return the median and robust sd of each column; an sd of 0 becomes infinity."""
    centre = np.median(values, axis=0)
    spread = np.maximum(1.4826 * np.median(np.abs(values - centre), axis=0), smallest)
    return centre, np.where(spread > 0, spread, np.inf)


_PEOPLE_A_SITE = 3  # on average; with fewer, a column is something other than the site
_DIFFERENT = 0.5  # share of distinct values; below it, measures may be scores
_MOST_SCORES = 12  # of the columns with gaps; if there are more, they are regions
_MANY_GAPS = 0.1  # share of the people; anyone who was scanned has nearly all regions


def unusable(problems: Sequence[Problem], *, drop_missing: bool) -> list[Problem]:
    """Return the problems for which a table is refused.

    With `drop_missing`, missing and impossible values of regions and covariates are not among them: people who have any
    are left out instead, by `Record.leave_out_incomplete`.
    """
    return [problem for problem in problems if not (drop_missing and LEAVE_OUT in problem.remedies)]


def columns_to_leave_out(problems: Sequence[Problem], roles: Roles, seen: Seen) -> Iterator[Message]:
    """Yield remedies: columns to leave out instead of people, if enough remain, and columns that may be scores.

    Many gaps, few distinct values or a usual name suggest a score. `seen` is what the columns of regions contain.
    """
    regions, strangers = roles.regions, [name for problem in roles.problems for name in problem.where]
    names = [name for name in regions if any(name in problem.where for problem in problems)]
    if not names or len(regions) - len(names) < MIN_REGIONS:
        return
    gaps = np.any(seen.missing, axis=0) & ~np.any(seen.text, axis=0)
    least = (1 - _MANY_GAPS) * len(seen.values)
    measured = {regions[at]: seen.values[~np.isnan(seen.values[:, at]), at] for at in np.flatnonzero(gaps).tolist()}
    odd = [name for name, one in measured.items() if len(one) < least or looks_like_score(name, one, _DIFFERENT)]
    scores = list(dict.fromkeys([*strangers, *odd]))
    if scores and len(measured) <= _MOST_SCORES:
        them, are = (
            ("it", "it is a score, not a region") if len(scores) == 1 else ("them", "they are scores, not regions")
        )
        yield Message(f"name {them} with ", Remedy("clinical", scores), f" if {are}")
    # If most columns are affected, the cells are at fault, not the columns.
    if names := names if 2 * len(names) <= len(regions) else [*strangers]:
        yield Message(f"exclude the column{'s' if len(names) > 1 else ''} with ", Remedy("exclude", names))


class Record:
    """What became of every row that was read: the only mutable part of building a cohort.

    Attributes
    ----------
    reason
        Why each row is left out; empty if it is used.
    measures
        How far each row is from everyone else.
    far_in
        The measures by which a row is an outlier, by position.
    outliers
        Rows far from everyone else, whether left out or not.
    flags
        What is unusual about each row.
    doubts
        Messages about possible errors in the rows that are used.

    Examples
    --------
    >>> record = Record(3)
    >>> record.leave_out(np.array([True, False, False]), "outlier")
    >>> record.used.tolist(), record.warning()
    ([False, True, True], ['1 of 3 rows is excluded: outlier (1).'])
    """

    def __init__(self, n_rows: int) -> None:
        self.reason = np.full(n_rows, "", dtype=object)
        self.measures = pd.DataFrame(np.nan, range(n_rows), list(MEASURES))
        self.far_in, self.outliers, self.doubts = dict[int, str](), list[Outlier](), list[Text]()
        self.flags = defaultdict[int, list[str]](list)

    @property
    def used(self) -> NDArray[np.bool_]:
        """True for rows that are not left out."""
        return self.reason == ""

    def leave_out(self, marked: NDArray[np.bool_], reason: str) -> None:
        """Leave out the marked rows; for a row that is already left out, the first reason stands."""
        self.reason[marked & self.used] = reason

    def leave_out_incomplete(self, observed: Observed, regions: Sequence[str]) -> None:
        """Leave out rows with missing or impossible values in covariates or regions, and note these cells."""
        parts = [
            *(("covariate", [name], seen) for name, seen in observed.covariates.items()),
            ("region", list(regions), observed.regions),
        ]
        for reason, columns, marked, seen in (
            *((f"missing {kind}", columns, seen.missing, seen) for kind, columns, seen in parts),
            *(("impossible value", columns, seen.impossible, seen) for _, columns, seen in parts),
        ):
            for row in np.flatnonzero(np.any(marked, axis=1)).tolist():
                texts = [
                    f"{columns[at]} is missing"
                    if marked is seen.missing
                    else f"{columns[at]} = {shown(float(seen.values[row, at]))} is impossible"
                    for at in np.flatnonzero(marked[row]).tolist()
                ]
                self.flags[row].append(listed(texts, 5))
            self.leave_out(np.any(marked, axis=1), reason)

    def note_filled(self, seen: Seen, regions: Sequence[str]) -> None:
        """Note which regions are missing in the rows that are used."""
        gaps, names = np.isnan(seen.values) & self.used[:, None], np.array(regions, dtype=object)
        rows = np.flatnonzero(gaps.any(axis=1)).tolist()
        for row in rows:
            self.flags[row].append(missing_regions(names[gaps[row]]))
        if rows:
            self.doubts.append(
                Message(
                    f"{counted(len(rows), 'row lacks', 'rows lack')} values for some regions "
                    f"({listed(names[gaps.any(axis=0)])}), with at most {gaps.sum(axis=1).max()} of {len(names)} "
                    "regions missing in any row. Missing values are imputed from the other regions and the covariates. "
                    "To use only people with complete data, use ",
                    Remedy("complete_only", True),
                    ".",
                )
            )

    def warning(self) -> list[str]:
        """Return a message about the rows that were left out, if any."""
        left_out = pd.Series(self.reason[~self.used], dtype=object).value_counts()
        if not len(left_out):
            return []
        total, why = int(left_out.sum()), listed(f"{reason} ({number:,})" for reason, number in left_out.items())
        return [f"{total:,} of {len(self.reason):,} rows {'is' if total == 1 else 'are'} excluded: {why}."]

    def table(self, observed: Observed, group: pd.Series, site: str | None = None) -> pd.DataFrame:
        """Return the record as a table, preceded by who is in each row; the site is a column of the background."""
        people: dict[str, pd.Series | pd.Index | None] = {
            "participant_id": observed.roster.ids,
            "visit": observed.timeline.visits,
            "diagnosis": observed.labels,
            "group": group,
            "site": None if site is None else observed.background[site].fillna(NO_LABEL),
        }
        return pd.DataFrame(
            {
                **{name: part.tolist() for name, part in people.items() if part is not None},
                "used": self.used,
                "reason": self.reason,
                **self.measures,
                "far_in": [self.far_in.get(position, "") for position in range(len(self.reason))],
                "flags": ["; ".join(self.flags[position]) for position in range(len(self.reason))],
            }
        )


def leave_out(observed: Observed, groups: Groups, roles: Roles, settings: TableSettings) -> Record:
    """Leave out incomplete rows and, on request, outliers and small sites; refuse groups and sites still too small."""
    record, line = Record(len(observed.labels)), observed.timeline
    record.leave_out_incomplete(observed, roles.regions)
    record.note_filled(observed.regions, roles.regions)
    _check_group_sizes(groups, line.learned_from(record.used), record)
    _leave_out_outliers(record, observed, groups.group, roles.regions, drop=settings.drop_outliers)
    if settings.site is not None:
        sites, learned = observed.background[settings.site], line.learned_from(record.used)
        controls, patients = ((groups.group == name).to_numpy() & learned for name in ("control", "patient"))
        if settings.small_sites != "drop":
            _refuse_own_sites(sites[learned])
        refuse_apart(settings.site, sites[controls].to_numpy(), sites[patients].to_numpy())
        _leave_out_small_sites(record, sites, controls, drop=settings.small_sites == "drop")
    _check_group_sizes(groups, line.learned_from(record.used), record)
    return record


def _check_group_sizes(groups: Groups, learned_from: NDArray[np.bool_], record: Record) -> None:
    """Refuse a cohort with too few controls or patients for training, and report who was excluded."""
    for group, name, labels in (
        ("controls", "control", groups.control_labels),
        ("patients", "patients", groups.patient_labels),
    ):
        number = int((groups.group == group.removesuffix("s"))[learned_from].sum())
        if number < MIN_PEOPLE:
            raise InputError(
                f"At least {MIN_PEOPLE} {group} are needed, but only "
                f"{counted(number, 'person has', 'people have')} the label "
                f"{' '.join([listed(labels, joiner=' or ') + '.', *record.warning()])}\n"
                f"Add people, or include other labels among the {group} with ",
                Remedy(name),
                ".",
            )


def _leave_out_outliers(
    record: Record, observed: Observed, group: pd.Series, regions: Sequence[str], *, drop: bool
) -> None:
    """Measure how far each row in use is from the others, note outliers, and leave them out on request."""
    positions = np.flatnonzero(record.used)
    values = observed.regions.values[positions]
    block = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)  # a median is not unusual
    measures, outliers, far_in = find_outliers(block, regions, group.to_numpy(dtype=object)[positions])
    record.measures.loc[positions] = measures.to_numpy()
    who = positions[list(outliers)]
    for at, (position, one) in zip(who.tolist(), outliers.items(), strict=True):
        record.flags[at].append(one.text)
        record.far_in[at] = " ".join(far_in[position])
        record.outliers.append(Outlier(int(observed.roster.rows[at]), one.text, one.cells))
    if drop:
        record.leave_out(np.isin(np.arange(len(group)), who), "outlier")
    elif outliers:
        record.doubts.append(
            Message(  # warnings are stored, so they contain no one's values
                f"{counted(len(outliers), 'person is an outlier', 'people are outliers')}, possibly because of errors "
                f"in the table: {listed_rows(observed.roster.rows[who], 10)}. Check the table, or exclude "
                f"{'this person' if len(outliers) == 1 else 'these people'} with ",
                Remedy("drop_outliers", True),
                ". After training, the flags column of people.csv describes what is unusual.",
            )
        )


def _refuse_own_sites(sites: pd.Series) -> None:
    """Refuse a site column with fewer than three people per site on average."""
    n_sites = sites.nunique()
    if n_sites > len(sites) / _PEOPLE_A_SITE:
        raise InputError(
            f"Column {str(sites.name)!r} cannot be the site: it has {n_sites} different values (such as "
            f"{listed(sites.dropna().unique()[:3])}) for {counted(len(sites), 'person', 'people')}, an average "
            f"of fewer than {counted(_PEOPLE_A_SITE, 'person', 'people')} per site.\n"
            "Name a different site column with ",
            Remedy("site"),
            "; if this one is correct, exclude people from small sites with ",
            Remedy("small_sites", "drop"),
            ".",
        )


def _leave_out_small_sites(record: Record, sites: pd.Series, controls: NDArray[np.bool_], *, drop: bool) -> None:
    """Refuse sites with too few controls, or leave their people out."""
    present = sites[record.used]
    n_controls = sites[record.used & controls].value_counts().reindex(present.unique(), fill_value=0)
    small = n_controls[n_controls < MIN_SITE_CONTROLS].sort_index()
    if not len(small):
        return
    if drop:
        record.leave_out(sites.isin(small.index).to_numpy(), "site without enough controls")
        return
    n_people = present.value_counts().to_dict()
    which = listed(
        (
            f"{site} ({counted(int(number), 'control')} among {counted(int(n_people[site]), 'person', 'people')})"
            for site, number in small.items()
        ),
        8,
    )
    raise InputError(
        f"Every site needs at least {MIN_SITE_CONTROLS} controls so that its effect can be separated from disease, but "
        f"{counted(len(small), 'site has', 'sites have')} fewer (column {str(sites.name)!r}): {which}.\n"
        "Exclude people from these sites with ",
        Remedy("small_sites", "drop"),
        ", merge sites that share a scanner, or omit ",
        Remedy("site"),
        ".",
    )
