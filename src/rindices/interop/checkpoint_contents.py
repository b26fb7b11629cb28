"""The contents of a checkpoint of the authors' package.

It holds options and, under whole numbers, one or more training states (entries). An entry has the four networks in
torch's layout, in which the weights of a layer are outputs × inputs; ours are inputs × outputs.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from rindices.core import networks
from rindices.core.inference import reorder_patterns
from rindices.core.networks import Parameters
from rindices.interop.torch_archive import ArchiveError, read_archive
from rindices.preprocessing import ControlScaler, Covariate, CovariateResidualizer, Preprocessing
from rindices.problems import InputError, Remedy, counted, listed, one_line

# The authors' names for each network and for the layers in it.
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


class Published(NamedTuple):
    """A model that the authors published: its subject, and which patterns of the file they call r1, r2, and so on.

    It is recognised by its number of patterns and the range of its second covariate.
    """

    title: str
    covariate_range: tuple[float, float]
    order: tuple[int, ...]


PUBLISHED = (
    Published("two patterns of Alzheimer's disease", (59.76167, 90.06167), (0, 1)),
    Published("five patterns of brain ageing", (1031941.0, 2022055.38), (0, 4, 1, 2, 3)),
)


@dataclass(frozen=True, eq=False)
class OfficialModel:
    """One entry of a checkpoint.

    Attributes
    ----------
    entry
        Number of the entry in the file.
    models
        The networks: one model, so that all arrays have a leading axis of length 1.
    scaler
        Mean and standard deviation of the corrected controls.
    covariate_ranges
        Minimum and maximum of each covariate in training: covariates × 2.
    effects
        Covariates × regions: the difference between a region at the covariate's maximum and at its minimum.
    correlation
        Correlation of the severities' copula; None if it is not stored.
    n_updates
        Number of training updates, if it is stored.
    """

    entry: int
    models: Parameters
    scaler: ControlScaler
    covariate_ranges: np.ndarray
    effects: np.ndarray
    correlation: np.ndarray | None
    n_updates: int | None

    @property
    def n_patterns(self) -> int:
        """Number of patterns."""
        return networks.n_patterns(self.models)

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.scaler.mean)

    @property
    def published(self) -> Published | None:
        """The published model that it is, if any."""
        ranges = self.covariate_ranges
        candidates = [one for one in PUBLISHED if len(ranges) == 2 and len(one.order) == self.n_patterns]
        return next((one for one in candidates if np.allclose(ranges[1], one.covariate_range, rtol=1e-6)), None)

    def as_published(self) -> Self:
        """Return the model with its patterns in the order of the publication, if it is a published one."""
        order = np.array(self.published.order if self.published else range(self.n_patterns))
        correlation = None if self.correlation is None else self.correlation[np.ix_(order, order)]
        return replace(self, models=reorder_patterns(self.models, order), correlation=correlation)

    def preprocessing(self, covariates: tuple[str, ...]) -> Preprocessing:
        """Return correction and scaling in our form, with names for the covariates."""
        if not covariates:
            return Preprocessing(None, self.scaler)
        # The authors scale covariates to 0 … 1 and remove their effects down to 0, the smallest value in training.
        slopes = self.effects / np.diff(self.covariate_ranges)
        named = tuple(Covariate(name) for name in covariates)
        return Preprocessing(CovariateResidualizer(named, self.covariate_ranges[:, 0].copy(), slopes), self.scaler)


def read_checkpoint(path: str | Path, entry: int | None = None) -> OfficialModel:
    """Read one entry of a checkpoint of the authors' package; nothing in the file is run.

    Parameters
    ----------
    path
        The checkpoint, a ``.pt`` or ``.pth`` file.
    entry
        Number of the entry; may be omitted if there is only one.

    Raises
    ------
    ArchiveError
        If the file is not such a checkpoint, is damaged, or is malicious.
    InputError
        If the entry does not exist, or is not given although there are several.
    """
    content = read_archive(path)
    try:
        return _read(content, entry)
    except ArchiveError as error:
        raise ArchiveError(
            f"{path} is not a checkpoint from the authors' package: {error}.\nProvide a model file from that package."
        ) from error


def _read(content: Any, wanted: int | None) -> OfficialModel:
    if not isinstance(content, dict):
        raise ArchiveError(f"it contains a {type(content).__name__} instead of a dictionary")
    chosen = _choose([number for number in content if type(number) is int], wanted)
    state = content[chosen]
    if not isinstance(state, dict):
        raise ArchiveError(f"its entry {chosen} should be a dictionary, but it is a {type(state).__name__}")
    scaler = _scaler(content)
    models = _models(state, len(scaler.mean))
    ranges, effects = _correction(content, len(scaler.mean))
    return OfficialModel(
        entry=chosen,
        models=models,
        scaler=scaler,
        covariate_ranges=ranges,
        effects=effects,
        correlation=_correlation(state.get("phi", content.get("phi")), networks.n_patterns(models)),
        n_updates=_updates(state.get("optimizer_M")),
    )


def _choose(entries: list[int], wanted: int | None) -> int:
    if not entries:
        raise ArchiveError("it has no numbered entry that contains networks")
    chosen = entries[0] if wanted is None and len(entries) == 1 else wanted
    if chosen is None or chosen not in entries:
        raise InputError(
            f"The checkpoint has {counted(len(entries), 'entry', 'entries')}: {listed(sorted(entries), limit=20)}.\n"
            "Choose one with ",
            Remedy("entry"),
            ".",
        )
    return chosen


def _array(of: Any, name: str, shape: tuple[int | None, ...], where: str) -> np.ndarray:
    """Return a finite array from what should be a dictionary; None in `shape` stands for any length."""
    array = of.get(name) if isinstance(of, dict) else None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ArchiveError(
            f"its {where} should contain an array of numbers called {name!r}, but "
            f"{'there is none' if array is None else f'that entry has the type {type(array).__name__}'}"
        )
    if array.ndim != len(shape) or any(want not in (None, n) for want, n in zip(shape, array.shape, strict=True)):
        expected = " × ".join("any" if length is None else str(length) for length in shape)
        raise ArchiveError(f"in its {where}, the shape of {name!r} is {array.shape}, but {expected} was expected")
    if not (np.abs(array.astype(np.float64)) <= _LARGEST_NUMBER).all():
        raise ArchiveError(
            f"in its {where}, {name!r} contains numbers that are not finite or exceed {_LARGEST_NUMBER:g}"
        )
    return array.astype(np.float64)


def _scaler(content: dict) -> ControlScaler:
    where = "normalization_variables"
    mean = _array(content.get(where), "cn_mean", (None,), where)
    if not 1 <= len(mean) <= _MOST_REGIONS:
        raise ArchiveError(f"it has {len(mean):,} regions, but should have 1 to {_MOST_REGIONS:,}")
    sd = _array(content.get(where), "cn_std", mean.shape, where)
    if not (sd > 0).all():
        raise ArchiveError("its standard deviations in controls should all be above 0")
    return ControlScaler(mean, sd)


def _correction(content: dict, n_regions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of each covariate, and the effects; both empty if nothing was corrected."""
    where = "correction_variables"
    variables = content.get(where)
    if variables is None or variables == {}:
        return np.zeros((0, 2)), np.zeros((0, n_regions))
    least = _array(variables, "min_cov", (None,), where)
    greatest = _array(variables, "max_cov", least.shape, where)
    effects = _array(variables, "beta", (len(least), n_regions), where)
    if not (greatest > least).all():
        raise ArchiveError("one of its covariates has a maximum that is not above the minimum")
    return np.stack([least, greatest], axis=1), effects


