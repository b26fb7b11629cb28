"""Figures of the page: tables in, SVG files out."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt

mpl.rcParams["svg.hashsalt"] = "rindices"  # the same table gives the same file
SIZE = (9.0, 3.4)


def _save(figure: plt.Figure, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path.name


def accuracy_and_agreement(table: pd.DataFrame, path: Path) -> str:
    """Fig. 2: accuracy and agreement of single models against λ, with standard errors."""
    figure, axes = plt.subplots(1, 2, figsize=SIZE)
    for kind, of in table.groupby("kind", sort=False):
        axes[0].errorbar(of["orthogonality"], of["single"], of["single_se"], marker="o", capsize=2, label=kind)
        axes[1].errorbar(of["orthogonality"], of["pattern_agreement"], of["agreement_error"], marker="o", capsize=2)
    for axis, name in zip(axes, ("pattern-c-index of single models", "pattern-agr-index"), strict=True):
        axis.set(xlabel="λ", ylabel=name)
    axes[0].legend(fontsize=8)
    return _save(figure, path)


def agreement_by_patterns(table: pd.DataFrame, path: Path) -> str:
    """Agreement against M for cohorts with each true number of patterns; a thin line a cohort."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    colours = plt.get_cmap("tab10")
    for place, (true, of) in enumerate(table.groupby("true_patterns")):
        for _, one in of.sort_values("n_patterns").groupby("seed"):
            axis.plot(one["n_patterns"], one["pattern_agreement"], color=colours(place), alpha=0.25, linewidth=0.8)
        mean = of.groupby("n_patterns")["pattern_agreement"].mean()
        label = "without disease" if true == 0 else f"{true} true patterns"
        axis.plot(mean.index, mean, color=colours(place), marker="o", label=label)
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
        for weight in dict.fromkeys(own.loc[own["weight"] != "none", "weight"]):
            of = pd.concat([own[own["weight"] == weight], middle]).sort_values("percent")
            row[0].plot(of["percent"], of["single"], marker="o", label=weight)
            row[1].plot(of["percent"], of["pattern_agreement"], marker="o")
        row[0].set(ylabel="pattern-c-index", title=kind)
        row[1].set(ylabel="pattern-agr-index", title=kind)
    for axis in axes[-1]:
        axis.set(xlabel="% of the default weight")
    axes[0, 0].legend(fontsize=8)
    return _save(figure, path)


def people(table: pd.DataFrame, ceilings: pd.DataFrame, path: Path) -> str:
    """Accuracy against the number of patients; ridge regression that is told the truth is dashed."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    for place, kind in enumerate(table.columns):
        axis.plot(table.index, table[kind], marker="o", color=f"C{place}", label=kind)
        axis.plot(ceilings.index, ceilings[kind], linestyle="--", color=f"C{place}", linewidth=0.9)
    axis.set(xlabel="patients (and half as many controls)", ylabel="pattern-c-index", xscale="log")
    axis.legend(fontsize=8)
    return _save(figure, path)


def correlations(table: pd.DataFrame, path: Path) -> str:
    """Correlations with clinical variables by R-indices against those by the truth."""
    figure, axis = plt.subplots(figsize=(4.2, 4.0))
    for kind, of in table.groupby("kind", sort=False):
        axis.scatter(of["truth"], of["consensus"], s=18, label=kind)
    limits = [-0.6, 0.6]
    axis.plot(limits, limits, color="grey", linewidth=0.8)
    axis.set(xlabel="correlation with the true severity", ylabel="correlation with the R-index")
    axis.legend(fontsize=8)
    return _save(figure, path)
