"""The devices that training runs on (accelerators or cores), and the cache of compiled programs."""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.extend.backend import clear_backends
from joblib import cpu_count

from rindices.problems import InputError, counted

CACHE_WARNING = "Error (reading|writing) persistent compilation cache entry"  # JAX's warning
_SETTINGS: Any = jax.config


class Device(NamedTuple):
    """The devices that a process can train on."""

    platform: str  # "cpu", "gpu", ...
    kind: str  # the manufacturer's name for it
    number: int
    memory: int | None  # bytes per device, if it reports them


def prepare() -> None:
    """Let threads compute in parallel and cache compiled programs, unless the user has decided otherwise.

    Small networks do not benefit from several cores each, but training one model per core does. For a call to compute
    in its own thread, instead of queueing behind others, an option has to be set before JAX is first used; a process
    that has already used JAX keeps its option, and trains on one core.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # Allocate memory as needed: claiming most of a GPU's at once takes two seconds, and leaves nothing for others.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    folder = _cache_folder() if _SETTINGS.jax_compilation_cache_dir is None else None
    if folder is not None and folder.is_absolute() and _is_private(folder.parent) and _is_private(folder):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        # Another process may be writing the entry, or may have been killed while writing: the program is recompiled.
        warnings.filterwarnings("ignore", CACHE_WARNING, UserWarning)


def describe() -> Device:
    """Return the devices that this process trains on.

    Raises
    ------
    InputError
        If ``JAX_PLATFORMS`` requests a platform that is not available.
    """
    try:
        available = jax.devices()
    except (RuntimeError, AssertionError) as error:
        asked = str(_SETTINGS.jax_platforms or "")
        if not asked:
            raise
        jax.config.update("jax_platforms", "")
        there = jax.devices()[0].platform
        clear_backends()  # otherwise, later calls would use a platform that was not requested
        jax.config.update("jax_platforms", asked)
        raise InputError(
            f"JAX_PLATFORMS={asked} requests a device that JAX cannot find; JAX found {there} instead.\n"
            f"Set JAX_PLATFORMS={there}, or unset it. To use NVIDIA GPUs, run: pip install 'rindices[cuda]'."
        ) from error
    statistics = available[0].memory_stats() or {}
    return Device(available[0].platform, available[0].device_kind, len(available), statistics.get("bytes_limit"))


def in_words() -> str:
    """Initialise the devices that this process trains on and describe them: ``2 cores``, ``1 x NVIDIA H200``."""
    device = describe()
    jax.random.key(0).block_until_ready()
    return f"{device.number} x {device.kind}" if device.platform != "cpu" else counted(n_cores(), "core")


def peak_memory() -> int | None:
    """Return the peak memory use of the first device so far, in bytes, if it is reported."""
    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


def n_cores() -> int:
    """Return the number of cores that this process may use (under SLURM or in a container, fewer than there are)."""
    return cpu_count()


def _is_private(folder: Path) -> bool:
    """Make a folder private; return False if others could still put a program there, which this process would run.

    If others could write to the folder until now, its contents may be theirs and are removed.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "nt":  # user folders are private on Windows
            return True
        status = folder.lstat()
        above = [parent.stat().st_mode for parent in folder.resolve().parents]
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or any(mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH for mode in above)  # anybody may rename it
        ):
            return False
        folder.chmod(0o700)
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError:
        return False
    return True


def _cache_folder() -> Path:
    # A program compiled for one processor may not run on another that shares the home folder.
    processor = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        processor = "\n".join(line for line in lines if line.startswith(("flags", "Features", "model name")))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # stays relative without a home folder
    return Path(home) / "rindices" / hashlib.sha256(f"{platform.machine()} {processor}".encode()).hexdigest()[:12]
