"""Sections of the pages on the paper's other tables at its own difficulty, and on its whole protocol."""

from __future__ import annotations

import pandas as pd
import summaries
from cases import KINDS
from reading import METHODS, NAMES, Folder, between, markdown, paragraph, shown

LITTLE = 0.003  # of concordance: a term that costs no more is unimportant
_BOUNDED = ("nmf", "lda", "fa")  # in Table 7
_SAMPLE = {
    "default, one model": "default, one model (mean of five)",
    "default": "default, consensus of five",
    "linear": "its linear models, consensus of five",
    "ica": "ICA, best components",
    "nmf": "NMF, best components",
    "ridge": "ridge regression trained on the truth",
}


def regression_fit(folder: Folder) -> pd.DataFrame | None:
    """Return scores of regressions trained on the truth, here and in the paper's Table 6, and their difference."""
    told, noisy = folder.table("matched_regression"), folder.table("matched_noise")
    if told is None:
        return None
    rows = {}
    for method, label in (("linear", "linear"), ("svr", "SVR")):
        means = {
            name: of[of["method"] == method].groupby("kind")[["train", "test"]].mean()
            for name, of in (("spread", told), ("noise", noisy))
            if of is not None
        }
        for kind in KINDS:
            row = {}
            for part in ("train", "test"):
                row[f"paper, {part}"] = folder.of_paper("Table 6", method, part)[kind]
                row |= {f"{name}, {part}": of.loc[kind, part] for name, of in means.items()}
            row["off"] = max(abs(row[f"spread, {part}"] - row[f"paper, {part}"]) for part in ("train", "test"))
            rows[f"{NAMES[kind]}, {label}"] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def other_sections(folder: Folder) -> list[str]:
    """Describe Tables 6 and 7 and section B.3 if healthy people vary as much as the paper's seem to."""
    return [*_folds(folder), *decompositions(folder), *_bounds(folder), *_terms(folder)]


def _folds(folder: Folder) -> list[str]:
    own, ours = folder.table("matched_folds"), folder.table("matched_default_folds")
    if own is None or ours is None:
        return []
    table = pd.DataFrame(index=pd.Index(KINDS))
    for part in ("train", "test"):
        table[f"paper, {part}"] = folder.of_paper("Table 6", "surreal_gan", part)
        table[f"`paper`, {part}"] = own[own["method"] == "surreal_gan"].groupby("kind")[part].mean()
        table[f"default, {part}"] = ours.groupby("kind")[part].mean()
    told = own[own["method"] == "linear"].groupby("kind")["test"].mean()
    gaps = told - table["default, test"], folder.of_paper("Table 6", "linear", "test") - table["paper, test"]
    ranges = [f"{shown(float(gap.min()))} to {shown(float(gap.max()))}" for gap in gaps]
    return [
        *paragraph(
            "**Table 6** was repeated in five folds of three cohorts of each kind, with single models: two per fold",
            "for `paper` (λ = 0.4), and one for the default (λ = 0.8). In held-out patients, the concordance of the",
            f"default is {ranges[0]} below that of linear regression, compared with {ranges[1]} in the paper.",
        ),
        *markdown(summaries.by_kind(table), "cohort"),
        *_error(over_cohorts(pd.concat([own[own["method"] == "surreal_gan"], ours]), ["method"], "test")),
    ]


def over_cohorts(table: pd.DataFrame, by: list[str], value: str) -> float:
    """Return the largest standard error over cohorts of the same kind."""
    each = table.groupby(["kind", *by, "seed"])[value].mean()
    return float(each.groupby(["kind", *by]).sem().max())


def _error(largest: float) -> list[str]:
    return [f"Standard errors over cohorts are at most {shown(largest)}.", ""]


