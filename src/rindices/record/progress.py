"""How far a training is, by its journal and by what its process logs; and how well its models agree so far."""

import contextlib
import json
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError, safe_open

from rindices.judging import agreement
from rindices.record.documents import DONE, FAILED, read_summary
from rindices.record.run_folder import JOURNAL, TRAINED, status_of

_MOST_PATIENTS = 400  # in an agreement on the way
_LAST_EVENTS = 15
_LOG = 200_000  # bytes at the end of a log that are read


class Event(BaseModel):
    """A line that `rindices fit` logs, as far as it is read here."""

    event: str
    time: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0


class AgreementSoFar(NamedTuple):
    """How well the repetitions that are trained so far agree about a number of patterns."""

    n_patterns: int
    n_models: int
    value: float | None


class Progress(NamedTuple):
    """How far a training is."""

    state: str  # running, done, failed, unfinished or refused
    stage: str = ""
    share: float = 0.0
    rate: float | None = None  # steps a second
    left: float | None = None  # seconds
    agreed: tuple[AgreementSoFar, ...] = ()
    said: str = ""


def log_of(folder: Path) -> Path:
    """Return where a training that is watched writes what it says: beside the folder of its run."""
    return folder.with_name(f"{folder.name}.training.log")


def progress_of(folder: Path, *, running: bool) -> Progress:
    """Return how far a training is; whoever asks says whether a process is at work on it."""
    events, said = _logged(log_of(folder))
    if not running:
        status = status_of(folder)
        failure = read_summary(folder).failure if status == FAILED else ""
        as_asked = status == DONE or any(one.event == "stopped" for one in events)
        return Progress(status or "refused", said="" if as_asked else failure or said)
    steps = [one for one in events if one.event == "progress"]
    agreed = _agreement_so_far(folder)
    if not steps:
        return Progress("running", "Reading the table and loading the engine", agreed=agreed)
    stage = [one for one in steps if one.stage == steps[-1].stage][-_LAST_EVENTS:]
    first, last = stage[0], stage[-1]
    done, total = last.done, max(1, last.total)
    seconds = (_when(last) - _when(first)).total_seconds()
    rate = (done - first.done) / seconds if seconds > 0 and done > first.done else None
    finishing = done >= total
    left = None if rate is None or finishing else (total - done) / rate
    return Progress("running", "Judging and writing" if finishing else last.stage, done / total, rate, left, agreed)


def _when(event: Event) -> datetime:
    return datetime.strptime(event.time, "%Y-%m-%dT%H:%M:%S%z")


def _logged(path: Path) -> tuple[list[Event], str]:
    """Return the events of a log, and what else the process said."""
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
    """Return the agreement of the models that are trained so far, by number of patterns."""
    paths = [path for of in (TRAINED, JOURNAL) for path in sorted((folder / of).glob("data-*.safetensors"))]
    names = tuple((str(path), path.stat().st_mtime_ns) for path in paths if path.exists())
    return _agreement_of(names)


@lru_cache(maxsize=8)
def _agreement_of(names: tuple[tuple[str, int], ...]) -> tuple[AgreementSoFar, ...]:
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
