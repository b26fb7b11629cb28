"""Figures of what patterns do to regions."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rindices.plots.hemispheres import pair_sides
from rindices.plots.rows import draw_intervals, draw_marks, name_rows, row_panels, write_beside, write_head
from rindices.plots.style import BLUE, GREEN, GREY, STYLE, VERMILLION

ROW_HEIGHT = 0.24
BESIDE_ONE, BESIDE_TWO = 48, 92
ASIDE = 0.17  # of a row: twins of equal change must not hide each other
_SIDES = {"left": (-ASIDE, BLUE, "o"), "right": (ASIDE, VERMILLION, "D"), "": (0.0, GREEN, "s")}
_LABELS = {"left": "left", "right": "right", "": "without a twin"}


@matplotlib.rc_context(STYLE)
def pattern_dots(patterns: pd.DataFrame, only: int | None = None, top: int = 20) -> Figure:
    """Draw the regions that change most at severity 1, both hemispheres on one row, patterns on a common scale.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern``, ``change_sd``, ``change_percent`` and ``spread_sd``; where ``decomposed_sd``
        is there and known, faint marks show it.
    only
        Draw this pattern alone, still on the scale that is common to all.
    top
        How many rows of each pattern.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "spread_sd": 0.1, "change_percent": -5.0, "change_sd": -1.0}
    >>> table = pd.DataFrame([{**row, "region": name} for name in ("lHip", "rHip", "Vermis")])
    >>> [tick.get_text() for tick in pattern_dots(table).axes[0].get_yticklabels()]
    ['Hip', 'Vermis']
    """
    if "decomposed_sd" not in patterns:
        patterns = patterns.assign(decomposed_sd=np.nan)
    strongest = {int(str(number)): _strongest(rows, top) for number, rows in patterns.groupby("pattern")}
    drawn = [only] if only is not None else list(strongest)
    if not drawn or drawn[0] not in strongest:
        raise ValueError(f"Expected a pattern among {sorted(strongest)}, found {only}. Choose one that the table has.")
    figure, panels = row_panels([strongest[number]["row"].nunique() for number in drawn], ROW_HEIGHT)
    limits = _limits(pd.concat(strongest.values()))
    for axes, number in zip(panels, drawn, strict=True):
        _draw_pattern(axes, strongest[number])
        axes.set_title(f"Pattern {number}", loc="left", fontweight="bold")
        axes.set_xlim(*limits)
    shown = pd.concat([strongest[number] for number in drawn])
    label = "Change at severity 1 (sd of controls)"
    panels[-1].set_xlabel(label + ("\nlines: spread over repetitions" if shown["spread_sd"].notna().any() else ""))
    _explain(figure, shown)
    return figure


def _strongest(rows: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return one pattern's strongest regions with their side, name and row; twins share a row."""
    pairs = pair_sides(rows["region"].astype(str))
    found = [pairs.get(str(region), ("", str(region))) for region in rows["region"]]
    rows = rows.assign(side=[side for side, _ in found], name=[name for _, name in found])
    # A region without a twin has a row of its own, even where two have the same name.
    alone = [name if side else place for place, (side, name) in enumerate(found)]
    strength = rows["change_sd"].abs().groupby(alone).transform("max") if len(rows) else rows["change_sd"]
    rows = rows.assign(key=alone, strength=strength.to_numpy())
    rows = rows.iloc[np.argsort(-rows["strength"].to_numpy(dtype=float), kind="stable")]
    rows = rows.assign(row=pd.factorize(rows["key"].astype(object))[0])
    return rows[rows["row"] < top]


def _limits(shown: pd.DataFrame) -> tuple[float, float]:
    change, spread = shown["change_sd"], shown["spread_sd"].fillna(0.0)
    ends = pd.concat([change - spread, change + spread, shown["decomposed_sd"]]).dropna()
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_pattern(axes: Axes, rows: pd.DataFrame) -> None:
    by_row = list(rows.groupby("row", sort=True))
    name_rows(axes, [pair["name"].iloc[0] for _, pair in by_row])
    for row, pair in by_row:
        if len(pair) == 2:
            ends = pair.set_index("side")["change_sd"].loc[["left", "right"]]
            axes.plot(ends, [float(str(row)) - ASIDE, float(str(row)) + ASIDE], color=GREY, linewidth=1, zorder=2)
    for side, (aside, colour, marker) in _SIDES.items():
        here = rows[rows["side"] == side]
        change, places = here["change_sd"], here["row"] + aside
        axes.plot(here["decomposed_sd"], places, marker, color=colour, alpha=0.35, markersize=5, markeredgewidth=0)
        draw_intervals(axes, places, change - here["spread_sd"], change + here["spread_sd"], colour)
        draw_marks(axes, change, places, np.ones(len(here)), colour, marker, 4.5)
    offset = BESIDE_TWO if (rows["side"] != "").any() else BESIDE_ONE
    if offset == BESIDE_TWO:
        write_head(axes, "left / right", offset)
    for row, pair in by_row:
        write_beside(axes, float(str(row)), _percent(pair.sort_values("side")["change_percent"]), offset)


def _percent(values: pd.Series) -> str:
    # Adding zero turns a rounded "-0.0" into "+0.0".
    words = ["–" if pd.isna(value) else f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") for value in values]
    return " / ".join(words) + (" %" if values.notna().any() else "")


def _explain(figure: Figure, shown: pd.DataFrame) -> None:
    """Say what the marks mean, where there is more than one kind."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=_LABELS[side])
        for side, (_, colour, marker) in _SIDES.items()
        if (shown["side"] == side).any()
    ]
    if shown["decomposed_sd"].notna().any():
        faint = {"marker": "o", "color": GREY, "alpha": 0.5, "linestyle": "none", "markeredgewidth": 0}
        handles.append(Line2D([], [], **faint, markersize=5, label="faint: as seen in real patients"))  # type: ignore[arg-type]
    if len(handles) > 1:
        figure.legend(handles=handles, loc="outside upper center", ncols=4)
