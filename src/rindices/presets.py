"""The options of training itself, and the presets, which are complete sets of them.

`LossWeights` and `LearningRates` are arguments of one compiled program, so that a whole grid of them trains at once;
`Training` holds the formulas that are compiled in; `Schedule` controls training from outside.
"""

from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Integral, Real
from typing import Literal, NamedTuple

from rindices.problems import InputError, Remedy, check_choice

SCALED_SD = 0.1  # controls have mean 1 and this sd after scaling; the loss weights are tuned to it


class LossWeights(NamedTuple):
    """Relative importance of the regularisers (the paper's Greek letters; the adversarial term has weight 1).

    Examples
    --------
    >>> LossWeights(orthogonality=0.4).change
    9.0
    """

    change: float = 9.0  # γ: keeps changes small and sparse; above 6, mild patterns are found more reliably
    decomposition: float = 40.0  # κ: half the paper's 80 is as accurate or better on all five cohorts
    reconstruction: float = 20.0  # ζ: a quarter of the paper's 80; more makes mild and scarce patterns fail
    orthogonality: float = 0.8  # λ: as good as 0.4 on easy cohorts, clearly better on hard ones
    monotonicity: float = 500.0  # μ: a pattern never recedes with severity
    near_control: float = 6.0  # η: a severity near zero leaves the brain as it is
    prior: float = 300.0  # keeps f near the linear model that it starts from; 1,000 is as good


class LearningRates(NamedTuple):
    """Adam's learning rates; above about 1e-3 some trainings fail."""

    generator: float = 8e-4  # for f, g₁ and g₂
    discriminator: float = 8e-4  # one that learns as fast as f needs half the steps
    correlation: float = 8e-5  # of severities, if they may be correlated; tuned together with the penalty below


@dataclass(frozen=True)
class Training:
    """The formulas of one update; changing one of them compiles a new program.

    Parameters
    ----------
    composition : {"additive", "one_pass", "joint"}
        ``additive``: the network gives the change of one pattern and changes add up. ``one_pass``: it gives the change
        of all patterns together. ``joint``: it gives the transformed brain (the paper's notation).
    updates : {"joint", "separate", "sequential"}
        ``joint``: one gradient of the whole objective for f, g₁ and g₂. ``separate``: g₁ only sees the decomposition
        and g₂ only the reconstruction. ``sequential``: the same, after f has been updated (the paper's Algorithm 1).
    orthogonality : {"batch", "person"}
        Overlap of the patterns' changes averaged over the batch, or of each person's changes (the paper).
    weight_decay : float
        L2 decay inside the gradient of f, g₁ and g₂ (not AdamW).
    gradient_clip : float or None
        Largest gradient norm of f and of the discriminator.
    weight_clip : float
        Weights of f, g₁ and g₂ stay within ± this, which bounds their Lipschitz constants.
    freeze_below : tuple of float or None
        A model past the minimum number of steps is frozen once its reconstruction and monotonicity losses are below
        these two (the paper's rule), and no checkpoint is chosen; None never freezes.
    latent : {"independent", "sampled", "weighted"}
        Severities of a synthesised patient are independent, or follow a Gaussian copula that is learned: drawn from it
        (``sampled``), or drawn independently and weighted by its density (``weighted``, the authors' later package).
    correlation_penalty : float
        Weight α of the copula's divergence from independence.
    start : {"linear", "random"}
        Each repetition starts from a linear model of its own sample, keeps f close to it and averages its R-indices
        with the networks'; or starts from random weights, as in the paper.
    """

    composition: Literal["additive", "one_pass", "joint"] = "additive"
    updates: Literal["joint", "separate", "sequential"] = "joint"
    orthogonality: Literal["batch", "person"] = "batch"
    weight_decay: float = 2.5e-3
    gradient_clip: float | None = 100.0
    weight_clip: float = 0.5
    freeze_below: tuple[float, float] | None = None
    latent: Literal["independent", "sampled", "weighted"] = "sampled"
    correlation_penalty: float = 0.01  # twice as much halves the estimate of a strong correlation in mild disease
    start: Literal["linear", "random"] = "linear"  # loses half as much on hard cohorts, in a third of the steps


