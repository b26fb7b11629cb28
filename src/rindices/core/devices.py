"""Where training runs: all accelerators, or all cores; and where compiled programs are kept."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import jax


def prepare() -> None:
    """Make every core a device and keep compiled programs, where the user has not decided otherwise.

    Small networks do not profit from several cores each; one model a core does. Both settings only work before JAX is
    first used, so a process that already computes with JAX simply keeps what it has.
    """
    if jax.config.jax_num_cpu_devices < 1 and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        try:
            jax.config.update("jax_num_cpu_devices", n_cores())
        except RuntimeError:
            pass
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(_cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def n_cores() -> int:
    """Cores that this process may use (fewer than the machine has under SLURM or in a container)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cache_folder() -> Path:
    # Compiled for one processor, a program may not run on another that shares the home folder.
    try:
        processor = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        processor = "\n".join(line for line in processor.splitlines() if line.startswith(("flags", "Features", "model name")))
    except OSError:
        processor = platform.processor()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "rindices" / hashlib.sha256(f"{platform.machine()} {processor}".encode()).hexdigest()[:12]
