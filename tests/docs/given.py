"""What the pages take for granted: the reader's own tables, images and finished runs, small and made up."""

import json
import shutil

import numpy as np
import pandas as pd

from rindices.interop.muse import MUSE_REGIONS
from tests.conftest import N_REGIONS
from tests.imaging.made_up import SHAPE, write_image
from tests.tables.trees import subjects_dir

REGIONS = [f"roi{k:02}" for k in range(1, N_REGIONS + 1)]
_LABELS = {"CN": 40, "MCI": 20, "AD": 20, "SCD": 4}  # 40 controls and 40 patients, as in other tests
NOT_LEARNED_FROM, NEW_DEMOGRAPHICS = 82, ["participant_id", "age", "sex", "icv", "site", "apoe4"]


def table(labels=_LABELS, seed=0):
    """Return a table with the columns that the pages name; patients lose up to a third of some regions."""
    rng, diagnosis = np.random.default_rng(seed), np.repeat(list(labels), list(labels.values()))
    n_people, patient = len(diagnosis), np.isin(diagnosis, ["MCI", "AD"])
    volumes = 5 * (1 + 0.1 * rng.standard_normal((n_people, N_REGIONS)))
    volumes *= 1 - 0.35 * np.repeat(patient[:, None] * rng.uniform(size=(n_people, 3)), N_REGIONS // 3, axis=1)
    about = {
        "participant_id": [f"sub-{seed}{k:03}" for k in range(n_people)],
        "diagnosis": diagnosis,
        "age": rng.uniform(55, 80, n_people).round(1),
        "sex": rng.choice(["F", "M"], n_people),
        "icv": rng.normal(1500, 100, n_people).round(1),
        "site": np.tile(["A", "B"], n_people)[:n_people],
        "apoe4": rng.choice(["carrier", "non-carrier"], n_people),
    }
    return pd.DataFrame(about).join(pd.DataFrame(volumes, columns=REGIONS).round(4))


def study():
    """Return the table with a clinical score that has gaps, and with an impossible head size.

    The head belongs to somebody outside the fit: all tables have the same numbers of controls and patients, so that one
    compiled program serves all.
    """
    made = table()
    mmse = np.random.default_rng(1).integers(18, 31, len(made))
    return made.assign(
        mmse=np.where(made.index % 9, mmse, np.nan), icv=made["icv"].where(made.index != NOT_LEARNED_FROM, 0.0)
    )


def visits():
    """Return the table with a second visit of some people a year later."""
    first = table().assign(session="bl")
    some = first.iloc[::3]
    later = some.assign(session="m12", age=some["age"] + 1, **0.97 * some[REGIONS])
    return pd.concat([first, later], ignore_index=True)


def new_people():
    return table({"CN": 12, "AD": 12}, seed=1)


def muse():
    """Return volumes of all MUSE regions in mm³; patients lose part of the first ones."""
    rng, people, numbers = np.random.default_rng(3), table({"CN": 40, "AD": 40}), list(MUSE_REGIONS)
    volumes = pd.DataFrame({f"MUSE_Volume_{number}": rng.normal(8000, 500, len(people)) for number in numbers})
    volumes.iloc[:, :20] *= 1 - 0.3 * (people["diagnosis"] == "AD").to_numpy()[:, None] * rng.uniform(size=(80, 1))
    return people[["participant_id", "diagnosis", "age", "sex"]].join(volumes.round(1))


def _write_bids(path):
    path.mkdir()
    table({"CN": 40, "AD": 40}).to_csv(path / "participants.tsv", sep="\t", index=False)
    levels = {"sex": {"Levels": {"F": "female", "M": "male"}}, "age": {"Units": "year"}}
    (path / "participants.json").write_text(json.dumps(levels))


def _write_dictionary(path):
    rows = [("sex", "", "F=female;M=male", "", ""), ("age", "year", "", 0, 120), ("mmse", "", "", 0, 30)]
    pd.DataFrame(rows, columns=["name", "unit", "levels", "minimum", "maximum"]).to_csv(path, index=False)


def _write_old_layout(path):
    codes = {"diagnosis": {"CN": -1, "AD": 1}, "sex": {"F": 0, "M": 1}}
    columns = ["sex", "age"] if path.name == "covariate.csv" else REGIONS
    made = table({"CN": 40, "AD": 40})[["participant_id", "diagnosis", *columns]]
    made.apply(lambda column: column.map(codes[column.name]) if column.name in codes else column).to_csv(
        path, index=False
    )


def _write_maps(path):
    rng, people = np.random.default_rng(2), table()["participant_id"]
    images = path.parent / "images"
    images.mkdir()
    for name in people:
        write_image(images / f"{name}.nii", 3 + rng.standard_normal(SHAPE))
    pd.DataFrame({"participant_id": people, "path": "images/" + people + ".nii"}).to_csv(path, index=False)


def _write_labels(path):
    """Write region numbers inside a border, or a mask of everything inside it."""
    inside = np.arange(np.prod([n - 2 for n in SHAPE])).reshape([n - 2 for n in SHAPE]) % N_REGIONS + 1
    values, dtype = {"labels.nii.gz": (inside, np.int16), "mask.nii.gz": (inside > 0, np.uint8)}[path.name]
    write_image(path, np.pad(values, 1).astype(float), dtype=dtype)


def labels():
    """Return diagnoses and demographics of the people in output folders of segmentation programs."""
    people = table({"CN": 40, "AD": 40})[["diagnosis", "age", "sex"]]
    return people.assign(participant_id=[f"sub-{number:04d}" for number in range(80)])


def _write_volumes(path):
    """Write what NiChart DLMUSE or SynthSeg leaves in a folder."""
    path.mkdir()
    rng, people = np.random.default_rng(4), labels()["participant_id"]
    if path.name == "dlmuse":
        volumes = muse().filter(like="MUSE").add_prefix("DL_")
        sums = {f"DL_MUSE_Volume_{number}": rng.normal(1.4e6, 1e5, 80) for number in (702, 701)}
        volumes.assign(MRID=people, **sums).set_index("MRID").to_csv(path / "DLMUSE_Volumes.csv")
        return
    regions = ["hippocampus", "amygdala", "caudate", "putamen"]
    volumes = {f"{side} {name}": rng.normal(4000, 400, 80) for side in ("left", "right") for name in regions}
    volumes["total intracranial"] = rng.normal(1.4e6, 1e5, 80)
    for name, own in (("volumes", volumes), ("qc", {"general white matter": rng.uniform(0.6, 0.9, 80)})):
        pd.DataFrame({"subject": people} | own).to_csv(path / f"{name}.csv", index=False)


def _csv(make):
    return lambda path: make().to_csv(path, index=False)


MAKERS = {
    "table.csv": _csv(table),
    "study.csv": _csv(study),
    "visits.csv": _csv(visits),
    "new_people.csv": _csv(new_people),
    "gappy_people.csv": _csv(  # some lack a region
        lambda: new_people().assign(
            roi02=lambda people: people["roi02"].drop(3), roi07=lambda people: people["roi07"].drop([5, 8])
        )
    ),
    "local_controls.csv": _csv(lambda: table({"CN": 14, "AD": 2}, seed=3).assign(site="Graz")),
    "graz_patients.csv": _csv(lambda: table({"AD": 6}, seed=4).assign(site="Graz")),
    "new_volumes.csv": _csv(lambda: new_people().drop(columns=NEW_DEMOGRAPHICS[1:])),
    "new_demographics.csv": _csv(lambda: new_people()[NEW_DEMOGRAPHICS].drop(3)),  # one person is missing
    "demographics.csv": _csv(lambda: table()[["participant_id"]].assign(education=lambda t: 8 + t.index % 7)),
    "controls.csv": _csv(lambda: table().query("diagnosis == 'CN'").drop(columns="diagnosis")),
    "patients.csv": _csv(lambda: table().query("diagnosis == 'AD'").drop(columns="diagnosis")),
    "later_scores.csv": _csv(lambda: study()[["participant_id"]].assign(tau=lambda t: t.index % 11)),
    "muse.csv": _csv(muse),
    "labels.csv": _csv(labels),
    "subjects": lambda path: subjects_dir(path, 80),
    "synthseg": _write_volumes,
    "dlmuse": _write_volumes,
    "other_atlas.csv": _csv(
        lambda: muse().drop(columns=[f"MUSE_Volume_{number}" for number in range(23, 95)], errors="ignore")
    ),
    "columns.csv": _write_dictionary,
    "my_study": _write_bids,
    "data.csv": _write_old_layout,
    "covariate.csv": _write_old_layout,
    "labels.nii.gz": _write_labels,
    "names.csv": _csv(lambda: pd.DataFrame({"label": range(1, N_REGIONS + 1), "region": REGIONS})),
    "maps.csv": _write_maps,
    "mask.nii.gz": _write_labels,
}


def provide(name, folder, run):
    """Put a file or folder that a page takes for granted into `folder`; `run` is a finished run."""
    if name == "run":
        shutil.copytree(run, folder / name)
    else:
        MAKERS[name](folder / name)
