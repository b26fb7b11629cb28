"""Make the table of the ABIDE I tutorial: FreeSurfer volumes and phenotypic data.

python experiments/abide_table.py --out abide1_volumes.csv

Downloads the summary spreadsheet of the Preprocessed Connectomes Project and three small files per person: about 3,100
files, 100 MB. By running it you accept the terms of ABIDE (non-commercial research, share-alike).
"""

from __future__ import annotations

import argparse
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

ADDRESS = "https://s3.amazonaws.com/fcp-indi/data/Projects/ABIDE_Initiative"
SPREADSHEET = "Phenotypic_V1_0b_preprocessed1.csv"
FILES = ("aseg.stats", "lh.aparc.a2009s.stats", "rh.aparc.a2009s.stats")
DEEP = [
    "Thalamus-Proper",
    "Caudate",
    "Putamen",
    "Pallidum",
    "Hippocampus",
    "Amygdala",
    "Accumbens-area",
    "Cerebellum-Cortex",
]
SCORES = {"FIQ": "fiq", "ADOS_TOTAL": "ados_total", "SRS_RAW_TOTAL": "srs_total"}


def rows_of(stats: str) -> pd.DataFrame:
    """Return the table of a FreeSurfer stats file, indexed by structure name."""
    columns = re.search(r"^# ColHeaders\s+(.*)$", stats, re.MULTILINE)
    if columns is None:
        raise ValueError("This is no stats file of FreeSurfer: it has no line that begins with # ColHeaders.")
    rows = [line.split() for line in stats.splitlines() if line.strip() and not line.startswith("#")]
    return pd.DataFrame(rows, columns=columns[1].split()).set_index("StructName")


def volumes(aseg: str, left: str, right: str) -> dict[str, float]:
    """Return a person's head size and the volumes of 148 cortical and 16 deep regions, from three stats files."""
    head = re.search(r"^# Measure \w*IntraCranialVol, \w+, [^,]*, ([\d.]+)", aseg, re.MULTILINE)
    found = {"icv": float(head[1]) if head else 0.0}
    for side, stats in (("lh", left), ("rh", right)):
        found |= {f"{side}_{name}_volume": float(value) for name, value in rows_of(stats)["GrayVol"].items()}
    deep = rows_of(aseg)["Volume_mm3"]
    return found | {f"{side}-{name}": float(deep[f"{side}-{name}"]) for side in ("Left", "Right") for name in DEEP}


def about(people: pd.DataFrame) -> pd.DataFrame:
    """Return people's phenotypic data with readable labels; the spreadsheet codes missing values as -9999."""
    known = people.mask(people == -9999)
    table = pd.DataFrame({"participant_id": people["FILE_ID"], "site": people["SITE_ID"]})
    table["diagnosis"] = people["DX_GROUP"].map({1: "ASD", 2: "CN"})
    table["age"], table["sex"] = people["AGE_AT_SCAN"], people["SEX"].map({1: "M", 2: "F"})
    return table.join(known[list(SCORES)].rename(columns=SCORES))


def load(name: str) -> str:
    """Download a text file of the project."""
    with urllib.request.urlopen(f"{ADDRESS}/{name}", timeout=60) as answer:
        return answer.read().decode("utf-8")


def load_volumes(person: str) -> dict[str, float] | None:
    """Return a person's volumes, or None if there are no FreeSurfer files."""
    try:
        return volumes(*(load(f"Outputs/freesurfer/5.1/{person}/stats/{name}") for name in FILES))
    except urllib.error.HTTPError:
        return None


def main() -> None:
    """Download everybody's files and write the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    people = pd.read_csv(f"{ADDRESS}/{SPREADSHEET}")
    people = people[people["FILE_ID"] != "no_filename"].reset_index(drop=True)
    with ThreadPoolExecutor(8) as loaders:
        found = list(loaders.map(load_volumes, people["FILE_ID"]))
    there = [one is not None for one in found]
    table = about(people)[there].reset_index(drop=True).join(pd.DataFrame([one for one in found if one]))
    table.to_csv(chosen.out, index=False)
    print(f"{len(table)} people, {there.count(False)} without files: {chosen.out}")


if __name__ == "__main__":
    main()
