"""The sections on what patterns do to regions: maps, and what is seen at each severity."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, number
from rindices.report.read import RunResults
from rindices.report.tables import Column, Table, count, limits, limits_column, make_table, measure, numbers

TOP_REGIONS = 20


def maps_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return the regions of each pattern, nothing where they are not known."""
    if results.patterns.empty:
        return None
    decomposed = "decomposed_sd" in results.patterns and bool(results.patterns["decomposed_sd"].notna().any())
    places = range(1, results.n_patterns + 1)
    patterns = [_pattern(results, gallery, place, decomposed=decomposed) for place in places]
    return {"patterns": patterns, "decomposed": decomposed, "top": TOP_REGIONS}


def strongest(patterns: pd.DataFrame, place: int) -> pd.DataFrame:
    """Return the regions of one pattern, the largest change first."""
    rows = patterns[patterns["pattern"] == place]
    return rows.loc[rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index]


def _pattern(results: RunResults, gallery: Gallery, place: int, *, decomposed: bool) -> dict[str, Any]:
    rows = strongest(results.patterns, place)
    first = rows.iloc[0]
    alt = (
        f"The regions that change most in pattern {place}, left and right as two dots; the strongest is "
        f"{first['region']} with {number(first['change_sd'], 2, '+')} sd of controls. The table has all values."
    )
    figure = plots.pattern_dots(results.patterns, only=place, top=TOP_REGIONS)
    shown = gallery.draw(f"pattern_{place}", figure, alt)
    return {"number": place, "table": _regions(rows, place, decomposed=decomposed), "picture": shown}


def _regions(rows: pd.DataFrame, place: int, *, decomposed: bool) -> Table:
    seen = ["In patients (sd)", "Spread of that (sd)"] if decomposed else []
    columns: list[Column | str] = ["Region", *numbers("Change (sd)", "Spread (sd)", "Change (%)", *seen)]
    cells = []
    for row in rows.to_dict("records"):
        more = [measure(row["decomposed_sd"], 2, "+"), measure(row["decomposed_spread_sd"])] if decomposed else []
        change = measure(row["change_sd"], 2, "+")
        spread, percent = measure(row["spread_sd"]), measure(row["change_percent"], 1, "+")
        cells.append([str(row["region"]), change, spread, percent, *more])
    return make_table(f"All regions of pattern {place}, strongest first", columns, cells, source="patterns.csv")


def dose_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return the regions of patients at each severity, nothing where they were not looked at."""
    table = results.analyses.dose_response
    if table is None:
        return None
    alt = (
        "Mean of the strongest regions in patients, in standard deviations of the controls, against severity; "
        "one panel per pattern. The table has the values."
    )
    columns = [
        *numbers("Pattern"),
        "Region",
        limits_column("R-index", of="R-index"),
        *numbers("Patients", "Mean z"),
        limits_column(),
    ]
    rows = [
        [
            count(row["pattern"]),
            str(row["region"]),
            limits(row["low"], row["high"], 1),
            count(row["n"]),
            measure(row["mean"], 2, "+"),
            limits(row["mean_low"], row["mean_high"]),
        ]
        for row in table.to_dict("records")
    ]
    return {
        "picture": gallery.draw("dose_response", plots.dose_response(table), alt),
        "table": make_table("Regions of patients by severity", columns, rows, source="analysis/dose_response.csv"),
    }
