"""`rindices fit`, and `simulate` and `demo`: patterns learned, from your table or where they are known."""

from __future__ import annotations

import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rindices.cli.console import (
    console,
    describe_cohort,
    describe_run,
    end,
    on_command_line,
    set_output,
    show_places,
    training_bars,
)
from rindices.cli.exits import Ending, guarded, interruptible
from rindices.cli.options import (
    TABLE,
    CompleteOnly,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Level,
    Missing,
    Repetitions,
    ScanNoise,
    Seed,
    ShowIds,
    Steps,
    app,
    argument,
    check_output,
    limits_of,
    noise_of,
    numbers,
    option,
    whole_numbers,
)
from rindices.problems import InputError, Remedy
from rindices.settings import OutputSettings, SearchSettings, TableSettings

if TYPE_CHECKING:
    import pandas as pd

    from rindices.record import Summary
    from rindices.run.plan import PlannedRun

_PATTERNS = 3  # of a simulated cohort
# Options that go with --config: they change neither the table nor the training.
_WITH_CONFIG = {
    *("config", "table", "out", "workers", "dask", "models_per_chunk", "report", "subgroup_limits", "level"),
    *("scan_noise", "show_ids", "figures", "bids", "overwrite", "quiet", "log_json"),
}


@app.command()
@guarded
def simulate(
    kind: Annotated[str, argument("basic, overlap, scarce, noise, mild or null.")],
    out: Annotated[Path, option("Table to write (.csv), replaced if it exists.")],
    truth: Annotated[Path | None, option("Also write the true severities here (.csv), replaced if it exists.")] = None,
    controls: Annotated[int | None, option("Number of controls.", "492")] = None,
    patients: Annotated[int | None, option("Number of patients.", "900")] = None,
    patterns: Annotated[int, typer.Option(help="Number of disease patterns.")] = _PATTERNS,
    severities: Annotated[
        str,
        typer.Option(
            help="uniform; mild: Beta(1,3); absent: each pattern 0 in half of the patients; severe: Beta(3,1); or a "
            "table (.csv) with columns s1, s2 ... from 0 to 1, whose rows are drawn."
        ),
    ] = "uniform",
    correlation: Annotated[
        str | None, option("Correlation of the severities' normal scores: a number, or a file with a matrix.", "none")
    ] = None,
    severity_age: Annotated[float, typer.Option(help="Correlation of the severities with age (normal scores).")] = 0.0,
    visits: Annotated[int, typer.Option(help="Visits of each person, a year apart.")] = 1,
    progression: Annotated[
        float, typer.Option(help="With visits: mean growth of each severity in a year; from none to twice as much.")
    ] = 0.1,
    scan_noise: Annotated[
        float, typer.Option(help="With visits: sd of the noise of a scan, as a share of that between people.")
    ] = 0.2,
    own_controls: Annotated[Path | None, option("Build on your own table of healthy people.")] = None,
    seed: Seed = SearchSettings.random_state,
) -> None:
    """Make a cohort with known disease patterns.

    Built as in the Surreal-GAN paper, from an embedded population or from your own table of healthy people.
    """
    from rindices.simulate import SEVERITIES, simulate_cohort
    from rindices.tables import read_table

    matrix = None if correlation is None else _correlation(correlation)
    sources = [Path(path) for path in (own_controls, correlation, severities) if path is not None]
    check_output(out, "out", TABLE, *sources)
    check_output(truth, "truth", TABLE, *sources)
    cohort = simulate_cohort(
        kind,
        n_controls=controls,
        n_patients=patients,
        n_patterns=patterns,
        seed=seed,
        controls=None if own_controls is None else read_table(own_controls),
        severities=severities if severities in SEVERITIES or not Path(severities).is_file() else read_table(severities),
        severity_correlation=matrix,
        severity_age=severity_age,
        n_visits=visits,
        progression=progression,
        scan_noise=scan_noise,
    )
    cohort.save(out, truth)
    n_patients = len(cohort.truth) // visits
    n_controls = len(cohort.table) // visits - n_patients
    console.print(f"Simulated {kind!r}: {n_controls} controls, {n_patients} patients. {cohort.note}")
    show_places({"Table": out, "True severities": truth})


