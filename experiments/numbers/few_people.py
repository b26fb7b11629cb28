"""Whether intervals hold the true severities where few people were learned from.

    python experiments/numbers/few_people.py   # writes results/few_people.csv; half a minute of a core a cohort
    python experiments/numbers/few_people.py --show

Five repetitions of the default; 300 new patients of each cohort, true severities in the model's unit. `failing` cohorts
are those whose intervals hold fewer than 85 % of them.
"""

from __future__ import annotations

import pandas as pd
from cases import RESULTS, parser, row_by_row
from figures import measure
from people import Recipe, make

from rindices import SurrealGAN

FIRST_SEED = 441_000
COHORTS = 8
SIZES = ((60, 60), (60, 200), (200, 60), (70, 70), (80, 80), (100, 100))
KINDS = ("basic", "noise")


def measured(kind: str, n_controls: int, n_patients: int, seed: int) -> list[dict[str, object]]:
    """Fit one cohort."""
    given = make(Recipe(kind, seed, n_controls, n_patients, n_fresh=300))
    model = SurrealGAN(3, n_repetitions=5, random_state=0, n_jobs=1).fit(given.regions, given.patient)
    found = measure(model, given, with_ridge=False)
    names = {"fresh_cover95": "inside", "fresh_raw_cover95": "raw", "fresh_width95": "width", "fresh_rmse": "rmse"}
    row = {"kind": kind, "n_controls": n_controls, "n_patients": n_patients, "seed": seed}
    row |= {new: found[old] for old, new in names.items()}
    return [row | {name: found[name] for name in ("concordance", "agreement", "unit", "above_95")}]


def show(table: pd.DataFrame) -> None:
    """Print means by size, and how many cohorts fail."""
    table = table.assign(failing=table["inside"] < 0.85)
    print(table.groupby(["kind", "n_controls", "n_patients"]).mean().drop(columns="seed").round(3).to_string())


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    path = (options.out if options.small else RESULTS) / "few_people.csv"
    if not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if options.small else COHORTS))
        row_by_row(measured, [(kind, *size, seed) for seed in seeds for size in SIZES for kind in KINDS], path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
