"""Sections of the page about the study of section 4.3, about halves of cohorts, and about cost."""

from __future__ import annotations

import figures
import pandas as pd
import summaries
from reading import Folder, duration, markdown, missing, paragraph, reached, shown, signed, warning

PROTOCOL_STEPS = 3 * 5 * 10 * 100_000  # models' steps of the paper's search
# Models' steps per second of the authors' package on two cores, by batch; measured with `make bench-official bench`.
AUTHORS_RATES = {32: 98, 300: 53}


def ad_like(folder: Folder) -> list[str]:
    """Chosen M, and correlations beside the true ones."""
    lines = ["## Section 4.3, Table 2 and Fig. 3: a study as large as the paper's", ""]
    lines += paragraph(
        "The paper's data (iSTAGING) are not public. These are simulated people, as many as in the paper (850",
        "controls, 2204 patients), with two known patterns and ten clinical variables drawn to have the correlations",
        "of Table 2 with the true severities. This shows whether the procedure finds the number of patterns and the",
        "correlations where they are known. It says nothing about Alzheimer's disease, and it cannot confirm the",
        "paper's clinical findings.",
    )
    settings, variables = folder.table("ad_like"), folder.table("ad_like_clinical")
    if settings is None or variables is None:
        return lines + missing("ad_like")
    known = settings.dropna(subset="pattern_agreement")
    chosen = known.loc[known.groupby(["kind", "seed"])["pattern_agreement"].idxmax()]
    names = ["n_patterns", "orthogonality", "pattern_agreement", "consensus"]
    table = chosen.set_index(chosen["kind"] + ", cohort " + chosen["seed"].astype(str))[names]
    table = table.rename(columns={"n_patterns": "M chosen", "orthogonality": "λ chosen", "consensus": "concordance"})
    right = int((chosen["n_patterns"] == 2).sum())
    lines += [*warning(settings), *markdown(table, "study")]
    lines += [
        f"Two patterns, the truth and the paper's own choice, were chosen in {right} of {len(chosen)} studies.",
        "",
    ]
    return lines + _clinical(folder, variables, settings) + _subgroups(folder)


def _clinical(folder: Folder, variables: pd.DataFrame, settings: pd.DataFrame) -> list[str]:
    found = summaries.clinical(variables, settings)
    figure = figures.correlations(found, folder.path / "clinical.svg")
    kind = found["kind"].iloc[-1]
    own = found[found["kind"] == kind].set_index("variable")
    table = pd.DataFrame(index=list(dict.fromkeys(own.index)))
    paper = {
        1: folder.of_paper("Table 2", measure="correlation with r2 (medial temporal)"),
        2: folder.of_paper("Table 2", measure="correlation with r1 (diffuse)"),
    }
    for pattern, label in ((1, "medial temporal"), (2, "frontal (in the paper: diffuse)")):
        of = own[own["pattern"] == pattern]
        table[f"{label}: true"] = of["truth"].map(signed)
        table["R-index" + " " * pattern] = of["consensus"].map(signed)
        table["paper" + " " * pattern] = paper[pattern].map(signed)
    error = (found["consensus"] - found["truth"]).abs()
    shrink = (found["consensus"] * found["truth"]).sum() / (found["truth"] ** 2).sum()
    return [
        *paragraph(
            f"Correlations with the clinical variables ({kind}, means over cohorts; R-indices of the consensus at the",
            "chosen M). The paper's figures are correlations with its R-indices, and are the truth's model here:",
        ),
        *markdown(table, "variable"),
        f"![Correlations by R-indices against those by the truth](../results/{figure})",
        "",
        *paragraph(
            f"Over both kinds of cohorts: mean error {shown(float(error.mean()))}, largest",
            f"{shown(float(error.max()))}; R-indices show",
            f"{100 * shrink:.0f} % of a true correlation: a measure with error shows less than all of it.",
        ),
    ]


