"""Where training runs: all accelerators, or all cores; and where compiled programs are kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax


def prepare() -> None:
    """Make every core a device and keep compiled programs, where the user has not decided otherwise.

    Small networks do not profit from several cores each; one model a core does. Both settings only work before JAX is
    first used, so a process that already computes with JAX simply keeps what it has.
    """
    settings: Any = jax.config
    forced = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if settings.jax_num_cpu_devices < 1 and not forced:
        with contextlib.suppress(RuntimeError):  # JAX already computes
            jax.config.update("jax_num_cpu_devices", n_cores())
    if settings.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(_cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def n_cores() -> int:
    """Cores that this process may use (fewer than the machine has under SLURM or in a container)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cache_folder() -> Path:
    # Compiled for one processor, a program may not run on another that shares the home folder.
    processor = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        processor = "\n".join(line for line in lines if line.startswith(("flags", "Features", "model name")))
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "rindices" / hashlib.sha256(f"{platform.machine()} {processor}".encode()).hexdigest()[:12]
