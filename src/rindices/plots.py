"""Figures of a run: tables in, a matplotlib ``Figure`` out; no pyplot, no state that outlives a call."""

import io
import os
import re
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

__all__ = [
    "agreement_over_training",
    "figure_png",
    "figure_svg",
    "r_index_distributions",
    "r_index_pairs",
    "recovery",
    "strongest_regions",
]

BLUE, ORANGE, GREEN, VERMILLION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#767676"  # Okabe and Ito
MOST_PAIRED_PATTERNS = 4
LONGEST_LABEL = 42
MANY_POINTS = 500  # above this a group's points are drawn as an image, or the file grows with the cohort
COLUMNS = 3

# Text stays text, so that a reader can search it and a browser can bring a font for any script.
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "rindices",
    "text.usetex": False,
    "savefig.facecolor": "white",
}


class _Group(NamedTuple):
    """How one group of people looks in every figure."""

    key: str
    label: str
    colour: str
    marker: str


_GROUPS = (
    _Group("control", "Controls", BLUE, "o"),
    _Group("patient", "Patients", VERMILLION, "^"),
    _Group("other", "Others", GREEN, "s"),
)


def _label(text: object) -> str:
    """Make any text safe to draw: no formulas, no control characters, not too long (the middle goes)."""
    shown = "".join(letter if letter.isprintable() else " " for letter in str(text))
    if len(shown) > LONGEST_LABEL:
        half = LONGEST_LABEL // 2
        shown = f"{shown[:half]}…{shown[1 - half :]}"
    # East Asian letters are wider than the box that is measured when the font lacks them; browsers drop these spaces.
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in shown)
    return "  " * wide + shown.replace("$", r"\$")


def _r_columns(r_indices: pd.DataFrame) -> list[str]:
    columns = [str(column) for column in r_indices.columns if re.fullmatch(r"r\d+", str(column))]
    if not columns:
        raise ValueError("Expected columns r1, r2, ... with R-indices; found none. Pass the table of r_indices.csv.")
    return sorted(columns, key=lambda column: int(column[1:]))


