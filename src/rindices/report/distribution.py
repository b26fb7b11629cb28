"""The sections on R-indices as such: their distributions, pairs of them, and the known truth of a demonstration."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.record import Run
from rindices.report.elements import GROUPS, Gallery, counts, make_table, measures, number, words


def first_visits(run: Run) -> pd.DataFrame:
    """Return the R-indices of each person once: at the first visit where there are several."""
    return run.results.r_indices[run.results.first_visit]


def recovery_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return the comparison with the truth of a demonstration."""
    if run.truth is None or run.summary.recovery is None:
        return None
    known = run.truth.notna().all(axis=1) & (run.results.r_indices["group"] == "patient")
    per_pattern = list(run.summary.recovery.per_pattern)
    figure = plots.recovery(run.truth[known], run.results.scores[known], per_pattern)
    values = ", ".join(f"pattern {place}: {value:.3f}" for place, value in enumerate(per_pattern, start=1))
    alt = f"Known severity against R-index in patients. Concordance, {values}."
    return {"picture": gallery.draw("recovery", figure, alt)}


def distributions_section(run: Run, gallery: Gallery) -> dict[str, object]:
    """Return the R-indices of each group as a picture and their quartiles."""
    first = first_visits(run)
    rows = []
    for name in run.results.score_names:
        for group in ("control", "patient", "other"):
            values = first.loc[first["group"] == group, name].dropna()
            quartiles = values.quantile([0.25, 0.5, 0.75])
            rows += [(name.upper(), GROUPS[group], len(values), *quartiles)] if len(values) else []
    names, groups, numbers, *quarters = zip(*rows, strict=True)
    columns = [words("R-index", names), words("Group", groups), counts("People", numbers)]
    columns += [measures(title, values) for title, values in zip(("25 %", "Median", "75 %"), quarters, strict=True)]
    alt = "R-indices of each group, one panel per pattern; the table below gives the quartiles."
    return {
        "picture": gallery.draw("r_indices", plots.r_index_distributions(first), alt),
        "table": make_table("Quartiles of the R-indices", columns),
    }


def reading_section(run: Run) -> dict[str, object]:
    """Return the median spread over repetitions of each R-index."""
    known = {name.upper(): run.results.r_indices[f"{name}_sd"].dropna() for name in run.results.score_names}
    spreads = [f"{number(values.median(), 3)} ({name})" for name, values in known.items() if len(values)]
    return {"spreads": ", ".join(spreads)}


def pairs_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return pairs of R-indices as a picture, nothing with one pattern or where nobody's group is known."""
    first = first_visits(run)
    if run.summary.n_patterns < 2 or not first["group"].isin(["control", "patient"]).any():
        return None
    alt = "Each pair of R-indices against each other: patients as dots, controls as faint crosses."
    return {"picture": gallery.draw("pairs", plots.r_index_pairs(first), alt)}


def correlation_section(run: Run) -> dict[str, object] | None:
    """Return the learned correlation of severities, nothing where there is none, or one pattern only."""
    rows = run.summary.correlation or ()
    if len(rows) < 2:
        return None
    names = [f"R{place}" for place in range(1, len(rows) + 1)]
    columns = [measures(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)]
    return {"table": make_table("Learned correlation of severities", [words("Pattern", names), *columns])}
