"""Figures of how R-indices go with clinical variables."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import (
    GREY,
    ROW_FONT,
    SIGNIFICANT,
    STYLE,
    draw_intervals,
    draw_marks,
    farthest,
    look_of,
    name_rows,
    pattern_legend,
    row_panels,
    write_beside,
)

MOST_VARIABLES = 40
LEAST_REACH = 0.2  # a panel of tiny correlations must not look like one of strong ones


@matplotlib.rc_context(STYLE)
def forest(associations: pd.DataFrame, *, people: str = "patients") -> Figure:
    """Draw the association of each variable with each R-index, with its 95 % interval.

    Parameters
    ----------
    associations
        Columns ``people``, ``pattern``, ``variable``, ``level``, ``kind``, ``n``, ``coefficient``, ``low``, ``high``
        and ``q``. Categorical variables (eta²) get a panel of their own. Of more than 40 variables the strongest
        40 are drawn.
    people
        Whose associations.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"people": "patients", "pattern": 1, "level": "", "kind": "continuous", "n": 90, "q": 0.01}
    >>> table = pd.DataFrame([{**row, "variable": "mmse", "coefficient": -0.4, "low": -0.6, "high": -0.2}])
    >>> [tick.get_text() for tick in forest(table).axes[0].get_yticklabels()]
    ['mmse']
    """
    rows = associations[associations["people"] == people]
    if rows.empty:
        raise ValueError(f"Expected associations in {people}, found none. Leave this figure out.")
    rows = rows.assign(name=[_named(*pair) for pair in zip(rows["variable"], rows["level"], strict=True)])
    kept = rows[rows["name"].isin(farthest(rows["coefficient"].fillna(0.0), rows["name"], MOST_VARIABLES))]
    categorical = kept["kind"] == "categorical"
    parts = [(part, eta) for part, eta in ((kept[~categorical], False), (kept[categorical], True)) if len(part)]
    patterns = sorted(int(number) for number in rows["pattern"].unique())
    counts = [part["name"].nunique() for part, _ in parts]
    figure, panels = row_panels(counts, 0.12 + 0.09 * len(patterns))
    for axes, (part, eta) in zip(panels, parts, strict=True):
        _draw_part(axes, part, patterns)
        _scale(axes, part, eta, people)
    pattern_legend(figure, patterns)
    total = rows["name"].nunique()
    if total > MOST_VARIABLES:
        figure.supxlabel(f"The {MOST_VARIABLES} strongest of {total:,} variables; the table has all.", fontsize=9)
    return figure


def _named(variable: Any, level: Any) -> str:
    """Return a variable with the value that counts as 1, which a file may give back as a number or a gap."""
    if pd.isna(level) or level == "":
        return str(variable)
    return f"{variable}: {level:g}" if isinstance(level, float) else f"{variable}: {level}"


def _draw_part(axes: Axes, part: pd.DataFrame, patterns: list[int]) -> None:
    names = list(dict.fromkeys(part["name"]))
    name_rows(axes, names)
    step = min(0.8 / len(patterns), 0.3)
    for rank, pattern in enumerate(patterns):
        rows = part[part["pattern"] == pattern]
        places = np.asarray([names.index(name) for name in rows["name"]], dtype=float)
        places += (rank - (len(patterns) - 1) / 2) * step
        colour, marker = look_of(pattern)
        draw_intervals(axes, places, rows["low"], rows["high"], colour)
        draw_marks(axes, rows["coefficient"], places, rows["q"] < SIGNIFICANT, colour, marker)
    write_beside(axes, [_people(part.loc[part["name"] == name, "n"]) for name in names], 40, "n")
    for place, name in enumerate(names):
        if part.loc[part["name"] == name, "coefficient"].isna().all():
            around: Any = {"va": "center", "color": GREY, "fontsize": ROW_FONT - 1}
            axes.text(0.01, place, "no value", transform=axes.get_yaxis_transform(), **around)


def _people(counts: pd.Series) -> str:
    low, high = int(counts.fillna(0).min()), int(counts.fillna(0).max())
    return f"{high:,}" if low == high else f"≤ {high:,}"


def _scale(axes: Axes, part: pd.DataFrame, eta: bool, people: str) -> None:
    what = "Share of variance explained (eta²)" if eta else "Correlation with the R-index"
    axes.set_xlabel(f"{what}, {people}\n(lines: 95 % interval; filled: q < {SIGNIFICANT:g})")
    if eta:
        axes.set_xlim(-0.02, 1.02)
        return
    values = part[["coefficient", "low", "high"]].abs().to_numpy(dtype=float)
    reach = np.nanmax(values, initial=LEAST_REACH)
    axes.set_xlim(-min(1.06 * reach, 1.02), min(1.06 * reach, 1.02))
