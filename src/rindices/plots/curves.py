"""Curves: of people without an event over time, and of the chance to find patterns over the size of a study."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from rindices.plots.style import GREY, SHADES, STYLE, look_of, make_panels, safe_label

_NAMES = {1: "mildest third", 2: "middle third", 3: "most severe third"}
_LINES = {1: ":", 2: "--", 3: "-"}
_PANEL, _HEIGHT = 3.4, 3.3  # inches
_SHARES = (0, 0.25, 0.5, 0.75, 1)
_HEAD, _ROW, _BELOW = -0.24, 0.085, 54  # of a panel's height: where numbers begin, and their rows; points they take


@matplotlib.rc_context(STYLE)
def follow_up_curves(curves: pd.DataFrame, time: str = "time", *, competing: bool = False) -> Figure:
    """Draw the share of people without the event by time, or with competing events the share with it.

    Parameters
    ----------
    curves
        Columns ``pattern``, ``third``, ``n``, ``time``, ``at_risk``, ``incidence``, ``low``, ``high`` and ``shown``.
    time
        What the time is called.
    competing
        Whether other events may come first: the share without either is not what is shown then.

    Examples
    --------
    >>> row = {"pattern": 1, "third": 1, "n": 9, "at_risk": 9, "incidence": 0.0, "low": 0.0, "high": 0.0}
    >>> table = pd.DataFrame([row | {"time": 0.0, "shown": True}, row | {"time": 2.0, "shown": True}])
    >>> follow_up_curves(table).axes[0].get_title(loc="left")
    'Pattern 1'
    """
    patterns = sorted(map(int, curves["pattern"].unique()))
    figure, panels = make_panels(len(patterns), _PANEL, _HEIGHT, sharey=True)
    for axes, pattern in zip(panels, patterns, strict=True):
        own = curves[curves["pattern"] == pattern]
        for place, third in enumerate(sorted(map(int, own["third"].unique()), reverse=True)):
            _draw_third(axes, own[own["third"] == third], third, place, competing=competing)
        axes.set_title(f"Pattern {pattern}", loc="left")
        axes.set(ylim=(0, 1.02), yticks=_SHARES)  # ticks that depend on the height would move the label
        axes.set_xlabel(safe_label(time), labelpad=_BELOW)
    panels[0].set_ylabel("Share with the event" if competing else "Share without the event")
    handles, labels = panels[0].get_legend_handles_labels()
    narrow = figure.get_figwidth() < 2 * _PANEL
    figure.legend(handles, labels, loc="outside upper center", ncols=1 if narrow else 3)
    return figure


def _draw_third(axes: Axes, rows: pd.DataFrame, third: int, place: int, *, competing: bool) -> None:
    times, shade = rows["time"].to_numpy(), SHADES[3 - third]
    value, low, high = (rows[name].to_numpy() for name in ("incidence", "low", "high"))
    if not competing:
        value, low, high = 1 - value, 1 - high, 1 - low
    axes.fill_between(times, low, high, step="post", color=shade, alpha=0.15, linewidth=0)
    axes.step(times, value, where="post", color=shade, linestyle=_LINES[third], label=_NAMES[third])
    grid = rows[rows["shown"].astype(bool)]
    axes.set_xticks(grid["time"], [f"{time:.3g}" for time in grid["time"]])
    down = _HEAD - _ROW * (place + 1)
    look: Any = {"transform": axes.get_xaxis_transform(), "fontsize": 8, "va": "center"}
    for time, at_risk in zip(grid["time"], grid["at_risk"], strict=True):
        axes.text(time, down, f"{int(at_risk):,}", ha="center", **look)
    if place == 0:
        left = float(np.min(times))
        axes.text(left, _HEAD, "At risk, in this order", ha="left", **look)


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
