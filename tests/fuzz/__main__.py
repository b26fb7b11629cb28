"""Cases by the thousand: ``python -m tests.fuzz [tables] [models] [checkpoints]``."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from tests.fuzz import TARGETS
from tests.fuzz.engine import outcomes


def fuzz(
    targets: Annotated[list[str] | None, typer.Argument(help=f"Readers: {', '.join(TARGETS)}.")] = None,
    cases: Annotated[int, typer.Option(min=1, help="Cases drawn for each reader, beside the systematic.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other cases.")] = 0,
    case: Annotated[int | None, typer.Option(min=0, help="Only the case of this number.")] = None,
    keep: Annotated[Path, typer.Option(help="Folder for the files of failed cases.")] = Path("fuzz-failures"),
) -> None:
    """Give readers damaged, odd and hostile files, and tell how many they read, refused and failed on."""
    failed = 0
    for name in targets or TARGETS:
        numbers = range(TARGETS[name]().n_systematic + cases) if case is None else [case]
        counts, begun, slowest = Counter(), time.perf_counter(), 0.0
        for outcome in track(outcomes(TARGETS[name], seed, numbers, keep / name), name, len(numbers), transient=True):
            counts[outcome.verdict] += 1
            slowest = max(slowest, outcome.seconds)
            if outcome.trouble:
                typer.echo(
                    f"{name}, seed {seed}, case {outcome.number} failed: {outcome.trouble.splitlines()[-1][:300]}"
                )
        failed += counts["failed"]
        seconds = time.perf_counter() - begun
        typer.echo(
            f"{name}: {len(numbers):,} cases (seed {seed}): {counts['read']:,} read, {counts['refused']:,} refused, "
            f"{counts['failed']:,} failed. {seconds:.0f} s, the slowest case {slowest:.1f} s."
        )
    if failed:
        typer.echo(f"The files of failed cases are in {keep}.")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(fuzz)
