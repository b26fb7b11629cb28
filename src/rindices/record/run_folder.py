"""The folder of a run: the names of its files, whether it holds this run or another, and who may write to it.

`run.toml` identifies a run by its settings, versions and device; it is there from the beginning, so that an interrupted
run can be told from another one. `summary.json` records how far it got, and is the last to say "done". Until then, the
journal and the log of the process show how far the run is, and how well its models agree so far.
"""

import contextlib
import errno
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError, safe_open

from rindices.files import check_writable, may_be_alive, write_text
from rindices.problems import InputError, Message, Problem, Remedy, counted, listed
from rindices.record.documents import (
    DONE,
    FAILED,
    MORE,
    SETTINGS,
    SUMMARY,
    UNFINISHED,
    Plain,
    RunSettings,
    Summary,
    read_settings,
    read_summary,
    write_summary,
)

MODEL, PICTURE, REPORT = "model.safetensors", "r_indices.png", "report.html"
R_INDICES, PATTERNS, SELECTION = "r_indices.csv", "patterns.csv", "selection.csv"
Z_SCORES, VARIABLES, PEOPLE, TRUTH = "z_scores.csv", "variables.csv", "people.csv", "truth.csv"
JOURNAL, ANALYSIS, BIDS, FIGURES, BRAIN, VOXELWISE = "journal", "analysis", "bids", "figures", "brain", "voxelwise"
TRAINED = "trained"  # every model of a finished run, so that more can be added
RESULTS = (MODEL, R_INDICES, PICTURE, PATTERNS, SELECTION, Z_SCORES, VARIABLES, PEOPLE)  # of every finished run
# All that a run leaves in its folder; anything else there belongs to the user.
OURS = frozenset(
    {*RESULTS, REPORT, TRUTH, ANALYSIS, BIDS, FIGURES, BRAIN, VOXELWISE, SUMMARY, SETTINGS, JOURNAL, TRAINED}
)


def check_free(out: Path) -> None:
    """Refuse, before any work is done, a folder that is not writable or that holds other files."""
    # Files with names of results, such as a table people.csv, may be replaced only if there is a run in the folder.
    ours = OURS if any((out / name).exists() for name in (SETTINGS, SUMMARY, JOURNAL)) else frozenset[str]()
    strangers = [path.name for path in out.glob("*") if path.name not in ours and not is_half_written(path)]
    if strangers:
        raise InputError(
            f"The folder {out} already contains other files: {listed(sorted(strangers))}.\nChoose another folder with ",
            Remedy("out"),
            ".",
        )
    check_writable(out / SUMMARY)


def run_around(path: Path) -> Path | None:
    """Return the run folder that reserves this path for its own results, or None."""
    path = path.resolve()
    ours = (folder for folder in path.parents if path.relative_to(folder).parts[0] in OURS)
    return next((one for one in ours if any((one / name).is_file() for name in (SETTINGS, SUMMARY))), None)


def is_half_written(path: Path) -> bool:
    """Return whether a file was left behind by a process that was killed."""
    return path.name.startswith(".") and path.name.endswith(".partial")


_CHUNKS = "*.safetensors"  # of the journal, and of the models that are kept
# Must be the same to continue a run, for bitwise identical results; a finished run is the same without them.
_PLACE = ("versions", "device")


def status_of(out: Path) -> str | None:
    """Return the status of the run in a folder, or None if there is no run."""
    try:
        return str(json.loads((out / SUMMARY).read_text(encoding="utf-8"))["status"])
    except FileNotFoundError:
        return UNFINISHED if (out / SETTINGS).is_file() else None
    except (OSError, ValueError, KeyError, TypeError):
        return UNFINISHED


def is_complete(out: Path, settings: RunSettings) -> bool:
    """Return whether the folder holds this very run, finished; another run is refused with the differences.

    A run that is to be extended is not complete. A finished run with missing results is refused, and these are named.
    """
    status = status_of(out)
    if status is None:
        return False
    more = more_of(out, settings)
    if status == DONE and (out / JOURNAL).exists():  # it was killed just before removing its journal
        with contextlib.suppress(InputError, OSError), locked(out):
            keep_trained(out)
    if status != DONE or more:
        return False
    lost = [name for name in RESULTS if not (out / name).is_file()]
    if lost:
        raise InputError(
            f"The run in {out} is finished, but {counted(len(lost), 'of its results is', 'of its results are')} "
            f"missing: {listed(lost, len(RESULTS))}.\n"
            "To recreate the results, run the command again with ",
            Remedy("overwrite", True),
            ".",
        )
    return True


