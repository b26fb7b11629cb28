"""The regions: gaps and how many may be filled, impossible values, and units, judged by the medians of the regions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Problem, counted, listed
from rindices.schema.field import DIGITS, NumberField, Roster, Seen, kept_quantile
from rindices.schema.impossible_values import impossible_regions
from rindices.schema.role_guesses import looks_like_score
from rindices.schema.units import unit_problems

MIN_REGIONS = 4
MOST_MISSING = 0.2  # share of a person's regions, or of a table's columns of regions, that may be missing
MOST_LACKING = 0.4  # share of the training people who may lack a region
_ENOUGH_FOR_MEDIANS = 2_000_000  # numbers


class RegionField(NumberField):
    """The regions. With a reference (minimum, median and maximum in training, as rows) units are checked, too.

    With `fills`, people may lack a fifth of them; in a training table, which has no reference, columns may have gaps in
    two fifths of the people, unless they look like scores.
    """

    kind = "region"

    def __init__(
        self,
        columns: Sequence[str],
        reference: NDArray[np.float64] | None = None,
        *,
        unit: str | None = None,
        decimal_comma: bool = False,
        fills: bool = False,
    ) -> None:
        super().__init__(columns, reference, decimal_comma=decimal_comma)
        self._fills, self._unit, self._kept, self._units = fills, unit, list[NDArray[np.float64]](), list[Problem]()

    def learn(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a low quantile, the median and a high quantile (rows) of each region, rounded."""
        quantile = kept_quantile(len(values))
        kept = np.nanquantile(values, [quantile, 0.5, 1 - quantile], axis=0)
        size = np.floor(np.log10(np.abs(kept, where=kept != 0, out=np.ones_like(kept))))
        kept = np.round(kept / 10**size, DIGITS - 1) * 10**size
        # Whoever is not above 0 shows that 0, or less than it, is possible.
        for beyond, at_most in (((values <= 0).any(axis=0), 0), ((values < 0).any(axis=0), -1e-3 * np.abs(kept[2]))):
            kept[0] = np.where(beyond, np.minimum(kept[0], at_most), kept[0])
        return kept

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the regions of some rows."""
        seen = super().observe(batch, roster)
        if self._reference is not None and sum(map(np.size, self._kept)) < _ENOUGH_FOR_MEDIANS:
            self._kept.append(seen.values)
            people, medians = np.concatenate(self._kept), np.full(len(self.columns), np.nan)
            measured = ~np.isnan(people).all(axis=0)
            medians[measured] = np.nanmedian(people[:, measured], axis=0)
            self._units = unit_problems(medians, len(people), self.columns, self._reference, self._unit)
        return seen

    def _impossible(self, block: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
        return impossible_regions(block, reference)

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if not self._fills or not gaps.any():
            return gaps
        unusable = np.broadcast_to((gaps.mean(axis=1) > MOST_MISSING)[:, None], gaps.shape).copy()
        for place in np.flatnonzero(gaps.any(axis=0)).tolist() if self._reference is None else ():
            too_many = gaps[:, place].mean() > MOST_LACKING
            unusable[:, place] |= too_many or looks_like_score(self.columns[place], block[~gaps[:, place], place])
        return gaps & unusable

    def check(self) -> list[Problem]:
        """Say what is wrong with cells, and with units, which the first people of a long table tell."""
        return super().check() + ([] if self.text.counts else self._units)


def missing_regions(names: Sequence[str]) -> str:
    """Say which regions a person lacks."""
    return f"{counted(len(names), 'region')} missing ({listed(names, 5)})"