def _correlation(text: str) -> Any:
    """Read one number, or a file with a matrix: a row a line, numbers separated by spaces or commas."""
    try:
        if not Path(text).is_file():
            return float(text)
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"--correlation should be a number or a file with a matrix, found {text!r}.") from error
    return [re.split(r"[,;\s]+", line.strip()) for line in lines if line.strip()]


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
        str,
        option("Clinical scores to compare with the severities: columns, e.g. mmse,apoe4, or a table joined by id."),
    ] = "",
    join: Join = None,
    dictionary: Annotated[str | None, option("Data dictionary of the table: CSV, TSV, Excel or BIDS JSON.")] = None,
    missing: Missing = "",
    drop_missing: DropMissing = TableSettings.drop_missing,
    complete_only: CompleteOnly = TableSettings.complete_only,
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
        str, typer.Option(help="Severities below the first are low, above the second high, for subgroups.")
    ] = "{:g},{:g}".format(*OutputSettings.limits),
    level: Level = OutputSettings.level,
    scan_noise: ScanNoise = "",
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
    bids: Annotated[
        bool, typer.Option("--bids", help="Also write r_indices.tsv and .json as BIDS has them.")
    ] = OutputSettings.bids,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Print one JSON object a line.")] = False,
) -> None:
    """Learn patterns and give everybody R-indices and severities.

    The table is checked first; a mistake in it is told by column and row, and nothing is written. With several numbers
    of patterns, the fewest that fit the patients and whose repeated trainings agree are chosen. A run that was
    interrupted goes on when the same command is repeated.
    """
    from rindices.run.plan import planned, planned_again

    set_output(quiet=quiet, log_json=log_json)
    if out is None:
        raise InputError("A folder for the results is needed.\nGive one with --out FOLDER.")
    noise = noise_of(scan_noise)
    output = OutputSettings(report, limits_of(subgroup_limits), show_ids, figures, bids, level, noise)
    if config is not None:
        _refuse_others(context)
        plan = planned_again(config, out, output, table)
    elif table is None:
        raise InputError("A table is needed: rindices fit TABLE --out FOLDER.")
    else:
        columns = TableSettings(**{one.name: context.params[one.name] for one in fields(TableSettings)})
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
        end(out, "Done before.", report=(out / "report.html").is_file())
        return
    for name, change in ({} if overwrite else plan.more()).items():
        console.print(f"More of the run in {out}: {on_command_line(Remedy(name))} {change}. What is trained is kept.")
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
    from rindices.record import read_summary

    output, out = plan.output, plan.out
    if output.bids and not (out / "bids").is_dir():
        return "Its BIDS files are not there: repeat the command with --bids --overwrite to make it again with them."
    known = read_summary(out)
    if known.level != output.level:
        return f"Its intervals are of {known.level:g}: repeat the command with --overwrite to get others."
    limits = "{:g},{:g}".format(*output.limits)
    asked = {
        " --show-ids": output.show_ids,
        f" --figures {output.figures}": output.figures is not None,
        f" --subgroup-limits {limits}": output.limits != OutputSettings.limits,
        f" --scan-noise {','.join(map(str, output.scan_noise))}": bool(output.scan_noise),
    }
    report = "".join(option for option, is_asked in asked.items() if is_asked)
    others = "" if report else " (--show-ids, --figures, --subgroup-limits, --scan-noise)"
    return f"rindices report {out}{report} writes only its report again{others}; --overwrite makes it again."


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

    devices.prepare()  # before JAX is first asked for anything
    with ThreadPoolExecutor(1) as beside:  # a GPU takes seconds to start; meanwhile the engine is loaded
        place = beside.submit(devices.in_words)
        from rindices.run.fit_table import carry_out
        from rindices.training.clusters import parallel
    console.print(f"Training on {place.result()}.")
    ending = Ending()

    def work() -> Summary:
        with parallel(dask, workers), training_bars() as bars:
            return carry_out(
                plan,
                command=shlex.join(["rindices", *sys.argv[1:]]),
                truth=truth,
                overwrite=overwrite,
                models_per_chunk=models_per_chunk,
                progress=bars,
                ending=ending.acquire,
                wording=on_command_line,
            )

    return interruptible(work, f"Repeat the same command to go on: what was trained is kept in {plan.out}.", ending)


@app.command()
@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demonstration.")] = Path("demo"),
    repetitions: Repetitions = 4,
    steps: Steps = SearchSettings.max_steps,
    seed: Seed = SearchSettings.random_state,
) -> None:
    """Find known patterns in a simulated cohort.

    Makes a cohort with three disease patterns, finds them without being told, and compares with the truth.
    """
    from rindices.record import check_free
    from rindices.run.plan import planned
    from rindices.simulate import simulate_cohort

    table, truth, run = out / "cohort.csv", out / "truth.csv", out / "run"
    if out.is_dir() and any(out.iterdir()) and not (run / "summary.json").is_file():
        raise InputError(f"The folder {out} holds other files.\nChoose another folder with --out.")
    check_free(run)
    simulated = simulate_cohort("basic", n_patterns=_PATTERNS, seed=seed)
    simulated.save(table, truth)
    console.print(f"Simulated a cohort of 492 controls and 900 patients with three disease patterns: {table}")
    search = SearchSettings((_PATTERNS,), n_repetitions=repetitions, max_steps=steps, random_state=seed)
    plan = planned(table, run, TableSettings(covariates="age,sex", unit="mL"), search, OutputSettings())
    describe_cohort(plan.cohort)
    summary = train_and_write(plan, truth=simulated.truth, overwrite=True)
    if summary.recovery is not None:
        console.print(
            f"Concordance of the severities with the known truth: {summary.recovery.pattern_concordance:.3f} "
            f"({', '.join(f'{value:.3f}' for value in summary.recovery.per_pattern)}; 0.5 is chance, 1 is perfect)",
            style="bold",
        )
    describe_run(summary, run, plan.cohort)
