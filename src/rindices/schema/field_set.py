"""All fields of a table together: they look at the same rows, and what is wrong is said once.

The training table and new people go through the same fields: with a model's contract they know what columns must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from rindices.problems import Problem, Text, refusal
from rindices.schema.covariate_field import CovariateField
from rindices.schema.diagnosis_field import DiagnosisField
from rindices.schema.field import Field, Roster, Seen
from rindices.schema.id_field import IdField
from rindices.schema.region_field import RegionField
from rindices.schema.score_field import ScoreField
from rindices.schema.visit_field import Timeline, VisitField


class Observed(NamedTuple):
    """What all fields found in some rows.

    Attributes
    ----------
    roster
        Who sits where.
    labels
        The diagnosis as text, ``n/a`` where there is none.
    timeline
        When the visits were.
    covariates, regions
        Of the columns that scores need.
    background
        People × covariates and further columns in which the groups should not differ: numbers as float64, or text.
    scores
        People × clinical scores, with gaps.
    """

    roster: Roster
    labels: pd.Series
    timeline: Timeline
    covariates: dict[str, Seen]
    regions: Seen
    background: pd.DataFrame
    scores: pd.DataFrame


class FieldSet(NamedTuple):
    """The fields of a table, in the order in which problems are said."""

    people: IdField
    visit: VisitField
    diagnosis: DiagnosisField
    covariates: Sequence[CovariateField]
    regions: RegionField
    scores: Sequence[ScoreField]
    background: Sequence[ScoreField] = ()

    def observe(self, batch: pd.DataFrame) -> Observed:
        """Look at some rows; without ids nothing else can be told, so these are refused at once."""
        roster = Roster.of(batch, self.people.name)
        if self.people.observe(batch, roster).hasnans:
            raise refusal(self.people.check())
        seen = {field.name: field.observe(batch, roster) for field in self.covariates}
        background = {field.name: field.observe(batch, roster) for field in self.background}
        return Observed(
            roster,
            self.diagnosis.observe(batch, roster),
            self.visit.observe(batch, roster),
            seen,
            self.regions.observe(batch, roster),
            _columns(seen, roster).infer_objects().assign(**_columns(background, roster)),
            _columns({field.name: field.observe(batch, roster) for field in self.scores}, roster),
        )

    @property
    def _every(self) -> list[Field[Any]]:
        some = (self.people, self.visit, self.diagnosis, *self.covariates, self.regions)
        return [*some, *self.scores, *self.background]

    def check(self) -> list[Problem]:
        """Say what is wrong with all rows so far; what two fields say is said once, below both."""
        return list(dict.fromkeys(one for field in reversed(self._every) for one in reversed(field.check())))[::-1]

    @property
    def notes(self) -> list[Text]:
        """Sentences for the user."""
        return [note for field in self._every for note in field.notes]


def _columns(seen: dict[str, Seen], roster: Roster) -> pd.DataFrame:
    values = {name: one.values[:, 0] for name, one in seen.items()}
    return pd.DataFrame(values, roster.ids, pd.Index([*values], dtype=object))
