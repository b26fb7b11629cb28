"""The tables of a run folder: one writer, one reader, and one check that they belong together."""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from rindices.files import plain, plain_text, write_csv
from rindices.problems import InputError, counted
from rindices.record.documents import (
    DONE,
    SETTINGS,
    RunSettings,
    Summary,
    damaged,
    read_settings,
    read_summary,
)
from rindices.record.run_folder import (
    ANALYSIS,
    MODEL,
    PATTERNS,
    PEOPLE,
    R_INDICES,
    SELECTION,
    TRUTH,
    VARIABLES,
    VOXELWISE,
    Z_SCORES,
)

AGREEMENTS = ("pattern_agreement", "dimension_correlation", "difference_correlation")
GROUPS = {"control": "n_controls", "patient": "n_patients", "other": "n_other"}
_ID, _VISIT = "participant_id", "visit"
_WHO = (_ID, _VISIT)
# Text columns in any of our own tables; all others are numbers or booleans.
_TEXT = frozenset({*_WHO, "diagnosis", "group", "flags", "reason", "site", "region", "people", "variable", "level"}) | {
    *("kind", "statistic", "note", "remark", "rule", "t_map", "q_map", "far_in", "source", "random_effects"),
    *("measure", "disorder"),
}
# Required columns of each analysis; a missing or empty file means that the analysis was not possible.
_ANALYSES: dict[str, tuple[str, ...]] = {
    "flow": ("site", "group", "read", "used"),
    "associations": (
        *("people", "pattern", "variable", "level", "statistic", "n", "coefficient", "low", "high", "p", "q"),
        *("partial", "partial_low", "partial_high", "partial_q", "note"),
        *("whole_brain", "whole_brain_q", "beyond", "beyond_low", "beyond_high", "beyond_q"),
    ),
    "group_check": (
        *("pattern", "variable", "statistic", "coefficient", "q", "coefficient_patients", "q_patients"),
        *("imbalanced", "removed", "difference", "adjusted", "explained", "remark"),
    ),
    "group_effects": ("region", "n_controls", "n_patients", "effect", "low", "high", "t", "p", "q"),
    "subgroup_sizes": ("pattern", "level", "rule", "n", "used", "note"),
    "subgroups": ("pattern", "level", "region", "n", "effect", "low", "high", "t", "p", "q"),
    "dose_response": ("pattern", "region", "low", "high", "n", "severity", "mean", "mean_low", "mean_high"),
    "change": (_ID, "group", "n_visits", "years"),
    "change_summary": ("group", "pattern", "n", "start", "mean", "low", "high", "p", "q", "random_effects", "note"),
    "scan_noise": ("pattern", "source", "n_controls", "years", "sd"),
    "prognosis": (
        *("pattern", "n", "n_events", "kind", "hazard_ratio", "low", "high", "p", "q", "p_proportional"),
        *("concordance", "base", "gain", "gain_corrected", "note"),
    ),
    "survival_curves": ("pattern", "third", "n", "time", "at_risk", "events", "incidence", "low", "high", "shown"),
    "resemblance": ("pattern", "measure", "disorder", "n_regions", "r", "p", "p_corrected", "chance", "beyond"),
    "drivers": (_ID, "pattern", "rank", "region", "change_sd", "z"),
    "severities": ("region", "pattern", "severity", "change_sd"),
}
_COMPARISONS: dict[str, tuple[str, ...]] = {
    "comparisons": ("pattern", "level", "rule", "n_patients", "n_significant", "t_map", "q_map", "note"),
    "clusters": ("pattern", "level", "x", "y", "z", "peak_t", "peak_q", "size_mm3"),
}


