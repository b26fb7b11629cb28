"""What follows from R-indices and what could mislead about them: results as tables."""

from rindices.analysis.balance import balance_warnings, group_balance

__all__ = ["balance_warnings", "group_balance"]
