"""All that happens to regions before the networks see them: estimated in controls, applied to all, stored, restored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from pydantic import JsonValue, TypeAdapter
from pydantic import dataclasses as checked

from rindices.preprocessing.covariates import Covariate, CovariateResidualizer, count_columns
from rindices.preprocessing.scaling import ControlScaler, HeadSize
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer
from rindices.presets import Correction
from rindices.problems import InputError, Remedy, did_you_mean, listed
from rindices.schema import STRICT

_OF_NUMBERS = {"smooth": "a curve", "proportion": "a head size"}


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """All that happens to a table before training, with what was estimated in controls.

    Examples
    --------
    >>> controls = np.array([[10.0], [22.0], [11.0], [20.0]])
    >>> table = pd.DataFrame({"age": [50.0, 70.0, 60.0, 80.0], "icv": [1000.0, 2000.0, 1000.0, 2000.0]})
    >>> Preprocessing.fit(controls, table, Correction(proportion="icv")).transform(controls, table).shape
    (4, 1)
    """

    residualizer: CovariateResidualizer | None
    scaler: ControlScaler
    head_size: HeadSize | None = None
    harmonizer: SiteHarmonizer | None = None

    @classmethod
    def fit(
        cls, controls: np.ndarray, covariates: pd.DataFrame | None, correction: Correction | None = None
    ) -> Preprocessing:
        """Estimate everything in controls; without a `correction`, all covariates have linear effects."""
        correction = correction or Correction()
        covariates = pd.DataFrame() if covariates is None else covariates
        _check_roles(correction, covariates)
        head_size = harmonizer = residualizer = None
        smooth, pairs = correction.smooth, correction.interactions
        if correction.proportion is not None:
            head_size = HeadSize.fit(covariates, correction.proportion)
            controls = head_size.transform(controls, covariates)
            covariates = covariates.drop(columns=correction.proportion)
        if correction.site is not None:
            harmonizer = SiteHarmonizer.fit(controls, covariates, correction.site, smooth=smooth, interactions=pairs)
            controls = harmonizer.transform(controls, covariates)
            covariates = covariates.drop(columns=correction.site)
        if covariates.shape[1]:
            residualizer = CovariateResidualizer.fit(controls, covariates, smooth=smooth, interactions=pairs)
            controls = residualizer.transform(controls, covariates)
        return cls(residualizer, ControlScaler.fit(controls), head_size, harmonizer)

    @property
    def covariates(self) -> list[str]:
        """Names of the covariates that are needed."""
        names = [] if self.residualizer is None else [one.name for one in self.residualizer.covariates]
        return names + [step.name for step in (self.head_size, self.harmonizer) if step is not None]

    @property
    def _corrections(self) -> list[HeadSize | SiteHarmonizer | CovariateResidualizer]:
        return [one for one in (self.head_size, self.harmonizer, self.residualizer) if one is not None]

    def transform(self, features: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Remove the effects of head size, site and covariates, then scale."""
        table = self._checked(covariates)
        for correction in self._corrections:
            features = correction.transform(features, table)
        return self.scaler.transform(features)

    def inverse_transform(self, scaled: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Return to the table's units, with the effects of covariates, site and head size."""
        table, features = self._checked(covariates), self.scaler.inverse_transform(scaled)
        for correction in reversed(self._corrections):
            features = correction.inverse_transform(features, table)
        return features

    def with_new_sites(
        self, controls: np.ndarray, covariates: pd.DataFrame, *, few_controls: bool = False
    ) -> Preprocessing:
        """Learn further sites from their controls; nothing else changes."""
        if self.harmonizer is None:
            raise InputError(
                "The model was trained without ",
                Remedy("site"),
                ", so it cannot learn a new one.\nFit it again with ",
                Remedy("site"),
                ", or apply it unchanged.",
            )
        sized = controls if self.head_size is None else self.head_size.transform(controls, covariates)
        return replace(self, harmonizer=self.harmonizer.with_new_sites(sized, covariates, few_controls=few_controls))

    def leave_new_sites(self, covariates: pd.DataFrame) -> pd.DataFrame:
        """Return the covariates with unknown sites marked, so that their people are not corrected for site."""
        return covariates if self.harmonizer is None else self.harmonizer.leave_new_sites(covariates)

    def _checked(self, covariates: pd.DataFrame | None) -> pd.DataFrame:
        names = self.covariates
        if (covariates is None) != (not names):
            expected = f"the covariates {', '.join(names)}" if names else "no covariates"
            given = "none" if covariates is None else ", ".join(map(str, covariates.columns))
            raise InputError(f"The model was trained with {expected}, but got {given}.")
        return pd.DataFrame() if covariates is None else covariates


def _check_roles(correction: Correction, covariates: pd.DataFrame) -> None:
    shaped = [("smooth", name) for name in correction.smooth]
    shaped += [("interactions", name) for pair in correction.interactions for name in pair]
    removed = [("proportion", correction.proportion), ("site", correction.site)]
    for role, name in [*shaped, *removed]:
        if name is not None and name not in covariates:
            names = [str(column) for column in covariates]
            raise InputError(
                Remedy(role),
                f" names {name!r}, which is not a covariate.{did_you_mean(name, names)}\n"
                f"The covariates are: {listed(names, 20) or 'none'}.",
            )
        if name is not None and role in _OF_NUMBERS and not pd.api.types.is_numeric_dtype(covariates[name]):
            raise InputError(Remedy(role), f" names {name!r}, which contains text: {_OF_NUMBERS[role]} needs numbers.")
    for (role, name), (other, taken) in product(shaped, removed):
        if name == taken:
            raise InputError(f"{name!r} cannot be in both ", Remedy(role), " and ", Remedy(other), ": choose one.")


Read = Callable[[str, tuple[int, ...]], np.ndarray]  # an array by its name, which has to have this shape


@checked.dataclass(frozen=True, config=STRICT)
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
