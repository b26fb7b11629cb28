"""The command line: `rindices simulate | fit | apply | describe | report | demo`.

Commands check their input with the light modules first and load the training engine only when it is needed.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import rindices
from rindices.console import (
    console,
    describe_cohort,
    describe_places,
    describe_run,
    guarded,
    log,
    set_output,
    train_and_write,
)
from rindices.errors import InputError, counted, listed
from rindices.files import check_writable, refuse_same

if TYPE_CHECKING:
    from rindices.cohort import Cohort, Contract, People

app = typer.Typer(
    help="R-indices: how badly, and in how many ways, a disease changes each person's brain.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    if version:
        console.print(f"rindices {rindices.__version__}")
        raise typer.Exit


def _argument(help: str) -> typer.models.ArgumentInfo:
    return typer.Argument(help=help, show_default=False)


def _option(help: str, default: str | bool = False, **limits: Any) -> typer.models.OptionInfo:
    """Return an option whose default is told in words, or not at all."""
    return typer.Option(help=help, show_default=default, **limits)


Table = Annotated[Path, _argument("Table of people: CSV, TSV or Parquet, one row a person.")]
Model = Annotated[Path, _argument("The model.safetensors of a finished run.")]
Exclude = Annotated[str, _option("Columns of numbers that are not regions: names or prefix*, separated by commas.")]
Steps = Annotated[int | None, _option("Longest training.", "by preset", min=1)]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed repeats the same result.")]
Repetitions = Annotated[int, typer.Option(min=1, help="Trainings to compare and average.")]


@app.command()
@guarded
def simulate(
    kind: Annotated[str, _argument("basic, overlap, scarce, noise, mild or null.")],
    out: Annotated[Path, _option("Table to write.")],
    truth: Annotated[Path | None, _option("Also write the true severities here.")] = None,
    controls: Annotated[int | None, _option("Number of controls.", "492")] = None,
    patients: Annotated[int | None, _option("Number of patients.", "900")] = None,
    patterns: Annotated[int, typer.Option(help="Number of disease patterns.")] = 3,
    correlation: Annotated[
        str | None, _option("Correlation of the severities' normal scores: a number, or a file with a matrix.", "none")
    ] = None,
    own_controls: Annotated[Path | None, _option("Build on your own table of healthy people.")] = None,
    seed: Seed = 0,
) -> None:
    """Make a cohort with known disease patterns.

    Built as in the Surreal-GAN paper, from an embedded population or from your own table of healthy people.
    """
    from rindices.cohort import read_table
    from rindices.simulate import simulate_cohort

    matrix = None if correlation is None else _correlation(correlation)
    sources = [Path(path) for path in (own_controls, correlation) if path is not None]
    for path in (out, truth):
        if path is not None:
            check_writable(path)
            refuse_same(path, *sources)
    people = None if own_controls is None else read_table(own_controls)
    try:
        cohort = simulate_cohort(
            kind,
            n_controls=controls,
            n_patients=patients,
            n_patterns=patterns,
            seed=seed,
            controls=people,
            severity_correlation=matrix,
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    cohort.save(out, truth)
    n_patients = len(cohort.truth)
    console.print(
        f"Simulated {kind!r}: {len(cohort.table) - n_patients} controls, {n_patients} patients. {cohort.note}"
    )
    console.print(f"Table: {out}")
    if truth is not None:
        console.print(f"True severities: {truth}")


def _correlation(text: str) -> Any:
    """Read one number, or a file with a matrix: a row a line, numbers separated by spaces or commas."""
    try:
        return float(text)
    except ValueError:
        pass
    if not Path(text).is_file():
        raise InputError(f"--correlation should be a number or a file with a matrix, found {text!r}.")
    try:
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{text} cannot be read as a matrix: {error}.") from error
    return [line.replace(",", " ").replace(";", " ").split() for line in lines if line.strip()]


@app.command()
@guarded
def fit(
    context: typer.Context,
    table: Annotated[Path | None, _argument("Table of people: CSV, TSV or Parquet, one row a person.")] = None,
    out: Annotated[Path | None, _option("Folder for the results: new, or that of the same run, which goes on.")] = None,
    id: Annotated[str, typer.Option(help="Column with the people's ids.")] = "participant_id",
    diagnosis: Annotated[str, typer.Option(help="Column with the diagnosis labels.")] = "diagnosis",
    control: Annotated[str | None, _option("Label(s) of controls; CN, HC, control, 0 ... are recognised.")] = None,
    patients: Annotated[str | None, _option("Label(s) of patients, e.g. MCI,AD; others are only scored.")] = None,
    covariates: Annotated[str, _option("Columns whose effects are removed, e.g. age,sex.")] = "",
    features: Annotated[str | None, _option("Regions: names, prefix*, or a file of names.", "all numbers")] = None,
    exclude: Exclude = "",
    unit: Annotated[str | None, _option("Unit of the regions, e.g. mL; kept with the model.")] = None,
    patterns: Annotated[
        str, typer.Option(help="Disease patterns to look for: 3, or several to choose from: 2-5.")
    ] = "3",
    orthogonality: Annotated[
        str | None, _option("How strongly patterns are kept apart; several to choose from: 0.2,0.4,0.8.", "by preset")
    ] = None,
    repetitions: Repetitions = 10,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Train every setting in full.")] = False,
    null: Annotated[
        int, typer.Option(help="Refits with permuted labels (19 or more) that test whether there is anything to find.")
    ] = 0,
    preset: Annotated[str, typer.Option(help="fast, paper or official.")] = "fast",
    latent: Annotated[
        str | None, _option("independent or correlated: whether severities may be correlated.", "by preset")
    ] = None,
    steps: Steps = None,
    seed: Seed = 0,
    config: Annotated[Path | None, _option("Run again what the run.toml of a run says.")] = None,
    workers: Annotated[int | None, _option("Train in this many processes.", "threads", min=1)] = None,
    dask: Annotated[str | None, _option("Train on a Dask cluster: tcp://HOST:PORT, or local.")] = None,
    models_per_chunk: Annotated[int | None, _option("Models that train together.", "what fits", min=1)] = None,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Print one JSON object a line.")] = False,
) -> None:
    """Learn patterns and give everybody R-indices.

    The table is checked first; a mistake in it is told by column and row, and nothing is written. With several numbers
    of patterns, the one whose repeated trainings agree best is chosen. A run that was interrupted goes on when the
    same command is repeated.
    """
    set_output(quiet=quiet, log_json=log_json)
    if out is None:
        raise InputError("A folder for the results is needed.\nGive one with --out FOLDER.")
    if config is not None:
        source, options, models_per_chunk = _replayed(context, config, table, models_per_chunk)
    elif table is None:
        raise InputError("A table is needed: rindices fit TABLE --out FOLDER.")
    else:
        roles = {"id": id, "diagnosis": diagnosis, "control": control, "patients": patients, "covariates": covariates}
        source = {"path": str(table), **roles, "features": features, "exclude": exclude, "unit": unit}
        options = {"n_patterns": _numbers("--patterns", patterns, int)}
        options |= {
            "orthogonality": None if orthogonality is None else _numbers("--orthogonality", orthogonality, float)
        }
        options |= {"n_repetitions": repetitions, "exhaustive": exhaustive, "n_null": null, "preset": preset}
        options |= {"max_steps": steps, "latent": latent, "random_state": seed}
    _check_options(options)
    _fit(source, options, out, overwrite=overwrite, report=report, plan=models_per_chunk, dask=dask, workers=workers)


def _fit(
    source: dict[str, Any],
    options: dict[str, Any],
    out: Path,
    *,
    overwrite: bool,
    report: bool,
    plan: int | None,
    **where: Any,
) -> None:
    from rindices.run_folder import check_free, is_complete

    check_free(out)
    expected = source.pop("sha256", None)
    unit = source.pop("unit", None)
    path = Path(source.pop("path"))
    cohort = _read_cohort(path, source)
    if expected is not None and cohort.sha256 != expected:
        raise InputError(f"{path} is not the table that the run was made of: its contents differ.\nGive that table.")
    describe_cohort(cohort)
    settings = _settings(cohort, {"path": str(path), **source, "unit": unit}, options)
    if not overwrite and is_complete(out, settings):
        console.print("This very run is already complete: nothing to do. --overwrite makes it again.")
        describe_places(out, report=(out / "report.html").is_file())
        log("done", status="done", exit_code=0, out=str(out))
        console.print("Done before.", style="green")
        return
    options = options | {"models_per_chunk": plan}
    summary = train_and_write(
        cohort,
        options,
        out,
        settings=settings,
        report=report,
        overwrite=overwrite,
        cluster=where["dask"],
        workers=where["workers"],
    )
    describe_run(summary, out, cohort, report=report)


def _read_cohort(path: Path, source: dict[str, Any]) -> Cohort:
    from rindices.cohort import read_cohort
    from rindices.interop.muse import MUSE72, MUSE72_NAMES, with_muse72

    if source.get("features") != MUSE72:
        return read_cohort(path, **source)
    others = {"features": MUSE72_NAMES, "exclude": ()}
    return read_cohort(path, **source | others, prepare=lambda table: with_muse72(table, source["exclude"]))


_WITH_CONFIG = {"config", "table", "out", "workers", "dask", "models_per_chunk", "report"} | {
    "overwrite",
    "quiet",
    "log_json",
}


def _replayed(
    context: typer.Context, config: Path, table: Path | None, models_per_chunk: int | None
) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """Return table, options and plan that a `run.toml` says; options that would change them are refused."""
    from rindices.run_folder import read_settings

    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    others = [f"--{name.replace('_', '-')}" for name in given if name not in _WITH_CONFIG]
    if others:
        raise InputError(
            f"--config runs the same again, so it does not go with {', '.join(others)}.\nLeave out either."
        )
    settings = read_settings(config)
    try:
        source, options = dict(settings["table"]), dict(settings["training"])
        path = Path(source["path"]) if table is None else table
        source = {"exclude": ()} | source | {"path": str(path)}
        for name in ("control", "patients", "unit"):
            source.setdefault(name, None)
        for name in ("orthogonality", "max_steps", "latent"):
            options.setdefault(name, None)
        plan = settings.get("plan", {}).get("models_per_chunk")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{config} is not the run.toml of a run: {error} is missing.") from error
    unknown = sorted({*source} - _TABLE_KEYS | {*options} - _OPTION_KEYS)
    if unknown:
        raise InputError(f"{config} has settings that are not known: {', '.join(unknown)}.")
    return source, options, models_per_chunk or plan


_TABLE_KEYS = {"path", "sha256", "id", "diagnosis", "control", "patients", "covariates", "features", "exclude", "unit"}
_OPTION_KEYS = {"n_patterns", "orthogonality", "n_repetitions", "exhaustive", "n_null", "preset", "max_steps"} | {
    "latent",
    "random_state",
}


def _numbers(option: str, text: str, kind: type) -> list[Any]:
    """Read ``2-5`` (whole numbers) or ``0.2,0.4``."""
    found: list[Any] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        try:
            found += range(int(low), int(high) + 1) if dash and kind is int else [kind(part.strip())]
        except ValueError as error:
            example = "3, 2,3 or 2-5" if kind is int else "0.8 or 0.2,0.4,0.8"
            raise InputError(f"{option} should be like {example}, found {text!r}.") from error
    if not found:
        raise InputError(f"{option} {text!r} holds no number: the first should not exceed the last.")
    return list(dict.fromkeys(found))


def _check_options(options: dict[str, Any]) -> None:
    from rindices.config import LATENTS, PRESETS

    if options["preset"] not in PRESETS:
        raise InputError(f"There is no preset {options['preset']!r}.\nChoose one of: {', '.join(PRESETS)}.")
    if options["latent"] not in (None, *LATENTS):
        raise InputError(f"--latent should be one of {', '.join(LATENTS)}, found {options['latent']!r}.")
    if not all(1 <= number <= 20 for number in options["n_patterns"]):
        raise InputError(f"--patterns should be from 1 to 20, found {listed(options['n_patterns'])}.")
    if not all(0 <= weight < float("inf") for weight in options["orthogonality"] or []):
        raise InputError(f"--orthogonality should be from 0 on, found {listed(options['orthogonality'])}.")
    if options["n_null"] < 0 or 0 < options["n_null"] < 19:
        raise InputError(
            f"--null should be 0 or at least 19, found {options['n_null']}: with fewer, p never reaches 0.05."
        )


def _settings(cohort: Cohort, source: dict[str, Any], options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return all that is needed to run the same again."""
    from rindices.workflow import place

    table = {name: value for name, value in source.items() if name != "exclude"} | {
        "sha256": cohort.sha256,
        "covariates": [str(name) for name in cohort.covariates.columns],
    }
    if source.get("features") == "muse72":
        table["exclude"] = source["exclude"]  # which of the table's columns were summed
    else:
        table["features"] = [str(name) for name in cohort.features.columns]
    command = {"line": shlex.join(["rindices", *sys.argv[1:]])}
    return {"command": command, "table": table, "training": options, **place()}


