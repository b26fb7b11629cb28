"""Figures of people over time, and of people far from the rest."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from rindices.plots.style import GREY, GROUPS, STYLE, WIDTH, Group, draw_points

INNER_SHARE = 0.98  # of the people who set the scale: a rate from two close visits can be anything
WIDE_RANGE = 8.0


@matplotlib.rc_context(STYLE)
def change_lines(change: pd.DataFrame, change_summary: pd.DataFrame) -> Figure:
    """Draw the change of R-indices per year: every person faintly, the mean of each group with its 95 % interval.

    Parameters
    ----------
    change
        Columns ``group`` and ``r1_per_year`` ... ``rM_per_year``, one row per person.
    change_summary
        Columns ``group``, ``pattern``, ``n``, ``mean``, ``low`` and ``high``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"group": ["patient"] * 3, "r1_per_year": [0.0, 0.1, 0.2]})
    >>> row = {"group": "patient", "pattern": 1, "n": 3, "mean": 0.1, "low": -0.15, "high": 0.35}
    >>> change_lines(people, pd.DataFrame([row])).axes[0].get_ylabel()
    'Change of the R-index per year'
    """
    present = [group for group in GROUPS if (change_summary["group"] == group.key).any()]
    if not present:
        raise ValueError("Expected the change of at least one group, found none. Leave this figure out.")
    patterns = sorted(int(number) for number in change_summary["pattern"].unique())
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    for rank, group in enumerate(present):
        aside = (rank - (len(present) - 1) / 2) * 0.8 / len(present)
        for place, pattern in enumerate(patterns):
            values = change.loc[change["group"] == group.key, f"r{pattern}_per_year"].dropna().to_numpy(dtype=float)
            jitter = np.random.default_rng(0).uniform(-0.2, 0.2, len(values)) / len(present)
            look: Any = {"s": 10, "alpha": 0.4, "marker": group.marker, "color": group.colour, "linewidths": 0}
            draw_points(axes, place + aside + jitter, values, **look)
            here = (change_summary["group"] == group.key) & (change_summary["pattern"] == pattern)
            _draw_mean(axes, place + aside, change_summary[here], group)
    _set_limits(axes, change[[f"r{pattern}_per_year" for pattern in patterns]], change_summary)
    axes.set_xticks(range(len(patterns)), [f"Pattern {number}" for number in patterns])
    axes.set_xlim(-0.5, len(patterns) - 0.5)
    axes.set_ylabel("Change of the R-index per year")
    figure.legend(handles=_groups_in(change_summary, present), loc="outside upper center", ncols=len(present))
    return figure


def _draw_mean(axes: Axes, place: float, rows: pd.DataFrame, group: Group) -> None:
    for mean, low, high in rows[["mean", "low", "high"]].to_numpy(dtype=float):
        if np.isfinite([low, high]).all():
            axes.vlines(place, low, high, colors="black", linewidth=2, zorder=4)
        look: Any = {"markersize": 8, "markeredgecolor": "black", "markeredgewidth": 1.2}
        axes.plot(place, mean, group.marker, color=group.colour, zorder=5, **look)


def _set_limits(axes: Axes, rates: pd.DataFrame, summary: pd.DataFrame) -> None:
    """Scale to most people and to all means, and say how many lie beyond."""
    values = rates.to_numpy(dtype=float)
    edges = (
        [] if np.isnan(values).all() else list(np.nanquantile(values, [(1 - INNER_SHARE) / 2, (1 + INNER_SHARE) / 2]))
    )
    ends = [*edges, *summary[["mean", "low", "high"]].to_numpy(dtype=float).ravel(), 0.0]
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    margin = 0.08 * (high - low) or 0.1
    axes.set_ylim(low - margin, high + margin)
    beyond = int(((values < low - margin) | (values > high + margin)).any(axis=1).sum())
    if beyond:
        people = "1 person lies" if beyond == 1 else f"{beyond:,} people lie"
        axes.set_xlabel(f"{people} beyond the scale", fontsize=8, color=GREY)


def _groups_in(summary: pd.DataFrame, present: list[Group]) -> list[Line2D]:
    handles = []
    for group in present:
        n = int(summary.loc[summary["group"] == group.key, "n"].max())
        look: Any = {"marker": group.marker, "linestyle": "none", "markersize": 7, "markeredgecolor": "black"}
        handles.append(Line2D([], [], color=group.colour, label=f"{group.label} (n = {n:,})", **look))
    return handles


@matplotlib.rc_context(STYLE)
def outlier_distances(people: pd.DataFrame) -> Figure:
    r"""Draw how far each person lies from the controls, group by group, with the outliers marked.

    Parameters
    ----------
    people
        Columns ``group``, ``distance`` (robust, unknown for people who were left out before), ``reason`` and
        ``flags``. Who has a distance and a flag, or was left out as an outlier, is marked.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"group": ["control"] * 3, "distance": [1.0, 2.0, 9.0], "reason": ["", "", "outlier"]})
    >>> [tick.get_text() for tick in outlier_distances(people.assign(flags="")).axes[0].get_yticklabels()]
    ['Controls\n1 of 3 flagged']
    """
    known = people[people["distance"].notna()]
    present = [group for group in GROUPS if (known["group"] == group.key).any()]
    if not present:
        raise ValueError("Expected the distance of at least one person, found none. Leave this figure out.")
    figure = Figure(figsize=(WIDTH, 0.9 + 0.7 * len(present)), layout="constrained")
    axes = figure.subplots()
    labels = []
    for row, group in enumerate(present):
        here = known[known["group"] == group.key]
        far = _is_flagged(here)
        distance = here["distance"].to_numpy(dtype=float)
        places = row + np.random.default_rng(0).uniform(-0.3, 0.3, len(here))
        look: Any = {"s": 7, "alpha": 0.4, "marker": group.marker, "color": group.colour, "linewidths": 0}
        draw_points(axes, distance[~far], places[~far], **look)
        draw_points(axes, distance[far], places[far], s=26, marker="x", color="black", linewidths=1.2)
        labels.append(f"{group.label}\n{far.sum():,} of {len(here):,} flagged")
    axes.set_yticks(range(len(present)), labels, fontsize=8)
    axes.set_ylim(len(present) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Robust distance from the controls (crosses: flagged)")
    _stretch(axes, known["distance"].to_numpy(dtype=float))
    return figure


def _is_flagged(people: pd.DataFrame) -> np.ndarray:
    # A column of empty cells may come back from a file as numbers.
    reason, flags = (people[column].astype(object).fillna("").astype(str) for column in ("reason", "flags"))
    return ((reason == "outlier") | (flags != "")).to_numpy(dtype=bool)


def _stretch(axes: Axes, distance: np.ndarray) -> None:
    """Use a logarithmic axis where a few lie so far that the rest would be one heap."""
    if distance.min() <= 0 or distance.max() < WIDE_RANGE * np.median(distance):
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
