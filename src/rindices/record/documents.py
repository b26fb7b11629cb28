"""The two documents of a run folder: ``run.toml``, the settings, and ``summary.json``, the outcome.

Both are read strictly: wrong types, unknown names and NaN are refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from rindices.files import write_text
from rindices.judging import Evidence, Separated
from rindices.presets import Correction
from rindices.problems import Command, InputError, Message, Remedy, counted, listed
from rindices.settings import Basis, OutputSettings, SearchSettings, State, TableSettings
from rindices.value_kinds import settings_of

SUMMARY, SETTINGS = "summary.json", "run.toml"
DONE: Literal["done"] = "done"
FAILED: Literal["failed"] = "failed"
UNFINISHED: Literal["unfinished"] = "unfinished"
_AGAIN = Message(
    "Provide the folder of a finished run, or repeat the run: ",
    Command("rindices fit ... ", "`fit_table` with "),
    Remedy("overwrite", True),
    ".",
)
_GIVE_SETTINGS = (
    "Provide the run.toml from a run folder. If the file was edited, correct it; if it was written by another "
    "version of rindices, use that version (see [versions])."
)
_TROUBLES = {"extra_forbidden": "is not known", "unexpected_keyword_argument": "is not known"} | dict.fromkeys(
    ("missing", "missing_argument", "missing_keyword_only_argument"), "is missing"
)
# Settings by which a run can be extended later: no trained model depends on them.
MORE = tuple(one.name for one in settings_of(SearchSettings) if one.resumes == "more")
# Settings that a chunk of models records itself, and those that no model depends on.
_OF_A_MODEL = tuple(one.name for one in settings_of(SearchSettings) if one.resumes != "same")


def damaged(path: Path, trouble: str) -> InputError:
    """Return the error for an unusable file of a run; `trouble` is its predicate: "is missing", "has ..."."""
    return InputError(f"In {path.parent}, {path.name} {trouble}. ", _AGAIN)


Plain = str | int | float | bool | list[str] | list[int] | list[float] | None  # a value of a run.toml


class Document(BaseModel):
    """What is read from a file: nothing extra, nothing that is not a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


@dataclass(frozen=True)
class RunTable(TableSettings):
    """``[table]`` of a run.toml: how a table was read, its path, and the checksum of its content."""

    path: str = field(kw_only=True)
    sha256: str | None = None


