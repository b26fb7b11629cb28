"""The small figures of a pattern's card, follow-up curves and power curves."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rindices.plots.style import (
    GREY,
    GROUPS,
    SHADES,
    STYLE,
    Group,
    draw_points,
    hover,
    look_of,
    make_panels,
    measure_of,
    panels_in,
    present_groups,
    safe_label,
    score_columns,
)

FEWEST_FOR_BARS = 20  # with fewer people, each is drawn
_SIZE = (2.9, 1.9)  # inches: fits the screen of a phone
_BIN, _INNER = 0.1, 0.995  # width of a bar; share of people who set the scale: the last bar holds the rest
_SMALL = 8.5  # points


@matplotlib.rc_context(STYLE)
def severity_histogram(people: pd.DataFrame, column: str, training: pd.DataFrame | None = None) -> Figure:
    """Draw the distribution of a severity in each group.

    Parameters
    ----------
    people
        Columns ``group`` and the one to draw. With fewer than 20 people in a group, each is drawn as a mark.
    column
        Column to draw, such as ``severity1``.
    training
        The same columns for the training sample, if `people` are not part of it; drawn as hollow bars.

    Examples
    --------
    >>> people = pd.DataFrame({"group": ["control", "patient"] * 20, "severity1": np.linspace(0, 1.2, 40)})
    >>> axes = severity_histogram(people, "severity1").axes[0]
    >>> [tick.get_text() for tick in axes.get_yticklabels()], axes.get_xlabel()
    (['Controls', 'Patients'], 'Severity (0: like controls)')
    """
    figure, [axes] = panels_in(*_SIZE)
    tables = [(people, "", True)] if training is None else [(training, "Training ", False), (people, "", True)]
    everybody = pd.concat([table[column] for table, *_ in tables]).dropna().to_numpy(dtype=float)
    edges, labels = _edges(everybody), list[str]()
    only = set(people["group"]) == {"other"}
    for table, before, filled in tables:
        for group in GROUPS:
            values = table.loc[table["group"] == group.key, column].dropna().to_numpy(dtype=float)
            if len(values):
                labels.append(before + group.label.lower() if before else "People" if only else group.label)
                _draw_group(axes, 1 - len(labels), values, group, labels[-1], edges, filled)
    axes.set_yticks([0.3 - place for place in range(len(labels))], labels, fontsize=_SMALL)
    axes.set(
        xlim=(edges[0] - 0.04, edges[-1] + 0.04),
        ylim=(0.9 - len(labels), 1.25),
        xlabel=f"{measure_of(column).capitalize()} (0: like controls)",
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    meaning = "largest change learned" if measure_of(column) == "severity" else "most severe patients"
    axes.text(1, 1.22, f"1: {meaning} ", ha="right", va="top", fontsize=_SMALL, color=GREY)
    return figure


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of bars, from 0 or the lowest value, if negative, to a limit that nearly everybody is below."""
    low = min(0.0, np.floor(values.min(initial=0.0) / _BIN) * _BIN)
    high = max(1.2, np.ceil(np.quantile(values, _INNER) / _BIN) * _BIN) if len(values) else 1.2
    return np.arange(round(low / _BIN), round(high / _BIN) + 1) * _BIN


def _draw_group(
    axes: Axes, place: float, values: np.ndarray, group: Group, name: str, edges: np.ndarray, filled: bool
) -> None:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    inside = np.clip(values, edges[0], edges[-1] - 1e-9)
    if len(values) < FEWEST_FOR_BARS:
        up = place + 0.2 + 0.3 * (np.argsort(np.argsort(values)) % 2)
        hover(
            axes.scatter(inside, up, s=22, color=group.colour, marker=group.marker),
            [f"{name}: {value:.2f}" for value in values],
        )
        return
    counts = np.histogram(inside, edges)[0]
    bars = axes.stairs(
        place + 0.85 * counts / counts.max(),
        edges,
        baseline=place,
        fill=filled,
        facecolor=group.colour if filled else "none",
        edgecolor=group.colour,
        linewidth=0.8,
    )
    beyond = f"; the last bar includes {n} above {edges[-1]:g}" if (n := (values > edges[-1]).sum()) else ""
    hover(bars, [f"{name}, n = {len(values):,}: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}{beyond}"])
    axes.vlines(middle, place, place + 0.85, colors="black", linewidth=1.5)


