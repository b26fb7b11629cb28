"""Comparison methods for Surreal-GAN: decompositions, which never see severities, and regressions trained on them."""

from baselines.ceilings import supervised_ceilings
from baselines.decompositions import METHODS, Baseline
from baselines.discriminant_nmf import DiscriminantNMF
from baselines.opnmf import OrthonormalProjectiveNMF

__all__ = ["METHODS", "Baseline", "DiscriminantNMF", "OrthonormalProjectiveNMF", "supervised_ceilings"]