@dataclass(frozen=True)
class Schedule:
    """Length of training, batch size, and checkpoints.

    Parameters
    ----------
    batch_size : int or None
        Number of people of each group per step; None means an eighth of the patients (the paper).
    min_steps, max_steps : int
        Training ends at the second; no checkpoint before the first can be chosen. If the second is smaller, the last
        checkpoint is used.
    checkpoint_every : int
        Steps between two checkpoints.
    longest : int
        Number of steps up to which a failed repetition is trained further before it is replaced; 0: replaced at once.
    whitening : float
        0: the discriminator sees regions as they are; 1: decorrelated by the controls' covariance; between: a mixture.
    folds : int
        Number of folds of the controls. Each repetition leaves out one of them, so that controls are scored by
        repetitions that were not trained on them; 0: everyone is used.
    """

    batch_size: int | None = 32  # a third of the cost of 112, and no less accurate
    # One checkpoint, hence no choice: with few repetitions, the best of several would overstate agreement.
    min_steps: int = 6_000
    max_steps: int = 6_000  # from a linear start; small cohorts overfit afterwards
    checkpoint_every: int = 1_000
    whitening: float = 1.0  # learns sooner, and fewer repetitions fail; the consensus alone gains little
    folds: int = 5  # costs no accuracy
    longest: int = 0

    def people_per_step(self, n_patients: int) -> int:
        """Return the number of people of each group per step."""
        return self.batch_size or max(1, n_patients // 8)


@dataclass(frozen=True)
class Correction:
    """Corrections for covariates beyond a linear effect of each; all names must be covariates.

    Parameters
    ----------
    smooth : sequence of str
        Numeric covariates whose effect is a curve (a natural cubic spline) instead of a line.
    interactions : sequence of pairs of str
        Covariates whose effects depend on each other.
    proportion : str, optional
        Head size, by which regions are divided.
    site : str, optional
        Site of the measurement, whose offset and scale are removed (ComBat).

    Examples
    --------
    >>> Correction(smooth=["age"], interactions=[("age", "sex")], site="site").interactions
    (('age', 'sex'),)
    """

    smooth: tuple[str, ...] = ()
    interactions: tuple[tuple[str, str], ...] = ()
    proportion: str | None = None
    site: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.smooth, str) or isinstance(self.interactions, str):
            raise InputError("smooth and interactions should be lists, but got a string.")
        smooth, pairs = tuple(self.smooth), tuple(tuple(pair) for pair in self.interactions)
        if not all(isinstance(name, str | None) for name in (*smooth, *chain(*pairs), self.proportion, self.site)):
            raise InputError(f"Covariate names in a correction should be strings, but got {self!r}.")
        if any(len(set(pair)) != 2 or len(pair) != 2 for pair in pairs):
            raise InputError(f"interactions should be pairs of different covariates, but got {self.interactions!r}.")
        if len(set(smooth)) < len(smooth) or len(set(map(frozenset, pairs))) < len(pairs):
            raise InputError("The correction names a covariate or a pair of covariates twice. Name each only once.")
        if self.site is not None and self.site == self.proportion:
            raise InputError(f"{self.site!r} cannot be both the head size and the site.")
        object.__setattr__(self, "smooth", smooth)
        object.__setattr__(self, "interactions", pairs)


@dataclass(frozen=True)
class Preset:
    """A complete set of choices.

    Examples
    --------
    >>> from dataclasses import replace
    >>> longer = replace(fast(), schedule=Schedule(max_steps=40_000))
    >>> longer.weights.orthogonality
    0.8
    """

    name: str
    weights: LossWeights = field(default_factory=LossWeights)
    rates: LearningRates = field(default_factory=LearningRates)
    training: Training = field(default_factory=Training)
    schedule: Schedule = field(default_factory=Schedule)


