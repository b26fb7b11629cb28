"""The folder of a run: who may write to it, what it says about itself, and when it is complete.

`run.toml` says what a run is; it is there from the beginning, so that a run that was interrupted can be told from
another one. `summary.json` says how far it got, and is the last file to say "done".
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import shutil
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rindices.errors import InputError, counted, listed
from rindices.files import atomic_file, check_writable

SUMMARY, SETTINGS, JOURNAL, REPORT = "summary.json", "run.toml", "journal", "report.html"
DONE, FAILED, UNFINISHED = "done", "failed", "unfinished"
RESULTS = (  # of every finished run
    "model.safetensors",
    "r_indices.csv",
    "r_indices.png",
    "patterns.csv",
    "selection.csv",
    "z_scores.csv",
    "variables.csv",
    "people.csv",
)
# All that a run leaves in its folder; whatever else is there belongs to the user.
_OURS = frozenset(
    {*RESULTS, REPORT, "truth.csv", "analysis", "bids", "figures", "brain", "voxelwise", SUMMARY, SETTINGS, JOURNAL}
)
# What makes results comparable to the bit only while a run goes on; a finished run is the same run without it.
_PLACE = ("versions", "device")
_GIVE_SETTINGS = "Give the run.toml that a run left in its folder."
_NOT_COMPARED = {("table", "path")}  # the same table may be found elsewhere; its checksum is compared


def check_free(out: Path) -> None:
    """Refuse, before any work is done, a folder that cannot be written or that holds something else."""
    if out.is_file():
        raise InputError(f"{out} is a file, but a folder is needed.\nChoose another folder with --out.")
    # Only where there is a run may files be replaced that have the names of its own: a table people.csv, for example.
    ours = _OURS if any((out / name).exists() for name in (SETTINGS, SUMMARY, JOURNAL)) else frozenset[str]()
    strangers = [path.name for path in _contents(out) if path.name not in ours and not _half_written(path)]
    if strangers:
        raise InputError(
            f"The folder {out} already holds other files: {listed(sorted(strangers))}.\n"
            "Choose another folder with --out."
        )
    check_writable(out / SUMMARY)


def run_around(path: Path) -> Path | None:
    """Return the run folder that keeps a file of this name for its own results; None where there is none."""
    path = path.resolve()
    for folder in path.parents:
        ours = path.relative_to(folder).parts[0] in _OURS
        if ours and any((folder / name).is_file() for name in (SETTINGS, SUMMARY)):
            return folder
    return None


def _contents(out: Path) -> list[Path]:
    return list(out.iterdir()) if out.is_dir() else []


def _half_written(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".partial")


def read_settings(path: Path) -> dict[str, Any]:
    """Read a `run.toml`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.\n{_GIVE_SETTINGS}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.\n{_GIVE_SETTINGS}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        where = re.search(r"line \d+", str(error))
        found = f" ({where[0]})" if where else ""
        raise InputError(f"{path} cannot be read as the settings of a run{found}.\n{_GIVE_SETTINGS}") from error


def status_of(out: Path) -> str | None:
    """Return how far the run in a folder got; None where there is none."""
    try:
        return str(json.loads((out / SUMMARY).read_text(encoding="utf-8"))["status"])
    except FileNotFoundError:
        return UNFINISHED if (out / SETTINGS).is_file() else None
    except (OSError, ValueError, KeyError, TypeError):
        return UNFINISHED


def is_complete(out: Path, settings: dict[str, dict[str, Any]]) -> bool:
    """Whether the folder holds this very run, finished; another run is refused with the differences.

    A finished run whose results are no longer all there is refused with their names.
    """
    if status_of(out) is None:
        return False
    complete = status_of(out) == DONE
    _refuse_others(out, settings, ignore=_PLACE if complete else ())
    if complete and (out / JOURNAL).exists():  # it was killed just before it would have removed its journal
        with contextlib.suppress(InputError, OSError), locked(out):
            discard(out, only_journal=True)
    missing = [name for name in RESULTS if complete and not (out / name).is_file()]
    if missing:
        raise InputError(
            f"The run in {out} is finished, but {counted(len(missing), 'of its results is', 'of its results are')} no "
            f"longer there: {listed(missing, len(RESULTS))}.\nMake it again: repeat the command with --overwrite."
        )
    return complete


