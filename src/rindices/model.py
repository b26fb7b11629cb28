"""The file of a fitted model, and the header that describes it.

A model is one safetensors file: arrays, the version of the format, and a header in JSON with settings and fitted
attributes, which is read without JAX. Reading a file never runs code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, JsonValue, PositiveInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

import rindices
from rindices.files import checksum, read_arrays, write_arrays
from rindices.presets import Correction, Preset
from rindices.problems import InputError
from rindices.schema import STRICT, Contract, first_problem
from rindices.settings import State

if TYPE_CHECKING:
    from rindices.core.networks import Parameters
    from rindices.preprocessing import Preprocessing
    from rindices.scoring.consensus_and_person import Familiar
    from rindices.scoring.severity_and_reference import SeverityScale

AgreementIndex = Literal["pattern_agreement", "dimension_correlation", "difference_correlation"]

FORMAT = "rindices-model"
FORMAT_VERSION = 4  # versions from before the first release are not read


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EstimatorParameters:
    """Settings of the estimator, except those that say where it was trained."""

    correction: Correction | None
    inference: Literal["consensus", "medoid"]
    latent: Literal["independent", "correlated"] | None
    max_steps: int | None
    n_patterns: PositiveInt
    n_repetitions: int
    orthogonality: float | None
    output: Literal["r_indices", "severities"]
    preset: Preset
    random_state: int | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Header:
    """The header of a model file, with fields in the order in which they are written.

    Most attributes are those of `rindices.SurrealGAN`, without the underscore at the end.

    Attributes
    ----------
    named
        Whether the regions had names in training.
    package_version
        The version of rindices that wrote the file.
    preprocessing
        Description of everything estimated in controls, written and checked by `rindices.preprocessing.pipeline`.
    """

    members: tuple[int, ...] = Field(min_length=1)
    step: int
    seed: int | None
    parameters: EstimatorParameters
    contract: Contract
    agreement: dict[AgreementIndex, float | None] = Field(min_length=3)  # None: unknown, as JSON has no NaN
    verdict: tuple[State | None, str]  # None: was not judged
    n_supported: PositiveInt | None = None  # patterns that held-out people support; None: unknown
    left_out: tuple[tuple[int, str], ...]
    correlation: tuple[tuple[float, ...], ...] | None
    named: bool
    package_version: str
    preprocessing: dict[str, JsonValue]

    def __post_init__(self) -> None:
        n_patterns = self.parameters.n_patterns
        if self.correlation is not None and [len(row) for row in self.correlation] != [n_patterns] * n_patterns:
            raise ValueError(f"the correlation matrix should be {n_patterns} x {n_patterns}")


def plain(value: Any) -> JsonValue:
    """Convert values for which JSON has no type: settings to dictionaries of fields, NumPy scalars to Python numbers.

    Examples
    --------
    >>> json.dumps(Correction(smooth=("age",)), default=plain)
    '{"smooth": ["age"], "interactions": [], "proportion": null, "site": null}'
    """
    if not is_dataclass(value):
        return value.item()
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: part._asdict() if hasattr(part, "_asdict") else part for name, part in parts.items()}


class ModelFileError(InputError):
    """A model file that cannot be used; the message says why and what to do."""


def write_model(
    path: str | Path,
    header: Header,
    models: Parameters,
    preprocessing: Preprocessing,
    scale: SeverityScale,
    familiar: Familiar | None,
    maps: Mapping[str, np.ndarray],
) -> Path:
    """Write a model to another file beside `path`, then rename it, so that `path` is never half-written."""
    from rindices.preprocessing.pipeline import arrays_of

    path, text = Path(path), json.dumps(header, ensure_ascii=False, allow_nan=False, default=plain)
    texts = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "header": text}
    arrays = {
        f"{network}.{layer}.{kind}": np.asarray(array, np.float32)
        for network, layers in models._asdict().items()
        for layer, weights in (layers or {}).items()
        for kind, array in weights.items()
    }
    arrays |= arrays_of(preprocessing) | {f"scale.{name}": of for name, of in vars(scale).items() if of is not None}
    if familiar is not None:
        known = vars(familiar.population) | {"usual": familiar.usual, "surprise": familiar.surprise}
        arrays |= {f"familiar.{name}": of for name, of in known.items()}
    arrays |= {f"maps.{name}": np.asarray(of, np.float64) for name, of in maps.items()}
    write_arrays(path, texts, text, arrays)
    return path


class Contents(NamedTuple):
    """The contents of a model file; `maps` are the effects of patterns on regions in the training sample.

    Imported models, and those with few controls, have no `familiar`.
    """

    header: Header
    models: Parameters
    preprocessing: Preprocessing
    scale: SeverityScale
    familiar: Familiar | None
    maps: dict[str, np.ndarray]


def read_model(path: str | Path) -> Contents:
    """Read and check a model file."""
    header, arrays = _read(Path(path))
    with complete(path):
        return _unflatten(arrays, header)


def read_header(path: str | Path) -> Header:
    """Read and check a model file, but return only its header; this does not load JAX."""
    return _read(Path(path))[0]


def fills_gaps(path: str | Path) -> bool:
    """Return whether a model can impute missing regions; imported ones cannot."""
    return "familiar.precision" in _read(Path(path))[1]


@contextmanager
def complete(path: str | Path) -> Iterator[None]:
    """Convert errors in the contents of a file into a `ModelFileError`."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
        # A forged file may contain text of any length.
        raise ModelFileError(f"{path} is not a complete model: {reason:.400}.\nFit the model again.") from error


