"""The authors' published checkpoints as ordinary models.

A checkpoint holds options and, under whole numbers, one or more states of training (entries). An entry has the four
networks in torch's layout, in which the weights of a layer are outputs × inputs, and ours inputs × outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rindices.core import networks
from rindices.core.networks import Parameters
from rindices.errors import InputError, listed, shown
from rindices.interop.pickle_machine import ArchiveError, plain
from rindices.interop.torch_archive import read_archive
from rindices.preprocessing import ControlScaler, Covariate, CovariateResidualizer, Preprocessing

__all__ = ["OfficialModel", "read_checkpoint"]

# Where the authors keep each layer: the network, and the layer in it.
_NETWORKS = Parameters("netMapping", "netDecomposer", "netReconstruction", "netDiscriminator")
_LAYERS = Parameters(
    transformation={
        "encode1": "model.0",
        "encode2": "model.2",
        "severity": "model.4.add_noise.0",
        "decode1": "model.5",
        "decode2": "model.7",
    },
    decomposer={"patterns": "model.1"},
    reconstructor={"layer1": "model.0", "layer2": "model.2", "output": "model.4"},
    discriminator={"layer1": "model.0", "layer2": "model.2", "output": "model.4"},
)
_MOST_REGIONS, _MOST_PATTERNS = 20_000, 100
_LARGEST_NUMBER = 1e30  # its square and sums of it are finite, and single precision can hold it
_LARGEST_OPTION = 2**63  # Python refuses to write whole numbers of very many digits


@dataclass(frozen=True, eq=False)
class OfficialModel:
    """One entry of a checkpoint.

    Attributes
    ----------
    entry
        Its number.
    entries
        The numbers of all entries of the file.
    options
        Numbers and texts that stand beside the entries, such as ``npattern``, ``nROI`` and ``lr``.
    models
        The networks: one model, so that all arrays have a leading axis of length 1.
    scaler
        Mean and standard deviation of the corrected controls.
    covariate_minimum, covariate_maximum
        Range of each covariate in training.
    effects
        Covariates × regions: the difference between a region at the covariate's maximum and at its minimum.
    phi
        Cholesky factor of the severities' correlation, row by row; None where it is not stored.
    n_updates
        Updates made in training, if the file says so.
    """

    entry: int
    entries: tuple[int, ...]
    options: dict[str, int | float | str | bool]
    models: Parameters
    scaler: ControlScaler
    covariate_minimum: np.ndarray
    covariate_maximum: np.ndarray
    effects: np.ndarray
    phi: np.ndarray | None
    n_updates: int | None

    @property
    def n_patterns(self) -> int:
        """Number of patterns."""
        return self.models.transformation["severity"]["weight"].shape[1]

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.scaler.mean)

    @property
    def typical(self) -> np.ndarray:
        """Regions of an average control whose covariates are in the middle of their ranges."""
        return self.scaler.mean + self.effects.sum(axis=0) / 2

    def preprocessing(self, covariates: tuple[str, ...]) -> Preprocessing:
        """Return correction and scaling in our form, with names for the covariates."""
        if not covariates:
            return Preprocessing(None, self.scaler)
        # The authors bring covariates to 0 … 1 and remove their effects down to 0, the least value in training.
        slopes = self.effects / (self.covariate_maximum - self.covariate_minimum)[:, None]
        known = tuple(Covariate(name) for name in covariates)
        return Preprocessing(CovariateResidualizer(known, self.covariate_minimum, slopes), self.scaler)

    def correlation(self) -> np.ndarray | None:
        """Return the correlation of the severities' copula that `phi` stands for."""
        if self.phi is None:
            return None
        factor = np.zeros((self.n_patterns, self.n_patterns))
        factor[np.tril_indices(self.n_patterns)] = self.phi
        factor /= np.linalg.norm(factor, axis=1, keepdims=True)
        return factor @ factor.T


