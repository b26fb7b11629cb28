"""`rindices report` and `voxelwise`: run folders that are there, shown once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rindices.cli.application import PAGE, Figures, ShowIds, app, argument, check_output, option
from rindices.cli.bars import counting_bar
from rindices.cli.console import console
from rindices.cli.options import limits_of
from rindices.cli.stopping import guarded
from rindices.errors import InputError, counted
from rindices.files import check_folder


@app.command()
@guarded
def report(
    folder: Annotated[Path, argument("A run folder.")],
    out: Annotated[
        Path | None, option("File to write (.html), replaced if it exists.", "report.html in the folder")
    ] = None,
    clinical: Annotated[
        Path | None, option("Table of clinical scores, joined by id; they become part of the run.")
    ] = None,
    id: Annotated[str, typer.Option(help="Column with the ids in that table.")] = "participant_id",
    visit: Annotated[
        str, typer.Option(help="Column with the visits in that table, where the run has visits.")
    ] = "visit",
    subgroup_limits: Annotated[
        str | None, option("R-indices below the first are low, above the second high.", "as before")
    ] = None,
    atlas: Annotated[Path | None, option("Label image (NIfTI) to paint the patterns on.")] = None,
    atlas_table: Annotated[Path | None, option("Which label is which region: columns label and region.")] = None,
    show_ids: ShowIds = False,
    figures: Figures = None,
) -> None:
    """Write the report of a run again, with clinical scores that came later."""
    from rindices.report import write_report

    check_folder(figures, "figures")
    check_output(out, "--out", PAGE, own=folder / "report.html")
    told: tuple[str, ...] = ()
    if atlas is not None or atlas_table is not None:
        console.print(_paint(folder, atlas, atlas_table))
    limits = None if subgroup_limits is None else limits_of(subgroup_limits)
    shown_as: dict[str, Any] = {"show_ids": show_ids, "figures": figures}
    try:
        if clinical is None and limits is None:  # nothing to compute: the engine is not needed
            path = write_report(folder, out, **shown_as)
        else:
            from rindices.run.reporting import report_again

            scores: dict[str, Any] = {"clinical": clinical, "id_column": id, "visit_column": visit}
            path, told = report_again(folder, out, limits=limits, **scores, **shown_as)
    except ValueError as error:
        raise InputError(str(error)) from error
    for sentence in told:
        console.print(sentence)
    console.print(f"Report: {path}")
    if figures is not None:
        console.print(f"Figures: {figures}")


def _paint(folder: Path, atlas: Path | None, table: Path | None) -> str:
    from rindices.cohort import read_table
    from rindices.imaging.writing import paint_patterns

    if atlas is None or table is None:
        raise InputError("--atlas needs --atlas-table, and the other way round.\nGive both.")
    severities = folder / "analysis" / "severities.csv"
    patterns = read_table(severities if severities.is_file() else folder / "patterns.csv", text_columns=("region",))
    names = read_table(table, text_columns=("region", "name"))
    paths, note = paint_patterns(patterns, atlas, names, folder / "brain")
    return f"Painted {counted(len(paths), 'image')} in {folder / 'brain'}{f': {note}' if note else ''}."


@app.command()
@guarded
def voxelwise(
    folder: Annotated[Path, argument("A run folder.")],
    maps: Annotated[Path, option("Table of people and their images: participant_id, path.")],
    mask: Annotated[Path | None, option("Image of the voxels to test.", "the standard brain")] = None,
    regressions: Annotated[
        bool, typer.Option("--regressions", help="Also regress the images of all patients on each R-index.")
    ] = False,
    resample: Annotated[
        bool, typer.Option("--resample", help="Bring images of another grid to that of most; else they are refused.")
    ] = False,
    subgroup_limits: Annotated[
        str | None, option("R-indices below the first are low, above the second high.", "as in the run")
    ] = None,
    show_ids: ShowIds = False,
) -> None:
    """Compare brain images of patients with each pattern with those of controls, voxel by voxel."""
    from rindices.run.reporting import compare_images

    limits = None if subgroup_limits is None else limits_of(subgroup_limits)
    with counting_bar("Reading images") as bar:
        table, report = compare_images(
            folder,
            maps,
            mask=mask,
            regressions=regressions,
            resample=resample,
            limits=limits,
            show_ids=show_ids,
            progress=bar,
        )
    for row in table.to_dict("records"):
        told = row["note"] or f"{row['n_significant']:,} of {row['n_voxels']:,} voxels with q below 0.05"
        console.print(f"Pattern {row['pattern']}, {row['level']} ({counted(row['n_patients'], 'patient')}): {told}.")
    console.print(f"Images, tables: {folder / 'voxelwise'}")
    console.print(f"Report: {report}")
