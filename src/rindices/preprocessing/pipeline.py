"""All that happens to a table before training, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rindices.errors import InputError, did_you_mean, listed
from rindices.preprocessing.covariates import CovariateResidualizer
from rindices.preprocessing.scaling import ControlScaler, HeadSize
from rindices.preprocessing.sites import SiteHarmonizer
from rindices.settings import Correction


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
        _check_names(correction, [] if covariates is None else [str(name) for name in covariates])
        if covariates is None:
            return cls(None, ControlScaler.fit(controls))
        _check_numbers(correction, covariates)
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
        names = [] if self.residualizer is None else [known.name for known in self.residualizer.covariates]
        return names + [step.name for step in (self.head_size, self.harmonizer) if step is not None]

    def transform(self, features: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Remove the effects of head size, site and covariates, then scale."""
        table = self._checked(covariates)
        if self.head_size is not None:
            features = self.head_size.transform(features, table)
        if self.harmonizer is not None:
            features = self.harmonizer.transform(features, table)
        if self.residualizer is not None:
            features = self.residualizer.transform(features, table)
        return self.scaler.transform(features)

    def inverse_transform(self, scaled: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Return to the table's units, with the effects of covariates, site and head size."""
        table = self._checked(covariates)
        features = self.scaler.inverse_transform(scaled)
        if self.residualizer is not None:
            features = features + self.residualizer.effect(table)
        if self.harmonizer is not None:
            features = self.harmonizer.inverse_transform(features, table)
        if self.head_size is not None:
            features = self.head_size.inverse_transform(features, table)
        return features

    def leave_new_sites(self, covariates: pd.DataFrame) -> pd.DataFrame:
        """Return the covariates with unknown sites marked, so that their people are not corrected for site."""
        return covariates if self.harmonizer is None else self.harmonizer.leave_new_sites(covariates)

    def _checked(self, covariates: pd.DataFrame | None) -> pd.DataFrame:
        names = self.covariates
        if (covariates is None) != (not names):
            expected = f"the covariates {', '.join(names)}" if names else "no covariates"
            found = "none" if covariates is None else ", ".join(map(str, covariates.columns))
            raise InputError(f"The model was trained with {expected}, but got {found}.")
        return pd.DataFrame() if covariates is None else covariates


def _check_names(correction: Correction, covariates: list[str]) -> None:
    asked = [(name, "--smooth") for name in correction.smooth]
    asked += [(name, "--interactions") for pair in correction.interactions for name in pair]
    roles = {correction.proportion: "--proportion", correction.site: "--site"}
    for name, option in [*asked, *((name, option) for name, option in roles.items() if name is not None)]:
        if name not in covariates:
            raise InputError(
                f"{option} names {name!r}, which is no covariate.{did_you_mean(name, covariates)}\n"
                f"The covariates are: {listed(covariates, 20) or 'none'}."
            )
    for name, option in asked:
        if name in roles:
            raise InputError(f"{name!r} cannot be in both {option} and {roles[name]}: choose one.")


def _check_numbers(correction: Correction, covariates: pd.DataFrame) -> None:
    wanted = dict.fromkeys(correction.smooth, ("--smooth", "a curve"))
    if correction.proportion is not None:
        wanted[correction.proportion] = ("--proportion", "a head size")
    for name, (option, what) in wanted.items():
        if not pd.api.types.is_numeric_dtype(covariates[name]):
            raise InputError(f"{option} names {name!r}, which holds text: {what} needs numbers.")
