"""From settings to a run folder: trained, judged, scored, analysed and written. Nothing here prints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd

from rindices import record
from rindices.cohort import Cohort, correction_of
from rindices.problems import InputError, Text, Wording, in_python
from rindices.run.plan import PlannedRun, planned
from rindices.search import SurrealGANSearch
from rindices.settings import Labels, Names, OutputSettings, SearchSettings, TableSettings
from rindices.training.execution import Progress
from rindices.training.journal import Journal

__all__ = ["FittedRun", "carry_out", "fit_table"]


class FittedRun(NamedTuple):
    """A finished run.

    Attributes
    ----------
    folder
        Where its results are.
    summary
        What came of it; ``summary.verdict`` and ``summary.reliable_reason`` are the verdict, and why.
    cohort
        The people.
    """

    folder: Path
    summary: record.Summary
    cohort: Cohort


def fit_table(
    path: str | Path,
    out: str | Path,
    *,
    id: str = TableSettings.id,
    diagnosis: str = TableSettings.diagnosis,
    control: Labels = TableSettings.control,
    patients: Labels = TableSettings.patients,
    covariates: Names = TableSettings.covariates,
    smooth: Names = TableSettings.smooth,
    interactions: Names = TableSettings.interactions,
    proportion: str | None = TableSettings.proportion,
    site: str | None = TableSettings.site,
    small_sites: Literal["refuse", "drop"] = TableSettings.small_sites,
    visit: str | None = TableSettings.visit,
    clinical: Names = TableSettings.clinical,
    join: Names = TableSettings.join,
    dictionary: str | None = TableSettings.dictionary,
    missing: Names = TableSettings.missing,
    drop_missing: bool = TableSettings.drop_missing,
    drop_outliers: bool = TableSettings.drop_outliers,
    features: Names = TableSettings.features,
    exclude: Names = TableSettings.exclude,
    unit: str | None = TableSettings.unit,
    complete_only: bool = TableSettings.complete_only,
    n_patterns: int | Sequence[int] = SearchSettings.n_patterns,
    orthogonality: float | Sequence[float] | None = SearchSettings.orthogonality,
    n_repetitions: int = SearchSettings.n_repetitions,
    exhaustive: bool = SearchSettings.exhaustive,
    n_null: int = SearchSettings.n_null,
    preset: str = SearchSettings.preset,
    max_steps: int | None = SearchSettings.max_steps,
    latent: Literal["independent", "correlated"] | None = SearchSettings.latent,
    random_state: int = SearchSettings.random_state,
    report: bool = OutputSettings.report,
    limits: tuple[float, float] = OutputSettings.limits,
    show_ids: bool = OutputSettings.show_ids,
    figures: str | Path | None = OutputSettings.figures,
    bids: bool = OutputSettings.bids,
    level: float = OutputSettings.level,
    scan_noise: float | Sequence[float] = OutputSettings.scan_noise,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> FittedRun:
    """Read a table, train, and write a run folder with its report: what ``rindices fit`` does.

    A run that was interrupted goes on when the same is asked for again; one that is finished is returned as it is. Of
    a finished run more patterns, repetitions or refits can be asked for: what is trained is not trained again.

    Parameters
    ----------
    path
        A table, or the folder of a BIDS dataset.
    out
        Folder for the results: new, or that of the same run.
    id, diagnosis, control, patients, covariates, smooth, interactions, proportion, site, small_sites, visit, clinical
        Which columns are what; see `rindices.settings.TableSettings`.
    join, dictionary, missing, drop_missing, drop_outliers, features, exclude, unit, complete_only
        What is read, and who is left out; see the same.
    n_patterns, orthogonality, n_repetitions, exhaustive, n_null, preset, max_steps, latent, random_state
        What is trained, as in `rindices.SurrealGANSearch`.
    report, limits, show_ids, figures, bids, level, scan_noise
        What is written; see `rindices.settings.OutputSettings`.
    overwrite
        Whether to replace what run there is in the folder.
    progress
        Called as training goes on.

    Returns
    -------
    FittedRun
        The folder, what came of it, and the people.

    Raises
    ------
    InputError
        If the table or a setting cannot be used; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from rindices import fit_table, simulate_cohort
    >>> folder = Path(tempfile.mkdtemp())
    >>> simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).save(folder / "people.csv")
    >>> asked = {"covariates": "age,sex", "n_patterns": 2, "n_repetitions": 2, "max_steps": 10}  # far too few
    >>> run = fit_table(folder / "people.csv", folder / "run", **asked, report=False)
    >>> run.summary.n_patterns, run.summary.verdict, (run.folder / "r_indices.csv").is_file()
    (2, 'not testable', True)
    """
    table = TableSettings(
        *(id, diagnosis, control, patients, covariates, smooth, interactions, proportion, site, small_sites, visit),
        *(clinical, join, dictionary, missing, drop_missing, drop_outliers, features, exclude, unit),
        complete_only,
    )
    counts = (n_patterns,) if isinstance(n_patterns, int) else tuple(n_patterns)
    weights = (orthogonality,) if isinstance(orthogonality, int | float) else orthogonality
    search = SearchSettings(
        counts,
        None if weights is None else tuple(weights),
        *(n_repetitions, exhaustive, n_null, preset, max_steps, latent, random_state),
    )
    noise = (scan_noise,) if isinstance(scan_noise, int | float) else tuple(scan_noise)
    output = OutputSettings(report, limits, show_ids, None if figures is None else Path(figures), bids, level, noise)
    plan = planned(path, Path(out), table, search, output)
    if not overwrite and plan.is_complete():
        return FittedRun(plan.out, record.read_summary(plan.out), plan.cohort)
    return FittedRun(plan.out, carry_out(plan, overwrite=overwrite, progress=progress), plan.cohort)


def carry_out(
    plan: PlannedRun,
    *,
    command: str = "",
    truth: pd.DataFrame | None = None,
    overwrite: bool = False,
    models_per_chunk: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    ending: Callable[[], object] = lambda: None,
    wording: Wording = in_python,
) -> record.Summary:
    """Train on the controls and patients of a planned run, score everybody, and write the run folder.

    The folder is a journal while the run goes on: the same call again, after a sudden end, goes on where it stopped.

    Parameters
    ----------
    plan
        The people, and what is asked for.
    command
        The command line, for ``run.toml``.
    truth
        Known severities of a simulated cohort, to be compared with the R-indices.
    overwrite
        Whether to replace what run there is in the folder.
    models_per_chunk
        How many models train together; as many as fit if not given.
    progress
        Called as training goes on.
    ending
        Called just before the run becomes complete.
    wording
        How warnings and the verdict mention settings.

    Returns
    -------
    Summary
        What ``summary.json`` says.
    """
    start, out = time.perf_counter(), plan.out
    settings, correction = plan.settings(command), correction_of(plan.table)
    search = SurrealGANSearch(**asdict(plan.search), correction=correction, models_per_chunk=models_per_chunk)
    with record.held(out, settings, overwrite=overwrite) as goes_on:
        journal = Journal(out / record.JOURNAL, settings.fingerprint(), out / record.TRAINED)
        try:
            with ThreadPoolExecutor(1) as beside:  # what analyses and draws takes seconds to load: while a GPU trains
                beside.submit(import_module, "rindices.run.outcome")
                told = _fit(search, plan, journal, progress)
            from rindices.pages.report import write_report
            from rindices.run.outcome import summarise, write_results

            summary = write_results(plan, search, summarise(plan, search, told, wording), truth)
            settings = settings.model_copy(update={"plan": {"models_per_chunk": search.models_per_chunk_}})
            record.write_text(out / record.SETTINGS, settings.text())
            summary = summary.updated(resumed=goes_on, seconds=round(time.perf_counter() - start, 1))
            if plan.output.report:
                write_report(out, summary=summary, show_ids=plan.output.show_ids, figures=plan.output.figures)
            else:  # one that was asked for meanwhile says that the run is not finished
                (out / record.REPORT).unlink(missing_ok=True)
            ending()
            record.write_summary(out, summary)
        except InputError:
            if not goes_on and not journal.has_begun():
                record.discard(out)
            raise
        except Exception as error:
            from rindices.run.outcome import write_failure

            write_failure(plan, error, wording)
            raise
    record.keep_trained(out)
    return summary


def _fit(
    search: SurrealGANSearch, plan: PlannedRun, journal: Journal, progress: Callable[[Progress], None] | None
) -> list[Text]:
    """Fit, let the model know the table it came from, and return all warnings."""
    cohort, table = plan.cohort, plan.table
    training, covariates = cohort.training, cohort.covariates if cohort.covariates.shape[1] else None
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
        id_column=table.id,
        diagnosis_column=table.diagnosis,
        site_column=table.site,
        visit_column=table.visit,
        control_labels=cohort.control_labels,
        patient_labels=cohort.patient_labels,
        unit=table.unit,
    )
    told = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    damaged = [f"{name} in the journal was damaged and trained again." for name in journal.damaged]
    return [*cohort.messages, *told, *damaged]
