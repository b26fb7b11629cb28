"""Users' tables, read, checked by the fields of `rindices.schema`, and divided into controls and patients."""

from rindices.cohort.new_people import read_people
from rindices.cohort.people import Cohort, Outlier, People, check_follow_up, follow_up_of
from rindices.cohort.training_table import (
    Looked,
    correction_of,
    look_at,
    make_cohort,
    named_parts,
    read_cohort,
)

__all__ = [
    "Cohort",
    "Looked",
    "Outlier",
    "People",
    "check_follow_up",
    "correction_of",
    "follow_up_of",
    "look_at",
    "make_cohort",
    "named_parts",
    "read_cohort",
    "read_people",
]
