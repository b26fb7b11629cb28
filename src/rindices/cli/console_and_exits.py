"""Console output: sentences, JSON lines, progress, and settings written as command-line options.

Also how commands end: errors without tracebacks, exit codes, and signals that take effect at once.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from rindices.files import remove_half_written
from rindices.problems import (
    InputError,
    LostWorkers,
    Remedy,
    Text,
    Value,
    counted,
    duration,
    listed,
    quoted,
    remedies_in,
    without_data,
    without_people,
    worded,
)
from rindices.settings import option_name

if TYPE_CHECKING:
    from rindices.record import Summary
    from rindices.training.execution import Progress

# Output contains ids and names from the user, in which markup and emoji codes such as :x: are plain text.
console = Console(
    force_terminal=False if os.environ.get("TERM") == "dumb" else None,  # it shows progress in lines, not bars
    highlight=False,
    soft_wrap=True,
    markup=False,
    emoji=False,
)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
_json_lines = False
_LINE_SECONDS, _JSON_SECONDS = 30.0, 2.0  # between lines of progress without a terminal; programs read JSON
_MOST_NAMES = 20  # in a sentence; longer lists get a line of their own
_VERDICT_STYLES = {
    "reproducible": "green",
    "weak": "cyan",
    "confounded": "yellow",
    "not reproducible": "bold red",
    "no difference": "bold",
    "not testable": "magenta",
}


def on_command_line(remedy: Remedy) -> str:
    """Return a setting as an option; lists of names too long for a sentence are left to `ready_options`.

    Examples
    --------
    >>> settings = Remedy("drop_missing", True), Remedy("report", False), Remedy("n_patterns", "2-5")
    >>> [on_command_line(one) for one in settings]
    ['--drop-missing', '--no-report', '--patterns 2-5']
    >>> on_command_line(Remedy("exclude", ["lHip", "left amygdala"]))
    "--exclude 'lHip,left amygdala'"
    """
    return _as_option(*(remedy._replace(value="NAMES") if _is_long(remedy) else remedy))


def _is_long(remedy: Remedy) -> bool:
    names = remedy.value
    return isinstance(names, tuple) and len(names) > _MOST_NAMES and not any("," in name for name in names)


def _as_option(name: str, value: Value) -> str:
    word = option_name(name)
    if value is None or isinstance(value, bool):
        return f"--no-{word}" if value is False else f"--{word}"
    if not isinstance(value, tuple):
        return f"--{word} {quoted(str(value))}"
    apart = [one for one in value if "," in one]
    if apart:
        return f"--{word} (first rename {listed(map(repr, apart), 2)}, because commas separate names in this option)"
    return f"--{word} {quoted(','.join(value))}"


def ready_options(text: Text) -> str:
    """Return one line for each option of a text whose list of names is too long for a sentence."""
    return "".join(f"\n{_as_option(*one)}" for one in remedies_in([text]) if _is_long(one))


def set_output(*, quiet: bool = False, log_json: bool = False) -> None:
    """Choose between sentences, errors only, and one JSON object per line."""
    global _json_lines
    _json_lines = log_json
    console.quiet = quiet or log_json


def log(event: str, **fields: object) -> None:
    """Write a line of JSON, if JSON output was requested."""
    if _json_lines:
        typer.echo(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": event} | fields, default=str))


def warn(sentences: Iterable[Text]) -> None:
    """Show warnings, and log them without people's ids."""
    for sentence in sentences:
        text = worded(sentence, on_command_line)
        console.print(f"Warning: {text}", style="yellow")
        log("warning", message=without_people(text))


def regions_in_words(kinds: Mapping[str, Sequence[str]]) -> str:
    """Return how many regions of each kind there are, with a few names."""
    groups = "; ".join(f"{len(names)} {kind} ({listed(names, 4)})" for kind, names in kinds.items())
    return f"{groups}." if [*kinds] == ["regions"] else f"{counted(sum(map(len, kinds.values())), 'region')}: {groups}."


def show_verdict(summary: Summary, whose: str = "") -> None:
    """Show the verdict, the reason for it, and advice; green is for an unqualified yes."""
    headline, advice = summary.verdict_words
    sentences = whose + " ".join(filter(None, [headline, summary.reliable_reason, advice]))
    console.print(sentences, style=_VERDICT_STYLES.get(summary.verdict or "", ""))


def show_places(places: Mapping[str, Path | None]) -> None:
    """Show where files are, except those that are None."""
    for name, path in places.items():
        if path is not None:
            console.print(f"{name + ':':<11} {path}")


def long_wait(n_values: int) -> str:
    """Return a notice that work on so many values (people times regions) can take minutes; empty if it cannot."""
    return "; this can take several minutes with a table of this size" * (n_values > 1_000_000)


@contextlib.contextmanager
def training_bars() -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows each stage of training: steps of all models together, speed, time left.

    Without a terminal, it prints a line from time to time.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}% {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, Task] = {}
    last_line = float("-inf")

    def show(progress: Progress) -> None:
        nonlocal last_line
        stage, done, total, resumed = progress
        new = stage not in tasks
        if new:  # steps of an earlier process took this one no time
            bars.add_task(stage, total=total, completed=resumed, note="", visible=total > 0)
            tasks[stage] = bars.tasks[-1]
        elif tasks[stage].finished:
            return
        speed = tasks[stage].speed
        note = f"{speed:,.0f} steps/s" if speed else "(preparing)" if done < total else ""
        bars.update(tasks[stage].id, completed=done, note=note)
        due = new or done == total or time.monotonic() - last_line > (_JSON_SECONDS if _json_lines else _LINE_SECONDS)
        if due and (_json_lines or not console.is_terminal or not total):
            last_line = time.monotonic()
            left = tasks[stage].time_remaining
            ahead = f", about {duration(left)} left" if speed and left else ""
            share = f"{100 * done / total:.0f} % {note}".rstrip() if total else "…"  # for a stage without steps
            console.print(f"{stage}: {share}{ahead}")
            log("progress", stage=stage, done=done, total=total)

    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        yield show


