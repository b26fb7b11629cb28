"""Count patterns before training, and judge cohorts with and without disease.

    python experiments/numbers/verdicts.py --controls healthy.csv     # writes results/verdicts.csv
    python experiments/numbers/verdicts.py --show
    python experiments/numbers/verdicts.py --controls healthy.csv --counts     # only counts: results/counts.csv

Seeds of cohorts are not used anywhere else. Verdicts are those of a search with linear models alone: they rest on
permutations of the table and on halves of the people, whatever is trained.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from cases import RESULTS, on_all_cores, parser, say, write
from people import Given, Recipe, make

from rindices import SurrealGAN, SurrealGANSearch
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.judging.spectrum import look
from rindices.judging.study import training_set
from rindices.presets import linear

FIRST_SEED, FIRST_OF_COUNTS = 194_000, 93_000
_SMALL = {"n_controls": 149, "n_patients": 298}
EASY = {
    "basic": {"kind": "basic"},
    "mild": {"kind": "mild"},
    "scarce": {"kind": "scarce"},
    "overlap": {"kind": "overlap"},
    "half absent": {"kind": "mild", "severities": "absent"},
}
HARD = {
    "small": {"kind": "mild", **_SMALL},
    "correlated": {"kind": "mild", "correlation": 0.6},
    "Beta(1, 3)": {"kind": "mild", "severities": "mild"},
    "hard basic": {"kind": "basic", "spread": 1.7},
    "hard mild": {"kind": "mild", "spread": 1.7},
    "noise within patterns": {"kind": "noise"},
    "real": {"kind": "mild", "real": True, **_SMALL},
}
WITHOUT = {
    "492 + 900": {},
    "149 + 298": _SMALL,
    "60 + 300": {"n_controls": 60, "n_patients": 300},
    "300 + 60": {"n_controls": 300, "n_patients": 60},
    "real people": {"real": True, **_SMALL},
    "30 covariates": {"n_controls": 100, "n_patients": 100, "covariates": 30},
    "age imbalance": {"covariates": 2, "n_controls": 300, "n_patients": 300},
}


def recipes(n_cohorts: int, n_without: int, real: bool, first_seed: int = FIRST_SEED) -> list[tuple[str, Recipe]]:
    """Return all cohorts: with one to four patterns in turn, and with none."""
    rows: list[tuple[str, Recipe]] = []
    for place, (name, of) in enumerate((EASY | HARD).items()):
        first = first_seed + 100 * place
        rows += [
            (name, Recipe(seed=first + k, n_patterns=1 + k % 4, **{"covariates": 2, **of})) for k in range(n_cohorts)
        ]
    for place, (name, of) in enumerate(WITHOUT.items()):
        first = first_seed + 5_000 + 100 * place
        rows += [(name, Recipe("null", first + k, **{"covariates": 2, **of})) for k in range(n_without)]
    return [row for row in rows if real or not row[1].real]


def judged(name: str, recipe: Recipe, own: pd.DataFrame | None) -> dict[str, object]:
    """Search a cohort, and compare the result with the truth."""
    given = make(recipe, own)
    if name == "age imbalance":
        given = _imbalanced(given)
    search = SurrealGANSearch(preset="linear", n_repetitions=3, random_state=recipe.seed)
    search.fit(given.regions, given.patient, given.covariates)
    true = 0 if recipe.kind == "null" else recipe.n_patterns
    verdict, number = search.verdict_, search.best_params_["n_patterns"]
    same = number == true and recipe.kind != "null"
    scores = search.best_estimator_.r_indices_[given.patient]
    return {
        "cohort": name,
        "seed": recipe.seed,
        "true": true,
        "counted": 0 if search.spectrum_ is None else search.spectrum_.found_again,
        "beyond": 0 if search.spectrum_ is None else search.spectrum_.directions,
        "state": verdict.state,
        "p": verdict.evidence.p,
        "halves": verdict.evidence.halves,
        "with_linear": verdict.evidence.with_linear,
        "concordance": pattern_concordance(given.truth, scores) if same else np.nan,
    }


def counted(name: str, recipe: Recipe, own: pd.DataFrame | None) -> dict[str, object]:
    """Count patterns without training."""
    given = make(recipe, own)
    model = SurrealGAN(random_state=recipe.seed)
    people = training_set(model, linear(), given.regions, given.patient, given.covariates).study
    seen = look(people.residuals, people.patient, people.design, people.site, recipe.seed, n_permutations=1)
    return {"cohort": name, "seed": recipe.seed, "true": recipe.n_patterns, "counted": seen.found_again}


def _imbalanced(given: Given) -> Given:
    """Drop half of the young patients and half of the old controls."""
    ages, rng = given.covariates["age"].to_numpy(), np.random.default_rng(given.recipe.seed)
    young = ages < np.median(ages)
    kept = (young != given.patient) | (rng.random(len(ages)) < 0.5)
    regions, covariates = (of[kept].reset_index(drop=True) for of in (given.regions, given.covariates))
    return replace(
        given,
        regions=regions,
        covariates=covariates,
        patient=given.patient[kept],
        truth=given.truth[kept[given.patient]],
    )


def show(table: pd.DataFrame) -> None:
    """Print how often the count is correct, and the verdicts."""
    sick = table[table["true"] > 0]
    for title, names in (("easy", EASY), ("hard", HARD)):
        of = sick[sick["cohort"].isin(names)]
        right = (of["counted"] == of["true"]).groupby(of["cohort"], sort=False)
        print(title, f"{(of['counted'] == of['true']).sum()} of {len(of)} right;", right.sum().to_dict())
        print(
            "   too many", int((of["counted"] > of["true"]).sum()), "too few", int((of["counted"] < of["true"]).sum())
        )
    print(pd.crosstab(table["cohort"], table["state"]).to_string())
    missed = sick[(sick["concordance"] >= 0.75) & sick["state"].isin(["no difference", "not reproducible"])]
    print(f"missed although found at 0.75 or better: {len(missed)} of {(sick['concordance'] >= 0.75).sum()}")


def main() -> None:
    """Judge or count all cohorts, and show the results."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--counts", action="store_true", help="count patterns, and judge nothing")
    options = arguments.parse_args()
    if options.show:
        show(pd.read_csv(RESULTS / "verdicts.csv"))
        return
    own = None if options.controls is None else pd.read_csv(options.controls)
    if options.counts:
        few = recipes(1 if options.small else 12, 0, own is not None, FIRST_OF_COUNTS)
        table = write(on_all_cores(counted, [(*one, own) for one in few]), options.out / "counts.csv")
        right = table.assign(right=table["counted"] == table["true"], more=table["counted"] > table["true"])
        print(right.groupby("cohort", sort=False)[["right", "more"]].sum().to_string())
        return
    wanted = recipes(*((1, 1) if options.small else (12, 45)), own is not None)
    rows = on_all_cores(judged, [(name, recipe, own) for name, recipe in (wanted[::7] if options.small else wanted)])
    say(f"{len(rows)} cohorts judged")
    show(write(rows, options.out / "verdicts.csv"))


if __name__ == "__main__":
    main()