def _panels(
    n_panels: int, width: float, height: float, columns: int = COLUMNS, **shared: Any
) -> tuple[Figure, list[Axes]]:
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    # A single narrow panel still needs room for its legend.
    figure = Figure(figsize=(max(columns * width, 3.4), rows * height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())
    for unused in axes[n_panels:]:
        unused.remove()
    return figure, axes[:n_panels]


def _scatter(axes: Axes, across: Any, up: Any, **style: Any) -> None:
    axes.scatter(across, up, rasterized=len(up) > MANY_POINTS, **style)


@matplotlib.rc_context(_STYLE)
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
    _mark_chance(upper, 0.5, "Concordance")
    _mark_chance(lower, 0.0, "Correlation")
    for axes in (upper, lower):
        axes.axvline(chosen["step"], color="black", linewidth=1, linestyle="-.", zorder=0)
    upper.lines[-1].set_label(f"chosen: step {int(chosen['step']):,}")
    lower.set_xlabel("Training steps")
    lower.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _mark_chance(axes: Axes, chance: float, title: str) -> None:
    lowest = min([chance, *(float(np.nanmin(line.get_ydata())) for line in axes.lines)])  # type: ignore[arg-type]
    axes.axhline(chance, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(lowest - 0.05, 1.04)
    axes.set_ylabel(f"{title}\n({chance:g} = chance, 1 = same)")


@matplotlib.rc_context(_STYLE)
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
    columns = _r_columns(r_indices)
    present = [group for group in _GROUPS if (r_indices["group"] == group.key).any()]
    figure, panels = _panels(len(columns), 2.4, 2.7, sharey=True)
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
            axes.set_ylabel("R-index (0 = like controls)")
    return figure


def _draw_group(axes: Axes, position: int, values: np.ndarray, group: _Group) -> None:
    centre = position + 0.05
    violin: Any = axes.violinplot([values], positions=[centre], side="high", widths=0.75, showextrema=False)
    for body in violin["bodies"]:
        body.set(facecolor=group.colour, alpha=0.35, edgecolor=group.colour)
    line = {"color": "black", "linewidth": 1}
    lines: Any = {"boxprops": line, "whiskerprops": line, "capprops": line, "medianprops": {**line, "linewidth": 2}}
    axes.boxplot(values, positions=[centre], widths=0.1, showfliers=False, manage_ticks=False, **lines)
    jitter = np.random.default_rng(0).uniform(0.1, 0.38, len(values))
    size, opacity = (3, 0.35) if len(values) > MANY_POINTS else (5, 0.5)
    look = {"s": size, "alpha": opacity, "marker": group.marker, "color": group.colour, "linewidths": 0}
    _scatter(axes, centre - jitter, values, **look)


@matplotlib.rc_context(_STYLE)
def strongest_regions(patterns: pd.DataFrame, top: int = 12, only: int | None = None) -> Figure:
    """Draw the regions that change most at severity 1, one panel per pattern on one common scale.

    Parameters
    ----------
    patterns
        Columns ``region``, ``pattern``, ``change_sd``, ``change_percent`` and ``spread_sd``.
    top
        How many regions of each pattern.
    only
        Draw this pattern alone, still on the scale that is common to all.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"pattern": 1, "spread_sd": 0.1, "change_percent": -5.0}
    >>> table = pd.DataFrame([{**row, "region": name, "change_sd": -1.0} for name in ("amygdala", "hippocampus")])
    >>> strongest_regions(table).axes[0].get_xlabel()
    'Change at severity 1 (sd of controls)'
    """
    strongest = {}
    for pattern, rows in patterns.groupby("pattern"):
        order = rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index
        strongest[int(str(pattern))] = rows.loc[order].head(top)
    drawn = [only] if only is not None else list(strongest)
    if not drawn or drawn[0] not in strongest:
        raise ValueError(f"Expected a pattern among {sorted(strongest)}, found {only}. Choose one that the table has.")
    shown = pd.concat(strongest.values())
    reach, spread = shown["change_sd"], shown["spread_sd"].fillna(0.0)
    low, high = min(0.0, (reach - spread).min()), max(0.0, (reach + spread).max())
    margin = 0.04 * (high - low) or 1.0
    n_bars = max(len(strongest[pattern]) for pattern in drawn)
    figure, panels = _panels(len(drawn), 6.8, 0.9 + 0.2 * n_bars, columns=1)
    for axes, pattern in zip(panels, drawn, strict=True):
        _draw_bars(axes, strongest[pattern])
        axes.set_title(f"Pattern {pattern}", loc="left", fontweight="bold")
        axes.set_xlim(low - margin * (low < 0), high + margin * (high > 0 or low == 0))
    panels[-1].set_xlabel("Change at severity 1 (sd of controls)")
    return figure


def _draw_bars(axes: Axes, rows: pd.DataFrame) -> None:
    heights = list(range(len(rows)))
    change = rows["change_sd"].to_numpy(dtype=float)
    colours = [BLUE if value < 0 else ORANGE for value in change]
    axes.barh(heights, change, height=0.7, color=colours)
    spread = rows["spread_sd"].fillna(0.0)
    axes.errorbar(change, heights, xerr=spread, fmt="none", ecolor="black", capsize=2, linewidth=1)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(heights, [_label(region) for region in rows["region"]], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # Percentages stand in a column of their own: beside the bars they would meet error bars and names.
    beside = axes.get_yaxis_transform()
    for height, percent in zip(heights, rows["change_percent"], strict=True):
        text = "–" if pd.isna(percent) else f"{percent:+.1f} %".replace("-", "−")
        place: Any = {"xycoords": beside, "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(text, (1, height), (46, 0), fontsize=8, annotation_clip=False, **place)


@matplotlib.rc_context(_STYLE)
def r_index_pairs(r_indices: pd.DataFrame) -> Figure:
    """Draw each pair of R-indices against each other, patients before faint controls; the first four patterns.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"group": ["control", "patient"], "r1": [0.0, 0.4], "r2": [0.1, 0.8]})
    >>> r_index_pairs(table).axes[0].get_xlabel()
    'R1'
    """
    every = _r_columns(r_indices)
    columns = every[:MOST_PAIRED_PATTERNS]
    if len(columns) < 2:
        raise ValueError("Expected at least two patterns to draw pairs, found one. Leave this figure out.")
    pairs = [(first, second) for place, first in enumerate(columns) for second in columns[place + 1 :]]
    figure, panels = _panels(len(pairs), 2.4, 2.5)
    controls = r_indices[r_indices["group"] == "control"]
    patients = r_indices[r_indices["group"] == "patient"]
    values = pd.concat([controls, patients])[columns].to_numpy(dtype=float)
    limits = (min(0.0, float(np.nanmin(values))) - 0.05, max(1.0, float(np.nanmax(values))) + 0.05)
    for axes, (across, up) in zip(panels, pairs, strict=True):
        for people, style in (
            (controls, {"marker": "+", "s": 12, "color": GREY, "alpha": 0.4, "linewidths": 0.7, "label": "controls"}),
            (
                patients,
                {"marker": "o", "s": 9, "color": VERMILLION, "alpha": 0.5, "linewidths": 0, "label": "patients"},
            ),
        ):
            _scatter(axes, people[across], people[up], **style)
        axes.set(xlim=limits, ylim=limits, xlabel=f"R{across[1:]}", ylabel=f"R{up[1:]}", aspect="equal")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, markerscale=1.5)
    if len(every) > len(columns):
        figure.supxlabel(f"The first {len(columns)} of {len(every)} patterns", fontsize=9)
    return figure


@matplotlib.rc_context(_STYLE)
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
    figure, panels = _panels(truth.shape[1], 2.4, 2.8)
    for place, (axes, value) in enumerate(zip(panels, concordance, strict=True)):
        look = {"s": 6, "color": VERMILLION, "alpha": 0.5, "linewidths": 0}
        _scatter(axes, truth.iloc[:, place], r_indices.iloc[:, place], **look)
        axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle="--")
        axes.set_title(f"Pattern {place + 1}\nconcordance {value:.3f}")
        axes.set(xlabel=f"Known severity {_label(truth.columns[place])}", ylabel=f"R-index R{place + 1}")
    return figure


@matplotlib.rc_context(_STYLE)
def _rendered(figure: Figure, kind: str, dpi: int, unnamed: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the measuring font lacks is drawn by the reader's browser.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        figure.savefig(buffer, format=kind, dpi=dpi, metadata={unnamed: None})
    return buffer.getvalue()


def figure_svg(fig: Figure) -> str:
    """Return a figure as SVG text: the same figure always gives the same text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure_svg(Figure()).rstrip().endswith("</svg>")
    True
    """
    return _rendered(fig, "svg", 200, "Date").decode("utf-8")


def figure_png(fig: Figure, path: Path) -> Path:
    """Write a figure as a PNG file of 300 dots per inch and return its path.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figure_png(Figure(), Path(folder) / "empty.png").name
    'empty.png'
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(_rendered(fig, "png", 300, "Software"))
    return partial.replace(path)
