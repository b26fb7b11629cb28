"""The application, the options that several commands share, and how their text is read."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import rindices
from rindices.cli.console import console
from rindices.files import check_writable, refuse_same
from rindices.problems import InputError, Remedy

# How the files that commands write have to end.
TABLE, PAGE, MODEL = (".csv",), (".html", ".htm"), (".safetensors",)


class _Commands(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty values: as a path they would be the current folder, and as names they would stand for none."""
        apart = [before for before, text in pairwise(["rindices", *args]) if not text.strip()]
        joined = [text.rstrip("= ") for text in args if re.fullmatch(r"--[a-z-]+=\s*", text)]
        if apart or joined:
            ctx.fail(
                f"Found an empty value after {[*apart, *joined][0]}. Fill it in, or leave it out. "
                "If it came from a variable of the shell, that is not set."
            )
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
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


def option(help: str, default: str | bool = False, **limits: int) -> typer.models.OptionInfo:
    """Return an option whose default is told in words, or not at all."""
    return typer.Option(help=help, show_default=default, **limits)  # type: ignore[arg-type]


def check_output(
    path: Path | None, name: str, endings: tuple[str, ...], *inputs: Path, own: Path | None = None
) -> None:
    """Refuse, before any work is done, to write over what is read, a run's results or a file of another kind.

    Parameters
    ----------
    path
        The file to write, if any.
    name
        The setting that named it.
    endings
        How the name of the file has to end.
    inputs
        Files that are read.
    own
        The one result of a run that may be replaced.
    """
    from rindices.record import run_around

    if path is None:
        return
    check_writable(path, name)
    refuse_same(path, *inputs, name=name)
    run = run_around(path)
    if run is not None and (own is None or path.resolve() != own.resolve()):
        raise InputError(
            f"{path} has the name of a result of the run in {run}.\nChoose another name or folder with ",
            Remedy(name),
            ".",
        )
    if not path.name.casefold().endswith(endings):
        better = Path(path.name.removesuffix(".gz")).with_suffix(endings[0])
        raise InputError(
            Remedy(name),
            f" should be a file that ends in {' or '.join(endings)}, found {path}.\n"
            f"Nothing else is written there: call it {better}, for example.",
        )


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Read ``3``, ``2,3`` or ``2-5``."""
    parts = "".join(text.split()).split(",")
    ends = [part.split("-") for part in parts if re.fullmatch(r"\d+(-\d+)?", part)]
    found = [range(int(part[0]), int(part[-1]) + 1) for part in ends]
    if len(found) < len(parts) or not all(found):
        raise InputError(f"{option} should be like 3, 2,3 or 2-5, found {text!r}.")
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def numbers(option: str, text: str, example: str) -> tuple[float, ...]:
    """Read ``0.2,0.4``."""
    try:
        return tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError as error:
        raise InputError(f"{option} should be like {example}, found {text!r}.") from error


def noise_of(text: str) -> tuple[float, ...]:
    """Read the scan noise: one number, or one a pattern."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise InputError(f"--scan-noise should be like 0.04 or 0.03,0.05,0.04, found {text!r}.") from error


def limits_of(text: str) -> tuple[float, float]:
    """Read the two limits of the subgroups."""
    low, *rest = numbers("--subgroup-limits", text, "0.4,0.7")
    if len(rest) != 1 or not 0 < low < rest[0] < float("inf"):
        raise InputError(f"--subgroup-limits should be two rising numbers such as 0.4,0.7, found {text!r}.")
    return low, rest[0]


Model = Annotated[Path, argument("The model.safetensors of a finished run.")]
Exclude = Annotated[
    str, option("Columns of numbers that are not regions: names or prefix*, separated by commas, or @ and a file.")
]
Join = Annotated[str | None, option("More tables of the same people, joined by id.")]
Missing = Annotated[
    str, option("Codes for missing values, e.g. -9999; in one column only: icv=0. Separated by commas.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out people with missing or impossible values; they are listed.")
]
CompleteOnly = Annotated[
    bool,
    typer.Option(
        "--complete-only",
        help="Use nobody who lacks a region; else people may lack a fifth, which are drawn given the others.",
    ),
]
Steps = Annotated[int | None, option("Longest training.", "by preset", min=1)]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed repeats the same result.")]
Repetitions = Annotated[int, typer.Option(min=1, help="Trainings to compare and average.")]
Level = Annotated[float, typer.Option(help="Share of people whose true severity the intervals should hold.")]
ScanNoise = Annotated[
    str,
    option(
        "For change between visits: sd of a severity over scans of an unchanged person; one, or one a pattern.",
        "from controls who came again",
    ),
]
ShowIds = Annotated[
    bool, typer.Option("--show-ids", help="Put participants' ids into the report, with a card for each person.")
]
Figures = Annotated[Path | None, option("Folder for every figure of the report as SVG and PNG.")]