@app.command()
@guarded
def apply(
    model: Model,
    table: Table,
    out: Annotated[Path, _option("Table of R-indices to write.")],
    exclude: Exclude = "",
) -> None:
    """Give R-indices to new people.

    The table is checked against what the model was trained on: regions, covariates, codings and units.
    """
    from rindices.cohort import Contract
    from rindices.model_file import read_header

    check_writable(out)
    refuse_same(out, table, model)
    contract = Contract.from_json(read_header(model)["contract"])
    people = _read_people(table, contract, exclude)
    from rindices.estimator import load_model
    from rindices.workflow import apply_to_people, write_csv

    scores = apply_to_people(load_model(model), people)
    write_csv(scores, out)
    console.print(f"Scored {counted(len(scores), 'person', 'people')} in {counted(len(contract.features), 'region')}.")
    flagged = int((scores["flags"] != "").sum())
    if flagged:
        console.print(
            f"{flagged} of them lie outside what the model was trained on: see the column flags.", style="yellow"
        )
    console.print(f"R-indices: {out}")


def _read_people(path: Path, contract: Contract, exclude: str) -> People:
    """Read new people; volumes of single MUSE regions are summed where the model wants the sums."""
    from rindices.cohort import check_people, read_table
    from rindices.interop.muse import is_muse72, with_muse72

    table = read_table(path, text_columns=(contract.id_column, contract.diagnosis_column))
    if is_muse72(contract.features) and not {*contract.features} <= {*map(str, table.columns)}:
        return check_people(with_muse72(table, exclude), contract)
    return check_people(table, contract, exclude=exclude)


