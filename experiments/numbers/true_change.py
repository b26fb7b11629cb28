"""Measure the coverage of intervals of change between visits, and how often groups without change seem to differ.

    python experiments/numbers/true_change.py            # writes results/true_change.csv and results/group_change.csv
    python experiments/numbers/true_change.py --show

A default model with five repetitions is fitted to a simulated cohort; the people with two visits are new to it. It
corrects for age and sex, because a year of ageing changes regions as well. Scan noise is estimated from 40 returning
controls. In half of the studies, all patterns of the patients progress. `group_change.csv` has studies of 40 controls
and 40 patients without any change: slopes by person, patients minus controls.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from cases import on_all_cores, parser, write
from figures import unit
from people import Recipe, make

from rindices import SurrealGAN, simulate_cohort
from rindices.analysis import group_change
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.preprocessing import SCALED_SD
from rindices.record import Results, Summary
from rindices.run.scores_and_analyses import change_of

FIRST_SEED = 410_000
COHORTS = 8  # of each kind
NOISE = (0.1, 0.3, 0.5)  # sd of scan noise, as a fraction of the sd between people
CONTROLS, PATIENTS = 40, 150
NULL_STUDIES = 400  # of each model


def visited(model: SurrealGAN, kind: str, seed: int, n_controls: int, n_patients: int, **asked: float):
    """Return two visits of new people as the results of a run, and the true severities."""
    people = simulate_cohort(kind, n_controls=n_controls, n_patients=n_patients, n_visits=2, seed=seed, **asked)
    table = people.table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = model.prepare(table[list(model.feature_names_in_)], table[["age", "sex"]])
        r_indices = model.transform(scaled)
    names = range(1, r_indices.shape[1] + 1)
    columns = {f"r{k}": r_indices[:, k - 1] for k in names}
    columns |= {f"severity{k}": model.scale_.severities(r_indices)[:, k - 1] for k in names}
    years = table["visit"].map({"bl": 0.0, "m12": 1.0})
    group = np.where(table["diagnosis"] == "PT", "patient", "control")
    who = pd.DataFrame({"participant_id": table["participant_id"], "years": years, "group": group})
    who["first_visit"] = years == 0
    nothing = pd.DataFrame()
    z_scores = pd.DataFrame((scaled.values - 1) / SCALED_SD, columns=list(model.feature_names_in_))
    return Results(who.assign(**columns), z_scores, nothing, nothing, nothing), people.truth


def covered(model: SurrealGAN, kind: str, seed: int, noise: float, progression: float, order, factor):
    """Return the coverage of the true changes, a row per pattern."""
    results, truth = visited(model, kind, seed, CONTROLS, PATIENTS, scan_noise=noise, progression=progression)
    change = change_of(model, results, Summary(status="done"))["change"].set_index("participant_id")
    true = truth.drop(columns=["participant_id", "visit"]).to_numpy()
    ids = truth["participant_id"].to_numpy()[::2]
    rows = []
    for place, k in enumerate(order):
        own = change.loc[ids]
        low, high = own[f"severity{k + 1}_change_low"], own[f"severity{k + 1}_change_high"]
        moved = true[1::2, place] - true[::2, place]
        inside, raw = ((low <= of * moved) & (of * moved <= high) for of in (factor[place], 1.0))
        rows.append(
            {"kind": kind, "noise": noise, "progression": progression, "seed": seed, "pattern": place + 1}
            | {"n": int(low.notna().sum()), "inside": float(inside[low.notna()].mean())}
            | {"raw": float(raw[low.notna()].mean()), "width": float((high - low).mean()), "true": float(moved.mean())}
            | {"called": float((own[f"severity{k + 1}_reliable"] != 0).mean())}
        )
    return rows


def null_study(model: SurrealGAN, kind: str, seed: int) -> dict[str, object]:
    """Compare groups without change."""
    results, _ = visited(model, kind, seed, 40, 40, scan_noise=0.3, progression=0.0)
    table = results.r_indices
    found = group_change(results.scores, table["participant_id"], table["years"], table["group"])
    own = found[found["group"] == "patients minus controls"]
    return {"kind": kind, "seed": seed, "least_q": own["q"].min(), "least_p": own["p"].min()}


def measured(kind: str, seed: int, *, small: bool) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Fit a model, and return its intervals of change and its studies without change."""
    given = make(Recipe(kind, seed=seed, n_controls=300, n_patients=300, covariates=2))
    model = SurrealGAN(3, n_repetitions=5, random_state=0)
    model.fit(given.regions, given.patient, given.covariates)
    order, _ = match_patterns(given.truth, model.r_indices_[given.patient])
    factor = unit(model, given, order)
    rows = [
        row
        for noise in (NOISE[1:2] if small else NOISE)
        for progression in (0.0, 0.15)
        for row in covered(model, kind, seed + 1, noise, progression, order, factor)
    ]
    return rows, [null_study(model, kind, seed + 1000 + one) for one in range(5 if small else NULL_STUDIES)]


def show(true: pd.DataFrame, groups: pd.DataFrame) -> None:
    """Print coverage, widths and the rate of false findings."""
    weighted = true.assign(**{name: true[name] * true["n"] for name in ("inside", "raw", "width", "called")})
    of = weighted.groupby(["kind", "noise", "progression"])[["n", "inside", "raw", "width", "called"]].sum()
    print(of.div(of["n"], axis=0).drop(columns="n").round(3).assign(n=of["n"]).to_string())
    print("all:", (true["inside"] * true["n"]).sum() / true["n"].sum())
    print(f"null studies {len(groups)}, any q < 0.05: {(groups['least_q'] < 0.05).mean():.3f}")


def main() -> None:
    """Fit and measure."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    if not options.show:
        seeds = [FIRST_SEED + 1000 * number for number in range(1 if options.small else COHORTS)]
        found = on_all_cores(
            partial(measured, small=options.small),
            [(kind, seed) for seed in seeds for kind in ("basic", "mild")],
        )
        rows, studies = ([row for part in parts for row in part] for parts in zip(*found, strict=True))
        write(rows, options.out / "true_change.csv")
        write(studies, options.out / "group_change.csv")
    show(pd.read_csv(options.out / "true_change.csv"), pd.read_csv(options.out / "group_change.csv"))


if __name__ == "__main__":
    main()
