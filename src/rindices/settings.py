"""All settings; each default is defined here and nowhere else.

Commands and functions take `TableSettings`, `SearchSettings`, `OutputSettings`, `ApplySettings` and others. The options
of training itself are in `rindices.presets`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rindices.presets import PRESETS
from rindices.value_kinds import (
    FILE,
    FILES,
    FLAG,
    LIMITS,
    NAMES,
    NUMBER,
    PATH,
    TEXT,
    Names,
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
# Of the verdict.
State = Literal["reproducible", "weak", "confounded", "not reproducible", "no difference", "not testable"]
Basis = Literal["given", "counted", "fit", "agreement", "unsupported"]  # of the number of patterns
AUTO: Literal["auto"] = "auto"  # as many patterns as the look before training finds

# Help shared by commands on training tables and on new people.
_JOIN = "Additional tables with data on the same people, to be joined by id."
_MISSING = "Codes that stand for missing values, separated by commas, e.g. -9999, or icv=0 for one column only."
_DROP_MISSING = "Exclude people with missing or impossible values, and list them."
_COMPLETE_ONLY = (
    "Exclude anyone with a missing regional value. By default, up to 20 % of a person's regional values are imputed."
)
_SHOW_IDS = "Show participants' ids in the report."
_FIGURES = "Folder in which to save every figure in the report as SVG and PNG."
_SCAN_NOISE = (
    "For changes between visits: the sd of severity across repeated scans of a person whose true severity has not "
    "changed. Give one value, or one per pattern."
)
_LIMITS = "Two severity limits that define the subgroups: low is below the first limit, and high is above the second."
_NOISE = numbers("0.04 or 0.03,0.05,0.04")
_EXCLUDE = "Numeric columns that are not regions: names or prefix*, separated by commas, or @file for a file of names."


# Follow-up settings, and what their columns contain.
FOLLOW_UP = {
    "time": "the time of follow-up",
    "event": "the event",
    "entry": "the time of entry",
    "last_without": "the last time without the event",
    "competing": "the competing event",
}


@dataclass(frozen=True)
class FollowUpSettings(TakesPlainValues):
    """The columns of follow-up: in training tables, for new people, and added later.

    In a class of settings, fields of the last base class come first, and its own last: so they do in its options.
    """

    time: str | None = setting(
        None,
        TEXT,
        "Follow-up: column with the time from the scan to the event or to the last contact.",
        label="time",
    )
    event: str | None = setting(
        None,
        TEXT,
        "Follow-up: column coded 1 if the event occurred at that time and 0 if it did not.",
        label="event",
    )
    entry: str | None = setting(
        None,
        TEXT,
        "Follow-up: column with the time at which observation began.",
        unset="0",
        label="entry",
    )
    last_without: str | None = setting(
        None,
        TEXT,
        "Follow-up: column with the last time at which the person was known to be free of the event.",
        unset="event times are exact",
        label="last time without",
    )
    competing: str | None = setting(
        None,
        TEXT,
        "Follow-up: column coded 1 if another event, such as death, came first.",
        label="competing event",
    )


@dataclass(frozen=True)
class ColumnRoles(TakesPlainValues):
    """The roles of the columns of a training table."""

    id: str = setting("participant_id", TEXT, "Column with the participants' ids.", label="id")
    diagnosis: str = setting("diagnosis", TEXT, "Column with the diagnosis labels.", label="diagnosis")
    control: Labels = setting(
        None, NAMES, "Label(s) of controls. CN, HC, control, 0 and similar labels are recognised without this option."
    )
    patients: Labels = setting(
        None,
        NAMES,
        "Label(s) of patients, e.g. MCI,AD. People with other labels are scored, but not used for training.",
    )
    covariates: Names = setting(
        (), NAMES, "Columns whose effects on the regions are removed, e.g. age,sex.", label="covariate"
    )
    smooth: Names = setting(
        (),
        NAMES,
        "Covariates whose effects are modelled as smooth curves rather than straight lines, e.g. age.",
        label="curve",
    )
    interactions: Names = setting((), NAMES, "Interactions between covariates, e.g. age:sex.")
    proportion: str | None = setting(
        None, TEXT, "Column with the head size by which regions are divided, e.g. icv.", label="head size"
    )
    site: str | None = setting(
        None,
        TEXT,
        "Column with the site, whose effects on the mean and spread of each region are removed (ComBat).",
        label="site",
    )
    small_sites: Literal["refuse", "drop"] = setting(
        "refuse",
        choice("refuse", "drop"),
        "What to do about sites with fewer than 5 controls: reject the table, or drop everyone from those sites.",
    )
    visit: str | None = setting(None, TEXT, "Column that distinguishes a person's visits.", label="visit")
    clinical: Names = setting(
        (),
        NAMES,
        "Clinical scores to test for association with the severities: names of columns, e.g. mmse,apoe4, or a table to "
        "be joined by id.",
        label="clinical score",
    )


@dataclass(frozen=True)
class TableSettings(FollowUpSettings, ColumnRoles):
    """The role of each column of a table, and which people are used: ``[table]`` in run.toml.

    Names may be given as text separated by commas, a sequence, or a file with one name per line; `features`,
    `exclude` and `clinical` also accept patterns such as ``l*``. Interactions are written ``age:sex`` (`Correction`).
    """

    join: Names = setting((), FILES, _JOIN)
    dictionary: str | None = setting(None, FILE, "Data dictionary for the table: CSV, TSV, Excel or BIDS JSON.")
    missing: Names = setting((), NAMES, _MISSING)
    drop_missing: bool = setting(False, FLAG, _DROP_MISSING)
    drop_outliers: bool = setting(False, FLAG, "Exclude outliers, and list them.")
    features: Names = setting(
        None, NAMES, "Regions: names, prefix*, or a file of names.", unset="all other numeric columns"
    )
    exclude: Names = setting((), NAMES, _EXCLUDE, label="no role")
    unit: str | None = setting(None, TEXT, "Unit of the regional values, e.g. mL. It is stored with the model.")
    complete_only: bool = setting(False, FLAG, _COMPLETE_ONLY)


@dataclass(frozen=True)
class SearchSettings(TakesPlainValues):
    """Training settings: ``[training]`` in run.toml. The names are those of `rindices.SurrealGANSearch`."""

    n_patterns: tuple[int, ...] | Literal["auto"] = setting(
        AUTO,
        counts(AUTO),
        "Number of disease patterns: auto (estimated before training), a number, or several to choose from, e.g. 2-5.",
        option="patterns",
        label="Patterns",
        resumes="more",
        always=True,
    )
    orthogonality: tuple[float, ...] | None = setting(
        None,
        numbers("0.8 or 0.2,0.4,0.8"),
        "Weight that keeps the patterns distinct: a number, or several to choose from, e.g. 0.2,0.4,0.8.",
        unset="by preset",
        resumes="each",
    )
    # Fewer are cheaper; ten make the agreement, and with it the verdict, stable.
    n_repetitions: int = setting(
        10,
        whole(1),
        "Number of training repetitions, which are compared and averaged.",
        option="repetitions",
        label="Repetitions",
        resumes="more",
        always=True,
    )
    exhaustive: bool = setting(
        False,
        FLAG,
        "Train every combination of settings with all repetitions. By default, only promising combinations are trained "
        "in full.",
        resumes="more",
    )
    preset: str = setting(
        "fast",
        choice(*PRESETS),
        "How patterns are learned: fast (networks that start from a linear model), linear (linear models alone, in "
        "seconds), blind (networks that start from random weights), paper (the paper's settings) or official "
        "(those of the authors' package).",
        option="preset,method",
    )
    max_steps: int | None = setting(
        None, whole(1), "Maximum number of training steps.", option="steps", unset="by preset", label="Steps"
    )
    latent: Literal["independent", "correlated"] | None = setting(
        None,
        choice("independent", "correlated"),
        "Treat the severities of different patterns as independent or as correlated.",
        unset="by preset",
    )
    random_state: int = setting(
        0, whole(0, 2**31 - 1), "Random seed: the same seed gives the same result.", option="seed", always=True
    )


@dataclass(frozen=True)
class OutputSettings(TakesPlainValues):
    """What a run writes in addition to its tables."""

    report: bool = setting(True, FLAG, "Write report.html.")
    limits: tuple[float, float] = setting((0.4, 0.7), LIMITS, _LIMITS, option="subgroup-limits")  # the paper's
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)
    figures: Path | None = setting(None, PATH, _FIGURES)
    bids: bool = setting(False, FLAG, "Also write the scores as a BIDS derivative (r_indices.tsv and .json).")
    level: float = setting(
        0.95,
        NUMBER,
        "Level of the intervals: the proportion of true severities that they should contain.",
    )
    scan_noise: tuple[float, ...] = setting((), _NOISE, _SCAN_NOISE, unset="from controls with repeated visits")


@dataclass(frozen=True)
class NewColumns(TakesPlainValues):
    """The roles of the columns of a table of new people."""

    id: str | None = setting(None, TEXT, "Column with the participants' ids.", unset="as in training")
    visit: str | None = setting(None, TEXT, "Column that distinguishes a person's visits.")
    exclude: Names = setting((), NAMES, _EXCLUDE)
    clinical: Names = setting((), NAMES, "For the report: columns that contain clinical scores.")


@dataclass(frozen=True)
class ApplySettings(FollowUpSettings, NewColumns):
    """How a table of new people is read for a model; settings not given are those of the training table."""

    join: Names = setting((), FILES, _JOIN)
    missing: Names = setting((), NAMES, _MISSING)
    drop_missing: bool = setting(False, FLAG, _DROP_MISSING)
    complete_only: bool = setting(False, FLAG, _COMPLETE_ONLY)
    new_sites: Literal["refuse", "uncorrected"] = setting(
        "refuse",
        choice("refuse", "uncorrected"),
        "What to do about people from sites unknown to the model: reject the table, or score them without "
        "correcting for site.",
    )


@dataclass(frozen=True)
class LaterScores(TakesPlainValues):
    """A table of scores that is added to a run, and the scores that are removed from it."""

    clinical: Path | None = setting(
        None, PATH, "Table of clinical scores or follow-up data, which are joined by id and become part of the run."
    )
    id: str = setting(TableSettings.id, TEXT, "Column with the ids in the table of clinical scores.")
    visit: str = setting(
        "visit", TEXT, "Column with the visits in the table of clinical scores, if the run has visits."
    )
    missing: Names = setting((), NAMES, _MISSING)
    remove_scores: Names = setting((), NAMES, "Clinical scores to remove from the run, separated by commas.")


@dataclass(frozen=True)
class ReportSettings(FollowUpSettings, LaterScores):
    """How the report of a run is rewritten; settings not given are as before."""

    limits: tuple[float, float] | None = setting(None, LIMITS, _LIMITS, option="subgroup-limits", unset="as before")
    scan_noise: tuple[float, ...] = setting((), _NOISE, _SCAN_NOISE, unset="as before")
    atlas: Path | None = setting(None, PATH, "Label image (NIfTI) on which the patterns are shown.")
    atlas_table: Path | None = setting(
        None, PATH, "Table that gives the region of each label in the image, with the columns label and region."
    )
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)
    figures: Path | None = setting(None, PATH, _FIGURES)


@dataclass(frozen=True)
class ImageSettings(TakesPlainValues):
    """How brain images of the people of a run are compared."""

    mask: Path | None = setting(None, PATH, "Mask of the voxels to test.", unset="the standard brain")
    regressions: bool = setting(False, FLAG, "Also regress the images of all patients on each severity.")
    resample: bool = setting(
        False, FLAG, "Resample images that are on a different grid. Without this option, such images are rejected."
    )
    limits: tuple[float, float] | None = setting(None, LIMITS, _LIMITS, option="subgroup-limits", unset="as in the run")
    show_ids: bool = setting(False, FLAG, _SHOW_IDS)


@dataclass(frozen=True)
class ShareSettings:
    """Information for a model card that a run does not contain; what is not given is omitted."""

    disease: str = setting("", TEXT, "For the card: the patients' disease.")
    atlas: str = setting("", TEXT, "For the card: the atlas that defines the regions.")
    segmentation: str = setting("", TEXT, "For the card: the segmentation software and its version.")
    licence: str = setting("other", TEXT, "For the card: the licence, e.g. cc-by-4.0, mit or other.")


@dataclass(frozen=True)
class GatherSettings(TakesPlainValues):
    """What is gathered from the folder of a segmentation program."""

    measures: tuple[str, ...] = setting(
        ("volume",),
        some_of("volume", "thickness", "area"),
        "FreeSurfer: which measures of cortical regions to gather (volume, thickness, area).",
        label="Measures",
    )
    atlas: str | None = setting(
        None,
        choice("dk", "dkt", "destrieux"),
        "FreeSurfer: cortical parcellation (dk, dkt or destrieux).",
        unset="dk, or whichever is available",
        label="Atlas",
    )
    longitudinal: bool = setting(
        False, FLAG, "Use the visits from FreeSurfer's longitudinal stream (SCAN.long.TEMPLATE).", label="Longitudinal"
    )
    leave_out: bool = setting(False, FLAG, "Exclude duplicate and incomplete scans.", label="Leave people out")
    jobs: int = setting(4, whole(1, 64), "Number of files to read in parallel.")


@dataclass(frozen=True)
class ExecutionSettings:
    """Where a run is computed, and what is printed meanwhile; no result depends on these settings."""

    config: Path | None = setting(None, PATH, "Repeat the run described in this run.toml.")
    workers: int | None = setting(None, whole(1), "Number of training processes.", unset="threads of one process")
    dask: str | None = setting(None, TEXT, "Train on a Dask cluster: tcp://HOST:PORT, or local.")
    models_per_chunk: int | None = setting(
        None, whole(1), "Number of models to train together.", unset="chosen for the device"
    )
    overwrite: bool = setting(False, FLAG, "Replace an earlier run in the folder.")
    quiet: bool = setting(False, FLAG, "Print errors only.")
    log_json: bool = setting(False, FLAG, "Print one JSON object per line instead of sentences.")


@dataclass(frozen=True)
class SimulationSettings:
    """A simulated cohort with known patterns; see `rindices.simulate_cohort`."""

    n_controls: int | None = setting(None, whole(), "Number of controls.", option="controls", unset="492")
    n_patients: int | None = setting(None, whole(), "Number of patients.", option="patients", unset="900")
    n_patterns: int = setting(3, whole(), "Number of disease patterns.", option="patterns")
    severities: str = setting(
        "uniform",
        TEXT,
        "Distribution of the severities: uniform, mild (Beta(1,3)), severe (Beta(3,1)), absent (half of the "
        "patients do not have a given pattern), or a table (.csv) from which rows are drawn, with severities from 0 to "
        "1 in the columns s1, s2 ...",
    )
    severity_correlation: str | None = setting(
        None,
        TEXT,
        "Correlation between the normal scores of the severities: a number, or a file with a matrix.",
        option="correlation",
        unset="none",
    )
    severity_age: float = setting(0.0, NUMBER, "Correlation between the normal scores of age and of each severity.")
    spread: float = setting(
        1.0,
        NUMBER,
        "Variation among healthy brains, relative to the reference population; 1.7 makes the task as hard as "
        "in the paper.",
    )
    n_visits: int = setting(1, whole(), "Number of visits per person, one year apart.", option="visits")
    progression: float = setting(
        0.1,
        NUMBER,
        "With several visits: mean yearly increase in each severity. Individual increases range from 0 to twice "
        "the mean.",
    )
    scan_noise: float = setting(
        0.2, NUMBER, "With several visits: sd of the scan noise, relative to the sd between people."
    )
    controls: Path | None = setting(
        None, PATH, "Use your own table of healthy people instead of simulated ones.", option="own-controls"
    )
    seed: int = setting(0, whole(0, 2**31 - 1), "Random seed: the same seed gives the same result.")


@dataclass(frozen=True)
class PowerSettings(TakesPlainValues):
    """The size of a planned study."""

    n_controls: int = setting(100, whole(1), "Number of controls.", option="controls")
    n_patients: int = setting(100, whole(1), "Number of patients.", option="patients")
    n_regions: int = setting(68, whole(1), "Number of regions.", option="regions")
    like: Path | None = setting(
        None, PATH, "Simulate studies from your own table of healthy people, using its regions (takes several minutes)."
    )
    figure: Path | None = setting(
        None, PATH, "Also plot the probability of finding the patterns against study size (.png or .svg)."
    )


def option_name(name: str) -> str:
    """Return the name of a setting on the command line, without its dashes.

    Examples
    --------
    >>> option_name("n_patterns"), option_name("drop_missing"), option_name("out")
    ('patterns', 'drop-missing', 'out')
    """
    kinds = (SimulationSettings, TableSettings, SearchSettings, OutputSettings, ApplySettings, ShareSettings)
    options = {one.name: one.option for kind in (*kinds, ExecutionSettings, PowerSettings) for one in settings_of(kind)}
    return options.get(name) or name.replace("_", "-")
