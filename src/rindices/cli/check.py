"""Commands before training: check a table, gather one from a program's folder, or plan a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rindices.cli.console_and_exits import (
    USER_ERROR,
    console,
    long_wait,
    on_command_line,
    ready_options,
    regions_in_words,
    set_output,
    show_places,
    warn,
)
from rindices.cli.options import PAGE, TABLE, argument, check_output, command, option
from rindices.files import atomic_file
from rindices.problems import InputError, Remedy, counted, joined, listed
from rindices.settings import GatherSettings, PowerSettings, TableSettings

if TYPE_CHECKING:
    from rindices.cohort import Cohort
    from rindices.run.check_table import CheckedTable

_MOST_OUTLIERS, _MOST_REGIONS = 10, 8


@command()
def check(
    tables: Annotated[list[Path], argument("Table of people, in any format accepted by fit.", "TABLE")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as a single JSON document.")] = False,
    report: Annotated[
        Path | None, option("Also write the result as a web page (.html); an existing file is replaced.")
    ] = None,
    spectrum: Annotated[
        bool,
        typer.Option(help="Test whether patients and controls differ (takes seconds, or minutes for large tables)."),
    ] = True,
    *,
    columns: TableSettings,
) -> None:
    """Check a table before training.

    Reports the role of each column and why it has that role, which columns may not be regions, who would be excluded,
    who is an outlier, how the groups compare, and what fit would reject or warn about. It then reports whether patients
    and controls differ, in how many directions they differ, and how long fit would take. The options are those of fit.
    The exit code is 2 if fit would reject the table.
    """
    from rindices.run.check_table import check_cohort
    from rindices.tables import files_of, path_of_tables

    set_output(quiet=json)
    table = path_of_tables(tables)
    check_output(report, "report", PAGE, *files_of(table))
    checked, cohort = check_cohort(table, columns, wording=on_command_line)
    _show_columns(checked)
    _show_people(checked)
    warn(checked.shown_warnings)
    if spectrum and cohort is not None:
        checked = _look_before_training(checked, cohort)
    for problem in checked.problems:
        console.print(f"Problem: {problem.shown}", style="red")
    if json:
        typer.echo(checked.model_dump_json(indent=2))
    if report is not None:
        from rindices.pages.layout import write_sheet

        drawn: tuple[object, ...] = ()
        if checked.look is not None:
            from rindices.run.first_look_and_power import look_pictures

            drawn = look_pictures(checked.look)
        page = write_sheet("check", report, title=f"Check of {checked.source}", found=checked, pictures=drawn)
        show_places({"Page": page})
    if not checked.usable:
        ready = ready_options(joined((Remedy(fix.setting, fix.value) for fix in checked.fixes), " "))
        helps = f" Ways to fix this: {'; '.join(checked.remedies)}." if checked.remedies else ""
        console.print(f"fit would reject this table.{helps}{ready}", style="red")
        raise typer.Exit(USER_ERROR)
    time = f" Training takes {checked.look.time}." if checked.look else ""
    console.print(f"fit can train on this table.{time}", style="green")


def _look_before_training(checked: CheckedTable, cohort: Cohort) -> CheckedTable:
    """Compare the groups before training; the output so far can be read while this is computed."""
    console.print(f"Comparing patients and controls{long_wait(cohort.features.size)} …")
    from rindices.run.first_look_and_power import with_first_look

    checked = with_first_look(checked, cohort, on_command_line)
    if (look := checked.look) is not None:
        console.print(f"{look.headline} {look.verdicts}", style="bold")
        if look.chances:
            console.print(look.chances)
        for one in look.patterns:
            pairs = zip(one.regions[:_MOST_REGIONS], one.changes, strict=False)
            regions = ", ".join(f"{name} {change:+.1f}" for name, change in pairs if change)
            console.print(
                f"  Pattern {one.pattern} of a linear model (change at severity 1, in control SDs): {regions}"
            )
        warn(look.warnings)
    return checked


def _show_columns(checked: CheckedTable) -> None:
    """Show the role of each column: regions by kind, others by name."""
    console.print(f"{checked.source}: {counted(checked.n_rows, 'row')}, {counted(len(checked.columns), 'column')}.")
    roles: dict[tuple[str, str], list[str]] = {}
    for column in checked.columns:
        if column.role != "a region":
            roles.setdefault((column.role, column.why), []).append(column.name)
    for (role, why), names in roles.items():
        console.print(f"{listed(names)}: {role[2:] + 's' if role[:2] == 'a ' and len(names) > 1 else role} ({why}).")
    console.print(regions_in_words(checked.kinds))
    for what, why in dict.fromkeys((one.suspicion, one.suspected_by) for one in checked.columns if one.suspicion):
        names = [one.name for one in checked.columns if (one.suspicion, one.suspected_by) == (what, why)]
        console.print(
            f"Treated as regions, but possibly something else: {listed(names)} ({what}, judging by {why}).",
            style="yellow",
        )
    for what in ("missing", "impossible"):
        gaps = {column.name: getattr(column, what) for column in checked.columns if getattr(column, what)}
        if gaps:
            where = listed(f"{name} ({number})" for name, number in gaps.items())
            console.print(f"{what.capitalize()} values in {counted(len(gaps), 'column')}: {where}.", style="yellow")


def _show_people(checked: CheckedTable) -> None:
    """Show who remains, who is far from all others, and how the groups compare."""
    if not checked.n_controls:
        return
    groups = {"control": checked.n_controls, "patient": checked.n_patients, "other": checked.n_other}
    left = listed(f"{reason} ({number})" for reason, number in checked.left_out.items())
    people = ", ".join(counted(number, name) for name, number in groups.items() if number)
    as_if = f" (with {' '.join(checked.as_if)})" if checked.as_if else ""
    console.print(f"People remaining{as_if}: {people}. Excluded: {left or 'no one'}.")
    sites = [row for row in checked.flow if row["site"] != "all" and row["group"] in ("control", "patient")]
    for site in dict.fromkeys(row["site"] for row in sites):
        here = [counted(int(row["used"] or 0), str(row["group"])) for row in sites if row["site"] == site]
        console.print(f"  {site}: {', '.join(here)}")
    for row in checked.balance:
        measure = "standardised difference" if row["kind"] == "number" else "Cramér's V"
        size = "" if row["difference"] is None else f" ({measure} {row['difference']:.2f})"
        console.print(
            f"{row['variable']}: controls {row['controls']}; patients {row['patients']}{size}",
            style="yellow" if row["imbalanced"] else None,
        )
    for one in checked.outliers[:_MOST_OUTLIERS]:
        console.print(f"Row {one.row} is an outlier: {one.text}.", style="yellow")
    if len(checked.outliers) > _MOST_OUTLIERS:
        console.print(
            f"{counted(len(checked.outliers) - _MOST_OUTLIERS, 'more row is an outlier', 'more rows are outliers')}; "
            "--report lists them all."
        )


@command()
def gather(
    folder: Annotated[Path, argument("A SUBJECTS_DIR, or a folder with DLMUSE, SynthSeg or CAT12 files.")],
    out: Annotated[
        Path,
        option("Table to write (.csv); a data dictionary (.json) is written next to it. Existing files are replaced."),
    ],
    *,
    gathering: GatherSettings,
) -> None:
    """Make one table from the output of FreeSurfer, FastSurfer, NiChart DLMUSE, SynthSeg or CAT12.

    The table contains regions, head size, quality measures and the program's version; the dictionary contains the
    units. Columns that are sums of others are not copied. Duplicate and incomplete scans are listed and, on request,
    excluded.
    """
    from rindices.run.gather_folder import gather_folder

    check_output(out, "out", TABLE)
    dictionary = out.with_suffix(".json")
    check_output(dictionary, "out", (".json",))
    gathered = gather_folder(folder, out, gathering)
    warn(gathered.notes)
    for where, problem in gathered.left_out.items():
        console.print(f"Excluded {where}: {problem}.")
    console.print(f"{counted(gathered.n_people, 'row')}, {counted(gathered.n_regions, 'region')}.", style="green")
    versions = [f"{program} ({counted(number, 'row')})" for program, number in gathered.programs.items()]
    console.print(f"The files were written by {listed(versions)}.")
    if len(versions) > 1:
        warn(
            [
                "Scans were processed with different programs or versions (see the program column), so the "
                "measurements may not be comparable."
            ]
        )
    show_places({"Table": out, "Dictionary": dictionary})
    console.print(f"Next: rindices check {out} --dictionary {dictionary} --join LABELS.csv")


@command()
def power(*, asked: PowerSettings) -> None:
    """Estimate how likely a study of a given size is to find its patterns.

    The estimate is based on simulated studies with one to three patterns, each of which changes a quarter of the
    regions by 0.5, 1 or 2 standard deviations at severity 1. Patterns count as found if patients and controls differ,
    and held-out people differ in at least as many directions as there are patterns. Severities are those of the linear
    model.
    """
    from rindices.run import first_look_and_power

    check_output(asked.figure, "figure", (".png", ".svg"), *([] if asked.like is None else [asked.like]))
    if asked.like is not None and asked.figure is not None:
        raise InputError(
            "The figure can show only the simulated studies that come with rindices, not studies simulated from your "
            "own table.\nOmit ",
            Remedy("like"),
            " or ",
            Remedy("figure"),
            ".",
        )
    sizes = asked.n_controls, asked.n_patients
    table, n_regions = (
        (first_look_and_power.chances(*sizes, asked.n_regions), asked.n_regions)
        if asked.like is None
        else first_look_and_power.like_own(asked.like, *sizes)
    )
    console.print(
        f"Probability of finding all patterns with {counted(asked.n_controls, 'control')}, "
        f"{counted(asked.n_patients, 'patient')} and {counted(n_regions, 'region')}, followed by the error in the "
        "severities and their concordance with the truth:"
    )
    for row in table.to_dict("records"):
        console.print(
            f"{counted(int(row['patterns']), 'pattern')} of strength {row['strength']:g} SD: "
            f"{100 * row['chance']:.0f} % (95 % interval {100 * row['low']:.0f} to {100 * row['high']:.0f}, from "
            f"{row['studies']:.0f} studies); error {row['error']:.2f}, concordance {row['concordance']:.2f}"
        )
    console.print(
        "At severity 1, each simulated pattern changes a quarter of the regions by the stated number of control SDs. "
        "Severities are uniformly distributed. A real disease may affect fewer regions, and patients may "
        "differ less from one another."
    )
    if asked.figure is not None:
        from rindices import plots

        figure = plots.power_curves(first_look_and_power.by_size(n_regions), *sizes)
        with atomic_file(asked.figure) as beside:
            if asked.figure.suffix.casefold() == ".png":
                plots.figure_png(figure, beside)
            else:
                beside.write_bytes(plots.figure_svg(figure).encode())
        show_places({"Figure": asked.figure})