def _subgroups(folder: Folder) -> list[str]:
    table = folder.table("ad_like_subgroups")
    if table is None:
        return []
    names = ["n", "found", "n_regions", "found_unaffected", "n_unaffected", "mean_z", "mean_z_unaffected"]
    means = table.groupby(["kind", "pattern", "subgroup"], sort=False)[names].mean().reset_index()
    index = means["kind"] + ", pattern " + means["pattern"].astype(str) + ", " + means["subgroup"]
    shown_table = pd.DataFrame(
        {
            "patients": means["n"].round().astype(int),
            "regions of the pattern found": _of(means["found"], means["n_regions"]),
            "unaffected regions found": _of(means["found_unaffected"], means["n_unaffected"]),
            "mean z in the pattern": means["mean_z"],
            "mean z elsewhere": means["mean_z_unaffected"],
        }
    ).set_index(index)
    wide = means.assign(row=means["kind"] + ", pattern " + means["pattern"].astype(str))
    wide = wide.pivot_table("mean_z", "row", "subgroup", sort=False)
    figure = figures.dots(
        wide, folder.path / "ad_like_subgroups.svg", "mean z of the pattern's regions (sd of controls)"
    )
    return [
        *paragraph(
            "Fig. 3 in layout: patients whose other R-index is below 0.4, by their own R-index (below 0.4, up to 0.7,",
            "above), against controls; regions smaller at a false discovery rate of 5 %:",
        ),
        *markdown(shown_table, "subgroup", 2),
        f"![Regions of each pattern by subgroup](../results/{figure})",
        "",
    ]


def _of(some: pd.Series, all_of: pd.Series) -> list[str]:
    return ["–" if a != a else f"{a:.1f} of {b:.0f}" for a, b in zip(some, all_of, strict=True)]


def halves(folder: Folder) -> list[str]:
    """Sections B.7 and B.8."""
    lines = ["## Sections B.7 and B.8: the other half of the people", ""]
    table = folder.table("split_half")
    if table is None:
        return lines + missing("split_half")
    table["cohorts"] = table["kind"] + ", " + table["n_patients"].astype(str) + " patients"
    names = ["train", "held_out", "agreement", "map_correlation", "lowest_map_correlation"]
    means = table.groupby("cohorts", sort=False)[names].mean()
    means.columns = [
        "concordance, trained on",
        "concordance, other half",
        "agreement of the two models",
        "correlation of maps",
        "of the least alike pattern",
    ]
    lines += warning(table)
    lines += ["A model of each half, applied to the other (the paper shows maps of one split, no figures):", ""]
    lines += markdown(means, "cohorts")
    figure = figures.dots(means, folder.path / "split_half.svg", "concordance, agreement or correlation")
    lines += [f"![Two halves](../results/{figure})", ""]
    found = folder.table("split_half_diagnosis")
    if found is None:
        return lines
    found = found.set_index("features")
    paper = folder.paper[folder.paper["where"] == "Section B.8"].set_index("method")
    rows = pd.DataFrame(
        {
            "AUC": [f"{shown(row['auc'])} ± {shown(row['sd'])}" for _, row in found.iterrows()],
            "paper": [
                f"{shown(paper['value'][name])} ± {shown(paper['spread'][name])}" if name in paper.index else "–"
                for name in found.index
            ],
        },
        index=found.index,
    )
    lines += [
        *paragraph(
            "Controls or patients? Support vector machines in the second half, on R-indices of the first half's model",
            f"and on all regions ({int(found['n_splits'].iloc[0])} splits, 20 % left out; ± is the spread over",
            "splits). Simulated people, so the level is not the paper's; the difference between the two rows",
            "can be compared:",
        ),
        *warning(found),
        *markdown(rows, "features"),
        *paragraph(
            "In a simulation the patterns hold all that tells patients from controls, so R-indices can keep it all; in",
            "the paper's real disease they lost 0.034.",
        ),
    ]
    return lines


