"""Brain images of the people: where in the brain patients of a pattern differ from controls."""

from rindices.imaging.image_output import cluster_table, comparison_table, write_comparisons
from rindices.imaging.images import read_map_table
from rindices.imaging.voxelwise import Comparison, compare_maps

__all__ = [
    "Comparison",
    "cluster_table",
    "compare_maps",
    "comparison_table",
    "read_map_table",
    "write_comparisons",
]
