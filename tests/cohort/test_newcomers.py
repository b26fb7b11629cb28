"""People with gaps: whom a joined table does not know, whom a model cannot score, and scores that are no regions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import check_people, make_cohort, read_cohort, read_people
from rindices.errors import InputError
from rindices.settings import ApplySettings
from tests.schema.contracts import contract_of

REGIONS = [f"region{number}" for number in range(8)]
ROLES = {"covariates": "Alter,tiv", "clinical": "MMST"}
DROP = ApplySettings(drop_missing=True)


def clinic():
    """80 people with age, head size and a score."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(5000, 400, (80, 8)).round(1), columns=REGIONS)
    frame.insert(0, "participant_id", [f"p{number:02d}" for number in range(80)])
    frame.insert(1, "diagnosis", np.repeat(["CN", "AD"], 40))
    ages, sizes = rng.uniform(55, 85, 80).round(1), rng.normal(1.5e6, 1e5, 80).round(1)
    return frame.assign(Alter=ages, tiv=sizes, MMST=np.resize([29, 27, 24], 80))


@pytest.fixture(scope="module")
def contract():
    return contract_of(make_cohort(clinic(), **ROLES))


@pytest.fixture
def tables(tmp_path):
    """Return two tables of the same people, of whom the second lacks three."""
    frame = clinic()
    frame[["participant_id", "diagnosis", "MMST", *REGIONS]].to_csv(tmp_path / "volumes.csv", index=False)
    frame.drop([4, 5, 70])[["participant_id", "Alter", "tiv"]].to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "volumes.csv", tmp_path / "people.csv"


def with_gaps():
    """Return people of whom one lacks a region, one the age and one has a head size of 0."""
    frame = clinic()
    frame.loc[3, "region2"], frame.loc[7, "Alter"], frame.loc[50, "tiv"] = np.nan, np.nan, 0.0
    return frame


def test_people_whom_a_joined_table_does_not_know_are_told_as_such(tables, contract):
    told = r"Missing values in 1 covariate column: Alter \(3 people\).*row 6 \(participant p04\)[\s\S]*3 rows"
    with pytest.raises(InputError, match=told):
        read_cohort(tables[0], join=tables[1], **ROLES)
    with pytest.raises(InputError, match=told):
        list(read_people(tables[0], contract, ApplySettings(join=[str(tables[1])])))
    cohort = read_cohort(tables[0], join=tables[1], clinical="MMST,Alter,tiv")
    assert cohort.clinical["Alter"].isna().sum() == 3


@pytest.mark.parametrize("join", [str, lambda path: path, lambda path: [path]])
def test_one_table_to_join_needs_no_list(tables, join):
    cohort = read_cohort(tables[0], join=join(tables[1]), drop_missing=True, **ROLES)
    assert cohort.people.loc[~cohort.people["used"], "participant_id"].tolist() == ["p04", "p05", "p70"]


def test_a_setting_that_is_none_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'covariate'"):
        read_cohort("people.csv", covariate="age")


def test_what_a_model_cannot_score_is_left_out_when_asked(contract, tables):
    people = check_people(with_gaps(), contract, DROP)
    assert len(people.features) == 77
    left = people.left_out
    assert left["participant_id"].tolist() == ["p03", "p07", "p50"]
    assert left["reason"].tolist() == ["missing region", "missing covariate", "impossible value"]
    assert left["flags"].tolist() == ["region2 is missing", "Alter is missing", "tiv = 0 is impossible"]
    assert left["group"].tolist() == ["control", "control", "patient"]
    complete = check_people(with_gaps().drop([3, 7, 50]), contract)
    pd.testing.assert_frame_equal(people.features, complete.features)
    assert complete.left_out.empty
    (people,) = read_people(tables[0], contract, replace(DROP, join=tables[1]))
    assert len(people.features) == 77
    assert people.notes[-1] == "3 of 80 rows are left out: missing covariate (3)."


@pytest.mark.parametrize(
    ("change", "settings", "told"),
    [
        ({"region2": np.nan}, DROP, "Nobody is left to be scored"),
        ({"participant_id": ["p02", "p02", *(f"q{n}" for n in range(78))]}, DROP, "'p02' occurs in rows 2 and 3"),
        ({"region1": ["low", *range(5000, 5079)]}, DROP, r"'region1' .*row 2 \(participant p00\) has the text 'low'"),
        (
            {"tiv": 1.5},
            ApplySettings(),
            r"tiv = 1.5 in row 2[\s\S]*'tiv' was a number in training \(1\d{6} to 1\d{6}\)",
        ),
        ({"tiv": 1.5}, DROP, r"'tiv' was a number in training \(1\d{6} to 1\d{6}\)"),
        ({"region3": -9999.0}, ApplySettings(), r"region3 = -9999[\s\S]*`missing`"),
        ({}, ApplySettings(missing="nobody=0"), r"'nobody' \(from `missing`\) is not a column"),
    ],
)
def test_new_people_who_do_not_fit(contract, change, settings, told):
    with pytest.raises(InputError, match=told):
        check_people(clinic().assign(**change), contract, settings)


def test_a_person_outside_the_range_is_no_impossible_one(contract):
    frame = clinic().head(3).assign(tiv=[900_000.0, 2.2e6, 1.5e6], Alter=[101.0, 30.0, 70.0])
    assert check_people(frame, contract).flags.astype(bool).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("column", "values", "offered"),
    [
        ("MMST", np.resize([29.0, 27.0, np.nan], 80), True),
        ("Abeta", np.where(np.arange(80) % 5, np.random.default_rng(0).normal(500, 90, 80), np.nan), True),
        ("region9", np.r_[np.nan, np.random.default_rng(0).normal(5000, 400, 79)], False),
    ],
)
def test_a_column_with_gaps_may_be_a_score(column, values, offered):
    with pytest.raises(InputError, match=rf"drop_missing=True.*exclude=\['{column}'\]") as caught:
        make_cohort(clinic().drop(columns="MMST").assign(**{column: values}))
    assert (f"name it with clinical=['{column}'] if it is a score" in str(caught.value)) == offered


def test_codes_for_missing_values():
    frame = clinic().assign(MMST=np.where(np.arange(80) % 8, np.resize([29, 27, 24], 80), -9999))
    frame.loc[2, "region2"] = -9999
    with pytest.raises(InputError, match=r"region2 = -9999 in row 4[\s\S]*name codes with `missing`"):
        make_cohort(frame, **ROLES)
    frame = frame.drop(2)
    suspected = make_cohort(frame, **ROLES)
    assert suspected.clinical["MMST"].isna().sum() == 10  # kept out until it is confirmed
    assert any("MMST = -9999, which looks like a code" in warning for warning in suspected.warnings)
    named = make_cohort(frame, **ROLES, missing="-9999")
    assert not any("looks like a code" in warning for warning in named.warnings)
    pd.testing.assert_frame_equal(named.clinical, suspected.clinical)
    frame.loc[5, "tiv"] = 0
    cohort = make_cohort(frame, **ROLES, missing="-9999,tiv=0", drop_missing=True)
    assert cohort.people.loc[~cohort.people["used"], "reason"].tolist() == ["missing covariate"]
