"""Sections of the pages on the study of section 4.3, on halves of cohorts, and on cost."""

from __future__ import annotations

import figures
import pandas as pd
import summaries
from reading import Folder, between, duration, markdown, missing, paragraph, reached, shown, spread, warning

PROTOCOL_STEPS = 3 * 5 * 10 * 100_000  # model steps of the paper's search
# Model steps per second of the authors' package on two cores, by batch; measured with `make bench-official bench`.
AUTHORS_RATES = {32: 98, 300: 53}
ENOUGH = 10  # number of models beyond which nothing changes


def made_up_study(folder: Folder) -> list[str]:
    """Describe section 4.3 with covariates, sites, unequal and correlated severities, and noisy variables."""
    lines = ["## Section 4.3 under realistic study conditions", ""]
    numbers, patterns = folder.table("study"), folder.table("study_patterns")
    if numbers is None or patterns is None:
        return lines + missing("study")
    about = folder.about("study")
    lines += paragraph(
        "This study has 850 controls and 2204 patients, all simulated, so it does not concern Alzheimer's disease. Two",
        "patterns (medial temporal and frontal) cause 0 to 20 % atrophy. The first is mostly mild, and the second is",
        "absent in a third of the patients; their severities are correlated at 0.4 and increase with age. Patients are",
        "older than controls. Four sites shift and scale every region and differ in their proportion of patients. Ten",
        "noisy clinical variables depend on severities and age. The default preset and search were used with",
        f"{about.get('n_models', '–')} repetitions and adjustment for age, sex and head size, both with and without",
        "harmonisation of the sites.",
    )
    wide = numbers.pivot_table("pattern_agreement", "correction", "n_patterns", sort=False)
    wide.columns = [f"agreement, M = {number}" for number in wide.columns]
    chosen = numbers[numbers["chosen"]].set_index("correction")
    wide.insert(0, "M chosen", chosen["n_patterns"])
    wide["verdict"] = chosen["verdict"]
    lines += [*warning(numbers), *markdown(wide, "sites")]
    names = {"concordance": "concordance", "bias": "bias of severity", "rmse": "RMSE of severity"}
    names |= {"regions": "its regions among the largest changes", "site_share": "share of the error explained by site"}
    own = patterns.set_index(patterns["correction"] + ", " + patterns["pattern"])
    own = own[[name for name in names if name in own]].rename(columns=names)
    lines += markdown(own, "sites, pattern")
    return lines + _study_variables(folder) + _voxelwise(folder)


def _study_variables(folder: Folder) -> list[str]:
    found = folder.table("study_clinical")
    if found is None:
        return []
    error = (found["partial"] - found["true_partial"]).abs()
    both = ((found["q"] < 0.05) & (found["true_q"] < 0.05)).sum()
    n_true, n_false = (found["true_q"] < 0.05).sum(), ((found["q"] < 0.05) & (found["true_q"] >= 0.05)).sum()
    return [
        *paragraph(
            f"Partial correlations of the R-indices with {found['variable'].nunique()} clinical variables,",
            "adjusted for",
            "age, sex and site, were compared with those of the true severities of the same patients",
            f"(`study_clinical.csv`). The mean error is {shown(float(error.mean()))} and the largest "
            f"{shown(float(error.max()))}. Of the "
            f"{n_true}",
            f"correlations that are significant at 5 % for the true severities, {both} are significant for the "
            f"R-indices; of the other correlations, {n_false} are.",
        ),
    ]


def _voxelwise(folder: Folder) -> list[str]:
    if not (folder.path / "study_voxelwise.png").exists():
        return []
    return [
        "![Less grey matter than in controls, by pattern and subgroup](../results/study_voxelwise.png)",
        "",
        *paragraph(
            "This figure has the layout of Fig. 3 and shows simulated grey-matter maps, in which each grey-matter "
            "voxel",
            "of a standard brain takes the volume of the nearest region, with smooth noise",
            "(`experiments/paper/study.py --draw`). Rows show patients in whom one pattern prevails, by its R-index.",
        ),
    ]


