"""The schema of a table: its cells, a field for each column role, and what a model stores about them."""

from rindices.schema.contract import Contract, FieldSet, Observed, first_problem
from rindices.schema.covariate_and_score_fields import (
    MIN_SITE_CONTROLS,
    BackgroundField,
    CovariateField,
    CovariateSpec,
    ScoreField,
)
from rindices.schema.diagnosis_and_region_fields import (
    CONTROL_NAMES,
    MIN_REGIONS,
    MOST_LACKING,
    MOST_MISSING,
    NO_LABEL,
    DiagnosisField,
    Groups,
    RegionField,
    groups_of,
    labels_with_counts,
)
from rindices.schema.field import LEAVE_OUT, STRICT, Roster, Seen
from rindices.schema.id_and_visit_fields import IdField, VisitField, changed_people, years_since_first

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
    "changed_people",
    "first_problem",
    "groups_of",
    "labels_with_counts",
    "years_since_first",
]
