"""Figures of the pages, drawn from tables as SVG files.

A method, kind of cohort or weight looks the same in every figure. Lines through markers extend from the lowest to the
highest cohort.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt
from reading import NAMES
from summaries import Range

from rindices.plots.style import GREY, MARKERS, STYLE

mpl.rcParams.update(STYLE)
SIZE = (9.0, 3.8)
LINES = "lowest to highest cohort"
BELOW = {"fontsize": 8, "loc": "upper center", "bbox_to_anchor": (0.5, -0.22)}
# Methods have strong colours, everything else softer ones.
METHODS = {
    "consensus": ("#0072b2", "o"),
    "one model": ("#56b4e9", "s"),
    "preset paper": ("#d55e00", "v"),
    "NMF": ("#009e73", "^"),
    "LDA": ("#cc79a7", "D"),
    "FA": ("#e69f00", "v"),
    "opNMF": ("#8c5a00", "<"),
    "DNMF": ("#5e3c99", ">"),
    "linear": ("#767676", "P"),
    "ridge": ("#000000", "d"),
    "SVR": ("#a6611a", "X"),
    "NVIDIA H200": ("#0072b2", "o"),
    "cpu": ("#d55e00", "s"),
    "no disease": (GREY, "o"),
}
SOFT = ("#332288", "#44a3d6", "#117733", "#cc6677", "#c79a00", "#aa4499", "#6f6f6f")
GROWTH = {
    "n_models": "models",
    "n_regions": "regions",
    "n_patterns": "patterns",
    "n_people": "people",
    "batch": "batch",
}


def _looks(names: Any) -> list[dict[str, Any]]:
    """Return the colour and marker of each name: its own, or the next soft ones."""
    soft = list(zip(SOFT, MARKERS, strict=True))
    kinds = [name for name in NAMES if name in set(names)]
    others = [name for name in names if str(name).partition(",")[0] not in METHODS and name not in kinds]
    known = dict(zip(NAMES, soft, strict=False)) | dict(zip(others, soft, strict=False))
    known |= {name: METHODS[str(name).partition(",")[0]] for name in names if name not in known}
    return [{"color": known[name][0], "marker": known[name][1]} for name in names]


def _label(name: Any) -> str:
    return NAMES.get(str(name), str(name).replace("_", " "))


def _explain_lines(axis: plt.Axes, meaning: str) -> None:
    """Explain the lines through the markers in the legend."""
    axis.plot([], [], color=GREY, linewidth=1, label=meaning)


def _save(figure: plt.Figure, path: Path, legend: plt.Axes | None = None) -> str:
    """Save a figure, with the legend of the axes `legend` below it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    if legend is not None:
        shown = legend.get_legend_handles_labels()
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncols": min(6, len(shown[1]))}
        figure.legend(*shown, fontsize=8, **place)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.08)
    plt.close(figure)
    return path.name


def accuracy_and_agreement(table: pd.DataFrame, path: Path) -> str:
    """Draw accuracy and agreement of single models against λ, with standard errors (Fig. 2)."""
    figure, axes = plt.subplots(1, 2, figsize=SIZE)
    groups = dict(list(table.groupby("kind", sort=False)))
    for place, (look, (kind, of)) in enumerate(zip(_looks(list(groups)), groups.items(), strict=True)):
        at = of["orthogonality"] + 0.008 * (place - 2)  # side by side, to show equal values
        axes[0].errorbar(at, of["single"], of["single_se"], capsize=2, label=_label(kind), **look)
        axes[1].errorbar(at, of["pattern_agreement"], of["agreement_error"], capsize=2, **look)
    for axis, name in zip(axes, ("pattern-c-index of single models", "pattern-agr-index"), strict=True):
        axis.set(xlabel="λ", ylabel=name)
    _explain_lines(axes[0], "± standard error over cohorts")
    return _save(figure, path, axes[0])