@matplotlib.rc_context(STYLE)
def severity_by_age(people: pd.DataFrame, column: str, age: str) -> Figure:
    """Draw a severity against age: all people, and a straight line for each group.

    Parameters
    ----------
    people
        Columns ``group``, the severity and the age.
    column, age
        Names of the severity and the age.

    Examples
    --------
    >>> people = pd.DataFrame({"group": ["patient"] * 3, "severity1": [0.1, 0.5, 0.4], "age": [60.0, 70.0, 75.0]})
    >>> severity_by_age(people, "severity1", "age").axes[0].get_xlabel()
    'age'
    """
    figure, [axes] = panels_in(*_SIZE)
    for group in GROUPS:
        own = people.loc[people["group"] == group.key, [age, column]].dropna().to_numpy(dtype=float)
        if len(own):
            draw_points(axes, own[:, 0], own[:, 1], area=7, colour=group.colour, marker=group.marker, alpha=0.45)
        if len(own) >= FEWEST_FOR_BARS and np.ptp(own[:, 0]) > 0:
            ends = np.quantile(own[:, 0], (0.02, 0.98))
            line = np.polyval(np.polyfit(own[:, 0], own[:, 1], 1), ends)
            axes.plot(ends, line, color="black", linewidth=3.4, zorder=4)
            axes.plot(ends, line, color=group.colour, linewidth=2, zorder=5)
    axes.set(xlabel=safe_label(age), ylabel=measure_of(column).capitalize())
    return figure


@matplotlib.rc_context(STYLE)
def pattern_mixture(people: pd.DataFrame, limits: Sequence[float]) -> Figure:
    """Draw how many people in each group have no, one, two or more patterns.

    Parameters
    ----------
    people
        Columns ``group`` and ``severity1`` ... or ``r1`` ...
    limits
        Limit for each pattern, above which a person counts as having it.

    Examples
    --------
    >>> people = pd.DataFrame({"group": ["patient"] * 2, "severity1": [0.1, 0.5], "severity2": [0.0, 0.9]})
    >>> [text.get_text() for text in pattern_mixture(people, [0.2, 0.2]).axes[0].texts]
    ['50', '0', '50']
    """
    names = score_columns(people)
    number = (people[names].to_numpy(dtype=float) > np.asarray(limits)).sum(axis=1)
    present = present_groups(people)
    (figure, [axes]), width = panels_in(_SIZE[0], 2.1), 0.84 / len(present)
    for rank, group in enumerate(present):
        own = number[(people["group"] == group.key).to_numpy()]
        shares = 100 * np.bincount(own, minlength=len(names) + 1) / len(own)
        places = np.arange(len(shares)) + (rank - (len(present) - 1) / 2) * width
        axes.bar(places, shares, 0.92 * width, color=group.colour, label=group.label)
        for place, share in zip(places, shares, strict=True) if len(shares) * len(present) <= 10 else ():
            axes.text(place, share, f"{share:.0f}", ha="center", va="bottom", fontsize=_SMALL)
    axes.set(xlabel="Number of patterns per person", ylabel="% of the group", ymargin=0.12)
    axes.set_xticks(range(len(names) + 1), ["none" if len(names) < 6 else "0", *map(str, range(1, len(names) + 1))])
    figure.legend(loc="outside upper center", ncols=len(present), handlelength=1.0)
    return figure


