"""What `summary.json` says about a finished run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from rindices.analysis import balance_warnings, group_balance
from rindices.cohort import Cohort
from rindices.core import devices
from rindices.judging.agreement import match_patterns
from rindices.judging.verdict import to_json
from rindices.run.folder import DONE
from rindices.search import SurrealGANSearch
from rindices.settings import Correction

_RUNNERS_UP = 3


def describe_people(cohort: Cohort) -> dict[str, Any]:
    """Say who took part."""
    return {
        "n_controls": cohort.n_controls,
        "n_patients": cohort.n_patients,
        "n_other": cohort.n_other,
        "n_features": cohort.features.shape[1],
        "source": cohort.source,
        "input_sha256": cohort.sha256,
        "control_labels": list(cohort.control_labels),
        "patient_labels": list(cohort.patient_labels),
        "covariates": [str(name) for name in cohort.covariates.columns],
        "clinical": [str(name) for name in cohort.clinical.columns],
        "visits": cohort.visit is not None,
        "n_read": len(cohort.people),
        "excluded": cohort.people["reason"][~cohort.people["used"].astype(bool)].value_counts().to_dict(),
    }


def summarise(
    cohort: Cohort, search: SurrealGANSearch, fit_warnings: list[str], settings: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Say what came out of a finished run."""
    model, verdict = search.best_estimator_, search.verdict_
    training = cohort.training
    balance = group_balance(cohort.background[training], (cohort.group[training] == "patient").to_numpy())
    device = devices.describe()
    return {
        "status": DONE,
        **describe_people(cohort),
        "n_patterns": model.n_patterns,
        "patterns_chosen_from_data": search.results_["n_patterns"].nunique() > 1,
        "correction": asdict(search.correction or Correction())
        | {"n_sites": None if cohort.site is None else int(cohort.site.nunique())},
        "weights": model.preset_.weights._asdict(),
        "preset": model.preset_.name,
        "repetitions": model.n_repetitions,
        "members_used": len(model.members_),
        "members_left_out": [{"member": member, "reason": why} for member, why in model.left_out_.items()],
        "step": model.step_,
        "agreement": model.agreement_._asdict(),
        "latent": "independent" if model.correlation_ is None else "correlated",
        "correlation": None if model.correlation_ is None else model.correlation_.tolist(),
        "reliable": verdict.reliable,
        "reliable_reason": verdict.reason,
        "null": to_json(verdict),
        "search": _search(search),
        "balance": balance.to_dict("records"),
        "warnings": [*cohort.warnings, *fit_warnings, *balance_warnings(balance)],
        "seed": model.seed_,
        "versions": settings.get("versions", {}),
        "device": f"{device.number} x {device.kind}" if device.platform != "cpu" else f"{devices.n_cores()} cores",
        "models_per_chunk": search.models_per_chunk_,
        "peak_device_memory": devices.peak_memory(),
        "unit": model.contract_.unit,
    }


def _search(search: SurrealGANSearch) -> dict[str, Any]:
    results = search.results_
    others = results[(results["n_repetitions"] == search.n_repetitions) & ~results["chosen"]]
    others = others[others["n_patterns"] > 1].sort_values("pattern_agreement", ascending=False).head(_RUNNERS_UP)
    shown = ["n_patterns", "orthogonality", "pattern_agreement", "n_models"]
    return {
        "n_patterns": sorted(results["n_patterns"].unique().tolist()),
        "orthogonality": sorted(results["orthogonality"].unique().tolist()),
        "exhaustive": bool((results["n_repetitions"] == search.n_repetitions).all()),
        "first_stage_repetitions": int(results["n_repetitions"].min()),
        "models_trained": search.models_trained_,
        "models_exhaustive": len(results) * search.n_repetitions,
        "runners_up": others[shown].to_dict("records"),
        "reason": search.reason_,
    }


def recovery(truth: pd.DataFrame, r_indices: pd.DataFrame) -> dict[str, Any]:
    """Compare R-indices with the known severities of a simulated cohort."""
    known = truth.set_index("participant_id")
    scores = r_indices.loc[known.index, [f"r{i + 1}" for i in range(known.shape[1])]].to_numpy()
    order, concordances = match_patterns(scores, known.to_numpy())
    return {
        "pattern_concordance": float(concordances.mean()),
        "per_pattern": concordances.tolist(),
        "matched_truth": [str(known.columns[i]) for i in order],
    }
