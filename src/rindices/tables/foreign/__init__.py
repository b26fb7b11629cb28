"""What other programs leave behind for each person: FreeSurfer and FastSurfer by subject, others by volumes."""

from rindices.tables.foreign.freesurfer import read_freesurfer
from rindices.tables.foreign.measured import Found, Measured
from rindices.tables.foreign.volume_tables import read_cat12, read_dlmuse, read_synthseg

__all__ = ["Found", "Measured", "read_cat12", "read_dlmuse", "read_freesurfer", "read_synthseg"]
