"""Measure the cost of missing regions: concordance, error, coverage and width of intervals, against complete data.

    python experiments/everyday/missing.py FOLDER      # weights from trained.py; writes results/missing_regions.csv
    python experiments/everyday/missing.py --show      # prints its means
    python experiments/everyday/missing.py --filled    # no weights; writes results/filled_controls.csv

At scoring: cells of fresh patients are removed at random, or whole lobes in everybody. In training: cells of the
training table are missing, and fresh patients are complete. `drop_missing` would leave nobody in either case.

`--filled` measures how much imputation reduces the variation of controls, without any network: along discriminants of
the true patterns learned from other controls, relative to new people, and compared with the same controls without gaps.
It uses other cohorts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent))
from trained import FIRST_SEED, Made, measured, with_gaps

sys.path.append(str(Path(__file__).parents[1] / "numbers"))
from figures import unit
from people import Given, Recipe, make
from sklearn.covariance import ledoit_wolf

from rindices import SurrealGAN
from rindices.judging.agreement_and_misfit import concordance, match_patterns
from rindices.preprocessing import SCALED_SD, Preprocessing
from rindices.preprocessing.missing import fill_training
from rindices.scoring.intervals import severity_intervals

FILLED = Path(__file__).parents[2] / "results" / "filled_controls.csv"
RESULTS = Path(__file__).parents[2] / "results" / "missing_regions.csv"
# Names of regions without their side. The first and third lobes contain many regions that the patterns change.
MEDIAL = ("Hip", "Amy", "Ent", "ParHipGy", "TemPo")
LOBES = {
    "medial temporal lobe": MEDIAL,
    "orbitofrontal cortex": ("AntOrbGy", "LatOrbGy", "MedOrbGy", "PosOrbGy", "RecGy", "FroPo", "InfFroOrbGy"),
    "temporal lobe": (*MEDIAL, "InfTemGy", "MidTemGy", "SupTemGy", "FusGy", "TemTraGy", "Pla", "Tem"),
    "occipital lobe": ("Cal+Cbr", "Cun", "InfOccGy", "LinGy", "MidOccGy", "OccPo", "OccFusGy", "SupOccGy"),
}


def taken_out(regions: pd.DataFrame, seed: int) -> dict[str, np.ndarray]:
    """Return the same people with several kinds of missing regions."""
    values, found = regions.to_numpy(), {}
    found["complete"] = values
    for share in (0.05, 0.1, 0.2):
        found[f"{share:.0%} of cells"] = with_gaps(values, share, seed)
    for lobe, parts in LOBES.items():
        there = np.array([name[1:] in parts for name in regions])
        found[f"{lobe} ({there.sum()} regions)"] = np.where(there, np.nan, values)
    return found


def measure(of: Made, model: SurrealGAN) -> list[dict[str, object]]:
    """Compare the severities of fresh patients with the truth, with complete and with missing regions."""
    given = of.given
    names, patient = list(given.regions.columns), given.fresh_patient
    people, covariates = given.fresh[patient], given.fresh_covariates[patient].reset_index(drop=True)
    order, _ = match_patterns(given.truth, model.r_indices_[given.patient])
    target, rows = given.fresh_truth * unit(model, given, order), []
    kinds = taken_out(people, of.case.recipe.seed) if of.case.purpose == "plain" else {"complete": people.to_numpy()}
    for kind, regions in kinds.items():
        table = pd.DataFrame(regions, columns=names)
        scores = model.scores(table, covariates)
        severities = model.scale_.severities(scores.r_indices)[:, order]
        low, high = (
            side[:, order] for side in severity_intervals(model.scale_, scores.r_indices, 0.95, scores.more_sd)
        )
        plain = [side[:, order] for side in severity_intervals(model.scale_, scores.r_indices, 0.95)]
        row = {"cohort": of.case.name, "gaps": of.case.gaps, "kind": of.case.recipe.kind}
        row |= {"n_controls": int((~given.patient).sum()), "missing": kind, "share": np.isnan(regions).mean()}
        row["concordance"] = np.mean([concordance(target[:, k], severities[:, k]) for k in range(len(order))])
        row |= {"rmse": np.sqrt(((severities - target) ** 2).mean()), "bias": (severities - target).mean()}
        row |= {"cover": ((low <= target) & (target <= high)).mean(), "width": (high - low).mean()}
        row["cover_not_widened"] = ((plain[0] <= target) & (target <= plain[1])).mean()
        row["strangers"] = (model.strangeness(table, covariates) > 1).mean()
        rows.append(row)
    return rows


def _scatter(given: Given, regions: np.ndarray) -> np.ndarray:
    """Return the sd of controls along discriminants learned without them, relative to that of new people."""
    own, new = ~given.patient, ~given.fresh_patient
    fitted = Preprocessing.fit(regions[own], given.covariates[own], None)
    controls = fitted.transform(regions[own], given.covariates[own])
    fresh = fitted.transform(given.fresh[new].to_numpy(), given.fresh_covariates[new])
    change = given.full_change * given.regions[own].to_numpy().mean(axis=0) / fitted.scaler.sd * SCALED_SD

    def along(others: np.ndarray, people: np.ndarray) -> np.ndarray:
        weights = np.linalg.solve(ledoit_wolf(others)[0], change.T)
        return (people - others.mean(axis=0)) @ np.linalg.solve(weights.T @ change.T, weights.T).T

    fold, found = np.arange(len(controls)) % 10, np.empty((len(controls), len(change)))
    for one in range(10):
        found[fold == one] = along(controls[fold != one], controls[fold == one])
    return found.std(axis=0) / along(controls, fresh).std(axis=0)


def filled_controls() -> pd.DataFrame:
    """Compare imputed controls with the same controls without gaps."""
    rows = []
    for (n_controls, n_patients), seeds in {(150, 300): range(100, 104)}.items():
        for share, seed in [(share, FIRST_SEED + seed) for share in (0.1, 0.2) for seed in seeds]:
            given = make(Recipe("basic", seed, n_controls, n_patients, n_fresh=300, covariates=2))
            complete = given.regions.to_numpy()
            gaps = np.isnan(with_gaps(complete, share, seed))
            filled = fill_training(np.where(gaps, np.nan, complete), given.covariates, None, seed)[0]
            less, usual = (_scatter(given, regions) for regions in (filled, complete))
            rows.append({"n_controls": n_controls, "gaps": share, "seed": seed, "needed": (usual / less).mean()})
    return pd.DataFrame(rows)


def show(table: pd.DataFrame) -> None:
    """Print means over cohorts, and the loss of concordance."""
    pd.set_option("display.width", 220)
    complete = table[(table["gaps"] == 0) & (table["missing"] == "complete")].set_index("cohort")["concordance"]
    base = table["cohort"].str.replace(r"^gaps \d+%", "plain", regex=True).map(complete)
    table = table.assign(lost=base - table["concordance"])
    found = table.groupby(["n_controls", "gaps", "missing"], sort=False)
    columns = ["share", "concordance", "lost", "rmse", "bias", "cover", "cover_not_widened", "width", "strangers"]
    print(
        found[columns]
        .mean()
        .assign(most_lost=found["lost"].max(), least_cover=found["cover"].min())
        .round(4)
        .to_string()
    )


def main() -> None:
    """Measure all trained cohorts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--training", action="store_true", help="only cohorts with gaps in training, anew")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--filled", action="store_true", help="how much less controls vary who are filled in")
    options = parser.parse_args()
    if options.filled:
        filled_controls().to_csv(FILLED, index=False, float_format="%.5g")
        print(pd.read_csv(FILLED).groupby(["n_controls", "gaps"])["needed"].agg(["mean", "std"]).round(3))
        return
    if not options.show:
        before = pd.read_csv(RESULTS).query("gaps == 0") if options.training else pd.DataFrame()
        found = measured(options.weights, measure, ("gaps",) if options.training else ("plain", "gaps"))
        pd.concat([before, found]).to_csv(RESULTS, index=False, float_format="%.5g")
    show(pd.read_csv(RESULTS))


if __name__ == "__main__":
    main()
