"""What a model file says about itself: version of the format, settings and fitted attributes; read without JAX."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any, Literal

from pydantic import Field, JsonValue, PositiveInt, TypeAdapter
from pydantic.dataclasses import dataclass

from rindices.presets import Correction, Preset
from rindices.schema import STRICT, Contract
from rindices.settings import State

FORMAT = "rindices-model"
FORMAT_VERSION = 4  # those of before the first release are not read


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Parameters:
    """Settings of the estimator, but for those that say where it was trained."""

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
class StoredAgreement:
    """An `Agreement` with None for what is unknown, as JSON has no NaN."""

    pattern_agreement: float | None
    dimension_correlation: float | None
    difference_correlation: float | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Header:
    """What a model file says about itself, in the order in which it is written.

    Most attributes are those of `rindices.SurrealGAN`, without the underscore at the end.

    Attributes
    ----------
    named
        Whether the regions had names in training.
    package_version
        The version of rindices that wrote the file.
    preprocessing
        What `rindices.preprocessing.pipeline` says about what was estimated in controls, and checks again.
    """

    members: tuple[int, ...] = Field(min_length=1)
    step: int
    seed: int | None
    parameters: Parameters
    contract: Contract
    agreement: StoredAgreement
    verdict: tuple[State | None, str]  # None: was not judged
    left_out: tuple[tuple[int, str], ...]
    correlation: tuple[tuple[float, ...], ...] | None
    named: bool
    package_version: str
    preprocessing: dict[str, JsonValue]

    def __post_init__(self) -> None:
        n_patterns = self.parameters.n_patterns
        if self.correlation is not None and [len(row) for row in self.correlation] != [n_patterns] * n_patterns:
            raise ValueError(f"the correlation should be one of {n_patterns} patterns")

    def to_text(self) -> str:
        """Return the header as JSON."""
        return json.dumps(self, ensure_ascii=False, allow_nan=False, default=plain)

    @classmethod
    def from_text(cls, text: str) -> Header:
        """Return the header of a file; what is none raises one of the errors that `complete` knows."""
        return TypeAdapter(cls).validate_json(text)


def plain(value: Any) -> JsonValue:
    """Return what JSON has no word for: settings by the names of their fields, and NumPy's numbers as Python's.

    Examples
    --------
    >>> json.dumps(Correction(smooth=("age",)), default=plain)
    '{"smooth": ["age"], "interactions": [], "proportion": null, "site": null}'
    """
    if not is_dataclass(value):
        return value.item()
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: part._asdict() if hasattr(part, "_asdict") else part for name, part in parts.items()}
