"""Figures of people: severities, regional z scores by severity, change over time, and outliers."""

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from rindices.plots.style import (
    CROWD,
    GREY,
    MARKERS,
    PATIENT,
    STYLE,
    WIDTH,
    Group,
    draw_points,
    farthest,
    look_of,
    make_panels,
    measure_of,
    panels_in,
    present_groups,
    safe_label,
    score_columns,
)
from rindices.problems import counted

MOST_LINES, LINE_ASIDE = 6, 0.006  # error bars in one bin must not hide each other
LABEL_DISTANCE = 0.085  # of a panel's height: keeps labels apart where lines end together
MOST_PATHS = 150  # people per group whose visits are drawn
INNER_SHARE = 0.98  # share of people who set the scale: a rate from two close visits can be extreme
WIDE_RANGE = 8.0
_MEASURES = {
    "distance": "Distance from the controls (robust)",
    "size": "Overall size of the regions (% larger or smaller than usual)",
    "farthest": "Most extreme region (robust sd)",
}


@matplotlib.rc_context(STYLE)
def r_index_distributions(r_indices: pd.DataFrame) -> Figure:
    """Draw the severities of each group, one panel per pattern: every person, quartiles and density.

    Parameters
    ----------
    r_indices
        Columns ``group`` (control, patient or other) and ``severity1`` ... or ``r1`` ...

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"group": ["control"] * 3 + ["patient"] * 3, "r1": [0.0, 0.1, 0.05, 0.3, 0.9, 0.5]})
    >>> r_index_distributions(table).axes[0].get_title()
    'Pattern 1'
    """
    columns, present = score_columns(r_indices), present_groups(r_indices)
    label = f"{measure_of(columns[0]).capitalize()} (low = like controls)"
    figure, panels = make_panels(len(columns), 3.0, 2.7, label)
    for place, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        labels = []
        for position, group in enumerate(present):
            values = r_indices.loc[r_indices["group"] == group.key, column].dropna().to_numpy(dtype=float)
            labels.append(f"{group.label}\nn = {len(values):,}")
            if len(values):
                _draw_group(axes, position, values, group)
        for reference in (0, 1):
            axes.axhline(reference, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        axes.set_xticks(range(len(present)), labels, fontsize=8.5)
        axes.set(xlim=(-0.5, len(present) - 0.4), title=f"Pattern {place + 1}")
    return figure


def _draw_group(axes: Axes, position: int, values: np.ndarray, group: Group) -> None:
    centre = position + 0.05
    # Evenly spaced quantiles have the same density, without taking seconds in large samples.
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
def recovery(truth: pd.DataFrame, r_indices: pd.DataFrame, concordance: Sequence[float]) -> Figure:
    """Draw estimated against known severities, one panel per pattern.

    Parameters
    ----------
    truth
        Known severities, one row per person, one column per pattern in the order of the R-indices.
    r_indices
        Severities, or R-indices, of the same people in the same order, one column per pattern: ``severity1``, ``r3``.
    concordance
        Concordance to write above each panel.

    Examples
    --------
    >>> import pandas as pd
    >>> known = pd.DataFrame({"s2": [0.1, 0.9]})
    >>> recovery(known, pd.DataFrame({"r1": [0.2, 0.8]}), [1.0]).axes[0].get_xlabel()
    'Known severity s2'
    """
    figure, panels = make_panels(truth.shape[1], 2.8, 2.6)
    parts = zip(panels, truth.items(), r_indices.items(), concordance, strict=True)
    for axes, (name, known), (found, scores), value in parts:
        draw_points(axes, known, scores, area=6, colour=PATIENT, alpha=0.5)
        axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle="--")
        number, measure = str(found).lstrip(ascii_letters), "Severity " if measure_of(found) == "severity" else "R"
        axes.set_title(f"Pattern {number}\nconcordance {value:.3f}")
        axes.set(xlabel=f"Known severity {safe_label(name)}", ylabel=f"{measure}{number}")
    return figure


