"""Ids: the table's own column, and ids that two tables write differently."""

import pandas as pd
import pytest

from rindices.problems import InputError
from rindices.tables import own_ids, read_source


@pytest.mark.parametrize(
    "name", ["Measure:volume", "lh.aparc.thickness", "MRID", "RID", "eid", "subject", "SubjID", "src_subject_id", "who"]
)
def test_a_first_column_of_ids_is_taken_and_said(name, tmp_path):
    pd.DataFrame({name: ["a", "b"], "lHip": [3.1, 2.9]}).to_csv(tmp_path / "people.csv", index=False)
    source = read_source(tmp_path / "people.csv")
    assert (source.id_column, [str(note) for note in source.notes]) == (
        name,
        [f"Ids are read from column {name!r}; to use another, specify id='COLUMN'."],
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"lHip": [3.1, 2.9], "rHip": [3.0, 3.2]},
        {"group": ["a", "b"], "lHip": [3.1, 2.9]},
        {"who": ["a", "a"], "lHip": [3.1, 2.9]},
        {"Unnamed: 0": [0, 1], "lHip": [3.1, 2.9]},
        {"p1": ["p2", "p3"], "3.1": [2.9, 3.2], "3.3": [3.3, 3.1]},
    ],
)
def test_other_first_columns_are_no_ids(columns):
    assert own_ids(pd.DataFrame(columns), "participant_id") == "participant_id"


def joined(tmp_path, ours, theirs, **columns):
    pd.DataFrame({"participant_id": ours, "lHip": 3.0}).to_csv(tmp_path / "main.csv", index=False)
    pd.DataFrame({"subject": theirs, "age": range(len(theirs)), **columns}).to_csv(tmp_path / "more.csv", index=False)
    return read_source(tmp_path / "main.csv", join=[tmp_path / "more.csv"])


def test_ids_that_differ_by_a_prefix_or_suffix_are_matched_and_said(tmp_path):
    source = joined(tmp_path, ["sub-01", "sub-02", "sub-03"], ["03_T1w", "sub-01", "02"])
    assert source.frame["age"].tolist() == [1, 2, 0]
    said = " ".join(map(str, source.notes))
    assert "more.csv is joined by its column 'subject'." in said
    assert "2 ids are written differently in more.csv (for example, participants 'sub-02' and '02')" in said


def test_ids_that_do_not_match_one_to_one_are_refused_with_the_pairs(tmp_path):
    with pytest.raises(InputError, match=r"'sub-01' could be '01_ses-1' or '01_ses-2'"):
        joined(tmp_path, ["sub-01", "sub-02"], ["01_ses-1", "01_ses-2"])


def test_who_did_not_match_is_listed_by_name(tmp_path):
    assert [str(note) for note in joined(tmp_path, ["a1", "a2", "a3"], ["a1", "b7", "b8"]).notes][1:] == [
        "2 rows of more.csv excluded, because these ids are not in the main table (participants b7, b8).",
        "2 rows of the main table not found in more.csv; values from that table are missing for them (participants "
        "a2, a3).",
    ]
