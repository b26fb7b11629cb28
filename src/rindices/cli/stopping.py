"""How a command ends: errors without tracebacks, exit codes, and signals that are obeyed at once."""

from __future__ import annotations

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
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

import typer

from rindices.cli.console import console, errors, log, on_command_line, set_place
from rindices.errors import InputError, LostWorkers, without_data, worded
from rindices.files import remove_half_written

USER_ERROR, INNER_ERROR, INTERRUPTED = 2, 3, 130
_ENDING_SECONDS = 3.0  # to wait for a run that is about to become complete

_asked_to_stop: list[int] = []  # signals
_Result = TypeVar("_Result")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a few lines and an exit code: 2 for the user's input, 3 for trouble inside."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        set_place(kwargs.get("out"))
        try:
            with _terminable():
                command(*args, **kwargs)
        except InputError as error:
            # A log is kept; who and what is wrong with the table is told on the other channel.
            refused = f"The input was refused ({without_data(error)}); standard error says why."
            log("error", status="failed", exit_code=USER_ERROR, message=refused)
            errors.print(f"Error: {worded(error.message, on_command_line)}", style="red")
            raise typer.Exit(USER_ERROR) from error
        except typer.Exit:
            raise
        except KeyboardInterrupt as error:
            raise typer.Exit(_tell_stopped()) from error
        except Exception as error:
            if os.environ.get("RINDICES_DEBUG"):
                traceback.print_exc()
            log("error", status="failed", exit_code=INNER_ERROR, message=without_data(error))
            trouble, remedy = _in_words(error)
            errors.print(f"Trouble inside rindices: {trouble}", style="red")
            errors.print(f"Failed. {remedy}")
            raise typer.Exit(INNER_ERROR) from error

    return run


def _in_words(error: Exception) -> tuple[str, str]:
    """Return what the trouble is, and what helps; the kind of unforeseen errors helps whoever they are reported to."""
    if isinstance(error, OSError) and error.strerror:
        # A half-written file is called by the name that it would have got.
        file = re.sub(r"(^|[\\/])\.([^\\/]+?)\.[^.\\/]+\.partial$", r"\1\2", str(error.filename or ""))
        again = "Repeat the same command when that is mended: it goes on where it stopped."
        return f"{error.strerror}{f': {file}' if file else ''}.", again
    if isinstance(error, MemoryError):
        more = "Close other programs or take a machine with more memory, and repeat the same command."
        return "there is not enough memory.", more
    if isinstance(error, LostWorkers):
        return str(error), (
            "Most often workers lack memory: take fewer (--workers) or machines that have more, and repeat the same "
            "command; it goes on where it stopped."
        )
    return f"{type(error).__name__}: {error}", "RINDICES_DEBUG=1 shows where it happened; please report it."


class Ending:
    """The moment in which a run becomes complete: a wish to stop is granted before it, and too late after it."""

    def __init__(self) -> None:
        self.lock, self.over = threading.Lock(), False

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.over = kind is None
        self.lock.release()


def interruptible(work: Callable[[], _Result], how_to_go_on: str, ending: Ending) -> _Result:
    """Do long work in a thread, so that Ctrl-C and the end of a job's time are obeyed at once.

    Neither can interrupt a computation, but all that matters is on disk in whole files: the process may simply end.
    The work enters `ending` while it becomes complete.
    """
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            outcome.set_exception(error)

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
    return outcome.result()


def _tell_stopped() -> int:
    code = _stop_code()
    log("stopped", status="unfinished", exit_code=code)
    errors.print("Stopped before the results were complete: none were written.")
    return code


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _stop(code: int, how_to_go_on: str) -> NoReturn:
    for child in multiprocessing.active_children():  # workers of ours, who would train on
        with contextlib.suppress(OSError, TypeError):
            os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # type: ignore[arg-type]
    log("stopped", status="unfinished", exit_code=code)
    errors.print(f"\nStopped: unfinished. {how_to_go_on}")
    _end(code)


def _end(code: int) -> NoReturn:
    console.show_cursor(True)
    sys.stdout.flush()
    remove_half_written()
    os._exit(code)


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat the end of a job's time (SIGTERM) like Ctrl-C, and take note of both."""
    _asked_to_stop.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        _asked_to_stop.append(number)  # Python drops the exception where it cleans up memory
        if _is_importing(frame):  # a library that is half loaded may crash, or make another error of the exception
            _end(_tell_stopped())
        raise KeyboardInterrupt

    def unraised(trouble: Any) -> None:
        # Where the exception is dropped, Python would print its traceback; the stop itself is obeyed all the same.
        if not issubclass(trouble.exc_type, KeyboardInterrupt):
            usual_hook(trouble)

    usual_hook, sys.unraisablehook = sys.unraisablehook, unraised
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, stop) for number in usual if signal.getsignal(number) is usual[number]}
    try:
        yield
    finally:
        sys.unraisablehook = usual_hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_code() -> int:
    return 128 + _asked_to_stop[-1] if _asked_to_stop else INTERRUPTED
