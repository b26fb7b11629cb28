"""Figures of a run: tables in, a matplotlib ``Figure`` out; no pyplot, no state that outlives a call."""

from rindices.plots.cards_and_curves import (
    follow_up_curves,
    pattern_mixture,
    power_curves,
    severity_by_age,
    severity_histogram,
)
from rindices.plots.patterns_and_associations import disorder_dots, forest, pattern_dots, subgroup_dots
from rindices.plots.repetitions import agreement_over_settings, agreement_over_training, spectrum, two_maps, two_scores
from rindices.plots.scores import (
    change_lines,
    dose_response,
    outlier_distances,
    r_index_distributions,
    recovery,
    trajectories,
)
from rindices.plots.style import figure_png, figure_svg, strip_above

__all__ = [
    "agreement_over_settings",
    "agreement_over_training",
    "change_lines",
    "disorder_dots",
    "dose_response",
    "figure_png",
    "figure_svg",
    "follow_up_curves",
    "forest",
    "outlier_distances",
    "pattern_dots",
    "pattern_mixture",
    "power_curves",
    "r_index_distributions",
    "recovery",
    "severity_by_age",
    "severity_histogram",
    "spectrum",
    "strip_above",
    "subgroup_dots",
    "trajectories",
    "two_maps",
    "two_scores",
]
