"""`rindices fit`, `simulate` and `demo`: learn patterns from your table, or from data with known patterns."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rindices.cli.console_and_exits import (
    console,
    interruptible,
    log,
    long_wait,
    on_command_line,
    regions_in_words,
    set_output,
    show_places,
    show_verdict,
    training_bars,
    warn,
)
from rindices.cli.options import (
    TABLE,
    argument,
    check_output,
    command,
    given_options,
    option,
)
from rindices.problems import Blank, InputError, Remedy, counted, listed, quoted, without_people, worded
from rindices.settings import ExecutionSettings, OutputSettings, SearchSettings, SimulationSettings, TableSettings

if TYPE_CHECKING:
    import pandas as pd

    from rindices.cohort import Cohort
    from rindices.record import Summary
    from rindices.run.plan import PlannedRun

_DEMONSTRATION = SearchSettings(n_repetitions=5)
_NOT_NONE = " The absence of reproducible patterns does not mean that there is no difference."


@command()
def simulate(
    kind: Annotated[
        str,
        argument("Kind of cohort: basic, overlap, scarce, noise, mild, dense, half, graded, signed, shift or null."),
    ],
    out: Annotated[Path, option("Table to write (.csv); an existing file is replaced.")],
    truth: Annotated[
        Path | None, option("Also write the true severities to this file (.csv); an existing file is replaced.")
    ] = None,
    *,
    asked: SimulationSettings,
) -> None:
    """Simulate a cohort with known disease patterns.

    Cohorts are built as in the Surreal-GAN paper, from an embedded population or your own table of healthy people.
    """
    from rindices.simulate import SEVERITIES, simulate_cohort
    from rindices.tables import read_table

    severities, correlation, controls = asked.severities, asked.severity_correlation, asked.controls
    sources = [Path(path) for path in (controls, correlation, severities) if path is not None]
    check_output(out, "out", TABLE, *sources)
    check_output(truth, "truth", TABLE, *sources)
    is_named = severities in SEVERITIES or not Path(severities).is_file()
    tables = {
        "severities": severities if is_named else read_table(severities),
        "severity_correlation": None if correlation is None else _correlation(correlation),
        "controls": None if controls is None else read_table(controls),
    }
    cohort = simulate_cohort(kind, **vars(asked) | tables)
    cohort.save(out, truth)
    n_patients = len(cohort.truth) // asked.n_visits
    n_controls = len(cohort.table) // asked.n_visits - n_patients
    console.print(f"Simulated {kind!r}: {n_controls} controls, {n_patients} patients. {cohort.note}")
    show_places({"Table": out, "True severities": truth})


def _correlation(text: str) -> Any:
    """Read one number, or a file with a matrix: one row per line, numbers separated by spaces or commas."""
    try:
        if not Path(text).is_file():
            return float(text)
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"--correlation should be a number or a file with a matrix, but got {text!r}.") from error
    return [re.split(r"[,;\s]+", line.strip()) for line in lines if line.strip()]


@command()
def fit(
    context: typer.Context,
    tables: Annotated[
        list[Path] | None,
        argument(
            "Table of people with one row per person (CSV, TSV, Excel or Parquet); a BIDS folder; or separate files "
            "for controls and patients, as in CN=controls.csv AD=patients.csv.",
            "TABLE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("Folder for the results: a new folder, or the folder of an unfinished run, which is then resumed."),
    ] = None,
    *,
    columns: TableSettings,
    search: SearchSettings,
    output: OutputSettings,
    execution: ExecutionSettings,
) -> None:
    """Learn disease patterns, and score everyone.

    The table is checked first. If it contains errors, their rows and columns are reported, and nothing is written. To
    resume an interrupted run, run the same command again.
    """
    from rindices.run.plan import planned, planned_again
    from rindices.tables import path_of_tables

    began = time.perf_counter()
    set_output(quiet=execution.quiet, log_json=execution.log_json)
    table = path_of_tables(tables) if tables else None
    if out is None:
        raise InputError("An output folder is required.\nProvide one with ", Remedy("out", Blank("FOLDER")), ".")
    if execution.config is not None:
        if others := given_options(context, TableSettings, SearchSettings):
            raise InputError(
                Remedy("config"),
                f" repeats a run with the same settings, so it cannot be combined with {', '.join(others)}.\n"
                "Omit one or the other.",
            )
        plan = planned_again(execution.config, out, output, table)
    elif table is None:
        raise InputError("A table is required.\nUsage: rindices fit TABLE ", Remedy("out", Blank("FOLDER")), ".")
    else:
        plan = planned(table, out, columns, search, output)
    _describe_cohort(plan.cohort)
    if not execution.overwrite and plan.is_complete():
        console.print(f"This run is already complete, so there is nothing to do. {_way_to_missing_output(plan)}")
        _end(out, "Already done.", report=(out / "report.html").is_file())
        return
    for name, change in ({} if execution.overwrite else plan.more()).items():
        console.print(
            f"Extending the run in {out}: {on_command_line(Remedy(name))} {change}. Models already trained are kept."
        )
    _describe_run(train_and_write(plan, execution), out, plan.cohort, began, report=output.report)


def _describe_cohort(cohort: Cohort) -> None:
    """Show the people and the columns that were read."""
    from rindices.schema.role_guesses import grouped, kinds_of

    people = [
        counted(cohort.n_controls, "control"),
        counted(cohort.n_patients, "patient"),
        *([counted(cohort.n_other, "other person", "other people")] if cohort.n_other else []),
    ]
    console.print(
        f"Read {cohort.source}: {', '.join(people)} "
        f"({', '.join(cohort.control_labels)} versus {', '.join(cohort.patient_labels)})."
    )
    names = [str(name) for name in cohort.features.columns]
    console.print(regions_in_words(grouped(names, kinds_of(names, cohort.features.to_numpy()))))
    size = cohort.settings.proportion
    removed = listed([name for name in cohort.covariates if name != size], 20) or "none"
    console.print(
        f"Covariates whose effects are removed: {removed}.{f' Regions are divided by {size}.' if size else ''}"
    )
    log(
        "table",
        source=cohort.source,
        regions=len(names),
        controls=cohort.n_controls,
        patients=cohort.n_patients,
        others=cohort.n_other,
    )
    warn(cohort.messages)


def _describe_run(summary: Summary, out: Path, cohort: Cohort, began: float, *, report: bool = True) -> None:
    """Show the results and where they are; the last line gives the status and the time since the command began."""
    value = summary.agreement.get("pattern_agreement")
    step = f" at step {summary.step:,}" * bool(summary.step)  # linear models have none
    console.print(summary.search.reason)
    agreement = "unknown with a single repetition" if value is None else f"{value:.3f} (0.5 is chance, 1 is perfect)"
    console.print(
        f"Used {summary.members_used} of {counted(summary.repetitions, 'repetition')}{step}; "
        f"the agreement among all valid repetitions is {agreement}."
    )
    shown_before = {without_people(worded(warning, on_command_line)) for warning in cohort.messages}
    warn(warning for warning in summary.warnings if warning not in shown_before)
    if summary.separation is not None:
        auc, low, high = summary.separation.auc, summary.separation.low, summary.separation.high
        console.print(
            f"Cross-validated AUC for patients versus controls: {auc:.2f} (95 % interval {low:.2f} to {high:.2f}; "
            f"0.5 is chance).{_NOT_NONE if summary.verdict == 'not reproducible' and low > 0.5 else ''}"
        )
    show_verdict(summary)
    kept = {
        name: getattr(summary, name)
        for name in ("n_patterns", "agreement", "verdict", "reliable", "reliable_reason", "seconds")
    }
    _end(out, f"Done in {time.perf_counter() - began:.0f} s.", report=report, **kept)


def _end(out: Path, last: str, *, report: bool, **fields: object) -> None:
    """Show where the results are, and a closing line."""
    show_places(
        {
            "R-indices": out / "r_indices.csv",
            "Patterns": out / "patterns.csv",
            "Model": out / "model.safetensors",
            "Picture": out / "r_indices.png",
            "Report": out / "report.html" if report else None,
        }
    )
    log("done", status="done", exit_code=0, out=str(out), **fields)
    console.print(last, style="green")


def _way_to_missing_output(plan: PlannedRun) -> str:
    """Return how to obtain output that was requested but that the finished run does not have."""
    from rindices.record import read_summary

    output, out = plan.output, plan.out
    if output.bids and not (out / "bids").is_dir():
        return "Its BIDS files are missing; to write them, run the command again with --bids --overwrite."
    summary = read_summary(out)
    if summary.level != output.level:
        return (
            f"Its intervals have a level of {summary.level:g}; to change the level, run the command again "
            "with --overwrite."
        )
    asked = {
        " --show-ids": output.show_ids,
        f" --figures {output.figures}": output.figures is not None,
        " --subgroup-limits {:g},{:g}".format(*output.limits): output.limits != OutputSettings.limits,
        f" --scan-noise {','.join(map(str, output.scan_noise))}": bool(output.scan_noise),
    }
    report = "".join(option for option, is_asked in asked.items() if is_asked)
    others = "" if report else " (with --show-ids, --figures, --subgroup-limits or --scan-noise)"
    return f"To rewrite only the report{others}, use rindices report {out}{report}. To repeat the run, use --overwrite."


def train_and_write(plan: PlannedRun, execution: ExecutionSettings, truth: pd.DataFrame | None = None) -> Summary:
    """Load the engine, train behind progress bars, and write the run folder."""
    from rindices.core import devices

    devices.prepare()  # before JAX is first used
    with ThreadPoolExecutor(1) as beside:  # a GPU takes seconds to start; meanwhile the engine is loaded
        place = beside.submit(devices.in_words)
        from rindices.run.fit_table import run_plan
        from rindices.training.execution import parallel
    console.print(f"Training on {place.result()}{long_wait(plan.cohort.features.size)}.")

    def work(ending: Callable[[], object]) -> Summary:
        with parallel(execution.dask, execution.workers), training_bars() as bars:
            return run_plan(
                plan,
                execution,
                command=" ".join(map(quoted, ["rindices", *sys.argv[1:]])),
                truth=truth,
                progress=bars,
                ending=ending,
                wording=on_command_line,
            )

    return interruptible(work, f"To resume, run the same command again; the models already trained are in {plan.out}.")


@command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demonstration.")] = Path("demo"),
    search: Annotated[SearchSettings, "n_repetitions", "max_steps", "random_state"] = _DEMONSTRATION,
) -> None:
    """Find known patterns in a simulated cohort.

    Simulates a cohort with three disease patterns, finds the patterns without access to the truth, and compares the
    result with the truth.
    """
    from rindices.record import check_free
    from rindices.run.plan import planned
    from rindices.simulate import simulate_cohort

    began, table, truth, run = time.perf_counter(), out / "cohort.csv", out / "truth.csv", out / "run"
    if out.is_dir() and any(out.iterdir()) and not (run / "summary.json").is_file():
        raise InputError(f"The folder {out} already contains other files.\nChoose another folder with --out.")
    check_free(run)
    simulated = simulate_cohort("basic", n_patterns=SimulationSettings.n_patterns, seed=search.random_state)
    simulated.save(table, truth)
    console.print(f"Simulated a cohort of 492 controls and 900 patients with three disease patterns: {table}")
    plan = planned(table, run, TableSettings(covariates="age,sex", unit="mL"), search, OutputSettings())
    _describe_cohort(plan.cohort)
    summary = train_and_write(plan, ExecutionSettings(overwrite=True), simulated.truth)
    if summary.recovery is not None:
        console.print(
            f"Mean concordance with the true severities: {summary.recovery.pattern_concordance:.3f} (by pattern: "
            f"{', '.join(f'{value:.3f}' for value in summary.recovery.per_pattern)}; 0.5 is chance, 1 is perfect)",
            style="bold",
        )
    _describe_run(summary, run, plan.cohort, began)
