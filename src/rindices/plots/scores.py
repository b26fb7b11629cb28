"""Figures of people: their R-indices, how these change over time, and who is far from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from rindices.plots.style import (
    CROWD,
    GREY,
    GROUPS,
    MOST_PAIRED_PATTERNS,
    STYLE,
    VERMILLION,
    WIDTH,
    Group,
    draw_points,
    make_panels,
    r_columns,
    safe_label,
)

MOST_PAIRED = 1000  # people of a group


@matplotlib.rc_context(STYLE)
def r_index_distributions(r_indices: pd.DataFrame) -> Figure:
    """Draw the R-indices of each group, one panel per pattern: every person, quartiles, density.

    Parameters
    ----------
    r_indices
        Columns ``group`` (control, patient or other) and ``r1`` ... ``rM``.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"group": ["control"] * 3 + ["patient"] * 3, "r1": [0.0, 0.1, 0.05, 0.3, 0.9, 0.5]})
    >>> r_index_distributions(table).axes[0].get_title()
    'Pattern 1'
    """
    columns = r_columns(r_indices)
    present = [group for group in GROUPS if (r_indices["group"] == group.key).any()]
    figure, panels = make_panels(len(columns), 2.4, 2.7, sharey=True)
    for axes, column in zip(panels, columns, strict=True):
        labels = []
        for position, group in enumerate(present):
            values = r_indices.loc[r_indices["group"] == group.key, column].dropna().to_numpy(dtype=float)
            labels.append(f"{group.label}\nn = {len(values):,}")
            if len(values):
                _draw_group(axes, position, values, group)
        for reference in (0, 1):
            axes.axhline(reference, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        axes.set_xlim(-0.5, len(present) - 0.4)
        axes.set_xticks(range(len(present)), labels, fontsize=8)
        axes.set_title(f"Pattern {column[1:]}")
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel("R-index (low = like controls)")
    return figure


def _draw_group(axes: Axes, position: int, values: np.ndarray, group: Group) -> None:
    centre = position + 0.05
    # Evenly spaced quantiles have the density of all, and do not take seconds where there are many people.
    smoothed = values if len(values) <= CROWD else np.quantile(values, (np.arange(CROWD) + 0.5) / CROWD)
    violin: Any = axes.violinplot([smoothed], positions=[centre], side="high", widths=0.75, showextrema=False)
    for body in violin["bodies"]:
        body.set(facecolor=group.colour, alpha=0.35, edgecolor=group.colour)
    line = {"color": "black", "linewidth": 1}
    lines: Any = {"boxprops": line, "whiskerprops": line, "capprops": line, "medianprops": {**line, "linewidth": 2}}
    axes.boxplot(values, positions=[centre], widths=0.1, showfliers=False, manage_ticks=False, **lines)
    jitter = np.random.default_rng(0).uniform(0.1, 0.38, len(values))
    draw_points(axes, centre - jitter, values, area=5, alpha=0.5, marker=group.marker, colour=group.colour)


@matplotlib.rc_context(STYLE)
def r_index_pairs(r_indices: pd.DataFrame) -> Figure:
    """Draw each pair of R-indices against each other, patients before faint controls; the first four patterns.

    Of more than 1,000 people in a group a random sample is drawn, the same at every call.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"group": ["control", "patient"], "r1": [0.0, 0.4], "r2": [0.1, 0.8]})
    >>> r_index_pairs(table).axes[0].get_xlabel()
    'R1'
    """
    every = r_columns(r_indices)
    columns = every[:MOST_PAIRED_PATTERNS]
    if len(columns) < 2:
        raise ValueError("Expected at least two patterns to draw pairs, found one. Leave this figure out.")
    pairs = [(first, second) for place, first in enumerate(columns) for second in columns[place + 1 :]]
    figure, panels = make_panels(len(pairs), 2.4, 2.5)
    everybody = [r_indices[r_indices["group"] == group] for group in ("control", "patient")]
    # More people hide each other, and six images of them are a heavy file.
    controls, patients = (people.sample(min(len(people), MOST_PAIRED), random_state=0) for people in everybody)
    values = pd.concat(everybody)[columns].to_numpy(dtype=float)
    limits = (min(0.0, float(np.nanmin(values))) - 0.05, max(1.0, float(np.nanmax(values))) + 0.05)
    for axes, (across, up) in zip(panels, pairs, strict=True):
        crosses: Any = {"area": 12, "colour": GREY, "marker": "+", "alpha": 0.4, "linewidths": 0.7}
        draw_points(axes, controls[across], controls[up], label="controls", **crosses)
        draw_points(axes, patients[across], patients[up], area=9, colour=VERMILLION, alpha=0.5, label="patients")
        axes.set(xlim=limits, ylim=limits, xlabel=f"R{across[1:]}", ylabel=f"R{up[1:]}", aspect="equal")
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside upper center", ncols=2)
    for handle in legend.legend_handles:
        handle.set(alpha=1.0, sizes=[20])  # type: ignore[union-attr]
    notes = [f"the first {len(columns)} of {len(every)} patterns"] if len(every) > len(columns) else []
    if max(map(len, everybody)) > MOST_PAIRED:
        notes.append(f"at random {MOST_PAIRED:,} people of a larger group")
    if notes:
        figure.supxlabel("; ".join(notes).capitalize(), fontsize=9)
    return figure


@matplotlib.rc_context(STYLE)
def recovery(truth: pd.DataFrame, r_indices: pd.DataFrame, concordance: Sequence[float]) -> Figure:
    """Draw known severity against R-index, one panel per pattern.

    Parameters
    ----------
    truth
        Known severities, one row per person, one column per pattern in the order of the R-indices.
    r_indices
        R-indices of the same people in the same order, one column per pattern.
    concordance
        The concordance to write above each panel.

    Examples
    --------
    >>> import pandas as pd
    >>> known = pd.DataFrame({"s2": [0.1, 0.9]})
    >>> recovery(known, pd.DataFrame({"r1": [0.2, 0.8]}), [1.0]).axes[0].get_xlabel()
    'Known severity s2'
    """
    if truth.shape != r_indices.shape or truth.shape[1] != len(concordance):
        raise ValueError(
            f"Expected truth and R-indices of one shape and a concordance per pattern; found {truth.shape}, "
            f"{r_indices.shape} and {len(concordance)} concordances. Match people and patterns first."
        )
    figure, panels = make_panels(truth.shape[1], 2.4, 2.8)
    for place, (axes, value) in enumerate(zip(panels, concordance, strict=True)):
        draw_points(axes, truth.iloc[:, place], r_indices.iloc[:, place], area=6, colour=VERMILLION, alpha=0.5)
        axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle="--")
        axes.set_title(f"Pattern {place + 1}\nconcordance {value:.3f}")
        axes.set(xlabel=f"Known severity {safe_label(truth.columns[place])}", ylabel=f"R-index R{place + 1}")
    return figure


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
            around = place + aside + jitter
            draw_points(axes, around, values, area=10, alpha=0.4, marker=group.marker, colour=group.colour)
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
        near = distance[~far], places[~far]
        draw_points(axes, *near, area=7, alpha=0.4, marker=group.marker, colour=group.colour)
        draw_points(axes, distance[far], places[far], area=26, marker="x", colour="black", linewidths=1.2)
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
