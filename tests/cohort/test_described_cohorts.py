import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort, read_cohort
from rindices.errors import InputError
from rindices.tables import Column, Dictionary

REGIONS = ["lHip", "rHip", "lAmy", "rAmy"]
SAYS = Dictionary(
    {
        "diagnosis": Column(levels={"1": "Control", "2": "Patient"}),
        "sex": Column(levels={"1": "male", "2": "female"}, missing=("-9",)),
        "scanner_type": Column(levels={"1": "A", "2": "B"}),
        **{name: Column(unit="mm3") for name in REGIONS},
    }
)


def table(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(5000, 500, (80, 4)), columns=REGIONS)
    frame.insert(0, "participant_id", [f"sub-{number:02d}" for number in range(80)])
    frame.insert(1, "diagnosis", np.repeat([1, 2], 40))
    frame["sex"], frame["scanner_type"] = np.resize([1, 2], 80), np.resize([1, 1, 2], 80)
    frame["age"] = rng.uniform(50, 80, 80)
    return frame.assign(**columns)


def test_a_dictionary_explains_labels_codes_and_units():
    cohort = make_cohort(table(), dictionary=SAYS, covariates="sex,age")
    assert (cohort.control_labels, cohort.patient_labels) == (("1",), ("2",))
    assert set(cohort.covariates["sex"]) == {"1", "2"}  # a category, not a slope
    assert list(cohort.features) == REGIONS  # scanner_type is a category, not a region
    assert cohort.unit == "mm3"
    named = make_cohort(table(), dictionary=SAYS, control="control", patients="patient")
    assert named.group.tolist() == cohort.group.tolist()
    with pytest.raises(InputError, match="'scanner_type' is a category by the data dictionary"):
        make_cohort(table(), dictionary=SAYS, features=[*REGIONS, "scanner_type"])


def test_missing_codes_of_a_dictionary_make_gaps():
    frame = table()
    frame.loc[3, "sex"] = -9
    cohort = make_cohort(frame, dictionary=SAYS, covariates="sex,age", drop_missing=True)
    assert cohort.people.loc[3, "reason"] == "missing covariate"


def test_a_bids_folder_is_read_with_its_dictionaries(tmp_path):
    (tmp_path / "phenotype").mkdir()
    table().to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    levels = {"diagnosis": {"Levels": {"1": "Control", "2": "Patient"}}}
    (tmp_path / "participants.json").write_text(json.dumps(levels))
    scores = pd.DataFrame({"participant_id": table()["participant_id"], "mmse": np.resize([29, 25], 80)})
    scores.to_csv(tmp_path / "phenotype" / "mmse.tsv", sep="\t", index=False)
    cohort = read_cohort(tmp_path, clinical="mmse", covariates="age", exclude="scanner_type,sex")
    assert (cohort.n_controls, cohort.n_patients) == (40, 40)
    assert cohort.clinical["mmse"].tolist() == scores["mmse"].tolist()
    assert cohort.source == tmp_path.name
    scores["mmse"] -= 1
    scores.to_csv(tmp_path / "phenotype" / "mmse.tsv", sep="\t", index=False)
    again = read_cohort(tmp_path, clinical="mmse", covariates="age", exclude="scanner_type,sex")
    assert again.sha256 != cohort.sha256


def test_a_dictionary_in_a_file_and_a_joined_table(tmp_path):
    paths = [tmp_path / name for name in ("people.csv", "scores.csv", "dictionary.csv")]
    table().to_csv(paths[0], index=False)
    scores = pd.DataFrame({"participant_id": table()["participant_id"][::-1], "mmse": np.arange(80.0)})
    scores.to_csv(paths[1], index=False)
    paths[2].write_text("column,levels\ndiagnosis,1=Control;2=Patient\nscanner_type,1=A;2=B\n")
    cohort = read_cohort(paths[0], join=[paths[1]], dictionary=str(paths[2]), clinical="mmse")
    assert cohort.clinical["mmse"].tolist() == list(range(79, -1, -1))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert cohort.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()