def cost(folder: Folder) -> list[str]:
    """Time of the protocol, growth, models and people needed."""
    lines = ["## Cost", ""]
    tables = [table for name in ("cost", "cost_default") if (table := folder.table(name)) is not None]
    if not tables:
        lines += missing("cost")
    else:
        lines += _protocol(pd.concat(tables, ignore_index=True))
    growth = [table for name in ("growth", "growth_cores") if (table := folder.table(name)) is not None]
    if growth:
        lines += _growth(pd.concat(growth, ignore_index=True), folder)
    return lines + _guidance(folder)


def _protocol(table: pd.DataFrame) -> list[str]:
    lines = warning(table)
    wide = table.pivot_table("seconds", ["part", "device"], "n_patterns")
    wide["all"] = wide.sum(axis=1, min_count=3)
    wide.columns = [f"M = {name}" if name != "all" else "all" for name in wide.columns]
    totals = wide["all"]
    wide.index = [f"{part} ({device})" for part, device in wide.index]
    best = float(totals.min())
    return [
        *lines,
        *paragraph(
            "Three M, five λ, ten models, 100,000 steps, batches of 112, through `rindices.core.train`;",
            "seconds after compilation:",
        ),
        *markdown(wide, "formulas", 1),
        f"Aim, 150 s on one H200: {reached(best <= 150, table)}; 60 s: {reached(best <= 60, table)}.",
        "",
    ]


def _growth(table: pd.DataFrame, folder: Folder) -> list[str]:
    names = ["n_regions", "n_people", "n_patterns", "n_models", "batch"]
    rows = table.set_index(pd.Index(table["device"], name="device"))[[*names, "rate"]].round()
    labels = ["regions", "people", "patterns", "models", "batch", "models' steps per second"]
    rows = rows.astype(int).set_axis(labels, axis=1)
    lines = [*warning(table), "How the rate changes with each size:", "", *markdown(rows, "device")]
    figure = figures.growth(table, folder.path / "growth.svg")
    lines += [f"![Rates against sizes](../results/{figure})", ""]
    at_112 = table[table["batch"] == 112]
    hours = [
        f"{duration(PROTOCOL_STEPS / rate)} at {rate:,.0f} models' steps per second ({device})"
        for device, rate in zip(at_112["device"], at_112["rate"], strict=True)
    ]
    theirs = " to ".join(f"{PROTOCOL_STEPS / rate / 3600:.0f}" for rate in sorted(AUTHORS_RATES.values(), reverse=True))
    if hours:
        lines += paragraph(
            f"The whole protocol, {PROTOCOL_STEPS:,} models' steps, extrapolated from these short runs:",
            f"{'; '.join(hours)}. The authors' package on two cores would take {theirs} h: it makes",
            f"{AUTHORS_RATES[32]} steps a second with batches of 32 and {AUTHORS_RATES[300]} with 300",
            "(`make bench-official bench`).",
        )
    return lines


def _guidance(folder: Folder) -> list[str]:
    table = folder.table("models_and_people")
    if table is None:
        return missing("models_and_people")
    people = summaries.enough_people(table)
    ceilings = summaries.enough_people(table, "ridge")
    models = summaries.enough_models(table)
    enough = figures.enough(models, folder.path / "models.svg")
    figure = figures.people(people, ceilings, folder.path / "people.svg")
    return [
        "### How many models?",
        "",
        *warning(table),
        *paragraph(
            "Consensus of models drawn from 30 (20 draws, five kinds of cohorts); two consensuses that share no model",
            "are compared with each other:",
        ),
        *markdown(models, "models"),
        f"![Concordance against the number of models](../results/{enough})",
        "",
        "### How many people?",
        "",
        *paragraph(
            "Concordance of the consensus of ten models with the truth; dashed in the figure: ridge regression that is",
            "told the truth:",
        ),
        *markdown(people, "patients"),
        f"![Accuracy against the number of patients](../results/{figure})",
        "",
    ]
