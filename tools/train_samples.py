"""Train the runs whose reports the home page shows: simulated cohorts, a clear one, a hard one, one without disease.

python tools/train_samples.py --work /tmp/samples [--only hard]

All have seed 4: none was chosen by how its report looks.

This takes a few minutes on two cores. What a report is made from, tables of made-up people, is kept beside this script;
the reports themselves are written whenever the site is built, so they are always those of today's program.
"""

from __future__ import annotations

import argparse
import os
import zipfile
from pathlib import Path

import numpy as np

from rindices import SearchSettings, TableSettings, fit_table, simulate_cohort

SAMPLES = Path(__file__).resolve().parents[1] / "docs" / "samples"
KINDS = {"reproducible": "basic", "hard": "mild", "no-difference": "null"}
SEED = 4
NOT_KEPT = ("model.safetensors", "r_indices.png", "report.html", "trained")  # no report reads them


def write_cohort(name: str) -> Path:
    """Write 150 controls and 300 patients; memory gets worse with pattern 1, if there is one."""
    severities = "mild" if name == "hard" else "uniform"  # in most patients the patterns have hardly begun
    people = {"n_controls": 150, "n_patients": 300, "n_patterns": 2}
    cohort = simulate_cohort(KINDS[name], **people, severities=severities, seed=SEED)
    severity = cohort.truth.set_index("participant_id")["s1"]
    severity = cohort.table["participant_id"].map(severity).fillna(0.0)
    noise = np.random.default_rng(SEED).normal(size=len(severity))
    words = {"reproducible": "with disease", "hard": "with a mild disease", "no-difference": "without disease"}
    path = Path(f"simulated {words[name]}.csv")
    cohort.table.assign(memory=(28 - 9 * severity + 2 * noise).round(1)).to_csv(path, index=False)
    return path


def keep(run: Path, archive: Path) -> None:
    """Put the tables of a run into an archive that is the same whenever they are."""
    with zipfile.ZipFile(archive, "w") as kept:
        for path in sorted(run.rglob("*")):
            if path.is_file() and path.relative_to(run).parts[0] not in NOT_KEPT:
                entry = zipfile.ZipInfo(path.relative_to(run).as_posix())
                kept.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    """Train all, or one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True, help="folder for the cohorts and their runs")
    options.add_argument("--only", choices=KINDS, help="one of them")
    asked = options.parse_args()
    work = asked.work
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)  # the names of files are part of a run
    for name in [asked.only] if asked.only else KINDS:
        run = Path(name)
        columns = TableSettings(covariates="age,sex", clinical="memory", unit="mL")
        fit_table(write_cohort(name), run, columns, SearchSettings(n_patterns=(2,), n_repetitions=5))
        keep(run, SAMPLES / f"{name}.zip")


if __name__ == "__main__":
    main()
