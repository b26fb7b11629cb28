"""Preprocessing of regional measures, always estimated in controls.

Head size by proportion, then sites, then covariates, then one scale for all regions.
"""

from rindices.preprocessing.covariates import Covariate, CovariateResidualizer
from rindices.preprocessing.pipeline import ControlScaler, HeadSize, Preprocessing, whitening_matrix
from rindices.preprocessing.sites import UNCORRECTED, SiteHarmonizer
from rindices.presets import SCALED_SD

__all__ = [
    "SCALED_SD",
    "UNCORRECTED",
    "ControlScaler",
    "Covariate",
    "CovariateResidualizer",
    "HeadSize",
    "Preprocessing",
    "SiteHarmonizer",
    "whitening_matrix",
]
