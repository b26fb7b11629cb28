"""Commands on what is there: models that are applied, described and imported, runs that are shown once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rindices.cli.console import console, counting_bar, on_command_line, show_places, show_verdict, warn
from rindices.cli.exits import guarded
from rindices.cli.options import (
    MODEL,
    PAGE,
    TABLE,
    CompleteOnly,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Level,
    Missing,
    Model,
    ScanNoise,
    ShowIds,
    app,
    argument,
    check_output,
    limits_of,
    noise_of,
    option,
)
from rindices.files import check_folder
from rindices.problems import InputError, counted, shown, worded
from rindices.settings import ApplySettings, Correction, OutputSettings, TableSettings

if TYPE_CHECKING:
    import pandas as pd

    from rindices.schema.contract import Contract


@app.command()
@guarded
def apply(
    model: Model,
    table: Annotated[Path, argument("Table of people: CSV, TSV, Excel or Parquet, one row a person.")],
    out: Annotated[Path, option("Table of R-indices to write (.csv), replaced if it exists.")],
    id: Annotated[str | None, option("Column with the people's ids.", "as in training")] = ApplySettings.id,
    exclude: Exclude = "",
    visit: Annotated[str | None, option("Column that tells a person's repeated visits apart.")] = ApplySettings.visit,
    join: Join = None,
    missing: Missing = "",
    drop_missing: DropMissing = ApplySettings.drop_missing,
    complete_only: CompleteOnly = ApplySettings.complete_only,
    new_sites: Annotated[
        str, typer.Option(help="People of sites that the model does not know: refuse, or leave uncorrected.")
    ] = ApplySettings.new_sites,
    report: Annotated[
        Path | None, option("Also write a report of these people here (.html), replaced if it exists.")
    ] = None,
    clinical: Annotated[str, option("For the report: columns of the table with clinical scores.")] = "",
    level: Level = OutputSettings.level,
    scan_noise: ScanNoise = "",
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
) -> None:
    """Give R-indices and severities to new people.

    The table is checked against what the model was trained on: regions, covariates, codings and units.
    """
    from rindices.cohort.column_roles import paths_of
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
        complete_only=complete_only,
        new_sites=new_sites,  # type: ignore[arg-type]  # checked where it is used
    )
    with counting_bar("Scoring people", transient=True) as bar:
        done = apply_table(
            model,
            table,
            out,
            settings,
            report=report,
            output=OutputSettings(show_ids=show_ids, figures=figures, level=level, scan_noise=noise_of(scan_noise)),
            progress=bar,
            wording=on_command_line,
        )
    summary = done.summary
    who = counted(summary.n_controls + summary.n_patients + summary.n_other, "person", "people")
    who += f" at {counted(done.n_rows, 'visit')}" if summary.visits else ""
    console.print(f"Scored {who} in {counted(summary.n_features, 'region')}.")
    if done.n_flagged:
        console.print(
            f"{counted(done.n_flagged, 'of them lies', 'of them lie')} outside what the model was trained on: "
            "see the column flags.",
            style="yellow",
        )
    warn(summary.warnings)
    if done.scan_noise is not None:
        console.print(_noise_in_words(done.scan_noise))
    if summary.state is not None:
        show_verdict(summary, "What the model's training found: ")
    show_places({"R-indices": out, "Change": done.change, "Left out": done.left_out, "Report": report})


def _noise_in_words(noise: pd.DataFrame) -> str:
    """Say what the intervals of changes between visits rest on, or why there are none."""
    about = noise.iloc[0]
    came = counted(int(about["n_controls"]), "control")
    if about["source"] == "unknown":
        return (
            f"Changes between visits have no intervals: {came} came again, too few to tell the scan noise.\n"
            "Add repeated scans of controls, or give it with --scan-noise."
        )
    whose = "as given" if about["source"] == "given" else f"of {came} who came again"
    sizes = ", ".join(f"{sd:.3f}" for sd in noise["sd"])
    return f"Changes between visits are judged by the scan noise {whose}: sd of the severities {sizes}."


@app.command()
@guarded
def adapt(
    model: Model,
    table: Annotated[Path, argument("Table of controls of new sites, with the site in the model's column of sites.")],
    out: Annotated[Path, option("Model file to write (.safetensors), replaced if it exists.")],
    id: Annotated[str | None, option("Column with the people's ids.", "as in training")] = ApplySettings.id,
    exclude: Exclude = "",
    join: Join = None,
    missing: Missing = "",
) -> None:
    """Let a model learn sites that its training did not have, from controls who were measured there.

    Offsets and scales of the sites are learned as in the training; nobody's scores at other sites change.
    """
    from rindices.cohort.column_roles import paths_of
    from rindices.run.apply_table import adapt_model

    check_output(out, "out", MODEL, table, *paths_of(join), model)
    settings = ApplySettings(id=id, exclude=exclude, join=join, missing=missing)
    done = adapt_model(model, table, out, settings, wording=on_command_line)
    for site, number in done.controls.items():
        console.print(f"Learned site {site} from {counted(number, 'control')}.")
    if done.n_unused:
        console.print(f"Not used: {counted(done.n_unused, 'row')} of people who are no controls, or of later visits.")
    warn(done.warnings)
    show_places({"Model": out})


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

    official.import_official(file, features, covariates, entry).save(out)
    describe(out)
    console.print("The training people are not in the file: their ranges and the agreement of trainings are unknown.")


@app.command()
@guarded
def describe(model: Model) -> None:
    """Say what a model is and what it expects."""
    from rindices.model.file import read_header
    from rindices.record.verdict_words import IN_SHORT

    header = read_header(model)
    contract, parameters, agreement = header.contract, header.parameters, header.agreement.pattern_agreement
    spans = [
        f"{spec.name} ({', '.join(spec.categories)})"
        if spec.categories
        else f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)}"
        + (f" in {1 - 2 * spec.quantile:.0%} of the training people)" if spec.quantile else ")")
        for spec in contract.covariates
    ]
    lines = {
        "Model": model,
        "Made by": f"rindices {header.package_version}",
        "Patterns": parameters.n_patterns,
        "Preset": f"{parameters.preset.name}, seed {'unknown' if header.seed is None else header.seed}, "
        f"step {header.step:,}",
        "Repetitions": f"{len(header.members)} used, {len(header.left_out)} left out",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Reliable": IN_SHORT[header.verdict[0]],
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Visits": contract.visit_column or "one a person",
        "Covariates": "; ".join(spans) or "none",
        "Correction": _correction(parameters.correction) or ("lines" if spans else "none"),
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with {_range_in_words(contract)}:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    for region, low, high in zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True):
        console.print(f"  {region}" if low is None or high is None else f"  {region:<32} {low:>10.4g} to {high:<10.4g}")


def _range_in_words(contract: Contract) -> str:
    """Say what is known of the regions in training."""
    if None in contract.feature_minimum:
        return "their range in training (unknown)"
    return f"the range of {1 - 2 * contract.quantile:.0%} of the training people"


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


@app.command()
@guarded
def report(
    folder: Annotated[Path, argument("A run folder.")],
    out: Annotated[
        Path | None, option("File to write (.html), replaced if it exists.", "report.html in the folder")
    ] = None,
    clinical: Annotated[
        Path | None,
        option("Table of clinical scores, joined by id; they become part of the run."),
    ] = None,
    id: Annotated[str, typer.Option(help="Column with the ids in that table.")] = TableSettings.id,
    visit: Annotated[
        str, typer.Option(help="Column with the visits in that table, where the run has visits.")
    ] = "visit",
    missing: Missing = "",
    remove_scores: Annotated[str, option("Clinical scores to take out of the run, separated by commas.")] = "",
    subgroup_limits: Annotated[
        str | None, option("Severities below the first are low, above the second high.", "as before")
    ] = None,
    scan_noise: ScanNoise = "",
    atlas: Annotated[Path | None, option("Label image (NIfTI) to paint the patterns on.")] = None,
    atlas_table: Annotated[Path | None, option("Which label is which region: columns label and region.")] = None,
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
) -> None:
    """Write the report of a run again, with clinical scores that came later.

    A column of a later table replaces the column of that name as a whole.
    """
    from rindices.run.report_again import report_again

    check_folder(figures, "figures")
    check_output(out, "out", PAGE, own=folder / "report.html")
    if (atlas is None) != (atlas_table is None):
        raise InputError("--atlas needs --atlas-table, and the other way round.\nGive both.")
    page, told = report_again(
        folder,
        out,
        clinical=clinical,
        id=id,
        visit=visit,
        missing=missing,
        remove=remove_scores,
        limits=None if subgroup_limits is None else limits_of(subgroup_limits),
        scan_noise=noise_of(scan_noise),
        atlas=None if atlas is None or atlas_table is None else (atlas, atlas_table),
        show_ids=show_ids,
        figures=figures,
    )
    for sentence in told:
        console.print(worded(sentence, on_command_line))
    show_places({"Report": page, "Figures": figures})


@app.command()
@guarded
def voxelwise(
    folder: Annotated[Path, argument("A run folder.")],
    maps: Annotated[Path, option("Table of people and their images: participant_id, path.")],
    mask: Annotated[Path | None, option("Image of the voxels to test.", "the standard brain")] = None,
    regressions: Annotated[
        bool, typer.Option("--regressions", help="Also regress the images of all patients on each severity.")
    ] = False,
    resample: Annotated[
        bool, typer.Option("--resample", help="Bring images of another grid to that of most; else they are refused.")
    ] = False,
    subgroup_limits: Annotated[
        str | None, option("Severities below the first are low, above the second high.", "as in the run")
    ] = None,
    show_ids: ShowIds = OutputSettings.show_ids,
) -> None:
    """Compare brain images of patients with each pattern with those of controls, voxel by voxel."""
    from rindices.run.report_again import compare_images

    with counting_bar("Reading images") as bar:
        table, page = compare_images(
            folder,
            maps,
            mask=mask,
            regressions=regressions,
            resample=resample,
            limits=None if subgroup_limits is None else limits_of(subgroup_limits),
            show_ids=show_ids,
            progress=bar,
        )
    for row in table.to_dict("records"):
        told = row["note"] or f"{row['n_significant']:,} of {row['n_voxels']:,} voxels with q below 0.05"
        console.print(f"Pattern {row['pattern']}, {row['level']} ({counted(row['n_patients'], 'patient')}): {told}.")
    show_places({"Images, tables": folder / "voxelwise", "Report": page})
