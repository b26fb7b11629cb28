"""From a checked cohort to a run folder, and from a model and new people to a table. Nothing here prints."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import rindices
from rindices import plots
from rindices.agreement import match_patterns
from rindices.cohort import Cohort, People
from rindices.core.train import plan
from rindices.estimator import SurrealGAN
from rindices.files import atomic_file
from rindices.report import write_report
from rindices.run_folder import new_folder, toml_text, write_json
from rindices.selection import Progress

# Repetitions on cohorts without any disease agree at 0.51 to 0.55; this leaves a wide margin.
HARDLY_AGREE = 0.65
_VERSIONS = ("jax", "optax", "numpy", "scipy", "pandas", "scikit-learn")
_FLOAT = "%.6g"


def fit_to_folder(
    cohort: Cohort,
    model: SurrealGAN,
    out: Path,
    *,
    settings: dict[str, dict[str, Any]],
    truth: pd.DataFrame | None = None,
    report: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Fit `model` to the controls and patients of `cohort`, score everybody, and write the run folder.

    Parameters
    ----------
    cohort
        A checked cohort.
    model
        An unfitted estimator.
    out
        The run folder.
    settings
        Tables of the command and its options, written to ``run.toml``.
    truth
        Known severities of a simulated cohort, to be compared with the R-indices.
    report
        Whether to write ``report.html``.
    progress
        Called after each checkpoint.

    Returns
    -------
    dict
        What ``summary.json`` says.
    """
    start = time.perf_counter()
    described = settings.get("table", {})
    training, covariates = cohort.training, cohort.covariates if cohort.covariates.shape[1] else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(
            cohort.features[training],
            (cohort.group[training] == "patient").to_numpy(),
            None if covariates is None else covariates[training],
            progress=progress,
        )
    model.contract_ = replace(
        model.contract_,
        ignored_columns=cohort.ignored_columns,
        id_column=described.get("id", "participant_id"),
        diagnosis_column=described.get("diagnosis", "diagnosis"),
        control_labels=cohort.control_labels,
        patient_labels=cohort.patient_labels,
        unit=described.get("unit"),
    )
    r_indices = score(model, cohort.features, covariates)
    r_indices.insert(0, "diagnosis", cohort.diagnosis)
    r_indices.insert(1, "group", cohort.group)
    controls = (cohort.group == "control").to_numpy()
    patterns = model.pattern_maps(cohort.features[controls], None if covariates is None else covariates[controls])
    summary = _summary(cohort, model, [str(warning.message) for warning in caught])
    with new_folder(out) as folder:
        if truth is not None:
            summary["recovery"] = _recovery(truth, r_indices)
            truth.to_csv(folder / "truth.csv", index=False, float_format=_FLOAT)
        model.save(folder / "model.safetensors")
        r_indices.to_csv(folder / "r_indices.csv", float_format=_FLOAT)
        patterns.to_csv(folder / "patterns.csv", index=False, float_format=_FLOAT)
        _selection(model).to_csv(folder / "selection.csv", index=False, float_format=_FLOAT)
        (folder / "run.toml").write_text(toml_text(settings), encoding="utf-8")
        summary["seconds"] = round(time.perf_counter() - start, 1)
        write_json(folder / "summary.json", summary)
        figure = (
            plots.r_index_distributions(r_indices) if truth is None else _recovery_figure(truth, r_indices, summary)
        )
        plots.figure_png(figure, folder / "r_indices.png")
        if report:
            write_report(folder)
    return summary


def score(model: SurrealGAN, features: pd.DataFrame, covariates: pd.DataFrame | None) -> pd.DataFrame:
    """Return R-indices and their spread over repetitions, ids as index."""
    names = list(model.get_feature_names_out())
    values = np.hstack([model.transform(features, covariates), model.spread(features, covariates)])
    return pd.DataFrame(values, index=features.index, columns=[*names, *(f"{name}_sd" for name in names)])


