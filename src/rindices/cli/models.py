"""`rindices apply`, `describe` and `import-official`: models that are there, used and told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rindices.cli.application import (
    MODEL,
    PAGE,
    TABLE,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Missing,
    Model,
    ShowIds,
    Table,
    app,
    argument,
    check_output,
    option,
)
from rindices.cli.console import console, counting_bar, on_command_line, warn
from rindices.cli.stopping import guarded
from rindices.errors import InputError, counted, shown
from rindices.files import check_folder
from rindices.settings import ApplySettings, Correction, OutputSettings


@app.command()
@guarded
def apply(
    model: Model,
    table: Table,
    out: Annotated[Path, option("Table of R-indices to write (.csv), replaced if it exists.")],
    id: Annotated[str | None, option("Column with the people's ids.", "as in training")] = ApplySettings.id,
    exclude: Exclude = "",
    visit: Annotated[str | None, option("Column that tells a person's repeated visits apart.")] = ApplySettings.visit,
    join: Join = None,
    missing: Missing = "",
    drop_missing: DropMissing = ApplySettings.drop_missing,
    new_sites: Annotated[
        str, typer.Option(help="People of sites that the model does not know: refuse, or leave uncorrected.")
    ] = ApplySettings.new_sites,
    report: Annotated[
        Path | None, option("Also write a report of these people here (.html), replaced if it exists.")
    ] = None,
    clinical: Annotated[str, option("For the report: columns of the table with clinical scores.")] = "",
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
) -> None:
    """Give R-indices to new people.

    The table is checked against what the model was trained on: regions, covariates, codings and units.
    """
    from rindices.cohort.roles import paths_of
    from rindices.run.apply_table import apply_table

    if report is None and (show_ids or figures is not None):
        raise InputError("--show-ids and --figures are about the report.\nAsk for one with --report FILE.")
    check_folder(figures, "figures")
    inputs = [Path(str(path).partition("#")[0]) for path in (table, *paths_of(join))]
    for path, name, endings in ((out, "out", TABLE), (report, "report", PAGE)):
        check_output(path, name, endings, *inputs, model)
    settings = ApplySettings(
        id=id,
        visit=visit,
        exclude=exclude,
        clinical=clinical,
        join=join,
        missing=missing,
        drop_missing=drop_missing,
        new_sites=new_sites,  # type: ignore[arg-type]  # checked where it is used
    )
    with counting_bar("Scoring people", transient=True) as bar:
        done = apply_table(
            model,
            table,
            out,
            settings,
            report=report,
            output=OutputSettings(show_ids=show_ids, figures=figures),
            progress=bar,
            wording=on_command_line,
        )
    who = counted(done.n_people, "person", "people")
    who += f" at {counted(done.n_rows, 'visit')}" if done.visits else ""
    console.print(f"Scored {who} in {counted(done.n_regions, 'region')}.")
    if done.n_flagged:
        lie = counted(done.n_flagged, "of them lies", "of them lie")
        console.print(f"{lie} outside what the model was trained on: see the column flags.", style="yellow")
    warn(done.notes)
    if done.unreliable:
        told = f"The model's patterns were not reliable: {done.unreliable} Do not interpret these R-indices."
        console.print(told, style="bold red")
    for name, place in (("R-indices", out), ("Left out", done.left_out), ("Report", report)):
        if place is not None:
            console.print(f"{name + ':':<10} {place}")


@app.command(name="import-official")
@guarded
def import_official(
    file: Annotated[Path, argument("A checkpoint of the authors' package (.pt).")],
    out: Annotated[Path, option("Model file to write (.safetensors), replaced if it exists.")],
    features: Annotated[str, option("Its regions in order: names, a file of names, or muse72.")],
    covariates: Annotated[str, option("Its covariates in order; for the published models sex,age.")] = "",
    entry: Annotated[int | None, option("Which entry of the checkpoint.", "the only one")] = None,
) -> None:
    """Turn a model of the authors' package into one of ours.

    Nothing in the checkpoint is run: a reader of our own takes numbers and plain containers, and refuses all else.
    """
    check_output(out, "out", MODEL, file)
    from rindices.interop import official

    model = official.import_official(file, features, covariates, entry)
    contract = model.contract_
    unit = f" ({contract.unit})" if contract.unit else ""
    spans = [f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)})" for spec in contract.covariates]
    console.print(
        f"{model.preset_.name.removeprefix('official, ').capitalize()}: "
        f"{counted(len(contract.features), 'region')}{unit}, {counted(model.n_patterns, 'pattern')}; "
        f"covariates {', '.join(spans) or 'none'}."
    )
    console.print("The training people are not in the file: their ranges and the agreement of trainings are unknown.")
    console.print(f"Model: {model.save(out)}")


@app.command()
@guarded
def describe(model: Model) -> None:
    """Say what a model is and what it expects."""
    from rindices.model.file import read_header

    header = read_header(model)
    contract, parameters, agreement = header.contract, header.parameters, header.agreement.pattern_agreement
    seed = "unknown" if header.seed is None else header.seed
    spans = [
        f"{spec.name} ({', '.join(spec.categories)})"
        if spec.categories
        else f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)})"
        for spec in contract.covariates
    ]
    lines = {
        "Model": model,
        "Made by": f"rindices {header.package_version}",
        "Patterns": parameters.n_patterns,
        "Preset": f"{parameters.preset.name}, seed {seed}, step {header.step:,}",
        "Repetitions": f"{len(header.members)} used, {len(header.left_out)} left out",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Reliable": {True: "yes", False: "no", None: "not judged"}[header.reliability[0]],
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Visits": contract.visit_column or "one a person",
        "Covariates": "; ".join(spans) or "none",
        "Correction": _correction(parameters.correction) or ("lines" if spans else "none"),
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with their range in training"
        f"{' (unknown)' if None in contract.feature_minimum else ''}:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    ranges = zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True)
    for region, low, high in ranges:
        console.print(f"  {region}" if low is None or high is None else f"  {region:<32} {low:>10.4g} to {high:<10.4g}")


def _correction(correction: Correction | None) -> str:
    """Say in words how covariates are corrected, where it is by more than lines."""
    given = correction or Correction()
    words = {
        "curve of": ", ".join(given.smooth),
        "interaction of": ", ".join(" and ".join(pair) for pair in given.interactions),
        "regions divided by": given.proportion,
        "shifts and scales removed by": given.site,
    }
    return "; ".join(f"{what} {names}" for what, names in words.items() if names)
