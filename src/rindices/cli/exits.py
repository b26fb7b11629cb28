"""How a command ends: errors without tracebacks, exit codes, and signals that are obeyed at once."""

import contextlib
import functools
import multiprocessing
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

import typer

from rindices.cli.console import console, errors, log, on_command_line, ready_options
from rindices.files import remove_half_written
from rindices.problems import InputError, LostWorkers, without_data, worded

USER_ERROR, INNER_ERROR, INTERRUPTED = 2, 3, 130
_NOTHING_WRITTEN = "Stopped before the results were complete; none were written."

_asked_to_stop: list[int] = []  # signals
_Result = TypeVar("_Result")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a few lines and an exit code: 2 for the user's input, 3 for trouble inside."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                command(*args, **kwargs)
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            _stop(_stop_code(), _NOTHING_WRITTEN)
        except Exception as error:
            if os.environ.get("RINDICES_DEBUG"):
                traceback.print_exc()
            code, logged = INNER_ERROR, without_data(error)
            if isinstance(error, InputError):
                # A log is kept; who and what is wrong with the table is told on the other channel.
                code, logged = USER_ERROR, f"The input was refused ({logged}); standard error says why."
            log("error", status="failed", exit_code=code, message=logged)
            errors.print(_in_words(error), style="red")
            raise typer.Exit(code) from error

    return run


def _in_words(error: Exception) -> str:
    """Say what the trouble is, and what helps; the kind of unforeseen errors helps whoever they are reported to."""
    if isinstance(error, InputError):
        return f"Error: {worded(error.message, on_command_line)}{ready_options(error.message)}"
    trouble, remedy = (
        (f"{type(error).__name__}: {error}"),
        "Set RINDICES_DEBUG=1 to see where it happened, and please report it.",
    )
    if isinstance(error, OSError) and error.strerror:
        # A half-written file is called by the name that it would have got.
        file = re.sub(r"(^|[\\/])\.([^\\/]+?)\.[^.\\/]+\.partial$", r"\1\2", str(error.filename or ""))
        again = "Repeat the same command once that is fixed: it resumes where it stopped."
        trouble, remedy = f"{error.strerror}{f': {file}' if file else ''}.", again
    elif isinstance(error, MemoryError):
        more = "Close other programs or use a machine with more memory, and repeat the same command."
        trouble, remedy = "there is not enough memory.", more
    elif isinstance(error, LostWorkers):
        fewer = "Workers have probably run out of memory: use fewer (--workers), or machines with more"
        trouble, remedy = str(error), f"{fewer}, and repeat the same command; it resumes where it stopped."
    return f"Internal error in rindices: {trouble}\nFailed. {remedy}"


# Whoever has it first wins: a wish to stop, or a run that is about to become complete and keeps it for good.
Ending = threading.Lock


def interruptible(work: Callable[[], _Result], how_to_go_on: str, ending: threading.Lock) -> _Result:
    """Do long work in a thread, so that Ctrl-C and the end of a job's time are obeyed at once.

    Neither can interrupt a computation, but all that matters is on disk in whole files: the process may simply end.
    The work takes `ending` before it becomes complete; after that it is too late to stop it.
    """
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        while not wait([outcome], timeout=0.1).done:
            if _asked_to_stop:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if ending.acquire(blocking=False):
            _stop(_stop_code(), f"\nStopped: unfinished. {how_to_go_on}")
    return outcome.result()


def _stop_code() -> int:
    return 128 + _asked_to_stop[-1] if _asked_to_stop else INTERRUPTED


def _stop(code: int, message: str) -> NoReturn:
    """End the process at once."""
    for child in multiprocessing.active_children():  # workers of ours, who would train on
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


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat the end of a job's time (SIGTERM) like Ctrl-C, and take note of both."""

    def stop(number: int, frame: FrameType | None) -> None:
        _asked_to_stop.append(number)  # Python drops the exception where it cleans up memory
        if _is_importing(frame):  # a library that is half loaded may crash, or make another error of the exception
            _stop(_stop_code(), _NOTHING_WRITTEN)
        raise KeyboardInterrupt

    def unraised(trouble: Any) -> None:
        # Where the exception is dropped, Python would print its traceback; the stop itself is obeyed all the same.
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
