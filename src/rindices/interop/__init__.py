"""Import of the authors' published checkpoints, and of tables of MUSE volumes."""
