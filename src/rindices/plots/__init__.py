"""Figures of a run: tables in, a matplotlib ``Figure`` out; no pyplot, no state that outlives a call."""

from rindices.plots.patterns_and_associations import forest, pattern_dots, subgroup_dots
from rindices.plots.repetitions import agreement_over_settings, agreement_over_training, null_statistics
from rindices.plots.scores import (
    change_lines,
    dose_response,
    outlier_distances,
    r_index_distributions,
    r_index_pairs,
    recovery,
)
from rindices.plots.style import figure_png, figure_svg

__all__ = [
    "agreement_over_settings",
    "agreement_over_training",
    "change_lines",
    "dose_response",
    "figure_png",
    "figure_svg",
    "forest",
    "null_statistics",
    "outlier_distances",
    "pattern_dots",
    "r_index_distributions",
    "r_index_pairs",
    "recovery",
    "subgroup_dots",
]