def decompositions(folder: Folder) -> list[str]:
    """Describe the decompositions of Table 1 if healthy people vary as much as the paper's seem to."""
    fits = folder.table("matched_baselines")
    if fits is None:
        return []
    three = summaries.baselines(fits)
    rows = {
        label: {"ours": between(three[method]), "paper": between(folder.of_paper("Table 1", method))}
        for method, label in METHODS.items()
    }
    return [
        *paragraph(
            "**Decompositions** (Table 1) with three components were computed in three cohorts of each kind. The table",
            "shows the range of their concordance across kinds, which was not used to choose the healthy variation.",
        ),
        *markdown(pd.DataFrame.from_dict(rows, orient="index"), "method"),
    ]


def _bounds(folder: Folder) -> list[str]:
    fits, looks, ours = (folder.table(name) for name in ("matched_baselines", "matched_paper", "matched"))
    if fits is None or looks is None or ours is None:
        return []
    bounds = summaries.upper_bounds(fits)
    table = pd.DataFrame(index=bounds.index)
    for method in _BOUNDED:
        table[f"{METHODS[method]} (paper)"] = [
            f"{shown(value)} ({shown(paper)})"
            for value, paper in zip(bounds[method], folder.of_paper("Table 7", method).reindex(KINDS), strict=True)
        ]
    return [
        *paragraph(
            "**Table 7** gives “practical upper bounds” for decompositions with three to ten components, the best",
            "three of which are selected using the truth. Single models trained with `paper` (Table 1) fall below the",
            f"bound for NMF in {_below(looks, bounds)} of {len(KINDS)} kinds of cohort"
            + (", whereas those trained with the default exceed it in all of them." if _above(ours, bounds) else "."),
        ),
        *markdown(table, "cohort"),
        *_error(float((summaries.upper_bounds(fits, "sem")[list(_BOUNDED)]).max(axis=None))),
    ]


def _below(looks: pd.DataFrame, bounds: pd.DataFrame) -> int:
    last = looks[looks["step"] == looks["step"].max()]
    chosen = last.loc[last.groupby(["kind", "seed"])["pattern_agreement"].idxmax()].groupby("kind")["single"].mean()
    return int((chosen < bounds["nmf"].set_axis(KINDS).reindex(chosen.index)).sum())


def _above(ours: pd.DataFrame, bounds: pd.DataFrame) -> bool:
    own = ours[ours["preset"] == "default"].groupby("kind")["single"].mean()
    return bool((own > bounds["nmf"].set_axis(KINDS).reindex(own.index)).all())


def _terms(folder: Folder) -> list[str]:
    looks = folder.table("matched_ablations")
    if looks is None:
        return []
    wide = looks.pivot_table("single", "kind", "removed")
    cost = (-wide.sub(wide["nothing"], axis=0)).drop(columns="nothing")
    single = cost.drop(columns="pseudo-Smile-GAN")
    n_little, n_all = int((single <= LITTLE).sum().sum()), int(single.notna().sum().sum())
    cost.columns = [name.replace("_", " ") for name in cost.columns]
    return [
        *paragraph(
            "**Section B.3** was repeated with the paper's settings: λ chosen by agreement, 100,000 steps, three",
            "cohorts of each kind and three models for each. Omitting one or two terms lowers the concordance of",
            f"single models by at most {LITTLE} in {n_little} of {n_all} cases; omitting all four lowers it by",
            f"{shown(float(cost['pseudo-Smile-GAN'].min()))} to {shown(float(cost['pseudo-Smile-GAN'].max()))}.",
        ),
        *markdown(summaries.by_kind(cost), "cohort"),
        *_error(over_cohorts(looks.assign(cost=_costs(looks)), ["removed"], "cost")),
    ]


def _costs(looks: pd.DataFrame) -> pd.Series:
    """Return the cost of each omission for single models, relative to the same cohort without omissions."""
    whole = looks[looks["removed"] == "nothing"].set_index(["kind", "seed"])["single"]
    return whole.reindex(pd.MultiIndex.from_frame(looks[["kind", "seed"]])).to_numpy() - looks["single"]


