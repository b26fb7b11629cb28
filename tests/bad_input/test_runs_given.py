"""Runs that were finished, and changed since by somebody."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.bad_input.harness import Case, cases

SAME = "fit people.csv --out run --patterns 3 --repetitions 2 --no-report --covariates age,sex --site site --unit mm3"
SCORES = {"scores.csv": "participant_id,mmse\np01,29\n"}


def lines(path: Path, keep: slice) -> None:
    """Keep some lines of a file."""
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[keep]), encoding="utf-8")


def last_line_lost(run: Path) -> None:
    """Delete a person from the R-indices."""
    lines(run / "r_indices.csv", slice(0, -1))


def people_lost(run: Path) -> None:
    """Leave only the header of the record of people."""
    lines(run / "people.csv", slice(0, 1))


def other_model(run: Path) -> None:
    """Put another model in the place of the run's own."""
    (run / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes() + b" ")


def sorted_anew(run: Path) -> None:
    """Sort a table whose rows are known by their position."""
    pd.read_csv(run / "z_scores.csv").sort_values("region0").to_csv(run / "z_scores.csv", index=False)


def changed(finished: Path, folder: Path, change) -> dict:
    """Return a copy of the finished run in which something was changed."""
    run = shutil.copytree(finished, folder / "changed")
    change(run)
    return {"run": run}


@pytest.mark.parametrize("options", ["", " --clinical scores.csv", " --subgroup-limits 0.3,0.6"])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (last_line_lost, ("r_indices.csv", "39 people of the group patient", "summary.json has 40")),
        (people_lost, ("people.csv", "participant p00 has 0 rows")),
        (other_model, ("model.safetensors", "not the model of this run")),
        (sorted_anew, ("z_scores.csv", "a different order")),
    ],
)
def test_report_of_a_changed_run_is_refused(stage, finished, tmp_path, change, found, options):
    if change is last_line_lost and options:
        found = ("different numbers of rows",)
    stage(
        Case(
            "changed",
            f"report run{options}",
            found,
            "rindices fit ... --overwrite",
            SCORES | changed(finished, tmp_path, change),
        )
    )


def test_report_of_a_run_without_a_result_says_how_to_make_it_again(stage, finished, tmp_path):
    files = changed(finished, tmp_path, lambda run: (run / "r_indices.csv").unlink())
    stage(Case("missing", "report run", ("r_indices.csv is missing",), "--overwrite", files))


def test_finished_run_without_a_result_is_not_called_complete(stage, finished, tmp_path):
    files = changed(finished, tmp_path, lambda run: (run / "r_indices.csv").unlink())
    stage(Case("missing", SAME, ("1 of its results is missing: r_indices.csv",), "--overwrite", files))


def test_finished_run_is_complete(stage, finished, tmp_path):
    stage(Case("complete", SAME, ("already complete",), "Done before", {"run": finished}, code=0))


@cases(
    Case(
        "compare: no run",
        "compare people.csv nothing",
        ("summary.json is missing",),
        "Provide the folder of a finished run",
    ),
    Case("compare: one run", "compare . .", ("are the same run",), "two different runs"),
    Case("share: no run", "share nothing --out m.zip", ("summary.json is missing",), "folder of a finished run"),
    Case("share: no archive", "share nothing --out m.csv", (".zip",), "use m.zip"),
    Case("verify: a table", "verify people.csv", ("cannot be read as a zip file",), "rindices share"),
    Case("verify: nothing", "verify nothing.zip", ("There is no file nothing.zip",), "rindices share"),
)
def test_what_can_be_neither_compared_nor_shared(stage, case):
    stage(case)
