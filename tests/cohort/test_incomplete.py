"""People with gaps: whom a joined table does not know, whom a model cannot score, and scores that are no regions."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import check_people, make_cohort, read_cohort, read_people
from rindices.cohort.plausible import impossible_newcomer
from rindices.errors import InputError
from tests.cohort.test_decimal_commas import REGIONS, clinic
from tests.schema.contracts import contract_of

ROLES = {"covariates": "Alter,tiv", "clinical": "MMST"}


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
    frame = clinic().astype({"tiv": float})
    frame.loc[3, "region2"], frame.loc[7, "Alter"], frame.loc[50, "tiv"] = np.nan, np.nan, 0.0
    return frame


ABSENT = r"3 people of volumes.csv are not in people.csv \(first: row 6 \(participant p04\)\), which has Alter, tiv\.\n"


def test_people_whom_a_joined_table_does_not_know_are_told_as_such(tables, contract):
    first, second = tables
    with pytest.raises(InputError, match=f"^{ABSENT}Add them to people.csv, or leave .*--drop-missing.$"):
        read_cohort(first, join=second, **ROLES)
    with pytest.raises(InputError, match=f"^{ABSENT}Add them to people.csv, or leave .*--drop-missing.$"):
        read_people(first, contract, join=[str(second)])


def test_other_gaps_are_told_beside_people_whom_a_joined_table_does_not_know(tables):
    frame = pd.read_csv(tables[0])
    frame.loc[9, "region2"] = np.nan
    frame.to_csv(tables[0], index=False)
    with pytest.raises(InputError, match=rf"^{ABSENT}Missing .*region2 \(1 person\).*\nFill in the cells, add them to"):
        read_cohort(tables[0], join=tables[1], **ROLES)


def test_scores_of_a_joined_table_may_be_of_some_people_only(tables):
    cohort = read_cohort(tables[0], join=tables[1], clinical="MMST,Alter,tiv")
    assert cohort.clinical["Alter"].isna().sum() == 3


@pytest.mark.parametrize("join", [str, lambda path: path, lambda path: [path]])
def test_one_table_to_join_needs_no_list(tables, join):
    cohort = read_cohort(tables[0], join=join(tables[1]), drop_missing=True, **ROLES)
    assert cohort.people.loc[~cohort.people["used"], "participant_id"].tolist() == ["p04", "p05", "p70"]


def test_read_cohort_says_itself_what_it_takes():
    own, others = (inspect.signature(function).parameters for function in (read_cohort, make_cohort))
    assert {*others} - {"frame", "source"} <= {*own}
    assert all(own[name].default == others[name].default for name in others if name in own)
    with pytest.raises(TypeError, match=r"read_cohort\(\) got an unexpected keyword argument 'covariate'"):
        read_cohort("people.csv", covariate="age")


def test_what_a_model_cannot_score_is_left_out_when_asked(contract):
    people = check_people(with_gaps(), contract, drop_missing=True)
    assert len(people.features) == 77
    left = people.left_out
    assert left["participant_id"].tolist() == ["p03", "p07", "p50"]
    assert left["reason"].tolist() == ["missing region", "missing covariate", "impossible value"]
    assert left["flags"].tolist() == ["region2 is missing", "Alter is missing", "tiv = 0 is impossible"]
    assert left["group"].tolist() == ["control", "control", "patient"]
    assert people.notes == (
        "3 of 80 rows are left out: missing region (1), missing covariate (1), impossible value (1).",
    )
    complete = check_people(with_gaps().drop([3, 7, 50]), contract)
    pd.testing.assert_frame_equal(people.features, complete.features)
    assert complete.left_out.empty


def test_who_is_left_out_of_two_tables_is_counted(tables, contract):
    people = read_people(tables[0], contract, join=tables[1], drop_missing=True)
    assert len(people.features) == 77
    assert people.notes[-1] == "3 of 80 rows are left out: missing covariate (3)."


def test_nobody_left_to_be_scored(contract):
    with pytest.raises(InputError, match=r"^Nobody is left to be scored\. 80 of 80 rows are left out"):
        check_people(clinic().assign(region2=np.nan), contract, drop_missing=True)


def test_ids_and_text_are_refused_also_where_people_are_left_out(contract):
    frame = with_gaps()
    frame.loc[3, "participant_id"] = "p02"
    with pytest.raises(InputError, match="'p02' occurs in rows 4 and 5"):
        check_people(frame, contract, drop_missing=True)
    frame = with_gaps().astype({"region1": object})
    frame.loc[9, "region1"] = "low"
    with pytest.raises(InputError, match=r"'region1' .*row 11 \(participant p09\) has the text 'low'"):
        check_people(frame, contract, drop_missing=True)


def test_a_head_size_of_0_is_refused_in_the_words_of_fit(contract):
    frame = with_gaps().drop([3, 7])
    with pytest.raises(InputError) as by_fit:
        make_cohort(frame, **ROLES)
    with pytest.raises(InputError) as by_model:
        check_people(frame, contract)
    assert str(by_model.value) == str(by_fit.value)
    assert "tiv = 0 in row 52 (participant p50)" in str(by_model.value)
    with pytest.raises(InputError, match=r"tiv = 0 in row 2 \(participant p50\)"):
        check_people(frame.loc[[50]].reset_index(drop=True), contract)  # also where nobody is there to compare with


@pytest.mark.parametrize("drop_missing", [False, True])
@pytest.mark.parametrize(("column", "factor"), [("tiv", 1e-6), ("age", 12)])
def test_a_covariate_in_another_unit_is_told_as_such(contract, column, factor, drop_missing):
    specs = {spec.name: spec for spec in contract.covariates}
    specs["Alter"] = replace(specs["Alter"], name="age")
    frame, by_age = clinic().rename(columns={"Alter": "age"}), replace(contract, covariates=tuple(specs.values()))
    assert len(check_people(frame, by_age).features) == 80
    frame[column] *= factor
    if drop_missing:
        frame.loc[3, column] = np.nan
    with pytest.raises(InputError, match=rf"'{column}' was .* in training, but is .* here\.\nConvert it to the unit"):
        check_people(frame, by_age, drop_missing=drop_missing)


def test_an_age_below_0_is_possible_where_it_was_in_training():
    assert impossible_newcomer("age", np.array([-1.2, 0.3]), -2.0, 2.1).tolist() == [False, False]
    assert impossible_newcomer("age", np.array([-1.0, 70.0]), 55.0, 88.0).tolist() == [True, False]


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
    with pytest.raises(InputError, match=f"--drop-missing.*--exclude {column}") as caught:
        make_cohort(clinic().drop(columns="MMST").assign(**{column: values}))
    assert (f"name it with --clinical {column} if it is a score" in str(caught.value)) == offered
