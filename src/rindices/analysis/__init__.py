"""Analyses of R-indices, and checks of what could be misleading about them, as tables."""

from rindices.analysis.associations_and_resemblance import associations, resemblance
from rindices.analysis.balance import balance_warnings, flow_table, group_balance
from rindices.analysis.change import ScanNoise, change_per_year, group_change, scan_noise
from rindices.analysis.group_check import group_check
from rindices.analysis.prognosis import FollowUp, prognosis, survival_curves
from rindices.analysis.region_effects import (
    dose_response,
    drivers,
    group_effects,
    subgroup_effects,
    subgroup_sizes,
    whole_brain,
)

__all__ = [
    "FollowUp",
    "ScanNoise",
    "associations",
    "balance_warnings",
    "change_per_year",
    "dose_response",
    "drivers",
    "flow_table",
    "group_balance",
    "group_change",
    "group_check",
    "group_effects",
    "prognosis",
    "resemblance",
    "scan_noise",
    "subgroup_effects",
    "subgroup_sizes",
    "survival_curves",
    "whole_brain",
]
