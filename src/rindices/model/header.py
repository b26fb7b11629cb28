"""What a fitted estimator says about itself in a model file: settings and fitted attributes, in plain JSON types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from rindices.cohort.json_checks import known_numbers_from, numbers_from, texts_from
from rindices.judging.agreement import Agreement
from rindices.schema.contract import Contract
from rindices.settings import Correction, Preset, get_preset, preset_from_json, preset_to_json

# Fitted attributes that are stored as they are, and their kinds.
_AS_THEY_ARE: dict[str, Any] = {"members": list[int], "step": int, "seed": int | None}
_NOT_STORED = ("n_jobs", "models_per_chunk")  # where a model was trained is not part of it


def header_of(model: Any) -> dict[str, Any]:
    """Describe a fitted `SurrealGAN`."""
    parameters = model.get_params() | {"preset": preset_to_json(get_preset(model.preset)), "random_state": model.seed_}
    parameters["correction"] = None if model.correction is None else model.correction.to_json()
    agreement = model.agreement_._asdict()
    return {name: getattr(model, f"{name}_") for name in _AS_THEY_ARE} | {
        "parameters": {name: value for name, value in parameters.items() if name not in _NOT_STORED},
        "contract": model.contract_.to_json(),
        "agreement": {name: None if np.isnan(value) else value for name, value in agreement.items()},
        "reliability": list(getattr(model, "reliability_", (None, ""))),
        "left_out": [[member, why] for member, why in model.left_out_.items()],
        "correlation": None if model.correlation_ is None else model.correlation_.tolist(),
        "named": hasattr(model, "feature_names_in_"),
    }


def check_header(header: Mapping[str, Any]) -> None:
    """Refuse a header that does not describe a model; it is a ValueError, TypeError, KeyError or AttributeError."""
    texts_from([header["package_version"]], "package_version")
    parameters_of(header)
    fitted_of(header)


def parameters_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the estimator."""
    parameters = header["parameters"] | {"preset": _preset(header["parameters"]["preset"])}
    for name, kind in {"n_patterns": int, "n_repetitions": int, "random_state": int | None}.items():
        _check_kind(name, parameters[name], kind)
    if parameters.get("correction") is not None:  # the first format had none
        parameters["correction"] = Correction.from_json(parameters["correction"])
        correction = parameters["correction"]
        pairs = [name for pair in correction.interactions for name in pair]
        one = [name for name in (correction.proportion, correction.site) if name is not None]
        texts_from([*correction.smooth, *pairs, *one], "correction")
    return parameters


def fitted_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes that are no arrays of the networks or the preprocessing."""
    for name, kind in (_AS_THEY_ARE | {"named": bool}).items():
        _check_kind(name, header[name], kind)
    contract = Contract.from_json(header["contract"])
    agreement = dict(
        zip(header["agreement"], known_numbers_from([*header["agreement"].values()], "agreement"), strict=True)
    )
    named = {"feature_names_in_": np.array(contract.features, dtype=object)} if header["named"] else {}
    return {f"{name}_": header[name] for name in _AS_THEY_ARE} | {
        "contract_": contract,
        "agreement_": Agreement(**{name: np.nan if value is None else value for name, value in agreement.items()}),
        "reliability_": _reliability(header.get("reliability")),
        "left_out_": dict(_left_out(*one) for one in header["left_out"]),
        "correlation_": _correlation(header.get("correlation"), header["parameters"]["n_patterns"]),
        "n_features_in_": len(contract.features),
        **named,
    }


def _preset(data: Any) -> Preset:
    preset = preset_from_json(data)
    texts_from([preset.name], "preset")
    numbers_from([*preset.weights, *preset.rates], "preset")
    for part in (preset.training, preset.schedule):
        kinds = get_type_hints(type(part))
        for field in fields(part):
            _check_kind(f"preset: {field.name}", getattr(part, field.name), kinds[field.name])
    return preset


def _check_kind(name: str, value: Any, kind: Any) -> None:
    if not _is_of_kind(value, kind):
        raise ValueError(f"{name} should be {getattr(kind, '__name__', kind)}, found {value!r:.80}")


def _is_of_kind(value: Any, kind: Any) -> bool:
    """Tell whether a value of a JSON file is what an annotation says; truth values are no numbers."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return type(value) is str and value in inner
    if origin is UnionType:
        return any(_is_of_kind(value, one) for one in inner)
    if origin is list:
        return type(value) is list and all(_is_of_kind(one, inner[0]) for one in value)
    if origin is tuple:
        return type(value) is tuple and len(value) == len(inner) and all(map(_is_of_kind, value, inner))
    if kind is float:
        return type(value) in (int, float) and np.isfinite(value)
    return type(value) is (NoneType if kind is None else kind)


def _left_out(member: Any, why: Any) -> tuple[int, str]:
    _check_kind("left_out", member, int)
    return member, texts_from([why], "left_out")[0]


def _correlation(rows: Any, n_patterns: int) -> np.ndarray | None:
    if rows is None:
        return None
    matrix = np.array([numbers_from(row, "correlation") for row in rows])
    if matrix.shape != (n_patterns, n_patterns):
        raise ValueError(f"the correlation of {n_patterns} patterns should not have shape {matrix.shape}")
    return matrix


def _reliability(found: Any) -> tuple[bool | None, str]:
    """Return whether the patterns were found reliable, and why; files of earlier versions do not say."""
    if found is None:
        return None, ""
    reliable, reason = found
    _check_kind("reliability", reliable, bool | None)
    return reliable, texts_from([reason], "reliability")[0]