def apply_to_people(model: SurrealGAN, people: People) -> pd.DataFrame:
    """Score new people: ids as index, then diagnosis, R-indices, spread, and what is unusual about them."""
    table = score(model, people.features, people.covariates if people.covariates.shape[1] else None)
    table.insert(0, "diagnosis", people.diagnosis)
    return table.assign(flags=people.flags)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table beside `path`, then rename."""
    with atomic_file(path) as beside:
        table.to_csv(beside, float_format=_FLOAT)


def _selection(model: SurrealGAN) -> pd.DataFrame:
    table = model.history_[["step", "n_models", *model.agreement_._fields, "chosen"]].copy()
    table.insert(0, "n_patterns", model.n_patterns)
    table.insert(1, "orthogonality", model.preset_.weights.orthogonality)
    return table


def _summary(cohort: Cohort, model: SurrealGAN, fit_warnings: list[str]) -> dict[str, Any]:
    agreement = model.agreement_._asdict()
    value = agreement["pattern_agreement"]
    messages = [*cohort.warnings, *fit_warnings]
    if np.isnan(value):
        messages.append("With a single repetition nobody can tell whether the patterns would be found again.")
    reliable, reason = _reliability(value)
    mesh, width = plan(model.n_repetitions)
    return {
        "status": "done",
        "n_controls": cohort.n_controls,
        "n_patients": cohort.n_patients,
        "n_other": cohort.n_other,
        "n_features": cohort.features.shape[1],
        "n_patterns": model.n_patterns,
        "patterns_chosen_from_data": False,
        "weights": model.preset_.weights._asdict(),
        "preset": model.preset_.name,
        "repetitions": model.n_repetitions,
        "members_used": len(model.members_),
        "members_left_out": [{"member": member, "reason": why} for member, why in model.left_out_.items()],
        "step": model.step_,
        "agreement": agreement,
        "reliable": reliable,
        "reliable_reason": reason,
        "warnings": messages,
        "seed": model.seed_,
        "versions": {"rindices": rindices.__version__, "python": platform.python_version()}
        | {name: version(name) for name in _VERSIONS},
        "device": f"{len(mesh.devices)} x {jax.devices()[0].device_kind}",
        "models_at_a_time": width * len(mesh.devices),
        "source": cohort.source,
        "input_sha256": cohort.sha256,
        "control_labels": list(cohort.control_labels),
        "patient_labels": list(cohort.patient_labels),
        "covariates": [str(name) for name in cohort.covariates.columns],
        "unit": model.contract_.unit,
    }


def _reliability(agreement: float) -> tuple[bool | None, str]:
    if np.isnan(agreement):
        return None, "There is only one repetition, so agreement is unknown."
    if agreement < HARDLY_AGREE:
        return False, (
            f"Repeated trainings hardly agree: {agreement:.2f}, where 0.5 is chance. There may be nothing to find, the "
            "number of patterns may not fit, or training was too short."
        )
    return None, (
        f"Repeated trainings agree at {agreement:.2f}, where 0.5 is chance and simulated cohorts without disease stay "
        f"below {HARDLY_AGREE}. This run was not tested against such cohorts of its own kind."
    )


def _recovery_figure(truth: pd.DataFrame, r_indices: pd.DataFrame, summary: dict[str, Any]) -> Figure:
    known, found = truth.set_index("participant_id"), summary["recovery"]
    scores = r_indices.loc[known.index, [f"r{i + 1}" for i in range(known.shape[1])]]
    return plots.recovery(known[found["matched_truth"]], scores, found["per_pattern"])


def _recovery(truth: pd.DataFrame, r_indices: pd.DataFrame) -> dict[str, Any]:
    known = truth.set_index("participant_id")
    scores = r_indices.loc[known.index, [f"r{i + 1}" for i in range(known.shape[1])]].to_numpy()
    order, concordances = match_patterns(scores, known.to_numpy())
    return {
        "pattern_concordance": float(concordances.mean()),
        "per_pattern": concordances.tolist(),
        "matched_truth": [str(known.columns[i]) for i in order],
    }