@matplotlib.rc_context(STYLE)
def dose_response(table: pd.DataFrame) -> Figure:
    """Draw the mean z score of regions against severity, one panel per pattern, with each line labelled.

    Parameters
    ----------
    table
        Columns ``pattern``, ``region``, ``n``, ``severity``, ``mean``, ``mean_low`` and ``mean_high``. For each
        pattern, the six regions that reach farthest from zero are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "region": "lHip", "n": 20, "mean": -0.5, "mean_low": -0.7, "mean_high": -0.3}
    >>> table = pd.DataFrame([{**row, "severity": severity} for severity in (0.1, 0.5)])
    >>> dose_response(table).axes[0].get_title(loc="left")
    'Pattern 1 (20 people per point)'
    """
    n_patterns = table["pattern"].nunique()
    figure, panels = panels_in(WIDTH, 2.2 * n_patterns + 0.2, n_patterns, sharey=True, sharex=True)
    for axes, (number, rows) in zip(panels, table.groupby("pattern"), strict=True):
        axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
        regions = farthest(rows["mean"], rows["region"], MOST_LINES)
        for rank, region in enumerate(regions):
            _draw_line(axes, rows[rows["region"] == region].sort_values("severity"), rank, look_of(int(str(number)))[0])
        counts = rows.loc[rows["region"].isin(regions), "n"].astype(int)
        least = f"{counts.min():,} to " if counts.min() < counts.max() else ""
        axes.set_title(f"Pattern {number} ({least}{counts.max():,} people per point)", loc="left", fontweight="bold")
        axes.set_ylabel("z score (sd of controls)")
        axes.tick_params(labelbottom=True)
    for axes in panels:  # only now is the common scale known
        _name_lines(axes)
    panels[-1].set_xlabel("Mean severity of the people at each point (vertical bars: 95 % intervals for the z score)")
    return figure


def _draw_line(axes: Axes, line: pd.DataFrame, rank: int, colour: str) -> None:
    """Draw the means of a region with their intervals, slightly offset from the others."""
    line = line.assign(across=line["severity"] + (rank - (MOST_LINES - 1) / 2) * LINE_ASIDE)
    axes.plot(
        line["across"],
        line["mean"],
        color=colour,
        label=line["region"].iloc[0],
        marker=MARKERS[rank % len(MARKERS)],
        markersize=4,
        linewidth=1.3,
        zorder=3,
    )
    known = line.dropna(subset=["mean_low", "mean_high"])
    axes.vlines(known["across"], known["mean_low"], known["mean_high"], colors=colour, linewidth=1, alpha=0.6, zorder=2)


