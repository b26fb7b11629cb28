"""A fitted `Preprocessing` as names in JSON and arrays, and back with checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
from pydantic import JsonValue, TypeAdapter
from pydantic.dataclasses import dataclass

from rindices.preprocessing.covariates import Covariate, CovariateResidualizer, count_columns
from rindices.preprocessing.pipeline import Preprocessing
from rindices.preprocessing.scaling import ControlScaler, HeadSize
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer
from rindices.schema import STRICT

Read = Callable[[str, tuple[int, ...]], np.ndarray]  # an array by its name, which has to have this shape


@dataclass(frozen=True, config=STRICT)
class _Described:
    """What `describe` says."""

    covariates: tuple[Covariate, ...]
    interactions: tuple[tuple[str, str], ...]
    head_size: HeadSize | None
    site: tuple[str, tuple[str, ...]] | None

    def __post_init__(self) -> None:
        sites = () if self.site is None else self.site[1]
        named = {"covariate": [one.name for one in self.covariates], "site": sites}
        named |= {f"category of {one.name!r}": one.categories or () for one in self.covariates}
        problems = {
            "a site has no name": UNCORRECTED in sites,
            "the head size should be above 0": self.head_size is not None and self.head_size.mean <= 0,
        }
        problems |= {f"a {kind} is named twice": len(set(names)) < len(names) for kind, names in named.items()}
        for name, categories, knots in self.covariates:
            curve = knots is None or (categories is None and len(knots) > 2 and bool((np.diff(knots) > 0).all()))
            problems[f"{name!r} should have at least one category"] = categories == ()
            problems[f"{name!r} should have categories, or at least three knots that increase"] = not curve
        for problem, is_wrong in problems.items():
            if is_wrong:
                raise ValueError(problem)


def describe(preprocessing: Preprocessing) -> dict[str, JsonValue]:
    """Return names, categories and knots in plain JSON types."""
    effects, site = preprocessing.residualizer, preprocessing.harmonizer
    described = {
        "covariates": () if effects is None else effects.covariates,
        "interactions": () if effects is None else effects.interactions,
        "head_size": preprocessing.head_size,
        "site": None if site is None else (site.name, site.sites),
    }
    return json.loads(json.dumps(described))


def arrays_of(preprocessing: Preprocessing) -> dict[str, np.ndarray]:
    """Return all arrays by name."""
    site = preprocessing.harmonizer
    fitted = {"scaler": preprocessing.scaler, "residualizer": preprocessing.residualizer, "site": site}
    fitted["site.kept"] = None if site is None else site.kept
    return {
        f"{prefix}.{name}": value
        for prefix, one in fitted.items()
        if one is not None
        for name, value in vars(one).items()
        if isinstance(value, np.ndarray)
    }


def restore(described: Mapping[str, JsonValue], read: Read, n_regions: int) -> Preprocessing:
    """Return what `describe` and `arrays_of` made; anything else is a ValueError or KeyError."""
    description = TypeAdapter(_Described).validate_json(json.dumps(described))
    columns, regions = (count_columns(description.covariates, description.interactions),), (n_regions,)

    def residualizer(prefix: str) -> CovariateResidualizer | None:
        if not description.covariates:
            return None
        return CovariateResidualizer(
            description.covariates,
            read(f"{prefix}.centre", columns),
            read(f"{prefix}.effects", columns + regions),
            description.interactions,
        )

    def positive(name: str, shape: tuple[int, ...]) -> np.ndarray:
        values = read(name, shape)
        if not (values > 0).all():
            raise ValueError(f"{name} should be above 0")
        return values

    harmonizer = None
    if description.site is not None:
        shape = (len(description.site[1]), n_regions)
        try:
            errors = read("site.errors", shape[:1])
        except KeyError:  # no site was added to it
            errors = None
        harmonizer = SiteHarmonizer(
            *description.site,
            residualizer("site.kept"),
            read("site.mean", regions),
            positive("site.sd", regions),
            read("site.offsets", shape),
            positive("site.scales", shape),
            errors,
        )
    scaler = ControlScaler(read("scaler.mean", regions), positive("scaler.sd", regions))
    return Preprocessing(residualizer("residualizer"), scaler, description.head_size, harmonizer)
