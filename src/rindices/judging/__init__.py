"""Which models to keep, and whether to trust them: agreement, the sweep over settings, the verdict."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """The evidence behind a verdict; None if not measured.

    Attributes
    ----------
    p, p_spread, p_shift
        p values of the permutation test: joint, of the patients' spread, and of their shift.
    directions, found_again
        Number of directions beyond chance, and number of directions that replicate in held-out people.
    eigenvalues, limit, band
        Variance of patients relative to that of controls in each direction, the 95th centile of the first after
        permutations, and that of each.
    detectable_auc, detectable_ratio
        Smallest differences likely to be detected: in means, as an AUC, and in one direction, as a ratio of sd.
    halves, halves_chance, halves_p
        Concordance of linear models of disjoint halves of the sample, the largest with permuted groups, and its
        p value.
    repetitions
        Mean concordance between repetitions.
    with_linear
        Concordance between the consensus and a linear model of the whole sample.
    """

    p: float | None = None
    p_spread: float | None = None
    p_shift: float | None = None
    directions: int | None = None
    found_again: int | None = None
    eigenvalues: tuple[float, ...] = ()
    limit: float | None = None
    band: tuple[float, ...] = ()
    detectable_auc: float | None = None
    detectable_ratio: float | None = None
    halves: float | None = None
    halves_chance: float | None = None
    halves_p: float | None = None
    repetitions: float | None = None
    with_linear: float | None = None


@dataclass(frozen=True)
class Separated:
    """How well patients and controls can be told apart, in people who took no part in learning it: AUC, 95 % limits."""

    auc: float
    low: float
    high: float
