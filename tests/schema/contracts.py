"""Contracts of cohorts, and checks of tables against them."""

from dataclasses import replace

from rindices.cohort import read_people
from rindices.schema import Contract


def contract_of(cohort, **columns) -> Contract:
    """Describe the training people of a cohort, as a run does."""
    return replace(
        Contract.of_people(cohort.features[cohort.training], cohort.covariates[cohort.training]),
        ignored_columns=(*cohort.ignored_columns, *map(str, cohort.clinical.columns)),
        control_labels=cohort.control_labels,
        patient_labels=cohort.patient_labels,
        site_column=None if cohort.site is None else str(cohort.site.name),
        **columns,
    )


def check_people(table, contract, settings=None):
    """Check a table of new people in memory."""
    (people,) = read_people(table, contract, settings)
    return people
