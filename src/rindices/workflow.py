"""From a checked cohort to a run folder, and from a model and new people to a table. Nothing here prints."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import rindices
from rindices import plots
from rindices.cohort import Cohort, People
from rindices.core import devices
from rindices.errors import InputError
from rindices.estimator import SurrealGAN
from rindices.execution import Progress
from rindices.files import atomic_file
from rindices.journal import Journal
from rindices.report import write_report
from rindices.run_folder import (
    FAILED,
    JOURNAL,
    SETTINGS,
    SUMMARY,
    discard,
    held,
    plain,
    toml_text,
    write_json,
    write_text,
)
from rindices.search import SurrealGANSearch
from rindices.summary import describe_people, recovery, summarise

_VERSIONS = ("jax", "optax", "numpy", "scipy", "pandas", "scikit-learn")
_FLOAT = "%.6g"


def place() -> dict[str, dict[str, Any]]:
    """Return the versions and the device that a run's bits depend on."""
    devices.prepare()
    device = devices.describe()
    versions = {"rindices": rindices.__version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _VERSIONS}
    # Neither the number of cores nor of workers changes a result.
    return {"versions": versions, "device": {"platform": device.platform, "kind": device.kind}}


def fit_to_folder(
    cohort: Cohort,
    search: SurrealGANSearch,
    out: Path,
    *,
    settings: dict[str, dict[str, Any]],
    truth: pd.DataFrame | None = None,
    report: bool = True,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
    ending: AbstractContextManager[Any] | None = None,
) -> dict[str, Any]:
    """Fit `search` to the controls and patients of `cohort`, score everybody, and write the run folder.

    The folder is a journal while the run goes on: the same call again, after a sudden end, goes on where it stopped.

    Parameters
    ----------
    cohort
        A checked cohort.
    search
        An unfitted search; with one setting it is a plain fit.
    out
        The run folder.
    settings
        Tables of the command and its options, written to ``run.toml``.
    truth
        Known severities of a simulated cohort, to be compared with the R-indices.
    report
        Whether to write ``report.html``.
    overwrite
        Whether to replace what run there is in the folder.
    progress
        Called as training goes on.
    ending
        Entered for the moment in which the run becomes complete.

    Returns
    -------
    dict
        What ``summary.json`` says.
    """
    start = time.perf_counter()
    with held(out, settings, overwrite=overwrite) as goes_on:
        journal = Journal(out / JOURNAL, _fingerprint(settings))
        try:
            fit_warnings = _fit(search, cohort, settings.get("table", {}), journal, progress)
            summary = summarise(cohort, search, fit_warnings, settings)
            summary["resumed"] = goes_on
            _write_results(out, cohort, search, settings, summary, truth, start, report)
            with ending or nullcontext():
                write_json(out / SUMMARY, summary)
        except InputError:
            if not goes_on and not journal.has_begun():
                discard(out)
            raise
        except Exception as error:
            _write_failure(out, error, cohort, settings, report)
            raise
    discard(out, only_journal=True)
    return summary


def _fingerprint(settings: dict[str, dict[str, Any]]) -> str:
    what = {name: values for name, values in settings.items() if name != "command"}
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def _fit(
    search: SurrealGANSearch,
    cohort: Cohort,
    described: dict[str, Any],
    journal: Journal,
    progress: Callable[[Progress], None] | None,
) -> list[str]:
    """Fit, let the model know the table it came from, and return the warnings."""
    training, covariates = cohort.training, _covariates(cohort)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        search.fit(
            cohort.features[training],
            (cohort.group[training] == "patient").to_numpy(),
            None if covariates is None else covariates[training],
            progress=progress,
            store=journal,
        )
    model = search.best_estimator_
    model.contract_ = replace(
        model.contract_,
        ignored_columns=cohort.ignored_columns,
        id_column=described.get("id", "participant_id"),
        diagnosis_column=described.get("diagnosis", "diagnosis"),
        control_labels=cohort.control_labels,
        patient_labels=cohort.patient_labels,
        unit=described.get("unit"),
    )
    damaged = [f"{name} in the journal was damaged and trained again." for name in journal.damaged]
    return [*dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)), *damaged]


def _covariates(cohort: Cohort) -> pd.DataFrame | None:
    return cohort.covariates if cohort.covariates.shape[1] else None


def _write_results(
    out: Path,
    cohort: Cohort,
    search: SurrealGANSearch,
    settings: dict[str, dict[str, Any]],
    summary: dict[str, Any],
    truth: pd.DataFrame | None,
    start: float,
    report: bool,
) -> None:
    """Write all files of a finished run but `summary.json`, which says that it is one."""
    model, covariates = search.best_estimator_, _covariates(cohort)
    r_indices = score(model, cohort.features, covariates)
    r_indices.insert(0, "diagnosis", cohort.diagnosis)
    r_indices.insert(1, "group", cohort.group)
    controls = (cohort.group == "control").to_numpy()
    patterns = model.pattern_maps(cohort.features[controls], None if covariates is None else covariates[controls])
    model.save(out / "model.safetensors")
    write_csv(r_indices, out / "r_indices.csv")
    write_csv(patterns, out / "patterns.csv", index=False)
    write_csv(search.history_, out / "selection.csv", index=False)
    figure = plots.r_index_distributions(r_indices)
    if truth is not None:
        summary["recovery"] = recovery(truth, r_indices)
        write_csv(truth, out / "truth.csv", index=False)
        figure = _recovery_figure(truth, r_indices, summary)
    plots.figure_png(figure, out / "r_indices.png")
    write_text(out / SETTINGS, toml_text(settings | {"plan": {"models_per_chunk": search.models_per_chunk_}}))
    summary["seconds"] = round(time.perf_counter() - start, 1)
    if report:
        write_report(out, summary=plain(summary))


def _write_failure(
    out: Path, error: Exception, cohort: Cohort, settings: dict[str, dict[str, Any]], report: bool
) -> None:
    """Say in the folder that the run failed, as far as it can still be written to."""
    summary = {"status": FAILED, "failure": f"{type(error).__name__}: {error}"} | describe_people(cohort)
    summary |= {"warnings": list(cohort.warnings), "versions": settings.get("versions", {})}
    try:
        write_json(out / SUMMARY, summary)
        if report:
            write_report(out)
    except (OSError, ValueError):
        return  # it still says that it is not finished


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


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = True) -> None:
    """Write a table beside `path`, then rename."""
    with atomic_file(path) as beside:
        table.to_csv(beside, float_format=_FLOAT, index=index)


def _recovery_figure(truth: pd.DataFrame, r_indices: pd.DataFrame, summary: dict[str, Any]) -> Figure:
    known, found = truth.set_index("participant_id"), summary["recovery"]
    scores = r_indices.loc[known.index, [f"r{i + 1}" for i in range(known.shape[1])]]
    return plots.recovery(known[found["matched_truth"]], scores, found["per_pattern"])
