"""Covariates and the site: numbers or categories, spelling, values that a model does not know, the fewest controls."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Message, Problem, Remedy, counted, listed, shown
from rindices.schema.cells import LEAVE_OUT, BadCells, Roster, meant_as_numbers, text_of
from rindices.schema.contract import CovariateSpec
from rindices.schema.impossible_values import impossible_covariate
from rindices.schema.region_field import NumberField, Seen

MIN_SITE_CONTROLS = 5  # below, a site's shift and scale are mostly chance
# Numbers in these columns are names of places or machines: a slope over them would mean nothing.
_ALWAYS_CATEGORIES = frozenset({"site", "scanner"})


class CovariateField:
    """A covariate: a number or a category, which is learned from a training table or known from a model.

    Parameters
    ----------
    name
        Its column.
    spec
        What a model expects of it; None for a training table.
    is_category
        Whether its numbers are names, because a data dictionary says so or it is the site.
    is_divisor
        Whether regions are divided by it.
    new_sites
        Of the site: whether unknown ones pass ("uncorrected") or not ("refuse").
    decimal_comma
        Whether decimals may have a comma.
    """

    def __init__(
        self,
        name: str,
        spec: CovariateSpec | None = None,
        *,
        is_category: bool = False,
        is_divisor: bool = False,
        new_sites: str | None = None,
        decimal_comma: bool = False,
    ) -> None:
        self.name, self._spec, self._is_site = name, spec, new_sites is not None
        self._is_category: bool | None = is_category or name.casefold() in _ALWAYS_CATEGORIES or None
        self._known: tuple[str, ...] | tuple[float, ...] | None = None
        reference, has_codes = None, False
        if spec is not None:
            self._is_category, has_codes = spec.categories is not None, spec.codes is not None
            self._known = None if new_sites == "uncorrected" else spec.categories or spec.codes
            reference = None if spec.minimum is None else np.array([[spec.minimum], [spec.maximum]])

        def impossible(block: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
            marked = impossible_covariate(name, block[:, 0], others[:, 0], is_divisor=is_divisor)
            return marked[:, None] & (not has_codes)

        self._cells = NumberField([name], "covariate", impossible, reference, decimal_comma=decimal_comma)
        self._unknown, self._spellings, self._n_known = BadCells(), list[Problem](), 0

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the covariate in some rows: numbers, or categories as text."""
        column = batch[self.name]
        if self._is_category is None:  # learned from the first rows, which are all of a training table
            self._is_category = not meant_as_numbers(column)
        if self._is_category:
            text = text_of(column)
            missing = text.isna().to_numpy()[:, None]
            self._cells.missing.add(missing, [self.name], roster, lambda *_: "")
            seen = Seen(text.to_numpy()[:, None], missing, np.zeros(missing.shape, dtype=bool))
            if self._spec is None:
                self._look_for_spellings(text, roster)
        else:
            seen = self._cells.observe(batch, roster)
        self._n_known += int((~seen.missing).sum())
        if self._known is not None:
            values = pd.Series(seen.values[:, 0])
            bad = (values.notna() & ~values.isin(list(self._known))).to_numpy()[:, None]
            self._unknown.add(bad, [self.name], roster, lambda row, _: shown(values.iloc[row]))
        return seen

    def _look_for_spellings(self, column: pd.Series, roster: Roster) -> None:
        """Find categories that are the same but for capitals and blanks, which would be corrected for one by one."""
        counts = column.value_counts()  # the most frequent first
        usual: dict[str, str] = {}
        for level in map(str, counts.index):
            same = usual.setdefault(" ".join(level.split()).casefold(), level)
            if same != level:
                first = roster.at(int(np.flatnonzero((column == level).to_numpy())[0]))
                there, here = (counted(int(counts[name]), "person", "people") for name in (same, level))
                text = (
                    f"Column {self.name!r} has {same!r} ({there}) and {level!r} ({here}, the first in {first}), which "
                    "would count as two categories."
                )
                self._spellings.append(Problem(text, (f"write both the same way, such as {same}",)))

    def problems(self) -> list[Problem]:
        """Say what is wrong with it."""
        found = [problem._replace(where=()) for problem in self._cells.problems()] + self._spellings
        if self._cells.impossible.counts.total() == self._n_known:  # where all are odd, it is their unit
            found = [one._replace(remedies=tuple(way for way in one.remedies if way != LEAVE_OUT)) for one in found]
        spec = self._spec
        if (self._cells.text.counts or self._cells.impossible.counts) and found and spec is not None:
            was = (
                " and ".join(map(shown, spec.codes))
                if spec.codes
                else f"{shown(spec.minimum)} to {shown(spec.maximum)}"
            )
            number = f"\nCovariate {self.name!r} was a number in training ({was})."
            found[0] = Problem(Message(found[0].what, number), ("code it as in the training table", *found[0].remedies))
        if self._unknown.counts:
            place, value = self._unknown.first[self.name]
            number = counted(self._unknown.counts[self.name], "person", "people")
            text = (
                f"Covariate {self.name!r} was coded {listed(map(shown, self._known or ()), 10)} in training, but this "
                f"table has {listed(sorted(self._unknown.values), 10)}.\n"
                f"The first unknown value is {value!r} in {place} ({number} in all)."
            )
            uncorrected = Message("score these people uncorrected with ", Remedy("new_sites", "uncorrected"))
            adapt = "learn a new site from controls who were measured there: rindices adapt"
            others = (adapt, uncorrected) if self._is_site else ("remove these people",)
            found.append(Problem(text, ("code it as in the training table", *others)))
        return found