def _models(state: dict, n_regions: int) -> Parameters:
    """Return the networks as one model; their shapes must be those of our networks."""
    n_patterns = len(_array(state.get("netDecomposer"), "model.1.bias", (None,), "netDecomposer")) // n_regions
    if not 1 <= n_patterns <= _MOST_PATTERNS:
        raise ArchiveError(f"it has {n_patterns:,} patterns, but should have 1 to {_MOST_PATTERNS}")
    shapes = networks.shapes(networks.sizes(n_regions, n_patterns))
    read = []
    for source, places, layers in list(zip(_NETWORKS, _LAYERS, shapes, strict=True))[:4]:  # there is no linear model
        expected = {f"{places[layer]}.{kind}" for layer, kinds in layers.items() for kind in kinds}
        stored: Any = state.get(source)
        read.append({layer: _layer(stored, source, places[layer], shape) for layer, shape in layers.items()})
        if unknown := sorted(one_line(name) for name in stored if name not in expected):
            raise ArchiveError(f"its {source} contains the unknown array {unknown[0]!r}")
    return Parameters(*read)


def _layer(stored: Any, source: str, place: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return a layer of ours ``(inputs, *outputs)`` from torch's ``(outputs, inputs)``, with an axis for models."""
    n_inputs, *outputs = shapes["weight"]
    n_outputs = int(np.prod(outputs))
    weight = _array(stored, f"{place}.weight", (n_outputs, n_inputs), source)
    layer = {"weight": weight.T.reshape(1, *shapes["weight"])}
    if "bias" in shapes:
        layer["bias"] = _array(stored, f"{place}.bias", (n_outputs,), source).reshape(1, *shapes["bias"])
    return {kind: np.ascontiguousarray(array, np.float32) for kind, array in layer.items()}


def _correlation(phi: Any, n_patterns: int) -> np.ndarray | None:
    """Return the correlation whose Cholesky factor is stored row by row in `phi`."""
    if phi is None:
        return None
    factor = np.zeros((n_patterns, n_patterns))
    factor[np.tril_indices(n_patterns)] = _array({"phi": phi}, "phi", (n_patterns * (n_patterns + 1) // 2,), "entry")
    lengths = np.linalg.norm(factor, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ArchiveError("its phi has a row of zeros")
    return (factor / lengths) @ (factor / lengths).T


def _updates(optimiser: Any) -> int | None:
    """Return the number of updates counted by the networks' optimiser; newer versions of torch count in a tensor."""
    match optimiser:
        case {"state": {0: {"step": int() | np.ndarray() as step}}} if np.size(step) == 1 and 0 < np.max(step) < 2**53:
            return int(np.max(step))
    return None
