"""What others made, brought in: the authors' published checkpoints, and tables of MUSE volumes."""