@dataclass(frozen=True, eq=False)
class Results:
    """Tables of people, with the same rows in the same order, and the patterns.

    Attributes
    ----------
    r_indices
        participant_id, visit, years and first_visit (with repeated visits), diagnosis, group, r1 …, r1_sd …, severity1
        …, and if known severity1_low …, severity1_high …, centile1 …, r1_networks …; flags.
    z_scores
        The regions: corrected values in sd of controls.
    variables
        Covariates, background and clinical scores under the user's names; numbers as float64, categories as text.
    patterns
        The change of each region with each pattern.
    people
        The record of every row that was read, with who was left out and why.
    gaps
        Which z scores were imputed; None if all were measured, and unknown (None) for a run read from its folder.
    """

    r_indices: pd.DataFrame
    z_scores: pd.DataFrame
    variables: pd.DataFrame
    patterns: pd.DataFrame
    people: pd.DataFrame
    gaps: np.ndarray | None = None

    @property
    def score_names(self) -> list[str]:
        """severity1, severity2 ..."""
        return list(map(str, self.r_indices.filter(regex=r"^severity\d+$")))

    @property
    def scores(self) -> pd.DataFrame:
        """Severities."""
        return self.r_indices[self.score_names]

    @property
    def first_visit(self) -> np.ndarray:
        """True in one row per person, the first visit."""
        return self.r_indices.get("first_visit", pd.Series(True, self.r_indices.index)).to_numpy(dtype=bool)

    @property
    def first_visits(self) -> pd.DataFrame:
        """R-indices of the first visit of each person."""
        return self.r_indices[self.first_visit]

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each variable is a number or a category, which a CSV file does not record."""
        return {
            str(name): "number" if self.variables[name].dtype.kind == "f" else "category" for name in self.variables
        }


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run, as read from its folder.

    Attributes
    ----------
    folder
        The run folder.
    summary, settings
        ``summary.json`` and ``run.toml``; settings are None if an existing model was applied.
    results
        The tables of people and patterns.
    selection
        Agreement of each setting that was tried; None if none was tried.
    truth
        True severities of a simulated cohort, with the same rows as the R-indices.
    analyses
        The tables in ``analysis`` and ``voxelwise`` by name, if they exist and have rows.
    """

    folder: Path
    summary: Summary
    settings: RunSettings | None
    results: Results
    selection: pd.DataFrame | None
    truth: pd.DataFrame | None
    analyses: Mapping[str, pd.DataFrame]

    @property
    def adjusted(self) -> list[str]:
        """Covariates for which analyses are adjusted: those that vary, unlike a single site for example."""
        same = self.results.variables.nunique() == 1
        return [name for name in self.summary.covariates if not same.get(name, False)]


def sha256_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_tables(
    folder: Path,
    results: Results,
    analyses: Mapping[str, pd.DataFrame],
    *,
    selection: pd.DataFrame | None = None,
    truth: pd.DataFrame | None = None,
) -> None:
    """Write the tables of a run; remove earlier analyses that are no longer among them."""
    who = results.r_indices[[name for name in _WHO if name in results.r_indices]].reset_index(drop=True)
    tables = {R_INDICES: results.r_indices, PATTERNS: results.patterns, PEOPLE: results.people}
    for name, table in ((Z_SCORES, results.z_scores), (VARIABLES, results.variables)):
        # A region may have the name of one of our columns: the id beside it must remain the id.
        others = table.reset_index(drop=True).drop(columns=[column for column in who if column in table])
        tables[name] = pd.concat([who, others], axis=1)
    tables |= {name: table for name, table in ((SELECTION, selection), (TRUTH, truth)) if table is not None}
    tables |= {f"{ANALYSIS}/{name}.csv": table for name, table in analyses.items()}
    for name, table in tables.items():
        write_csv(table, folder / name, digits=4 if name == Z_SCORES else 6)
    for path in (folder / ANALYSIS).glob("*.csv"):
        if path.stem not in analyses:
            path.unlink()


def read_run(folder: Path, summary: Summary | None = None) -> Run:
    """Read all of a finished run.

    Parameters
    ----------
    folder
        A run folder.
    summary
        The contents of ``summary.json``, if it has not been written yet.

    Raises
    ------
    InputError
        If the run is not finished, or a file is missing, damaged or from another run.
    """
    summary = summary or read_summary(folder)
    if summary.status != DONE:
        raise InputError(
            f"The run in {folder} is not finished (status: {summary.status}).\nRun its command again (models "
            "already trained are kept), or provide the folder of a finished run."
        )
    numbers = range(1, summary.n_patterns + 1)
    scores = [name.format(number) for name in ("r{}", "r{}_sd", "severity{}") for number in numbers]
    # Only the summary records which variables are categories: a category may be named 1.
    figures = {name: float for name, kind in summary.variables.items() if kind == "number"}
    variables = _read(folder / VARIABLES, (_ID, *summary.variables), {*_WHO, *summary.variables} - {*figures})
    own_variables = variables[[*summary.variables]]
    z_scores = _read(folder / Z_SCORES, (_ID,), _WHO)
    results = Results(
        r_indices=_read(folder / R_INDICES, (_ID, "diagnosis", "group", *scores)),
        z_scores=z_scores.drop(columns=[*_WHO], errors="ignore"),
        variables=own_variables.mask(own_variables == "").astype(figures),
        patterns=_read(folder / PATTERNS, ("region", "pattern", "change_sd", "change_percent", "spread_sd")),
        people=_read(folder / PEOPLE, (_ID, "diagnosis", "group", "used", "reason", "distance", "flags")),
    )
    used = results.people["used"].astype(bool)
    ids = {Z_SCORES: z_scores[_ID], VARIABLES: variables[_ID], PEOPLE: results.people[_ID][used]}
    _check_together(folder, summary, results, ids)
    return Run(
        folder=folder,
        summary=summary,
        settings=None if summary.applied else read_settings(folder / SETTINGS),
        results=results,
        selection=None if summary.applied else _selection(folder / SELECTION, summary.n_patterns),
        truth=_truth(folder / TRUTH, summary, results.r_indices[_ID]),
        analyses=_present_tables(folder / ANALYSIS, _ANALYSES) | _present_tables(folder / VOXELWISE, _COMPARISONS),
    )


