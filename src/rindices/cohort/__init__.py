"""Users' tables: read, checked, and sorted into controls, patients and others. Every check of a table lives here."""

from rindices.cohort.columns import MIN_REGIONS
from rindices.cohort.joining import join_by_id
from rindices.cohort.labels import MIN_PEOPLE
from rindices.cohort.making import make_cohort, read_cohort
from rindices.cohort.new_people import People, check_people, read_people
from rindices.cohort.people import Cohort
from rindices.cohort.people_blocks import people_in_blocks
from rindices.cohort.tables import read_table
from rindices.schema.contract import Contract, CovariateSpec

__all__ = [
    "MIN_PEOPLE",
    "MIN_REGIONS",
    "Cohort",
    "Contract",
    "CovariateSpec",
    "People",
    "check_people",
    "join_by_id",
    "make_cohort",
    "people_in_blocks",
    "read_cohort",
    "read_people",
    "read_table",
]