def read_checkpoint(path: str | Path, entry: int | None = None) -> OfficialModel:
    """Read one entry of a checkpoint of the authors' package; nothing in the file is run.

    Parameters
    ----------
    path
        The checkpoint, a ``.pt`` or ``.pth`` file.
    entry
        Number of the entry; it may be left out if there is only one.

    Raises
    ------
    ArchiveError
        If the file is no such checkpoint, is damaged, or is made to do harm.
    InputError
        If the entry is not there, or not named where there are several.
    """
    content = read_archive(path)
    try:
        return _read(content, entry)
    except ArchiveError as error:
        raise ArchiveError(
            f"{path} is not a checkpoint of the authors' package: {error}.\nGive a model file of that package."
        ) from error


def _read(content: Any, wanted: int | None) -> OfficialModel:
    if not isinstance(content, dict):
        raise ArchiveError(f"it holds a {type(content).__name__} instead of a dictionary")
    entries = {number: state for number, state in content.items() if type(number) is int}
    chosen = _choose(entries, wanted)
    state = entries[chosen]
    _need_dictionary(state, f"entry {chosen}")
    scaler = _scaler(content)
    n_regions = len(scaler.mean)
    models = _models(state, n_regions)
    minimum, maximum, effects = _correction(content, n_regions)
    options = _options(content)
    model = OfficialModel(
        entry=chosen,
        entries=tuple(sorted(entries)),
        options=options,
        models=models,
        scaler=scaler,
        covariate_minimum=minimum,
        covariate_maximum=maximum,
        effects=effects,
        phi=_phi(state.get("phi", content.get("phi")), models.transformation["severity"]["weight"].shape[1]),
        n_updates=_updates(state.get("optimizer_M")),
    )
    for name, found in (("npattern", model.n_patterns), ("nROI", n_regions)):
        if options.get(name, found) != found:
            raise ArchiveError(f"its option {name} says {shown(options[name])}, but its arrays say {found}")
    return model


def _options(content: dict) -> dict[str, int | float | str | bool]:
    options = {}
    for name, value in content.items():
        if type(name) is not str:
            continue
        if type(value) is int and abs(value) >= _LARGEST_OPTION:
            raise ArchiveError(f"its option {plain(name)} is a number of {value.bit_length()} bits")
        if type(value) in (int, float, bool) or (type(value) is str and len(value) < 1000):
            options[plain(name)] = value
    return options


def _choose(entries: Mapping[int, Any], wanted: int | None) -> int:
    if not entries:
        raise ArchiveError("it has no numbered entry with networks")
    known = listed(sorted(entries), limit=20)
    if wanted is None and len(entries) > 1:
        raise InputError(f"The checkpoint has {len(entries)} entries: {known}.\nChoose one with --entry.")
    chosen = next(iter(entries)) if wanted is None else wanted
    if chosen not in entries:
        raise InputError(f"The checkpoint has no entry {chosen}.\nIt has: {known}.")
    return chosen


def _need_dictionary(value: Any, name: str) -> dict:
    if not isinstance(value, dict):
        raise ArchiveError(f"its {name} should be a dictionary, found a {type(value).__name__}")
    return value


