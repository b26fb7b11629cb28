"""Users' tables, read, checked by the fields of `rindices.schema`, and divided into controls and patients."""

from rindices.cohort.new_people import read_people
from rindices.cohort.people import Cohort, People
from rindices.cohort.training_table import Looked, correction_of, look_at, make_cohort, read_cohort

__all__ = [
    "Cohort",
    "Looked",
    "People",
    "correction_of",
    "look_at",
    "make_cohort",
    "read_cohort",
    "read_people",
]
