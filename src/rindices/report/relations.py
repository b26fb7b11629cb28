"""The sections on what R-indices go together with: clinical variables, and time."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.record import Run
from rindices.report.elements import (
    GROUPS,
    Gallery,
    Picture,
    Table,
    counts,
    limits,
    listed,
    make_table,
    measures,
    probabilities,
    words,
)
from rindices.report.overview import variable_names

_LARGEST_Q = 0.05
_DIFFERENCE = "patients less controls"  # as it stands in ``change_summary.csv``


def associations_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return the associations among patients and among everybody, nothing where none were looked at."""
    table = run.analyses.get("associations")
    if table is None:
        return None
    return {
        "parts": [_part(table[table["people"] == people], people, gallery) for people in table["people"].unique()],
        "partial": bool(table["partial"].notna().any()),
        "eta": bool((table["statistic"] == "eta²").any()),
    }


def _part(table: pd.DataFrame, people: str, gallery: Gallery) -> dict[str, object]:
    n_known, n_clear = int(table["coefficient"].notna().sum()), int((table["q"] < _LARGEST_Q).sum())
    alt = (
        f"Association of each variable with each R-index in {people}, with 95 % intervals; {n_clear} of "
        f"{n_known} have q below {_LARGEST_Q:g}. The table has the values."
    )
    figure = gallery.draw(f"associations_{people}", plots.forest(table, people=people), alt) if n_known else None
    return {
        "people": people,
        "picture": figure,
        "n": n_known,
        "n_clear": n_clear,
        "table": _associations(table, people),
    }


def _associations(table: pd.DataFrame, people: str) -> Table:
    columns = [
        words("Pattern", "R" + table["pattern"].astype(str)),
        words("Variable", variable_names(table)),
        words("Statistic", table["statistic"]),
        counts("n", table["n"]),
        measures("Coefficient", table["coefficient"]),
        limits(table["low"], table["high"]),
        probabilities("p", table["p"]),
        probabilities("q", table["q"]),
    ]
    if table["partial"].notna().any():
        columns.append(measures("Adjusted", table["partial"]))
        columns.append(limits(table["partial_low"], table["partial_high"], of="95 % interval, adjusted"))
        columns.append(probabilities("q, adjusted", table["partial_q"]))
    if (table["note"].str.strip() != "").any():
        columns.append(words("Note", table["note"]))
    return make_table(f"Associations in {people}", columns, source="analysis/associations.csv")


def change_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return how R-indices change in a year, nothing without repeated visits."""
    change, means = run.analyses.get("change"), run.analyses.get("change_summary")
    if change is None or means is None:
        return None
    # The people behind the means: as many of each group as are counted there, seen over the longest time.
    place = change.groupby("group")["years"].rank(method="first", ascending=False)
    counted = change[place <= change["group"].map(means.groupby("group")["n"].max()).fillna(0)]
    columns = [
        words("Pattern", "R" + means["pattern"].astype(str)),
        words("Group", means["group"].replace(GROUPS | {_DIFFERENCE: _DIFFERENCE.capitalize()})),
        counts("People", means["n"]),
        measures("Change per year", means["mean"], 3, "+"),
        limits(means["low"], means["high"], 3),
        probabilities("p", means["p"]),
    ]
    return {
        "n": len(change),
        "n_counted": len(counted),
        "years": change["years"].median(),
        "without": listed(means.loc[means["n"] == 0, "group"].replace(GROUPS).str.lower().unique()),
        "compared": bool((means["group"] == _DIFFERENCE).any()),
        "picture": _change_picture(counted, means, gallery) if len(counted) else None,
        "table": make_table("Change of the R-indices per year", columns),
    }


def _change_picture(counted: pd.DataFrame, means: pd.DataFrame, gallery: Gallery) -> Picture:
    alt = (
        "Change of each R-index per year: each person faintly, and the mean of each group with its 95 % interval. "
        "The table has the values."
    )
    groups = means[means["group"].isin(GROUPS) & (means["n"] > 0)]
    return gallery.draw("change", plots.change_lines(counted, groups), alt)
