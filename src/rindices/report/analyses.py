"""The tables of the analyses in a run folder: each is optional, and read and checked where it is there."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rindices.report.csv_files import read_optional, read_table

_PARTIAL = ("partial", "partial_low", "partial_high", "partial_p", "partial_q")
_ASSOCIATION = ("pattern", "n", "coefficient", "low", "high", "p", "q", *_PARTIAL)


@dataclass(frozen=True)
class Analyses:
    """What was analysed; ``None`` where there is no such table, or an empty one.

    Attributes
    ----------
    people
        ``people.csv``: everybody who was read, with the reason of those who were left out.
    flow, associations, group_check, subgroup_sizes, subgroups, dose_response
        The tables of these names in ``analysis``.
    change, change_summary, drivers, severities
        The tables of these names in ``analysis``.
    """

    people: pd.DataFrame | None = None
    flow: pd.DataFrame | None = None
    associations: pd.DataFrame | None = None
    group_check: pd.DataFrame | None = None
    subgroup_sizes: pd.DataFrame | None = None
    subgroups: pd.DataFrame | None = None
    dose_response: pd.DataFrame | None = None
    change: pd.DataFrame | None = None
    change_summary: pd.DataFrame | None = None
    drivers: pd.DataFrame | None = None
    severities: pd.DataFrame | None = None


def read_analyses(folder: Path, n_patterns: int) -> Analyses:
    """Read what tables of analyses there are; a damaged one is a ``ValueError`` that names it and the remedy."""
    where = folder / "analysis"
    slopes = [f"r{place}_per_year" for place in range(1, n_patterns + 1)]
    return Analyses(
        people=read_optional(
            folder / "people.csv", ["participant_id", "diagnosis", "group", "reason", "flags"], ["distance"], ["used"]
        ),
        flow=_read_flow(where / "flow.csv"),
        associations=read_optional(
            where / "associations.csv", ["people", "variable", "level", "kind", "statistic", "note"], _ASSOCIATION
        ),
        group_check=read_optional(
            where / "group_check.csv",
            ["variable", "statistic", "remark"],
            ["pattern", "n_controls", "coefficient", "q", "coefficient_patients", "q_patients", "explained"],
            ["imbalanced", "removed"],
        ),
        subgroup_sizes=read_optional(
            where / "subgroup_sizes.csv", ["level", "rule", "note"], ["pattern", "n"], ["used"]
        ),
        subgroups=read_optional(
            where / "subgroups.csv", ["level", "region"], ["pattern", "n", "effect", "low", "high", "t", "p", "q"]
        ),
        dose_response=read_optional(
            where / "dose_response.csv",
            ["region"],
            ["pattern", "low", "high", "n", "severity", "mean", "mean_low", "mean_high"],
        ),
        change=read_optional(where / "change.csv", ["participant_id", "group"], ["n_visits", "years", *slopes]),
        change_summary=read_optional(
            where / "change_summary.csv", ["group"], ["pattern", "n", "mean", "low", "high", "p"]
        ),
        drivers=read_optional(
            where / "drivers.csv", ["participant_id", "region"], ["pattern", "rank", "change_sd", "z"]
        ),
        severities=read_optional(where / "severities.csv", ["region"], ["pattern", "severity", "change_sd"]),
    )


def _read_flow(path: Path) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    names = read_table(path, ["site", "group"], ["read", "used"]).columns
    table = read_table(path, ["site", "group"], [str(name) for name in names if name not in ("site", "group")])
    return None if table.empty else table
