"""`rindices report` and `voxelwise`: run folders that are there, shown once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rindices.cli.application import (
    PAGE,
    Figures,
    Missing,
    ShowIds,
    app,
    argument,
    check_output,
    limits_of,
    option,
)
from rindices.cli.console import console, counting_bar, on_command_line
from rindices.cli.stopping import guarded
from rindices.errors import InputError, counted, worded
from rindices.files import check_folder
from rindices.settings import OutputSettings, TableSettings


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
        str | None, option("R-indices below the first are low, above the second high.", "as before")
    ] = None,
    atlas: Annotated[Path | None, option("Label image (NIfTI) to paint the patterns on.")] = None,
    atlas_table: Annotated[Path | None, option("Which label is which region: columns label and region.")] = None,
    show_ids: ShowIds = OutputSettings.show_ids,
    figures: Figures = OutputSettings.figures,
) -> None:
    """Write the report of a run again, with clinical scores that came later.

    A column of a later table replaces the column of that name as a whole.
    """
    from rindices.run.reporting import report_again

    check_folder(figures, "figures")
    check_output(out, "out", PAGE, own=folder / "report.html")
    if (atlas is None) != (atlas_table is None):
        raise InputError("--atlas needs --atlas-table, and the other way round.\nGive both.")
    done = report_again(
        folder,
        out,
        clinical=clinical,
        id=id,
        visit=visit,
        missing=missing,
        remove=remove_scores,
        limits=None if subgroup_limits is None else limits_of(subgroup_limits),
        atlas=None if atlas is None or atlas_table is None else (atlas, atlas_table),
        show_ids=show_ids,
        figures=figures,
    )
    for sentence in done.notes:
        console.print(worded(sentence, on_command_line))
    console.print(f"Report: {done.path}")
    if figures is not None:
        console.print(f"Figures: {figures}")
    if not done.finished:
        raise InputError(f"The run in {folder} is not finished, and the report says so.\nRepeat its command first.")


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
    show_ids: ShowIds = OutputSettings.show_ids,
) -> None:
    """Compare brain images of patients with each pattern with those of controls, voxel by voxel."""
    from rindices.run.reporting import compare_images

    limits = None if subgroup_limits is None else limits_of(subgroup_limits)
    with counting_bar("Reading images") as bar:
        table, page = compare_images(
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
    console.print(f"Report: {page}")
