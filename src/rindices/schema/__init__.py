"""What a table must be: its cells, a field for each role of a column, and what a model keeps of them."""

from rindices.schema.contract import Contract, first_problem
from rindices.schema.covariate_field import MIN_SITE_CONTROLS, CovariateField, CovariateSpec
from rindices.schema.diagnosis_field import (
    CONTROL_NAMES,
    NO_LABEL,
    DiagnosisField,
    Groups,
    groups_of,
    labels_with_counts,
)
from rindices.schema.field import LEAVE_OUT, STRICT, Roster, Seen
from rindices.schema.field_set import FieldSet, Observed
from rindices.schema.id_field import IdField
from rindices.schema.region_field import MIN_REGIONS, MOST_LACKING, MOST_MISSING, RegionField
from rindices.schema.score_field import BackgroundField, ScoreField
from rindices.schema.visit_field import VisitField, years_since_first

__all__ = [
    "CONTROL_NAMES",
    "LEAVE_OUT",
    "MIN_REGIONS",
    "MIN_SITE_CONTROLS",
    "MOST_LACKING",
    "MOST_MISSING",
    "NO_LABEL",
    "STRICT",
    "BackgroundField",
    "Contract",
    "CovariateField",
    "CovariateSpec",
    "DiagnosisField",
    "FieldSet",
    "Groups",
    "IdField",
    "Observed",
    "RegionField",
    "Roster",
    "ScoreField",
    "Seen",
    "VisitField",
    "first_problem",
    "groups_of",
    "labels_with_counts",
    "years_since_first",
]
