"""What came out of a training: the summary, tables and pictures of a run folder. Nothing here prints.

R-indices and severities can also be written as a BIDS derivative: a phenotype table, its dictionary, and what the
dataset is.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from rindices import plots, record
from rindices.analysis import balance_warnings
from rindices.cohort import Cohort
from rindices.core import devices, inference
from rindices.files import atomic_file, guarded, plain_text, write_text
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.judging.verdict_and_separation import separated
from rindices.pages.report import write_report
from rindices.presets import Correction
from rindices.problems import Text, Wording, without_data, without_people, worded
from rindices.record import Results, Separation, Summary
from rindices.run.plan import PlannedRun, versions
from rindices.run.scores_and_analyses import analyse
from rindices.scoring.consensus_and_person import reference_of, unknown_of
from rindices.search import SurrealGANSearch
from rindices.settings import AUTO, follow_up_of

_RUNNERS_UP = 3


def summarise(
    plan: PlannedRun, search: SurrealGANSearch, balance: pd.DataFrame, messages: Sequence[Text], wording: Wording
) -> record.Summary:
    """Say what came out of a finished training."""
    cohort, model, verdict = plan.cohort, search.best_estimator_, search.verdict_
    preset = model.preset_
    outcome = {
        "status": record.DONE,
        "n_patterns": model.n_patterns,
        "patterns_chosen_from_data": plan.search.n_patterns == AUTO or len(plan.search.n_patterns) > 1,
        "correction": asdict(search.correction or Correction())
        | {"n_sites": None if cohort.site is None else int(cohort.site.nunique())},
        "weights": preset.weights._asdict() | ({"prior": 0.0} if preset.training.start == "random" else {}),
        "preset": preset.name,
        "repetitions": len(model.members_) + len(model.left_out_),  # with those in the place of failed ones
        "members_used": len(model.members_),
        "linear_makes_people": inference.linear_makes_people(model.models_),
        "members_left_out": [{"member": one, "reason": why} for one, why in model.left_out_.items()],
        "step": model.step_,
        "agreement": model.agreement_._asdict(),
        "latent": "independent" if model.correlation_ is None else "correlated",
        "correlation": None if model.correlation_ is None else model.correlation_.tolist(),
        "verdict": verdict.state,
        "reliable": verdict.reliable,
        "reliable_reason": model.verdict_[1],
        "evidence": asdict(verdict.evidence),
        "separation": separation(cohort, search.correction),
        "search": _searched(search),
        "balance": balance.to_dict("records"),
        "warnings": [
            without_people(worded(messages, wording))
            for messages in (*messages, *unknown_of(model), *balance_warnings(balance))
        ],
        "seed": model.seed_,
        "versions": versions(),
        "device": devices.in_words(),
        "models_per_chunk": search.models_per_chunk_,
        "peak_device_memory": devices.peak_memory(),
        "unit": model.contract_.unit,
        "subgroup_limits": plan.output.limits,
        "level": plan.output.level,
        "scan_noise": plan.output.scan_noise,
        "reference": reference_of(model),
        "finished": date.today().isoformat(),
    }
    return _people(cohort).updated(**outcome)


def separation(cohort: Cohort, correction: Correction | None) -> Separation | None:
    """Tell patients from controls whom the rule was not learned from; see `rindices.judging.verdict_and_separation`."""
    regions, patient, covariates = cohort.of_training()
    sites = None if cohort.site is None else pd.factorize(cohort.site[cohort.training])[0]
    # Where regions are missing, the middle of everybody says nothing of the group.
    filled = regions.fillna(regions.median()).to_numpy(float)
    auc = separated(filled, patient, covariates, correction, sites)
    return None if auc is None else Separation(**auc._asdict())


def _people(cohort: Cohort) -> record.Summary:
    """Say who took part in a run that is not finished yet."""
    follow_up = follow_up_of(cohort.settings)
    left_out = cohort.people["reason"][~cohort.people["used"].astype(bool)]
    return record.Summary(
        status=record.UNFINISHED,
        n_controls=cohort.n_controls,
        n_patients=cohort.n_patients,
        n_other=cohort.n_other,
        n_features=cohort.features.shape[1],
        source=cohort.source,
        region_names={name: words for name, words in cohort.region_names.items() if words},
        source_doi=cohort.doi,
        input_sha256=cohort.sha256,
        control_labels=cohort.control_labels,
        patient_labels=cohort.patient_labels,
        covariates=tuple(map(str, cohort.covariates.columns)),
        clinical=tuple(str(name) for name in cohort.clinical if name not in follow_up.values()),
        follow_up=follow_up,
        visits=cohort.visit is not None,
        years_from=cohort.years_from,
        n_read=len(cohort.people),
        excluded={str(reason): int(n) for reason, n in left_out.value_counts().items()},
    )


def _searched(search: SurrealGANSearch) -> dict[str, object]:
    results = search.results_
    others = results[(results["n_repetitions"] == search.n_repetitions) & ~results["chosen"]]
    others = others.sort_values("misfit").head(_RUNNERS_UP)
    shown = ["n_patterns", "orthogonality", "misfit", "pattern_agreement", "n_models"]
    return {
        "n_patterns": sorted(results["n_patterns"].unique().tolist()),
        "orthogonality": sorted(results["orthogonality"].unique().tolist()),
        "exhaustive": search.models_trained_ >= search.models_exhaustive_,
        "first_stage_repetitions": int(results["n_repetitions"].min()),
        "models_trained": search.models_trained_,
        "models_exhaustive": search.models_exhaustive_,
        "runners_up": others[shown].to_dict("records"),
        "reason": search.reason_,
        "basis": search.basis_,
    }


def write_results(
    plan: PlannedRun, search: SurrealGANSearch, results: Results, summary: record.Summary, truth: pd.DataFrame | None
) -> record.Summary:
    """Write all tables and pictures of a finished run, and return the summary with what they say."""
    out, analyses = plan.out, analyse(search.best_estimator_, results, summary)
    record.write_tables(out, results, analyses, selection=search.history_, truth=truth)
    kept = {"variables": results.kinds, "model_sha256": record.sha256_of(out / record.MODEL)}
    summary, figure = summary.updated(**kept), plots.r_index_distributions(results.r_indices)
    if truth is not None:
        severities = truth.set_index("participant_id")
        scores = results.r_indices.set_index("participant_id").loc[severities.index, results.score_names]
        recovery = _recovery(severities, scores)
        summary = summary.updated(recovery=recovery)
        figure = plots.recovery(
            severities[list(recovery.matched_truth)], recovery.of(scores), list(recovery.per_pattern)
        )
    with atomic_file(out / record.PICTURE) as beside:
        plots.figure_png(figure, beside)
    if plan.output.bids:
        write_bids(out / record.BIDS, results.r_indices, summary)
    return summary


def _recovery(severities: pd.DataFrame, scores: pd.DataFrame) -> record.Recovery:
    """Compare severities with those that are known of a simulated cohort; there may be more of either."""
    if scores.shape[1] > severities.shape[1]:
        matched, values = match_patterns(severities.to_numpy(), scores.to_numpy())
        names = severities.columns
    else:
        order, values = match_patterns(scores.to_numpy(), severities.to_numpy())
        matched, names = np.arange(len(order)), severities.columns[order]
    pairs = sorted(zip(matched.tolist(), names, values.tolist(), strict=True))
    return record.Recovery(
        pattern_concordance=float(values.mean()),
        per_pattern=tuple(value for _, _, value in pairs),
        matched_truth=tuple(str(name) for _, name, _ in pairs),
        matched_patterns=tuple(place + 1 for place, _, _ in pairs),
        n_known=severities.shape[1],
    )


def write_failure(plan: PlannedRun, error: Exception, wording: Wording) -> None:
    """Say in the folder that the run failed, as far as it can still be written to."""
    failed = {
        "status": record.FAILED,
        "failure": without_data(error),
        "warnings": tuple(without_people(worded(sentence, wording)) for sentence in plan.cohort.messages),
        "versions": versions(),
    }
    try:
        record.write_summary(plan.out, _people(plan.cohort).updated(**failed))
        if plan.output.report:
            write_report(plan.out)
    except (OSError, ValueError):
        return  # it still says that it is not finished


_NAME = "rindices"
# Where the specification wants measures of participants, also in derivatives; the root is for participants.tsv only.
_FILES = ("dataset_description.json", "phenotype/r_indices.tsv", "phenotype/r_indices.json")
_CITATION = (
    "Yang Z, Wen J, Davatzikos C. Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering "
    "heterogeneous disease-related imaging patterns. International Conference on Learning Representations (ICLR), 2022."
)
# What a column is, by its name; # is the number in it. R-indices are not clipped: no minimum or maximum is promised.
_COLUMNS = {
    r"participant_id": {"Description": "Participant, as in the source table"},
    r"session_id": {"Description": "Session, as in the source table"},
    r"visit": {"Description": "Visit, as in the source table"},
    r"years": {"Description": "Time since the participant's first visit", "Units": "year", "Minimum": 0},
    r"first_visit": {
        "Description": "Whether this is the participant's first visit; patterns are learned from first visits only",
        "Levels": {"true": "first visit", "false": "a later visit"},
    },
    r"diagnosis": {"Description": "Diagnosis, as in the source table"},
    r"group": {
        "Description": "Group assigned to the diagnosis",
        "Levels": {"control": "control", "patient": "patient", "other": "neither: scored, but never used for training"},
    },
    r"flags": {"Description": "Unusual features of this participant's data; n/a if none"},
    r"r\d+": {
        "LongName": "R-index #",
        "Description": "R-index of pattern #, roughly the person's rank among the patients: low as in controls, "
        "about 1 as in the most severe patients; training controls are scored by repetitions that were not "
        "trained on them",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"r\d+_sd": {
        "Description": "Standard deviation of r# over repetitions; n/a with a single repetition",
        "Units": "arbitrary",
        "Minimum": 0,
        "Derivative": True,
    },
    r"r\d+_networks": {
        "Description": "R-index of pattern # from the networks alone, without the linear models",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"severity\d+": {
        "LongName": "Severity #",
        "Description": "Severity of pattern #: fraction of the largest change that the model learned for it",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"severity\d+_(low|high)": {"Description": "Limit of the interval of severity#", "Units": "arbitrary"},
    r"centile\d+": {
        "Description": "Percentage of held-out controls with a lower r#",
        "Units": "percent",
        "Minimum": 0,
        "Maximum": 100,
        "Derivative": True,
    },
    r"strangeness": {
        "Description": (
            "Distance of this participant from the most similar person the model can produce; "
            "values above 1 are unusual"
        ),
        "Units": "arbitrary",
        "Minimum": 0,
        "Derivative": True,
    },
    r".*": {"Description": "As in r_indices.csv"},
}


def write_bids(folder: str | Path, r_indices: pd.DataFrame, summary: Summary) -> list[Path]:
    """Write R-indices as a BIDS derivative.

    Parameters
    ----------
    folder
        Root of the derivative dataset, which is replaced.
    r_indices
        Columns participant_id, visit if there are visits, diagnosis, group, r1 …, severity1 …, flags. Ids are written
        as they are. Text that a spreadsheet would run is guarded as in `rindices.files`: BIDS asks nothing of those
        cells but that they and the levels in the dictionary are the same, which they are; and an id of BIDS, which
        begins with ``sub-``, is never one of them.
    summary
        What `summary.json` says. Its entry ``source_doi``, if any, names the source dataset; where the rows are
        visits, their column becomes ``session_id`` if all of them are called ses-….

    Returns
    -------
    list of pathlib.Path
        ``dataset_description.json``, ``phenotype/r_indices.tsv`` and ``phenotype/r_indices.json``.

    Examples
    --------
    >>> import tempfile
    >>> table = pd.DataFrame({"participant_id": ["sub-01"], "diagnosis": ["AD"], "group": ["patient"], "r1": [0.5]})
    >>> with tempfile.TemporaryDirectory() as out:
    ...     [path.name for path in write_bids(out, table, Summary(status="unfinished", patient_labels=("AD",)))]
    ['dataset_description.json', 'r_indices.tsv', 'r_indices.json']
    """
    paths = [Path(folder, name) for name in _FILES]
    table = _as_bids(r_indices, summary.visits)
    with atomic_file(paths[1]) as beside:
        table.to_csv(
            beside, sep="\t", na_rep="n/a", index=False, float_format="%.6g", lineterminator="\n", encoding="utf-8"
        )
    for path, content in ((paths[2], _dictionary(table, summary)), (paths[0], _description(summary))):
        write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return paths


def _as_bids(r_indices: pd.DataFrame, visits: bool) -> pd.DataFrame:
    """Return the table as BIDS wants it: ids and sessions first, no empty cells, one line a row."""
    table = r_indices.reset_index(drop=True)
    if visits and table["visit"].astype(str).str.fullmatch(r"ses-[0-9A-Za-z]+").all():
        table = table.rename(columns={"visit": "session_id"})
    first = [name for name in ("participant_id", "session_id", "visit") if name in table]
    table = table[[*first, *(name for name in table.columns if name not in first)]]
    return guarded(table.assign(**table.select_dtypes(exclude="float").map(_cell)))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "n/a" if pd.isna(value) else " ".join(str(value).split()) or "n/a"  # type: ignore[call-overload]


def _dictionary(table: pd.DataFrame, summary: Summary) -> dict[str, dict[str, object]]:
    n_patterns = sum(re.fullmatch(r"r\d+", str(name)) is not None for name in table.columns)
    tool = f"R-indices: severities of {n_patterns} disease patterns in regional brain measures (Surreal-GAN)."
    verdict = "" if summary.state is None else " ".join(["", summary.verdict_words[0], summary.reliable_reason])
    entries: dict[str, dict[str, object]] = {"MeasurementToolMetadata": {"Description": tool + verdict}}
    for name in map(str, table.columns):
        entry = next(entry for pattern, entry in _COLUMNS.items() if re.fullmatch(pattern, name))
        entries[name] = json.loads(json.dumps(entry).replace("#", re.sub(r"\D", "", name)))
    groups = {"control": summary.control_labels, "patient": summary.patient_labels}
    meaning = {label: f"counted as {group}" for group, labels in groups.items() for label in labels}
    labels = sorted({label for label in table["diagnosis"].astype(str) if label != "n/a"})
    levels = {label: meaning.get(plain_text(label), "neither control nor patient") for label in labels}
    entries["diagnosis"] |= {"Levels": levels} if levels else {}
    return entries


def _description(summary: Summary) -> dict[str, object]:
    made_by = {"Name": _NAME, "Description": "Surreal-GAN R-indices from regional brain measures"}
    return {
        "Name": f"R-indices of {summary.source}" if summary.source else "R-indices",
        "BIDSVersion": "1.10.1",
        "DatasetType": "derivative",
        "GeneratedBy": [made_by | ({"Version": summary.versions[_NAME]} if _NAME in summary.versions else {})],
        "HowToAcknowledge": f"Please cite: {_CITATION}",
        "ReferencesAndLinks": [_CITATION],
        **({"SourceDatasets": [{"DOI": summary.source_doi}]} if summary.source_doi else {}),
    }