class RunSettings(Document):
    """``run.toml``: enough to run the same again.

    Examples
    --------
    >>> settings = RunSettings(table=RunTable(path="people.csv"), training=SearchSettings())
    >>> settings.text().splitlines()[-3:], settings.sections()["table"]["path"]
    (['# max_steps: not given', '# latent: not given', 'random_state = 0'], 'people.csv')
    """

    command: dict[str, str] = {}
    table: RunTable
    training: SearchSettings
    versions: dict[str, str] = {}
    device: dict[str, str] = {}
    plan: dict[str, int] = {}

    def sections(self) -> dict[str, dict[str, Plain]]:
        """Return the sections as they are written; settings not given are None."""
        settings = self.model_dump(exclude_unset=True) | {
            "table": {"path": self.table.path} | asdict(self.table),
            "training": asdict(self.training),
        }
        written: dict[str, dict[str, Plain]] = json.loads(json.dumps(settings, default=str))
        return {name: written[name] for name in RunSettings.model_fields if name in written}

    def text(self) -> str:
        """Return the content of the file; settings not given become comments."""
        lines = []
        for section, values in self.sections().items():
            # TOML strings, numbers, booleans and lists of these are written as in JSON, except for one character.
            written = {
                name: json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f") for name, value in values.items()
            }
            said = [f"{name} = {text}" if text != "null" else f"# {name}: not given" for name, text in written.items()]
            lines += [f"[{section}]", *said, ""]
        return "\n".join(lines)

    def _compared(self) -> dict[tuple[str, str], Plain]:
        """Return all that distinguishes runs, by section and name; the same table may be at another path."""
        return {
            (section, name): value
            for section, of in self.sections().items()
            for name, value in of.items()
            if section not in ("command", "plan") and (section, name) != ("table", "path")
        }

    def changes(self, later: RunSettings) -> dict[tuple[str, str], tuple[Plain, Plain]]:
        """Return the settings that differ in another run, by section and name: the value here, and there."""
        here, there = self._compared(), later._compared()
        values = {key: (here.get(key), there.get(key)) for key in {**here, **there}}
        return {key: both for key, both in values.items() if both[0] != both[1] and any(both)}

    def fingerprint(self) -> str:
        """Return the checksum of all that a trained model depends on, except settings recorded with the model."""
        what = {" ".join(key): value for key, value in self._compared().items() if value and key[1] not in _OF_A_MODEL}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def read_settings(path: Path) -> RunSettings:
    """Read a ``run.toml``; raise if it is invalid."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        settings = RunSettings.model_validate_json(json.dumps(document, default=str), strict=True)
    except OSError as error:
        raise InputError(f"The file {path} cannot be read ({error.strerror}).\n{_GIVE_SETTINGS}") from error
    except ValidationError as error:
        raise InputError(f"In {path}, {in_words(error)}.\n{_GIVE_SETTINGS}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read as run settings: {error}.\n{_GIVE_SETTINGS}") from error
    unsaid = [one.name for one in settings_of(SearchSettings) if one.always and one.name not in document["training"]]
    if unsaid:
        raise InputError(f"{path} does not contain {listed(unsaid, joiner=' and ')}.\n{_GIVE_SETTINGS}")
    return settings


def in_words(error: ValidationError) -> str:
    """Return what is wrong with a document: the name, what it should be, and what was found."""
    first = error.errors()[0]
    name = " of ".join(repr(str(part)) for part in reversed(first["loc"]) if not isinstance(part, int))
    wrong = f"{first['msg'].replace('Input should', 'should')}, but got {first['input']!r}"
    return f"{name} {_TROUBLES.get(first['type'], wrong)}"


def _known(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _complete(columns: tuple[str, ...], rows: Rows) -> Rows:
    lacking = [name for name in columns for row in rows if name not in row]
    if lacking:
        raise ValueError(f"has a row without {lacking[0]!r}")
    return rows


Number = Annotated[float | None, BeforeValidator(_known)]  # NaN and infinity become null
Rows = tuple[dict[str, Annotated[bool | int | float | str | None, BeforeValidator(_known)]], ...]  # a small table
_BALANCE = ("variable", "kind", "controls", "patients", "difference", "p", "p_corrected", "imbalanced")
_RUNNERS_UP = ("n_patterns", "orthogonality", "pattern_agreement", "n_models")


class Search(Document):
    """What was tried, and why one setting was chosen."""

    n_patterns: tuple[int, ...] = ()
    orthogonality: tuple[float, ...] = ()
    exhaustive: bool = True
    first_stage_repetitions: int = 0
    models_trained: int = 0
    models_exhaustive: int = 0
    runners_up: Annotated[Rows, AfterValidator(partial(_complete, _RUNNERS_UP))] = ()
    reason: str = ""
    basis: Basis = "given"


@dataclass(frozen=True)
class Corrected(Correction):
    """How covariates and sites were corrected for, and how many sites there were."""

    n_sites: int | None = None


class Recovery(Document):
    """How well the known severities of a simulated cohort were recovered, pattern by pattern that has one."""

    pattern_concordance: float
    per_pattern: tuple[float, ...]
    matched_truth: tuple[str, ...]
    matched_patterns: tuple[int, ...]
    n_known: int

    def of(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the patterns that have a counterpart in the truth."""
        return scores.iloc[:, [number - 1 for number in self.matched_patterns]]


