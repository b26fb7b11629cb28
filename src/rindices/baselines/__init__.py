"""What Surreal-GAN is compared with: decompositions that know no severities, and regressions that are told them."""

from rindices.baselines.ceilings import supervised_ceilings
from rindices.baselines.decompositions import METHODS, Baseline
from rindices.baselines.discriminant_nmf import DiscriminantNMF
from rindices.baselines.opnmf import OrthonormalProjectiveNMF

__all__ = ["METHODS", "Baseline", "DiscriminantNMF", "OrthonormalProjectiveNMF", "supervised_ceilings"]
