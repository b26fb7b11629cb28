"""A field for each role of a column: it looks at batches of rows, learns from a training table, or checks any table.

The same fields serve the training table and new people, whole or some rows at a time. `observe` takes a batch of rows,
as `rindices.tables` reads them or with columns of numbers already, and returns what it found there; `problems` says
what is wrong with all rows so far. What a field learned is kept in a `rindices.schema.contract.Contract`.

A field finds gaps and impossible values; who is refused or left out for them is for `rindices.cohort.exclusions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.errors import Problem, counted, listed, refusal, setting, shown
from rindices.schema.cells import (
    CORRECT,
    LEAVE_OUT,
    BadCells,
    Roster,
    impossible_problems,
    meant_as_numbers,
    missing_problems,
    numbers_of,
    plain_code,
    spreadsheet_rows,
    text_of,
    text_problems,
)
from rindices.schema.contract import CovariateSpec
from rindices.schema.impossible_values import impossible_covariate, impossible_regions, suspected_codes
from rindices.schema.units import unit_problems

MIN_REGIONS = 4
MOST_MISSING = 0.2  # share of a person's regions, or of a table's columns of regions, that may be missing
_FEW_VALUES = 0.25  # share of different values; a column of fewer holds a score, whose gaps are not to be filled in
MIN_SITE_CONTROLS = 5  # below, a site's shift and scale are mostly chance
# Numbers in these columns are names of places or machines: a slope over them would mean nothing.
_ALWAYS_CATEGORIES = frozenset({"site", "scanner"})
_ENOUGH_FOR_MEDIANS = 2_000_000  # numbers
NO_LABEL = "n/a"


class Seen(NamedTuple):
    """What a field found in some rows: values (people × columns), and which are missing or impossible."""

    values: NDArray
    missing: NDArray[np.bool_]
    impossible: NDArray[np.bool_]


class IdField:
    """Who people are: ids, each once; with visits, each person and visit once."""

    def __init__(self, name: str, visit: str | None = None) -> None:
        self.visit = visit
        self._columns, self._seen = [name] if visit is None else [name, visit], list[pd.DataFrame]()

    def observe(self, batch: pd.DataFrame) -> Roster:
        """Return who sits in these rows."""
        rows, texts = spreadsheet_rows(batch), {name: text_of(batch[name]).to_numpy() for name in self._columns}
        self._seen.append(pd.DataFrame(texts, index=rows))
        return Roster(pd.Index(texts[self._columns[0]], name="participant_id"), rows)

    def problems(self) -> list[Problem]:
        """Say which ids and visits are missing or occur twice."""
        people = pd.concat(self._seen)
        for name, what in zip(self._columns, ("an id", "a visit"), strict=False):
            rows = people.index[people[name].isna()].tolist()
            if rows:
                where = f"{counted(len(rows), 'row')}: row {listed(rows)}"
                text = f"Every row needs {what}, but column {name!r} is empty in {where}."
                return [Problem(text, (f"fill in the {what.split()[1]}s or remove these rows",))]
        again = people[people.duplicated(keep=False)]
        if again.empty:
            return []
        key, others = again.iloc[0], len(again.drop_duplicates()) - 1
        places = listed(again.index[(again == key).all(axis=1)], joiner=" and ")
        more = f" ({counted(others, 'other')} repeated as well)" if others else ""
        if len(self._columns) == 1:
            text = f"Every person needs an id of their own, but {key.iloc[0]!r} occurs in rows {places}{more}."
            visits = f"if these are visits of one person, name their column with {setting('visit', 'COLUMN')}"
            return [Problem(text, (visits, "make the ids differ"))]
        text = (
            f"A person's visits must differ, but participant {key.iloc[0]!r} has the visit {key.iloc[1]!r} (column "
            f"{self._columns[1]!r}) in rows {places}{more}."
        )
        return [Problem(text, ("keep one of them", "correct the visits"))]


class NumberField:
    """Columns that should hold numbers.

    Parameters
    ----------
    columns
        Their names.
    kind
        What they are, in messages.
    impossible
        Marks impossible numbers of people × columns, given those of a reference.
    reference
        Other people × columns to judge by; None where these people are judged by themselves.
    decimal_comma
        Whether decimals may have a comma.
    """

    def __init__(
        self,
        columns: Sequence[str],
        kind: str,
        impossible: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]],
        reference: NDArray[np.float64] | None = None,
        *,
        decimal_comma: bool = False,
    ) -> None:
        self.columns, self.kind = list(columns), kind
        self._judge, self._reference, self._comma = impossible, reference, decimal_comma
        self.text, self.missing, self.impossible = BadCells(), BadCells(), BadCells()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the numbers in some rows."""
        text = np.zeros((len(batch), len(self.columns)), dtype=bool)
        try:  # row by row, as the text lies in memory: most tables have neither gaps nor words
            block = np.ascontiguousarray(batch[self.columns].to_numpy()).astype(np.float64, copy=False)
        except (ValueError, TypeError):
            block = np.empty(text.shape)
            for position, name in enumerate(self.columns):
                block[:, position] = numbers_of(batch[name], decimal_comma=self._comma)
                if not is_numeric_dtype(batch[name]) and np.isnan(block[:, position]).any():
                    text[:, position] = np.isnan(block[:, position]) & text_of(batch[name]).notna().to_numpy()
        missing = self._unusable_gaps(block, np.isnan(block) & ~text)
        impossible = self._judge(block, block if self._reference is None else self._reference)

        def written(row: int, position: int) -> str:
            return str(batch[self.columns[position]].iloc[row])

        self.text.add(text, self.columns, roster, written)
        self.missing.add(missing, self.columns, roster, written)
        self.impossible.add(impossible, self.columns, roster, lambda row, column: shown(float(block[row, column])))
        return Seen(block, missing, impossible)

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the gaps because of which a person cannot be used: all of them."""
        return gaps

    def problems(self) -> list[Problem]:
        """Say what is wrong."""
        return (
            text_problems(self.text, self.columns, self.kind)
            + missing_problems(self.missing, self.columns, self.kind)
            + impossible_problems(self.impossible)
        )


class RegionField(NumberField):
    """The regions. With a reference (minimum, median and maximum in training, as rows) units are checked, too.

    With `fills`, people may lack a fifth of them; in a training table, which has no reference, columns may have gaps in
    a fifth of the people, unless they are `scores`, or look like scores.
    """

    def __init__(
        self,
        columns: Sequence[str],
        reference: NDArray[np.float64] | None = None,
        *,
        unit: str | None = None,
        decimal_comma: bool = False,
        fills: bool = False,
        scores: Collection[str] = (),
    ) -> None:
        super().__init__(columns, "region", impossible_regions, reference, decimal_comma=decimal_comma)
        self._fills, self._scores = fills, scores
        self._unit, self._kept, self._units = unit, list[NDArray[np.float64]](), list[Problem]()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the regions of some rows."""
        seen = super().observe(batch, roster)
        if self._reference is not None and sum(map(np.size, self._kept)) < _ENOUGH_FOR_MEDIANS:
            self._kept.append(seen.values)
            people, medians = np.concatenate(self._kept), np.full(len(self.columns), np.nan)
            known = ~np.isnan(people).all(axis=0)
            medians[known] = np.nanmedian(people[:, known], axis=0)
            self._units = unit_problems(medians, len(people), self.columns, self._reference, self._unit)
        return seen

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if not self._fills or not gaps.any():
            return gaps
        unusable = np.broadcast_to((gaps.mean(axis=1) > MOST_MISSING)[:, None], gaps.shape).copy()
        for place in np.flatnonzero(gaps.any(axis=0)).tolist() if self._reference is None else ():
            known = block[~gaps[:, place], place]
            score = self.columns[place] in self._scores or len(np.unique(known)) < _FEW_VALUES * len(known)
            unusable[:, place] |= score or len(known) < (1 - MOST_MISSING) * len(gaps)
        return gaps & unusable

    def problems(self) -> list[Problem]:
        """Say what is wrong with cells, and with units, which the first people of a long table tell."""
        return super().problems() + ([] if self.text.counts else self._units)


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
        found = [problem._replace(columns=()) for problem in self._cells.problems()] + self._spellings
        if self._cells.impossible.counts.total() == self._n_known:  # where all are odd, it is their unit
            found = [one._replace(remedies=tuple(way for way in one.remedies if way != LEAVE_OUT)) for one in found]
        spec = self._spec
        if (self._cells.text.counts or self._cells.impossible.counts) and found and spec is not None:
            was = (
                " and ".join(map(shown, spec.codes))
                if spec.codes
                else f"{shown(spec.minimum)} to {shown(spec.maximum)}"
            )
            text = f"{found[0].text}\nCovariate {self.name!r} was a number in training ({was})."
            found[0] = Problem(text, ("code it as in the training table", *found[0].remedies))
        if self._unknown.counts:
            place, value = self._unknown.first[self.name]
            number = counted(self._unknown.counts[self.name], "person", "people")
            text = (
                f"Covariate {self.name!r} was coded {listed(map(shown, self._known or ()), 10)} in training, but this "
                f"table has {listed(sorted(self._unknown.values), 10)}.\n"
                f"The first unknown value is {value!r} in {place} ({number} in all)."
            )
            uncorrected = f"score these people uncorrected with {setting('new_sites', 'uncorrected')}"
            adapt = "learn a new site from controls who were measured there: rindices adapt"
            others = (adapt, uncorrected) if self._is_site else ("remove these people",)
            found.append(Problem(text, ("code it as in the training table", *others)))
        return found


