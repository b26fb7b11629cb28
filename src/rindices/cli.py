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
from rindices.console import console, describe_cohort, describe_run, guarded, train_and_write
from rindices.errors import InputError, counted
from rindices.files import check_writable, refuse_same

if TYPE_CHECKING:
    from rindices.cohort import Cohort

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
    own_controls: Annotated[Path | None, _option("Build on your own table of healthy people.")] = None,
    seed: Seed = 0,
) -> None:
    """Make a cohort with known disease patterns.

    Built as in the Surreal-GAN paper, from an embedded population or from your own table of healthy people.
    """
    from rindices.cohort import read_table
    from rindices.simulate import simulate_cohort

    for path in (out, truth):
        if path is not None:
            check_writable(path)
            refuse_same(path, *([] if own_controls is None else [own_controls]))
    people = None if own_controls is None else read_table(own_controls)
    try:
        cohort = simulate_cohort(
            kind, n_controls=controls, n_patients=patients, n_patterns=patterns, seed=seed, controls=people
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


@app.command()
@guarded
def fit(
    table: Table,
    out: Annotated[Path, _option("Folder for the results; it must be new.")],
    id: Annotated[str, typer.Option(help="Column with the people's ids.")] = "participant_id",
    diagnosis: Annotated[str, typer.Option(help="Column with the diagnosis labels.")] = "diagnosis",
    control: Annotated[str | None, _option("Label(s) of controls; CN, HC, control, 0 ... are recognised.")] = None,
    patients: Annotated[str | None, _option("Label(s) of patients, e.g. MCI,AD; others are only scored.")] = None,
    covariates: Annotated[str, _option("Columns whose effects are removed, e.g. age,sex.")] = "",
    features: Annotated[str | None, _option("Regions: names, prefix*, or a file of names.", "all numbers")] = None,
    exclude: Exclude = "",
    unit: Annotated[str | None, _option("Unit of the regions, e.g. mL; kept with the model.")] = None,
    patterns: Annotated[int, typer.Option(min=1, max=20, help="Number of disease patterns to look for.")] = 3,
    orthogonality: Annotated[float | None, _option("How strongly patterns are kept apart.", "by preset", min=0)] = None,
    repetitions: Repetitions = 10,
    preset: Annotated[str, typer.Option(help="fast, paper or official.")] = "fast",
    steps: Steps = None,
    seed: Seed = 0,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
) -> None:
    """Learn patterns and give everybody R-indices.

    The table is checked first; a mistake in it is told by column and row, and nothing is written.
    """
    from rindices.cohort import read_cohort
    from rindices.config import PRESETS
    from rindices.run_folder import check_free

    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}.\nChoose one of: {', '.join(PRESETS)}.")
    check_free(out, overwrite=overwrite)
    roles: dict[str, Any] = {"id": id, "diagnosis": diagnosis, "control": control, "patients": patients}
    cohort = read_cohort(table, **roles, covariates=covariates, features=features, exclude=exclude)
    describe_cohort(cohort)
    options: dict[str, Any] = {"n_patterns": patterns, "orthogonality": orthogonality, "n_repetitions": repetitions}
    options |= {"preset": preset, "max_steps": steps, "random_state": seed}
    source = {"path": str(table), **roles, "unit": unit}
    summary = train_and_write(cohort, options, out, settings=_settings(cohort, source, options), report=report)
    describe_run(summary, out, cohort, report=report)


def _settings(cohort: Cohort, source: dict[str, Any], options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return all that is needed to run the same again."""
    table = source | {
        "sha256": cohort.sha256,
        "covariates": [str(name) for name in cohort.covariates.columns],
        "features": [str(name) for name in cohort.features.columns],
    }
    command = {"line": shlex.join(["rindices", *sys.argv[1:]]), "version": rindices.__version__}
    return {"command": command, "table": table, "training": options}


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
    from rindices.cohort import Contract, read_people
    from rindices.model_file import read_header

    check_writable(out)
    refuse_same(out, table, model)
    contract = Contract.from_json(read_header(model)["contract"])
    people = read_people(table, contract, exclude=exclude)
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
        "Preset": f"{parameters['preset']['name']}, seed {header['seed']}, step {header['step']:,}",
        "Repetitions": f"{len(header['members'])} used, {len(header['left_out'])} left out",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Covariates": "; ".join(spans) or "none",
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with their range in training:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    ranges = zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True)
    for region, low, high in ranges:
        console.print(f"  {region:<32} {low:>10.4g} to {high:<10.4g}")


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
    check_free(run, overwrite=True)
    simulated = simulate_cohort("basic", seed=seed)
    simulated.save(table, truth)
    console.print(f"Simulated a cohort of 492 controls and 900 patients with three disease patterns: {table}")
    cohort = read_cohort(table, covariates="age,sex")
    describe_cohort(cohort, most_names=12)
    options = {"n_patterns": 3, "n_repetitions": repetitions, "max_steps": steps, "random_state": seed}
    settings = _settings(cohort, {"path": str(table), "unit": "mL"}, options)
    summary = train_and_write(cohort, options, run, settings=settings, truth=simulated.truth)
    recovery = summary["recovery"]
    console.print(
        f"Concordance of the R-indices with the known truth: {recovery['pattern_concordance']:.3f} "
        f"({', '.join(f'{value:.3f}' for value in recovery['per_pattern'])}; 0.5 is chance, 1 is perfect)",
        style="bold",
    )
    describe_run(summary, run, cohort)
