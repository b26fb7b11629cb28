"""The result files of a finished run, read and checked before anything is drawn."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.report.analyses import Analyses, read_analyses
from rindices.report.checks import NUMBER, check_values, damaged, read_text
from rindices.report.consistency import check_together
from rindices.report.csv_files import in_time, read_table

GROUPS = ("control", "patient", "other")
AGREEMENT = ("pattern_agreement", "dimension_correlation", "difference_correlation")
LIMITS = tuple(f"{name}_{limit}" for name in AGREEMENT for limit in ("low", "high"))
SETTING = ["n_patterns", "orthogonality"]
DECOMPOSED = ("decomposed_sd", "decomposed_percent", "decomposed_spread_sd")


@dataclass(frozen=True)
class RunResults:
    """What the folder of a finished run holds.

    Attributes
    ----------
    r_indices, patterns
        The tables of the same names, numbers as numbers. ``patterns`` is empty if people were only scored and the
        model's patterns are not there.
    selection
        The table of this name, ``best`` and ``chosen`` boolean; ``None`` if people were only scored.
    summary
        ``summary.json``.
    settings
        The text of ``run.toml``.
    truth
        Known severities of a demo in the order of the R-indices, one row per row of ``r_indices`` (empty for
        people without); ``None`` without ``truth.csv`` or without ``recovery`` in the summary.
    analyses
        Tables of analyses.
    """

    r_indices: pd.DataFrame
    patterns: pd.DataFrame
    selection: pd.DataFrame | None
    summary: dict[str, Any]
    settings: str
    truth: pd.DataFrame | None
    analyses: Analyses = field(default_factory=Analyses)

    @property
    def n_patterns(self) -> int:
        """How many patterns the run has."""
        return int(self.summary["n_patterns"])

    @property
    def applied(self) -> bool:
        """Whether a model that was there before scored these people."""
        return bool(self.summary.get("applied"))

    @property
    def chosen(self) -> pd.Series:
        """The row of ``selection`` that was chosen."""
        if self.selection is None:
            raise ValueError("Expected a selection; these people were only scored.")
        return self.selection[self.selection["chosen"]].iloc[0]

    @property
    def first(self) -> pd.DataFrame:
        """The R-indices of each person once: at the first visit where there are several."""
        if "first_visit" in self.r_indices:
            return self.r_indices[self.r_indices["first_visit"].str.lower() == "true"]
        return in_time(self.r_indices).drop_duplicates("participant_id").sort_index()

    def group(self, name: str) -> pd.DataFrame:
        """Return the people of one group, each once."""
        first = self.first
        return first[first["group"] == name]


def read_run(folder: Path, summary: dict[str, Any]) -> RunResults:
    """Read the files of a finished run; a missing or damaged one is a ``ValueError`` that names it and the remedy."""
    numbers = range(1, summary["n_patterns"] + 1)
    applied = bool(summary.get("applied"))
    r_indices = _read_r_indices(folder / "r_indices.csv", summary["n_patterns"], applied=applied)
    toml, patterns = folder / "run.toml", folder / "patterns.csv"
    no_patterns = pd.DataFrame(columns=["region", "pattern", "change_sd", "change_percent", "spread_sd"])
    results = RunResults(
        r_indices=r_indices,
        patterns=no_patterns if applied and not patterns.is_file() else _read_patterns(patterns, set(numbers), summary),
        selection=None if applied else _read_selection(folder / "selection.csv", summary["n_patterns"]),
        summary=summary,
        settings="" if applied and not toml.is_file() else read_text(toml),
        truth=_read_truth(folder / "truth.csv", r_indices["participant_id"], summary),
        analyses=read_analyses(folder, summary["n_patterns"]),
    )
    check_together(folder, summary, results.r_indices, results.first)
    return results


def _read_r_indices(path: Path, n_patterns: int, *, applied: bool) -> pd.DataFrame:
    numbers = [f"r{place + 1}{suffix}" for suffix in ("", "_sd") for place in range(n_patterns)]
    texts = ["participant_id", "diagnosis", *([] if applied else ["group"])]
    table = _not_empty(path, read_table(path, texts, numbers))
    if "group" not in table:  # a model alone does not know who is a control
        table["group"] = "other"
    strangers = sorted(set(table["group"]) - set(GROUPS))
    if strangers:
        raise damaged(path, f"column group has {strangers[0]!r}, expected one of {GROUPS}")
    return table


def _not_empty(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        raise damaged(path, "it has no rows")
    return table


def _read_patterns(path: Path, expected: set[int], summary: dict[str, Any]) -> pd.DataFrame:
    columns = ["pattern", "change_sd", "change_percent", "spread_sd"]
    patterns = read_table(path, ["region"], columns)
    if set(DECOMPOSED) <= set(patterns.columns):
        patterns = read_table(path, ["region"], [*columns, *DECOMPOSED])
    found = set(_not_empty(path, patterns)["pattern"])
    if found != expected:
        raise damaged(path, f"expected the patterns {sorted(expected)}, found {sorted(found)}")
    for pattern, number in patterns["pattern"].value_counts(sort=False).items():
        if number != summary["n_features"]:
            raise damaged(
                path, f"pattern {pattern:g} has {number} regions, but summary.json has {summary['n_features']}"
            )
    if patterns["change_sd"].isna().any():
        raise damaged(path, "column 'change_sd' has empty cells")
    patterns["pattern"] = patterns["pattern"].astype(int)
    return patterns


def _read_selection(path: Path, n_patterns: int) -> pd.DataFrame:
    counts = [*SETTING, "step", "n_models"]
    selection = _not_empty(path, read_table(path, [], [*counts, *AGREEMENT, *LIMITS], ["best", "chosen"]))
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
    truth = _not_empty(path, read_table(path, ["participant_id"], names))
    if truth["participant_id"].duplicated().any():
        raise damaged(path, "a participant_id appears twice")
    return truth.set_index("participant_id")[names].reindex(participants).reset_index(drop=True)
