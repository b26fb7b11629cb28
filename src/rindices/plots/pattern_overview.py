"""The figure that sums up a model: of each pattern the brain, the severities of people, and the strongest regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from rindices.plots.brain import colour_limit
from rindices.plots.brain_drawing import draw_brain, draw_colours
from rindices.plots.rendering import hover
from rindices.plots.style import (
    CROWD,
    GREY,
    GROUPS,
    HIGHER,
    LOWER,
    STYLE,
    WIDTH,
    Group,
    look_of,
    measure_of,
    safe_label,
    score_columns,
)
from rindices.regions import pair_sides, region_label

FEWEST_FOR_DENSITY = 20  # of fewer people every one is drawn: a density would make up the rest
STRONGEST = 3
_LONGEST = 32  # letters of a name
_INNER = (0.002, 0.998)  # of the people set the scale
_NARROW_SCORES = (5.6, 1.65)  # where the names beside are long
_VIEWS = ("lateral", "medial", "coronal -22")
_ROW, _HEAD, _FOOT = 1.12, 0.25, 0.62  # inches
_BRAIN, _SCORES, _REGIONS = (0.25, 4.2), (5.15, 2.1), (7.35, 2.2)  # inches: left, width


@matplotlib.rc_context(STYLE)
def pattern_overview(
    patterns: pd.DataFrame,
    people: pd.DataFrame,
    names: Mapping[str, str] | None = None,
    training: pd.DataFrame | None = None,
    *,
    brains: bool = True,
) -> Figure:
    """Draw a row for each pattern: its brain, the severities of each group, and its strongest regions.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern`` and ``change_sd`` at severity 1.
    people
        Columns ``group`` and ``severity1`` ... or ``r1`` ... Of fewer than 20 people of a group every one is drawn, of
        more their density.
    names
        Full names of regions, where they are known.
    training
        The same columns, of the people the model was trained with, where `people` are others.
    brains
        Whether to draw the brains.

    Examples
    --------
    >>> patterns = pd.DataFrame({"region": ["lHip", "rHip"], "pattern": 1, "change_sd": [-1.0, -0.8]})
    >>> people = pd.DataFrame({"group": ["control", "patient"] * 2, "severity1": [0.0, 0.9, 0.1, 0.5]})
    >>> figure = pattern_overview(patterns, people, {"lHip": "left hippocampus"}, brains=False)
    >>> [text.get_text() for text in figure.texts][-2:]
    ['hippocampus', 'L −1.00, R −0.80 · Hip']
    """
    columns = score_columns(people)
    height = _HEAD + _ROW * len(columns) + _FOOT
    figure = Figure(figsize=(WIDTH, height))
    scores = _SCORES if training is None else _NARROW_SCORES
    heads = {measure_of(columns[0]).capitalize(): scores, "Strongest regions": _REGIONS}
    for head, (left, width) in (heads | ({"Change at severity 1": _BRAIN} if brains else {})).items():
        figure.text((left + width / 2) / WIDTH, 1 - 0.07 / height, head, ha="center", va="top", color=GREY)
    everybody = people if training is None else pd.concat([training, people])
    limits = _limits(everybody[columns].to_numpy(dtype=float), people[columns].to_numpy(dtype=float))
    for row, column in enumerate(columns):
        bottom = height - _HEAD - _ROW * (row + 1)
        own = patterns[patterns["pattern"] == row + 1]
        label: Any = {"rotation": "vertical", "va": "center", "fontweight": "bold", "color": look_of(row + 1)[0]}
        figure.text(0.06 / WIDTH, (bottom + _ROW / 2) / height, f"Pattern {row + 1}", **label)
        if brains:
            _draw_brain(figure, patterns, row + 1, (bottom / height, _ROW / height))
        place = scores[0] / WIDTH, (bottom + 0.06) / height, scores[1] / WIDTH, (_ROW - 0.12) / height
        axes = figure.add_axes(place)
        _draw_scores(axes, column, people, training)
        axes.set_xlim(*limits)
        axes.tick_params(axis="x", labelbottom=row == len(columns) - 1)
        _write_regions(figure, own, names or {}, (bottom + _ROW - 0.12) / height, height)
    axes.set_xlabel("0: like controls, 1: the largest change learned")
    if brains:
        scale = figure.add_axes((1.4 / WIDTH, 0.42 / height, 1.9 / WIDTH, 0.08 / height))
        draw_colours(scale, colour_limit(patterns["change_sd"]), "Change (sd of controls)")
    return figure


def _draw_brain(figure: Figure, patterns: pd.DataFrame, number: int, up: tuple[float, float]) -> None:
    drawing = draw_brain(patterns, number, (1.0,), width=96 * _BRAIN[1], bare=True, views=_VIEWS)
    if drawing is not None:
        drawing.draw_on(figure.add_axes((_BRAIN[0] / WIDTH, up[0], _BRAIN[1] / WIDTH, up[1])), texts=False)


def _limits(everybody: np.ndarray, people: np.ndarray) -> tuple[float, float]:
    """Return the scale: nearly everybody, and every one of the people where they are few."""
    shown = np.nanquantile(everybody, _INNER)
    few = people if len(people) < FEWEST_FOR_DENSITY else np.zeros(1)
    ends = min(-0.1, shown[0], np.nanmin(few)), max(1.1, shown[1], np.nanmax(few))
    return ends[0] - 0.03, ends[1] + 0.03


def _draw_scores(axes: Axes, column: str, people: pd.DataFrame, training: pd.DataFrame | None) -> None:
    """Draw the groups one below another; those of the training, where they are others, as hollow shapes."""
    tables = [(people, "", True)] if training is None else [(training, "Training ", False), (people, "", True)]
    labels, only = list[str](), set(people["group"]) == {"other"}
    for table, before, filled in tables:
        for group in GROUPS:
            values = table.loc[table["group"] == group.key, column].dropna().to_numpy(dtype=float)
            if len(values):
                name = group.label.lower() if before else "People" if only else group.label
                _draw_group(axes, len(labels), values, group, before + name, filled)
                labels.append(before + name)
    axes.set_yticks([-place for place in range(len(labels))], labels, fontsize=8.5)
    axes.set_ylim(0.1 - len(labels), 0.95)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for reference in (0, 1):
        axes.axvline(reference, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)


def _draw_group(axes: Axes, place: int, values: np.ndarray, group: Group, name: str, filled: bool) -> None:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    words = f"{name}: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}"
    if len(values) < FEWEST_FOR_DENSITY or high - low < 1e-6:
        points = axes.scatter(values, np.full(len(values), 0.25 - place), s=26, color=group.colour, marker=group.marker)
        hover(points, [f"{name}: {value:.2f}" for value in values])
        return
    # Evenly spaced quantiles have the density of all, and do not take seconds where there are many people.
    sample = values if len(values) <= CROWD else np.quantile(values, (np.arange(CROWD) + 0.5) / CROWD)
    least = sample.min() - 0.1 if sample.min() < 0 else max(sample.min() - 0.1, 0.0)  # no severity is below 0
    across, smooth = np.linspace(least, sample.max() + 0.1, 160), GaussianKDE(sample)
    density = smooth(across) + (smooth(-across) if sample.min() >= 0 else 0)  # what would lie below 0 lies above
    up = 0.85 * density / density.max() - place
    look: Any = {"facecolor": group.colour if filled else "none", "edgecolor": group.colour, "linewidth": 1}
    shape = axes.fill_between(across, -place, up, alpha=0.55 if filled else 1.0, **look)
    hover(shape, [words])
    axes.vlines(middle, -place, float(np.interp(middle, across, up)), colors="black", linewidth=1.6)


def _write_regions(figure: Figure, own: pd.DataFrame, names: Mapping[str, str], top: float, height: float) -> None:
    """Write the regions that change most, both sides of one together, each with a mark in the colour of its sign."""
    pairs = pair_sides(own["region"])
    rows: dict[str, list[tuple[str, float]]] = {}
    for region, change in own.sort_values("change_sd", key=abs, ascending=False)[["region", "change_sd"]].to_numpy():
        side, short = pairs.get(region, ("", region))
        rows.setdefault(short, []).append((side, change))
    left, below = (_REGIONS[0] + 0.15) / WIDTH, 0.165 / height
    for place, (short, changes) in enumerate(list(rows.items())[:STRONGEST]):
        up, falls = top - place * 0.37 / height, changes[0][1] < 0
        label, beside = region_label(short, pairs, names)
        words = ", ".join(f"{side[:1].upper()} {change:+.2f}".strip() for side, change in sorted(changes))
        mark: Any = {"color": LOWER if falls else HIGHER, "fontsize": 8.5}
        figure.text(left - 0.17 / WIDTH, up, "▼" if falls else "▲", va="top", **mark)
        figure.text(left, up, safe_label(label, _LONGEST), va="top")
        told = words.replace("-", "−") + (f" · {beside}" if beside else "")
        figure.text(left, up - below, safe_label(told, _LONGEST), va="top", color=GREY, fontsize=8.5)
