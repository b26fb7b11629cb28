"""What came out of a training: the summary, tables and pictures of a run folder. Nothing here prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date

import numpy as np
import pandas as pd

from rindices import plots, record
from rindices.analysis import balance_warnings
from rindices.cohort import Cohort
from rindices.core import devices
from rindices.files import atomic_file
from rindices.judging.agreement import match_patterns
from rindices.judging.verdict import Verdict, differences_that_count, to_json
from rindices.pages.report import write_report
from rindices.presets import Correction
from rindices.problems import Text, Wording, without_data, without_people, worded
from rindices.run.bids_output import write_bids
from rindices.run.plan import PlannedRun, balance_of, versions
from rindices.run.scores_and_analyses import analyse, keep_training, results_of, separation
from rindices.scoring.person import reference_of, unknown_of
from rindices.search import SurrealGANSearch
from rindices.settings import AUTO, follow_up_of

_RUNNERS_UP = 3


def summarise(plan: PlannedRun, search: SurrealGANSearch, messages: Sequence[Text], wording: Wording) -> record.Summary:
    """Say what came out of a finished training; the model is told the final verdict."""
    cohort, model = plan.cohort, search.best_estimator_
    preset = model.preset_
    balance = balance_of(cohort)
    verdict: Verdict = search.verdict_.with_differences(differences_that_count(balance))
    model.verdict_ = verdict.state, worded(verdict.message, wording)
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
        "members_left_out": [{"member": one, "reason": why} for one, why in model.left_out_.items()],
        "step": model.step_,
        "agreement": model.agreement_._asdict(),
        "latent": "independent" if model.correlation_ is None else "correlated",
        "correlation": None if model.correlation_ is None else model.correlation_.tolist(),
        "verdict": verdict.state,
        "reliable": verdict.reliable,
        "reliable_reason": model.verdict_[1],
        "evidence": to_json(verdict.evidence),
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
    plan: PlannedRun, search: SurrealGANSearch, summary: record.Summary, truth: pd.DataFrame | None
) -> record.Summary:
    """Write all tables and pictures of a finished run, and return the summary with what they say."""
    out, model = plan.out, search.best_estimator_
    results = results_of(model, plan.cohort, plan.output.level)
    analyses = analyse(model, results, summary)
    keep_training(model, results, analyses)
    model.save(out / record.MODEL)
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
