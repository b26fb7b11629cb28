"""Progress: a bar a stage, or a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from rindices.cli.console import console, has_json_lines, log

if TYPE_CHECKING:
    from rindices.training.execution import Progress

_LINE_SECONDS = 30.0  # between two lines of progress where there is no terminal


class TrainingBars:
    """Shows each stage of training: steps of all models together, speed, time left; in a log file, a line at times."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}% {task.fields[note]}"),
        )
        self._bars = Bars(*columns, console=console)
        self._tasks: dict[str, Any] = {}
        self._began: dict[str, tuple[float, int]] = {}
        self._last_line, self._over = 0.0, False

    def __enter__(self) -> TrainingBars:
        if console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if console.is_terminal:
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Show how far a stage is."""
        note = self._note(progress)
        new, over = progress.stage not in self._tasks, progress.done == progress.total
        if over and self._over:
            return
        self._over = over
        if new:
            self._tasks[progress.stage] = self._bars.add_task(progress.stage, total=progress.total, note="")
        self._bars.update(self._tasks[progress.stage], completed=progress.done, total=progress.total, note=note)
        if console.is_terminal and not has_json_lines():
            return
        if new or over or time.monotonic() - self._last_line > _LINE_SECONDS:
            self._last_line = time.monotonic()
            console.print(f"{progress.stage}: {100 * progress.done / max(progress.total, 1):.0f} % {note}")
            log("progress", stage=progress.stage, done=progress.done, total=progress.total)

    def _note(self, progress: Progress) -> str:
        """Speed and time left, from what this process did itself: what an earlier one did took it no time."""
        now = time.monotonic()
        # The first steps come late, because programs are compiled before them.
        own = progress.done - progress.resumed
        if own <= 0:
            return "(preparing)"
        start, steps = self._began.setdefault(progress.stage, (now, own))
        if own == steps or now == start:
            return ""
        rate = (own - steps) / (now - start)
        left = (progress.total - progress.done) / rate
        return f"{rate:,.0f} steps/s" + (f", {_duration(left)} left" if left >= 1 else "")


@contextmanager
def counting_bar(what: str, *, transient: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many of all are done; `transient` bars are gone in the end."""
    with Bars(console=console, disable=not console.is_terminal, transient=transient) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
