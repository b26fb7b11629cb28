"""The files of a run folder, read and checked before anything is drawn."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

REMEDY = "Give the folder of a finished run, or make the run again with `rindices fit`."
GROUPS = ("control", "patient", "other")
AGREEMENT = ("pattern_agreement", "dimension_correlation", "difference_correlation")

# What the report cannot do without; everything else in summary.json is shown where it is there.
_REQUIRED: dict[str, type | tuple[type, ...]] = {
    "status": str,
    "n_controls": int,
    "n_patients": int,
    "n_features": int,
    "n_patterns": int,
    "patterns_chosen_from_data": bool,
    "repetitions": int,
    "reliable": (bool, type(None)),
    "warnings": list,
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "n_other": int,
    "weights": dict,
    "versions": dict,
    "members_used": (int, list),
    "members_left_out": list,
    "seconds": (int, float),
    "recovery": dict,
}


@dataclass(frozen=True)
class RunResults:
    """What a run folder holds.

    Attributes
    ----------
    r_indices, patterns, selection
        The tables of the same names, numbers as numbers; ``chosen`` of ``selection`` is boolean.
    summary
        ``summary.json``.
    settings
        The text of ``run.toml``.
    truth
        Known severities of a demo in the order of the R-indices, one row per row of ``r_indices`` (empty for
        people without); ``None`` without ``truth.csv`` or without ``recovery`` in the summary.
    """

    r_indices: pd.DataFrame
    patterns: pd.DataFrame
    selection: pd.DataFrame
    summary: dict[str, Any]
    settings: str
    truth: pd.DataFrame | None

    @property
    def n_patterns(self) -> int:
        """How many patterns the run has."""
        return int(self.summary["n_patterns"])


def read_run(folder: Path) -> RunResults:
    """Read a run folder; a missing or damaged file is a ``ValueError`` that names it and the remedy."""
    if not folder.is_dir():
        raise ValueError(f"The run folder {folder} does not exist. {REMEDY}")
    summary = _read_summary(folder)
    numbers = range(1, summary["n_patterns"] + 1)
    r_indices = _read_table(
        folder / "r_indices.csv",
        texts=("participant_id", "diagnosis", "group"),
        numbers=[f"r{number}{suffix}" for suffix in ("", "_sd") for number in numbers],
    )
    strangers = sorted(set(r_indices["group"]) - set(GROUPS))
    if strangers:
        raise _damaged(folder / "r_indices.csv", f"column group has {strangers[0]!r}, expected one of {GROUPS}")
    settings = _read_text(folder / "run.toml")
    return RunResults(
        r_indices=r_indices,
        patterns=_read_patterns(folder / "patterns.csv", set(numbers)),
        selection=_read_selection(folder / "selection.csv", summary["n_patterns"]),
        summary=summary,
        settings=settings,
        truth=_read_truth(folder / "truth.csv", r_indices["participant_id"], summary),
    )


def _damaged(path: Path, trouble: str) -> ValueError:
    return ValueError(f"{path.name} in {path.parent} cannot be used: {trouble}. {REMEDY}")


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{path.name} is missing in {path.parent}. {REMEDY}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _damaged(path, f"it is not UTF-8 text (byte {error.start})") from error


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        summary = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise _damaged(path, f"it is not JSON (line {error.lineno}: {error.msg})") from error
    if not isinstance(summary, dict):
        raise _damaged(path, "expected an object with named values")
    for key, kind in {**_REQUIRED, **_OPTIONAL}.items():
        value = summary.get(key)
        if key in _OPTIONAL and value is None:
            continue
        if key not in summary:
            raise _damaged(path, f"{key!r} is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise _damaged(path, f"{key!r} has the unexpected value {value!r}")
    left_out = summary.get("members_left_out") or []
    if any(not isinstance(member, dict) or not {"member", "reason"} <= set(member) for member in left_out):
        raise _damaged(path, "'members_left_out' needs a member and a reason in each entry")
    if summary["n_patterns"] < 1:
        raise _damaged(path, f"'n_patterns' is {summary['n_patterns']}, expected 1 or more")
    return summary


def _read_table(path: Path, texts: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    _read_text(path)
    try:
        # As text first: a region may be called "NA" and a participant "007".
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise _damaged(path, f"it is not a table ({str(error).strip()})") from error
    missing = [column for column in (*texts, *numbers) if column not in table.columns]
    if missing:
        raise _damaged(path, f"column {missing[0]!r} is missing")
    if table.empty:
        raise _damaged(path, "it has no rows")
    for column in numbers:
        table[column] = _numbers(path, table[column])
    return table


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    empty = column.str.strip().str.lower().isin(["", "nan"])
    values = pd.to_numeric(column.mask(empty), errors="coerce").astype(float)
    wrong = ~empty & ~np.isfinite(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise _damaged(path, f"line {row + 2}, column {column.name!r} has {column.iloc[row]!r}, expected a number")
    return values


def _read_patterns(path: Path, expected: set[int]) -> pd.DataFrame:
    patterns = _read_table(path, ["region"], ["pattern", "change_sd", "change_percent", "spread_sd"])
    found = set(patterns["pattern"])
    if found != expected:
        raise _damaged(path, f"expected the patterns {sorted(expected)}, found {sorted(found)}")
    if patterns["change_sd"].isna().any():
        raise _damaged(path, "column 'change_sd' has empty cells")
    patterns["pattern"] = patterns["pattern"].astype(int)
    return patterns


def _read_selection(path: Path, n_patterns: int) -> pd.DataFrame:
    selection = _read_table(path, ["chosen"], ["n_patterns", "orthogonality", "step", "n_models", *AGREEMENT])
    selection["chosen"] = selection["chosen"].str.strip().str.lower().isin(["true", "1"])
    n_chosen = int(selection["chosen"].sum())
    if n_chosen != 1:
        raise _damaged(path, f"expected one row with chosen = true, found {n_chosen}")
    for column in ("n_patterns", "orthogonality", "step", "n_models"):
        if selection[column].isna().any():
            raise _damaged(path, f"column {column!r} has empty cells")
    found = int(selection.loc[selection["chosen"], "n_patterns"].iloc[0])
    if found != n_patterns:
        raise _damaged(path, f"the chosen row has {found} patterns, but summary.json has {n_patterns}")
    return selection


def _read_truth(path: Path, participants: pd.Series, summary: dict[str, Any]) -> pd.DataFrame | None:
    if not path.is_file() or not summary.get("recovery"):
        return None
    found = summary["recovery"]
    for key, kind in (("per_pattern", (int, float)), ("matched_truth", str)):
        values = found.get(key)
        if not isinstance(values, list) or len(values) != summary["n_patterns"]:
            raise _damaged(path.with_name("summary.json"), f"{key!r} of 'recovery' needs a value for each pattern")
        if not all(isinstance(value, kind) for value in values):
            raise _damaged(path.with_name("summary.json"), f"{key!r} of 'recovery' has an unexpected value")
    if not isinstance(found.get("pattern_concordance"), (int, float)):
        raise _damaged(path.with_name("summary.json"), "'pattern_concordance' of 'recovery' is not a number")
    names = found["matched_truth"]
    truth = _read_table(path, ["participant_id"], names)
    if truth["participant_id"].duplicated().any():
        raise _damaged(path, "a participant_id appears twice")
    return truth.set_index("participant_id")[names].reindex(participants).reset_index(drop=True)