def _read(path: Path, required: Sequence[str], text: Collection[str] = _TEXT) -> pd.DataFrame:
    """Read a table in which a region may be named "NA" and a participant "007"."""
    try:
        names = pd.read_csv(path, nrows=0, encoding="utf-8").columns
        as_text = {name: str for name in names if plain_text(name) in text}
        empty = {name: [""] for name in names if name not in as_text}
        table = plain(pd.read_csv(path, dtype=as_text, keep_default_na=False, na_values=empty, encoding="utf-8"))
    except FileNotFoundError as error:
        raise damaged(path, "is missing") from error
    except (OSError, ValueError) as error:
        raise damaged(path, f"is not a table ({str(error).strip()})") from error
    lacking = [name for name in required if name not in table]
    if lacking:
        raise damaged(path, f"has no column {lacking[0]!r}")
    words = [name for name in table if name not in text and not is_numeric_dtype(table[name])]
    if words and len(table):
        raise damaged(path, f"has a column {words[0]!r} that should contain numbers only")
    return table


def _present_tables(folder: Path, required: Mapping[str, tuple[str, ...]]) -> dict[str, pd.DataFrame]:
    paths = {name: folder / f"{name}.csv" for name in required}
    tables = {name: _read(path, required[name]) for name, path in paths.items() if path.is_file()}
    return {name: table for name, table in tables.items() if len(table)}


def _selection(path: Path, n_patterns: int) -> pd.DataFrame:
    agreements = (f"{name}{end}" for name in AGREEMENTS for end in ("", "_low", "_high"))
    table = _read(path, ("n_patterns", "orthogonality", "step", "n_models", "best", "chosen", *agreements))
    chosen = table[table["chosen"].astype(bool)]
    if len(chosen) != 1 or chosen["n_patterns"].iloc[0] != n_patterns:
        raise damaged(path, f"should have exactly one row marked as chosen, with {n_patterns} patterns")
    return table


def _truth(path: Path, summary: Summary, people: pd.Series) -> pd.DataFrame | None:
    if summary.recovery is None:
        return None
    names = list(summary.recovery.matched_truth)
    severities = _read(path, (_ID, *names)).drop_duplicates(_ID).set_index(_ID)
    return severities[names].reindex(people).reset_index(drop=True)


def _check_together(folder: Path, summary: Summary, results: Results, ids: Mapping[str, pd.Series]) -> None:
    """Refuse changed or exchanged files, judging by numbers of rows, people, and the model's checksum.

    `ids` are the people in tables whose rows match those of the R-indices by position.
    """
    for name, key in GROUPS.items():
        number, expected = int((results.first_visits["group"] == name).sum()), getattr(summary, key)
        if number != expected:
            raise damaged(
                folder / R_INDICES,
                f"has {number} people in the {name} group, but according to summary.json there should be {expected}",
            )
    for name, people in ids.items():
        _check_people(folder / name, people.tolist(), results.r_indices[_ID].tolist())
    expected_rows = {PEOPLE: summary.n_read, PATTERNS: summary.n_patterns * summary.n_features}
    for name, table in ((PEOPLE, results.people), (PATTERNS, results.patterns)):
        if expected_rows[name] not in (None, len(table)):
            raise damaged(
                folder / name,
                f"has {len(table)} rows, but according to summary.json there should be {expected_rows[name]}",
            )
    model = folder / MODEL
    if summary.model_sha256 and model.is_file() and sha256_of(model) != summary.model_sha256:
        raise damaged(model, "is not this run's model: its checksum does not match the one in summary.json")


def _check_people(path: Path, here: list[str], there: list[str]) -> None:
    rows, others = Counter(here), Counter(there)
    for who in {**others, **rows}:
        if rows[who] != others[who]:
            raise damaged(
                path,
                f"does not list the same people as r_indices.csv: participant {who} has {counted(rows[who], 'row')} "
                f"here and {others[who]} in r_indices.csv",
            )
    if here != there:
        raise damaged(path, "lists people in a different order from r_indices.csv")
