"""The section on associations of R-indices with clinical variables."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, joined, listed, number, p_words
from rindices.report.read import RunResults
from rindices.report.tables import Cell, Table, count, limits, limits_column, make_table, measure, numbers, probability

LARGEST_Q = 0.05
LETTERS = {"Pearson r": "r", "point-biserial r": "r", "eta²": "η²"}


def associations_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return the associations among patients and among everybody, nothing where none were looked at."""
    table = results.analyses.associations
    if table is None:
        return None
    people = [name for name in ("patients", "everybody") if (table["people"] == name).any()]
    parts = [_part(table[table["people"] == name], name, gallery) for name in people]
    return {
        "parts": parts,
        "covariates": listed([str(name) for name in results.summary.get("covariates") or []]),
        "partial": bool(table["partial"].notna().any()),
        "eta": bool((table["statistic"] == "eta²").any()),
        "clinical": joined(results.summary.get("clinical")),
    }


def clear_associations(table: pd.DataFrame | None, pattern: int) -> pd.DataFrame:
    """Return the associations of a pattern in patients that are hardly chance, the strongest first."""
    if table is None:
        return pd.DataFrame()
    clear = table[(table["people"] == "patients") & (table["pattern"] == pattern) & (table["q"] < LARGEST_Q)]
    return clear.loc[clear["coefficient"].abs().sort_values(ascending=False, kind="stable").index]


def in_words(row: Any) -> str:
    """Return an association as it stands in a sentence: ``mmse (r = −0.41, q < 0.001)``."""
    value = f"{LETTERS.get(row.statistic, row.statistic)} = {number(row.coefficient)}"
    return f"{_variable(row.variable, row.level)} ({value}, {p_words('q', row.q)})"


def _variable(name: Any, level: Any) -> str:
    return f"{name} = {level}" if str(level).strip() else str(name)


def _part(table: pd.DataFrame, people: str, gallery: Gallery) -> dict[str, Any]:
    known = table[table["coefficient"].notna()]
    n_clear = int((table["q"] < LARGEST_Q).sum())
    picture = None
    if len(known):
        alt = (
            f"Association of each variable with each R-index in {people}, with 95 % intervals; {n_clear} of "
            f"{len(known)} have q below {LARGEST_Q:g}. The table has the values."
        )
        picture = gallery.draw(f"associations_{people}", plots.forest(table, people=people), alt)
    return {"people": people, "picture": picture, "n": len(known), "n_clear": n_clear, "table": _table(table, people)}


def _table(table: pd.DataFrame, people: str) -> Table:
    partial = bool(table["partial"].notna().any())
    notes = bool((table["note"].str.strip() != "").any())
    adjusted = [*numbers("Adjusted"), limits_column(of="95 % interval, adjusted"), *numbers("q, adjusted")]
    columns = [
        *("Pattern", "Variable", "Statistic"),
        *numbers("n", "Coefficient"),
        limits_column(),
        *numbers("p", "q"),
        *(adjusted if partial else []),
        *(["Note"] if notes else []),
    ]
    rows = []
    for row in table.to_dict("records"):
        cells = [f"R{row['pattern']}", Cell(_variable(row["variable"], row["level"])), str(row["statistic"])]
        cells += [count(row["n"]), measure(row["coefficient"]), limits(row["low"], row["high"])]
        cells += [probability(row["p"]), probability(row["q"])]
        if partial:
            cells += [measure(row["partial"]), limits(row["partial_low"], row["partial_high"])]
            cells += [probability(row["partial_q"])]
        rows.append(cells + ([str(row["note"])] if notes else []))
    return make_table(f"Associations in {people}", columns, rows, source="analysis/associations.csv")
