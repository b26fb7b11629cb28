"""Sections of the pages on the semi-synthetic cohorts: Tables 1, 6 and 7, Figs 2 and S1, and the choice of M."""

from __future__ import annotations

from functools import partial

import figures
import pandas as pd
import summaries
from ablations import REMOVED
from cases import KINDS
from paper_sections import by_method, chosen_of_paper
from reading import METHODS, Folder, between, markdown, missing, of_cohorts, paragraph, reached, shown, signed, warning

CONCORDANCE = "pattern-c-index (0.5 is chance)"


def table_1(folder: Folder) -> list[str]:
    """Describe accuracy in easier cohorts, with λ chosen by agreement."""
    lines = ["## Table 1 in easier cohorts", ""]
    looks = folder.table("table1")
    if looks is None:
        return lines + missing("table1")
    from_step = folder.choose_from("table1")
    accuracies = summaries.over_cohorts(lambda how: summaries.accuracy(looks, from_step, how))
    found, own = accuracies.mean, chosen_of_paper(folder)
    errors = pd.Series(dtype=float) if own is None else own.groupby("kind")["single"].sem()
    lines += warning(looks)
    lines += [
        *paragraph(
            "Here, the experiment in Table 1 was repeated with the healthy variation of our reference population.",
            f"Entries are concordances, with λ chosen by agreement alone ({of_cohorts(looks, 'for each λ')}). The",
            "`paper` preset was run on 3 cohorts each of the *basic* and *mild* kinds and 1 of every other kind.",
            "*Ours* is the `blind` preset.",
        ),
        *markdown(by_method(folder), "cohort"),
        *paragraph(
            "Within a cohort, the SD of concordance across our single models is at most",
            f"{shown(float(accuracies.high['single_sd'].max()))}. Standard errors across cohorts are at most",
            f"{shown(float(found['single_se'].max()))} for our models and {shown(float(errors.max()))} for `paper`.",
        ),
    ]
    return lines


def figure_2(folder: Folder) -> list[str]:
    """Describe accuracy and agreement by λ in easier cohorts, and the baselines."""
    looks = folder.table("table1")
    if looks is None:
        return missing("table1")
    from_step = folder.choose_from("table1")
    each = summaries.by_orthogonality(looks, from_step)
    figure = figures.accuracy_and_agreement(each, folder.path / "fig2.svg")
    lines = [f"## Fig. 2 in easier cohorts ({of_cohorts(looks, 'for each λ')})", ""]
    lines += [f"![Accuracy and agreement against λ](../results/{figure})", ""]
    wide = summaries.by_kind(each.pivot_table("consensus", "kind", "orthogonality"))
    spread = float((wide.max(axis=1) - wide.min(axis=1)).max())
    lines += [f"The accuracy of the consensus varies with λ by at most {shown(spread)} in any kind of cohort.", ""]
    accuracies = summaries.over_cohorts(lambda how: summaries.accuracy(looks, from_step, how))
    return lines + _choice(looks, accuracies.mean) + _against_baselines(folder, accuracies, "baselines", "Table 1")


