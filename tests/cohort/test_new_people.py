"""People with gaps: whom a joined table does not know, whom a model cannot score, and scores that are no regions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort, read_cohort, read_people
from rindices.problems import InputError
from rindices.settings import ApplySettings
from tests.cohort.people import REGIONS, table
from tests.schema.contracts import check_people, contract_of

ROLES = {"covariates": "age,icv", "clinical": "MMST"}
DROP = ApplySettings(drop_missing=True, complete_only=True)


def clinic(*cells, **columns):
    """Return people with a score."""
    return table(*cells, **{"MMST": np.resize([29, 27, 24], 120)} | columns)


@pytest.fixture(scope="module")
def contract():
    return contract_of(make_cohort(clinic(), **ROLES))


@pytest.fixture
def tables(tmp_path):
    """Return two tables of the same people, of whom the second lacks three."""
    clinic().drop(columns=["age", "icv"]).to_csv(tmp_path / "volumes.csv", index=False)
    clinic().drop([4, 5, 70])[["participant_id", "age", "icv"]].to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "volumes.csv", tmp_path / "people.csv"


@pytest.mark.parametrize("join", [str, lambda path: path, lambda path: [path]])
def test_people_whom_a_joined_table_does_not_know(tables, join):
    cohort = read_cohort(tables[0], join=join(tables[1]), drop_missing=True, **ROLES)
    assert cohort.people.loc[~cohort.people["used"], "participant_id"].tolist() == ["004", "005", "070"]
    cohort = read_cohort(tables[0], join=join(tables[1]), clinical="MMST,age,icv")
    assert cohort.clinical["age"].isna().sum() == 3


def test_a_setting_that_is_none_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'covariate'"):
        read_cohort("people.csv", covariate="age")


def test_what_a_model_cannot_score_is_left_out_when_asked(contract, tables):
    gaps = clinic((3, "rAmy", np.nan), (7, "age", np.nan), (70, "icv", 0.0))
    people, complete = check_people(gaps, contract, DROP), check_people(gaps.drop([3, 7, 70]), contract)
    assert people.left_out[["participant_id", "reason", "flags", "group"]].to_numpy().tolist() == [
        ["003", "missing region", "rAmy is missing", "control"],
        ["007", "missing covariate", "age is missing", "control"],
        ["070", "impossible value", "icv = 0 is impossible", "patient"],
    ]
    pd.testing.assert_frame_equal(people.features, complete.features)
    assert complete.left_out.empty
    (people,) = read_people(tables[0], contract, replace(DROP, join=tables[1]))
    assert (len(people.features), people.notes[-1]) == (117, "3 of 120 rows are excluded: missing covariate (3).")


@pytest.mark.parametrize(
    ("change", "settings", "told"),
    [
        ({"lHip": ["low", *[5.0] * 119]}, DROP, r"'lHip' .*row 2 \(participant 000\) has the text 'low'"),
        (
            {"icv": 1.5},
            ApplySettings(),
            r"icv = 1.5 in row 2[\s\S]*'icv' was numeric in training \(mostly 1\d{6} to 1\d{6}\)",
        ),
        ({"icv": 1.5}, DROP, r"'icv' was numeric in training \(mostly 1\d{6} to 1\d{6}\)"),
        ({"rAmy": -9999.0}, ApplySettings(), r"rAmy = -9999[\s\S]*`missing`"),
        ({}, ApplySettings(missing="nobody=0"), r"'nobody' \(from `missing`\) is not a column"),
    ],
)
def test_new_people_who_do_not_fit(contract, change, settings, told):
    with pytest.raises(InputError, match=told):
        check_people(clinic(**change), contract, settings)


def test_a_second_row_of_headings_is_said_also_where_people_come_some_at_a_time(contract, tmp_path):
    frame = clinic().astype(object)
    described = pd.concat([pd.DataFrame([{name: f"what {name} is" for name in frame}]), frame])
    described.to_csv(tmp_path / "people.csv", index=False)
    (people,) = read_people(tmp_path / "people.csv", contract, DROP)
    assert "The row below the column names in people.csv describes the columns and is skipped." in people.notes
    assert "what" not in "".join(people.features.index)


def test_a_person_outside_the_range_is_no_impossible_one(contract):
    frame = clinic().head(3).assign(icv=[900_000.0, 2.2e6, 1.5e6], age=[101.0, 30.0, 70.0])
    assert check_people(frame, contract).flags.astype(bool).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("column", "values", "offered"),
    [
        ("MMST", np.resize([29.0, 27.0, np.nan], 120), True),
        ("Abeta", np.where(np.arange(120) % 5, np.random.default_rng(0).normal(500, 90, 120), np.nan), True),
        ("rEnt", np.r_[np.nan, np.random.default_rng(0).normal(5, 0.5, 119)], False),
    ],
)
def test_a_column_with_gaps_may_be_a_score(column, values, offered):
    with pytest.raises(InputError, match=rf"drop_missing=True.*exclude=\['{column}'\]") as caught:
        make_cohort(table(**{column: values}), complete_only=True, features=[*REGIONS, column])
    assert (f"name it with clinical=['{column}'] if it is a score" in str(caught.value)) == offered


def test_codes_for_missing_values():
    scores = np.where(np.arange(120) % 8, np.resize([29, 27, 24], 120), -9999)
    with pytest.raises(InputError, match=r"rAmy = -9999 in row 4[\s\S]*name codes with `missing`"):
        make_cohort(clinic((2, "rAmy", -9999), MMST=scores), **ROLES)
    frame = clinic(MMST=scores)
    suspected, named = make_cohort(frame, **ROLES), make_cohort(frame, **ROLES, missing="-9999")
    assert suspected.clinical["MMST"].isna().sum() == 15  # kept out until it is confirmed
    told = ["MMST = -9999, which looks like a code" in "".join(one.warnings) for one in (suspected, named)]
    assert told == [True, False]
    pd.testing.assert_frame_equal(named.clinical, suspected.clinical)
    cohort = make_cohort(clinic((5, "icv", 0)), **ROLES, missing="-9999,icv=0", drop_missing=True)
    assert cohort.people.loc[~cohort.people["used"], "reason"].tolist() == ["missing covariate"]