@app.command(name="import-official")
@guarded
def import_official(
    file: Annotated[Path, _argument("A checkpoint of the authors' package (.pt).")],
    out: Annotated[Path, _option("Model file to write, e.g. model.safetensors.")],
    features: Annotated[str, _option("Its regions in order: names, a file of names, or muse72.")],
    covariates: Annotated[str, _option("Its covariates in order; for the published models sex,age.")] = "",
    entry: Annotated[int | None, _option("Which entry of the checkpoint.", "the only one")] = None,
) -> None:
    """Turn a model of the authors' package into one of ours.

    Nothing in the checkpoint is run: a reader of our own takes numbers and plain containers, and refuses all else.
    """
    check_writable(out)
    refuse_same(out, file)
    from rindices.interop.imported import import_command

    done = import_command(file, out, features=features, covariates=covariates, entry=entry)
    unit = f" ({done.unit})" if done.unit else ""
    console.print(
        f"Imported entry {done.entry}: {counted(done.n_regions, 'region')}{unit}, "
        f"{counted(done.n_patterns, 'pattern')}; covariates {', '.join(done.covariates) or 'none'}."
    )
    console.print("The training people are not in the file: their ranges and the agreement of trainings are unknown.")
    console.print(f"Model: {done.path}")


@app.command()
@guarded
def describe(model: Model) -> None:
    """Say what a model is and what it expects."""
    from rindices.cohort import Contract
    from rindices.model_file import read_header

    header = read_header(model)
    contract = Contract.from_json(header["contract"])
    parameters = header["parameters"]
    agreement = header["agreement"]["pattern_agreement"]
    spans = [
        f"{spec.name} ({', '.join(spec.categories)})"
        if spec.categories
        else f"{spec.name} ({spec.minimum:g} to {spec.maximum:g})"
        for spec in contract.covariates
    ]
    lines = {
        "Model": model,
        "Made by": f"rindices {header['package_version']}",
        "Patterns": parameters["n_patterns"],
        "Preset": f"{parameters['preset']['name']}, seed {_known(header['seed'])}, step {header['step']:,}",
        "Repetitions": f"{len(header['members'])} used, {len(header['left_out'])} left out",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Covariates": "; ".join(spans) or "none",
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with their range in training"
        f"{' (unknown)' if None in contract.feature_minimum else ''}:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    ranges = zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True)
    for region, low, high in ranges:
        console.print(f"  {region}" if low is None or high is None else f"  {region:<32} {low:>10.4g} to {high:<10.4g}")


def _known(value: object) -> object:
    return "unknown" if value is None else value


@app.command()
@guarded
def report(
    folder: Annotated[Path, _argument("A run folder.")],
    out: Annotated[Path | None, _option("File to write.", "report.html in the folder")] = None,
) -> None:
    """Write the report of a run again."""
    from rindices.report import write_report

    try:
        path = write_report(folder, out)
    except ValueError as error:
        raise InputError(str(error)) from error
    console.print(f"Report: {path}")


@app.command()
@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demonstration.")] = Path("demo"),
    repetitions: Repetitions = 4,
    steps: Steps = None,
    seed: Seed = 0,
) -> None:
    """Find known patterns in a simulated cohort.

    Makes a cohort with three disease patterns, finds them without being told, and compares with the truth.
    """
    from rindices.cohort import read_cohort
    from rindices.run_folder import check_free
    from rindices.simulate import simulate_cohort

    table, truth, run = out / "cohort.csv", out / "truth.csv", out / "run"
    if out.is_dir() and any(out.iterdir()) and not (run / "summary.json").is_file():
        raise InputError(f"The folder {out} holds other files.\nChoose another folder with --out.")
    check_free(run)
    simulated = simulate_cohort("basic", seed=seed)
    simulated.save(table, truth)
    console.print(f"Simulated a cohort of 492 controls and 900 patients with three disease patterns: {table}")
    cohort = read_cohort(table, covariates="age,sex")
    describe_cohort(cohort, most_names=12)
    options = {"n_patterns": [3], "n_repetitions": repetitions, "max_steps": steps, "random_state": seed}
    settings = _settings(cohort, {"path": str(table), "unit": "mL"}, options)
    summary = train_and_write(cohort, options, run, settings=settings, truth=simulated.truth, overwrite=True)
    recovery = summary["recovery"]
    console.print(
        f"Concordance of the R-indices with the known truth: {recovery['pattern_concordance']:.3f} "
        f"({', '.join(f'{value:.3f}' for value in recovery['per_pattern'])}; 0.5 is chance, 1 is perfect)",
        style="bold",
    )
    describe_run(summary, run, cohort)
