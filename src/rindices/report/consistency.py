"""Whether the files of a run folder belong together: a run is reported as a whole or not at all."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.files import plain, plain_text
from rindices.report.checks import damaged, read_text

MODEL = "model.safetensors"
_ID, _USED = "participant_id", "used"
_GROUPS = {"n_controls": "control", "n_patients": "patient", "n_other": "other"}


def sha256_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_together(folder: Path, summary: dict[str, Any], r_indices: pd.DataFrame, first: pd.DataFrame) -> None:
    """Refuse the files of a run that were changed or exchanged since; those that are missing are not asked for.

    Parameters
    ----------
    folder
        A run folder.
    summary
        ``summary.json``; runs of earlier versions do not say which model is theirs.
    r_indices, first
        ``r_indices.csv``, and of it each person's first visit.
    """
    if not summary.get("applied"):
        _check_counts(folder / "r_indices.csv", summary, first)
    for name in ("z_scores.csv", "variables.csv"):  # their rows are matched with those of the R-indices by position
        if (folder / name).is_file():
            people = _columns(folder / name, [_ID])
            _check_people(folder / name, people, r_indices)
            if people[_ID].tolist() != r_indices[_ID].tolist():
                raise damaged(folder / name, "its people are in another order than those of r_indices.csv")
    people_file, model = folder / "people.csv", folder / MODEL
    if people_file.is_file():
        people = _columns(people_file, [_ID, _USED])
        _check_people(people_file, people[people[_USED].str.lower() == "true"], r_indices)
        if len(people) != summary.get("n_read", len(people)):
            raise damaged(
                people_file, f"it has {len(people)} rows, but summary.json says {summary['n_read']} were read"
            )
    expected = summary.get("model_sha256")
    if expected and model.is_file() and sha256_of(model) != expected:
        raise damaged(model, "it is not the model of this run: its checksum is not the one in summary.json")


def _check_counts(path: Path, summary: dict[str, Any], first: pd.DataFrame) -> None:
    for name, group in _GROUPS.items():
        found = int((first["group"] == group).sum())
        if found != summary.get(name, found):
            raise damaged(path, f"it has {found} people of the group {group}, but summary.json has {summary[name]}")


def _check_people(path: Path, people: pd.DataFrame, r_indices: pd.DataFrame) -> None:
    here, there = Counter(people[_ID]), Counter(r_indices[_ID])
    if here != there:
        who = next(iter((there - here) | (here - there)))
        rows = f"{here[who]} row{'' if here[who] == 1 else 's'} in it and {there[who]} there"
        raise damaged(path, f"its people are not those of r_indices.csv (participant {who} has {rows})")


def _columns(path: Path, names: list[str]) -> pd.DataFrame:
    """Read a few columns of a table that may be large."""
    try:
        table = pd.read_csv(
            path,
            usecols=lambda name: plain_text(name) in names,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
        )
    except UnicodeDecodeError:
        read_text(path)  # says where
        raise
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise damaged(path, f"it is not a table ({str(error).strip()})") from error
    table = plain(table)
    for name in names:
        if name not in table:
            raise damaged(path, f"column {name!r} is missing")
    return table
