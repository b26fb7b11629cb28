"""R-indices and severities as a BIDS derivative: a phenotype table, its dictionary and a dataset description."""

import json
import re
from pathlib import Path

import pandas as pd

from rindices.files import atomic_file, guarded, plain_text, write_text
from rindices.record import Summary

# Where the specification puts measures of participants, in derivatives too; the root is for participants.tsv only.
_FILES = ("dataset_description.json", "phenotype/r_indices.tsv", "phenotype/r_indices.json")
_CITATION = (
    "Yang Z, Wen J, Davatzikos C. Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering "
    "heterogeneous disease-related imaging patterns. International Conference on Learning Representations (ICLR), 2022."
)
# Descriptions by column name; # is the number in it. R-indices are not clipped, so no minimum or maximum is stated.
_COLUMNS = {
    r"participant_id": {"Description": "Participant, as in the source table"},
    r"session_id": {"Description": "Session, as in the source table"},
    r"visit": {"Description": "Visit, as in the source table"},
    r"years": {"Description": "Time since the participant's first visit", "Units": "year", "Minimum": 0},
    r"first_visit": {
        "Description": "Whether this is the participant's first visit; patterns are learned from first visits only",
        "Levels": {"true": "first visit", "false": "a later visit"},
    },
    r"diagnosis": {"Description": "Diagnosis, as in the source table"},
    r"group": {
        "Description": "Group assigned to the diagnosis",
        "Levels": {"control": "control", "patient": "patient", "other": "neither: scored, but never used for training"},
    },
    r"flags": {"Description": "Unusual features of this participant's data; n/a if none"},
    r"r\d+": {
        "LongName": "R-index #",
        "Description": "R-index of pattern #: roughly the person's rank among the patients, from low values (typical "
        "of controls) to about 1 (typical of the most severely affected patients); training controls are scored by "
        "repetitions that were not trained on them",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"r\d+_sd": {
        "Description": "Standard deviation of r# across repetitions; n/a if there is only one repetition",
        "Units": "arbitrary",
        "Minimum": 0,
        "Derivative": True,
    },
    r"r\d+_networks": {
        "Description": "R-index of pattern # from the networks alone, without the linear models",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"severity\d+": {
        "LongName": "Severity #",
        "Description": "Severity of pattern #, as a fraction of the largest change that the model learned for this "
        "pattern",
        "Units": "arbitrary",
        "Derivative": True,
    },
    r"severity\d+_(low|high)": {
        "Description": "Lower or upper limit of the interval for severity#",
        "Units": "arbitrary",
    },
    r"centile\d+": {
        "Description": "Percentage of held-out controls with a lower r#",
        "Units": "percent",
        "Minimum": 0,
        "Maximum": 100,
        "Derivative": True,
    },
    r"strangeness": {
        "Description": (
            "Distance of this participant from the most similar person the model can produce; "
            "values above 1 are unusual"
        ),
        "Units": "arbitrary",
        "Minimum": 0,
        "Derivative": True,
    },
    r".*": {"Description": "As in r_indices.csv"},
}


def write_bids(folder: str | Path, r_indices: pd.DataFrame, summary: Summary) -> list[Path]:
    """Write R-indices as a BIDS derivative.

    Parameters
    ----------
    folder
        Root of the derivative dataset, which is replaced.
    r_indices
        Columns participant_id, visit if there are visits, diagnosis, group, r1 …, severity1 …, flags. Ids are written
        unchanged. Text that a spreadsheet would execute is guarded as in `rindices.files`: BIDS only requires that
        such cells match the levels in the dictionary, which they do. A BIDS id begins with ``sub-`` and is never
        affected.
    summary
        Content of ``summary.json``. Its entry ``source_doi``, if any, names the source dataset. The column of visits,
        if there is one, becomes ``session_id`` if every label has the form ses-….

    Returns
    -------
    list of pathlib.Path
        ``dataset_description.json``, ``phenotype/r_indices.tsv`` and ``phenotype/r_indices.json``.

    Examples
    --------
    >>> import tempfile
    >>> table = pd.DataFrame({"participant_id": ["sub-01"], "diagnosis": ["AD"], "group": ["patient"], "r1": [0.5]})
    >>> summary = Summary(status="done", patient_labels=("AD",), versions={"rindices": "1.0.0"})
    >>> with tempfile.TemporaryDirectory() as out:
    ...     [path.name for path in write_bids(out, table, summary)]
    ['dataset_description.json', 'r_indices.tsv', 'r_indices.json']
    """
    paths = [Path(folder, name) for name in _FILES]
    table = _as_bids(r_indices, summary.visits)
    with atomic_file(paths[1]) as beside:
        table.to_csv(
            beside, sep="\t", na_rep="n/a", index=False, float_format="%.6g", lineterminator="\n", encoding="utf-8"
        )
    for path, content in ((paths[2], _dictionary(table, summary)), (paths[0], _description(summary))):
        write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return paths


def _as_bids(r_indices: pd.DataFrame, visits: bool) -> pd.DataFrame:
    """Return the table as BIDS requires it: ids and sessions first, no empty cells, one line per row."""
    table = r_indices.reset_index(drop=True)
    if visits and table["visit"].astype(str).str.fullmatch(r"ses-[0-9A-Za-z]+").all():
        table = table.rename(columns={"visit": "session_id"})
    first = [name for name in ("participant_id", "session_id", "visit") if name in table]
    table = table[[*first, *(name for name in table.columns if name not in first)]]
    return guarded(table.assign(**table.select_dtypes(exclude="float").map(_cell)))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "n/a" if pd.isna(value) else " ".join(str(value).split()) or "n/a"  # type: ignore[call-overload]


def _dictionary(table: pd.DataFrame, summary: Summary) -> dict[str, dict[str, object]]:
    n_patterns = table.filter(regex=r"^r\d+$").shape[1]
    tool = f"R-indices: severities of {n_patterns} disease patterns in regional brain measures (Surreal-GAN)."
    verdict = "" if summary.verdict is None else " ".join(["", summary.verdict_words[0], summary.reliable_reason])
    entries: dict[str, dict[str, object]] = {"MeasurementToolMetadata": {"Description": tool + verdict}}
    for name in map(str, table.columns):
        entry = next(entry for pattern, entry in _COLUMNS.items() if re.fullmatch(pattern, name))
        entries[name] = json.loads(json.dumps(entry).replace("#", re.sub(r"\D", "", name)))
    meaning = {
        **dict.fromkeys(summary.control_labels, "counted as a control"),
        **dict.fromkeys(summary.patient_labels, "counted as a patient"),
    }
    levels = {
        label: meaning.get(plain_text(label), "neither control nor patient")
        for label in sorted({*table["diagnosis"].astype(str)} - {"n/a"})
    }
    entries["diagnosis"] |= {"Levels": levels} if levels else {}
    return entries


def _description(summary: Summary) -> dict[str, object]:
    return {
        "Name": f"R-indices of {summary.source}" if summary.source else "R-indices",
        "BIDSVersion": "1.10.1",
        "DatasetType": "derivative",
        "GeneratedBy": [
            {
                "Name": "rindices",
                "Version": summary.versions["rindices"],
                "Description": "Surreal-GAN R-indices from regional brain measures",
            }
        ],
        "HowToAcknowledge": f"Please cite: {_CITATION}",
        "ReferencesAndLinks": [_CITATION],
        **({"SourceDatasets": [{"DOI": summary.source_doi}]} if summary.source_doi else {}),
    }
