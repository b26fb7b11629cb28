"""A run on disk while it goes on: its plan, finished chunks, and chunks on their way.

Every file is written beside, flushed to disk and renamed, and carries a checksum: after a sudden end at any moment the
folder holds whole files of this run only, and training goes on from them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rindices.core.networks import Parameters
from rindices.errors import InputError
from rindices.files import atomic_file
from rindices.training.chunks import Chunk, Trajectory, Unfinished

_TRIES, _PAUSE = 3, 0.5  # a network drive may fail once; seconds between tries


class Journal:
    """Finished chunks in files of a folder.

    Parameters
    ----------
    folder
        Where they are.
    fingerprint
        Tells this run from others; files of others are not read.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = Path(folder).absolute()  # workers may be elsewhere
        self.fingerprint = fingerprint
        self.damaged: list[str] = []  # names of files that could not be read and were trained again
        self._read: dict[Chunk, Trajectory] = {}

    def __contains__(self, chunk: Chunk) -> bool:
        if chunk in self._read:
            return True
        path = self._path(chunk)
        arrays = _read(path, self.fingerprint, chunk, all_but="weights")
        if arrays is None:
            if path.exists():
                self.damaged.append(path.name)
                path.unlink()
            return False
        weights = _WeightsOnDisk(path, arrays["with_weights"].tolist())
        self._read[chunk] = _trajectory(arrays, weights)
        return True

    def get(self, chunk: Chunk) -> Trajectory:
        """Return a finished chunk; its weights stay on disk until they are asked for."""
        if chunk not in self:
            raise FileNotFoundError(f"{self._path(chunk)} was removed or damaged while the run went on.")
        return self._read[chunk]

    def put(self, chunk: Chunk, trajectory: Trajectory) -> None:
        """Keep a finished chunk."""
        for tries_left in reversed(range(_TRIES)):
            try:
                _write(self._path(chunk), self.fingerprint, chunk, _arrays(trajectory))
                break
            except OSError:
                if not tries_left:
                    raise
                time.sleep(_PAUSE)
        self._read[chunk] = trajectory._replace(weights=_WeightsOnDisk(self._path(chunk), list(trajectory.weights)))
        self.keeper(chunk).path.unlink(missing_ok=True)

    def has_begun(self) -> bool:
        """Whether there is anything that another run could go on from."""
        return any(path.suffix in (".safetensors", ".unfinished") for path in self.folder.glob("*"))

    def keeper(self, chunk: Chunk) -> FileKeeper:
        """Return a place for a chunk on its way."""
        return FileKeeper(self._path(chunk).with_suffix(".unfinished"), self.fingerprint, chunk)

    def plan(self, propose: Callable[[], int]) -> int:
        """Return the number of models in a chunk as it was planned at first: another would not give the same bits."""
        path = self.folder / "plan.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["run"] == self.fingerprint:
                return int(found["models_per_chunk"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        number = propose()
        with atomic_file(path) as beside:
            beside.write_text(json.dumps({"run": self.fingerprint, "models_per_chunk": number}), encoding="utf-8")
        return number

    def _path(self, chunk: Chunk) -> Path:
        return self.folder / f"{chunk.name}.safetensors"


class FileKeeper:
    """Keeps a chunk on its way in a file; goes along to other processes, and does nothing where the folder is not."""

    def __init__(self, path: Path, fingerprint: str, chunk: Chunk) -> None:
        self.path, self.fingerprint, self.chunk = path, fingerprint, chunk

    def load(self) -> Unfinished | None:
        """Return what was left, or None."""
        arrays = _read(self.path, self.fingerprint, self.chunk)
        if arrays is None:
            return None
        weights = {
            step: _parameters({n.removeprefix(f"weights.{step}."): a for n, a in arrays.items()})
            for step in arrays["with_weights"].tolist()
        }
        states = {n.removeprefix("states"): a for n, a in arrays.items() if n.startswith("states")}
        return Unfinished(_trajectory(arrays, weights), states)

    def save(self, unfinished: Unfinished) -> None:
        """Leave something; a full disk is no reason to stop what can still end well."""
        if self.path.parent.is_dir():
            arrays = _arrays(unfinished.trajectory) | {f"states{n}": a for n, a in unfinished.states.items()}
            with contextlib.suppress(OSError, InputError):  # the latter: no longer writable
                _write(self.path, self.fingerprint, self.chunk, arrays)


class _WeightsOnDisk(Mapping[int, Parameters]):
    def __init__(self, path: Path, steps: list[int]) -> None:
        self._path, self._steps = path, steps

    def __getitem__(self, step: int) -> Parameters:
        prefix = f"weights.{step}."
        with safe_open(self._path, framework="numpy") as file:
            arrays = {n.removeprefix(prefix): file.get_tensor(n) for n in file.keys() if n.startswith(prefix)}  # noqa: SIM118
        if not arrays:
            raise KeyError(step)
        return _parameters(arrays)

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _arrays(trajectory: Trajectory) -> dict[str, np.ndarray]:
    arrays = {name: getattr(trajectory, name) for name in ("steps", "r_indices", "correlations")}
    arrays |= {"with_weights": np.array(list(trajectory.weights), int)}
    arrays |= {f"losses.{name}": values for name, values in trajectory.losses.items()}
    for step, parameters in trajectory.weights.items():
        for network, layers in parameters._asdict().items():
            for layer, kinds in layers.items():
                arrays |= {f"weights.{step}.{network}.{layer}.{kind}": array for kind, array in kinds.items()}
    return arrays


def _trajectory(arrays: dict[str, np.ndarray], weights: Mapping[int, Parameters]) -> Trajectory:
    losses = {n.removeprefix("losses."): array for n, array in arrays.items() if n.startswith("losses.")}
    return Trajectory(arrays["steps"], arrays["r_indices"], losses, arrays["correlations"], weights)


def _parameters(arrays: dict[str, np.ndarray]) -> Parameters:
    networks: dict[str, dict[str, dict[str, np.ndarray]]] = {name: {} for name in Parameters._fields}
    for name, array in arrays.items():
        network, _, rest = name.partition(".")
        if network in networks:
            layer, _, kind = rest.partition(".")
            networks[network].setdefault(layer, {})[kind] = array
    return Parameters(**networks)


def _write(path: Path, fingerprint: str, chunk: Chunk, arrays: dict[str, np.ndarray]) -> None:
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    owner = {"run": fingerprint, "chunk": repr(chunk)}
    with atomic_file(path) as beside:
        beside.write_bytes(save(arrays, owner | {"sha256": _digest(owner, arrays)}))


def _read(path: Path, fingerprint: str, chunk: Chunk, all_but: str | None = None) -> dict[str, np.ndarray] | None:
    """Return the arrays of a file, or None where it is missing, damaged or of another run."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, OSError, ValueError, TypeError):
        return None
    owner = {"run": fingerprint, "chunk": repr(chunk)}
    if metadata != owner | {"sha256": _digest(owner, arrays)}:
        return None
    return arrays if all_but is None else {n: array for n, array in arrays.items() if not n.startswith(f"{all_but}.")}


def _digest(owner: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(owner, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
