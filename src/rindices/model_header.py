"""What a fitted estimator says about itself in a model file: settings and fitted attributes, in plain JSON types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rindices.agreement import Agreement
from rindices.cohort.contract import Contract
from rindices.config import Correction, get_preset, preset_from_json, preset_to_json

_AS_THEY_ARE = ("members", "step", "seed")  # fitted attributes
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


def parameters_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the estimator."""
    parameters = header["parameters"] | {"preset": preset_from_json(header["parameters"]["preset"])}
    if parameters.get("correction") is not None:  # the first format had none
        parameters["correction"] = Correction.from_json(parameters["correction"])
    return parameters


def fitted_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes that are no arrays of the networks or the preprocessing."""
    contract, correlation = Contract.from_json(header["contract"]), header.get("correlation")
    agreement = {name: np.nan if value is None else float(value) for name, value in header["agreement"].items()}
    named = {"feature_names_in_": np.array(contract.features, dtype=object)} if header["named"] else {}
    return {f"{name}_": header[name] for name in _AS_THEY_ARE} | {
        "contract_": contract,
        "agreement_": Agreement(**agreement),
        "reliability_": _reliability(header.get("reliability")),
        "left_out_": {int(member): str(why) for member, why in header["left_out"]},
        "correlation_": None if correlation is None else np.asarray(correlation, float),
        "n_features_in_": len(contract.features),
        **named,
    }


def _reliability(found: Any) -> tuple[bool | None, str]:
    """Return whether the patterns were found reliable, and why; files of earlier versions do not say."""
    if found is None:
        return None, ""
    reliable, reason = found
    if reliable not in (None, True, False):
        raise ValueError(f"reliability should be true, false or unknown, found {reliable!r}")
    return reliable, str(reason)
