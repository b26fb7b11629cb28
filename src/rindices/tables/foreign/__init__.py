"""What other programs leave behind for each person: a file for each program."""

from rindices.tables.foreign.cat12 import read_cat12
from rindices.tables.foreign.freesurfer import read_freesurfer
from rindices.tables.foreign.measured import Found, Measured
from rindices.tables.foreign.volume_tables import read_dlmuse, read_synthseg

__all__ = ["Found", "Measured", "read_cat12", "read_dlmuse", "read_freesurfer", "read_synthseg"]