def whole_protocol(folder: Folder) -> list[str]:
    """Describe section 4.3 and the authors' sample, with M and λ chosen by agreement alone."""
    study, sample, peers = (folder.table(name) for name in ("own_study", "own_authors", "peers"))
    lines = ["## The paper's whole protocol", ""]
    if study is None or sample is None:
        return []
    wide = study.pivot(index="n_patterns", columns="orthogonality", values="agreement")
    wide.index, wide.columns = [f"M = {n}" for n in wide.index], [f"λ = {value:g}" for value in wide.columns]
    best, right = study[study["chosen"] == True].iloc[0], study.dropna(subset="concordance")  # noqa: E712
    lines += paragraph(
        "**Section 4.3**: the experiment was repeated in a simulated study of 850 controls and 2204 patients, with",
        f"four sites and two patterns. With the `paper` preset, {best['n_models']:.0f} models were trained for each",
        "combination of two to four patterns and five values of λ. Agreement alone selects",
        f"M = {best['n_patterns']:.0f}, which is {'correct' if best['n_patterns'] == 2 else 'wrong'}, and",
        f"λ = {best['orthogonality']:g}. With these values, single models reach a concordance of",
        f"{shown(float(best['concordance']))} with the truth; across the five values of λ, concordance ranges from",
        f"{shown(float(right['concordance'].min()))} to {shown(float(right['concordance'].max()))}.",
    )
    lines += markdown(wide, "agreement")
    own = sample[sample["method"] == "paper"]
    chosen = own[own["chosen"].astype(str) == "True"].iloc[0]
    table = {f"`paper`, one model, λ = {chosen['orthogonality']:g} by agreement": chosen["concordance"]}
    table |= {"`paper`, one model, best λ": own["concordance"].max()}
    if peers is not None:
        theirs = peers[(peers["cohort"] == "authors' sample") & (peers["method"] == "Surreal-GAN")]
        table |= {"the authors' package": theirs["concordance"].mean()}
    known = sample.set_index("method")["concordance"]
    table |= {name: known[method] for method, name in _SAMPLE.items() if method in known}
    lines += paragraph(
        "**The authors' sample** (600 controls, 900 patients, 100 regions, three patterns) was published with their",
        "package. The table shows concordance with the truth. For `paper`, this is the mean of",
        f"{own['n_models'].max():.0f} models for each λ; for the authors' package, it is the value for one model out",
        "of six.",
    )
    lines += markdown(pd.DataFrame({"concordance": pd.Series(table, dtype=float)}), "method")
    return lines + _published_maps(folder)


def _published_maps(folder: Folder) -> list[str]:
    """Show the maps of the authors' published model, compared with the paper's description of Fig. 3."""
    maps = folder.table("authors_maps")
    if maps is None:
        return []
    wide = maps.pivot(index="region", columns="pattern", values="change_sd")
    strongest = [wide[k].nsmallest(3) for k in wide]
    first, second = ("{}, {} and {}".format(*(name.split(" ", 1)[1] for name in of.index)) for of in strongest)
    return [
        *paragraph(
            "**Fig. 3**: the pictures show the changes that the authors' published model of Alzheimer's disease",
            "(72 regions; `authors_maps.py`) produces at severity 1 for each pattern, in units of the controls' SD. As",
            f"in the paper, the first pattern affects temporal and parietal cortex, especially the {first}. The",
            f"second affects the medial temporal lobe, especially the {second}.",
        ),
        "![First pattern of the published model](../results/authors_maps_1.svg)",
        "",
        "![Second pattern of the published model](../results/authors_maps_2.svg)",
        "",
    ]


def authors_package(folder: Folder) -> pd.Series | None:
    """Return the concordance of the authors' package in cohorts of the paper's difficulty, by kind."""
    peers = folder.table("peers")
    if peers is None:
        return None
    own = peers[(peers["method"] == "Surreal-GAN") & (peers["part"] == "whole") & peers["cohort"].isin(list(NAMES))]
    return own.groupby("cohort")["concordance"].mean().reindex(KINDS)