def _refuse_others(out: Path, settings: dict[str, dict[str, Any]], ignore: tuple[str, ...]) -> None:
    if not (out / SETTINGS).is_file():
        raise InputError(f"The folder {out} holds a run without its run.toml.\nReplace it with --overwrite.")
    before, now = read_settings(out / SETTINGS), tomllib.loads(toml_text(settings))
    differences = []
    for section in sorted({*before, *now} - {"command", "plan", *ignore}):
        old, new = before.get(section, {}), now.get(section, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name) and (section, name) not in _NOT_COMPARED:
                differences.append(f"  {name}: {_shown(old.get(name))} then, {_shown(new.get(name))} now")
    if differences:
        raise InputError(
            f"The folder {out} holds another run:\n" + "\n".join(differences) + "\n"
            "Repeat its own command to go on with it, choose another folder with --out, or replace it with --overwrite."
        )


def _shown(value: Any) -> str:
    text = "not given" if value is None else listed(value, 4) or "none" if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def held(out: Path, settings: dict[str, dict[str, Any]], *, overwrite: bool = False) -> Iterator[bool]:
    """Hold a run folder for this process; gives whether an earlier run of the same settings goes on.

    With `overwrite`, whatever run is there is removed first.
    """
    with locked(out):
        goes_on = status_of(out) is not None and not overwrite
        if goes_on:
            _refuse_others(out, settings, ignore=())
            write_json(out / SUMMARY, {"status": UNFINISHED})  # it may have failed before
        else:
            (out / SUMMARY).unlink(missing_ok=True)  # first: it must not say "done" of what is only half there
        for path in _contents(out):
            keep = path.name == JOURNAL or (goes_on and path.name in (SETTINGS, SUMMARY))
            if not keep and (path.name in _OURS or _half_written(path)):
                _remove(path)
        _clear(out / JOURNAL, only_half_written=not overwrite)
        if not goes_on:
            write_text(out / SETTINGS, toml_text(settings))
            write_json(out / SUMMARY, {"status": UNFINISHED})
        yield goes_on


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process alone; the system gives it back however the process ends."""
    journal = folder / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(journal / "lock"), journal / "holder.json"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"Another process{_who(holder)} is at work in {folder}.\n"
            "Wait until it ends, stop it, or choose another folder with --out."
        ) from None
    try:
        me = {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        with contextlib.suppress(OSError), atomic_file(holder) as beside:
            beside.write_text(json.dumps(me), encoding="utf-8")
        yield
    finally:
        lock.release()


def _who(holder: Path) -> str:
    try:
        found: dict[str, Any] = json.loads(holder.read_text(encoding="utf-8"))
        return f" ({found['process']} on {found['host']}, since {found['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _clear(journal: Path, *, only_half_written: bool) -> None:
    for path in _contents(journal):
        if path.name != "lock" and (_half_written(path) or not only_half_written):
            path.unlink(missing_ok=True)


def discard(out: Path, *, only_journal: bool = False) -> None:
    """Remove a run that never began, or what a finished run no longer needs."""
    shutil.rmtree(out / JOURNAL, ignore_errors=True)
    if not only_journal:
        for name in (SETTINGS, SUMMARY):
            (out / name).unlink(missing_ok=True)
        if not _contents(out):
            out.rmdir()


def write_text(path: Path, text: str) -> None:
    """Write a text beside, then rename."""
    with atomic_file(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write JSON that every reader accepts: what is not a number becomes null."""
    write_text(path, json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: text names, lists, and null for what is not a number."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def toml_text(sections: dict[str, dict[str, Any]]) -> str:
    """Return tables of plain values as TOML; missing values become comments.

    Examples
    --------
    >>> print(toml_text({"training": {"seed": 0, "covariates": ["age"], "steps": None}}))
    [training]
    seed = 0
    covariates = ["age"]
    # steps: not given
    <BLANKLINE>
    """
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for name, value in values.items():
            # A TOML string, number, truth value or list of them is written as in JSON, but for one character.
            written = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
            written = written.replace("\x7f", r"\u007f")
            lines.append(f"# {name}: not given" if value is None else f"{name} = {written}")
        lines.append("")
    return "\n".join(lines)
