"""Figures of the page: tables in, SVG files out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt
from reading import NAMES

from rindices.plots.style import GREY, MARKERS, PATTERN_COLOURS, STYLE

mpl.rcParams.update(STYLE)
SIZE = (9.0, 3.4)
LOOKS = [{"color": colour, "marker": marker} for colour, marker in zip((*PATTERN_COLOURS, GREY), MARKERS, strict=True)]
GROWTH = {
    "n_models": "models",
    "n_regions": "regions",
    "n_patterns": "patterns",
    "n_people": "people",
    "batch": "batch",
}


def _save(figure: plt.Figure, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path.name


def accuracy_and_agreement(table: pd.DataFrame, path: Path) -> str:
    """Fig. 2: accuracy and agreement of single models against λ, with standard errors."""
    figure, axes = plt.subplots(1, 2, figsize=SIZE)
    groups = table.groupby("kind", sort=False)
    for place, (look, (kind, of)) in enumerate(zip(LOOKS, groups, strict=False)):
        at = of["orthogonality"] + 0.008 * (place - 2)  # side by side, so that equal values can be seen
        axes[0].errorbar(at, of["single"], of["single_se"], capsize=2, label=NAMES.get(kind, kind), **look)
        axes[1].errorbar(at, of["pattern_agreement"], of["agreement_error"], capsize=2, **look)
    for axis, name in zip(axes, ("pattern-c-index of single models", "pattern-agr-index"), strict=True):
        axis.set(xlabel="λ", ylabel=name)
    axes[0].legend(fontsize=8)
    return _save(figure, path)


def against_paper(panels: Mapping[str, pd.DataFrame], path: Path) -> str:
    """Draw our numbers against the paper's, a panel for each experiment; on the line they are the same."""
    n_columns = 3
    n_rows = -(-len(panels) // n_columns)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=(9.0, 3.1 * n_rows), squeeze=False)
    for axis, (name, table) in zip(axes.flat, panels.items(), strict=False):
        both = table[["paper", "ours"]].to_numpy()
        room = 0.06 * float(np.ptp(both)) + 0.01
        limits = (float(both.min()) - room, float(both.max()) + room)
        axis.plot(limits, limits, color=GREY, linewidth=0.8)
        for look, (label, of) in zip(LOOKS, table.groupby("label", sort=False), strict=False):
            axis.plot(of["paper"], of["ours"], linestyle="", label=label, **look)
        axis.set(title=name, xlim=limits, ylim=limits, aspect="equal", xlabel="paper", ylabel="here")
        axis.legend(fontsize=7)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    return _save(figure, path)


def agreement_by_patterns(table: pd.DataFrame, path: Path) -> str:
    """Agreement against M for cohorts with each true number of patterns; a thin line a cohort."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    for look, (true, of) in zip(LOOKS, table.groupby("true_patterns"), strict=False):
        for _, one in of.sort_values("n_patterns").groupby("seed"):
            axis.plot(one["n_patterns"], one["pattern_agreement"], color=look["color"], alpha=0.25, linewidth=0.8)
        mean = of.groupby("n_patterns")["pattern_agreement"].mean()
        label = "without disease" if true == 0 else f"{true} true patterns"
        axis.plot(mean.index, mean, label=label, **look)
    axis.set(xlabel="number of patterns M", ylabel="pattern-agr-index", xticks=sorted(table["n_patterns"].unique()))
    axis.legend(fontsize=8)
    return _save(figure, path)


def robustness(table: pd.DataFrame, path: Path) -> str:
    """Fig. S1 a and b: accuracy and agreement against each weight, in per cent of its value."""
    kinds = list(dict.fromkeys(table["kind"]))
    figure, axes = plt.subplots(len(kinds), 2, figsize=(9.0, 3.0 * len(kinds)), squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        own = table[table["kind"] == kind]
        middle = own[own["weight"] == "none"]
        weights = dict.fromkeys(own.loc[own["weight"] != "none", "weight"])
        for look, weight in zip(LOOKS, weights, strict=False):
            of = pd.concat([own[own["weight"] == weight], middle]).sort_values("percent")
            row[0].plot(of["percent"], of["single"], label=weight.replace("_", " "), **look)
            row[1].plot(of["percent"], of["pattern_agreement"], **look)
        row[0].set(ylabel="pattern-c-index", title=kind)
        row[1].set(ylabel="pattern-agr-index", title=kind)
    for axis in axes[-1]:
        axis.set(xlabel="% of the default weight")
    axes[0, 0].legend(fontsize=8)
    return _save(figure, path)


def people(table: pd.DataFrame, ceilings: pd.DataFrame, path: Path) -> str:
    """Accuracy against the number of patients; ridge regression that is told the truth is dashed."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    for look, kind in zip(LOOKS, table.columns, strict=False):
        axis.plot(table.index, table[kind], label=NAMES.get(kind, kind), **look)
        axis.plot(ceilings.index, ceilings[kind], linestyle="--", color=look["color"], linewidth=0.9)
    axis.set(xlabel="patients (and half as many controls)", ylabel="pattern-c-index", xscale="log")
    axis.legend(fontsize=8)
    return _save(figure, path)


def dots(table: pd.DataFrame, path: Path, label: str, *, paper: pd.Series | None = None) -> str:
    """Draw the rows of a table below each other and its columns as markers; the paper's figures are crosses."""
    figure, axis = plt.subplots(figsize=(6.8, 0.9 + 0.42 * len(table)))
    rows = range(len(table))
    for place in rows:
        axis.axhspan(place - 0.5, place + 0.5, color="#f3f3f3" if place % 2 else "white", zorder=0)
    for look, name in zip(LOOKS, table.columns, strict=False):
        axis.plot(table[name], rows, linestyle="", label=NAMES.get(str(name), str(name)), **look)
    if paper is not None:
        axis.plot(paper.reindex(table.index), rows, "x", color="black", label="paper, its own data")
    axis.set(xlabel=label, yticks=list(rows), yticklabels=[NAMES.get(str(name), str(name)) for name in table.index])
    axis.invert_yaxis()
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return _save(figure, path)


def growth(table: pd.DataFrame, path: Path) -> str:
    """Draw how the rate changes with each size, on each device; both axes are logarithmic."""
    figure, axes = plt.subplots(1, len(GROWTH), figsize=(9.6, 2.8), sharey=True)
    for look, (device, of) in zip(LOOKS, table.groupby("device", sort=False), strict=False):
        base = of.iloc[0]
        for axis, name in zip(axes, GROWTH, strict=True):
            others = [other for other in GROWTH if other != name]
            line = of[(of[others] == base[others]).all(axis=1)].sort_values(name)
            axis.plot(line[name], line["rate"], label=device, **look)
    for axis, (name, label) in zip(axes, GROWTH.items(), strict=True):
        axis.set(xlabel=label, xscale="log", yscale="log")
        values = sorted(table[name].unique())
        axis.set_xticks(values, [f"{value:,}" for value in values], rotation=60, fontsize=7)
        axis.minorticks_off()
    axes[0].set(ylabel="models' steps per second")
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return _save(figure, path)


def enough(table: pd.DataFrame, path: Path) -> str:
    """Draw the consensus against the number of models: mean and worst draw."""
    figure, axis = plt.subplots(figsize=(5.5, 3.2))
    axis.plot(table.index, table["concordance"], label="mean of draws", **LOOKS[0])
    axis.plot(table.index, table["worst draw"], label="worst draw", **LOOKS[1])
    axis.set(xlabel="models in the consensus", ylabel="pattern-c-index", xscale="log")
    axis.set_xticks(list(table.index), [str(number) for number in table.index])
    axis.minorticks_off()
    axis.legend(fontsize=8)
    return _save(figure, path)