def _name_lines(axes: Axes) -> None:
    """Label each line at its right end, keeping the labels apart."""
    lines = axes.lines[1:]  # the first is the zero line
    ends = np.asarray([line.get_xydata()[-1] for line in lines])  # type: ignore[index]
    low, high = axes.get_ylim()
    heights = _apart((ends[:, 1] - low) / (high - low), LABEL_DISTANCE)
    leader: Any = {"arrowstyle": "-", "linewidth": 1.0, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
    where: Any = {"textcoords": "axes fraction", "va": "center", "fontsize": 8.5, "annotation_clip": False}
    for line, end, height in zip(lines, ends, heights, strict=True):
        look = leader | {"color": line.get_color()}
        axes.annotate(safe_label(line.get_label()), end, (1.05, height), arrowprops=look, **where)


def _apart(wanted: np.ndarray, distance: float) -> np.ndarray:
    """Return heights near the wanted ones, in the same order, at least `distance` apart and inside the panel."""
    order = np.argsort(wanted, kind="stable")
    rank = np.arange(len(wanted)) * distance
    # An upward and a downward pass each give a valid spacing; so does their mean, which favours neither side.
    loose = wanted[order] - rank
    even = (np.maximum.accumulate(loose) + np.minimum.accumulate(loose[::-1])[::-1]) / 2
    placed = np.clip(even, 0.02, 0.98 - rank[-1]) + rank
    return placed[np.argsort(order)]


@matplotlib.rc_context(STYLE)
def trajectories(visits: pd.DataFrame, change_summary: pd.DataFrame) -> Figure:
    """Draw severities over time, one panel per pattern: people as faint lines, and the line of each group's model.

    Parameters
    ----------
    visits
        Columns ``participant_id``, ``group``, ``years`` and ``severity1`` ... or ``r1`` ...; the first 150 people of
        each group are drawn.
    change_summary
        Columns ``group``, ``pattern``, ``start`` and ``mean``, the change per year.

    Examples
    --------
    >>> import pandas as pd
    >>> who = {"participant_id": ["a", "a"], "group": ["patient"] * 2, "years": [0.0, 1.0], "r1": [0.2, 0.3]}
    >>> row = {"group": "patient", "pattern": 1, "start": 0.2, "mean": 0.1}
    >>> trajectories(pd.DataFrame(who), pd.DataFrame([row])).axes[0].get_xlabel()
    'Years since the first visit'
    """
    columns, present = score_columns(visits), present_groups(visits)
    figure, panels = make_panels(len(columns), 3.0, 2.9, measure_of(columns[0]).capitalize())
    ordered = visits.sort_values("years", kind="stable")
    chosen = {
        group.key: ordered[ordered["participant_id"].isin(own.unique()[:MOST_PATHS])]
        for group in present
        for own in [visits.loc[visits["group"] == group.key, "participant_id"]]
    }
    for place, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        for group in present:
            people = chosen[group.key].groupby("participant_id", sort=False)
            paths = [own[["years", column]].to_numpy(float) for _, own in people]
            faint = min(0.5, max(0.12, 12 / len(paths)))
            axes.add_collection(LineCollection(paths, colors=group.colour, linewidths=0.8, alpha=faint))
            line = change_summary[(change_summary["group"] == group.key) & (change_summary["pattern"] == place + 1)]
            end = chosen[group.key]["years"].max()
            for start, mean in line[["start", "mean"]].dropna().to_numpy():
                axes.plot([0, end], [start, start + mean * end], color="black", linewidth=4, zorder=4)
                axes.plot([0, end], [start, start + mean * end], color=group.colour, linewidth=2, zorder=5)
        axes.autoscale_view()
        axes.set(title=f"Pattern {place + 1}", xlabel="Years since the first visit")
    handles = [Line2D([], [], color=group.colour, linewidth=2, label=group.label) for group in present]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(present))
    return figure


@matplotlib.rc_context(STYLE)
def change_lines(change: pd.DataFrame, change_summary: pd.DataFrame) -> Figure:
    """Draw the change in severities per year: each person faintly, and each group's mean with its 95 % interval.

    Parameters
    ----------
    change
        Columns ``group`` and ``severity1_per_year`` ... or ``r1_per_year`` ..., one row per person.
    change_summary
        Columns ``group``, ``pattern``, ``n``, ``mean``, ``low`` and ``high``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"group": ["patient"] * 3, "r1_per_year": [0.0, 0.1, 0.2]})
    >>> row = {"group": "patient", "pattern": 1, "n": 3, "mean": 0.1, "low": -0.15, "high": 0.35}
    >>> change_lines(people, pd.DataFrame([row])).axes[0].get_ylabel()
    'Change in R-index per year'
    """
    present, patterns = present_groups(change_summary), sorted(map(int, change_summary["pattern"].unique()))
    names = [str(name) for name in change.filter(regex="_per_year$")]
    figure, [axes] = panels_in(WIDTH, 3.2)
    axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    handles = []
    for rank, group in enumerate(present):
        aside = (rank - (len(present) - 1) / 2) * 0.8 / len(present)
        for place, pattern in enumerate(patterns):
            values = change.loc[change["group"] == group.key, names[pattern - 1]].dropna().to_numpy(dtype=float)
            around = place + aside + np.random.default_rng(0).uniform(-0.2, 0.2, len(values)) / len(present)
            draw_points(axes, around, values, area=10, alpha=0.4, marker=group.marker, colour=group.colour)
        rows = change_summary[change_summary["group"] == group.key]
        places = rows["pattern"].map(patterns.index).astype(float) + aside
        known = rows["low"].notna() & rows["high"].notna()
        axes.vlines(places[known], rows["low"][known], rows["high"][known], colors="black", linewidth=2, zorder=4)
        look: Any = {"color": group.colour, "linestyle": "none", "markeredgecolor": "black"}
        axes.plot(places, rows["mean"], group.marker, markersize=8, markeredgewidth=1.2, zorder=5, **look)
        label = f"{group.label} (n = {int(rows['n'].max()):,})"
        handles.append(Line2D([], [], marker=group.marker, markersize=7, label=label, **look))
    _set_limits(axes, change[names], change_summary)
    axes.set_xticks(range(len(patterns)), [f"Pattern {number}" for number in patterns])
    axes.set(xlim=(-0.5, len(patterns) - 0.5), ylabel=f"Change in {measure_of(names[0])} per year")
    figure.legend(handles=handles, loc="outside upper center", ncols=len(present))
    return figure


