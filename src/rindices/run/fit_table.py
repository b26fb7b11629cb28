"""From settings to a run folder: train, judge, score, analyse and write. Nothing here prints."""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices import record
from rindices.analysis import balance_warnings
from rindices.cohort import Cohort, correction_of, follow_up_of
from rindices.core import devices, inference
from rindices.files import atomic_file, write_text
from rindices.judging import Separated
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.judging.verdict_and_separation import differences_that_count, separated
from rindices.presets import Correction
from rindices.problems import InputError, Text, Wording, in_python, without_data, without_people, worded
from rindices.run.bids_derivative import write_bids
from rindices.run.plan import PlannedRun, balance_of, planned, versions
from rindices.scoring.consensus_and_person import reference_of, unknown_of
from rindices.search import SurrealGANSearch
from rindices.settings import AUTO, ExecutionSettings, OutputSettings, SearchSettings, TableSettings
from rindices.training.execution import Progress
from rindices.training.journal import Journal

_RUNNERS_UP = 3
# Analyses and figures take seconds to import, and are needed only after training.
_NEEDED_LATER = ("rindices.run.scores_and_analyses", "rindices.pages.report")


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
    for name, given, kind in (
        ("table", table, TableSettings),
        ("search", search, SearchSettings),
        ("output", output, OutputSettings),
    ):
        if not isinstance(given, kind | None):
            raise InputError(f"`{name}` should be {kind.__name__}(...), but got {type(given).__name__}.")
    plan = planned(path, Path(out), table or TableSettings(), search or SearchSettings(), output or OutputSettings())
    if not overwrite and plan.is_complete():
        return FittedRun(plan.out, record.read_summary(plan.out), plan.cohort)
    return FittedRun(plan.out, run_plan(plan, ExecutionSettings(overwrite=overwrite), progress=progress), plan.cohort)