def halves(folder: Folder) -> list[str]:
    """Describe sections B.7 and B.8."""
    lines = ["## Sections B.7 and B.8: split-half validation", ""]
    table = folder.table("split_half")
    if table is None:
        return lines + missing("split_half")
    table["cohorts"] = table["kind"] + ", " + table["n_patients"].astype(str) + " patients"
    names = ["train", "held_out", "agreement", "map_correlation", "lowest_map_correlation"]
    labels = [
        "concordance, training half",
        "concordance, other half",
        "agreement of the two models",
        "correlation of maps",
        "lowest over patterns",
    ]
    groups = table.groupby("cohorts", sort=False)[names]
    drawn = summaries.over_cohorts(lambda how: groups.agg(how).set_axis(labels, axis=1))
    means = drawn.mean
    lines += warning(table)
    said = {label: between(means[label]) for label in labels}
    lines += paragraph(
        "A model of each half was applied to the other, in five kinds of cohort and in a larger mild one. (The paper",
        f"shows maps of one split but gives no figures.) Concordance is {said[labels[0]]} in the training half and",
        f"{said[labels[1]]} in the other. The agreement of the two models is {said[labels[2]]}. Their maps correlate",
        f"at {said[labels[3]]}, and at {shown(float(means[labels[4]].min()))} for the least similar pattern.",
    )
    figure = figures.dots(drawn, folder.path / "split_half.svg", "concordance, agreement or correlation")
    lines += [f"![Two halves](../results/{figure})", ""]
    found = folder.table("split_half_diagnosis")
    if found is None:
        return lines
    found["cohorts"] = found["kind"] + ", " + found["n_patients"].astype(str) + " patients"
    means = found.groupby(["cohorts", "features"], sort=False)[["auc", "sd"]].mean()
    auc = means["auc"].unstack()
    paper = folder.paper[folder.paper["where"] == "Section B.8"].set_index("method")
    theirs = [spread(paper["value"][name], paper["spread"][name]) for name in ("R-indices", "regions")]
    lines += [
        *paragraph(
            "How well can controls and patients be distinguished? Support vector machines were trained in the second",
            "half, either on the R-indices from the first half's model or on all regions. The area under the curve",
            f"({int(found['n_splits'].iloc[0])} splits, 20 % held out; means of three cohorts) is",
            f"{between(auc['R-indices'])} for R-indices and {between(auc['regions'])} for regions. The difference is",
            f"{between(auc['difference'])} (sd across splits at most {shown(float(means['sd'].max()))}). In the paper,",
            f"the areas are {theirs[0]} and {theirs[1]}. Their level cannot be compared with ours, but their",
            "difference can. In a simulation, only the patterns distinguish patients from controls, so R-indices can",
            "retain all of this information. In the paper's real disease, the area is 0.034 lower for R-indices.",
        ),
        *warning(found),
    ]
    return lines


def cost(folder: Folder) -> list[str]:
    """Describe the time of the protocol."""
    lines = ["## Cost", ""]
    tables = [table for name in ("cost", "cost_default") if (table := folder.table(name)) is not None]
    if not tables:
        lines += missing("cost")
    else:
        lines += _protocol(pd.concat(tables, ignore_index=True))
    return lines


def rate(folder: Folder) -> list[str]:
    """Describe the steps per second, and how they depend on sizes."""
    lines = ["## Rate of training", "", *_device(folder)]
    growth = [table for name in ("growth", "growth_cores") if (table := folder.table(name)) is not None]
    if growth:
        lines += _growth(pd.concat(growth, ignore_index=True), folder)
    return lines


def _protocol(table: pd.DataFrame) -> list[str]:
    best = table.loc[table["seconds"].idxmin()]
    return [
        *warning(table),
        *paragraph(
            "The paper's protocol comprises three values of M, five of λ and ten models for each combination, trained",
            "for 100,000 steps in batches of 112. If all 150 models are trained together, the protocol takes",
            f"{best['seconds']:.0f} s on one {best['device']}, after {best['compilation']:.0f} s of compilation. With",
            f"the update order of the paper's Algorithm 1, it takes {table['seconds'].max():.0f} s. One target (95 s)",
            f"was {reached(best['seconds'] <= 95, table)}; the other (60 s) was",
            f"{reached(best['seconds'] <= 60, table)}.",
        ),
    ]


