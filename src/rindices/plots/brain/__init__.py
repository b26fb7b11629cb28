"""Pictures of the brain: patterns as marks or on a user's atlas, t-maps on glass brains and slices. Needs nilearn."""

from rindices.plots.brain.atlas import Painted, paint_labels
from rindices.plots.brain.pictures import SEVERITIES, glass, pattern_glass, stat_mosaic
from rindices.plots.brain.sheet import colour_limit
from rindices.plots.region_names import Placed, place_regions

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
