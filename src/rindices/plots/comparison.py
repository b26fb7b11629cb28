"""Two runs side by side: the same regions by two maps, and the same people by two scores."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from rindices.plots.style import GREY, INK, STYLE, safe_label

_FIRST, _SECOND = INK, GREY
_ROW, _PANEL = 0.22, 3.0  # inches
_LETTERS = 30  # of a name, below a panel


@mpl.rc_context(STYLE)
def two_maps(changes: pd.DataFrame, names: tuple[str, str], top: int = 15) -> Figure:
    """Draw the change of each region by two patterns, those that change most on top.

    Parameters
    ----------
    changes
        Columns region, first and second: changes in sd of controls.
    names
        What the two are called.
    top
        How many regions are shown.

    Examples
    --------
    >>> table = pd.DataFrame({"region": ["a", "b"], "first": [0.1, -2.0], "second": [0.0, -1.5]})
    >>> [label.get_text() for label in two_maps(table, ("A", "B")).axes[0].get_yticklabels()]
    ['b', 'a']
    """
    largest = changes[["first", "second"]].abs().mean(axis=1)
    shown = changes.loc[largest.sort_values(ascending=False).index[:top]].reset_index(drop=True)
    figure = Figure(figsize=(6.0, 1.0 + _ROW * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.hlines(shown.index, shown["first"], shown["second"], color=GREY, linewidth=1)
    for name, column, colour, marker in (
        (names[0], "first", _FIRST, "o"),
        (names[1], "second", _SECOND, "^"),
    ):
        axes.plot(shown[column], shown.index, marker, color=colour, label=safe_label(name), markersize=5)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(shown.index, [safe_label(region) for region in shown["region"]])
    axes.invert_yaxis()
    axes.set_xlabel("Change (sd of controls)")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


@mpl.rc_context(STYLE)
def two_scores(first: pd.Series, second: pd.Series, names: tuple[str, str]) -> Figure:
    """Draw everybody's score by two runs against each other.

    Examples
    --------
    >>> two_scores(pd.Series([0.1, 0.9]), pd.Series([0.2, 0.8]), ("A", "B")).axes[0].get_xlabel()
    'A'
    """
    figure = Figure(figsize=(_PANEL, _PANEL), layout="constrained")
    axes = figure.subplots()
    axes.scatter(first, second, s=8, color=_FIRST, alpha=0.4, linewidths=0)
    axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle="--")
    axes.set(xlabel=safe_label(names[0], _LETTERS), ylabel=safe_label(names[1], _LETTERS))
    return figure
