"""Pictures of the brain: patterns as marks or on a user's atlas, t-maps on glass brains and slices. Needs nilearn."""

from rindices.plots.brain.atlas import Painted, paint_labels
from rindices.plots.brain.images import glass, stat_mosaic
from rindices.plots.brain.markers import SEVERITIES, pattern_glass
from rindices.plots.brain.regions import Placed, place_regions
from rindices.plots.brain.sheet import colour_limit

__all__ = [
    "SEVERITIES",
    "Painted",
    "Placed",
    "colour_limit",
    "glass",
    "paint_labels",
    "pattern_glass",
    "place_regions",
    "stat_mosaic",
]
