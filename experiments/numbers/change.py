"""Measure how often groups without change are reported to change, with few visits.

    python experiments/numbers/change.py            # writes results/change.csv (a minute)
    python experiments/numbers/change.py --show

30 patients and 30 controls come two to four times at irregular intervals. Everybody has a level and a slope of their
own; slopes are 0 on average in both groups, and scans add noise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import RESULTS, parser, write

from rindices.analysis import group_change

FIRST_SEED = 123_000
STUDIES = 200
VISITS = (2, 3, 4)


def study(n_visits: int, seed: int) -> dict[str, object]:
    """Return the p values of each group and of their difference in one study."""
    rng, n_people = np.random.default_rng([seed, n_visits]), 60
    person = np.repeat(np.arange(n_people), n_visits)
    times = np.sort(rng.uniform(0, 4, (n_people, n_visits)) + 0.4 * np.arange(n_visits), axis=1).ravel()
    group = np.where(np.arange(n_people) < 30, "control", "patient")
    slopes = np.where(group == "patient", 0.06, 0.02) * rng.standard_normal(n_people)
    score = rng.uniform(0, 1, n_people)[person] + slopes[person] * times + 0.04 * rng.standard_normal(len(person))
    found = group_change(pd.DataFrame({"severity1": score}), person, times, group[person]).set_index("group")["p"]
    return {"visits": n_visits, "seed": seed} | {name.replace(" ", "_"): p for name, p in found.items()}


def show(table: pd.DataFrame) -> None:
    """Print how often p is below 0.05."""
    names = ["control", "patient", "patients_less_controls"]
    print((table.set_index("visits")[names] < 0.05).groupby("visits").agg(["sum", "count"]).to_string())


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    path = (options.out if options.small else RESULTS) / "change.csv"
    if not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (3 if options.small else STUDIES))
        write([study(n_visits, seed) for n_visits in VISITS for seed in seeds], path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
