"""Figures of agreement between repeated trainings and between two runs, and of the spectrum of patients."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from rindices.plots.style import GREY, INK, MARKERS, PATIENT, SHADES, STYLE, WIDTH, hover, panels_in, safe_label
from rindices.problems import counted

CHANCE_CONCORDANCE, CHANCE_CORRELATION = 0.5, 0.0
WIDEST_DODGE = 0.72  # relative to the distance between two numbers of patterns
MARKER, SMALL_MARKER = 6.0, 3.6
# An interval from three models can reach far below all values; it must not flatten the rest.
MOST_BELOW = 0.25
_LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (2, 1)))
_PANELS = (
    ("pattern_agreement", CHANCE_CONCORDANCE, "Pattern agreement"),
    ("misfit", None, "Misfit"),
    ("dimension_correlation", CHANCE_CORRELATION, "Dimension correlation"),
    ("difference_correlation", CHANCE_CORRELATION, "Difference correlation"),
)
_RING: Any = {"marker": "o", "color": "black", "markerfacecolor": "none", "linestyle": "none"}


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
    chosen = selection[selection["chosen"].astype(bool)].iloc[0]
    same = (selection["n_patterns"] == chosen["n_patterns"]) & (selection["orthogonality"] == chosen["orthogonality"])
    rows = selection[same].sort_values("step")
    figure, [upper, lower] = panels_in(WIDTH, 2.7, columns=2)
    curves = (
        (upper, "pattern_agreement", "pattern agreement", INK, "o-"),
        (lower, "dimension_correlation", "dimension correlation", SHADES[1], "s--"),
        (lower, "difference_correlation", "difference correlation", SHADES[2], "^:"),
    )
    for axes, column, label, colour, line in curves:
        if rows[column].notna().any():
            [curve] = axes.plot(rows["step"], rows[column], line, color=colour, label=label, markersize=4)
            steps = zip(rows["step"], rows[column], strict=True)
            hover(curve, ["", *(f"Step {step:,}: {label} {value:.3f}" for step, value in steps)])
            axes.plot(chosen["step"], chosen[column], line[0], color=colour, markersize=9, markeredgecolor="black")
    correlations = rows[["dimension_correlation", "difference_correlation"]]
    _mark_chance(upper, CHANCE_CONCORDANCE, rows["pattern_agreement"].min(), "Concordance\n(0.5 = chance, 1 = perfect)")
    _mark_chance(lower, CHANCE_CORRELATION, correlations.min().min(), "Correlation\n(0 = chance, 1 = perfect)")
    for axes, label in ((upper, f"chosen: step {int(chosen['step']):,}"), (lower, "_")):
        axes.axvline(chosen["step"], color="black", linewidth=1, linestyle="-.", zorder=0, label=label)
        axes.xaxis.set(
            label_text="Training steps",
            major_locator=MaxNLocator(nbins=6, integer=True),
            major_formatter="{x:,.0f}",
        )
    figure.legend(loc="outside upper center", ncols=4)
    return figure


def _mark_chance(axes: Axes, chance: float, lowest: float, label: str) -> None:
    """Draw the chance line and scale the axis from it, or from the lowest value, up to perfect agreement."""
    axes.axhline(chance, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    axes.set(ylim=(min(chance, lowest) - 0.05, 1.04), ylabel=label)


@matplotlib.rc_context(STYLE)
def agreement_over_settings(selection: pd.DataFrame) -> Figure:
    """Draw the agreement of repeated trainings and the misfit of patients for each setting, with the chosen one marked.

    Parameters
    ----------
    selection
        Columns ``n_patterns``, ``orthogonality``, ``n_models``, ``best`` (true once per setting), ``chosen`` (true in
        one row, a best one), ``pattern_agreement``, ``dimension_correlation``, ``difference_correlation``, and each
        of these three with ``_low`` and ``_high`` for its interval; ``misfit``, if known. Only the best rows are
        drawn. An interval that reaches far below all values is cut off.

    Examples
    --------
    >>> import pandas as pd
    >>> names = ("pattern_agreement", "dimension_correlation", "difference_correlation")
    >>> values = {name + suffix: 0.9 for name in names for suffix in ("", "_low", "_high")}
    >>> row = {"orthogonality": 0.8, "n_models": 10, "best": True, **values}
    >>> rows = [{**row, "n_patterns": number, "chosen": number == 3} for number in (2, 3, 4)]
    >>> figure = agreement_over_settings(pd.DataFrame(rows))
    >>> len(figure.axes), [text.get_text() for text in figure.legends[0].get_texts()]
    (3, ['chosen: 3 patterns'])
    """
    best = _placed(selection[selection["best"].astype(bool)])
    chosen = best[best["chosen"].astype(bool)].iloc[0]
    shown = [panel for panel in _PANELS if panel[0] != "misfit" or ("misfit" in best and best["misfit"].notna().any())]
    figure, panels = panels_in(WIDTH, 3.0, columns=len(shown))
    numbers = sorted(map(int, best["n_patterns"].unique()))
    for axes, (column, chance, label) in zip(panels, shown, strict=True):
        for rank, rows in best.groupby("rank"):
            _draw_series(axes, rows.sort_values("n_patterns"), column, rank)
        if chance is None:
            axes.set(ylabel=label, ymargin=0.2)
        else:
            lowest = min(chance, best[column].min())
            _mark_chance(axes, chance, max(min(lowest, best[f"{column}_low"].min()), lowest - MOST_BELOW), label)
        axes.axvline(chosen["place"], color="black", linewidth=0.7, linestyle=(0, (1, 3)), zorder=1)
        axes.plot(chosen["place"], chosen[column], markersize=13, **_RING)
        for left in numbers[1::2]:
            axes.axvspan(left - 0.5, left + 0.5, color=GREY, alpha=0.08, linewidth=0, zorder=0)
        axes.set(xlabel="Number of patterns", xticks=numbers, xlim=(numbers[0] - 0.5, numbers[-1] + 0.5))
    panels[0].annotate(
        "chosen",
        (chosen["place"], 1.0),
        (0, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
    )
    figure.legend(handles=_legend(best, chosen), loc="outside upper center", ncols=2)
    return figure


def _placed(best: pd.DataFrame) -> pd.DataFrame:
    """Add the rank of the orthogonality, the position along the axis, offset by rank, and which marks are hollow."""
    rank = best["orthogonality"].rank(method="dense").astype(int)
    distance = min(0.14, WIDEST_DODGE / rank.max())
    return best.assign(
        rank=rank,
        place=best["n_patterns"] + (rank - (rank.max() + 1) / 2) * distance,
        fewer=best["n_models"] < best["n_models"].max(),
        **{f"misfit_{end}": np.nan for end in ("low", "high")},
    )


def _look(rank: Any) -> tuple[str, str, Any]:
    """Return the colour, marker and line of an orthogonality."""
    return SHADES[(rank - 1) % len(SHADES)], MARKERS[(rank - 1) % len(MARKERS)], _LINES[(rank - 1) % len(_LINES)]


def _draw_series(axes: Axes, rows: pd.DataFrame, column: str, rank: Any) -> None:
    """Draw the settings of one orthogonality."""
    colour, marker, line = _look(rank)
    found = rows[rows[column].notna()]
    axes.plot(found["place"], found[column], color=colour, linestyle=line, linewidth=1, alpha=0.6)
    known = rows.dropna(subset=[column, f"{column}_low", f"{column}_high"])
    reach = [known[column] - known[f"{column}_low"], known[f"{column}_high"] - known[column]]
    # A rounded limit may lie a hair on the wrong side of its value.
    around = np.clip(np.asarray(reach, dtype=float), 0, None)
    axes.errorbar(known["place"], known[column], around, fmt="none", ecolor=colour, elinewidth=1, capsize=2)
    for row in found.to_dict("records"):
        [mark] = axes.plot(
            row["place"],
            row[column],
            marker,
            zorder=3,
            color=colour,
            markersize=SMALL_MARKER if row["fewer"] else MARKER,
            markeredgewidth=1.1,
            markerfacecolor="white" if row["fewer"] else colour,
        )
        setting = f"{counted(int(row['n_patterns']), 'pattern')}, orthogonality {row['orthogonality']:g}"
        hover(mark, [f"{setting}: {row[column]:.3f} ({counted(int(row['n_models']), 'model')})"])


def _legend(best: pd.DataFrame, chosen: pd.Series) -> list[Line2D]:
    weights = sorted(best["orthogonality"].unique())
    several = len(weights) > 1  # a single one is no choice
    handles = []
    for rank, weight in enumerate(weights if several else (), start=1):
        colour, marker, line = _look(rank)
        look: Any = {"color": colour, "marker": marker, "linestyle": line, "markersize": MARKER - 1}
        handles.append(Line2D([], [], **look, label=f"orthogonality {weight:g}"))
    which = counted(int(chosen["n_patterns"]), "pattern")
    which += f", orthogonality {chosen['orthogonality']:g}" if several else ""
    handles.append(Line2D([], [], **_RING, markersize=9, label=f"chosen: {which}"))
    if best["fewer"].any():
        look = _RING | {"color": GREY, "markerfacecolor": "white", "markersize": SMALL_MARKER}
        handles.append(Line2D([], [], **look, label="small and hollow: fewer models"))
    return handles


@matplotlib.rc_context(STYLE)
def spectrum(eigenvalues: Sequence[float], band: Sequence[float], limit: float) -> Figure:
    """Draw the variance of patients relative to controls in each direction, compared with permuted groups.

    Parameters
    ----------
    eigenvalues
        Variance of patients relative to controls, in descending order.
    band
        The 95th percentile of each with permuted groups.
    limit
        The 95th percentile of the first eigenvalue with permuted groups.

    Examples
    --------
    >>> len(spectrum([9.0, 4.0, 2.0], [3.3, 3.1, 2.9], 3.3).axes)
    1
    """
    values, places = np.asarray(eigenvalues), np.arange(1, len(eigenvalues) + 1)
    beyond = values > limit
    figure, [axes] = panels_in(WIDTH, 2.1)
    axes.fill_between(places[: len(band)], 0, band, color=GREY, alpha=0.3, linewidth=0, label="permuted groups")
    axes.axhline(limit, color=INK, linewidth=1, linestyle="--", label=f"limit: {limit:.1f}")
    axes.plot(places, values, color=GREY, linewidth=1, zorder=1)
    axes.plot(places[beyond], values[beyond], "o", color=PATIENT, label="beyond chance" if beyond.any() else "")
    axes.plot(places[~beyond], values[~beyond], "o", color=GREY, markerfacecolor="white")
    axes.set(xlabel="Direction", ylabel="Variance in patients\n(in controls = 1)", xticks=places, ylim=(0, None))
    figure.legend(loc="outside upper center", ncols=3)
    return figure


_ROW, _PANEL = 0.22, 3.0  # inches
_LETTERS = 30  # longest name on an axis


@matplotlib.rc_context(STYLE)
def two_maps(changes: pd.DataFrame, names: tuple[str, str], top: int = 15) -> Figure:
    """Draw the change of each region in two patterns, with the largest changes at the top.

    Parameters
    ----------
    changes
        Columns region, first and second: changes in sd of controls.
    names
        Names of the two patterns.
    top
        Number of regions shown.

    Examples
    --------
    >>> table = pd.DataFrame({"region": ["a", "b"], "first": [0.1, -2.0], "second": [0.0, -1.5]})
    >>> [label.get_text() for label in two_maps(table, ("A", "B")).axes[0].get_yticklabels()]
    ['b', 'a']
    """
    largest = changes[["first", "second"]].abs().mean(axis=1)
    shown = changes.loc[largest.sort_values(ascending=False).index[:top]].reset_index(drop=True)
    figure, [axes] = panels_in(6.0, 1.0 + _ROW * len(shown))
    axes.hlines(shown.index, shown["first"], shown["second"], color=GREY, linewidth=1)
    for name, column, colour, marker in ((names[0], "first", INK, "o"), (names[1], "second", GREY, "^")):
        axes.plot(shown[column], shown.index, marker, color=colour, label=safe_label(name), markersize=5)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(yticks=shown.index, yticklabels=map(safe_label, shown["region"]), xlabel="Change (sd of controls)")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    return figure


@matplotlib.rc_context(STYLE)
def two_scores(first: pd.Series, second: pd.Series, names: tuple[str, str]) -> Figure:
    """Draw the scores of all people from two runs against each other.

    Examples
    --------
    >>> two_scores(pd.Series([0.1, 0.9]), pd.Series([0.2, 0.8]), ("A", "B")).axes[0].get_xlabel()
    'A'
    """
    figure, [axes] = panels_in(_PANEL, _PANEL)
    axes.scatter(first, second, s=8, color=INK, alpha=0.4, linewidths=0)
    axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle="--")
    axes.set(xlabel=safe_label(names[0], _LETTERS), ylabel=safe_label(names[1], _LETTERS))
    return figure
