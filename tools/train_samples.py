"""Train the runs behind the sample reports: simulated cohorts with clear patterns, with mild ones, and with none.

python tools/train_samples.py --work /tmp/samples [--only hard]

All use seed 4; none was selected for its report.

This takes a few minutes on two cores. The tables of each run (of simulated people) are archived in `docs/samples`; the
reports are written from them when the site is built, and so always come from the current version.
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
NOT_KEPT = ("model.safetensors", "r_indices.png", "report.html", "trained")  # not needed for a report


def write_cohort(name: str) -> Path:
    """Write 150 controls and 300 patients; memory declines with the severity of pattern 1, if there is one."""
    severities = "mild" if name == "hard" else "uniform"  # most patients have low severities
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
    """Archive the tables of a run; the same tables give the same bytes."""
    with zipfile.ZipFile(archive, "w") as kept:
        for path in sorted(run.rglob("*")):
            if path.is_file() and path.relative_to(run).parts[0] not in NOT_KEPT:
                entry = zipfile.ZipInfo(path.relative_to(run).as_posix())
                kept.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    """Train all samples, or one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True, help="folder for the cohorts and their runs")
    options.add_argument("--only", choices=KINDS, help="train only this one")
    asked = options.parse_args()
    work = asked.work
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)  # a run records the names of its files
    for name in [asked.only] if asked.only else KINDS:
        run = Path(name)
        columns = TableSettings(covariates="age,sex", clinical="memory", unit="mL")
        fit_table(write_cohort(name), run, columns, SearchSettings(n_patterns=(2,), n_repetitions=5))
        keep(run, SAMPLES / f"{name}.zip")


if __name__ == "__main__":
    main()