def against_paper(panels: Mapping[str, pd.DataFrame], path: Path) -> str:
    """Draw our numbers against the paper's, a panel per experiment; on the line they are equal."""
    n_columns = 3
    n_rows = -(-len(panels) // n_columns)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=(9.0, 4.0 * n_rows), squeeze=False)
    for axis, (name, table) in zip(axes.flat, panels.items(), strict=False):
        both = table[["paper", "ours", "low", "high"]].to_numpy()
        room = 0.06 * float(np.ptp(both)) + 0.01
        limits = (float(both.min()) - room, float(both.max()) + room)
        axis.plot(limits, limits, color=GREY, linewidth=0.8)
        groups = dict(list(table.groupby("label", sort=False)))
        for look, (label, of) in zip(_looks(list(groups)), groups.items(), strict=True):
            axis.vlines(of["paper"], of["low"], of["high"], color=look["color"], linewidth=0.9)
            inside = "white" if label.endswith(", train") else look["color"]
            axis.plot(of["paper"], of["ours"], linestyle="", label=label, markerfacecolor=inside, **look)
        axis.set(title=name, xlim=limits, ylim=limits, aspect="equal", xlabel="paper", ylabel="here")
        axis.locator_params(nbins=5)
        axis.legend(**BELOW, ncols=3 if len(groups) < 6 else 2)
    _explain_lines(axes.flat[0], LINES)
    axes.flat[0].legend(**BELOW, ncols=2)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    return _save(figure, path)


def agreement_by_patterns(table: pd.DataFrame, path: Path) -> str:
    """Draw agreement against M, by true number of patterns; thin lines are cohorts."""
    figure, axis = plt.subplots(figsize=(6.5, 3.8))
    groups = {"no disease" if true == 0 else f"{true} true patterns": of for true, of in table.groupby("true_patterns")}
    for look, (label, of) in zip(_looks(list(groups)), groups.items(), strict=True):
        for _, one in of.sort_values("n_patterns").groupby("seed"):
            axis.plot(one["n_patterns"], one["pattern_agreement"], color=look["color"], alpha=0.3, linewidth=0.8)
        mean = of.groupby("n_patterns")["pattern_agreement"].mean()
        axis.plot(mean.index, mean, label=label, **look)
    axis.set(xlabel="number of patterns M", ylabel="pattern-agr-index", xticks=sorted(table["n_patterns"].unique()))
    return _save(figure, path, axis)


def robustness(drawn: Range, path: Path) -> str:
    """Draw accuracy and agreement against each weight, in per cent of its default (Fig. S1 a and b)."""
    kinds = list(dict.fromkeys(drawn.mean["kind"]))
    figure, axes = plt.subplots(len(kinds), 2, figsize=(9.0, 3.2 * len(kinds)), squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        weights = [name for name in dict.fromkeys(drawn.mean["weight"]) if name != "none"]
        for place, (look, weight) in enumerate(zip(_looks(weights), weights, strict=True)):
            mean, low, high = (_of_weight(table, kind, weight) for table in drawn)
            at = mean["percent"] + 1.2 * (place - 2)
            for axis, name in zip(row, ("single", "pattern_agreement"), strict=True):
                errors = (mean[name] - low[name], high[name] - mean[name])
                axis.errorbar(at, mean[name], errors, capsize=2, elinewidth=0.8, label=_label(weight), **look)
        row[0].set(ylabel="pattern-c-index", title=kind)
        row[1].set(ylabel="pattern-agr-index", title=kind)
    _explain_lines(axes[0, 0], LINES)
    for axis in axes[-1]:
        axis.set(xlabel="% of the default weight")
    return _save(figure, path, axes[0, 0])


def _of_weight(table: pd.DataFrame, kind: str, weight: str) -> pd.DataFrame:
    """Return the rows of one weight and kind of cohort, including the default, in order."""
    own = table[(table["kind"] == kind) & table["weight"].isin([weight, "none"])]
    return own.sort_values("percent").reset_index(drop=True)


def people(drawn: Range, ceilings: pd.DataFrame, path: Path) -> str:
    """Draw accuracy against the number of patients; ridge regression trained on the truth is dashed."""
    figure, axis = plt.subplots(figsize=(6.5, 3.8))
    mean, low, high = drawn
    for place, (look, kind) in enumerate(zip(_looks(list(mean.columns)), mean.columns, strict=True)):
        errors = (mean[kind] - low[kind], high[kind] - mean[kind])
        at = mean.index * 1.02 ** (place - 2)
        axis.errorbar(at, mean[kind], errors, capsize=2, elinewidth=0.8, label=_label(kind), **look)
        axis.plot(ceilings.index, ceilings[kind], linestyle="--", color=look["color"], linewidth=0.9)
    _explain_lines(axis, LINES)
    axis.set(xlabel="patients (and half as many controls)", ylabel="pattern-c-index", xscale="log")
    axis.set_xticks(list(mean.index), [f"{number:,}" for number in mean.index])
    axis.minorticks_off()
    return _save(figure, path, axis)


def dots(drawn: Range, path: Path, label: str, *, paper: pd.Series | None = None) -> str:
    """Draw the rows of a table one below another, with columns as markers and the paper's numbers as crosses."""
    mean, low, high = drawn.changed(lambda table: table.loc[drawn.mean.notna().any(axis=1)])
    n_columns = len(mean.columns)
    figure, axis = plt.subplots(figsize=(6.8, 0.9 + (0.14 + 0.09 * n_columns) * len(mean)))
    rows = np.arange(len(mean))
    for place in rows[1::2]:
        axis.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0)
    for place, (look, name) in enumerate(zip(_looks(list(mean.columns)), mean.columns, strict=True)):
        at = rows + 0.76 * ((place + 0.5) / n_columns - 0.5)  # staggered, so that none is covered
        axis.hlines(at, low[name], high[name], color=look["color"], linewidth=1)
        axis.plot(mean[name], at, linestyle="", markersize=5, label=_label(name), **look)
    _explain_lines(axis, LINES)
    if paper is not None:
        axis.plot(paper.reindex(mean.index), rows, "x", color="black", label="paper, its own data")
    axis.set(xlabel=label, yticks=list(rows), yticklabels=[_label(name) for name in mean.index])
    axis.set_ylim(len(mean) - 0.5, -0.5)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return _save(figure, path)


def growth(table: pd.DataFrame, path: Path) -> str:
    """Draw the rate against each size, by device, on logarithmic axes."""
    figure, axes = plt.subplots(1, len(GROWTH), figsize=(9.6, 2.8), sharey=True)
    groups = dict(list(table.groupby("device", sort=False)))
    for look, (device, of) in zip(_looks(list(groups)), groups.items(), strict=True):
        base = of.iloc[0]
        for axis, name in zip(axes, GROWTH, strict=True):
            others = [other for other in GROWTH if other != name]
            line = of[(of[others] == base[others]).all(axis=1)].sort_values(name)
            axis.plot(line[name], line["rate"], label="two cores" if device == "cpu" else device, **look)
    for axis, (name, label) in zip(axes, GROWTH.items(), strict=True):
        axis.set(xlabel=label, xscale="log", yscale="log")
        values = sorted(table[name].unique())
        axis.set_xticks(values, [f"{value:,}" for value in values], rotation=90, fontsize=8)
        axis.minorticks_off()
    axes[0].set(ylabel="models' steps per second")
    return _save(figure, path, axes[0])


def enough(table: pd.DataFrame, path: Path) -> str:
    """Draw accuracy of the consensus against the number of models: mean and sd of draws, and the worst draw."""
    figure, axis = plt.subplots(figsize=(6.5, 3.4))
    colour, marker = METHODS["consensus"]
    mean, spread = table["concordance"], table["spread over draws"]
    axis.errorbar(table.index, mean, spread, capsize=2, color=colour, marker=marker, label="mean of draws, ± sd")
    axis.plot(table.index, table["worst draw"], color=GREY, marker="v", label="worst draw")
    axis.set(xlabel="models in the consensus", ylabel="pattern-c-index", xscale="log")
    axis.set_xticks(list(table.index), [str(number) for number in table.index])
    axis.minorticks_off()
    return _save(figure, path, axis)
