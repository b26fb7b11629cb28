"""Preprocessing of regions before training: estimated in controls, applied to everyone, stored and restored.

It also covers head size, one scale for all regions, and the decorrelation of regions.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import JsonValue, TypeAdapter
from pydantic import dataclasses as checked

from rindices.linear import Whitening
from rindices.preprocessing.covariates import Covariate, CovariateResidualizer, count_columns, numbers_of
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer
from rindices.presets import SCALED_SD, Correction
from rindices.problems import InputError, Remedy, counted, did_you_mean, listed, shown
from rindices.schema import STRICT


class HeadSize(NamedTuple):
    """Regions divided by head size and multiplied by the controls' mean head size, which preserves units.

    Examples
    --------
    >>> heads = pd.DataFrame({"icv": [1000.0, 2000.0]})
    >>> HeadSize.fit(heads, "icv").transform(np.array([[10.0], [20.0]]), heads).ravel().tolist()
    [15.0, 15.0]
    """

    name: str
    mean: float

    @classmethod
    def fit(cls, covariates: pd.DataFrame, name: str) -> Self:
        """Take the mean of controls."""
        return cls(name, float(_sizes(covariates, name).mean()))

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Scale everyone to the mean head size."""
        return features * (self.mean / _sizes(covariates, self.name))[:, None]

    def inverse_transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Return to each person's own head size."""
        return features * (_sizes(covariates, self.name) / self.mean)[:, None]


def _sizes(covariates: pd.DataFrame, name: str) -> np.ndarray:
    sizes = numbers_of(covariates, name)
    if (sizes <= 0).any():
        first = int(np.flatnonzero(sizes <= 0)[0])
        raise InputError(
            f"Regions are divided by {name!r}, which must be positive but is {shown(float(sizes[first]))} for person "
            f"{covariates.index[first]} ({counted(int((sizes <= 0).sum()), 'person', 'people')} in all).\n"
            f"Correct the value, exclude the person, or omit ",
            Remedy("proportion"),
            ".",
        )
    return sizes


@dataclass(frozen=True, eq=False)
class ControlScaler:
    """Gives each region mean 1 and sd 0.1 in controls.

    Examples
    --------
    >>> scaler = ControlScaler.fit(np.array([[1.0], [3.0]]))
    >>> scaler.transform(np.array([[2.0], [4.0]])).ravel().tolist()
    [1.0, 1.2]
    """

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def fit(cls, controls: np.ndarray) -> Self:
        """Take mean and sd of controls."""
        return cls(controls.mean(axis=0), controls.std(axis=0))

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scale; a region that is constant in these controls, as may happen in a fold, becomes 1 for everyone."""
        return 1 + SCALED_SD * (features - self.mean) / np.where(self.sd > 0, self.sd, np.inf)

    def inverse_transform(self, scaled: np.ndarray) -> np.ndarray:
        """Return to the units of the table."""
        return self.mean + (scaled - 1) * self.sd / SCALED_SD


def whitening_matrix(controls: np.ndarray, strength: float) -> np.ndarray | None:
    """Return a linear map that decorrelates scaled controls (ZCA), mixed with the identity by `strength`.

    The covariance is shrunk after Ledoit and Wolf, so that it can be inverted with fewer controls than regions.
    """
    if strength == 0:
        return None
    zca = Whitening.of((controls - controls.mean(axis=0)) / SCALED_SD).inverse_root
    return strength * zca + (1 - strength) * np.eye(len(zca))


_OF_NUMBERS = {"smooth": "a smooth curve requires numbers", "proportion": "a head size must be a number"}


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """All corrections applied before training, with the parameters estimated in controls.

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
    def fit(cls, controls: np.ndarray, covariates: pd.DataFrame | None, correction: Correction | None = None) -> Self:
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

    def with_new_sites(self, controls: np.ndarray, covariates: pd.DataFrame, *, few_controls: bool = False) -> Self:
        """Learn further sites from their controls; nothing else changes."""
        if self.harmonizer is None:
            raise InputError(
                "The model was trained without ",
                Remedy("site"),
                ", so it cannot be adapted to a new site.\nRefit it with ",
                Remedy("site"),
                ", or apply it unchanged.",
            )
        sized = self.sized(controls, covariates)
        return replace(self, harmonizer=self.harmonizer.with_new_sites(sized, covariates, few_controls=few_controls))

    def sized(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Return regions with only the effect of head size removed."""
        return features if self.head_size is None else self.head_size.transform(features, covariates)

    def leave_new_sites(self, covariates: pd.DataFrame) -> pd.DataFrame:
        """Return the covariates with unknown sites marked, so that people there are not corrected for site."""
        return covariates if self.harmonizer is None else self.harmonizer.leave_new_sites(covariates)

    def _checked(self, covariates: pd.DataFrame | None) -> pd.DataFrame:
        names = self.covariates
        if (covariates is None) != (not names):
            expected = f"the covariates {', '.join(names)}" if names else "no covariates"
            given = "none" if covariates is None else ", ".join(map(str, covariates.columns))
            raise InputError(f"The model was trained with {expected}, but the covariates provided are: {given}.")
        return pd.DataFrame() if covariates is None else covariates


def _check_roles(correction: Correction, covariates: pd.DataFrame) -> None:
    shaped = [
        *(("smooth", name) for name in correction.smooth),
        *(("interactions", name) for pair in correction.interactions for name in pair),
    ]
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
            raise InputError(Remedy(role), f" names {name!r}, which contains text: {_OF_NUMBERS[role]}.")
    for (role, name), (other, taken) in product(shaped, removed):
        if name == taken:
            raise InputError(f"{name!r} cannot be in both ", Remedy(role), " and ", Remedy(other), ": choose one.")


Read = Callable[[str, tuple[int, ...]], np.ndarray]  # returns an array by name, which must have this shape


@checked.dataclass(frozen=True, config=STRICT)
class _Described:
    """The contents of `describe`."""

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
            problems[f"{name!r} should have categories, or at least three increasing knots"] = not curve
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
    fitted = {
        "scaler": preprocessing.scaler,
        "residualizer": preprocessing.residualizer,
        "site": site,
        "site.kept": None if site is None else site.kept,
    }
    return {
        f"{prefix}.{name}": value
        for prefix, one in fitted.items()
        if one is not None
        for name, value in vars(one).items()
        if isinstance(value, np.ndarray)
    }


def restore(described: Mapping[str, JsonValue], read: Read, n_regions: int) -> Preprocessing:
    """Restore preprocessing from `describe` and `arrays_of`; anything else raises a ValueError or KeyError."""
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
        except KeyError:  # written when only added sites had errors
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
