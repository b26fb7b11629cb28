"""A paragraph for the methods section of a paper; every number comes from ``summary.json`` and ``run.toml``."""

import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from rindices.report.citations import REFERENCES
from rindices.report.pieces import counted, joined, listed, number, p_words
from rindices.report.read import RunResults
from rindices.report.settings import removed_covariates
from rindices.report.subgroups import DIFFERENCE
from rindices.report.summary import CALIBRATED, REFITS
from rindices.report.words import model_words

_WEIGHTS = {
    "change": "γ",
    "decomposition": "κ",
    "reconstruction": "ζ",
    "orthogonality": "λ",
    "monotonicity": "μ",
    "near_control": "η",
}


class Methods(NamedTuple):
    """A paragraph in plain text, and what it cites."""

    paragraph: str
    references: list[str]


def methods_section(results: RunResults) -> Methods:
    """Return the paragraph and its references."""
    options = _training_options(results.settings)
    parts = (
        (_people, _correction, _scoring) if results.applied else (_people, _correction, _training, _choice, _verdict)
    )
    sentences = [sentence for part in parts for sentence in part(results.summary, options)]
    sentences += [*_analyses(results), *_software(results.summary)]
    paragraph = " ".join(sentences)
    return Methods(paragraph, [text for cited, text in REFERENCES.items() if cited in paragraph])


def _training_options(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text).get("training") or {}
    except tomllib.TOMLDecodeError:
        return {}  # the paragraph goes without what it cannot read


def _people(summary: dict[str, Any], _: dict[str, Any]) -> Iterator[str]:
    excluded = summary.get("excluded") or {}
    if summary.get("n_read") is not None:
        without = "none was excluded"
        if sum(excluded.values()):
            reasons = [f"{reason}: {value:,}" for reason, value in excluded.items() if value]
            without = f"{sum(excluded.values()):,} were excluded ({'; '.join(reasons)})"
        rows = "scans, of which" if summary.get("visits") else "people, of whom"
        yield f"The table had {summary['n_read']:,} {rows} {without}."
    unit = f" in {summary['unit']}" if summary.get("unit") else ""
    regions = f"{counted(summary['n_features'], 'regional measure')}{unit}"
    who = "The people of the table"
    if summary.get("n_controls") is not None and summary.get("n_patients") is not None:
        controls = f"{counted(summary['n_controls'], 'control')}{_labels(summary.get('control_labels'))}"
        who = f"{controls} and {counted(summary['n_patients'], 'patient')}{_labels(summary.get('patient_labels'))}"
    others = ""
    if summary.get("n_other"):
        others = f"; {counted(summary['n_other'], 'other person', 'other people')} received R-indices only"
    yield f"{who} were described by {regions}{others}."
    if summary.get("visits") and not summary.get("applied"):
        yield "Of people with several visits, the first was used for training, and all were given R-indices."


def _labels(labels: Any) -> str:
    return f" ({joined(labels)})" if labels else ""


def _correction(summary: dict[str, Any], _: dict[str, Any]) -> Iterator[str]:
    correction, controls = summary.get("correction") or {}, "controls"
    if summary.get("applied"):
        controls = "the controls that the model was trained with"
        if "correction" not in summary:  # it may be more than a line for each covariate
            removed = listed([str(name) for name in summary.get("covariates") or []])
            if removed:
                yield f"Effects of {removed} were removed as in the model."
            return
    smooth = [str(name) for name in correction.get("smooth") or []]
    covariates = removed_covariates(summary)
    if correction.get("proportion"):
        yield (
            f"Regions were divided by {correction['proportion']} and multiplied by its mean in {controls} "
            "(proportional correction for head size)."
        )
    if correction.get("site"):
        number_of = f"{correction['n_sites']:,} sites" if correction.get("n_sites") else "sites"
        kept = f", while the effects of {listed(covariates)} were preserved" if covariates else ""
        which, cited = "ComBat", "Johnson et al., 2007; Fortin et al., 2018"
        if smooth:
            which, cited = "ComBat with splines as in ComBat-GAM", f"{cited}; Pomponio et al., 2020"
        yield (
            f"Differences in mean and variance between {number_of} ({correction['site']}) were estimated in {controls} "
            f"and removed with {which} ({cited}){kept}."
        )
    if covariates:
        spline = f", with a spline for {listed(smooth)}" if smooth else ""
        pairs = [" × ".join(str(name) for name in pair) for pair in correction.get("interactions") or []]
        crossed = f" and the {'interaction' if len(pairs) == 1 else 'interactions'} {listed(pairs)}" if pairs else ""
        yield (
            f"Effects of {listed(covariates)}{crossed} were estimated in {controls} by linear regression{spline}, "
            "and removed from everybody."
        )
    yield f"Each region was then scaled by its mean and standard deviation in {controls}."


def _scoring(summary: dict[str, Any], _: dict[str, Any]) -> Iterator[str]:
    model = model_words(summary.get("model"))
    which = f" ({model})" if model else ""
    yield (
        f"A Surreal-GAN model (Yang et al., 2022) that had been trained before{which} gave each person one R-index for "
        f"{counted(summary['n_patterns'], 'pattern')}. Nothing was trained on these people; corrections and scales are "
        "the model's."
    )


