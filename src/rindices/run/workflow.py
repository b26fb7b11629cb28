"""From a checked cohort to a run folder. Nothing here prints."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

import rindices
from rindices import plots
from rindices.cohort import Cohort
from rindices.core import devices
from rindices.errors import InputError, without_data
from rindices.files import atomic_file, write_csv
from rindices.report import write_report
from rindices.report.consistency import MODEL, sha256_of
from rindices.run.bids_output import write_bids
from rindices.run.findings import FOLDER, LIMITS, Roles, analyse, write_findings
from rindices.run.folder import (
    FAILED,
    JOURNAL,
    REPORT,
    SETTINGS,
    SUMMARY,
    discard,
    held,
    plain,
    toml_text,
    write_json,
    write_text,
)
from rindices.run.results import of_cohort
from rindices.run.summary import describe_people, recovery, summarise
from rindices.search import SurrealGANSearch
from rindices.training.execution import Progress
from rindices.training.journal import Journal

_VERSIONS = ("jax", "optax", "numpy", "scipy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Wanted:
    """What to write besides the tables of a run.

    Attributes
    ----------
    report
        Whether to write ``report.html``.
    limits
        Of the subgroups: R-indices below the first are low, above the second high.
    show_ids
        Whether the report may name participants.
    figures
        Folder for every figure of the report as SVG and PNG.
    bids
        Whether to write the R-indices as BIDS has them, too.
    """

    report: bool = True
    limits: tuple[float, float] = LIMITS
    show_ids: bool = False
    figures: Path | None = None
    bids: bool = False


TABLES_AND_REPORT = Wanted()


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
    wanted: Wanted = TABLES_AND_REPORT,
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
    wanted
        What to write besides the tables.
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
            _write_results(out, cohort, search, settings, summary, truth, wanted)
            summary["seconds"] = round(time.perf_counter() - start, 1)
            if wanted.report:
                write_report(out, summary=plain(summary), show_ids=wanted.show_ids, figures=wanted.figures)
            else:  # one that was asked for meanwhile says that the run is not finished
                (out / REPORT).unlink(missing_ok=True)
            with ending or nullcontext():
                write_json(out / SUMMARY, summary)
        except InputError:
            if not goes_on and not journal.has_begun():
                discard(out)
            raise
        except Exception as error:
            _write_failure(out, error, cohort, settings, wanted.report)
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
        ignored_columns=cohort.ignored_columns + tuple(map(str, cohort.clinical.columns)),
        id_column=described.get("id", "participant_id"),
        diagnosis_column=described.get("diagnosis", "diagnosis"),
        site_column=described.get("site"),
        visit_column=described.get("visit"),
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
    wanted: Wanted,
) -> None:
    """Write all tables and pictures of a finished run, and add to the summary what they say."""
    model = search.best_estimator_
    results = of_cohort(model, cohort)
    model.save(out / MODEL)
    results.write(out)
    write_csv(search.history_, out / "selection.csv", index=False)
    summary |= {"variables": results.kinds, "subgroup_limits": list(wanted.limits)}
    summary["model_sha256"] = sha256_of(out / MODEL)
    write_findings(
        out / FOLDER, analyse(model, results, Roles(summary["covariates"], summary["clinical"]), wanted.limits)
    )
    figure = plots.r_index_distributions(results.r_indices)
    if truth is not None:
        r_indices = results.r_indices.set_index("participant_id")
        summary["recovery"] = recovery(truth, r_indices)
        write_csv(truth, out / "truth.csv", index=False)
        figure = _recovery_figure(truth, r_indices, summary)
    with atomic_file(out / "r_indices.png") as beside:
        plots.figure_png(figure, beside)
    if wanted.bids:
        write_bids(out / "bids", results.r_indices, summary, visit=cohort.visit is not None)
    write_text(out / SETTINGS, toml_text(settings | {"plan": {"models_per_chunk": search.models_per_chunk_}}))


def _write_failure(
    out: Path, error: Exception, cohort: Cohort, settings: dict[str, dict[str, Any]], report: bool
) -> None:
    """Say in the folder that the run failed, as far as it can still be written to."""
    summary = {"status": FAILED, "failure": without_data(error)} | describe_people(cohort)
    summary |= {"warnings": list(cohort.warnings), "versions": settings.get("versions", {})}
    try:
        write_json(out / SUMMARY, summary)
        if report:
            write_report(out)
    except (OSError, ValueError):
        return  # it still says that it is not finished


def _recovery_figure(truth: pd.DataFrame, r_indices: pd.DataFrame, summary: dict[str, Any]) -> Figure:
    known, found = truth.set_index("participant_id"), summary["recovery"]
    scores = r_indices.loc[known.index, [f"r{i + 1}" for i in range(known.shape[1])]]
    return plots.recovery(known[found["matched_truth"]], scores, found["per_pattern"])
