"""Helpers of the pages for reading results and writing Markdown."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.presets import blind

HERE = Path(__file__).parent
METHODS = {"nmf": "NMF", "lda": "LDA", "fa": "FA", "opnmf": "opNMF", "dnmf": "DNMF"}
NAMES = {
    "basic": "basic",
    "overlap": "large overlap",
    "scarce": "scarce regions",
    "noise": "within-pattern noise",
    "mild": "mild",
}


class Folder:
    """The tables of a folder and their settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paper = pd.read_csv(HERE / "paper_figures.csv")

    def table(self, name: str) -> pd.DataFrame | None:
        """Return a table, or None if the experiment has not been run."""
        path = self.path / f"{name}.csv"
        return pd.read_csv(path) if path.exists() else None

    def about(self, name: str) -> dict[str, Any]:
        """Return the settings of a table."""
        path = self.path / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def choose_from(self, name: str) -> int:
        """Return the first step eligible for selection."""
        return int(self.about(name).get("choose_from", blind().schedule.min_steps))

    def of_paper(self, where: str, method: str | None = None, measure: str | None = None) -> pd.Series:
        """Return the paper's numbers from one of its tables, by case."""
        own = self.paper[self.paper["where"] == where]
        for name, value in (("method", method), ("measure", measure)):
            own = own if value is None else own[own[name] == value]
        return own.set_index("case")["value"]


def shown(value: Any, digits: int = 3) -> str:
    """Format a cell."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (float(value).is_integer() and abs(value) > 1):
        return f"{int(value):,}"
    return f"{value:.{digits}f}".replace("-", "−")


def spread(mean: float, sd: float) -> str:
    """Format a mean with its sd."""
    return shown(mean) if sd != sd else f"{shown(mean)} ± {shown(sd)}"


def signed(value: float, digits: int = 3) -> str:
    """Format a difference with its sign."""
    return "–" if value != value else f"{value:+.{digits}f}".replace("-", "−")


def between(values: pd.Series, digits: int = 3) -> str:
    """Format the range of some numbers."""
    low, high = shown(float(values.min()), digits), shown(float(values.max()), digits)
    return low if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def markdown(table: pd.DataFrame, first: str, digits: int = 3) -> list[str]:
    """Format a table in Markdown, with its index as the first column, named `first`."""
    lines = [
        f"| {first} | {' | '.join(NAMES.get(name, str(name)) for name in table.columns)} |",
        "| --- " * (len(table.columns) + 1) + "|",
    ]
    for name, row in zip(table.index, table.itertuples(index=False), strict=True):
        cells = " | ".join(shown(value, digits) for value in row)
        lines.append(f"| {NAMES.get(name, shown(name))} | {cells} |")
    return [*lines, ""]


def paragraph(*sentences: str) -> list[str]:
    """Wrap a paragraph, followed by an empty line."""
    return [*textwrap.wrap(" ".join(filter(None, sentences)), 120, break_on_hyphens=False), ""]


def of_cohorts(table: pd.DataFrame, each: str = "each", models: str = "n_models") -> str:
    """Describe the number of cohorts and models behind a table."""
    seeds, n = table.groupby("kind")["seed"].nunique(), int(table[models].max())
    return f"{' to '.join(map(str, sorted({seeds.min(), seeds.max()})))} cohorts of each kind, {n} models {each}"


def reached(condition: bool, table: pd.DataFrame) -> str:
    """Describe whether a target was met; small runs are not judged."""
    if not bool(table["comparable"].all()):
        return "not judged by a smoke run"
    return "met" if condition else "**not met**"


def missing(script: str) -> list[str]:
    """Note that an experiment has not been run."""
    return [f"Not run yet: `python experiments/paper/{script}.py`.", ""]


def warning(table: pd.DataFrame) -> list[str]:
    """Mark results of small runs."""
    if bool(table["comparable"].all()):
        return []
    return ["**Smoke run: these figures only show that the script works. They are not comparable with anything.**", ""]
