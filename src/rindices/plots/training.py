"""Figures of the training."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rindices.plots.style import BLUE, GREEN, GREY, STYLE, VERMILLION

CHANCE_CONCORDANCE, CHANCE_CORRELATION = 0.5, 0.0


@matplotlib.rc_context(STYLE)
def agreement_over_training(selection: pd.DataFrame) -> Figure:
    """Draw how well repeated trainings agree at each checkpoint, with the chosen one marked.

    Parameters
    ----------
    selection
        Columns ``n_patterns``, ``orthogonality``, ``step``, ``pattern_agreement``, ``dimension_correlation``,
        ``difference_correlation`` and ``chosen`` (true in one row). Only rows with the chosen
        number of patterns and orthogonality are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"n_patterns": 2, "orthogonality": 0.8, "pattern_agreement": 0.9, "dimension_correlation": 0.8}
    >>> rows = [{**row, "step": step, "difference_correlation": 0.7, "chosen": step == 200} for step in (100, 200)]
    >>> len(agreement_over_training(pd.DataFrame(rows)).axes)
    2
    """
    chosen = selection.loc[selection["chosen"].astype(bool)].iloc[0]
    same = (selection["n_patterns"] == chosen["n_patterns"]) & (selection["orthogonality"] == chosen["orthogonality"])
    rows = selection[same].sort_values("step")
    figure = Figure(figsize=(6.8, 4.8), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    curves = (
        (upper, "pattern_agreement", "pattern agreement", BLUE, "o-"),
        (lower, "dimension_correlation", "dimension correlation", VERMILLION, "s--"),
        (lower, "difference_correlation", "difference correlation", GREEN, "^:"),
    )
    for axes, column, label, colour, line in curves:
        if rows[column].notna().any():
            axes.plot(rows["step"], rows[column], line, color=colour, label=label, markersize=4)
            axes.plot(chosen["step"], chosen[column], line[0], color=colour, markersize=9, markeredgecolor="black")
    mark_chance(upper, CHANCE_CONCORDANCE, _lowest(upper), "Concordance\n(0.5 = chance, 1 = same)")
    mark_chance(lower, CHANCE_CORRELATION, _lowest(lower), "Correlation\n(0 = chance, 1 = same)")
    for axes in (upper, lower):
        axes.axvline(chosen["step"], color="black", linewidth=1, linestyle="-.", zorder=0)
    upper.lines[-1].set_label(f"chosen: step {int(chosen['step']):,}")
    lower.set_xlabel("Training steps")
    lower.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def mark_chance(axes: Axes, chance: float, lowest: float, label: str) -> None:
    """Draw the line of chance and give room from it, or from the lowest value, up to perfect agreement."""
    axes.axhline(chance, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(min(chance, lowest) - 0.05, 1.04)
    axes.set_ylabel(label)


def _lowest(axes: Axes) -> float:
    values = [float(np.nanmin(line.get_ydata())) for line in axes.lines]  # type: ignore[arg-type]
    return min(values, default=1.0)