def fast() -> Preset:
    """Return the default, the most accurate and cheapest setting measured on ten cohorts."""
    return Preset("fast", schedule=Schedule(longest=30_000))


def paper() -> Preset:
    """Return the settings of the paper's section 3.3, with additive f; λ has its middle value unless searched.

    Of the three interpretations of f, only additive changes come close to the paper's figures with these settings.
    """
    return Preset(
        "paper",
        weights=LossWeights(change=6.0, decomposition=80.0, reconstruction=80.0, orthogonality=0.4),
        rates=LearningRates(generator=2e-4, discriminator=4e-5),
        training=Training(
            *("additive", "sequential", "person"),
            weight_decay=0.0,
            gradient_clip=None,
            freeze_below=(3e-3, 6e-4),
            latent="independent",
            start="random",
        ),
        schedule=Schedule(None, 100_000, 200_000, checkpoint_every=5_000, whitening=0.0, folds=0),
    )


def official() -> Preset:
    """Return the defaults of the authors' released package, with its correlated severities."""
    return Preset(
        "official",
        weights=LossWeights(change=2.0, decomposition=80.0, reconstruction=80.0, orthogonality=0.2),
        rates=LearningRates(discriminator=8e-4 / 5, correlation=8e-4 / 30),
        training=Training(latent="weighted", correlation_penalty=0.02, start="random"),
        schedule=Schedule(300, 20_000, 60_000, checkpoint_every=2_500, whitening=0.0, folds=0),
    )


def linear() -> Preset:
    """Return linear models alone: no networks and no training."""
    return Preset("linear", schedule=Schedule(min_steps=0, max_steps=0))


def blind() -> Preset:
    """Return the default with a start from random weights, which needs three times as many steps."""
    return Preset("blind", training=Training(start="random"), schedule=Schedule(min_steps=20_000, max_steps=20_000))


PRESETS = {"fast": fast, "linear": linear, "blind": blind, "paper": paper, "official": official}


def get_preset(preset: str | Preset) -> Preset:
    """Return a preset by name, or the one given."""
    if isinstance(preset, Preset):
        return preset
    check_choice(Remedy("preset"), preset, PRESETS)
    return PRESETS[preset]()


def adjusted(
    preset: Preset,
    orthogonality: float | None = None,
    max_steps: int | None = None,
    latent: Literal["independent", "correlated"] | None = None,
) -> Preset:
    """Return a preset with another weight λ, number of steps or latent distribution, where given."""
    if latent is not None:
        check_choice(Remedy("latent"), latent, ("independent", "correlated"))
        if (latent == "independent") != (preset.training.latent == "independent"):
            kind: Literal["independent", "sampled"] = "independent" if latent == "independent" else "sampled"
            preset = replace(preset, training=replace(preset.training, latent=kind))
    if orthogonality is not None:
        if not isinstance(orthogonality, Real) or not 0 <= orthogonality < float("inf"):
            raise InputError(f"orthogonality should be a finite non-negative number, but got {orthogonality!r}.")
        if not preset.schedule.max_steps and orthogonality != preset.weights.orthogonality:
            raise InputError(Remedy("orthogonality"), f" does not apply to {preset.name} models; omit it.")
        preset = replace(preset, weights=preset.weights._replace(orthogonality=float(orthogonality)))
    if max_steps is not None:
        if not preset.schedule.max_steps:
            raise InputError(Remedy("max_steps"), f" does not apply to {preset.name} models; omit it.")
        if not isinstance(max_steps, Integral) or max_steps < 1:
            raise InputError(f"max_steps should be a positive integer, but got {max_steps!r}.")
        shortest = min(preset.schedule.min_steps, int(max_steps))
        preset = replace(
            preset, schedule=replace(preset.schedule, max_steps=int(max_steps), min_steps=shortest, longest=0)
        )
    return preset
