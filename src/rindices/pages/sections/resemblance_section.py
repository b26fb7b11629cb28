"""The section on what patterns resemble: maps of disorders beside them."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.pages.elements import Table, counts, listed, measures, probabilities, words
from rindices.pages.run_view import RunView
from rindices.regions import known_columns

_CLEAR = 0.025  # at 0.05, 9 of 100 unrelated maps pass: regions change places more freely than a smooth map turns
_MOST_NAMED = 3
_SUBCORTEX = "subcortex"


def resemblance_section(view: RunView) -> dict[str, object]:
    """Return how each pattern's map correlates with maps of disorders; why not, where no map is at hand."""
    table = view.analyses.get("resemblance")
    cortex = None if table is None else table[table["measure"] != _SUBCORTEX]
    if table is None or cortex is None or cortex.empty:
        return {"rows": None, "what": _what(view)}
    alt = "Correlation of each pattern with the case-control map of each disorder. The table has the values."
    rows = [_row(part) for _, part in cortex.groupby(["pattern", "measure"], sort=False)]
    return {
        "rows": rows,
        "n_regions": int(cortex["n_regions"].min()),
        "picture": view.gallery.draw("resemblance", plots.disorder_dots(cortex), alt),
        "table": _table(cortex, "Patterns and disorders, over the cortex"),
        "subcortex": _subcortex(table[table["measure"] == _SUBCORTEX]),
    }


def _what(view: RunView) -> str:
    """Say what the table has instead of regions that there are maps of."""
    found = {column.measure for column in known_columns(view.region_names).values() if column.kind == "region"}
    known = sorted(found - {""})
    return f"{listed(known)} of regions" if known else "regions whose names do not say what was measured"


def _row(part: pd.DataFrame) -> dict[str, object]:
    """Return the largest correlation of a pattern, and which are beyond chance, also given the mean of all maps."""
    first = part.sort_values("r", ascending=False).iloc[0]
    clear, beyond = (
        part[part[p] < _CLEAR].sort_values(r, ascending=False)["disorder"].head(_MOST_NAMED)
        for r, p in (("r", "p_corrected"), ("beyond", "beyond_p_corrected"))
    )
    return {"first": first.to_dict(), "disorders": listed(clear), "beyond": listed(beyond)}


def _table(rows: pd.DataFrame, caption: str) -> Table:
    columns = [
        counts("Pattern", rows["pattern"]),
        words("Measure", rows["measure"]),
        words("Disorder", rows["disorder"]),
        counts("Regions", rows["n_regions"]),
        measures("r", rows["r"], 2, "+"),
        probabilities("p", rows["p"]),
        probabilities("p, corrected", rows["p_corrected"]),
        measures("r beyond the mean", rows["beyond"], 2, "+"),
        probabilities("p of that", rows["beyond_p"]),
        probabilities("p of that, corrected", rows["beyond_p_corrected"]),
    ]
    return Table(caption, columns, source="analysis/resemblance.csv")


def _subcortex(rows: pd.DataFrame) -> Table | None:
    columns = [counts("Pattern", rows["pattern"]), words("Disorder", rows["disorder"])]
    columns += [counts("Structures", rows["n_regions"]), measures("r", rows["r"], 2, "+")]
    return Table("Patterns and disorders, below the cortex", columns) if len(rows) else None
