"""The result files of a finished run, read and checked before anything is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.report.checks import NUMBER, check_values, damaged, read_text

GROUPS = ("control", "patient", "other")
AGREEMENT = ("pattern_agreement", "dimension_correlation", "difference_correlation")
LIMITS = tuple(f"{name}_{limit}" for name in AGREEMENT for limit in ("low", "high"))
SETTING = ["n_patterns", "orthogonality"]


@dataclass(frozen=True)
class RunResults:
    """What the folder of a finished run holds.

    Attributes
    ----------
    r_indices, patterns, selection
        The tables of the same names, numbers as numbers; ``best`` and ``chosen`` of ``selection`` are boolean.
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

    @property
    def chosen(self) -> pd.Series:
        """The row of ``selection`` that was chosen."""
        return self.selection[self.selection["chosen"]].iloc[0]


def read_run(folder: Path, summary: dict[str, Any]) -> RunResults:
    """Read the files of a finished run; a missing or damaged one is a ``ValueError`` that names it and the remedy."""
    numbers = range(1, summary["n_patterns"] + 1)
    r_indices = _read_table(
        folder / "r_indices.csv",
        texts=("participant_id", "diagnosis", "group"),
        numbers=[f"r{number}{suffix}" for suffix in ("", "_sd") for number in numbers],
    )
    strangers = sorted(set(r_indices["group"]) - set(GROUPS))
    if strangers:
        raise damaged(folder / "r_indices.csv", f"column group has {strangers[0]!r}, expected one of {GROUPS}")
    settings = read_text(folder / "run.toml")
    return RunResults(
        r_indices=r_indices,
        patterns=_read_patterns(folder / "patterns.csv", set(numbers)),
        selection=_read_selection(folder / "selection.csv", summary["n_patterns"]),
        summary=summary,
        settings=settings,
        truth=_read_truth(folder / "truth.csv", r_indices["participant_id"], summary),
    )


def _read_table(path: Path, texts: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    read_text(path)
    try:
        # As text first: a region may be called "NA" and a participant "007".
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise damaged(path, f"it is not a table ({str(error).strip()})") from error
    missing = [column for column in (*texts, *numbers) if column not in table.columns]
    if missing:
        raise damaged(path, f"column {missing[0]!r} is missing")
    if table.empty:
        raise damaged(path, "it has no rows")
    for column in numbers:
        table[column] = _numbers(path, table[column])
    return table


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    empty = column.str.strip().str.lower().isin(["", "nan"])
    values = pd.to_numeric(column.mask(empty), errors="coerce").astype(float)
    wrong = ~empty & ~np.isfinite(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise damaged(path, f"line {row + 2}, column {column.name!r} has {column.iloc[row]!r}, expected a number")
    return values


def _read_patterns(path: Path, expected: set[int]) -> pd.DataFrame:
    patterns = _read_table(path, ["region"], ["pattern", "change_sd", "change_percent", "spread_sd"])
    found = set(patterns["pattern"])
    if found != expected:
        raise damaged(path, f"expected the patterns {sorted(expected)}, found {sorted(found)}")
    if patterns["change_sd"].isna().any():
        raise damaged(path, "column 'change_sd' has empty cells")
    patterns["pattern"] = patterns["pattern"].astype(int)
    return patterns


def _read_selection(path: Path, n_patterns: int) -> pd.DataFrame:
    counts = [*SETTING, "step", "n_models"]
    selection = _read_table(path, ["best", "chosen"], [*counts, *AGREEMENT, *LIMITS])
    for column in ("best", "chosen"):
        selection[column] = selection[column].str.strip().str.lower().isin(["true", "1"])
    n_chosen = int(selection["chosen"].sum())
    if n_chosen != 1:
        raise damaged(path, f"expected one row with chosen = true, found {n_chosen}")
    for column in counts:
        if selection[column].isna().any():
            raise damaged(path, f"column {column!r} has empty cells")
    n_best = selection.groupby(SETTING, as_index=False)["best"].sum()
    for _, row in n_best[n_best["best"] != 1].iterrows():
        setting = f"{row['n_patterns']:g} patterns and orthogonality {row['orthogonality']:g}"
        raise damaged(path, f"expected one row with best = true for {setting}, found {row['best']:g}")
    chosen = selection[selection["chosen"]].iloc[0]
    if not chosen["best"]:
        raise damaged(path, "the row with chosen = true does not have best = true")
    if chosen["n_patterns"] != n_patterns:
        found = f"the chosen row has {chosen['n_patterns']:g} patterns"
        raise damaged(path, f"{found}, but summary.json has {n_patterns}")
    return selection


def _read_truth(path: Path, participants: pd.Series, summary: dict[str, Any]) -> pd.DataFrame | None:
    if not path.is_file() or not summary.get("recovery"):
        return None
    found, source = summary["recovery"], path.with_name("summary.json")
    for key, kind in (("per_pattern", NUMBER), ("matched_truth", str)):
        values = found.get(key)
        if not isinstance(values, list) or len(values) != summary["n_patterns"]:
            raise damaged(source, f"{key!r} of 'recovery' needs a value for each pattern")
        for value in values:
            check_values(source, {key: value}, {key: kind}, required=True, of="recovery")
    check_values(source, found, {"pattern_concordance": NUMBER}, required=True, of="recovery")
    names = found["matched_truth"]
    truth = _read_table(path, ["participant_id"], names)
    if truth["participant_id"].duplicated().any():
        raise damaged(path, "a participant_id appears twice")
    return truth.set_index("participant_id")[names].reindex(participants).reset_index(drop=True)
