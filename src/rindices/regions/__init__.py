"""Names of regions: what they say by themselves, and what atlases, programs and studies mean by them."""

from rindices.regions.region_names import (
    KnownColumn,
    Region,
    known_columns,
    known_regions,
    pair_sides,
    region_label,
    split_measure,
    split_side,
)

__all__ = [
    "KnownColumn",
    "Region",
    "known_columns",
    "known_regions",
    "pair_sides",
    "region_label",
    "split_measure",
    "split_side",
]