class ScoreField:
    """A clinical score: a number or a category, with gaps. A suspected code counts as a gap until it is named."""

    def __init__(self, name: str) -> None:
        self.name, self.notes = name, list[str]()
        self._cells = NumberField([name], "clinical score", lambda block, _: np.isinf(block))

    def observe(self, batch: pd.DataFrame, roster: Roster) -> NDArray:
        """Return the score in some rows: numbers, or categories as text, with gaps as NaN."""
        column, text = batch[self.name], text_of(batch[self.name])
        if text.notna().any() and not meant_as_numbers(column):
            return text.to_numpy()
        values = self._cells.observe(batch, roster).values[:, 0]
        suspects = suspected_codes(values, values)
        for code in np.unique(values[suspects]).tolist():
            people = counted(int((values == code).sum()), "person has", "people have")
            self.notes.append(
                f"{people} {self.name} = {shown(code)}, which looks like a code for a missing value: not used. If it "
                f"is one, say so with {setting('missing', [shown(code)])}, or leave such cells empty."
            )
        return np.where(suspects, np.nan, values)

    def problems(self) -> list[Problem]:
        """Say what is wrong with it: text among numbers, infinite numbers."""
        odd = self._cells.impossible.cells
        infinite = [Problem(f"Infinite values: {', '.join(odd)}.", (CORRECT,))] if odd else []
        return text_problems(self._cells.text, [self.name], self._cells.kind) + infinite


