"""People far from everybody else: failed segmentations, swapped units, slips of the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rindices.cohort.labels import MIN_PEOPLE
from rindices.errors import counted, listed, shown

__all__ = ["Outliers", "find_outliers"]

# Generous: of simulated people less than 1 in 1,000 is flagged, of 1,000 real scans nobody had looked at 2 in 100.
_FAR_PERSON = 4.5  # robust sd of the logarithm of the distance
_FAR_SIZE = 4.0  # robust sd of overall size: 40 % less in all regions is 4 to 6 of them
_FAR_CELL = 10.0  # robust sd of one region: no person's brain lies there
_SMALLEST_SPREAD = 0.05  # with many unrelated regions distances hardly differ; that makes nobody an outlier
# A size of 0 counts as a tenth: small furrows that a person has not are no error.
_LARGEST_RATIO = 10.0


@dataclass(frozen=True, eq=False)
class Outliers:
    """Everybody's distance from the controls, and what is wrong with those who are too far.

    Attributes
    ----------
    distance
        Root mean square over regions of the deviation from the controls' median, in robust sd of controls.
    notes
        For each outlier, by position: what is unusual.
    """

    distance: NDArray[np.float64]
    notes: dict[int, str]

    def marked(self) -> NDArray[np.bool_]:
        """Return True for outliers."""
        marked = np.zeros(len(self.distance), dtype=bool)
        marked[list(self.notes)] = True
        return marked

    def warning(self, rows: NDArray[np.int64]) -> tuple[str, ...]:
        """Return a sentence that names a few of them by row: warnings are kept, so nobody's values are in them."""
        if not self.notes:
            return ()
        who = listed((rows[position] for position in self.notes), 10)
        people = counted(len(self.notes), "person lies", "people lie")
        return (
            f"{people} far from everybody else, which may be errors: row {who}. What is unusual is in the column flags "
            "of people.csv. Look at them, or leave them out with --drop-outliers.",
        )


def find_outliers(block: NDArray[np.float64], regions: Sequence[str], group: NDArray[np.object_]) -> Outliers:
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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> volumes = rng.normal(5, 0.5, (60, 20))
    >>> volumes[7] *= 0.6
    >>> list(find_outliers(volumes, list("abcdefghijklmnopqrst"), np.array(["control"] * 60)).notes)
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
    notes: dict[int, list[str]] = {}
    limit = np.exp(_upper_limits(np.log(np.maximum(distance, 1e-9)), group))
    for position in np.flatnonzero(distance > limit).tolist():
        most = int(np.argmax(deviation[position]))
        notes.setdefault(position, []).append(
            f"distance {distance[position]:.2f}, usual is below {limit[position]:.2f}, "
            f"most in {regions[most]} = {shown(float(block[position, most]))}"
        )
    if sizes.mean() > 0.5:
        for position, text in _unusual_size(np.log(ratio).mean(axis=1), group):
            notes.setdefault(position, []).append(text)
    for position, text in _far_cells(block, regions):
        notes.setdefault(position, []).append(text)
    return Outliers(distance, {position: "; ".join(notes[position]) for position in sorted(notes)})


def _centre_and_spread(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return median and robust sd of each column; where that is 0, infinity."""
    centre = np.median(values, axis=0)
    spread = 1.4826 * np.median(np.abs(values - centre), axis=0)
    return centre, np.where(spread > 0, spread, np.inf)


def _reference_groups(group: NDArray[np.object_]) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Return pairs of masks: who is compared, and with whom besides the controls."""
    pairs = []
    for name in ("control", "patient", "other"):
        members = group == name
        pairs.append((members, members if members.sum() >= MIN_PEOPLE else group == "control"))
    return pairs


def _upper_limits(values: NDArray[np.float64], group: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return for each person the value above which one is unusual among controls and in one's own group."""

    def limit(members: NDArray[np.bool_]) -> float:
        centre = float(np.median(values[members]))
        spread = 1.4826 * float(np.median(np.abs(values[members] - centre)))
        return centre + _FAR_PERSON * max(spread, _SMALLEST_SPREAD)

    of_controls = limit(group == "control")
    limits = np.full(len(values), of_controls)
    for members, others in _reference_groups(group):
        limits[members] = max(of_controls, limit(others))
    return limits


def _unusual_size(log_size: NDArray[np.float64], group: NDArray[np.object_]) -> list[tuple[int, str]]:
    """Find people all of whose regions together are too small or too large."""
    unusual = np.ones(len(log_size), dtype=bool)
    controls = group == "control"
    for members, others in _reference_groups(group):
        for reference in (controls, others):
            centre, spread = _centre_and_spread(log_size[reference][:, None])
            unusual[members] &= np.abs(log_size[members] - centre[0]) > _FAR_SIZE * spread[0]
    percents = 100 * np.expm1(log_size)
    return [
        (position, f"regions {abs(percent):.0f} % {'larger' if percent > 0 else 'smaller'} than usual throughout")
        for position, percent in enumerate(percents.tolist())
        if unusual[position]
    ]


def _far_cells(block: NDArray[np.float64], regions: Sequence[str]) -> list[tuple[int, str]]:
    centre, spread = _centre_and_spread(block)
    rows, columns = np.nonzero(np.abs(block - centre) > _FAR_CELL * spread)
    cells: dict[int, list[str]] = {}
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        cells.setdefault(row, []).append(f"{regions[column]} = {shown(float(block[row, column]))}")
    return [(row, f"{listed(texts, 3)} beyond {_FAR_CELL:.0f} robust sd") for row, texts in cells.items()]