def _read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    if not path.is_file():
        inside = f", for example {path / 'model.safetensors'}" if (path / "model.safetensors").is_file() else ""
        raise ModelFileError(
            f"No model file was found at {path}.\nProvide the model.safetensors file from a finished run{inside}."
        )
    try:
        metadata, arrays = read_arrays(path)
    except PermissionError as error:
        raise ModelFileError(f"{path} cannot be read: permission denied.\nAsk the file's owner for access.") from error
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read as a model: it is truncated, damaged or not a model file.\n"
            "Copy it again, or provide the model.safetensors file from a finished run. A checkpoint from the authors' "
            "package can be converted with: rindices import-official."
        ) from error
    if metadata.get("format") != FORMAT or "header" not in metadata:
        raise ModelFileError(
            f"{path} is a safetensors file, but not a rindices model.\n"
            "Provide the model.safetensors file from a finished run."
        )
    version = metadata.get("format_version", "")
    if version != str(FORMAT_VERSION):
        earlier = version.isdecimal() and int(version) < FORMAT_VERSION
        raise ModelFileError(
            f"{path} has format version {version or 'unknown'}, but rindices {rindices.__version__} "
            f"reads version {FORMAT_VERSION}.\n"
            + ("Fit or import the model again." if earlier else "Install a newer version of rindices.")
        )
    if metadata.get("sha256") != checksum(metadata["header"], arrays):
        raise ModelFileError(
            f"{path} was altered or damaged: its contents do not match its checksum.\n"
            "Copy it again from the source, or refit the model."
        )
    with complete(path):
        return TypeAdapter(Header).validate_json(metadata["header"]), arrays


def _unflatten(arrays: dict[str, np.ndarray], header: Header) -> Contents:
    """Build the contents from arrays, which must have the shapes that the header implies."""
    # Imported here, so that a header can be read without loading JAX.
    from rindices.core import networks
    from rindices.preprocessing.missing import Population
    from rindices.preprocessing.pipeline import restore
    from rindices.scoring.consensus_and_person import Familiar
    from rindices.scoring.severity_and_reference import SHAPES, SeverityScale

    read, n_models = partial(_checked, arrays), len(header.members)
    sizes = networks.sizes(len(header.contract.features), header.parameters.n_patterns)
    is_linear = any(name.startswith("linear.") for name in arrays)
    is_trained = not is_linear or any(name.startswith("transformation.") for name in arrays)
    models = {
        network: {
            layer: {kind: read(f"{network}.{layer}.{kind}", (n_models, *shape)) for kind, shape in shapes.items()}
            for layer, shapes in layers.items()
        }
        for network, layers in networks.shapes(sizes, networks=is_trained, linear=is_linear)._asdict().items()
        if layers is not None
    }
    preprocessing = restore(header.preprocessing, read, sizes.regions)
    named = {spec.name for spec in header.contract.covariates}
    if missing := [name for name in preprocessing.covariates if name not in named]:
        raise ValueError(f"the correction needs {missing[0]!r:.80}, which is not one of the covariates")
    stored = {name: shape for name, shape in SHAPES.items() if name == "curves" or f"scale.{name}" in arrays}
    scale = {name: read(f"scale.{name}", (sizes.patterns, *shape)) for name, shape in stored.items()}
    familiar, regions = None, (sizes.regions,)
    if any(name.startswith("familiar.") for name in arrays):
        population = Population(read("familiar.mean", regions), read("familiar.precision", regions * 2))
        np.linalg.cholesky(population.precision)  # fails unless this is a precision matrix
        familiar = Familiar(
            population,
            read("familiar.usual", (2,)),
            read("familiar.surprise", (1,)) if "familiar.surprise" in arrays else np.ones(1),
        )
    maps = {name: read(name, (sizes.patterns, sizes.regions)) for name in arrays if name.startswith("maps.")}
    return Contents(
        header,
        networks.Parameters(**models),
        preprocessing,
        SeverityScale(**scale),
        familiar,
        {name.removeprefix("maps."): array for name, array in maps.items()},
    )


def _checked(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = arrays[name]
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(
            f"array {name} should contain finite floating-point numbers of shape {shape}, "
            f"but got {array.dtype} of shape {array.shape}"
        )
    return array