def _device(folder: Folder) -> list[str]:
    found = folder.table("device_speed")
    if found is None:
        return []
    names = ["batch", "models", "patterns", "formulas"]
    usual = found[found["variant"] == "as it is"].set_index(names)
    tried = found[found["variant"] != "as it is"].groupby(names)["rate"].max()
    gain = float((tried / usual["rate"]).max()) - 1
    most = 100 * usual["share of memory"].max()
    return paragraph(
        f"One {found['device'].iloc[0]} performs up to {usual['rate'].max():,.0f} model steps per second, using "
        f"{most:.0f} %",
        "of its memory bandwidth (bytes counted by XLA, relative to 4.8 TB/s). Single-step execution, float32, "
        "bfloat16",
        f"data or moments, flat updates and CUDA graphs gain at most {100 * gain:.1f} % (`results/device_speed.csv`).",
    )


def _growth(table: pd.DataFrame, folder: Folder) -> list[str]:
    lines = [
        *warning(table),
        "The figure shows how the rate depends on each size (`results/growth.csv`, `growth_cores.csv`):",
        "",
    ]
    figure = figures.growth(table, folder.path / "growth.svg")
    lines += [f"![Training rate against each size](../results/{figure})", ""]
    at_112 = table[table["batch"] == 112]
    hours = [
        f"{duration(PROTOCOL_STEPS / rate)} at {rate:,.0f} model steps per second ({device})"
        for device, rate in zip(at_112["device"], at_112["rate"], strict=True)
    ]
    theirs = " to ".join(f"{PROTOCOL_STEPS / rate / 3600:.0f}" for rate in sorted(AUTHORS_RATES.values(), reverse=True))
    if hours:
        lines += paragraph(
            f"Extrapolated from these short runs, the whole protocol of {PROTOCOL_STEPS:,} model steps would take",
            f"{'; '.join(hours)}. The authors' package would take {theirs} h on two cores: it performs",
            f"{AUTHORS_RATES[32]} steps per second with batches of 32 and {AUTHORS_RATES[300]} with 300",
            "(`make bench-official bench`).",
        )
    return lines


def models_needed(folder: Folder) -> list[str]:
    """Describe how many models a consensus needs."""
    table = folder.table("models_and_people")
    if table is None:
        return missing("models_and_people")
    models = summaries.enough_models(table)
    picture = figures.enough(models, folder.path / "models.svg")
    enough = models.index[models.index <= ENOUGH][-1]  # a smoke run has fewer
    return [
        "## How many models?",
        "",
        *warning(table),
        *paragraph(
            "When models are drawn at random from a set of 30 (20 draws, five kinds of cohort), the "
            "concordance of their consensus rises from",
            f"{shown(float(models['concordance'].iloc[0]))} with {models.index[0]} models to",
            f"{shown(float(models.loc[enough, 'concordance']))} with {enough}; adding further models makes no "
            "difference.",
        ),
        *markdown(models.loc[models.index <= ENOUGH], "models"),
        f"![Concordance against the number of models](../results/{picture})",
        "",
    ]


def people_needed(folder: Folder) -> list[str]:
    """Describe how many people a study needs."""
    table = folder.table("models_and_people")
    if table is None:
        return missing("models_and_people")
    drawn = summaries.over_cohorts(lambda how: summaries.enough_people(table, how=how))
    seeds = table[table["question"] == "people"].groupby("kind")["seed"].nunique()
    of_people = f"{between(seeds)} cohorts of each kind"
    figure = figures.people(drawn, summaries.enough_people(table, "ridge"), folder.path / "people.svg")
    return [
        "## How many people?",
        "",
        *paragraph(
            f"The table shows the concordance of a ten-model consensus, averaged across {of_people}. In the",
            "figure, dashed lines show the concordance of ridge regression trained on the truth.",
        ),
        *markdown(drawn.mean, "patients"),
        f"![Concordance plotted against the number of patients](../results/{figure})",
        "",
    ]
