"""`rindices fit`: learn patterns and give everybody R-indices."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rindices.cli.application import (
    LIMITS,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Missing,
    Repetitions,
    Seed,
    ShowIds,
    Steps,
    app,
    argument,
    limits_of,
    numbers,
    option,
    whole_numbers,
)
from rindices.cli.console import (
    TrainingBars,
    console,
    describe_cohort,
    describe_places,
    describe_run,
    log,
    on_command_line,
    set_output,
)
from rindices.cli.stopping import Ending, guarded, interruptible
from rindices.errors import InputError
from rindices.settings import OutputSettings, SearchSettings, TableSettings

if TYPE_CHECKING:
    import pandas as pd

    from rindices.record import Summary
    from rindices.run.plan import PlannedRun

# Options that go with --config: they change neither the table nor the training.
_WITH_CONFIG = {
    *("config", "table", "out", "workers", "dask", "models_per_chunk", "report", "subgroup_limits", "show_ids"),
    *("figures", "bids", "overwrite", "quiet", "log_json"),
}


@app.command()
@guarded
def fit(
    context: typer.Context,
    table: Annotated[
        Path | None, argument("Table of people: CSV, TSV, Excel or Parquet, one row a person; or a BIDS folder.")
    ] = None,
    out: Annotated[Path | None, option("Folder for the results: new, or that of the same run, which goes on.")] = None,
    id: Annotated[str, typer.Option(help="Column with the people's ids.")] = TableSettings.id,
    diagnosis: Annotated[str, typer.Option(help="Column with the diagnosis labels.")] = TableSettings.diagnosis,
    control: Annotated[str | None, option("Label(s) of controls; CN, HC, control, 0 ... are recognised.")] = None,
    patients: Annotated[str | None, option("Label(s) of patients, e.g. MCI,AD; others are only scored.")] = None,
    covariates: Annotated[str, option("Columns whose effects are removed, e.g. age,sex.")] = "",
    smooth: Annotated[str, option("Covariates whose effect is a curve rather than a line, e.g. age.")] = "",
    interactions: Annotated[str, option("Covariates that change each other's effect, e.g. age:sex.")] = "",
    proportion: Annotated[str | None, option("Head size that the regions are divided by, e.g. icv.")] = None,
    site: Annotated[str | None, option("Column with the site: its shifts and scales are removed (ComBat).")] = None,
    small_sites: Annotated[
        str, typer.Option(help="Sites with fewer than 5 controls: refuse, or drop their people.")
    ] = TableSettings.small_sites,
    visit: Annotated[str | None, option("Column that tells a person's repeated visits apart.")] = None,
    clinical: Annotated[
        str, option("Clinical scores to compare with the R-indices: columns, e.g. mmse,apoe4, or a table joined by id.")
    ] = "",
    join: Join = None,
    dictionary: Annotated[str | None, option("Data dictionary of the table: CSV, TSV, Excel or BIDS JSON.")] = None,
    missing: Missing = "",
    drop_missing: DropMissing = TableSettings.drop_missing,
    drop_outliers: Annotated[
        bool, typer.Option("--drop-outliers", help="Leave out people far from all others; they are listed.")
    ] = TableSettings.drop_outliers,
    features: Annotated[str | None, option("Regions: names, prefix*, or a file of names.", "all numbers")] = None,
    exclude: Exclude = "",
    unit: Annotated[str | None, option("Unit of the regions, e.g. mL; kept with the model.")] = None,
    patterns: Annotated[
        str, typer.Option(help="Disease patterns to look for: 3, or several to choose from: 2-5.")
    ] = ",".join(map(str, SearchSettings.n_patterns)),
    orthogonality: Annotated[
        str | None, option("How strongly patterns are kept apart; several to choose from: 0.2,0.4,0.8.", "by preset")
    ] = None,
    repetitions: Repetitions = SearchSettings.n_repetitions,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Train every setting in full.")
    ] = SearchSettings.exhaustive,
    null: Annotated[
        int, typer.Option(help="Refits with people dealt out anew (19 or more): is there anything to find?")
    ] = SearchSettings.n_null,
    preset: Annotated[str, typer.Option(help="fast, paper or official.")] = SearchSettings.preset,
    latent: Annotated[
        str | None, option("independent or correlated: whether severities may be correlated.", "by preset")
    ] = None,
    steps: Steps = SearchSettings.max_steps,
    seed: Seed = SearchSettings.random_state,
    config: Annotated[Path | None, option("Run again what the run.toml of a run says.")] = None,
    workers: Annotated[int | None, option("Train in this many processes.", "threads", min=1)] = None,
    dask: Annotated[str | None, option("Train on a Dask cluster: tcp://HOST:PORT, or local.")] = None,
    models_per_chunk: Annotated[int | None, option("Models that train together.", "what fits", min=1)] = None,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = OutputSettings.report,
    subgroup_limits: Annotated[
        str, typer.Option(help="R-indices below the first are low, above the second high, for subgroups.")
    ] = LIMITS,
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
    bids: Annotated[
        bool, typer.Option("--bids", help="Also write r_indices.tsv and .json as BIDS has them.")
    ] = OutputSettings.bids,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Print one JSON object a line.")] = False,
) -> None:
    """Learn patterns and give everybody R-indices.

    The table is checked first; a mistake in it is told by column and row, and nothing is written. With several numbers
    of patterns, the one whose repeated trainings agree best is chosen. A run that was interrupted goes on when the
    same command is repeated.
    """
    from rindices.run.plan import planned, planned_again

    set_output(quiet=quiet, log_json=log_json)
    if out is None:
        raise InputError("A folder for the results is needed.\nGive one with --out FOLDER.")
    output = OutputSettings(report, limits_of(subgroup_limits), show_ids, figures, bids)
    if config is not None:
        _refuse_others(context)
        plan = planned_again(config, out, output, table)
    elif table is None:
        raise InputError("A table is needed: rindices fit TABLE --out FOLDER.")
    else:
        given = {one.name: context.params[one.name] for one in fields(TableSettings)}
        columns = TableSettings(**given)
        search = SearchSettings(
            n_patterns=whole_numbers("--patterns", patterns),
            orthogonality=(orthogonality and numbers("--orthogonality", orthogonality, "0.8 or 0.2,0.4,0.8")) or None,
            n_repetitions=repetitions,
            exhaustive=exhaustive,
            n_null=null,
            preset=preset,
            max_steps=steps,
            latent=latent,  # type: ignore[arg-type]  # checked where it is used
            random_state=seed,
        )
        plan = planned(table, out, columns, search, output)
    describe_cohort(plan.cohort)
    if not overwrite and plan.is_complete():
        console.print(f"This very run is already complete: nothing to do. {_how_else(plan)}")
        describe_places(out, report=(out / "report.html").is_file())
        log("done", status="done", exit_code=0, out=str(out))
        console.print("Done before.", style="green")
        return
    summary = train_and_write(
        plan,
        overwrite=overwrite,
        dask=dask,
        workers=workers,
        models_per_chunk=models_per_chunk or plan.models_per_chunk,
    )
    describe_run(summary, out, plan.cohort, report=report)


def _refuse_others(context: typer.Context) -> None:
    """Refuse options that a run.toml decides."""
    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    others = [f"--{name.replace('_', '-')}" for name in given if name not in _WITH_CONFIG]
    if others:
        raise InputError(
            f"--config runs the same again, so it does not go with {', '.join(others)}.\nLeave out either."
        )


def _how_else(plan: PlannedRun) -> str:
    """Say how to get what a finished run was asked for besides."""
    output, out = plan.output, plan.out
    if output.bids and not (out / "bids").is_dir():
        return "Its BIDS files are not there: repeat the command with --bids --overwrite to make it again with them."
    asked = " --show-ids" if output.show_ids else ""
    asked += "" if output.figures is None else f" --figures {output.figures}"
    asked += "" if output.limits == OutputSettings.limits else " --subgroup-limits {:g},{:g}".format(*output.limits)
    if asked:
        return f"Write its report again with{asked}: rindices report {out}{asked}"
    return (
        "--overwrite makes it again; "
        f"rindices report {out} writes only its report again (--show-ids, --figures, --subgroup-limits)."
    )


def train_and_write(
    plan: PlannedRun,
    *,
    truth: pd.DataFrame | None = None,
    overwrite: bool = False,
    dask: str | None = None,
    workers: int | None = None,
    models_per_chunk: int | None = None,
) -> Summary:
    """Load the engine, train behind progress bars, and write the run folder."""
    from rindices.core import devices
    from rindices.run.workflow import carry_out
    from rindices.training.clusters import parallel

    devices.prepare()  # before JAX is first asked for anything
    console.print(f"Training on {devices.in_words()}.")
    ending = Ending()

    def work() -> Summary:
        with parallel(dask, workers), TrainingBars() as bars:
            return carry_out(
                plan,
                command=shlex.join(["rindices", *sys.argv[1:]]),
                truth=truth,
                overwrite=overwrite,
                models_per_chunk=models_per_chunk,
                progress=bars,
                ending=ending,
                wording=on_command_line,
            )

    return interruptible(work, f"Repeat the same command to go on: what was trained is kept in {plan.out}.", ending)
