"""R-indices as a BIDS derivative: a phenotype table, its data dictionary, and the description of the dataset."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.errors import InputError, setting
from rindices.files import atomic_file, guarded, plain_text
from rindices.record import Summary

__all__ = ["write_bids"]

BIDS_VERSION = "1.10.1"
_NAME = "rindices"
_DESCRIPTION = "dataset_description.json"
# Where the specification wants measures of participants, also in derivatives; the root is for participants.tsv only.
_TABLE = Path("phenotype", "r_indices.tsv")
_CITATION = (
    "Yang Z, Wen J, Davatzikos C. Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering "
    "heterogeneous disease-related imaging patterns. International Conference on Learning Representations (ICLR), 2022."
)
_GROUPS = {"control": "control", "patient": "patient", "other": "neither: scored, but never learned from"}
_KNOWN: dict[str, dict[str, Any]] = {
    "participant_id": {"Description": "Participant, as in the source table"},
    "session_id": {"Description": "Session, as in the source table"},
    "visit": {"Description": "Visit, as in the source table"},
    "years": {"Description": "Time since the participant's first visit", "Units": "year", "Minimum": 0},
    "first_visit": {
        "Description": "Whether this is the participant's first visit; patterns are learned from first visits only",
        "Levels": {"true": "first visit", "false": "a later visit"},
    },
    "group": {"Description": "What the diagnosis counted as", "Levels": _GROUPS},
    "flags": {"Description": "What is unusual about this participant's data; n/a if nothing is"},
}


def write_bids(folder: str | Path, r_indices: pd.DataFrame, summary: Summary) -> list[Path]:
    """Write R-indices as a BIDS derivative.

    Parameters
    ----------
    folder
        Root of the derivative dataset. The description of another dataset in it is never replaced.
    r_indices
        Columns participant_id (or the index), visit if there are visits, diagnosis, group, r1 …, r1_sd …, flags.
        Ids are written as they are. Text that a spreadsheet would run is guarded as in `rindices.files`: BIDS asks
        nothing of such cells but that they and the levels in the data dictionary are the same, which they are; and an
        id of BIDS, which begins with ``sub-``, is never one of them.
    summary
        What `summary.json` says. Its entry ``source_doi``, if any, names the source dataset; where the rows are
        visits, their column becomes ``session_id`` if all of them are called ses-….

    Returns
    -------
    list of pathlib.Path
        ``dataset_description.json``, ``phenotype/r_indices.tsv`` and ``phenotype/r_indices.json``.

    Raises
    ------
    InputError
        If the folder is the root of another dataset.

    Examples
    --------
    >>> import tempfile
    >>> table = pd.DataFrame({"participant_id": ["sub-01"], "diagnosis": ["AD"], "group": ["patient"], "r1": [0.5]})
    >>> with tempfile.TemporaryDirectory() as out:
    ...     [path.name for path in write_bids(out, table, Summary(status="unfinished", patient_labels=("AD",)))]
    ['dataset_description.json', 'r_indices.tsv', 'r_indices.json']
    """
    folder = Path(folder)
    _refuse_other_datasets(folder / _DESCRIPTION)
    table = _as_bids(r_indices, summary.visits)
    paths = [folder / _DESCRIPTION, folder / _TABLE, (folder / _TABLE).with_suffix(".json")]
    with atomic_file(paths[1]) as beside:
        table.to_csv(
            beside, sep="\t", na_rep="n/a", index=False, float_format="%.6g", lineterminator="\n", encoding="utf-8"
        )
    _write_json(paths[2], _dictionary(table, summary))
    _write_json(paths[0], _description(summary))
    return paths


def _refuse_other_datasets(path: Path) -> None:
    if not path.exists():
        return
    try:
        made_by = json.loads(path.read_text(encoding="utf-8-sig")).get("GeneratedBy", [])
        ours = [entry.get("Name") for entry in made_by] == [_NAME]
    except (OSError, ValueError, AttributeError, TypeError):
        ours = False
    if not ours:
        raise InputError(
            f"{path.parent} holds another BIDS dataset: its {path.name} is not one of rindices.\n"
            f"Choose another folder with {setting('out')}, for example {path.parent / 'derivatives' / _NAME}."
        )


def _as_bids(r_indices: pd.DataFrame, visit: bool) -> pd.DataFrame:
    """Return the table as BIDS wants it: ids and sessions first, no empty cells, one line a row."""
    table = r_indices if "participant_id" in r_indices.columns else r_indices.reset_index(names="participant_id")
    table = table.reset_index(drop=True)
    first = ["participant_id"]
    if visit and "visit" in table.columns:
        sessions = table["visit"].notna().all() and table["visit"].astype(str).str.match(r"ses-[0-9A-Za-z]+$").all()
        table = table.rename(columns={"visit": "session_id"}) if sessions else table
        first.append("session_id" if sessions else "visit")
    table = table[[*first, *(name for name in table.columns if name not in first)]]
    texts = {str(name): _cells(table[name]) for name in table.columns if table[name].dtype.kind != "f"}
    return guarded(table.assign(**texts))


def _cells(column: pd.Series) -> pd.Series:
    if column.dtype.kind == "b":
        return column.map({True: "true", False: "false"})
    text = column.astype(object).where(column.notna(), "").map(lambda cell: re.sub(r"\s+", " ", str(cell)).strip())
    return text.where(text != "", "n/a")


def _dictionary(table: pd.DataFrame, summary: Summary) -> dict[str, Any]:
    n_patterns = sum(re.fullmatch(r"r\d+", str(name)) is not None for name in table.columns)
    tool = f"R-indices: severities of {n_patterns} patterns of disease in regional brain measures (Surreal-GAN)."
    if summary.reliable is False:
        tool += f" NOT reliable: {summary.reliable_reason or 'no reason given'}"
    entries = {str(name): _entry(str(name), table, summary) for name in table.columns}
    return {"MeasurementToolMetadata": {"Description": tool}} | entries


def _entry(name: str, table: pd.DataFrame, summary: Summary) -> dict[str, Any]:
    if name == "diagnosis":
        meaning = dict.fromkeys(summary.control_labels, "counted as control")
        meaning |= dict.fromkeys(summary.patient_labels, "counted as patient")
        labels = sorted({label for label in table["diagnosis"].astype(str) if label != "n/a"})
        levels = {label: meaning.get(plain_text(label), "neither control nor patient") for label in labels}
        return {"Description": "Diagnosis, as in the source table"} | ({"Levels": levels} if levels else {})
    if match := re.fullmatch(r"r(\d+)(_sd)?", name):
        number = match[1]
        if match[2]:
            text = f"Standard deviation of r{number} over the repetitions of the training; n/a with a single one"
            return {"Description": text, "Units": "arbitrary", "Minimum": 0, "Derivative": True}
        # Not clipped, so there is neither minimum nor maximum to promise.
        text = f"R-index of pattern {number}: about 0.1 as in controls, about 1 where it is most severe"
        return {"LongName": f"R-index {number}", "Description": text, "Units": "arbitrary", "Derivative": True}
    return dict(_KNOWN.get(name, {"Description": "As in r_indices.csv"}))


def _description(summary: Summary) -> dict[str, Any]:
    version = summary.versions.get(_NAME)
    made_by = {"Name": _NAME, "Description": "Surreal-GAN R-indices from regional brain measures"}
    content: dict[str, Any] = {
        "Name": f"R-indices of {summary.source}" if summary.source else "R-indices",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [made_by | ({"Version": version} if version else {})],
        "HowToAcknowledge": f"Please cite: {_CITATION}",
        "ReferencesAndLinks": [_CITATION],
    }
    return content | ({"SourceDatasets": [{"DOI": summary.source_doi}]} if summary.source_doi else {})


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_file(path) as beside:
        beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
