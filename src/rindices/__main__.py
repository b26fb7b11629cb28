"""`python -m rindices` is the command `rindices`."""

from rindices.cli import main

main()
