"""What happens inside a worker: a task is called there, and the worker looks whether anybody still waits for it."""

from __future__ import annotations

import functools
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rindices.errors import InputError

DECIDE_BITS = ("rindices", "jax", "jaxlib", "optax")
_LOOK_SECONDS = 1.0  # between two looks whether the process that started this one is still there


class Failed:
    """The error of a task, as a value: Dask can lose an error on its way, and who waits for it would wait for ever.

    Parameters
    ----------
    error
        What was raised. Its traceback stays behind; its text goes along.
    """

    def __init__(self, error: Exception) -> None:
        self.kind = type(error).__name__
        told = "".join(traceback.format_exception(error, limit=-10))
        error.__traceback__ = error.__cause__ = error.__context__ = None
        # Those of libraries may hold what cannot travel, or be unknown where they arrive.
        plain = type(error).__module__ in ("builtins", InputError.__module__)
        plain = plain and all(isinstance(part, str | int | float | None) for part in error.args)
        self.error = error if plain else RuntimeError(f"{self.kind}: {error}")
        self.error.add_note(f"In a worker on {platform.node()}:\n{told}")


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, and that of Python."""
    found = {"python": platform.python_version().rpartition(".")[0]}
    for name in DECIDE_BITS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def call(expected: dict[str, str], function: Callable[..., Any], names: tuple[str, ...], *values: Any) -> Any:
    """Call a function in a worker that has the expected versions; return a list of its result, or what failed.

    Parameters
    ----------
    expected
        What `versions` says where the results are awaited.
    function
        What to call.
    names, values
        Its arguments; the last of them have names.
    """
    try:
        check_versions(expected, versions(), f"A worker on {platform.node()}")
        place = len(values) - len(names)
        return [function(*values[:place], **dict(zip(names, values[place:], strict=True)))]
    except Exception as error:  # noqa: BLE001 (raised where the result is awaited)
        return Failed(error)


def check_versions(expected: dict[str, str], found: dict[str, str], whose: str) -> None:
    """Refuse a place for training that has other versions, or lacks something.

    Parameters
    ----------
    expected
        What `versions` says where the results are awaited.
    found
        The same of the other place.
    whose
        Which place that is, in words.
    """
    differing = [name for name in expected if found.get(name) != expected[name]]
    if differing:
        raise InputError(
            f"{whose} has {_listed(found, differing)}; expected was what this machine has: "
            f"{_listed(expected, differing)}.\n"
            "Results would be others, or none. Install the same versions everywhere, start scheduler and "
            "workers again, and repeat the same command."
        )


def _listed(found: dict[str, str], names: list[str]) -> str:
    return ", ".join(f"{name} {found.get(name, 'none')}" for name in names)


def itself(value: Any) -> Any:
    """Return the argument: a task that keeps data on a cluster."""
    return value


def is_dask_worker() -> bool:
    """Whether this thread does a task of a Dask worker."""
    return _dask_task() is not None


def still_wanted() -> Callable[..., bool] | None:
    """Return a function that says whether anybody still waits for this Dask worker's task; None elsewhere.

    A task that was called off runs on, and would keep the worker from others; it has to see by itself.
    """
    task = _dask_task()
    if task is None:
        return None
    tasks, key = task

    def wanted(*_: object) -> bool:
        state = tasks.get(key)
        return state is None or state.state != "cancelled"

    return wanted


def _dask_task() -> tuple[dict[Any, Any], Any] | None:
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        worker = get_worker()
        return worker.state.tasks, worker.get_current_task()
    except (ValueError, KeyError):  # no worker, or a thread of it that does no task
        return None


@functools.cache
def leave_with(master: int) -> None:
    """End this process, whatever it does, once it is no longer a child of another: nobody is left to work for.

    Parameters
    ----------
    master
        Number of the process that started this one.
    """

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
