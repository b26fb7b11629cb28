"""Measure how well change between simulated visits is detected: noise of severities, reliable change, group change.

    python experiments/everyday/visits.py FOLDER       # weights from trained.py; writes results/visits_*.csv
    python experiments/everyday/visits.py --show       # prints their means

People are new to the models, and half of the scan noise is correlated between regions (`simulate_cohort`).
`visits_noise.csv`: intraclass correlation of regions, R-indices and severities of unchanged people over two scans.
`visits_reliable.csv`: proportion of people whose change is called reliable, by the true change of a pattern and the
number of returning controls from whom noise is estimated; `plain` uses the sd of the controls' own severities instead.
`visits_groups.csv`: slopes of patients minus controls from the mixed model, a row per study and pattern.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent))
from trained import Made, models

sys.path.append(str(Path(__file__).parents[1] / "numbers"))
from figures import unit

from rindices import SurrealGAN, analysis, simulate_cohort
from rindices.core import inference
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.preprocessing import SCALED_SD
from rindices.record import Results, Summary
from rindices.run.scores_and_analyses import change_of

RESULTS = Path(__file__).parents[2] / "results"
NOISE = (0.1, 0.2, 0.3, 0.5)  # sd of scan noise, as a fraction of the sd between people
CONTROLS = (10, 20, 100)  # who returned
TRUE = (-1e-9, 1e-9, 0.05, 0.1, 0.15, 0.2, 0.3)  # limits of true changes
STUDIES = 12  # of each model; every other one also with a progressing disease
SIZE = 60  # controls, and as many patients, in each
MODELS = tuple(f"plain {name} 0" for name in ("basic 492+900", "mild 492+900", "basic 150+300", "mild 150+300"))


class Scanned(NamedTuple):
    """Scored visits of simulated people."""

    table: pd.DataFrame  # participant_id, years, group
    z_scores: pd.DataFrame
    r_indices: np.ndarray
    severities: np.ndarray  # patterns in the order of the truth
    truth: np.ndarray  # of patients, a row per visit, in the model's units


def scanned(of: Made, model: SurrealGAN, **asked: float) -> Scanned:
    """Simulate visits of new people from the kind of cohort that a model was trained on, and score them."""
    cohort = simulate_cohort(of.case.recipe.kind, **asked)
    names = list(of.given.regions.columns)
    people = model.prepare(cohort.table[names], cohort.table[["age", "sex"]])
    order, units = matched(of, model)
    r_indices = inference.r_indices(model.models_, people.values).mean(axis=0)
    years = cohort.table["visit"].map({"bl": 0.0, "m12": 1.0, "m24": 2.0})
    group = np.where(cohort.table["diagnosis"] == "PT", "patient", "control")
    table = pd.DataFrame({"participant_id": cohort.table["participant_id"], "years": years, "group": group})
    return Scanned(
        table,
        pd.DataFrame((people.values - 1) / SCALED_SD, columns=names),
        r_indices,
        model.scale_.severities(r_indices)[:, order],
        cohort.truth[["s1", "s2", "s3"]].to_numpy() * units,
    )


@cache
def matched(of: Made, model: SurrealGAN) -> tuple[np.ndarray, np.ndarray]:
    """Return the model's pattern for each true one, and the true full changes in units of the learned ones."""
    order, _ = match_patterns(of.given.truth, model.r_indices_[of.given.patient])
    return order, unit(model, of.given, order)


def seed_of(of: Made) -> int:
    """Return a seed that gives each model people of its own."""
    return 100_000 + 1000 * (crc32(of.case.name.encode()) % 10_000)