class BackgroundField(ScoreField):
    """A column such as age without a role: groups should not differ in it. Text among its numbers is a gap."""

    def observe(self, batch: pd.DataFrame, roster: Roster) -> NDArray:
        """Return the column in some rows: numbers, or categories as text, with gaps as NaN."""
        column, numbers = batch[self.name], numbers_of(batch[self.name])
        odd = np.flatnonzero(column.notna() & np.isnan(numbers))
        if not 0 < len(odd) < column.notna().sum() or not meant_as_numbers(column):
            return column.to_numpy()
        where = f"{counted(len(odd), 'cell')}, row {roster.rows[odd[0]]}"
        self.notes.append(f"{self.name} has text among its numbers ({where}): not used.")
        return numbers


class Observed(NamedTuple):
    """What all fields found in some rows.

    Attributes
    ----------
    roster
        Who sits where.
    labels
        The diagnosis as text, ``n/a`` where there is none.
    visits
        The visits as numbers or text; None where there are none.
    covariates, regions
        Of the columns that scores need.
    background
        People × covariates and further columns in which the groups should not differ: numbers as float64, or text.
    scores
        People × clinical scores, with gaps.
    """

    roster: Roster
    labels: pd.Series
    visits: pd.Series | None
    covariates: dict[str, Seen]
    regions: Seen
    background: pd.DataFrame
    scores: pd.DataFrame


class FieldSet:
    """All fields of a table together.

    Parameters
    ----------
    people, covariates, regions, scores, background
        The fields.
    diagnosis
        The column of labels, which need not be there.
    """

    def __init__(
        self,
        people: IdField,
        covariates: Sequence[CovariateField],
        regions: RegionField,
        scores: Sequence[ScoreField],
        diagnosis: str,
        background: Sequence[BackgroundField] = (),
    ) -> None:
        self.people, self.covariates, self.regions, self.scores = people, covariates, regions, scores
        self.background, self._diagnosis = background, diagnosis

    def observe(self, batch: pd.DataFrame) -> Observed:
        """Look at some rows; without ids nothing else can be told, so these are refused at once."""
        roster, visit = self.people.observe(batch), self.people.visit
        if roster.ids.hasnans:
            raise refusal(self.people.problems())
        covariates = {field.name: field.observe(batch, roster) for field in self.covariates}
        values = {name: seen.values[:, 0] for name, seen in covariates.items()}
        background = pd.DataFrame(values, roster.ids, pd.Index([*values], dtype=object)).infer_objects()
        scores = {field.name: field.observe(batch, roster) for field in self.scores}
        return Observed(
            roster,
            self._labels(batch).set_axis(roster.ids),
            None if visit is None else batch[visit],
            covariates,
            self.regions.observe(batch, roster),
            background.assign(**{field.name: field.observe(batch, roster) for field in self.background}),
            pd.DataFrame(scores, roster.ids, pd.Index([*scores], dtype=object)),
        )

    def _labels(self, batch: pd.DataFrame) -> pd.Series:
        """Return the labels as text: ``1.0`` becomes ``1``, a missing label ``n/a``."""
        if self._diagnosis not in batch:
            return pd.Series(NO_LABEL, index=batch.index, name=self._diagnosis)
        text = text_of(batch[self._diagnosis])
        return text.map({label: plain_code(label) for label in text.dropna().unique()}).where(text.notna(), NO_LABEL)

    def problems(self) -> list[Problem]:
        """Say what is wrong with all rows so far, each thing once."""
        columns = [one for field in self.covariates for one in field.problems()] + self.regions.problems()
        scores = [one for field in self.scores for one in field.problems()]
        found = self.people.problems() + columns + scores
        return list(dict.fromkeys(reversed(found)))[::-1]  # what two fields say is said once, below both

    @property
    def notes(self) -> list[str]:
        """Sentences for the user."""
        return [note for field in (*self.scores, *self.background) for note in field.notes]
