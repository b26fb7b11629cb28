"""A fitted `Preprocessing` as names in JSON and arrays, and back with checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import JsonValue, TypeAdapter
from pydantic.dataclasses import dataclass

from rindices.preprocessing.covariates import Covariate, CovariateResidualizer, count_columns
from rindices.preprocessing.pipeline import Preprocessing
from rindices.preprocessing.scaling import ControlScaler, HeadSize
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer
from rindices.schema.contract import STRICT

Read = Callable[[str, tuple[int, ...]], np.ndarray]  # an array by its name, which has to have this shape


@dataclass(frozen=True, config=STRICT)
class _Described:
    """What `describe` says; an effect is a name with its categories or knots."""

    covariates: tuple[tuple[str, tuple[str, ...] | None, tuple[float, ...] | None], ...]
    interactions: tuple[tuple[str, str], ...]
    head_size: tuple[str, float] | None
    site: tuple[str, tuple[str, ...]] | None


def describe(preprocessing: Preprocessing) -> dict[str, JsonValue]:
    """Return names, categories and knots in plain JSON types."""
    residualizer, site = preprocessing.residualizer, preprocessing.harmonizer
    head = preprocessing.head_size
    return {
        "covariates": []
        if residualizer is None
        else [[c.name, _list(c.categories), _list(c.knots)] for c in residualizer.covariates],
        "interactions": [] if residualizer is None else [list(pair) for pair in residualizer.interactions],
        "head_size": None if head is None else [head.name, head.mean],
        "site": None if site is None else [site.name, list(site.sites)],
    }


def _list(values: tuple | None) -> list | None:
    return None if values is None else list(values)


def arrays_of(preprocessing: Preprocessing) -> dict[str, np.ndarray]:
    """Return all arrays by name."""
    arrays = {"scaler.mean": preprocessing.scaler.mean, "scaler.sd": preprocessing.scaler.sd}
    residualizers = {"residualizer": preprocessing.residualizer}
    if (site := preprocessing.harmonizer) is not None:
        arrays |= {f"site.{name}": getattr(site, name) for name in ("mean", "sd", "offsets", "scales")}
        residualizers["site.kept"] = site.kept
    for prefix, fitted in residualizers.items():
        if fitted is not None:
            arrays |= {f"{prefix}.centre": fitted.centre, f"{prefix}.effects": fitted.effects}
    return arrays


def restore(described: Mapping[str, JsonValue], read: Read, n_regions: int) -> Preprocessing:
    """Return what `describe` and `arrays_of` made; anything else is a ValueError or KeyError."""
    known = TypeAdapter(_Described).validate_json(json.dumps(described))
    covariates, pairs = tuple(_covariate(*one) for one in known.covariates), known.interactions
    _different([covariate.name for covariate in covariates], "covariate")
    n_columns = count_columns(covariates, pairs)

    def residualizer(prefix: str) -> CovariateResidualizer | None:
        if not covariates:
            return None
        centre, effects = read(f"{prefix}.centre", (n_columns,)), read(f"{prefix}.effects", (n_columns, n_regions))
        return CovariateResidualizer(covariates, centre, effects, pairs)

    head_size = harmonizer = None
    if known.head_size is not None:
        name, mean = known.head_size
        head_size = HeadSize(name, _positive("head size", mean))
    if known.site is not None:
        harmonizer = _harmonizer(*known.site, read, n_regions, residualizer("site.kept"))
    scaler = ControlScaler(read("scaler.mean", (n_regions,)), _positive("scaler.sd", read("scaler.sd", (n_regions,))))
    return Preprocessing(residualizer("residualizer"), scaler, head_size, harmonizer)


def _harmonizer(
    name: str, sites: tuple[str, ...], read: Read, n_regions: int, kept: CovariateResidualizer | None
) -> SiteHarmonizer:
    _different(sites, "site")
    if UNCORRECTED in sites:
        raise ValueError("a site has no name")
    shape = (len(sites), n_regions)
    mean, sd = read("site.mean", (n_regions,)), _positive("site.sd", read("site.sd", (n_regions,)))
    offsets, scales = read("site.offsets", shape), _positive("site.scales", read("site.scales", shape))
    return SiteHarmonizer(name, sites, kept, mean, sd, offsets, scales)


def _covariate(name: str, categories: tuple[str, ...] | None, knots: tuple[float, ...] | None) -> Covariate:
    if categories is not None and not _different(categories, "category"):
        raise ValueError(f"{name!r} should have at least one category")
    if knots is not None and (categories is not None or len(knots) < 3 or not (np.diff(knots) > 0).all()):
        raise ValueError(f"the knots of {name!r} should be at least three increasing numbers, found {knots!r:.80}")
    return Covariate(name, categories, knots)


def _different(names: Sequence[str], kind: str) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"a {kind} is named twice")
    return tuple(names)


def _positive(name: str, value: Any) -> Any:
    if not (np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
        raise ValueError(f"{name} should be above 0")
    return value
