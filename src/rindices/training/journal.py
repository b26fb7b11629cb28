"""The journal of a run in progress, on disk: its plan, finished chunks, and unfinished chunks.

Every file is written under another name, flushed to disk and renamed, and carries a checksum: after a crash at any
moment, the folder contains only complete files of this run, from which training resumes.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from rindices.core.networks import Parameters
from rindices.files import checksum, read_arrays, write_arrays, write_text
from rindices.problems import InputError
from rindices.training.chunks import Chunk, Member, Point, Trajectory, Unfinished

_PAUSE = 0.5  # seconds before a failed write is retried


class FileKeeper(NamedTuple):
    """Keeps an unfinished chunk in a file; can be sent to other processes, and saves nothing without the folder."""

    path: Path
    owner: dict[str, str]

    def load(self) -> Unfinished | None:
        """Return what was saved, or None."""
        arrays = _read(self.path, self.owner)
        if arrays is None:
            return None
        weights = {step: _parameters(arrays, step) for step in arrays["with_weights"].tolist()}
        return Unfinished(_trajectory(arrays, weights), _below("states", arrays))

    def save(self, unfinished: Unfinished) -> None:
        """Save an unfinished chunk; a full disk is no reason to stop training that can still succeed."""
        if self.path.parent.is_dir():
            arrays = _arrays(unfinished.trajectory) | {f"states{n}": a for n, a in unfinished.states.items()}
            with contextlib.suppress(OSError, InputError):  # the latter: the file is no longer writable
                write_arrays(self.path, self.owner, _signed(self.owner), arrays)


class Journal:
    """Keeps finished chunks as files in a folder.

    Parameters
    ----------
    folder
        Folder of these files.
    fingerprint
        Identifies this run; files of other runs are not read.
    trained
        Folder with the chunks of a finished run that this run extends.
    """

    def __init__(self, folder: Path, fingerprint: str, trained: Path | None = None) -> None:
        self.folder = Path(folder).absolute()  # workers may run in another folder
        self.fingerprint = fingerprint
        self.damaged: list[str] = []  # names of files that could not be read and were trained again
        self._read: dict[Chunk, Trajectory] = {}
        files = [] if trained is None else sorted(trained.absolute().glob("*.safetensors"))
        self._earlier: dict[Chunk, Path] = {}
        for path in files:
            chunk = _chunk_of(path, fingerprint)
            if chunk is None:
                self.damaged.append(path.name)
                path.unlink()
            else:
                self._earlier[chunk] = path

    def earlier(self) -> list[Chunk]:
        """Return the chunks of the finished run; they stay the same whatever happens to this run."""
        return list(self._earlier)

    def __contains__(self, chunk: Chunk) -> bool:
        if chunk in self._read:
            return True
        path = self._path(chunk)
        if chunk in self._earlier and not path.exists():
            path = self._earlier[chunk]
        arrays = _read(path, _owner(self.fingerprint, chunk))
        if arrays is not None:
            self._read[chunk] = _trajectory(arrays, _WeightsOnDisk(path, arrays["with_weights"].tolist()))
        elif path.exists():
            self.damaged.append(path.name)
            path.unlink()
        return arrays is not None

    def __getitem__(self, chunk: Chunk) -> Trajectory:
        """Return a finished chunk; its weights stay on disk until they are needed."""
        if chunk not in self:
            raise FileNotFoundError(f"{self._path(chunk)} was removed or damaged during the run.")
        return self._read[chunk]

    def __setitem__(self, chunk: Chunk, trajectory: Trajectory) -> None:
        """Keep a finished chunk; a failed write is retried once, because network drives fail occasionally."""
        path, owner, arrays = self._path(chunk), _owner(self.fingerprint, chunk), _arrays(trajectory)
        try:
            write_arrays(path, owner, _signed(owner), arrays)
        except OSError:
            time.sleep(_PAUSE)
            write_arrays(path, owner, _signed(owner), arrays)
        self._read[chunk] = trajectory._replace(weights=_WeightsOnDisk(path, list(trajectory.weights)))
        self.keeper(chunk).path.unlink(missing_ok=True)

    def has_begun(self) -> bool:
        """Return whether there is anything that another run could resume from."""
        return any(path.suffix in (".safetensors", ".unfinished") for path in self.folder.glob("*"))

    def keeper(self, chunk: Chunk) -> FileKeeper:
        """Return the storage of an unfinished chunk."""
        return FileKeeper(self._path(chunk).with_suffix(".unfinished"), _owner(self.fingerprint, chunk))

    def chunk_size(self, propose: Callable[[], int]) -> int:
        """Return the number of models per chunk as first planned: another would not give bitwise identical results."""
        path = self.folder / "plan.json"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            planned = json.loads(path.read_text(encoding="utf-8"))
            if planned["run"] == self.fingerprint:
                return int(planned["models_per_chunk"])
        number = propose()
        write_text(path, json.dumps({"run": self.fingerprint, "models_per_chunk": number}))
        return number

    def _path(self, chunk: Chunk) -> Path:
        return self.folder / f"{chunk.name}.safetensors"


class _WeightsOnDisk(Mapping[int, Parameters]):
    def __init__(self, path: Path, steps: list[int]) -> None:
        self._path, self._steps = path, steps
        self._last: tuple[int, Parameters] | None = None  # many models of a chunk are requested one after the other

    def __getitem__(self, step: int) -> Parameters:
        if step not in self._steps:
            raise KeyError(step)
        if self._last is None or self._last[0] != step:
            with safe_open(self._path, framework="numpy") as file:
                names = [name for name in file.keys() if name.startswith(f"weights.{step}.")]  # noqa: SIM118
                self._last = step, _parameters({name: file.get_tensor(name) for name in names}, step)
        return self._last[1]

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _arrays(trajectory: Trajectory) -> dict[str, np.ndarray]:
    return {
        "steps": trajectory.steps,
        "r_indices": trajectory.r_indices,
        "correlations": trajectory.correlations,
        "with_weights": np.array(list(trajectory.weights), int),
        **{f"losses.{name}": values for name, values in trajectory.losses.items()},
        **{
            f"weights.{step}.{network}.{layer}.{kind}": array
            for step, parameters in trajectory.weights.items()
            for network, layers in parameters._asdict().items()
            for layer, kinds in (layers or {}).items()
            for kind, array in kinds.items()
        },
    }


def _trajectory(arrays: dict[str, np.ndarray], weights: Mapping[int, Parameters]) -> Trajectory:
    return Trajectory(arrays["steps"], arrays["r_indices"], _below("losses.", arrays), arrays["correlations"], weights)


def _parameters(arrays: dict[str, np.ndarray], step: int) -> Parameters:
    networks: dict[str, dict[str, dict[str, np.ndarray]]] = {name: {} for name in Parameters._fields}
    for name, array in _below(f"weights.{step}.", arrays).items():
        network, layer, kind = name.split(".")
        networks[network].setdefault(layer, {})[kind] = array
    return Parameters(**networks | {"linear": networks["linear"] or None})


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _owner(fingerprint: str, chunk: Chunk) -> dict[str, str]:
    return {"run": fingerprint, "chunk": json.dumps([member.stored for member in chunk.members])}


def _chunk_of(path: Path, fingerprint: str) -> Chunk | None:
    """Return the chunk in a file of this run, or None."""
    with contextlib.suppress(OSError, SafetensorError, KeyError, ValueError, TypeError):
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata()
        if texts["run"] == fingerprint:
            members = json.loads(texts["chunk"])
            return Chunk(tuple(Member(Point(*point), number, *longer) for point, number, _, *longer in members))
    return None


def _signed(owner: dict[str, str]) -> str:
    return json.dumps(owner, sort_keys=True)


def _read(path: Path, owner: dict[str, str]) -> dict[str, np.ndarray] | None:
    """Return the arrays of a file, or None if it is missing, damaged or of another run."""
    with contextlib.suppress(OSError):
        texts, arrays = read_arrays(path)
        if texts == owner | {"sha256": checksum(_signed(owner), arrays)}:
            return arrays
    return None
