"""`rindices gather`: one table from the folder that a segmentation program wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rindices.cli.console import console, show_places, warn
from rindices.cli.options import TABLE, argument, check_output, command, option
from rindices.problems import counted, listed
from rindices.settings import GatherSettings


@command()
def gather(
    folder: Annotated[Path, argument("A SUBJECTS_DIR, or a folder with DLMUSE, SynthSeg or CAT12 files.")],
    out: Annotated[Path, option("Table to write (.csv), replaced if it exists; its dictionary (.json) beside it.")],
    *,
    gathering: GatherSettings,
) -> None:
    """Make one table of what FreeSurfer, FastSurfer, NiChart DLMUSE, SynthSeg or CAT12 wrote for each person.

    The table has regions, head size, quality measures and the program's version; the dictionary has the units. Sums of
    other columns are not copied. Duplicates and incomplete scans are named, and left out only if asked.
    """
    from rindices.run.gather_folder import gather_folder

    check_output(out, "out", TABLE)
    check_output(out.with_suffix(".json"), "out", (".json",))
    found = gather_folder(folder, out, gathering)
    warn(found.notes)
    for where, problem in found.left_out.items():
        console.print(f"Left out: {where}: {problem}.")
    console.print(f"{counted(found.n_people, 'row')}, {counted(found.n_regions, 'region')}.", style="green")
    versions = [f"{program} ({counted(number, 'row')})" for program, number in found.programs.items()]
    console.print(f"Written by {listed(versions)}.")
    if len(versions) > 1:
        warn(["Programs or versions, and so measurements, differ between people: see the column program."])
    show_places({"Table": out, "Dictionary": found.dictionary})
    console.print(f"Next: rindices check {out} --dictionary {found.dictionary} --join LABELS.csv")