_NAMES = {1: "mildest third", 2: "middle third", 3: "most severe third"}
_LINES = {1: ":", 2: "--", 3: "-"}
_PANEL, _HEIGHT = 2.9, 3.3  # inches; curves of power are as high as wide
_SHARES = (0, 0.25, 0.5, 0.75, 1)
_HEAD, _ROW, _BELOW = -0.24, 0.085, 54  # start and rows of the numbers, relative to a panel's height; their points


@matplotlib.rc_context(STYLE)
def follow_up_curves(curves: pd.DataFrame, time: str = "time", *, competing: bool = False) -> Figure:
    """Draw the proportion of people without the event over time or, with competing events, the proportion with it.

    Parameters
    ----------
    curves
        Columns ``pattern``, ``third``, ``n``, ``time``, ``at_risk``, ``incidence``, ``low``, ``high`` and ``shown``.
    time
        Label of the time axis.
    competing
        Whether other events may occur first; the curves then show cumulative incidence.

    Examples
    --------
    >>> row = {"pattern": 1, "third": 1, "n": 9, "at_risk": 9, "incidence": 0.0, "low": 0.0, "high": 0.0}
    >>> table = pd.DataFrame([row | {"time": 0.0, "shown": True}, row | {"time": 2.0, "shown": True}])
    >>> follow_up_curves(table).axes[0].get_title(loc="left")
    'Pattern 1'
    """
    patterns = sorted(map(int, curves["pattern"].unique()))
    label = "Proportion with the event" if competing else "Proportion without the event"
    figure, panels = make_panels(len(patterns), _PANEL, _HEIGHT, label)
    for axes, pattern in zip(panels, patterns, strict=True):
        own = curves[curves["pattern"] == pattern]
        for place, third in enumerate(sorted(map(int, own["third"].unique()), reverse=True)):
            _draw_third(axes, own[own["third"] == third], third, place, competing=competing)
        axes.set_title(f"Pattern {pattern}", loc="left")
        axes.set(ylim=(0, 1.02), yticks=_SHARES)  # ticks that depend on the height would move the label
        axes.set_xlabel(safe_label(time), labelpad=_BELOW)
    narrow = figure.get_figwidth() < 2 * _PANEL
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=1 if narrow else 3)
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
        axes.text(times.min(), _HEAD, "Numbers at risk, in legend order", ha="left", **look)


@matplotlib.rc_context(STYLE)
def power_curves(chances: pd.DataFrame, n_controls: int, n_patients: int) -> Figure:
    """Draw the probability of finding all patterns against the number of people per group, one panel per strength.

    Parameters
    ----------
    chances
        Columns ``people``, ``patterns``, ``strength``, ``chance``, ``low`` and ``high``.
    n_controls, n_patients
        Group sizes of the planned study, marked at the smaller of the two.

    Examples
    --------
    >>> row = {"people": 40, "patterns": 1, "strength": 1.0, "chance": 0.5, "low": 0.4, "high": 0.6}
    >>> power_curves(pd.DataFrame([row]), 60, 80).axes[0].get_title(loc="left")
    '1 sd'
    """
    strengths = sorted(chances["strength"].unique())
    figure, panels = make_panels(len(strengths), _PANEL, _PANEL, "Probability of finding all patterns")
    for axes, strength in zip(panels, strengths, strict=True):
        for patterns, own in chances[chances["strength"] == strength].groupby("patterns"):
            colour, marker = look_of(int(patterns))
            axes.fill_between(own["people"], own["low"], own["high"], color=colour, alpha=0.12, linewidth=0)
            axes.plot(own["people"], own["chance"], color=colour, marker=marker, markersize=4, label=f"{patterns:.0f}")
        axes.axvline(min(n_controls, n_patients), color=GREY, linestyle=":")
        axes.set_title(f"{strength:g} sd", loc="left")
        axes.set(xscale="log", ylim=(-0.02, 1.02), yticks=_SHARES, xlabel="People per group")
        sizes = sorted(chances["people"].unique())[::2]
        axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        axes.minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), title="Patterns", loc="outside right upper")
    return figure