class Summary(Document):
    """``summary.json``: how far a run got, and what came of it.

    A run that failed or is not finished says little. Runners-up are settings that were tried in full and not chosen;
    `balance` compares controls and patients in each variable.

    Examples
    --------
    >>> Summary(status="unfinished").model_dump_json(exclude_unset=True)
    '{"status":"unfinished"}'
    """

    status: Literal["done", "failed", "unfinished"]
    failure: str = ""
    applied: bool = False
    model: dict[str, str] = {}  # file and sha256 of a model that was applied to new people
    n_controls: int = 0
    n_patients: int = 0
    n_other: int = 0
    n_features: int = 0
    source: str = ""
    source_doi: str | None = None
    input_sha256: str | None = None
    control_labels: tuple[str, ...] = ()
    patient_labels: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    clinical: tuple[str, ...] = ()
    follow_up: dict[str, str] = {}  # columns of the time, the event and further details
    visits: bool = False
    years_from: str = ""  # what the time between visits is read from
    n_read: int | None = None
    excluded: dict[str, int] = {}
    n_patterns: int = 0
    patterns_chosen_from_data: bool = False
    correction: Corrected = Corrected()
    weights: dict[str, float] = {}
    preset: str = ""
    repetitions: int = 0
    members_used: int = 0
    members_left_out: Annotated[Rows, AfterValidator(partial(_complete, ("member", "reason")))] = ()
    step: int | None = None
    agreement: dict[str, Number] = {}  # of the repetitions; null with a single one
    linear_makes_people: bool = False  # f changed brains even at severity 0
    latent: str = "independent"
    correlation: tuple[tuple[float, ...], ...] | None = None
    verdict: State | None = None  # None: not judged
    supported: int | None = None  # patterns of an applied model that its training supports
    reliable: bool | None = None
    reliable_reason: str = ""
    evidence: Evidence | None = None
    separation: Separated | None = None
    search: Search = Search()
    balance: Annotated[Rows, AfterValidator(partial(_complete, _BALANCE))] | None = None
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    versions: dict[str, str] = {}
    device: str = ""
    models_per_chunk: int | None = None
    peak_device_memory: int | None = None
    unit: str | None = None
    resumed: bool = False
    finished: str | None = None  # the date
    region_names: dict[str, str] = {}  # full names from a data dictionary
    training: dict[str, tuple[tuple[float, ...], ...]] = {}  # centiles of severities in training, by group
    variables: dict[str, Literal["number", "category"]] = {}
    subgroup_limits: tuple[float, float] = OutputSettings.limits
    level: float = OutputSettings.level
    scan_noise: tuple[float, ...] = OutputSettings.scan_noise
    reference: tuple[tuple[float, float, float], ...] | None = None  # held-out controls: 5th, 50th, 95th centile
    model_sha256: str | None = None
    recovery: Recovery | None = None
    seconds: float | None = None

    @property
    def n_supported(self) -> int | None:
        """The number of patterns that held-out people support; None if unknown."""
        again = self.supported if self.evidence is None else self.evidence.found_again
        return None if again is None else min(self.n_patterns, max(1, again))

    @property
    def verdict_words(self) -> tuple[str, str]:
        """The verdict in a sentence, and the advice that follows from it; the reason goes between them."""
        return verdict_words(self.verdict, self.n_patterns, self.n_supported)

    def updated(self, **changes: object) -> Summary:
        """Return a copy with these changes, validated like a summary that is read."""
        return Summary.model_validate(self.model_dump(exclude_unset=True) | changes)


def read_summary(folder: Path) -> Summary:
    """Read the summary of a run; raise an error with the remedy if it is missing or damaged."""
    path = folder / SUMMARY
    try:
        return Summary.model_validate_json(path.read_bytes(), strict=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise damaged(path, "is missing") from error
    except ValidationError as error:
        raise damaged(path, f"cannot be used: {in_words(error)}") from error


def write_summary(folder: Path, summary: Summary) -> None:
    """Write the summary of a run, without fields that were not set."""
    write_text(folder / SUMMARY, summary.model_dump_json(indent=2, exclude_unset=True) + "\n")


def verdict_words(state: State | None, n_patterns: int, n_supported: int | None = None) -> tuple[str, str]:
    """Return a verdict in a sentence, and the advice that follows from it; see `Summary.verdict_words`."""
    headline, advice = SENTENCES[state]
    number = "The pattern is" if n_patterns == 1 else "The patterns are"
    number = number if n_supported is None else f"At least {counted(n_supported, 'pattern is', 'patterns are')}"
    return headline.replace("The patterns are", number), advice


# The verdict in a sentence, and the advice; the reason goes between them. None: not judged.
SENTENCES: dict[State | None, tuple[str, str]] = {
    "reproducible": ("The patterns are reproducible.", ""),
    "weak": (
        "The patterns are reproducible, but weak.",
        "Use them to compare groups; an individual's severity is not informative.",
    ),
    "confounded": (
        "The patterns are reproducible, but the groups also differ in another variable.",
        "Do not interpret them as effects of the disease until this explanation has been ruled out.",
    ),
    "not reproducible": (
        "The groups differ, but the patterns are not reproducible.",
        "Do not interpret individual patterns.",
    ),
    "no difference": ("No difference between patients and controls was found.", "Do not interpret these patterns."),
    "not testable": (
        "Differences between the groups could not be tested.",
        "Do not interpret the patterns until the problem is resolved.",
    ),
    None: ("The reproducibility of the patterns was not assessed.", ""),
}
