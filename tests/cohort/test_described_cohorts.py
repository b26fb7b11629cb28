import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort, read_cohort
from rindices.problems import InputError
from rindices.tables import Column, Dictionary
from tests.cohort import people

SAYS = Dictionary(
    {
        "diagnosis": Column(levels={"1": "Control", "2": "Patient"}),
        "sex": Column(levels={"0": "male", "1": "female"}, missing=("-9",)),
        "scanner_type": Column(levels={"1": "A", "2": "B"}),
        **{name: Column(unit="mm3") for name in people.REGIONS},
    }
)
SCORES = pd.DataFrame({"participant_id": people.table()["participant_id"][::-1], "mmse": np.arange(120.0)})


def table(*cells):
    return people.table(*cells, diagnosis=np.repeat([1, 2], 60), scanner_type=np.resize([1, 1, 2], 120))


def test_a_dictionary_explains_labels_codes_and_units():
    cohort = make_cohort(table(), dictionary=SAYS, covariates="sex,age")
    assert (cohort.control_labels, cohort.patient_labels) == (("1",), ("2",))
    assert set(cohort.covariates["sex"]) == {"0", "1"}  # a category, not a slope
    assert list(cohort.features) == people.REGIONS  # scanner_type is a category, not a region
    assert cohort.unit == "mm3"
    named = make_cohort(table(), dictionary=SAYS, control="control", patients="patient")
    assert named.group.tolist() == cohort.group.tolist()
    with pytest.raises(InputError, match="'scanner_type' is a category according to the data dictionary"):
        make_cohort(table(), dictionary=SAYS, features=[*people.REGIONS, "scanner_type"])


def test_missing_codes_of_a_dictionary_make_gaps():
    cohort = make_cohort(table((3, "sex", -9)), dictionary=SAYS, covariates="sex,age", drop_missing=True)
    assert cohort.people.loc[3, "reason"] == "missing covariate"


def test_a_bids_folder_is_read_with_its_dictionaries(tmp_path):
    (tmp_path / "phenotype").mkdir()
    table().to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    (tmp_path / "participants.json").write_text(json.dumps({"diagnosis": {"Levels": {"1": "Control", "2": "Patient"}}}))
    cohorts = []
    for change in (0, 1):
        scores = SCORES.assign(mmse=SCORES["mmse"] + change)
        scores.to_csv(tmp_path / "phenotype" / "mmse.tsv", sep="\t", index=False)
        cohorts.append(read_cohort(tmp_path, clinical="mmse", covariates="age", exclude="scanner_type"))
        assert cohorts[-1].clinical["mmse"].tolist() == scores["mmse"].tolist()[::-1]
    assert (cohorts[0].n_controls, cohorts[0].n_patients, cohorts[0].source) == (60, 60, tmp_path.name)
    assert cohorts[0].sha256 != cohorts[1].sha256


def test_a_dictionary_in_a_file_and_a_joined_table(tmp_path):
    paths = [tmp_path / name for name in ("people.csv", "scores.csv", "dictionary.csv")]
    table().to_csv(paths[0], index=False)
    SCORES.to_csv(paths[1], index=False)
    paths[2].write_text("column,levels\ndiagnosis,1=Control;2=Patient\nscanner_type,1=A;2=B\n")
    cohort = read_cohort(paths[0], join=[paths[1]], dictionary=str(paths[2]), clinical="mmse")
    assert cohort.clinical["mmse"].tolist() == list(range(119, -1, -1))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert cohort.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()
