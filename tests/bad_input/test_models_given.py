"""Files that are not models, folders that are not runs, and commands other than `fit`."""

import json

import nibabel
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from tests.bad_input.harness import FOLDER, Case, cases

SCORE = "apply {} people.csv --out s.csv"
IMAGE = nibabel.Nifti1Image(np.ones((3, 3, 3), np.int16), np.eye(4)).to_bytes()


def model(name, file, content, found, remedy, line=SCORE):
    """Return a case of a file given as a model."""
    return Case(name, line.format(file), (file, *found), remedy, {} if content is None else {file: content})


def locked_model(monkeypatch):
    """Make the system refuse to open the model."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("safetensors.safe_open", refuse)


def damaged(content):
    """Alter one byte near the end."""
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


def other_version(path):
    """Write the model as a later version of the format."""
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        return save(arrays, file.metadata() | {"format_version": "99"})


@pytest.mark.parametrize(
    ("change", "found", "remedy"),
    [
        (lambda path: path.read_bytes()[:5000], "cannot be read as a model", "Copy it again"),
        (lambda path: damaged(path.read_bytes()), "altered or damaged", "Copy it again"),
        (other_version, "version 99", "Install a newer version of rindices"),
    ],
    ids=["truncated", "altered", "of a later version"],
)
def test_damaged_models(stage, finished, change, found, remedy):
    stage(model("damaged", "m.safetensors", change(finished / "model.safetensors"), (found,), remedy))


def severities(name, content, found, remedy, options="--severities s.csv --patterns 2"):
    """Return a case of severities that cannot be simulated."""
    return Case(name, f"simulate basic --out c.csv {options}", found, remedy, {"s.csv": content})


def images(people):
    """Return a table that names an image for each person."""
    return people[["participant_id"]].assign(path=people["participant_id"] + ".nii")


def later(people):
    """Return a table of follow-up, which for one person ends before the scan."""
    years = np.where(people.index == 3, -1, 2)
    return people[["participant_id"]].assign(years=years, converted=people.index % 2)


@cases(
    # Files that are not models
    model("no file", "m.safetensors", None, ("No model file was found",), "finished run"),
    model("folder", "m", FOLDER, ("No model file was found",), "finished run"),
    model("run folder", "done", None, ("No model file was found",), "done/model.safetensors"),
    model("table", "people.csv", None, ("cannot be read as a model",), "model.safetensors file from a finished run"),
    model("empty file", "m.safetensors", b"", ("cannot be read",), "Copy it again"),
    model("checkpoint", "m.pt", b"PK\x03\x04" + bytes(200), ("cannot be read",), "import-official"),
    model("other arrays", "m.safetensors", save({"w": np.zeros(3)}), ("not a rindices model",), "finished run"),
    Case(
        "not allowed to read",
        SCORE.format("model.safetensors"),
        ("permission denied",),
        "Ask the file's owner for access",
        spoil=locked_model,
    ),
    model("table described", "people.csv", None, ("cannot be read",), "finished run", "describe {}"),
    # Reports
    Case("no run folder", "report nowhere", ("nowhere",), "finished run"),
    Case("empty run folder", "report run", ("summary.json",), "finished run", {"run": FOLDER}),
    Case("table as run folder", "report people.csv", ("people.csv",), "finished run"),
    Case("damaged summary", "report run", ("summary.json", "line 1"), "rindices fit", {"run/summary.json": "{status"}),
    Case("summary of others", "report run", ("summary.json", "'status'"), "rindices fit", {"run/summary.json": "{}"}),
    Case(
        "half a run",
        "report run",
        ("variables.csv is missing",),
        "rindices fit",
        {"run/summary.json": json.dumps({"status": "done"})},
    ),
    Case("report over a folder", "report done --out people", ("people is a folder",), "--out", {"people": FOLDER}),
    Case("limits", "report done --subgroup-limits 1", ("'1'",), "such as 0.4,0.7"),
    Case("no scores", "report done --clinical scores.csv", ("There is no file scores.csv",), "Check the name"),
    Case(
        "scores without ids",
        "report done --clinical scores.csv",
        ("scores.csv", "'participant_id'"),
        "--id",
        {"scores.csv": "id,mmse\np01,29\n"},
    ),
    Case(
        "scores of strangers",
        "report done --clinical scores.csv",
        ("scores.csv", "'x1'"),
        "Use the same ids in both tables",
        {"scores.csv": "participant_id,mmse\nx1,29\n"},
    ),
    Case(
        "nothing but ids",
        "report done --clinical scores.csv",
        ("no clinical scores",),
        "Add columns with scores",
        {"scores.csv": "participant_id,age\np01,61\n"},
    ),
    Case("atlas alone", "report done --atlas people.csv", ("--atlas-table",), "Provide both"),
    Case(
        "atlas that is no image",
        "report done --atlas people.csv --atlas-table people.csv",
        ("people.csv",),
        "Provide a NIfTI file",
    ),
    Case(
        "atlas missing",
        "report done --atlas none.nii --atlas-table people.csv",
        ("no file was found at none.nii",),
        "Check the name",
    ),
    Case(
        "table of an atlas without labels",
        "report done --atlas a.nii --atlas-table people.csv",
        ("'label' and 'region', but its columns are participant_id",),
        "--atlas-table",
        {"a.nii": IMAGE},
    ),
    Case(
        "follow-up of nobody",
        "report done --time years --event converted",
        ("no column 'years' for the time of follow-up",),
        "--clinical FILE",
    ),
    Case(
        "impossible time",
        "report done --clinical later.csv --time years --event converted",
        ("is below 0 for person p03: column 'years' contains -1",),
        "Correct the cells",
        {"later.csv": later},
    ),
    Case(
        "time without an event",
        "report done --clinical later.csv --time years",
        ("('years'), but none for the event",),
        "--event COLUMN",
        {"later.csv": later},
    ),
    # Voxelwise
    Case("no run folder", "voxelwise nowhere --maps maps.csv", ("nowhere",), "finished run"),
    Case("no table of images", "voxelwise done --maps maps.csv", ("maps.csv",), "Check the file given with --maps"),
    Case(
        "table without paths",
        "voxelwise done --maps maps.csv",
        ("maps.csv", "'path'"),
        "a row for each image",
        {"maps.csv": "participant_id,age\np01,61\n"},
    ),
    Case(
        "one image",
        "voxelwise done --maps maps.csv",
        ("maps.csv", "fewer than 10 patients"),
        "images of more people",
        {"maps.csv": "participant_id,path\np01,a.nii\n"},
    ),
    Case(
        "no images",
        "voxelwise done --maps maps.csv --regressions",
        ("Row ", " of maps.csv: no file was found at p"),  # of whoever comes first in the subgroups
        "relative to the table's folder",
        {"maps.csv": images},
    ),
    Case(
        "images of strangers",
        "voxelwise done --maps maps.csv",
        ("maps.csv",),
        "participant_id",
        {"maps.csv": "participant_id,path\nx1,a.nii\n", "a.nii": "no image"},
    ),
    Case(
        "mask missing",
        "voxelwise done --maps maps.csv --mask none.nii",
        ("no file was found at none.nii",),
        "Check the name",
        {"maps.csv": images} | {f"p{number:02d}.nii": IMAGE for number in range(80)},
    ),
    Case("no maps", "voxelwise done", ("--maps",), "-h"),
    # Checkpoints of the authors
    Case(
        "no checkpoint",
        "import-official m.pt --out o.safetensors --features muse72",
        ("There is no checkpoint at m.pt",),
        "Provide a file written by torch.save",
    ),
    Case(
        "table",
        "import-official people.csv --out o.safetensors --features muse72",
        (
            "people.csv",
            "not a zip archive",
        ),
        "save it again",
    ),
    Case("no names", "import-official people.csv --out o.safetensors", ("--features",), "-h"),
    Case(
        "pickle",
        "import-official m.pt --out o.safetensors --features muse72",
        (
            "m.pt",
            "not a zip archive",
        ),
        "save it again",
        {"m.pt": b"\x80\x04\x95cposix\nsystem\n"},
    ),
    # Simulations
    Case("unknown kind", "simulate easy --out c.csv", ("The kind of cohort", "'easy'"), "'basic', 'overlap'"),
    Case("too many patterns", "simulate basic --out c.csv --patterns 90", ("90",), "Choose a number in this range"),
    Case("no visit", "simulate basic --out c.csv --visits 0", ("--visits", "but got 0"), "between 1 and 20"),
    Case(
        "noise below nothing", "simulate basic --out c.csv --scan-noise=-1", ("--scan-noise", "-1"), "between 0 and 1"
    ),
    Case(
        "visits of one's own people",
        "simulate basic --out c.csv --own-controls people.csv --visits 2",
        ("--own-controls", "but got 2"),
        "Request one visit, or omit the table",
    ),
    Case("no people", "simulate basic --out c.csv --controls 0", ("--controls", "but got 0"), "Choose a number"),
    Case(
        "impossible correlation",
        "simulate basic --out c.csv --correlation 1.5",
        ("--correlation", "1.5"),
        "omit it",
    ),
    Case("correlation of nothing", "simulate basic --out c.csv --correlation nan", ("--correlation",), "omit it"),
    Case("correlation in words", "simulate basic --out c.csv --correlation high", ("'high'",), "--correlation"),
    Case(
        "correlation of two",
        "simulate basic --out c.csv --correlation r.csv",
        ("--correlation", "['1', '0.5']"),
        "3 x 3",
        {"r.csv": "1,0.5\n0.5,1\n"},
    ),
    Case(
        "ragged correlation",
        "simulate basic --out c.csv --correlation r.csv",
        ("--correlation",),
        "3 x 3",
        {"r.csv": "1,0.5,0\n0.5,1\n0,0,1\n"},
    ),
    Case(
        "own table over itself",
        "simulate null --out people.csv --own-controls people.csv",
        ("would overwrite",),
        "--out",
    ),
    Case("truth over the table", "simulate basic --out c.csv --truth c.csv", ("c.csv twice",), "--truth"),
    Case(
        "own table missing", "simulate null --out c.csv --own-controls own.csv", ("There is no file own.csv",), "Check"
    ),
    Case(
        "own table with repeated ids",
        "simulate null --out c.csv --own-controls own.csv",
        ("p01",),
        "one row",
        {"own.csv": lambda people: people.assign(participant_id="p01")},
    ),
    Case(
        "own table with patients",
        "simulate null --out c.csv --own-controls people.csv",
        ("'diagnosis' has 2 labels: CN (40), AD (40)",),
        "Keep only the controls",
    ),
    Case(
        "own table with negative volumes",
        "simulate basic --out c.csv --own-controls own.csv",
        ("'region0'", "row 2"),
        "correct",
        {"own.csv": lambda people: people.assign(diagnosis="CN", region0=-people["region0"])},
    ),
    # Simulated severities
    severities("misspelt", "", ("'midl'", "Did you mean 'mild'"), "uniform, mild", "--severities midl"),
    severities("no file", "", ("'t.csv'", "--severities"), "check the file name", "--severities t.csv"),
    severities("column missing", "s1,s3\n0.1,0.2\n", ("s1, s2", "s1, s3"), "Rename"),
    severities("patterns more", "s1,s2,s3\n0,0,0\n", ("1 row with s1, s2, s3",), "--patterns"),
    severities("above 1", "id,s1,s2\na,0.1,0.2\n\nb,0.3,1.5\n", ("1.5 in column 's2', row 4",), "Correct"),
    severities("empty cell", "s1,s2\n0.1,0.2\n0.1,\n", ("an empty cell in column 's2', row 3",), "remove their rows"),
    severities("text", "s1,s2\n0.1,high\n", ("high in column 's2', row 2",), "Correct"),
    severities("no rows", "s1,s2\n", ("s.csv", "no rows below"), "one row"),
    severities(
        "table and correlation",
        "s1,s2\n0.1,0.2\n",
        ("--correlation", "Correlations cannot be set for a table of severities"),
        "Omit",
        "--severities s.csv --patterns 2 --correlation 0.5",
    ),
    severities("full correlation with age", "", ("--severity-age", "but got 1"), "-0.99 and 0.99", "--severity-age 1"),
    severities(
        "no age",
        lambda people: people.drop(columns="age").assign(diagnosis="CN"),
        ("--severity-age", "'age' of --own-controls", "no such column"),
        "rename",
        "--severity-age 0.5 --own-controls s.csv",
    ),
    severities(
        "age in words",
        lambda people: people.assign(diagnosis="CN", age="old"),
        ("old in column 'age', row",),
        "Fill in",
        "--severity-age 0.5 --own-controls s.csv",
    ),
    Case(
        "over themselves",
        "simulate basic --out s.csv --severities s.csv",
        ("would overwrite",),
        "--out",
        {"s.csv": "s1\n0\n"},
    ),
    Case(
        "accepted",
        "simulate basic --out c.csv --severities s.csv --patients 20",
        ("20 patients", "drawn from the 2 rows of the table provided"),
        files={"s.csv": "participant_id,s1,s2,s3\na,0.1,0,1\nb,0.3,1,0.25\n"},
        code=0,
        writes=("c.csv",),
    ),
)
def test_each_file_or_command_is_answered_as_its_case_says(stage, case):
    stage(case)
