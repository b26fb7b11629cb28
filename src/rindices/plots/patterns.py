"""Figures of what patterns do to regions."""

from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import BLUE, ORANGE, STYLE, make_panels, safe_label


@matplotlib.rc_context(STYLE)
def strongest_regions(patterns: pd.DataFrame, top: int = 12, only: int | None = None) -> Figure:
    """Draw the regions that change most at severity 1, one panel per pattern on one common scale.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern``, ``change_sd``, ``change_percent`` and ``spread_sd``.
    top
        How many regions of each pattern.
    only
        Draw this pattern alone, still on the scale that is common to all.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "spread_sd": 0.1, "change_percent": -5.0}
    >>> table = pd.DataFrame([{**row, "region": name, "change_sd": -1.0} for name in ("amygdala", "hippocampus")])
    >>> strongest_regions(table).axes[0].get_xlabel()
    'Change at severity 1 (sd of controls)'
    """
    strongest = {}
    for pattern, rows in patterns.groupby("pattern"):
        order = rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index
        strongest[int(str(pattern))] = rows.loc[order].head(top)
    drawn = [only] if only is not None else list(strongest)
    if not drawn or drawn[0] not in strongest:
        raise ValueError(f"Expected a pattern among {sorted(strongest)}, found {only}. Choose one that the table has.")
    shown = pd.concat(strongest.values())
    reach, spread = shown["change_sd"], shown["spread_sd"].fillna(0.0)
    low, high = min(0.0, (reach - spread).min()), max(0.0, (reach + spread).max())
    margin = 0.04 * (high - low) or 1.0
    n_bars = max(len(strongest[pattern]) for pattern in drawn)
    figure, panels = make_panels(len(drawn), 6.8, 0.9 + 0.2 * n_bars, columns=1)
    for axes, pattern in zip(panels, drawn, strict=True):
        _draw_bars(axes, strongest[pattern])
        axes.set_title(f"Pattern {pattern}", loc="left", fontweight="bold")
        axes.set_xlim(low - margin * (low < 0), high + margin * (high > 0 or low == 0))
    panels[-1].set_xlabel("Change at severity 1 (sd of controls)")
    return figure


def _draw_bars(axes: Axes, rows: pd.DataFrame) -> None:
    heights = list(range(len(rows)))
    change = rows["change_sd"].to_numpy(dtype=float)
    colours = [BLUE if value < 0 else ORANGE for value in change]
    axes.barh(heights, change, height=0.7, color=colours)
    spread = rows["spread_sd"].fillna(0.0)
    axes.errorbar(change, heights, xerr=spread, fmt="none", ecolor="black", capsize=2, linewidth=1)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(heights, [safe_label(region) for region in rows["region"]], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # Percentages stand in a column of their own: beside the bars they would meet error bars and names.
    beside = axes.get_yaxis_transform()
    for height, percent in zip(heights, rows["change_percent"], strict=True):
        text = "–" if pd.isna(percent) else f"{percent:+.1f} %".replace("-", "−")
        place: Any = {"xycoords": beside, "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(text, (1, height), (46, 0), fontsize=8, annotation_clip=False, **place)
