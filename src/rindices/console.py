"""What the command line shows: sentences, progress bars or JSON lines, and errors without tracebacks."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from rindices.errors import InputError, counted, listed

if TYPE_CHECKING:
    from rindices.cohort import Cohort
    from rindices.execution import Progress

USER_ERROR, INNER_ERROR, INTERRUPTED = 2, 3, 130
_ENDING_SECONDS = 3.0  # to wait for a run that is about to become complete
_LINE_SECONDS = 30.0  # between two lines of progress where there is no terminal

console = Console(highlight=False, soft_wrap=True, markup=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
_json_lines = False
_asked_to_stop: list[int] = []  # signals
_Result = TypeVar("_Result")


def set_output(*, quiet: bool = False, log_json: bool = False) -> None:
    """Choose between sentences, nothing but errors, and one JSON object a line."""
    global _json_lines
    _json_lines = log_json
    console.quiet = quiet or log_json


def log(event: str, **fields: Any) -> None:
    """Write a line of JSON, where they are asked for."""
    if _json_lines:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        sys.stdout.write(json.dumps({"time": moment, "event": event} | fields, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a few lines and an exit code: 2 for the user's input, 3 for trouble inside."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                command(*args, **kwargs)
        except InputError as error:
            log("error", status="failed", exit_code=USER_ERROR, message=str(error))
            errors.print(f"Error: {error}", style="red")
            raise typer.Exit(USER_ERROR) from error
        except typer.Exit:
            raise
        except KeyboardInterrupt as error:
            code = _stop_code()
            log("stopped", status="unfinished", exit_code=code)
            errors.print("Stopped before the results were complete: none were written.")
            raise typer.Exit(code) from error
        except Exception as error:
            if os.environ.get("RINDICES_DEBUG"):
                traceback.print_exc()
            log("error", status="failed", exit_code=INNER_ERROR, message=f"{type(error).__name__}: {error}")
            errors.print(f"Trouble inside rindices: {type(error).__name__}: {error}", style="red")
            errors.print(_remedy(error))
            raise typer.Exit(INNER_ERROR) from error

    return run


def _remedy(error: Exception) -> str:
    if isinstance(error, OSError):
        return "Failed. Repeat the same command when that is mended: it goes on where it stopped."
    return "Failed. RINDICES_DEBUG=1 shows where it happened; please report it."


def describe_cohort(cohort: Cohort, most_names: int = 250) -> None:
    """Say who and what was read."""
    labels = f"{', '.join(cohort.control_labels)} against {', '.join(cohort.patient_labels)}"
    people = [counted(n, name) for n, name in ((cohort.n_controls, "control"), (cohort.n_patients, "patient"))]
    people += [counted(cohort.n_other, "other person", "other people")] if cohort.n_other else []
    console.print(f"Read {cohort.source}: {', '.join(people)} ({labels}).")
    console.print(f"{counted(cohort.features.shape[1], 'region')}: {listed(cohort.features.columns, most_names)}.")
    console.print(f"Covariates removed: {listed(cohort.covariates.columns, 20) or 'none'}.")
    log("table", source=cohort.source, controls=cohort.n_controls, patients=cohort.n_patients, others=cohort.n_other)
    _warn(cohort.warnings)


def describe_run(summary: dict[str, Any], out: Path, cohort: Cohort, *, report: bool = True) -> None:
    """Say what came out and where it is; the last line is the status."""
    value = summary["agreement"]["pattern_agreement"]
    used = f"{summary['members_used']} of {counted(summary['repetitions'], 'repetition')}"
    console.print(summary["search"]["reason"])
    agreement = "unknown with a single one" if math.isnan(value) else f"{value:.3f} (0.5 is chance, 1 is perfect)"
    console.print(f"Used {used} at step {summary['step']:,}; their agreement is {agreement}.")
    _warn(warning for warning in summary["warnings"] if warning not in cohort.warnings)
    if summary["reliable"]:
        console.print(f"Reliable: {summary['reliable_reason']}")
    else:
        console.print(f"Not reliable: {summary['reliable_reason']} Do not interpret these R-indices.", style="bold red")
    describe_places(out, report=report)
    kept = ("n_patterns", "agreement", "reliable", "reliable_reason", "seconds")
    log("done", status="done", exit_code=0, out=str(out), **{name: summary[name] for name in kept})
    console.print(f"Done in {summary['seconds']:.0f} s.", style="green")


def describe_places(out: Path, *, report: bool = True) -> None:
    """Say where the results are."""
    places = {"R-indices": "r_indices.csv", "Patterns": "patterns.csv", "Model": "model.safetensors"}
    places |= {"Picture": "r_indices.png"} | ({"Report": "report.html"} if report else {})
    for name, file in places.items():
        console.print(f"{name + ':':<11} {out / file}")


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        console.print(f"Warning: {sentence}", style="yellow")
        log("warning", message=sentence)


class _Ending:
    """The moment in which a run becomes complete: a wish to stop is granted before it, and too late after it."""

    def __init__(self) -> None:
        self.lock, self.over = threading.Lock(), False

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.over = kind is None
        self.lock.release()


def interruptible(work: Callable[[], _Result], how_to_go_on: str, ending: _Ending) -> _Result:
    """Do long work in a thread, so that Ctrl-C and the end of a job's time are obeyed at once.

    Neither can interrupt a computation, but all that matters is on disk in whole files: the process may simply end.
    The work enters `ending` while it becomes complete.
    """
    outcome: list[_Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failure.append(error)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
            if _asked_to_stop:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        ending.lock.acquire(timeout=_ENDING_SECONDS)
        if not ending.over:
            _stop(_stop_code(), how_to_go_on)
        ending.lock.release()
        worker.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _stop(code: int, how_to_go_on: str) -> NoReturn:
    for child in multiprocessing.active_children():  # workers of ours, who would train on
        with contextlib.suppress(OSError, TypeError):
            os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # type: ignore[arg-type]
    log("stopped", status="unfinished", exit_code=code)
    errors.print(f"\nStopped: unfinished. {how_to_go_on}")
    console.show_cursor(True)
    sys.stdout.flush()
    os._exit(code)


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat the end of a job's time (SIGTERM) like Ctrl-C, and take note of both."""
    _asked_to_stop.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        _asked_to_stop.append(number)  # Python drops the exception where it cleans up memory
        raise KeyboardInterrupt

    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, stop) for number in usual if signal.getsignal(number) is usual[number]}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_code() -> int:
    return 128 + _asked_to_stop[-1] if _asked_to_stop else INTERRUPTED


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
        if console.is_terminal and not _json_lines:
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


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def train_and_write(
    cohort: Cohort,
    options: dict[str, Any],
    out: Path,
    *,
    settings: dict[str, dict[str, Any]],
    cluster: str | None = None,
    workers: int | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """Load the engine, train behind progress bars, and write the run folder."""
    from rindices.clusters import parallel
    from rindices.search import SurrealGANSearch
    from rindices.workflow import fit_to_folder

    search, ending = SurrealGANSearch(**options), _Ending()

    def work() -> dict[str, Any]:
        with parallel(cluster, workers), TrainingBars() as bars:
            return fit_to_folder(cohort, search, out, settings=settings, progress=bars, ending=ending, **rest)

    how_to_go_on = f"Repeat the same command to go on: what was trained is kept in {out}."
    return interruptible(work, how_to_go_on, ending)
