"""Measure how often the interval of the AUC of patients against controls contains the AUC in fresh people.

    python experiments/numbers/separation.py            # writes results/separation.csv
    python experiments/numbers/separation.py --show

Regions are normal with five common factors; patients are shifted along a random direction, by amounts that give a rule
trained on everybody an AUC of about 0.5, 0.6, 0.75 and 0.9 in 4,000 fresh people. `before` is the interval of Hanley
and McNeil alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from cases import parser, row_by_row
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from rindices.judging.verdict_and_separation import _fixed_rule, separated

FIRST_SEED = 143_000
COHORTS = 76
SHIFTS = {0.5: 0.0, 0.6: 0.85, 0.75: 1.5, 0.9: 2.5}
SIZES = {
    "60 + 60, 20 regions": (60, 60, 20),
    "150 + 300, 70 regions": (150, 300, 70),
    "300 + 300, 128 regions": (300, 300, 128),
}


def measured(size: str, aim: float, seed: int) -> list[dict[str, object]]:
    """Compare the interval of one cohort with the AUC in fresh people."""
    n_controls, n_patients, n_regions = SIZES[size]
    rng = np.random.default_rng([seed, int(100 * aim)])
    common, shift = 0.6 * rng.normal(size=(n_regions, 5)), rng.normal(size=n_regions)
    shift *= SHIFTS[aim] / np.linalg.norm(shift)

    def people(patient: np.ndarray) -> np.ndarray:
        own = rng.normal(size=(len(patient), n_regions))
        return 100 + own + rng.normal(size=(len(patient), 5)) @ common.T + patient[:, None] * shift

    patient, fresh = np.arange(n_controls + n_patients) >= n_controls, np.arange(4000) >= 2000
    regions, others = people(patient), people(fresh)
    rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(regions, patient)
    true, found = roc_auc_score(fresh, rule.decision_function(others)), separated(regions, patient)
    assert found is not None
    half = 1.96 * np.sqrt(_fixed_rule(found.auc, n_controls, n_patients))
    row = {"size": size, "aim": aim, "seed": seed, "true": true, **found._asdict()}
    return [row | {"inside": found.low <= true <= found.high, "before": abs(found.auc - true) <= half}]


def show(table: pd.DataFrame) -> None:
    """Print the coverage of intervals."""
    of = table.groupby(["size", "aim"])
    print(of[["true", "auc", "inside", "before"]].mean().round(3).assign(cohorts=of.size()).to_string())


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    path = options.out / "separation.csv"
    if not options.show:
        seeds = range(FIRST_SEED, FIRST_SEED + (2 if options.small else COHORTS))
        row_by_row(measured, [(size, aim, seed) for seed in seeds for size in SIZES for aim in SHIFTS], path)
    show(pd.read_csv(path))


if __name__ == "__main__":
    main()
