"""Who is far from everybody else: in all regions together, in overall size, or in a single region."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import listed, shown

MIN_PEOPLE = 20  # in each group: below it neither means nor patterns mean anything
# Generous: of simulated people less than 1 in 1,000 is flagged, of 1,000 real scans nobody had looked at 2 in 100.
_FAR_PERSON = 4.5  # robust sd of the logarithm of the distance
_FAR_SIZE = 4.0  # robust sd of overall size: 40 % less in all regions is 4 to 6 of them
_FAR_CELL = 10.0  # robust sd of one region: no person's brain lies there
MEASURES = ("distance", "size", "farthest")  # by which somebody may be an outlier
_SMALLEST_SPREAD = 0.05  # with many unrelated regions distances hardly differ; that makes nobody an outlier
# A size of 0 counts as a tenth: small furrows that a person has not are no error.
_LARGEST_RATIO = 10.0


class Outlier(NamedTuple):
    """Somebody far from everybody else: the row of the table, what is unusual, the cells, and the measures."""

    row: int
    text: str
    cells: tuple[tuple[str, float], ...]
    far_in: tuple[str, ...] = ()


def with_middles(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return people × regions with the median of a region in the place of its gaps: neither here nor there."""
    return np.where(np.isnan(block), np.nanmedian(block, axis=0), block) if np.isnan(block).any() else block


def find_outliers(
    block: NDArray[np.float64], regions: Sequence[str], group: NDArray[np.object_]
) -> tuple[pd.DataFrame, dict[int, Outlier]]:
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
    measures
        Of everybody: ``distance`` (root mean square over regions of the deviation from the controls' median, in robust
        sd of controls), ``size`` (of all regions together, in % above or below the usual) and ``farthest`` (the largest
        deviation of a region, in robust sd of everybody).
    outliers
        By position, which is the row here.

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
    measures = pd.DataFrame({"distance": distance}, columns=list(MEASURES))
    notes, cells = defaultdict[int, list[str]](list), defaultdict[int, dict[str, float]](dict)
    far_in = defaultdict[int, list[str]](list)
    logarithm = np.log(np.maximum(distance, 1e-9))
    _, limit = _usual_range(logarithm, group, _FAR_PERSON, _SMALLEST_SPREAD)
    for position in np.flatnonzero(logarithm > limit).tolist():
        most = int(np.argmax(deviation[position]))
        cells[position][regions[most]] = value = float(block[position, most])
        notes[position].append(
            f"distance {distance[position]:.2f}, usually below {np.exp(limit[position]):.2f}, "
            f"most in {regions[most]} = {shown(value)}"
        )
        far_in[position].append("distance")
    if sizes.mean() > 0.5:  # all regions together too small or too large
        size = np.log(ratio).mean(axis=1)
        low, high = _usual_range(size, group, _FAR_SIZE, 0.0)
        measures["size"] = 100 * np.expm1(size)
        for position in np.flatnonzero((size < low) | (size > high)).tolist():
            percent = measures["size"][position]
            larger = "larger" if percent > 0 else "smaller"
            notes[position].append(f"regions {abs(percent):.0f} % {larger} than usual throughout")
            far_in[position].append("size")
    centre, spread = _centre_and_spread(block)
    far = np.abs(block - centre) > _FAR_CELL * spread
    measures["farthest"] = np.max(np.abs(block - centre) / spread, axis=1)
    for position in np.flatnonzero(far.any(axis=1)).tolist():
        beyond = {regions[place]: float(block[position, place]) for place in np.flatnonzero(far[position]).tolist()}
        cells[position] |= beyond
        said = listed((f"{region} = {shown(value)}" for region, value in beyond.items()), 3)
        notes[position].append(f"{said} beyond {_FAR_CELL:.0f} robust sd")
        far_in[position].append("farthest")
    return measures, {
        at: Outlier(at, "; ".join(notes[at]), tuple(cells[at].items()), tuple(far_in[at])) for at in sorted(notes)
    }


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