def icc(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the intraclass correlation ICC(1, 1) of two scans of the same people, per column."""
    between = 2 * ((first + second) / 2).var(axis=0, ddof=1)
    within = ((first - second) ** 2).mean(axis=0) / 2
    return (between - within) / (between + within)


def noise_rows(of: Made, model: SurrealGAN) -> list[dict[str, object]]:
    """Return the repeatability of two scans of unchanged people."""
    rows = []
    for noise in NOISE:
        asked = {"n_controls": 300, "n_patients": 300, "n_visits": 2, "scan_noise": noise}
        seen = scanned(of, model, seed=seed_of(of), progression=0, **asked)
        for who in ("control", "patient"):
            rows_of = (seen.table["group"] == who).to_numpy()
            pairs = {"regions": seen.z_scores.to_numpy(), "r_indices": seen.r_indices, "severities": seen.severities}
            row = {"cohort": of.case.name, "noise": noise, "people": who}
            for name, values in pairs.items():
                first, second = values[rows_of][::2], values[rows_of][1::2]
                row[f"icc_{name}"] = icc(first, second).mean()
                row[f"least_icc_{name}"] = icc(first, second).min()
                row[f"sd_{name}"] = np.sqrt(((first - second) ** 2).mean() / 2)
            rows.append(row)
    return rows


def results_of(model: SurrealGAN, seen: Scanned) -> Results:
    """Return visits as the results of a run."""
    severities = model.scale_.severities(seen.r_indices)
    columns = {f"r{k + 1}": seen.r_indices[:, k] for k in range(3)}
    columns |= {f"severity{k + 1}": severities[:, k] for k in range(3)}
    nothing = pd.DataFrame()
    return Results(seen.table.assign(**columns), seen.z_scores, nothing, nothing, nothing)


def reliable_rows(of: Made, model: SurrealGAN) -> list[dict[str, object]]:
    """Return calls of change between two scans; the noise is estimated from some controls, the others are judged."""
    order, rows = matched(of, model)[0], []
    for noise in NOISE:
        asked = {"n_controls": 160, "n_patients": 160, "n_visits": 2, "scan_noise": noise}
        still = scanned(of, model, seed=seed_of(of) + 1, progression=0, **asked)
        moving = scanned(of, model, seed=seed_of(of) + 2, progression=0.15, **asked)
        for n_controls in CONTROLS:
            rows += _called(model, of, still, order, noise, n_controls)
        rows += _called(model, of, moving, order, noise, CONTROLS[1])
    return rows


def _called(model, of, seen: Scanned, order, noise: float, n_controls: int) -> list[dict[str, object]]:
    """Return the proportions called changed, by group and true change."""
    results, summary = results_of(model, seen), Summary(status="done")
    table, rows = results.r_indices, []
    controls = table.loc[table["group"] == "control", "participant_id"].unique()
    others = table["participant_id"].isin(controls[n_controls:])
    results.r_indices["group"] = np.where(others, "other", table["group"])  # noise is not estimated from them
    change = change_of(model, results, summary)["change"].set_index("participant_id")
    known = np.array([change[f"severity{k + 1}_reliable"] for k in order]).T
    low, high = (np.array([change[f"severity{k + 1}_change_{end}"] for k in order]).T for end in ("low", "high"))
    slope = np.array([change[f"severity{k + 1}_change"] for k in order]).T
    true = pd.DataFrame(
        seen.truth[1::2] - seen.truth[::2], table.loc[table["group"] == "patient", "participant_id"][::2]
    )
    true = true.reindex(change.index).fillna(0).to_numpy()
    own = seen.severities[(table["group"] == "control").to_numpy()]
    plain = 1.96 * np.sqrt(((own[1::2] - own[::2]) ** 2).mean(axis=0))
    for who in ("other", "patient"):
        for least, most in pairwise(TRUE):
            there = (true > least) & (true <= most) & (change["group"] == who).to_numpy()[:, None]
            if there.any():
                row = {"cohort": of.case.name, "noise": noise, "n_controls": n_controls}
                row |= {"people": "control" if who == "other" else who, "true": max(least, 0), "n": int(there.sum())}
                row |= {"worse": (known[there] > 0).mean(), "better": (known[there] < 0).mean()}
                row["inside"] = ((low <= true) & (true <= high))[there].mean()
                row |= {"true_mean": true[there].mean(), "change_mean": slope[there].mean()}
                rows.append(row | {"plain": (np.abs(slope) > plain)[there].mean()})
    return rows


def group_rows(of: Made, model: SurrealGAN, study: int) -> list[dict[str, object]]:
    """Compare small groups of patients and controls over three visits with the mixed model."""
    rows = []
    for progression in (0.0, 0.05)[: 2 - study % 2]:
        asked = {"n_controls": SIZE, "n_patients": SIZE, "n_visits": 3, "scan_noise": 0.3}
        seen = scanned(of, model, seed=seed_of(of) + 10 + study, progression=progression, **asked)
        who = seen.table["participant_id"], seen.table["years"], seen.table["group"]
        scores = pd.DataFrame(seen.severities, columns=["severity1", "severity2", "severity3"])
        found = analysis.group_change(scores, *who)
        true = (seen.truth[2::3] - seen.truth[::3]).mean(axis=0) / 2
        for row in found[found["group"] == "patients minus controls"].to_dict("records"):
            about = {"cohort": of.case.name, "study": study, "progression": progression, "pattern": row["pattern"]}
            about |= {"true": true[row["pattern"] - 1], "slope": row["mean"], "low": row["low"], "high": row["high"]}
            rows.append(about | {"p": row["p"], "q": row["q"], "effects": row["random_effects"], "note": row["note"]})
    return rows


def show() -> None:
    """Print means over cohorts."""
    pd.set_option("display.width", 220, "display.max_rows", 200, "display.max_columns", 30)
    noise, reliable, groups = (pd.read_csv(RESULTS / f"visits_{name}.csv") for name in ("noise", "reliable", "groups"))
    print(noise.groupby(["people", "noise"]).mean(numeric_only=True).round(3).to_string(), "\n")
    still = reliable[reliable["true"] == 0].assign(called=lambda rows: rows["worse"] + rows["better"])
    print("Unchanged, called changed")
    print(still.pivot_table("called", ["people", "n_controls"], "noise").round(3).to_string())
    print("by the sd of controls' own severities")
    print(still.pivot_table("plain", ["people"], "noise").round(3).to_string())
    print("interval holds the true change; called worse, by true change")
    table = reliable[reliable["people"] == "patient"]
    print(table.pivot_table(["inside", "worse", "true_mean", "change_mean"], ["true"], "noise").round(3).to_string())
    groups["called"], groups["q_called"] = groups["p"] < 0.05, groups["q"] < 0.05
    groups["inside"] = (groups["low"] <= groups["true"]) & (groups["true"] <= groups["high"])
    groups["bias"] = groups["slope"] - groups["true"]
    print(groups.groupby("progression")[["true", "slope", "bias", "called", "q_called", "inside"]].mean().round(4))
    any_q = groups.groupby(["progression", "cohort", "study"])["q_called"].any().groupby("progression").mean()
    print(any_q, groups["effects"].value_counts(dropna=False), groups["note"].value_counts())


def main() -> None:
    """Measure all trained cohorts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        warnings.simplefilter("ignore")
        found = dict[str, list[dict[str, object]]](noise=[], reliable=[], groups=[])
        for of, model in models(options.weights, only=MODELS):
            found["noise"] += noise_rows(of, model)
            found["reliable"] += reliable_rows(of, model)
            for study in range(options.studies):
                found["groups"] += group_rows(of, model, study)
            print(of.case.name, flush=True)
            for name, rows in found.items():
                pd.DataFrame(rows).to_csv(RESULTS / f"visits_{name}.csv", index=False, float_format="%.5g")
    show()


if __name__ == "__main__":
    main()
