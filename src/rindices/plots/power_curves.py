"""The chance that a study finds its patterns, by its size."""

from __future__ import annotations

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from rindices.plots.style import GREY, STYLE, look_of, make_panels

_PANEL = 2.9  # inches


@matplotlib.rc_context(STYLE)
def power_curves(chances: pd.DataFrame, n_controls: int, n_patients: int) -> Figure:
    """Draw the chance to find all patterns against the people of each group, a panel for each strength.

    Parameters
    ----------
    chances
        Columns ``people``, ``patterns``, ``strength``, ``chance``, ``low`` and ``high``.
    n_controls, n_patients
        The study that is planned, which is marked at the smaller number.

    Examples
    --------
    >>> row = {"people": 40, "patterns": 1, "strength": 1.0, "chance": 0.5, "low": 0.4, "high": 0.6}
    >>> power_curves(pd.DataFrame([row]), 60, 80).axes[0].get_title(loc="left")
    '1 sd'
    """
    strengths = sorted(chances["strength"].unique())
    figure, panels = make_panels(len(strengths), _PANEL, _PANEL, sharey=True)
    for axes, strength in zip(panels, strengths, strict=True):
        for patterns, own in chances[chances["strength"] == strength].groupby("patterns"):
            colour, marker = look_of(int(patterns))
            axes.fill_between(own["people"], own["low"], own["high"], color=colour, alpha=0.12, linewidth=0)
            axes.plot(own["people"], own["chance"], color=colour, marker=marker, markersize=4, label=f"{patterns:.0f}")
        axes.axvline(min(n_controls, n_patients), color=GREY, linestyle=":")
        axes.set_title(f"{strength:g} sd", loc="left")
        axes.set(xscale="log", ylim=(-0.02, 1.02), yticks=(0, 0.25, 0.5, 0.75, 1), xlabel="People of each group")
        sizes = sorted(chances["people"].unique())[::2]
        axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("Chance to find all patterns")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, title="Patterns", loc="outside right upper")
    return figure
