"""Users' tables: read, checked, and sorted into controls, patients and others. Every check of a table lives here."""

from rindices.cohort.contract import Contract, CovariateSpec, People, check_people, read_people
from rindices.cohort.people import MIN_PEOPLE, MIN_REGIONS, Cohort, make_cohort, read_cohort
from rindices.cohort.tables import read_table

__all__ = [
    "MIN_PEOPLE",
    "MIN_REGIONS",
    "Cohort",
    "Contract",
    "CovariateSpec",
    "People",
    "check_people",
    "make_cohort",
    "read_cohort",
    "read_people",
    "read_table",
]
