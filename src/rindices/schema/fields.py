"""A field for each role of a column: it looks at batches of rows, learns from a training table, or checks any table.

The same fields serve the training table and new people, whole or some rows at a time. `observe` takes a batch of rows,
as `rindices.tables` reads them or with columns of numbers already, and returns what it found there; `problems` says
what is wrong with all rows so far. What a field learned is kept in a `rindices.schema.contract.Contract`.

A field finds gaps and impossible values; who is refused or left out for them is for `rindices.cohort.exclusions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from rindices.problems import Problem, Text, refusal
from rindices.schema.cells import Roster, plain_code, text_of
from rindices.schema.covariate_field import CovariateField
from rindices.schema.id_field import IdField
from rindices.schema.region_field import RegionField, Seen
from rindices.schema.score_field import BackgroundField, ScoreField

NO_LABEL = "n/a"


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
    def notes(self) -> list[Text]:
        """Sentences for the user."""
        return [note for field in (*self.scores, *self.background) for note in field.notes]
