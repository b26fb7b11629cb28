"""`rindices check`: a table looked at in seconds, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rindices.cli.console import (
    console,
    on_command_line,
    ready_options,
    regions_in_words,
    set_output,
    show_places,
    warn,
)
from rindices.cli.exits import USER_ERROR
from rindices.cli.options import PAGE, argument, check_output, command, one_table, option
from rindices.problems import Remedy, counted, joined, listed
from rindices.settings import TableSettings

if TYPE_CHECKING:
    from rindices.cohort import Cohort
    from rindices.run.check_table import CheckedTable

_MOST_OUTLIERS, _MOST_REGIONS = 10, 8


@command()
def check(
    tables: Annotated[list[Path], argument("Table of people, as for fit.", "TABLE")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    report: Annotated[Path | None, option("Also write a page here (.html), replaced if it exists.")] = None,
    spectrum: Annotated[bool, typer.Option(help="Test whether patients and controls differ: seconds more.")] = True,
    *,
    columns: TableSettings,
) -> None:
    """Look at a table before anything is trained.

    Says what each column is taken for and why, which regions may be none, who would be left out, who is far from all
    others, how the groups compare, and what fit would refuse or warn of. Then whether patients and controls differ, in
    how many directions, and how long fit takes here. The options are those of fit. Ends with 2 where fit would refuse
    the table.
    """
    from rindices.run.check_table import check_cohort
    from rindices.tables import files_of

    set_output(quiet=json)
    table = one_table(tables)
    check_output(report, "report", PAGE, *files_of(table))
    found, cohort = check_cohort(table, columns, wording=on_command_line)
    _show_columns(found)
    _show_people(found)
    warn(found.shown_warnings)
    if spectrum and cohort is not None:
        found = _look_before_training(found, cohort)
    for problem in found.problems:
        console.print(f"Problem: {problem.shown}", style="red")
    if json:
        typer.echo(found.model_dump_json(indent=2))
    if report is not None:
        show_places({"Page": _write_page(found, report)})
    if found.usable:
        time = f" It takes {found.look.time}." if found.look else ""
        console.print(f"fit can train on this table.{time}", style="green")
        return
    ready = ready_options(joined((Remedy(fix.setting, fix.value) for fix in found.fixes), " "))
    console.print(f"fit would refuse this table.{_ways(found)}{ready}", style="red")
    raise typer.Exit(USER_ERROR)


def _look_before_training(found: CheckedTable, cohort: Cohort) -> CheckedTable:
    """Say what can be said of the groups before anything is trained; while that is computed, the rest can be read."""
    console.print("Comparing patients and controls …")
    from rindices.run.first_look import with_look

    found = with_look(found, cohort, on_command_line)
    if (look := found.look) is None:
        return found
    console.print(f"{look.headline} {look.verdicts}", style="bold")
    console.print(look.chances)
    for one in look.patterns:
        pairs = zip(one.regions[:_MOST_REGIONS], one.changes, strict=False)
        regions = ", ".join(f"{name} {change:+.1f}" for name, change in pairs)
        console.print(f"  Pattern {one.pattern} of a linear model, in sd of controls at severity 1: {regions}")
    warn(look.warnings)
    return found


def _write_page(found: CheckedTable, report: Path) -> Path:
    from rindices.pages.layout import write_sheet

    pictures: tuple[object, ...] = ()
    if found.look is not None:
        from rindices.run.first_look import look_pictures

        pictures = look_pictures(found.look)
    return write_sheet("check", report, title=f"Check of {found.source}", found=found, pictures=pictures)


def _ways(found: CheckedTable) -> str:
    """Say what would help."""
    return f" What helps: {'; '.join(found.remedies)}." if found.remedies else ""


def _show_columns(found: CheckedTable) -> None:
    """Say what each column is taken for: regions by their kinds, others by name."""
    console.print(f"{found.source}: {counted(found.n_rows, 'row')}, {counted(len(found.columns), 'column')}.")
    roles: dict[tuple[str, str], list[str]] = {}
    for column in found.columns:
        if column.role != "a region":
            roles.setdefault((column.role, column.why), []).append(column.name)
    for (role, why), names in roles.items():
        console.print(f"{listed(names)}: {role} ({why}).")
    console.print(regions_in_words(found.kinds))
    suspects: dict[str, list[str]] = {}
    for column in found.columns:
        if column.suspicion:
            suspects.setdefault(f"{column.suspicion} (told by {column.suspected_by})", []).append(column.name)
    for what, names in suspects.items():
        console.print(f"Taken for regions, but may be: {what}: {listed(names)}.", style="yellow")
    for what in ("missing", "impossible"):
        gaps = {column.name: getattr(column, what) for column in found.columns if getattr(column, what)}
        if gaps:
            where = listed(f"{name} ({number})" for name, number in gaps.items())
            console.print(f"{what.capitalize()} values in {counted(len(gaps), 'column')}: {where}.", style="yellow")


def _show_people(found: CheckedTable) -> None:
    """Say who remains, who is far from all others, and how the groups compare."""
    if not found.n_controls:
        return
    groups = {"control": found.n_controls, "patient": found.n_patients, "other": found.n_other}
    left = listed(f"{reason} ({number})" for reason, number in found.left_out.items())
    people = ", ".join(counted(number, name) for name, number in groups.items() if number)
    as_if = f" (with {' '.join(found.as_if)})" if found.as_if else ""
    console.print(f"People that remain{as_if}: {people}. Left out: {left or 'nobody'}.")
    sites = [row for row in found.flow if row.site != "all" and row.group in ("control", "patient")]
    for site in dict.fromkeys(row.site for row in sites):
        here = {row.group: row.used for row in sites if row.site == site}
        console.print(f"  {site}: {', '.join(counted(number, group) for group, number in here.items())}")
    for row in found.balance:
        measure = "difference" if row.kind == "number" else "Cramér's V"
        size = "" if row.difference is None else f" ({measure} {row.difference:.2f})"
        told = f"{row.variable}: controls {row.controls}; patients {row.patients}{size}"
        console.print(told, style="yellow" if row.imbalanced else None)
    for one in found.outliers[:_MOST_OUTLIERS]:
        console.print(f"Row {one.row} is far from all others: {one.text}.", style="yellow")
    if len(found.outliers) > _MOST_OUTLIERS:
        console.print(f"{len(found.outliers) - _MOST_OUTLIERS} more rows are far from all others: see --report.")