def run_plan(
    plan: PlannedRun,
    execution: ExecutionSettings,
    *,
    command: str = "",
    truth: pd.DataFrame | None = None,
    progress: Callable[[Progress], None] | None = None,
    ending: Callable[[], object] = lambda: None,
    wording: Wording = in_python,
) -> record.Summary:
    """Train on the controls and patients of a planned run, score everyone, and write the run folder.

    During the run, the folder is a journal: after a crash, the same call resumes where the run stopped.

    Parameters
    ----------
    plan
        The people and the settings.
    execution
        How many models train together, and whether to replace an existing run in the folder.
    command
        The command line, for ``run.toml``.
    truth
        True severities of a simulated cohort, to compare with the R-indices.
    progress
        Called during training.
    ending
        Called just before the run becomes complete.
    wording
        How settings are named in warnings and in the verdict.

    Returns
    -------
    Summary
        The content of ``summary.json``.
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
            messages, told_apart = _fit(search, plan, journal, tell)
            from rindices.pages.report import write_report

            tell(Progress("Scoring everyone and testing associations"))
            balance = balance_of(plan.cohort)
            results = _complete_model(plan, search, balance, wording)
            summary = summarise(plan, search, balance, messages, wording).updated(separation=told_apart)
            summary = write_results(plan, search, results, summary, truth)
            settings = settings.model_copy(update={"plan": {"models_per_chunk": search.models_per_chunk_}})
            write_text(out / record.SETTINGS, settings.text())
            summary = summary.updated(resumed=goes_on, seconds=round(time.perf_counter() - start, 1))
            if plan.output.report:
                tell(Progress("Drawing the report"))
                write_report(out, summary=summary, show_ids=plan.output.show_ids, figures=plan.output.figures)
            else:  # a report written meanwhile says that the run is not finished
                (out / record.REPORT).unlink(missing_ok=True)
            ending()
            record.write_summary(out, summary)
        except InputError:
            if not goes_on and not journal.has_begun():
                record.discard(out)
            raise
        except Exception as error:
            write_failure(plan, error, wording)
            raise
    record.keep_trained(out)
    return summary


def _fit(
    search: SurrealGANSearch, plan: PlannedRun, journal: Journal, tell: Callable[[Progress], None]
) -> tuple[list[Text], Separated | None]:
    """Fit, and return all warnings, and how well patients and controls are told apart."""
    told_apart: list[Future[Separated | None]] = []

    def watched(now: Progress) -> None:
        if now.done > now.resumed and not told_apart:  # while a GPU trains, the cores have nothing to do
            beside.map(import_module, _NEEDED_LATER)
            told_apart.append(beside.submit(separation, plan.cohort, search.correction))
        if now.done == now.total:  # last digits must not depend on what else is computed
            wait(told_apart)
        tell(now)

    with (
        ThreadPoolExecutor(1) as beside,
        warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught,
    ):
        search.fit(*plan.cohort.of_training(), progress=watched, store=journal)
    messages = [
        *plan.cohort.messages,
        *dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)),
        *(f"The models stored in {name} were damaged, so they were trained again." for name in journal.damaged),
    ]
    return messages, told_apart[0].result() if told_apart else separation(plan.cohort, search.correction)


def _complete_model(
    plan: PlannedRun, search: SurrealGANSearch, balance: pd.DataFrame, wording: Wording
) -> record.Results:
    """Complete and write the model: its source table, the final verdict, and the results for its own people."""
    from rindices.run.scores_and_analyses import results_of, store_training_results

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
    store_training_results(model, results)
    model.save(plan.out / record.MODEL)
    return results


def summarise(
    plan: PlannedRun, search: SurrealGANSearch, balance: pd.DataFrame, messages: Sequence[Text], wording: Wording
) -> record.Summary:
    """Return the summary of a finished training."""
    cohort, model, verdict = plan.cohort, search.best_estimator_, search.verdict_
    return _people(cohort).updated(
        status=record.DONE,
        n_patterns=model.n_patterns,
        patterns_chosen_from_data=plan.search.n_patterns == AUTO or len(plan.search.n_patterns) > 1,
        correction=asdict(search.correction or Correction())
        | {"n_sites": None if cohort.site is None else int(cohort.site.nunique())},
        weights=model.preset_.weights._asdict() | ({"prior": 0.0} if model.preset_.training.start == "random" else {}),
        preset=model.preset_.name,
        repetitions=len(model.members_) + len(model.left_out_),  # including replacements of failed ones
        members_used=len(model.members_),
        linear_makes_people=inference.linear_makes_people(model.models_),
        members_left_out=[{"member": one, "reason": why} for one, why in model.left_out_.items()],
        step=model.step_,
        agreement=model.agreement_._asdict(),
        latent="independent" if model.correlation_ is None else "correlated",
        correlation=None if model.correlation_ is None else model.correlation_.tolist(),
        verdict=verdict.state,
        reliable=verdict.reliable,
        reliable_reason=model.verdict_[1],
        evidence={name: None if one != one else one for name, one in asdict(verdict.evidence).items()},  # not NaN
        search=_search_record(search),
        balance=balance.to_dict("records"),
        warnings=[
            without_people(worded(messages, wording))
            for messages in (*messages, *unknown_of(model), *balance_warnings(balance))
        ],
        seed=model.seed_,
        versions=versions(),
        device=devices.in_words(),
        models_per_chunk=search.models_per_chunk_,
        peak_device_memory=devices.peak_memory(),
        unit=model.contract_.unit,
        subgroup_limits=plan.output.limits,
        level=plan.output.level,
        scan_noise=plan.output.scan_noise,
        reference=reference_of(model),
        finished=date.today().isoformat(),
    )


def separation(cohort: Cohort, correction: Correction | None) -> Separated | None:
    """Return how well held-out patients and controls are told apart: `judging.verdict_and_separation.separated`."""
    regions, patient, covariates = cohort.of_training()
    sites = None if cohort.site is None else pd.factorize(cohort.site[cohort.training])[0]
    # A missing region is set to the median of everyone, which carries no information about the group.
    return separated(regions.fillna(regions.median()).to_numpy(float), patient, covariates, correction, sites)


def _people(cohort: Cohort) -> record.Summary:
    """Return the summary of an unfinished run: who takes part."""
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


def _search_record(search: SurrealGANSearch) -> dict[str, object]:
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
    plan: PlannedRun,
    search: SurrealGANSearch,
    results: record.Results,
    summary: record.Summary,
    truth: pd.DataFrame | None,
) -> record.Summary:
    """Write all tables and figures of a finished run, and return the completed summary."""
    from rindices import plots
    from rindices.run.scores_and_analyses import analyse

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
    """Compare scores with the true severities of a simulated cohort; either may have more patterns."""
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
    """Record in the folder that the run failed, if it can still be written to."""
    from rindices.pages.report import write_report

    with suppress(OSError, ValueError):  # the folder still says that the run is not finished
        record.write_summary(
            plan.out,
            _people(plan.cohort).updated(
                status=record.FAILED,
                failure=without_data(error),
                warnings=tuple(without_people(worded(sentence, wording)) for sentence in plan.cohort.messages),
                versions=versions(),
            ),
        )
        if plan.output.report:
            write_report(plan.out)