@contextlib.contextmanager
def counting_bar(what: str, *, transient: bool = False) -> Iterator[Callable[..., None]]:
    """Yield a function that shows how much of a task is done; `transient` bars disappear at the end."""
    with Bars(console=console, disable=not console.is_terminal, transient=transient) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total=1: bars.update(task, completed=done, total=total)


USER_ERROR, INNER_ERROR, INTERRUPTED = 2, 3, 130
_NOTHING_WRITTEN = "Stopped before the results were complete, so no results were written."

_asked_to_stop: list[int] = []  # signals


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a few lines and an exit code: 2 for invalid input or a full disk, 3 for internal errors."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                command(*args, **kwargs)
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            _stop(_NOTHING_WRITTEN)
        except Exception as error:
            if os.environ.get("RINDICES_DEBUG"):
                traceback.print_exc()
            code = USER_ERROR if isinstance(error, InputError) or _is_disk_full(error) else INNER_ERROR
            logged = without_data(error)
            if isinstance(error, InputError):
                # Logs are kept, so what is wrong with the table, and with whom, goes to standard error only.
                logged = f"The input was rejected ({logged}); see standard error for the reason."
            log("error", status="failed", exit_code=code, message=logged)
            errors.print(_in_words(error), style="red")
            raise typer.Exit(code) from error

    return run


def _is_disk_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))


def _in_words(error: Exception) -> str:
    """Return an error and its remedy in words; unforeseen errors include their type, for reports of the error."""
    if isinstance(error, InputError):
        return f"Error: {worded(error.message, on_command_line)}{ready_options(error.message)}"
    trouble, remedy = (
        (f"{type(error).__name__}: {error}"),
        "Please report this error. To see where it occurred, set RINDICES_DEBUG=1 and run the command again.",
    )
    if isinstance(error, OSError) and error.strerror:
        # Show a half-written file under its final name.
        file = re.sub(r"(^|[\\/])\.([^\\/]+?)\.[^.\\/]+\.partial$", r"\1\2", str(error.filename or ""))
        again = "run the same command again; it resumes where it stopped."
        trouble, remedy = f"{error.strerror}{f': {file}' if file else ''}.", f"Once this is fixed, {again}"
        if _is_disk_full(error):
            folder = Path(file).absolute().parent if file else "the results"
            return (
                f"Error: {trouble}\nFailed. Free up space on the disk that holds {folder}, or raise your quota. "
                f"Then {again}"
            )
    elif isinstance(error, MemoryError):
        trouble = "there is not enough memory."
        remedy = "Close other programs or use a machine with more memory, then run the same command again."
    elif isinstance(error, LostWorkers):
        trouble, remedy = (
            str(error),
            "The workers have probably run out of memory. Use fewer workers (--workers) or machines with more memory, "
            "then run the same command again; it resumes where it stopped.",
        )
    return f"Internal error in rindices: {trouble}\nFailed. {remedy}"


def interruptible(work: Callable[[Callable[[], object]], Summary], how_to_go_on: str) -> Summary:
    """Run long work in a thread, so that Ctrl-C and the end of a job's time take effect at once.

    Neither can interrupt a computation, but all that matters is on disk in complete files: the process can simply end.
    The work calls its argument before it becomes complete; after that, it is too late to stop it.
    """
    ending = threading.Lock()  # the first to acquire it wins, and never releases it
    outcome = ThreadPoolExecutor(1).submit(work, ending.acquire)
    try:
        while not wait([outcome], timeout=0.1).done:
            if _asked_to_stop:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if ending.acquire(blocking=False):
            _stop(f"\nStopped before the run was finished. {how_to_go_on}")
    return outcome.result()


def _stop(message: str) -> NoReturn:
    """End the process at once."""
    code = 128 + _asked_to_stop[-1] if _asked_to_stop else INTERRUPTED
    for child in multiprocessing.active_children():  # our workers, which would go on training
        with contextlib.suppress(OSError, TypeError):
            os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # type: ignore[arg-type]
    log("stopped", status="unfinished", exit_code=code)
    errors.print(message)
    console.show_cursor(True)
    sys.stdout.flush()
    remove_half_written()
    os._exit(code)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Treat the end of a job's time (SIGTERM) like Ctrl-C, and record both."""

    def stop(number: int, frame: FrameType | None) -> None:
        _asked_to_stop.append(number)  # Python drops the exception if it is freeing memory
        if _is_importing(frame):  # a half-loaded library may crash, or turn the exception into another
            _stop(_NOTHING_WRITTEN)
        raise KeyboardInterrupt

    def unraised(trouble: Any) -> None:
        # Python would print the traceback of a dropped exception; the request to stop is honoured anyway.
        if not issubclass(trouble.exc_type, KeyboardInterrupt):
            usual_hook(trouble)

    _asked_to_stop.clear()
    usual_hook, sys.unraisablehook = sys.unraisablehook, unraised
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, stop) for number in usual if signal.getsignal(number) is usual[number]}
    try:
        yield
    finally:
        sys.unraisablehook = usual_hook
        for number, handler in before.items():
            signal.signal(number, handler)
