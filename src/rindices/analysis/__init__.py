"""What follows from R-indices and what could mislead about them: results as tables."""

from rindices.analysis.associations import associations
from rindices.analysis.balance import (
    balance_warnings,
    flow_table,
    group_balance,
    group_check,
)
from rindices.analysis.change import change_per_year
from rindices.analysis.region_effects import dose_response, drivers, subgroup_effects, subgroup_sizes

__all__ = [
    "associations",
    "balance_warnings",
    "change_per_year",
    "dose_response",
    "drivers",
    "flow_table",
    "group_balance",
    "group_check",
    "subgroup_effects",
    "subgroup_sizes",
]
