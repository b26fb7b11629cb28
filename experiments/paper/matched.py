"""The paper's difficulty: how well regressions told the truth do where healthy people vary as much as the paper's.

    python experiments/paper/matched.py              # writes results/matched_regression.csv, three minutes of a core
    python experiments/paper/matched.py --spread 1.6  # try another spread; nothing is written

The spread was fitted on `basic` alone, so that linear regression reaches the paper's 0.871 in held-out patients (Table
6). What networks reach there: `paper_preset.py --part 4`, and `experiments/numbers/linear_start.py --matched`.
"""

from __future__ import annotations

import argparse

import pandas as pd
from cases import KINDS, SEEDS, SIZE, SPREAD, Case, draw
from folds import regressions
from joblib import Parallel, delayed
from tables import RESULTS


def rows_of(case: Case, spread: float) -> list[dict[str, object]]:
    """Return a row for each regression, and the share of volumes that are as small as they may be."""
    known = draw(case, spread=spread)
    controls = known.regions[~known.patient]
    clipped = float((controls <= 0.1001 * controls.mean(axis=0)).mean())
    means = pd.DataFrame(regressions(known)).groupby("method")[["train", "test"]].mean()
    about = {"kind": case.kind, "seed": case.seed, "spread": spread, "clipped": clipped}
    return [about | {"method": method, **values} for method, values in means.to_dict("index").items()]


def main() -> None:
    """Compute all cohorts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--spread", type=float, default=SPREAD)
    spread = options.parse_args().spread
    cases = [Case(*SIZE, kind, seed) for kind in KINDS for seed in SEEDS]
    found = Parallel(n_jobs=-1)(delayed(rows_of)(case, spread) for case in cases)
    table = pd.DataFrame([row for rows in found for row in rows])
    print(table.pivot_table(["train", "test"], "kind", "method").round(3).to_string())
    if spread == SPREAD:
        table.to_csv(RESULTS / "matched_regression.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
