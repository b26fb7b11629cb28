"""The sections on results: agreement, R-indices, patterns and, in a demo, the recovery of the truth."""

from typing import Any

from rindices import plots
from rindices.report.pieces import Picture, interval, number, picture
from rindices.report.read import AGREEMENT, RunResults

TOP_REGIONS = 12
GROUP_NAMES = {"control": "Controls", "patient": "Patients", "other": "Others"}


def recovery(results: RunResults) -> dict[str, Any] | None:
    """Return the comparison with the truth of a demo."""
    if results.truth is None:
        return None
    found = results.summary["recovery"]
    known = results.truth.notna().all(axis=1) & (results.r_indices["group"] == "patient")
    scores = results.r_indices.loc[known, [f"r{place + 1}" for place in range(results.n_patterns)]]
    per_pattern = [float(value) for value in found["per_pattern"]]
    figure = plots.recovery(results.truth[known], scores, per_pattern)
    values = ", ".join(f"pattern {place + 1}: {value:.3f}" for place, value in enumerate(per_pattern))
    return {
        "picture": picture(figure, f"Known severity against R-index in patients. Concordance, {values}."),
        "concordance": number(float(found["pattern_concordance"]), 3),
    }


def agreement(results: RunResults) -> dict[str, Any] | None:
    """Return the agreement over training of the chosen setting, nothing with a single training."""
    chosen = results.chosen
    if chosen[list(AGREEMENT)].isna().all():
        return None
    rows = [
        (
            name.replace("_", " ").capitalize(),
            number(chosen[name], 3),
            interval(chosen[f"{name}_low"], chosen[f"{name}_high"]),
        )
        for name in AGREEMENT
    ]
    values = ", ".join(f"{name} {value}" for name, value, _ in rows)
    step = f"{int(chosen['step']):,}"
    alt = f"Agreement between trainings over the steps of training. At the chosen step {step}: {values}."
    return {
        "rows": rows,
        "intervals": any(limits for *_, limits in rows),
        "step": step,
        "n_models": int(chosen["n_models"]),
        "picture": picture(plots.agreement_over_training(results.selection), alt),
    }


def distributions(results: RunResults) -> Picture:
    """Return the R-indices of each group as a picture."""
    figure = plots.r_index_distributions(results.r_indices)
    return picture(figure, "R-indices of each group, one panel per pattern; the table below gives the quartiles.")


def group_table(results: RunResults) -> list[tuple[str, str, str, list[str]]]:
    """Return name, group, people and quartiles of each R-index and group."""
    rows = []
    for pattern in range(1, results.n_patterns + 1):
        for group, name in GROUP_NAMES.items():
            values = results.r_indices.loc[results.r_indices["group"] == group, f"r{pattern}"].dropna()
            if len(values):
                quartiles = [number(value) for value in values.quantile([0.25, 0.5, 0.75])]
                rows.append((f"R{pattern}", name, f"{len(values):,}", quartiles))
    return rows


def pairs(results: RunResults) -> Picture | None:
    """Return pairs of R-indices as a picture, nothing with one pattern."""
    if results.n_patterns < 2:
        return None
    figure = plots.r_index_pairs(results.r_indices)
    return picture(figure, "Each pair of R-indices against each other: patients as dots, controls as faint crosses.")


def correlation(results: RunResults) -> list[tuple[str, list[str]]]:
    """Return name and row of each pattern in the learned correlation of severities; nothing where there is none."""
    rows = results.summary.get("correlation") or []
    # One pattern has nothing to be correlated with.
    return [(f"R{place + 1}", [number(value) for value in row]) for place, row in enumerate(rows) if len(rows) > 1]


def pattern(results: RunResults, place: int) -> dict[str, Any]:
    """Return the strongest regions of one pattern."""
    rows = results.patterns[results.patterns["pattern"] == place]
    rows = rows.loc[rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index].head(TOP_REGIONS)
    first = rows.iloc[0]
    alt = (
        f"Bars of the regions that change most in pattern {place}; the strongest is {first['region']} "
        f"with {number(first['change_sd'], 2, '+')} sd of controls. The table has all values."
    )
    table = [
        (row.region, number(row.change_sd, 2, "+"), number(row.spread_sd), number(row.change_percent, 1, "+"))
        for row in rows.itertuples()
    ]
    shown = picture(plots.strongest_regions(results.patterns, TOP_REGIONS, only=place), alt)
    return {"number": place, "rows": table, "picture": shown}


def spreads(results: RunResults) -> list[tuple[str, str]]:
    """Return the median spread over repetitions of each R-index."""
    known = {f"R{n}": results.r_indices[f"r{n}_sd"].dropna() for n in range(1, results.n_patterns + 1)}
    return [(name, number(values.median(), 3)) for name, values in known.items() if len(values)]
