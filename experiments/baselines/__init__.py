"""What Surreal-GAN is compared with: decompositions that know no severities, and regressions that are told them."""

from baselines.ceilings import supervised_ceilings
from baselines.decompositions import METHODS, Baseline
from baselines.discriminant_nmf import DiscriminantNMF
from baselines.opnmf import OrthonormalProjectiveNMF

__all__ = ["METHODS", "Baseline", "DiscriminantNMF", "OrthonormalProjectiveNMF", "supervised_ceilings"]
