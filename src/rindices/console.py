"""What the command line shows: sentences, a progress bar, and errors without tracebacks."""

from __future__ import annotations

import functools
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rindices.errors import InputError, counted, listed

if TYPE_CHECKING:
    from rindices.cohort import Cohort
    from rindices.selection import Progress as TrainingProgress

USER_ERROR, INNER_ERROR, INTERRUPTED = 2, 3, 130

console = Console(highlight=False, soft_wrap=True, markup=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a few lines and an exit code: 2 for the user's input, 3 for trouble inside."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except InputError as error:
            errors.print(f"Error: {error}", style="red")
            raise typer.Exit(USER_ERROR) from error
        except typer.Exit:
            raise
        except KeyboardInterrupt as error:
            errors.print("Stopped before the results were complete: none were written.")
            raise typer.Exit(INTERRUPTED) from error
        except Exception as error:
            if os.environ.get("RINDICES_DEBUG"):
                traceback.print_exc()
            errors.print(f"Trouble inside rindices: {type(error).__name__}: {error}", style="red")
            errors.print("No results were written. RINDICES_DEBUG=1 shows where it happened; please report it.")
            raise typer.Exit(INNER_ERROR) from error

    return run


def describe_cohort(cohort: Cohort, most_names: int = 250) -> None:
    """Say who and what was read."""
    labels = f"{', '.join(cohort.control_labels)} against {', '.join(cohort.patient_labels)}"
    people = [counted(n, name) for n, name in ((cohort.n_controls, "control"), (cohort.n_patients, "patient"))]
    people += [counted(cohort.n_other, "other person", "other people")] if cohort.n_other else []
    console.print(f"Read {cohort.source}: {', '.join(people)} ({labels}).")
    console.print(f"{counted(cohort.features.shape[1], 'region')}: {listed(cohort.features.columns, most_names)}.")
    console.print(f"Covariates removed: {listed(cohort.covariates.columns, 20) or 'none'}.")
    _warn(cohort.warnings)


def describe_run(summary: dict[str, Any], out: Path, cohort: Cohort, *, report: bool = True) -> None:
    """Say what came out and where it is; the last line is the status."""
    value = summary["agreement"]["pattern_agreement"]
    used = f"{summary['members_used']} of {counted(summary['repetitions'], 'repetition')}"
    console.print(f"The number of patterns, {summary['n_patterns']}, was given, not chosen from data.")
    agreement = "unknown with a single one" if math.isnan(value) else f"{value:.3f} (0.5 is chance, 1 is perfect)"
    console.print(f"Used {used} at step {summary['step']:,}; their agreement is {agreement}.")
    _warn(warning for warning in summary["warnings"] if warning not in cohort.warnings)
    if summary["reliable"] is False:
        console.print(f"Not reliable: {summary['reliable_reason']} Do not interpret these R-indices.", style="bold red")
    places = {"R-indices": "r_indices.csv", "Patterns": "patterns.csv", "Model": "model.safetensors"}
    places |= {"Picture": "r_indices.png"} | ({"Report": "report.html"} if report else {})
    for name, file in places.items():
        console.print(f"{name + ':':<11} {out / file}")
    console.print(f"Done in {summary['seconds']:.0f} s.", style="green")


def _warn(sentences: Any) -> None:
    for sentence in sentences:
        console.print(f"Warning: {sentence}", style="yellow")


def train_and_write(cohort: Cohort, options: dict[str, Any], out: Path, **rest: Any) -> dict[str, Any]:
    """Load the engine, train behind a progress bar, and write the run folder."""
    from rindices.estimator import SurrealGAN
    from rindices.workflow import fit_to_folder

    model = SurrealGAN(**options)
    with training_bar(model.n_repetitions) as progress:
        return fit_to_folder(cohort, model, out, progress=progress, **rest)


@contextmanager
def training_bar(n_models: int) -> Iterator[Callable[[TrainingProgress], None]]:
    """Show steps, speed, time left and agreement; in a log file, a line now and then."""
    done = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}% {task.fields[note]}"))
    bar = Progress(*done, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
    task = bar.add_task(f"Training {counted(n_models, 'model')}", total=None, note="(preparing)")
    first: tuple[int, float] | None = None  # the first look comes late, because programs are compiled before it
    last: TrainingProgress | None = None

    def show(progress: TrainingProgress) -> None:
        nonlocal first, last
        last, now = progress, time.monotonic()
        first = first or (progress.step, now)
        note = "" if now == first[1] else f"{n_models * (progress.step - first[0]) / (now - first[1]):,.0f} steps/s, "
        if not math.isnan(progress.pattern_agreement):
            note += f"agreement {progress.pattern_agreement:.3f}"
        bar.update(task, completed=progress.step, total=progress.max_steps, note=note)
        if not console.is_terminal and (progress.step * 5) % progress.max_steps == 0:
            console.print(f"Step {progress.step:,} of at most {progress.max_steps:,}: {note}")

    if console.is_terminal:
        with bar:
            yield show
    else:
        console.print(f"Training {counted(n_models, 'model')} ...")
        yield show
    if last is not None and last.step < last.max_steps:
        console.print(f"Stopped early, at step {last.step:,} of at most {last.max_steps:,}.")