def _set_limits(axes: Axes, rates: pd.DataFrame, summary: pd.DataFrame) -> None:
    """Scale to most people and to all means, and write how many people lie beyond."""
    edges = rates.melt()["value"].quantile([(1 - INNER_SHARE) / 2, (1 + INNER_SHARE) / 2])
    ends = [*edges, *summary[["mean", "low", "high"]].to_numpy(dtype=float).ravel(), 0.0]
    margin = 0.08 * (np.nanmax(ends) - np.nanmin(ends)) or 0.1
    low, high = np.nanmin(ends) - margin, np.nanmax(ends) + margin
    axes.set_ylim(low, high)
    beyond = int(((rates < low) | (rates > high)).any(axis=1).sum())
    if beyond:
        axes.set_xlabel(f"{counted(beyond, 'person is', 'people are')} outside this range", fontsize=8.5, color=GREY)


@matplotlib.rc_context(STYLE)
def outlier_distances(people: pd.DataFrame) -> Figure:
    r"""Draw how far each person lies from the others, one panel per measure, with outliers marked.

    Parameters
    ----------
    people
        Columns ``group``, ``distance`` (robust; missing for people who were already left out), ``far_in`` (the measures
        by which a person is an outlier) and, if known, ``size`` and ``farthest``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"group": ["control"] * 3, "distance": [1.0, 2.0, 9.0], "far_in": ["", "", "distance"]})
    >>> [tick.get_text() for tick in outlier_distances(people).axes[0].get_yticklabels()]
    ['Controls']
    """
    known = people[people["distance"].notna()]
    measures = {name: words for name, words in _MEASURES.items() if name in known and known[name].notna().any()}
    far_in = known["far_in"].astype(object).fillna("")  # empty cells may be read from a file as numbers (NaN)
    present = present_groups(known)
    figure, panels = panels_in(WIDTH, 0.8 + 0.6 * len(present), columns=len(measures), sharey=True)
    for axes, (measure, words) in zip(panels, measures.items(), strict=True):
        marked = np.array([measure in str(one).split() for one in far_in])
        for row, group in enumerate(present):
            own = (known["group"] == group.key).to_numpy()
            far, values = marked[own], known[measure][own].to_numpy(dtype=float)
            places = row + np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
            draw_points(axes, values[~far], places[~far], area=7, alpha=0.4, marker=group.marker, colour=group.colour)
            draw_points(axes, values[far], places[far], area=30, marker="x", colour="black")
        axes.set(xlabel=f"{words}\n{marked.sum():,} of {len(known):,} are outliers by this measure (crosses)")
        axes.tick_params(axis="y", length=0)
        _widen(axes, known[measure])
    panels[0].set(
        yticks=range(len(present)), yticklabels=[group.label for group in present], ylim=(len(present) - 0.5, -0.5)
    )
    return figure


def _widen(axes: Axes, values: pd.Series) -> None:
    """Make the scale logarithmic if a few people lie so far out that the rest would be squeezed together."""
    if values.min() > 0 and values.max() >= WIDE_RANGE * values.median():
        axes.set_xscale("log")
        axes.xaxis.set(
            major_locator=LogLocator(subs=(1.0, 2.0, 5.0)), major_formatter="{x:,g}", minor_formatter=NullFormatter()
        )
