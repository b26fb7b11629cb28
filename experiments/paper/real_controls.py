"""Table 1 on real people: cohorts of 147 controls and 300 patients built from a table of healthy people. For a GPU.

    python experiments/paper/real_controls.py --controls healthy.csv --out results/real_controls.csv

The same as table1.py except for the people; all choices are made without the truth.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table1 import run
from tables import parser, scope

from rindices.core import devices


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    options = parser(__doc__, "real_controls")
    options.add_argument("--controls", type=Path, required=True, help="table of real healthy people")
    chosen = options.parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out, pd.read_csv(chosen.controls))


if __name__ == "__main__":
    main()
