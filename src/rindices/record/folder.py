"""The folder of a run: the names of its files, and whether a folder can become one."""

from __future__ import annotations

from pathlib import Path

from rindices.files import check_writable
from rindices.problems import InputError, Remedy, listed
from rindices.record.documents import SETTINGS, SUMMARY

MODEL, PICTURE, REPORT = "model.safetensors", "r_indices.png", "report.html"
R_INDICES, PATTERNS, SELECTION = "r_indices.csv", "patterns.csv", "selection.csv"
Z_SCORES, VARIABLES, PEOPLE, TRUTH = "z_scores.csv", "variables.csv", "people.csv", "truth.csv"
JOURNAL, ANALYSIS, BIDS, FIGURES, BRAIN, VOXELWISE = "journal", "analysis", "bids", "figures", "brain", "voxelwise"
TRAINED = "trained"  # every model of a finished run, so that more can be added to them
RESULTS = (MODEL, R_INDICES, PICTURE, PATTERNS, SELECTION, Z_SCORES, VARIABLES, PEOPLE)  # of every finished run
# All that a run leaves in its folder; whatever else is there belongs to the user.
OURS = frozenset(
    {*RESULTS, REPORT, TRUTH, ANALYSIS, BIDS, FIGURES, BRAIN, VOXELWISE, SUMMARY, SETTINGS, JOURNAL, TRAINED}
)


def check_free(out: Path) -> None:
    """Refuse, before any work is done, a folder that cannot be written or that holds something else."""
    if out.is_file():
        raise InputError(f"{out} is a file, but a folder is needed.\nChoose another folder with ", Remedy("out"), ".")
    # Only where there is a run may files be replaced that have the names of its own: a table people.csv, for example.
    ours = OURS if any((out / name).exists() for name in (SETTINGS, SUMMARY, JOURNAL)) else frozenset[str]()
    strangers = [path.name for path in out.glob("*") if path.name not in ours and not is_half_written(path)]
    if strangers:
        raise InputError(
            f"The folder {out} already contains other files: {listed(sorted(strangers))}.\nChoose another folder with ",
            Remedy("out"),
            ".",
        )
    check_writable(out / SUMMARY)


def run_around(path: Path) -> Path | None:
    """Return the run folder that keeps a file of this name for its own results; None where there is none."""
    path = path.resolve()
    ours = (folder for folder in path.parents if path.relative_to(folder).parts[0] in OURS)
    return next((one for one in ours if any((one / name).is_file() for name in (SETTINGS, SUMMARY))), None)


def is_half_written(path: Path) -> bool:
    """Whether a file was left behind by a process that was killed."""
    return path.name.startswith(".") and path.name.endswith(".partial")
