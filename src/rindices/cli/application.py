"""The application, and the options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import rindices
from rindices.cli.console import console

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


def argument(help: str) -> typer.models.ArgumentInfo:
    """Return an argument without a default."""
    return typer.Argument(help=help, show_default=False)


def option(help: str, default: str | bool = False, **limits: Any) -> typer.models.OptionInfo:
    """Return an option whose default is told in words, or not at all."""
    return typer.Option(help=help, show_default=default, **limits)


Table = Annotated[Path, argument("Table of people: CSV, TSV, Excel or Parquet, one row a person.")]
Model = Annotated[Path, argument("The model.safetensors of a finished run.")]
Exclude = Annotated[str, option("Columns of numbers that are not regions: names or prefix*, separated by commas.")]
Steps = Annotated[int | None, option("Longest training.", "by preset", min=1)]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed repeats the same result.")]
Repetitions = Annotated[int, typer.Option(min=1, help="Trainings to compare and average.")]
Clinical = Annotated[
    str, option("Clinical scores to compare with the R-indices: columns, e.g. mmse,apoe4, or a table joined by id.")
]
Limits = Annotated[str, typer.Option(help="R-indices below the first are low, above the second high, for subgroups.")]
ShowIds = Annotated[
    bool, typer.Option("--show-ids", help="Put participants' ids into the report, with a card for each person.")
]
Figures = Annotated[Path | None, option("Folder for every figure of the report as SVG and PNG.")]