def _array(of: Any, name: str, shape: tuple[int | None, ...], where: str) -> np.ndarray:
    """Return a finite array from a dictionary; None in `shape` stands for any length."""
    array = _need_dictionary(of, where).get(name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ArchiveError(f"its {where} should have an array of numbers {name!r}, found a {type(array).__name__}")
    fits = array.ndim == len(shape) and all(
        want in (None, found) for want, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        expected = " × ".join("any" if length is None else str(length) for length in shape)
        raise ArchiveError(f"its {where} has {name!r} with shape {array.shape}, expected {expected}")
    if not np.isfinite(array).all():
        raise ArchiveError(f"its {where} has numbers in {name!r} that are not finite")
    if array.size and float(np.abs(array).max()) > _LARGEST_NUMBER:
        raise ArchiveError(f"its {where} has numbers in {name!r} beyond {_LARGEST_NUMBER:g}")
    return array


def _scaler(content: dict) -> ControlScaler:
    where = "normalization_variables"
    mean = _array(content.get(where), "cn_mean", (None,), where).astype(np.float64)
    if not 1 <= len(mean) <= _MOST_REGIONS:
        raise ArchiveError(f"it has {len(mean)} regions")
    sd = _array(content.get(where), "cn_std", mean.shape, where).astype(np.float64)
    if not (sd > 0).all():
        raise ArchiveError("its standard deviations of controls should be above 0")
    return ControlScaler(mean, sd)


def _correction(content: dict, n_regions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return least and greatest value of each covariate, and effects; all empty where nothing was corrected."""
    where = "correction_variables"
    variables = content.get(where)
    if variables is None or variables == {}:
        return np.zeros(0), np.zeros(0), np.zeros((0, n_regions))
    least = _array(variables, "min_cov", (None,), where).astype(np.float64)
    greatest = _array(variables, "max_cov", least.shape, where).astype(np.float64)
    effects = _array(variables, "beta", (len(least), n_regions), where).astype(np.float64)
    if not (greatest > least).all():
        raise ArchiveError("a covariate of its correction has no range")
    return least, greatest, effects


def _models(state: dict, n_regions: int) -> Parameters:
    """Return the networks as one model; the shapes have to be those that our networks have."""
    decomposer = _array(state.get("netDecomposer"), "model.1.bias", (None,), "netDecomposer")
    n_patterns = len(decomposer) // n_regions
    if not 1 <= n_patterns <= _MOST_PATTERNS:
        raise ArchiveError(f"it has {n_patterns} patterns")
    shapes = networks.shapes(networks.sizes(n_regions, n_patterns))
    read = []
    for source, places, layers in zip(_NETWORKS, _LAYERS, shapes, strict=True):
        expected = {f"{places[layer]}.{kind}" for layer, kinds in layers.items() for kind in kinds}
        stored = _need_dictionary(state.get(source), source)
        if unknown := sorted(plain(name) for name in stored if name not in expected):
            raise ArchiveError(f"its {source} has the unknown array {unknown[0]!r}")
        read.append({layer: _layer(stored, source, places[layer], shape) for layer, shape in layers.items()})
    return Parameters(*read)


def _layer(stored: dict, source: str, place: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return a layer of ours ``(inputs, *outputs)`` from torch's ``(outputs, inputs)``, with an axis for models."""
    n_inputs, *outputs = shapes["weight"]
    n_outputs = int(np.prod(outputs))
    weight = _array(stored, f"{place}.weight", (n_outputs, n_inputs), source)
    layer = {"weight": weight.T.reshape(1, *shapes["weight"])}
    if "bias" in shapes:
        layer["bias"] = _array(stored, f"{place}.bias", (n_outputs,), source).reshape(1, *shapes["bias"])
    return {kind: np.ascontiguousarray(array, np.float32) for kind, array in layer.items()}


def _phi(phi: Any, n_patterns: int) -> np.ndarray | None:
    if phi is None:
        return None
    values = _array({"phi": phi}, "phi", (n_patterns * (n_patterns + 1) // 2,), "entry").astype(np.float64)
    rows = np.tril_indices(n_patterns)[0]
    if not (np.bincount(rows, values**2, n_patterns) > 0).all():
        raise ArchiveError("its phi has a row of zeros")
    return values


def _updates(optimiser: Any) -> int | None:
    """Return how many updates the optimiser of the networks has counted."""
    states = optimiser.get("state") if isinstance(optimiser, dict) else None
    first = states.get(0) if isinstance(states, dict) else None
    step = first.get("step") if isinstance(first, dict) else None
    if isinstance(step, np.ndarray) and step.size == 1 and np.isfinite(step).all():
        step = int(step.ravel()[0])  # newer torch counts in a tensor
    return step if type(step) is int and 0 < step < 2**53 else None
