"""The sections on R-indices: agreement, distributions, pairs and, in a demo, the recovery of the truth."""

from typing import Any

from rindices import plots
from rindices.report.pieces import Gallery, Picture, number
from rindices.report.read import AGREEMENT, LIMITS, RunResults
from rindices.report.tables import Table, count, limits, limits_column, make_table, measure, numbers

GROUP_NAMES = {"control": "Controls", "patient": "Patients", "other": "Others"}


def recovery_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return the comparison with the truth of a demo."""
    if results.truth is None:
        return None
    found = results.summary["recovery"]
    known = results.truth.notna().all(axis=1) & (results.r_indices["group"] == "patient")
    scores = results.r_indices.loc[known, [f"r{place + 1}" for place in range(results.n_patterns)]]
    per_pattern = [float(value) for value in found["per_pattern"]]
    figure = plots.recovery(results.truth[known], scores, per_pattern)
    values = ", ".join(f"pattern {place + 1}: {value:.3f}" for place, value in enumerate(per_pattern))
    alt = f"Known severity against R-index in patients. Concordance, {values}."
    return {
        "picture": gallery.draw("recovery", figure, alt),
        "concordance": number(float(found["pattern_concordance"]), 3),
    }


def agreement_section(results: RunResults, gallery: Gallery, *, searched: bool) -> dict[str, Any] | None:
    """Return the agreement over training of the chosen setting, without a picture with a single training."""
    if results.selection is None:
        return None
    chosen = results.chosen
    if chosen[list(AGREEMENT)].isna().all():
        return {"known": False}
    intervals = bool(chosen[list(LIMITS)].notna().any())
    columns, rows = ["Index", *numbers("Value"), *([limits_column()] if intervals else [])], []
    for name in AGREEMENT:
        ends = [limits(chosen[f"{name}_low"], chosen[f"{name}_high"], 3)] if intervals else []
        rows.append([name.replace("_", " ").capitalize(), measure(chosen[name], 3), *ends])
    step = f"{int(chosen['step']):,}"
    values = ", ".join(f"{name.replace('_', ' ')} {number(chosen[name], 3)}" for name in AGREEMENT)
    alt = f"Agreement between trainings over the steps of training. At the chosen step {step}: {values}."
    return {
        "known": True,
        "table": make_table(f"Agreement at the chosen step {step}", columns, rows),
        "intervals": intervals,
        "searched": searched,
        "n_models": int(chosen["n_models"]),
        "picture": gallery.draw("agreement_over_training", plots.agreement_over_training(results.selection), alt),
    }


def distributions_section(results: RunResults, gallery: Gallery) -> dict[str, Any]:
    """Return the R-indices of each group as a picture and their quartiles."""
    alt = "R-indices of each group, one panel per pattern; the table below gives the quartiles."
    return {
        "picture": gallery.draw("r_indices", plots.r_index_distributions(results.first), alt),
        "table": _quartiles(results),
        "visits": "visit" in results.r_indices,
    }


def _quartiles(results: RunResults) -> Table:
    rows = []
    for pattern in range(1, results.n_patterns + 1):
        for group, name in GROUP_NAMES.items():
            values = results.group(group)[f"r{pattern}"].dropna()
            if len(values):
                quartiles = [measure(value) for value in values.quantile([0.25, 0.5, 0.75])]
                rows.append([f"R{pattern}", name, count(len(values)), *quartiles])
    columns = ["R-index", "Group", *numbers("People", "25 %", "Median", "75 %")]
    return make_table("Quartiles of the R-indices", columns, rows)


def reading_section(results: RunResults) -> dict[str, Any]:
    """Return the median spread over repetitions of each R-index."""
    known = {f"R{n}": results.r_indices[f"r{n}_sd"].dropna() for n in range(1, results.n_patterns + 1)}
    spreads = [(name, number(values.median(), 3)) for name, values in known.items() if len(values)]
    return {"spreads": spreads, "controls": bool(len(results.group("control")))}


def pairs_section(results: RunResults, gallery: Gallery) -> Picture | None:
    """Return pairs of R-indices as a picture, nothing with one pattern or where nobody's group is known."""
    first = results.first
    if results.n_patterns < 2 or not first["group"].isin(["control", "patient"]).any():
        return None
    alt = "Each pair of R-indices against each other: patients as dots, controls as faint crosses."
    return gallery.draw("pairs", plots.r_index_pairs(first), alt)


def correlation_section(results: RunResults) -> Table | None:
    """Return the learned correlation of severities, nothing where there is none."""
    rows = results.summary.get("correlation") or []
    if len(rows) < 2:  # one pattern has nothing to be correlated with
        return None
    names = [f"R{place + 1}" for place in range(len(rows))]
    cells = [[name, *(measure(value) for value in row)] for name, row in zip(names, rows, strict=True)]
    return make_table("Learned correlation of severities", ["Pattern", *numbers(*names)], cells)


def repetitions_section(results: RunResults) -> dict[str, Any] | None:
    """Return which repetitions went into the R-indices and which did not."""
    if results.applied:
        return None
    used = results.summary.get("members_used")
    left_out = results.summary.get("members_left_out") or []
    rows = [[str(entry["member"]), str(entry["reason"])] for entry in left_out]
    return {
        "repetitions": results.summary["repetitions"],
        "used": len(used) if isinstance(used, list) else used,
        "table": make_table("Repetitions that were left out", ["Repetition", "Reason"], rows) if rows else None,
    }
