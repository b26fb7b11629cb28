"""What follows from R-indices and what could mislead about them: results as tables."""

from rindices.analysis.associations import associations
from rindices.analysis.change import change_per_year
from rindices.analysis.effects import dose_response, drivers, subgroup_effects, subgroup_sizes
from rindices.analysis.groups import (
    balance_warnings,
    differences_that_count,
    flow_table,
    group_balance,
    group_check,
)

__all__ = [
    "associations",
    "balance_warnings",
    "change_per_year",
    "differences_that_count",
    "dose_response",
    "drivers",
    "flow_table",
    "group_balance",
    "group_check",
    "subgroup_effects",
    "subgroup_sizes",
]
