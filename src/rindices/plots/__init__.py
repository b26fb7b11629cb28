"""Figures of a run: tables in, a matplotlib ``Figure`` out; no pyplot, no state that outlives a call."""

from rindices.plots.patterns import strongest_regions
from rindices.plots.scores import r_index_distributions, r_index_pairs, recovery
from rindices.plots.style import figure_png, figure_svg
from rindices.plots.sweep import agreement_over_settings, null_statistics
from rindices.plots.training import agreement_over_training

__all__ = [
    "agreement_over_settings",
    "agreement_over_training",
    "figure_png",
    "figure_svg",
    "null_statistics",
    "r_index_distributions",
    "r_index_pairs",
    "recovery",
    "strongest_regions",
]
