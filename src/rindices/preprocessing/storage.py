"""A fitted `Preprocessing` as names in JSON and arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rindices.cohort.json_checks import numbers_from, texts_from
from rindices.preprocessing.covariates import Covariate, CovariateResidualizer, count_columns
from rindices.preprocessing.pipeline import Preprocessing
from rindices.preprocessing.scaling import ControlScaler, HeadSize
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer

Read = Callable[[str, tuple[int, ...]], np.ndarray]  # an array by its name, which has to have this shape


def describe(preprocessing: Preprocessing) -> dict[str, Any]:
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


def describe_version_1(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for a file of the first format."""
    covariates = [[name, categories, None] for name, categories in header["residualized"]]
    return {"covariates": covariates, "interactions": [], "head_size": None, "site": None}


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


def restore(described: Mapping[str, Any], read: Read, n_regions: int) -> Preprocessing:
    """Return what `describe` and `arrays_of` made; anything else is a ValueError, TypeError or KeyError."""
    covariates = tuple(_covariate(*one) for one in described["covariates"])
    pairs = tuple((_text(first), _text(second)) for first, second in described["interactions"])
    _different([covariate.name for covariate in covariates], "covariate")
    n_columns = count_columns(covariates, pairs)

    def residualizer(prefix: str) -> CovariateResidualizer | None:
        if not covariates:
            return None
        centre, effects = read(f"{prefix}.centre", (n_columns,)), read(f"{prefix}.effects", (n_columns, n_regions))
        return CovariateResidualizer(covariates, centre, effects, pairs)

    head_size = harmonizer = None
    if described["head_size"] is not None:
        name, mean = described["head_size"]
        head_size = HeadSize(_text(name), _positive("head size", *numbers_from([mean], "head size")))
    if described["site"] is not None:
        harmonizer = _harmonizer(described["site"], read, n_regions, residualizer("site.kept"))
    scaler = ControlScaler(read("scaler.mean", (n_regions,)), _positive("scaler.sd", read("scaler.sd", (n_regions,))))
    return Preprocessing(residualizer("residualizer"), scaler, head_size, harmonizer)


def _harmonizer(site: Any, read: Read, n_regions: int, kept: CovariateResidualizer | None) -> SiteHarmonizer:
    name, sites = site
    sites = _different(texts_from(sites, "sites"), "site")
    if UNCORRECTED in sites:
        raise ValueError("a site has no name")
    shape = (len(sites), n_regions)
    mean, sd = read("site.mean", (n_regions,)), _positive("site.sd", read("site.sd", (n_regions,)))
    offsets, scales = read("site.offsets", shape), _positive("site.scales", read("site.scales", shape))
    return SiteHarmonizer(_text(name), sites, kept, mean, sd, offsets, scales)


def _covariate(name: str, categories: list[str] | None, knots: list[float] | None) -> Covariate:
    texts = None if categories is None else _different(texts_from(categories, _text(name)), "category")
    if texts == ():
        raise ValueError(f"{name!r} should have at least one category")
    if knots is None:
        return Covariate(_text(name), texts)
    values = numbers_from(knots, _text(name))
    if texts is not None or len(values) < 3 or not (np.diff(values) > 0).all():
        raise ValueError(f"the knots of {name!r} should be at least three increasing numbers, found {knots!r:.80}")
    return Covariate(_text(name), knots=values)


def _text(value: Any) -> str:
    return texts_from([value], "a name")[0]


def _different(names: Sequence[str], kind: str) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"a {kind} is named twice")
    return tuple(names)


def _positive(name: str, value: Any) -> Any:
    if not (np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
        raise ValueError(f"{name} should be above 0")
    return value
