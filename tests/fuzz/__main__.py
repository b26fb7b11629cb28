"""Cases by the thousand: ``python -m tests.fuzz [tables] [models] [checkpoints]``."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.fuzz import TARGETS
from tests.fuzz.engine import outcomes

console = Console(highlight=False, soft_wrap=True)


def fuzz(
    targets: Annotated[list[str] | None, typer.Argument(help=f"Readers: {', '.join(TARGETS)}.")] = None,
    cases: Annotated[int, typer.Option(min=1, help="Cases drawn for each reader, beside the systematic.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other cases.")] = 0,
    case: Annotated[int | None, typer.Option(min=0, help="Only the case of this number.")] = None,
    keep: Annotated[Path, typer.Option(help="Folder for the files of failed cases.")] = Path("fuzz-failures"),
) -> None:
    """Give readers damaged, odd and hostile files, and tell how many they read, refused and failed on."""
    failed = 0
    for name in targets or list(TARGETS):
        if name not in TARGETS:
            raise typer.BadParameter(f"{name} is none of {', '.join(TARGETS)}.")
        numbers = range(TARGETS[name]().n_systematic + cases) if case is None else [case]
        failed += _run(name, numbers, seed, keep / name)
    raise typer.Exit(1 if failed else 0)


def _run(name: str, numbers: range | list[int], seed: int, keep: Path) -> int:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    counts, begun, slowest = Counter(), time.perf_counter(), 0.0
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=len(numbers))
        for outcome in outcomes(TARGETS[name], seed, numbers, keep):
            counts[outcome.verdict] += 1
            slowest = max(slowest, outcome.seconds)
            progress.advance(task)
            if outcome.verdict == "failed":
                last = outcome.trouble.strip().splitlines()[-1]
                console.print(f"{name}, seed {seed}, case {outcome.number} failed: {last[:300]}", markup=False)
    seconds = time.perf_counter() - begun
    kept = f"; their files are in {keep}" if counts["failed"] else ""
    console.print(
        f"{name}: {len(numbers):,} cases (seed {seed}): {counts['read']:,} read, {counts['refused']:,} refused, "
        f"{counts['failed']:,} failed{kept}. {seconds:.0f} s, the slowest case {slowest:.1f} s."
    )
    return counts["failed"]


if __name__ == "__main__":
    typer.run(fuzz)
