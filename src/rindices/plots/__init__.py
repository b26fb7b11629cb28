"""Figures of a run: tables in, a matplotlib ``Figure`` out; no pyplot, no state that outlives a call."""

from rindices.plots.associations import forest
from rindices.plots.patterns import pattern_dots
from rindices.plots.people import change_lines, outlier_distances
from rindices.plots.scores import r_index_distributions, r_index_pairs, recovery
from rindices.plots.severity import dose_response, subgroup_dots
from rindices.plots.style import figure_png, figure_svg
from rindices.plots.sweep import agreement_over_settings, null_statistics
from rindices.plots.training import agreement_over_training

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