def _training(summary: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
    preset = f" with the preset “{summary['preset']}”" if summary.get("preset") else ""
    weights = ", ".join(
        f"{name.replace('_', ' ')}{f' {_WEIGHTS[name]}' if name in _WEIGHTS else ''} = {value:g}"
        for name, value in (summary.get("weights") or {}).items()
    )
    weighted = f" and the loss weights {weights}" if weights else ""
    limit = f", for at most {options['max_steps']:,} steps" if isinstance(options.get("max_steps"), int) else ""
    seed = f" (seed {summary['seed']})" if summary.get("seed") is not None else ""
    yield (
        "Disease patterns and the severity of each in each person, the R-indices, were learned by Surreal-GAN "
        f"(Yang et al., 2022){preset}{weighted}{limit}. Training was repeated {summary['repetitions']} times from "
        f"different random starts{seed}."
    )
    if summary.get("correlation"):
        yield "Severities were allowed to be correlated (Gaussian copula); they were not taken to be independent."


def _choice(summary: dict[str, Any], _: dict[str, Any]) -> Iterator[str]:
    search, patterns = summary.get("search") or {}, counted(summary["n_patterns"], "pattern")
    tried = [str(value) for value in search.get("n_patterns") or []]
    if summary["patterns_chosen_from_data"]:
        among = f" among {listed(tried)}" if len(tried) > 1 else ""
        yield (
            f"The number of patterns, {summary['n_patterns']}, was chosen{among} by the agreement of repeated "
            "trainings (mean pairwise concordance of R-indices in patients, after patterns were matched)."
        )
    else:
        yield f"{patterns} {'was' if summary['n_patterns'] == 1 else 'were'} asked for."
    weights = [f"{value:g}" for value in search.get("orthogonality") or []]
    if len(weights) > 1:
        yield f"The weight of orthogonality was chosen among {listed(weights)} in the same way."
    step = (
        f"; the checkpoint with the best agreement, step {summary['step']:,}, was used" if summary.get("step") else ""
    )
    used = summary.get("members_used")
    used = len(used) if isinstance(used, list) else used
    if used is not None:
        left_out = len(summary.get("members_left_out") or [])
        without = (
            f" ({left_out} diverged, collapsed or disagreed and {'was' if left_out == 1 else 'were'} left out)"
            if left_out
            else ""
        )
        yield (f"R-indices are the mean of {used} of {counted(summary['repetitions'], 'repetition')}{without}{step}.")


def _verdict(summary: dict[str, Any], _: dict[str, Any]) -> Iterator[str]:
    names = {
        "pattern_agreement": "pattern agreement",
        "dimension_correlation": "dimension correlation",
        "difference_correlation": "difference correlation",
    }
    agreement = summary.get("agreement") or {}
    values = [
        f"{words} {number(agreement[name], 3)}" for name, words in names.items() if agreement.get(name) is not None
    ]
    if values:
        yield f"Repeated trainings agreed with {listed(values)}."
    null = summary.get("null") or {}
    if null.get("statistic") is None:
        return
    among = f" of {null['repetitions']} repetitions" if null.get("repetitions") else ""
    if null["method"] == REFITS and null.get("p") is not None:
        yield (
            f"The agreement{among}, {number(null['statistic'], 3)}, was compared with that of {null['n']} refits "
            f"in which corrected measures were permuted over people (Freedman & Lane, 1983) "
            f"({p_words('p', null['p'])})."
        )
    if null["method"] == CALIBRATED and null.get("threshold") is not None:
        where = "above" if null["statistic"] > null["threshold"] else "not above"
        yield (
            f"The agreement{among}, {number(null['statistic'], 3)}, was {where} {number(null['threshold'], 3)}, a "
            "threshold calibrated on simulated cohorts without disease."
        )


def _analyses(results: RunResults) -> Iterator[str]:
    found, corrected = results.analyses, False
    if found.associations is not None:
        known = found.associations["statistic"]
        kinds = {"Pearson r": "Pearson correlation", "point-biserial r": "point-biserial correlation", "eta²": "eta²"}
        used = listed([words for name, words in kinds.items() if (known == name).any()])
        clinical = [str(name) for name in results.summary.get("clinical") or []] or list(
            dict.fromkeys(found.associations["variable"])
        )
        covariates = [str(name) for name in results.summary.get("covariates") or []]
        partial = found.associations["partial"].notna().any()
        given = f", also given {listed(covariates) or 'the covariates'}" if partial else ""
        yield f"R-indices were related to {listed(clinical)} by {used}{given}, with 95 % intervals."
        corrected = True
    limits = results.summary.get("subgroup_limits") or []
    if found.subgroup_sizes is not None and len(limits) == 2:
        low, high = (f"{value:g}" for value in limits)
        yield (
            f"For each pattern, patients with an R-index below {low}, between {low} and {high}, and above {high}, and "
            f"with all others below {low}, were compared with controls region by region (Cohen's d). As these regions "
            "also made the R-indices, the comparison is circular: it describes the patterns and does not test them."
        )
        corrected = True
    if found.change_summary is not None:
        yield (
            "Change per year is the slope of a least-squares line through a person's visits; people whose visits span "
            "half a year or more count in the means."
        )
        if (found.change_summary["group"] == DIFFERENCE).any():
            yield "Change in patients and in controls was compared by Welch's t test."
    if corrected:
        yield "q values are p values corrected for the false discovery rate (Benjamini & Hochberg, 1995)."


def _software(summary: dict[str, Any]) -> Iterator[str]:
    versions = summary.get("versions") or {}
    if versions.get("rindices"):
        others = [f"{name} {versions[name]}" for name in ("python", "jax") if versions.get(name)]
        below = f" ({', '.join(others)})" if others else ""
        yield f"All was computed with rindices {versions['rindices']}{below}."