def more_of(out: Path, settings: RunSettings) -> dict[str, str]:
    """Return the settings by which a run is extended, with old and new values; empty if the run is the same.

    Patterns or repetitions can be added to a finished run whose models are there, and to a run that has not begun to
    train. Any other run is refused with the differences.
    """
    status = status_of(out)
    replace_it = Message("replace the run with ", Remedy("overwrite", True), ".")
    if not (out / SETTINGS).is_file():
        raise InputError(
            f"The run in {out} has no run.toml, so it cannot be resumed.\nTo start again, ",
            replace_it,
        )
    changes = read_settings(out / SETTINGS).changes(settings)
    grown = {key for key, values in changes.items() if key[1] in MORE and _is_more(*values)}
    others = {key for key in changes if grown or status != DONE or key[0] not in _PLACE}
    begun, kept = (any((out / folder).glob(_CHUNKS)) for folder in (JOURNAL, TRAINED))
    said = {key[1]: "{} before, {} now".format(*map(shown_setting, changes[key])) for key in sorted(others)}
    if others == grown and (begun or kept if status == DONE else not begun):
        return said
    if said:
        gone = "\nIts models are missing, so it cannot be extended." if others == grown and status == DONE else ""
        lines = "".join(f"\n  {name}: {change}" for name, change in said.items())
        raise InputError(
            what := f"The folder {out} contains a different run:{lines}{gone}",
            "\nRun the original command again to resume that run, choose another folder with ",
            Remedy("out"),
            ", or ",
            replace_it,
            problems=[Problem(what)],  # a page offers none of these
        )
    return {}


def _is_more(before: Plain, now: Plain) -> bool:
    """Return whether all that was requested before is requested again, and more."""
    if isinstance(before, list) and isinstance(now, list):
        return {*before} < {*now}
    return isinstance(before, int) and isinstance(now, int) and before < now


def shown_setting(value: object) -> str:
    """Return the value of a setting as written in a sentence.

    Examples
    --------
    >>> shown_setting(None), shown_setting([]), shown_setting(["age", "sex"])
    ('not given', 'none', 'age, sex')
    """
    text = "not given" if value in (None, "") else listed(value, 4) or "none" if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextlib.contextmanager
def held(out: Path, settings: RunSettings, *, overwrite: bool = False) -> Iterator[bool]:
    """Lock a run folder for this process; yield whether an earlier run is resumed or extended.

    With `overwrite`, any existing run is removed first.
    """
    with locked(out):
        goes_on = status_of(out) is not None and not overwrite
        more = more_of(out, settings) if goes_on else {}
        (out / SUMMARY).unlink(missing_ok=True)  # first: it must not say "done" of a run that is only half there
        for path in [*out.glob("*")]:
            keep = path.name == JOURNAL or (goes_on and path.name in (SETTINGS, TRAINED))
            if not keep and (path.name in OURS or is_half_written(path)):
                remove = shutil.rmtree if path.is_dir() and not path.is_symlink() else Path.unlink
                remove(path)
        for path in [*(out / JOURNAL).glob("*")]:
            if path.name != "lock" and (overwrite or is_half_written(path)):
                path.unlink(missing_ok=True)
        if more or not goes_on:
            write_text(out / SETTINGS, settings.text())
        write_summary(out, Summary(status=UNFINISHED))
        yield goes_on


