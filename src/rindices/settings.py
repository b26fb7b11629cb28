"""All that a user can choose; each default is written here and nowhere else.

`TableSettings`, `SearchSettings`, `OutputSettings` and `ApplySettings` are what commands and functions are asked for.
Below them is what can be chosen about training itself, and the presets.

Two kinds of numbers: `LossWeights` and `LearningRates` are arguments of one compiled program, so that a whole grid of
them trains at once; `Training` holds the formulas that are compiled in. `Schedule` steers from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from rindices.problems import InputError, Remedy
from rindices.setting_fields import (
    FILE,
    FILES,
    FLAG,
    LIMITS,
    NAMES,
    NUMBER,
    PATH,
    TEXT,
    TakesPlainValues,
    choice,
    counts,
    numbers,
    setting,
    settings_of,
    some_of,
    whole,
)

Labels = str | Sequence[str] | None
# Of a verdict.
State = Literal["reproducible", "weak", "confounded", "not found again", "no difference", "not testable"]
Basis = Literal["given", "counted", "fit", "unsupported"]  # of the number of patterns
AUTO: Literal["auto"] = "auto"  # as many patterns as the look before training finds
Names = str | Path | Sequence[str] | None

# What commands on training tables and on new people say alike.
_JOIN = "More tables of the same people, joined by id."
_MISSING = "Codes for missing values, separated by commas: -9999, or icv=0 for one column only."
_DROP_MISSING = "Leave out people with missing or impossible values; they are listed."
_COMPLETE_ONLY = "Exclude anyone with a missing region. By default, up to 20 % of a person's regions are imputed."
_SHOW_IDS = "Put participants' ids into the report, with a card for each person."
_FIGURES = "Folder for every figure of the report as SVG and PNG."
_SCAN_NOISE = "For change between visits: sd of a severity over scans of an unchanged person, or one per pattern."
_NOISE = numbers("0.04 or 0.03,0.05,0.04")
_EXCLUDE = "Numeric columns that are not regions: names or prefix*, separated by commas, or @file."


@dataclass(frozen=True)
class TableSettings:
    """Which columns of a table are what, and who of its people is used; ``[table]`` of a run.toml.

    Names are a name, several separated by commas, a sequence, or a file with one per line; in `features`, `exclude` and
    `clinical` also patterns such as ``l*``. Interactions are written ``age:sex``; see `Correction`.
    """

    id: str = setting("participant_id", TEXT, "Column with the participants' ids.", label="id")
    diagnosis: str = setting("diagnosis", TEXT, "Column with the diagnosis labels.", label="diagnosis")
    control: Labels = setting(None, NAMES, "Label(s) of controls; CN, HC, control, 0 ... are recognised.")
    patients: Labels = setting(None, NAMES, "Label(s) of patients, e.g. MCI,AD; anyone else is only scored.")
    covariates: Names = setting((), NAMES, "Columns whose effects are removed, e.g. age,sex.", label="covariate")
    smooth: Names = setting(
        (), NAMES, "Covariates whose effect is a curve rather than a line, e.g. age.", label="curve"
    )
    interactions: Names = setting((), NAMES, "Interactions of covariates, e.g. age:sex.")
    proportion: str | None = setting(None, TEXT, "Head size by which regions are divided, e.g. icv.", label="head size")
    site: str | None = setting(
        None, TEXT, "Column with the site, whose shift and scale are removed (ComBat).", label="site"
    )
    small_sites: Literal["refuse", "drop"] = setting(
        "refuse", choice("refuse", "drop"), "Sites with fewer than 5 controls: refuse, or drop their people."
    )
    visit: str | None = setting(None, TEXT, "Column that distinguishes a person's visits.", label="visit")
    clinical: Names = setting(
        (),
        NAMES,
        "Clinical scores to compare with the severities: columns, e.g. mmse,apoe4, or a table joined by id.",
        label="clinical score",
    )
    time: str | None = setting(
        None, TEXT, "Follow-up: column with the time from the scan to the event, or to the last contact.", label="time"
    )
    event: str | None = setting(
        None, TEXT, "Follow-up: column with 1 where the event happened at that time, 0 where it did not.", label="event"
    )
    entry: str | None = setting(
        None, TEXT, "Follow-up: column with the time at which observation began.", unset="0", label="entry"
    )
    last_without: str | None = setting(
        None,
        TEXT,
        "Follow-up: column with the last time known to be free of the event, which happened after it.",
        unset="times are exact",
        label="last time without",
    )
    competing: str | None = setting(
        None, TEXT, "Follow-up: column with 1 where another event, such as death, came first.", label="competing event"
    )
    join: Names = setting((), FILES, _JOIN)
    dictionary: str | None = setting(None, FILE, "Data dictionary of the table: CSV, TSV, Excel or BIDS JSON.")
    missing: Names = setting((), NAMES, _MISSING)
    drop_missing: bool = setting(False, FLAG, _DROP_MISSING)
    drop_outliers: bool = setting(False, FLAG, "Leave out outliers; they are listed.")
    features: Names = setting(None, NAMES, "Regions: names, prefix*, or a file of names.", unset="all numbers")
    exclude: Names = setting((), NAMES, _EXCLUDE, label="no role")
    unit: str | None = setting(None, TEXT, "Unit of the regions, e.g. mL; kept with the model.")
    complete_only: bool = setting(False, FLAG, _COMPLETE_ONLY)


# Settings of follow-up, and what their columns are.
FOLLOW_UP = {
    "time": "the time of follow-up",
    "event": "the event",
    "entry": "the time of entry",
    "last_without": "the last time without the event",
    "competing": "the competing event",
}


@dataclass(frozen=True)
class SearchSettings(TakesPlainValues):
    """What is trained; ``[training]`` of a run.toml. The names are those of `rindices.SurrealGANSearch`."""

    n_patterns: tuple[int, ...] | Literal["auto"] = setting(
        AUTO,
        counts(AUTO),
        "Disease patterns to look for: auto (counted before training), 3, or several to choose from: 2-5.",
        option="patterns",
        label="Patterns",
        resumes="more",
        always=True,
    )
    orthogonality: tuple[float, ...] | None = setting(
        None,
        numbers("0.8 or 0.2,0.4,0.8"),
        "How strongly patterns are kept apart; several to choose from: 0.2,0.4,0.8.",
        unset="by preset",
        resumes="each",
    )
    # Few are cheap; ten make the agreement, and with it the verdict, steady.
    n_repetitions: int = setting(
        10,
        whole(1),
        "Number of trainings to compare and average.",
        option="repetitions",
        label="Repetitions",
        resumes="more",
        always=True,
    )
    exhaustive: bool = setting(False, FLAG, "Train every setting in full.", resumes="more")
    preset: str = setting(
        "fast",
        choice("fast", "linear", "blind", "paper", "official"),
        "How patterns are learned: fast (networks from a linear start), linear (seconds, no networks), blind (from "
        "random weights), paper or official.",
        also="method",
    )
    max_steps: int | None = setting(
        None, whole(1), "Maximum number of training steps.", option="steps", unset="by preset", label="Steps"
    )
    latent: Literal["independent", "correlated"] | None = setting(
        None,
        choice("independent", "correlated"),
        "Whether severities of different patterns may be correlated: independent or correlated.",
        unset="by preset",
    )
    random_state: int = setting(
        0, whole(0, 2**31 - 1), "Random seed: the same seed gives the same result.", option="seed", always=True
    )
    level: ClassVar[float] = 0.95  # of intervals of severities; it does not change what is trained


@dataclass(frozen=True)
class OutputSettings(TakesPlainValues):
    """What is written besides the tables of a run."""

    report: bool = setting(True, FLAG, "Write report.html.")
    limits: tuple[float, float] = setting(  # the paper's
        (0.4, 0.7),
        LIMITS,
        "Limits of severity: low below the first, high above the second, for subgroups.",
        option="subgroup-limits",
    )
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)
    figures: Path | None = setting(None, PATH, _FIGURES)
    bids: bool = setting(False, FLAG, "Also write the scores as a BIDS derivative (r_indices.tsv and .json).")
    level: float = setting(
        SearchSettings.level, NUMBER, "Level of the intervals: the share of true severities that they should contain."
    )
    scan_noise: tuple[float, ...] = setting((), _NOISE, _SCAN_NOISE, unset="from controls who came again")


@dataclass(frozen=True)
class ApplySettings:
    """How a table of new people is read for a model; what is not given is as in the training table."""

    id: str | None = setting(None, TEXT, "Column with the participants' ids.", unset="as in training")
    visit: str | None = setting(None, TEXT, "Column that distinguishes a person's visits.")
    exclude: Names = setting((), NAMES, _EXCLUDE)
    clinical: Names = setting((), NAMES, "For the report: columns of the table with clinical scores.")
    join: Names = setting((), FILES, _JOIN)
    missing: Names = setting((), NAMES, _MISSING)
    drop_missing: bool = setting(False, FLAG, _DROP_MISSING)
    complete_only: bool = setting(False, FLAG, _COMPLETE_ONLY)
    new_sites: Literal["refuse", "uncorrected"] = setting(
        "refuse",
        choice("refuse", "uncorrected"),
        "People from sites unknown to the model: refuse, or score uncorrected.",
    )


@dataclass(frozen=True)
class ReportSettings(TakesPlainValues):
    """How the report of a run is written again; what is not given is as before."""

    clinical: Path | None = setting(None, PATH, "Table of clinical scores, joined by id; they become part of the run.")
    id: str = setting(TableSettings.id, TEXT, "Column with the ids in that table.")
    visit: str = setting("visit", TEXT, "Column with the visits in that table, where the run has visits.")
    missing: Names = setting((), NAMES, _MISSING)
    remove_scores: Names = setting((), NAMES, "Clinical scores to remove from the run, separated by commas.")
    limits: tuple[float, float] | None = setting(
        None,
        LIMITS,
        "Limits of severity: low below the first, high above the second.",
        option="subgroup-limits",
        unset="as before",
    )
    scan_noise: tuple[float, ...] = setting((), _NOISE, _SCAN_NOISE, unset="as before")
    atlas: Path | None = setting(None, PATH, "Label image (NIfTI) to paint the patterns on.")
    atlas_table: Path | None = setting(None, PATH, "Which label is which region: columns label and region.")
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)
    figures: Path | None = setting(None, PATH, _FIGURES)


@dataclass(frozen=True)
class ImageSettings(TakesPlainValues):
    """How brain images of the people of a run are compared."""

    mask: Path | None = setting(None, PATH, "Mask of the voxels to test.", unset="the standard brain")
    regressions: bool = setting(False, FLAG, "Also regress the images of all patients on each severity.")
    resample: bool = setting(False, FLAG, "Resample images on another grid; otherwise they are refused.")
    limits: tuple[float, float] | None = setting(
        None,
        LIMITS,
        "Limits of severity: low below the first, high above the second.",
        option="subgroup-limits",
        unset="as in the run",
    )
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)


@dataclass(frozen=True)
class ShareSettings:
    """What a model card says that a run does not know; nothing is said where nothing is given."""

    disease: str = setting("", TEXT, "For the card: the patients' disease.")
    atlas: str = setting("", TEXT, "For the card: the atlas of the regions.")
    segmentation: str = setting("", TEXT, "For the card: the software that measured them, with its version.")
    licence: str = setting("other", TEXT, "For the card: licence, e.g. cc-by-4.0, mit or other.")


@dataclass(frozen=True)
class GatherSettings(TakesPlainValues):
    """What is gathered from the folder of a segmentation program."""

    measures: tuple[str, ...] = setting(
        ("volume",),
        some_of("volume", "thickness", "area"),
        "FreeSurfer: measures of cortical regions (volume, thickness, area).",
        label="Measures",
    )
    atlas: str | None = setting(
        None,
        choice("dk", "dkt", "destrieux"),
        "FreeSurfer: cortical parcellation (dk, dkt or destrieux).",
        unset="dk, or whichever there is",
        label="Atlas",
    )
    longitudinal: bool = setting(
        False, FLAG, "Take the visits of FreeSurfer's longitudinal stream (SCAN.long.TEMPLATE).", label="Longitudinal"
    )
    leave_out: bool = setting(False, FLAG, "Leave out duplicates and incomplete scans.", label="Leave people out")
    jobs: int = setting(4, whole(1, 64), "Number of files read in parallel.")


@dataclass(frozen=True)
class ExecutionSettings:
    """Where a run is computed, and what is said meanwhile; no result depends on it."""

    config: Path | None = setting(None, PATH, "Repeat the run described by this run.toml.")
    workers: int | None = setting(None, whole(1), "Train in this many processes.", unset="threads")
    dask: str | None = setting(None, TEXT, "Train on a Dask cluster: tcp://HOST:PORT, or local.")
    models_per_chunk: int | None = setting(None, whole(1), "Number of models trained together.", unset="what fits")
    overwrite: bool = setting(False, FLAG, "Replace an earlier run in the folder.")
    quiet: bool = setting(False, FLAG, "Print errors only.")
    log_json: bool = setting(False, FLAG, "Print one JSON object per line.")


@dataclass(frozen=True)
class SimulationSettings:
    """A cohort with known patterns, as `rindices.simulate_cohort` makes it."""

    n_controls: int | None = setting(None, whole(), "Number of controls.", option="controls", unset="492")
    n_patients: int | None = setting(None, whole(), "Number of patients.", option="patients", unset="900")
    n_patterns: int = setting(3, whole(), "Number of disease patterns.", option="patterns")
    severities: str = setting(
        "uniform",
        TEXT,
        "uniform; mild: Beta(1,3); absent: each pattern 0 in half of the patients; severe: Beta(3,1); or a table "
        "(.csv) with columns s1, s2 ... from 0 to 1, from which rows are drawn.",
    )
    severity_correlation: str | None = setting(
        None,
        TEXT,
        "Correlation of the severities' normal scores: a number, or a file with a matrix.",
        option="correlation",
        unset="none",
    )
    severity_age: float = setting(0.0, NUMBER, "Correlation of the severities with age (normal scores).")
    spread: float = setting(1.0, NUMBER, "Spread of healthy brains; 1.7 makes the task as hard as in the paper.")
    n_visits: int = setting(1, whole(), "Visits of each person, a year apart.", option="visits")
    progression: float = setting(
        0.1, NUMBER, "With visits: mean yearly increase of each severity; individuals range from 0 to twice that."
    )
    scan_noise: float = setting(0.2, NUMBER, "With visits: sd of scan noise, relative to the sd between people.")
    controls: Path | None = setting(None, PATH, "Build on your own table of healthy people.", option="own-controls")
    seed: int = setting(0, whole(0, 2**31 - 1), "Random seed: the same seed gives the same result.")


@dataclass(frozen=True)
class PowerSettings(TakesPlainValues):
    """The size of a study that is planned."""

    n_controls: int = setting(100, whole(1), "Number of controls.", option="controls")
    n_patients: int = setting(100, whole(1), "Number of patients.", option="patients")
    n_regions: int = setting(68, whole(1), "Number of regions.", option="regions")
    like: Path | None = setting(
        None, PATH, "Simulate studies from your own table of healthy people and its regions (takes minutes)."
    )
    figure: Path | None = setting(None, PATH, "Also draw the chance by size of study (.png or .svg).")


_ALL = (TableSettings, SearchSettings, OutputSettings, ApplySettings, ShareSettings, ExecutionSettings, PowerSettings)


def option_name(name: str) -> str:
    """Return what a setting is called on the command line, without its dashes.

    Examples
    --------
    >>> option_name("n_patterns"), option_name("drop_missing"), option_name("out")
    ('patterns', 'drop-missing', 'out')
    """
    options = {one.name: one.option for kind in (SimulationSettings, *_ALL) for one in settings_of(kind)}
    return options.get(name) or name.replace("_", "-")


class LossWeights(NamedTuple):
    """Relative importance of the regularisers (the paper's Greek letters; the adversarial term has weight 1).

    Examples
    --------
    >>> LossWeights(orthogonality=0.4).change
    9.0
    """

    change: float = 9.0  # γ: keeps changes small and sparse; above 6, mild patterns are found more surely
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
    correlation: float = 8e-5  # of severities, where they may be correlated; settled with the penalty below


@dataclass(frozen=True)
class Training:
    """The formulas of one update: compiled in, so that a change of one of them compiles a new program.

    Parameters
    ----------
    composition : {"additive", "one_pass", "joint"}
        ``additive``: the network gives the change of one pattern and changes add up. ``one_pass``: it gives the change
        of all patterns together. ``joint``: it gives the transformed brain (the paper's notation).
    updates : {"joint", "separate", "sequential"}
        ``joint``: one gradient of the whole objective for f, g₁ and g₂. ``separate``: g₁ only sees the decomposition
        and g₂ only the reconstruction. ``sequential``: so too, and after f has moved (the paper's Algorithm 1).
    orthogonality : {"batch", "person"}
        Overlap of the patterns' changes averaged over the batch, or of each person's changes (the paper).
    weight_decay : float
        L2 decay inside the gradient of f, g₁ and g₂ (not AdamW).
    gradient_clip : float or None
        Largest gradient norm of f and of the discriminator.
    weight_clip : float
        Weights of f, g₁ and g₂ stay within ± this, which bounds their Lipschitz constants.
    freeze_below : tuple of float or None
        A model past the least number of steps is frozen once its reconstruction and monotonicity losses are below
        these two (the paper's rule), and no checkpoint is chosen; None never freezes.
    latent : {"independent", "sampled", "weighted"}
        Severities of a synthesised patient are independent, or follow a Gaussian copula that is learned: drawn from it
        (``sampled``), or drawn independently and weighted by its density (``weighted``, the authors' later package).
    correlation_penalty : float
        Weight α of the copula's divergence from independence.
    start : {"linear", "random"}
        Each repetition starts from a linear model of its own people, keeps f near it and reads R-indices half with it;
        or from random weights alone, as in the paper.
    """

    composition: Literal["additive", "one_pass", "joint"] = "additive"
    updates: Literal["joint", "separate", "sequential"] = "joint"
    orthogonality: Literal["batch", "person"] = "batch"
    weight_decay: float = 2.5e-3
    gradient_clip: float | None = 100.0
    weight_clip: float = 0.5
    freeze_below: tuple[float, float] | None = None
    latent: Literal["independent", "sampled", "weighted"] = "sampled"
    correlation_penalty: float = 0.01  # twice as much halves what is found of a strong correlation in mild disease
    start: Literal["linear", "random"] = "linear"  # loses half as much where it is hard, in a third of the steps


@dataclass(frozen=True)
class Schedule:
    """How long, on how many people at a time, and when to look.

    Parameters
    ----------
    batch_size : int or None
        People of each group per step; None takes an eighth of the patients (the paper).
    min_steps, max_steps : int
        Training ends with the second; no checkpoint before the first is chosen. Where the second is smaller, there is
        no choice: the last one is taken.
    checkpoint_every : int
        Steps between two looks at the models.
    longest : int
        Steps to which a repetition that failed is trained on before it is replaced; 0: it is replaced at once.
    whitening : float
        0: the discriminator sees regions as they are; 1: decorrelated by the controls' covariance; between: a mixture.
    folds : int
        Each repetition learns from all patients and all but one of so many folds of the controls, who are then scored
        by the repetitions that did not see them; 0: from everybody.
    """

    batch_size: int | None = 32  # a third of the cost of 112, and no less accurate
    # One checkpoint, and no choice: the best of several agrees the better the fewer repetitions there are.
    min_steps: int = 6_000
    max_steps: int = 6_000  # from a linear start; small cohorts overfit after
    checkpoint_every: int = 1_000
    whitening: float = 1.0  # learns sooner, and fewer repetitions fail; the consensus alone gains little
    folds: int = 5  # costs no accuracy
    longest: int = 0


@dataclass(frozen=True)
class Correction:
    """How covariates are corrected for, beyond a straight line for each; all names are covariates.

    Parameters
    ----------
    smooth : sequence of str
        Covariates of numbers that get a curve (a natural cubic spline) instead of a line.
    interactions : sequence of pairs of str
        Covariates whose effects depend on each other.
    proportion : str, optional
        Head size: regions are divided by it.
    site : str, optional
        Where people were measured: the sites' offsets and scales are removed (ComBat).

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
            raise InputError("smooth and interactions should be lists, found text.")
        smooth, pairs = tuple(self.smooth), tuple(tuple(pair) for pair in self.interactions)
        if not all(isinstance(name, str | None) for name in (*smooth, *chain(*pairs), self.proportion, self.site)):
            raise InputError(f"A correction should name covariates by text, found {self!r}.")
        if any(len(set(pair)) != 2 or len(pair) != 2 for pair in pairs):
            raise InputError(f"interactions should be pairs of two covariates, found {self.interactions!r}.")
        if len(set(smooth)) < len(smooth) or len(set(map(frozenset, pairs))) < len(pairs):
            raise InputError("A correction names a covariate or a pair twice: name each once.")
        if self.site is not None and self.site == self.proportion:
            raise InputError(f"{self.site!r} cannot be both head size and site.")
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
    """Return our default: the most accurate and the cheapest of what was measured on ten cohorts."""
    return Preset("fast", schedule=Schedule(longest=30_000))


def paper() -> Preset:
    """Return the paper's section 3.3, with the additive reading of f; λ is its middle value where it is not searched.

    Of the three readings of f, only changes that add up come near the paper's figures with these settings.
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
    """Return our default from random weights, which takes three times the steps."""
    return Preset("blind", training=Training(start="random"), schedule=Schedule(min_steps=20_000, max_steps=20_000))


PRESETS = {"fast": fast, "linear": linear, "blind": blind, "paper": paper, "official": official}


def get_preset(preset: str | Preset) -> Preset:
    """Return a preset by name, or the one given."""
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}: choose one of {', '.join(PRESETS)}.")
    return PRESETS[preset]()


LATENTS = ("independent", "correlated")


def adjusted(
    preset: Preset,
    orthogonality: float | None = None,
    max_steps: int | None = None,
    latent: Literal["independent", "correlated"] | None = None,
) -> Preset:
    """Return a preset with another weight λ, another length or other severities, where they are given."""
    if latent not in (None, *LATENTS):
        raise InputError(f"latent should be one of {', '.join(LATENTS)}, found {latent!r}.")
    if latent is not None and (latent == "independent") != (preset.training.latent == "independent"):
        kind: Literal["independent", "sampled"] = "independent" if latent == "independent" else "sampled"
        preset = replace(preset, training=replace(preset.training, latent=kind))
    if orthogonality is not None:
        if not 0 <= orthogonality < float("inf"):
            raise InputError(f"orthogonality should be a number of 0 or more, found {orthogonality!r}.")
        preset = replace(preset, weights=preset.weights._replace(orthogonality=float(orthogonality)))
    if max_steps is not None:
        if not preset.schedule.max_steps:
            raise InputError(Remedy("max_steps"), f" has no meaning with {preset.name} models: leave it out.")
        if not isinstance(max_steps, Integral) or max_steps < 1:
            raise InputError(f"max_steps should be a whole number of 1 or more, found {max_steps!r}.")
        shortest = min(preset.schedule.min_steps, int(max_steps))
        preset = replace(
            preset, schedule=replace(preset.schedule, max_steps=int(max_steps), min_steps=shortest, longest=0)
        )
    return preset


_LEAST_LEVEL, _LARGEST_LEVEL = 0.5, 0.99  # models know no rarer scores


def check_level(level: float) -> float:
    """Return the level of an interval, which has to lie between 0.5 and 0.99."""
    if not _LEAST_LEVEL <= level <= _LARGEST_LEVEL:
        raise InputError(
            Remedy("level"),
            f" should lie between {_LEAST_LEVEL} and {_LARGEST_LEVEL}, found {level}.\nThe usual is 0.95.",
        )
    return level


def check_scan_noise(noise: Sequence[float], n_patterns: Sequence[int], *, visits: bool) -> None:
    """Refuse scan noise that cannot be, that is not one number or one per pattern, or that nobody's visits need."""
    if not noise:
        return
    if not visits:
        raise InputError(
            Remedy("scan_noise"),
            " is about repeated visits, and there are none.\nName the column of visits with ",
            Remedy("visit"),
            ", or leave it out.",
        )
    if wrong := [sd for sd in noise if not 0 < sd < float("inf")]:
        raise InputError(
            Remedy("scan_noise"),
            f" should be a number above 0, such as 0.04, found {wrong[0]:g}.\n"
            "It is the standard deviation of a severity over scans of a person who has not changed.",
        )
    if len(noise) > 1 and {*n_patterns} != {len(noise)}:
        each = f", or one for each of {'-'.join(map(str, n_patterns))} patterns" if n_patterns else ""
        unknown = "" if n_patterns else " where patterns are counted before training"
        raise InputError(Remedy("scan_noise"), f" should be one number{each}{unknown}, found {len(noise)}.")
