"""From settings to a run folder: trained, judged, scored, analysed and written. Nothing here prints."""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rindices import record
from rindices.cohort import Cohort, correction_of
from rindices.files import write_text
from rindices.judging.verdict_and_separation import differences_that_count
from rindices.problems import InputError, Text, Wording, in_python, worded
from rindices.run.plan import PlannedRun, balance_of, planned
from rindices.search import SurrealGANSearch
from rindices.settings import ExecutionSettings, OutputSettings, SearchSettings, TableSettings
from rindices.training.execution import Progress
from rindices.training.journal import Journal


class FittedRun(NamedTuple):
    """A finished run.

    Attributes
    ----------
    folder
        Folder of its results.
    summary
        Its results; ``summary.verdict`` and ``summary.reliable_reason`` are the verdict and the reason for it.
    cohort
        The people.
    """

    folder: Path
    summary: record.Summary
    cohort: Cohort


_KINDS = TableSettings, SearchSettings, OutputSettings


def fit_table(
    path: str | Path,
    out: str | Path,
    table: TableSettings | None = None,
    search: SearchSettings | None = None,
    output: OutputSettings | None = None,
    *,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> FittedRun:
    """Read a table, train, and write a run folder with its report: what ``rindices fit`` does.

    The same call resumes an interrupted run and returns a finished one unchanged. A finished run can be extended by
    more patterns or repetitions; finished trainings are kept.

    Parameters
    ----------
    path
        A table, or the folder of a BIDS dataset.
    out
        Folder for the results: new, or that of the same run.
    table, search, output
        Column roles, training settings, and what is written; by default the default settings.
    overwrite
        Whether to replace an existing run in the folder.
    progress
        Called during training.

    Returns
    -------
    FittedRun
        The folder, the results and the people.

    Raises
    ------
    InputError
        If the table or a setting cannot be used; in that case, nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> from rindices import simulate_cohort
    >>> folder = Path(tempfile.mkdtemp())
    >>> simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).save(folder / "people.csv")
    >>> table, search = TableSettings(covariates="age,sex"), SearchSettings(3, n_repetitions=3, preset="linear")
    >>> run = fit_table(folder / "people.csv", folder / "run", table, search, OutputSettings(report=False))
    >>> run.summary.n_patterns, run.summary.verdict, (run.folder / "r_indices.csv").is_file()
    (3, 'reproducible', True)
    """
    asked = table or TableSettings(), search or SearchSettings(), output or OutputSettings()
    for name, given, kind in zip(("table", "search", "output"), asked, _KINDS, strict=True):
        if not isinstance(given, kind):
            raise InputError(f"`{name}` should be {kind.__name__}(...), but got {type(given).__name__}.")
    plan = planned(path, Path(out), *asked)
    if not overwrite and plan.is_complete():
        return FittedRun(plan.out, record.read_summary(plan.out), plan.cohort)
    execution = ExecutionSettings(overwrite=overwrite)
    return FittedRun(plan.out, carry_out(plan, execution, progress=progress), plan.cohort)


def carry_out(
    plan: PlannedRun,
    execution: ExecutionSettings,
    *,
    command: str = "",
    truth: pd.DataFrame | None = None,
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
    execution
        How many models train together, and whether to replace what run there is in the folder.
    command
        The command line, for ``run.toml``.
    truth
        Known severities of a simulated cohort, to be compared with the R-indices.
    progress
        Called during training.
    ending
        Called just before the run becomes complete.
    wording
        How warnings and the verdict mention settings.

    Returns
    -------
    Summary
        What ``summary.json`` says.
    """
    start, out, tell = time.perf_counter(), plan.out, progress or (lambda _: None)
    settings, correction = plan.settings(command), correction_of(plan.table)
    search = SurrealGANSearch(
        **asdict(plan.search),
        correction=correction,
        models_per_chunk=execution.models_per_chunk or plan.models_per_chunk,
    )
    with record.held(out, settings, overwrite=execution.overwrite) as goes_on:
        journal = Journal(out / record.JOURNAL, settings.fingerprint(), out / record.TRAINED)
        try:
            with ThreadPoolExecutor(1) as beside:  # what analyses and draws takes seconds to load: while a GPU trains
                beside.submit(import_module, "rindices.run.write_results")
                messages = _fit(search, plan, journal, progress)
            from rindices.pages.report import write_report
            from rindices.run.write_results import summarise, write_results

            tell(Progress("Scoring everyone and testing associations"))
            balance = balance_of(plan.cohort)
            results = _complete_model(plan, search, balance, wording)
            summary = write_results(plan, search, results, summarise(plan, search, balance, messages, wording), truth)
            settings = settings.model_copy(update={"plan": {"models_per_chunk": search.models_per_chunk_}})
            write_text(out / record.SETTINGS, settings.text())
            summary = summary.updated(resumed=goes_on, seconds=round(time.perf_counter() - start, 1))
            if plan.output.report:
                tell(Progress("Drawing the report"))
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
            from rindices.run.write_results import write_failure

            write_failure(plan, error, wording)
            raise
    record.keep_trained(out)
    return summary


def _fit(
    search: SurrealGANSearch, plan: PlannedRun, journal: Journal, progress: Callable[[Progress], None] | None
) -> list[Text]:
    """Fit, and return all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        search.fit(*plan.cohort.of_training(), progress=progress, store=journal)
    messages = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    damaged = [f"{name} in the journal was damaged and has been retrained." for name in journal.damaged]
    return [*plan.cohort.messages, *messages, *damaged]


def _complete_model(
    plan: PlannedRun, search: SurrealGANSearch, balance: pd.DataFrame, wording: Wording
) -> record.Results:
    """Complete the model and write it: the table it came from, the final verdict, and what it says about its people."""
    from rindices.run.scores_and_analyses import keep_training, results_of

    cohort, table, model = plan.cohort, plan.table, search.best_estimator_
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
    search.verdict_ = search.verdict_.with_differences(differences_that_count(balance))
    model.verdict_ = search.verdict_.state, worded(search.verdict_.message, wording)
    results = results_of(model, cohort, plan.output.level)
    keep_training(model, results)
    model.save(plan.out / record.MODEL)
    return results