def _choice(looks: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    ranks = summaries.rank_correlations(looks)
    mean_loss = float(found["loss"].max())
    over_all, at_last = (between(ranks[name]) for name in ranks.columns)
    return paragraph(
        "Does agreement indicate accuracy? Across values of λ and checkpoints, the rank correlation between the",
        f"pattern-agr-index and the accuracy of single models is {over_all}, depending on the kind of cohort, but both",
        f"rise during training. Across the five λ at the last checkpoint, it is {at_last}. Choosing λ by agreement",
        f"lowers the concordance of the consensus by at most {shown(mean_loss)} on average in the cohorts of a kind,",
        f"and by at most {shown(float(found['largest_loss'].max()))} in a single cohort. The target of at most 0.01",
        f"was {reached(mean_loss <= 0.01, looks)}.",
    )


def _against_baselines(folder: Folder, accuracies: summaries.Range, name: str, where: str | None) -> list[str]:
    fits = folder.table(name)
    if fits is None:
        return missing("baselines")
    others = summaries.over_cohorts(lambda how: summaries.baselines(fits, how))
    found, ours = accuracies.mean, others.mean
    ranges = "; ".join(
        f"{label} {between(ours[method])}"
        + ("" if where is None else f" (paper: {between(folder.of_paper(where, method))})")
        for method, label in METHODS.items()
    )
    drawn = summaries.Range(
        *(
            own[["consensus", "single"]].join(theirs[list(METHODS)]).rename(columns={"single": "one model"} | METHODS)
            for own, theirs in zip(accuracies, others, strict=True)
        )
    )
    paper = None if where is None else folder.of_paper("Table 1", "surreal_gan")
    figure = figures.dots(drawn, folder.path / f"{name}.svg", CONCORDANCE, paper=paper)
    gap = float((found["consensus"] - ours["ridge"]).min())
    lead = (found["single"] - ours[list(METHODS)].max(axis=1)).dropna()
    return [
        *warning(fits),
        *paragraph(
            "The figure compares the consensus with five decompositions, each with its best sign and order. Depending",
            f"on the kind of cohort, their concordances are: {ranges}. Ridge regression trained on the truth",
            f"(five-fold cross-validation) reaches {between(ours['ridge'])}, and the consensus reaches",
            f"{between(found['consensus'])}.",
        ),
        f"![Accuracy compared with decompositions](../results/{figure})",
        "",
        *paragraph(
            f"Single models are better than the best decomposition by at least {shown(float(lead.min()))}",
            f"(for {lead.idxmin()}). The lowest difference between the consensus and ridge regression is",
            f"{signed(gap)}.",
        ),
    ]


def real_people(folder: Folder) -> list[str]:
    """Describe Table 1 on real controls."""
    lines = ["## The same experiment in real people", ""]
    looks = folder.table("real_controls")
    if looks is None:
        return lines + missing("real_controls")
    about = folder.about("real_controls")
    from_step = folder.choose_from("real_controls")
    accuracies = summaries.over_cohorts(lambda how: summaries.accuracy(looks, from_step, how))
    found = accuracies.mean
    floors = pd.Series({"basic": 0.89, "overlap": 0.895, "scarce": 0.83, "noise": 0.885, "mild": 0.80})
    table = found[["single", "single_sd", "consensus", "pattern_agreement"]]
    table = table.set_axis(["one model", "sd of models", "consensus", "agreement"], axis=1)
    table.insert(3, "prespecified minimum", floors)
    above = found["consensus"] >= floors.reindex(found.index)
    return [
        *lines,
        *warning(looks),
        *paragraph(
            f"Here, {about['n_controls']} real healthy people (IXI) serve as controls, and {about['n_patients']} "
            "others,",
            "with simulated atrophy, as patients. All choices were made without access to the truth. There are",
            f"{of_cohorts(looks, 'for each λ')}.",
        ),
        *markdown(table, "cohort"),
        *paragraph(
            f"The prespecified minima were {reached(bool(above.all()), looks)}. Choosing λ by agreement costs at most",
            f"{shown(float(found['largest_loss'].max()))}.",
        ),
        *_against_baselines(folder, accuracies, "real_baselines", None),
    ]


def choice_of_patterns(folder: Folder) -> list[str]:
    """Describe how often the correct M is chosen."""
    lines, rows, said, drawn, without, n_models = ["## The number of patterns", ""], [], [], [], [], 0
    for name, kind in (("choice_of_patterns", "basic"), ("choice_of_patterns_mild", "mild")):
        table = folder.table(name)
        if table is None:
            lines += missing("choice_of_patterns") if kind == "basic" else []
            continue
        counts = summaries.choices(table)
        counts.columns = [f"M = {number} chosen" for number in counts.columns]
        counts.index = [f"{kind}, {'no disease' if n == 0 else f'{n} true patterns'}" for n in counts.index]
        rows.append(counts)
        n_models = int(table["n_models"].max())
        figure = figures.agreement_by_patterns(table, folder.path / f"{name}.svg")
        drawn += [*warning(table), f"![Agreement against the number of patterns, {kind}](../results/{figure})", ""]
        share = summaries.share_right(table)
        aim = f" (the target of 90 % was {reached(share >= 0.9, table)})" if kind == "basic" else ""
        without.append(float(table.loc[table["true_patterns"] == 0, "pattern_agreement"].max()))
        said.append(f"in {100 * share:.0f} % of {kind} cohorts with disease{aim}")
    if not rows:
        return lines
    return [
        *lines,
        *paragraph(
            f"The number of patterns, M, was chosen by agreement alone, with {n_models} models for each M. M = 1 was",
            "excluded: agreement is too high for a single pattern, because it cannot be confused with another.",
        ),
        *markdown(pd.concat(rows).fillna(0).astype(int), "number of cohorts"),
        *drawn,
        *paragraph(
            f"The correct number was chosen {' and '.join(said)}.",
            f"Without disease, the choice is meaningless: agreement never exceeds {shown(max(without))}.",
        ),
    ]


def table_7(folder: Folder) -> list[str]:
    """Describe the practical upper bounds of the decompositions."""
    lines = ["## Table 7: “practical upper bounds” of the decompositions", ""]
    fits = folder.table("baselines")
    if fits is None:
        return lines + missing("baselines")
    bounds = summaries.upper_bounds(fits)
    sds = summaries.upper_bounds(fits, "std").reindex(columns=list(METHODS))  # undefined for a single cohort
    ranges = "; ".join(
        f"{label} {between(bounds[method])} (paper: {between(folder.of_paper('Table 7', method))})"
        for method, label in METHODS.items()
    )
    lines += warning(fits)
    lines += paragraph(
        "Decompositions of three cohorts of each kind have three to ten components; the number and the best three are",
        "chosen with knowledge of the truth.",
        f"The concordance ranges across kinds of cohort are: {ranges}. The sd over cohorts is at most",
        f"{shown(float(sds.max(axis=None)))}.",
    )
    drawn = summaries.over_cohorts(lambda how: summaries.upper_bounds(fits, how)[list(METHODS)].rename(columns=METHODS))
    figure = figures.dots(drawn, folder.path / "table7.svg", CONCORDANCE)
    return [*lines, f"![Practical upper bounds](../results/{figure})", ""]


def table_6(folder: Folder) -> list[str]:
    """Describe the comparison with regressions in five folds."""
    lines = ["## Table 6: comparison with supervised regression, in five folds", ""]
    rows = folder.table("folds")
    if rows is None:
        return lines + missing("folds")
    found, varies = summaries.folds(rows), summaries.folds(rows, "std")
    names = {"surreal_gan_consensus": "consensus", "surreal_gan": "one model", "linear": "linear", "svr": "SVR"}
    table = pd.DataFrame(index=found.index)
    for method, label in names.items():
        table[label] = _with_paper(found[("test", method)], folder.of_paper("Table 6", method, "test"))
    table["ridge"] = found[("test", "ridge")]
    drop = (found[("train", "surreal_gan_consensus")] - found[("test", "surreal_gan_consensus")]).max()
    gap = (found[("test", "ridge")] - found[("test", "surreal_gan_consensus")]).max()
    lines += warning(rows)
    names |= {"ridge": "ridge"}
    each = rows.groupby(["kind", "seed", "method"])[["train", "test"]].mean().reset_index()
    drawn = summaries.over_cohorts(lambda how: summaries.folds(each, how)["test"][list(names)])
    drawn = drawn.changed(lambda table: table.rename(columns=names))
    figure = figures.dots(drawn, folder.path / "folds.svg", f"{CONCORDANCE}, held-out patients")
    return [
        *lines,
        *paragraph(
            "Models were trained on all controls and on the patients of four folds",
            f"({of_cohorts(rows, models='n_used')}). The table shows the concordance in the fifth fold, with the",
            "paper's figures in brackets; `folds.csv` also has the concordance in training. The sd across folds and",
            f"cohorts is at most {shown(float(varies['test'].max(axis=None)))}.",
        ),
        *markdown(table, "cohort"),
        f"![Held-out patients](../results/{figure})",
        "",
        *paragraph(
            f"The concordance of the consensus is at most {shown(float(drop))} lower in held-out people than in those",
            "used for training. That of ridge regression trained on the truth is higher by at most",
            f"{shown(float(gap))}; the paper reports gaps of 0.04 to 0.07.",
        ),
    ]


def _with_paper(mean: pd.Series, paper: pd.Series) -> list[str]:
    beside = paper.reindex(mean.index)
    return [shown(a) if b != b else f"{shown(a)} ({shown(b)})" for a, b in zip(mean, beside, strict=True)]


def _left_out(table: pd.DataFrame, value: str) -> pd.DataFrame:
    wide = table.pivot_table(value, "removed", "kind", dropna=False).reindex(list(REMOVED))
    return wide[[kind for kind in KINDS if kind in wide.columns]]


def regularisers(folder: Folder) -> list[str]:
    """Describe sections B.2 and B.3."""
    lines = ["## Sections B.2 and B.3 (Fig. S1): the weights of the objective", ""]
    looks = folder.table("robustness")
    if looks is None:
        lines += missing("robustness")
    else:
        weights, from_step = ["weight", "percent"], folder.choose_from("robustness")
        drawn = summaries.over_cohorts(lambda how: summaries.compared(looks, weights, from_step, how))
        table = drawn.mean
        figure = figures.robustness(drawn, folder.path / "fig_s1_ab.svg")
        ranges = table.groupby("kind", sort=False)[["single", "consensus"]].agg(between)
        ranges.columns = ["one model", "consensus"]
        lines += [*warning(looks)]
        told = " ".join(
            f"In {kind} cohorts, the concordance is {row['one model']} for one model and {row['consensus']} for the "
            "consensus."
            for kind, row in ranges.iterrows()
        )
        lines += paragraph(
            "Each of γ, κ, ζ, μ and η was varied from 50 to 150 % of its default, with the others unchanged and the λ",
            f"that agreement chose for the cohort ({of_cohorts(looks)}). {told} The paper shows these results only in",
            "a figure and finds accuracy “mostly robust”.",
        )
        lines += [f"![Accuracy and agreement against weights](../results/{figure})", ""]
    looks = folder.table("ablations")
    if looks is None:
        return lines + missing("ablations")
    first = folder.choose_from("ablations")
    compared = summaries.over_cohorts(lambda how: summaries.compared(looks, ["removed"], first, how))
    table = compared.mean
    lost, pictures = pd.DataFrame(index=[name for name in REMOVED if name != "nothing"]), []
    for value, title in (("single", "single models"), ("consensus", "the consensus")):
        drawn = compared.changed(partial(_left_out, value=value))
        less = drawn.mean.loc["nothing"] - drawn.mean.drop(index="nothing")
        for name, part in (("mean", less.mean(axis=1)), ("largest", less.max(axis=1))):
            lost[f"{title}, {name}"] = part.round(3) + 0.0  # avoids −0.0
        figure = figures.dots(drawn, folder.path / f"ablations_{value}.svg", f"{CONCORDANCE}, {title}")
        pictures += [f"![Terms omitted, {title}](../results/{figure})", ""]
    about = "The table shows how much concordance is lost by omitting terms, on average and at most across the kinds of"
    lines += [*warning(looks), *paragraph(about, f"cohort ({of_cohorts(looks)}).")]
    lines += [*markdown(lost, "omitted"), *pictures]
    collapsed = table.loc[table["n_sound"] < 2, "removed"].unique()
    if len(collapsed):
        lines += paragraph(
            f"For {', '.join(collapsed)}, there is no consensus, because in every model at least one R-index hardly",
            "varied between patients. The loss shown is that at the last checkpoint of basic cohorts.",
        )
    return [
        *lines,
        "Section B.3 interchanges two symbols: its “ζ = 0 (no cn loss)” refers to η, the near-control term.",
        "",
    ]