# Of file systems that cannot lock files, such as some shared ones on clusters: these runs are not protected.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run folder for this process; the system releases the lock however the process ends."""
    journal = folder / JOURNAL
    journal.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(journal / "lock"), journal / "holder.txt"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        who = holder.read_text(encoding="utf-8", errors="replace") if holder.is_file() else "unknown"
        raise InputError(
            f"Another process ({who}) is already using {folder}.\n"
            "Wait for it to finish, stop it, or choose another folder with ",
            Remedy("out"),
            ".\nIf that process is no longer running, for example because its machine was switched off, delete "
            f"{journal / 'lock'}.",
        ) from None
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", errno.ENOSYS) not in _WITHOUT_LOCKS:
            raise
    try:
        with contextlib.suppress(OSError):
            write_text(holder, f"{os.getpid()} on {platform.node()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):  # Windows does not remove a folder while a file in it is open
            journal.rmdir()


def worker_of(folder: Path) -> int | None:
    """Return the id of the process on this machine that is working in a run folder, or None."""
    holder = folder / JOURNAL / "holder.txt"
    text = holder.read_text(encoding="utf-8", errors="replace") if holder.is_file() else ""
    match = re.match(r"(\d{1,9}) on (.*), since", text)
    if match is None or match[2] != platform.node() or not may_be_alive(int(match[1])):
        return None
    try:
        FileLock(folder / JOURNAL / "lock").acquire(timeout=0).lock.release()
    except (OSError, NotImplementedError):  # it is held, or locks are not supported
        return int(match[1])
    return None  # the id belongs to another process by now


def keep_trained(out: Path) -> None:
    """Keep the models of a finished run, and remove its journal."""
    (out / TRAINED).mkdir(exist_ok=True)
    for path in (out / JOURNAL).glob(_CHUNKS):
        path.replace(out / TRAINED / path.name)
    shutil.rmtree(out / JOURNAL, ignore_errors=True)


def discard(out: Path) -> None:
    """Remove a run that never began."""
    shutil.rmtree(out / JOURNAL, ignore_errors=True)
    for name in (SETTINGS, SUMMARY):
        (out / name).unlink(missing_ok=True)
    if not any(out.iterdir()):
        out.rmdir()


_MOST_PATIENTS = 400  # for the agreement shown during training
_LAST_EVENTS = 15
_LOG = 200_000  # bytes at the end of a log that are read


class Event(BaseModel):
    """A line that `rindices fit` logs, as far as it is read here."""

    event: str
    time: datetime = datetime.min
    stage: str = ""
    done: int = 0
    total: int = 0


class AgreementSoFar(NamedTuple):
    """Agreement of the repetitions trained so far, for one number of patterns."""

    n_patterns: int
    n_models: int
    value: float | None


class Progress(NamedTuple):
    """Progress of a training run."""

    state: str  # running, done, failed, unfinished or refused
    stage: str = ""
    share: float = 0.0
    rate: float | None = None  # steps per second
    left: float | None = None  # seconds
    agreed: tuple[AgreementSoFar, ...] = ()
    said: str = ""  # why it failed or was refused; for a finished run, why a later one in its folder was


def log_of(folder: Path) -> Path:
    """Return the path of the log of a watched training run, which is next to the run folder."""
    return folder.with_name(f"{folder.name}.training.log")


def progress_of(folder: Path, *, running: bool) -> Progress:
    """Return the progress of a training run; `running` states whether a process is working on it."""
    events, said = _logged(log_of(folder))
    if not running:
        status = status_of(folder)
        failure = read_summary(folder).failure if status == FAILED else ""
        as_asked = any(one.event in ("done", "stopped") for one in events)
        refused = any(one.event == "error" for one in events)  # other output may be warnings
        if status == DONE and not as_asked:  # the log is of another run, unless this one is newer
            as_asked = not refused or log_of(folder).stat().st_mtime < (folder / SUMMARY).stat().st_mtime
        said = "" if as_asked else failure or said
        return Progress(status or ("refused" if refused and said else UNFINISHED), said=said)
    steps = [one for one in events if one.event == "progress"]
    agreed = _agreement_so_far(folder)
    if not steps:
        return Progress("running", "Reading the table and loading JAX", agreed=agreed)
    stage = [one for one in steps if one.stage == steps[-1].stage]
    first, last = (stage[1:] or stage)[-_LAST_EVENTS:][0], stage[-1]  # the first steps include compilation
    done, total = last.done, max(1, last.total)
    seconds = (last.time - first.time).total_seconds()
    rate = (done - first.done) / seconds if seconds > 0 and done > first.done else None
    finishing = done >= total
    left = None if rate is None or finishing else (total - done) / rate
    return Progress(
        "running", "Evaluating and writing the results" if finishing else last.stage, done / total, rate, left, agreed
    )


def _logged(path: Path) -> tuple[list[Event], str]:
    """Return the events of a log, and other output of the process."""
    if not path.is_file():
        return [], ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LOG))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
    events, others = list[Event](), list[str]()
    for line in lines:
        try:
            events.append(Event.model_validate_json(line))
        except ValidationError:
            others.append(line)
    return events, "\n".join(others[-20:])


def _agreement_so_far(folder: Path) -> tuple[AgreementSoFar, ...]:
    """Return the agreement of the models trained so far, by number of patterns."""
    paths = [path for of in (TRAINED, JOURNAL) for path in sorted((folder / of).glob("data-*.safetensors"))]
    return _agreement_of(tuple((str(path), path.stat().st_mtime_ns) for path in paths if path.exists()))


@lru_cache(maxsize=8)
def _agreement_of(names: tuple[tuple[str, int], ...]) -> tuple[AgreementSoFar, ...]:
    from rindices.judging import agreement_and_misfit as agreement  # loads SciPy

    r_indices: dict[tuple[int, float], list[np.ndarray]] = {}
    for name, _ in names:
        with contextlib.suppress(OSError, SafetensorError, KeyError, ValueError, TypeError):
            with safe_open(name, framework="numpy") as file:
                members = json.loads(file.metadata()["chunk"])
                models = file.get_tensor("r_indices")[-1, :, :_MOST_PATIENTS]
            for (point, *_), model in zip(members, models, strict=True):
                r_indices.setdefault((int(point[0]), float(point[1])), []).append(model.astype(float))
    rows = []
    for (n_patterns, _), models in sorted(r_indices.items()):
        stack = np.stack(models)
        sound = stack[[not fault for fault in agreement.faults(stack)]]
        value = agreement.mean_agreement(agreement.pairwise(sound)).pattern_agreement if len(sound) > 1 else None
        rows.append(AgreementSoFar(n_patterns, len(models), value))
    return tuple(rows)
