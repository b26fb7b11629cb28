"""Tables that lie, tried as a new user would: messages name what is wrong and the command that helps."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from openpyxl import Workbook

from rindices.cohort import make_cohort, read_cohort, read_people
from rindices.problems import InputError
from rindices.run.check_table import check_table
from rindices.settings import ApplySettings, TableSettings
from rindices.tables import read_source
from tests.cohort.people import REGIONS, table
from tests.schema.contracts import check_people, contract_of
from tests.test_cli import told


@pytest.fixture
def check(tmp_path):
    """Return a function that writes a table and checks it, which has to end with this exit code: what was said."""

    def checked(frame, *options, code=0):
        frame.to_csv(tmp_path / "people.csv", index=False)
        return told("check", tmp_path / "people.csv", "--no-spectrum", *options, code=code)

    return checked


def people(**columns):
    return table(**columns).drop(columns=["icv", "place", "note"])


def test_a_repeated_id_with_a_score_is_refused_and_named(check, tmp_path):
    frame = people(panss=np.linspace(30, 90, 120)).astype({"participant_id": object})
    frame["participant_id"] = "person-" + frame["participant_id"]
    frame.loc[9, "participant_id"] = "person-004"
    said = check(frame, "--clinical", "panss", "--report", tmp_path / "check.html", code=2)
    assert "'person-004' occurs in rows 6 and 11" in said
    assert "person-004" not in (tmp_path / "check.html").read_text(encoding="utf-8")
    assert "person-004" not in check_table(tmp_path / "people.csv", TableSettings(clinical="panss")).model_dump_json()


def test_visits_that_are_seen_are_proposed(check):
    frame = pd.concat([people().assign(session=1), people().assign(session=2)])
    assert "--visit session" in check(frame, code=2)
    check(frame, "--visit", "session")


@pytest.mark.parametrize("word", ["#N/A", "NULL", "n.a.", "#NV", "<NA>"])
def test_words_of_spreadsheets_are_missing_values(check, word):
    frame = people().astype(dict.fromkeys(REGIONS, object))
    frame.loc[3, "lHip"] = frame.loc[70, "rAmy"] = word
    assert "2 rows have missing regions" in check(frame)


def test_an_error_that_means_missing_is_a_gap_in_a_workbook(tmp_path):
    book = Workbook()
    for row in (["participant_id", "lHip"], ["a", 3.1], ["b", "#N/A"]):
        book.active.append(row)
    book.save(tmp_path / "people.xlsx")
    assert read_source(tmp_path / "people.xlsx").frame["lHip"].isna().tolist() == [False, True]


def test_text_in_a_region_is_neither_missing_nor_a_code(check):
    frame = people()
    said = check(frame.assign(lHip=frame["lHip"].map("{:.2f} mL".format)), code=2)
    assert "119 more cells have text" in said
    assert not [words for words in ("Missing values", "judging by") if words in said]


def test_words_for_missing_values_are_proposed_before_a_column_is_given_up(check):
    frame = people().astype(dict.fromkeys(REGIONS, object))
    frame.loc[3, "lHip"] = "failed"
    said = check(frame, code=2)
    assert said.index("--missing failed") < said.index("--exclude lHip")
    check(frame, "--missing", "failed")


def test_a_score_that_is_constant_in_controls_is_offered_as_one(check):
    values = np.where(np.arange(120) < 60, 30.0, np.linspace(31, 99, 120))
    said = check(people(symptoms=values), code=2)
    assert said.index("--clinical symptoms") < said.index("--exclude symptoms")
    assert "Use it with --clinical panss" in check(people(panss=values))


def test_spellings_of_controls_are_taken_in_with_the_command_that_is_said(check):
    frame = people()
    frame.loc[:19, "diagnosis"], frame.loc[20:29, "diagnosis"], frame.loc[100:, "diagnosis"] = "cn", "Control", "ad"
    said = check(frame, "--control", "CN", "--patients", "AD")
    assert "cn, Control may denote controls: to include them, use --control CN,cn,Control" in said
    assert "ad may denote patients: to include them, use --patients AD,ad" in said
    assert "60 controls, 60 patients" in check(frame, "--control", "CN,cn,Control", "--patients", "AD,ad")


@pytest.mark.parametrize("options", [(), ("--covariates", "age")])
def test_ages_of_one_group_in_months_are_refused(check, options):
    frame = people(age=np.linspace(50, 80, 120) * np.repeat([1, 12], 60))
    assert "'age' is above 120 in all patients and in no one else" in check(frame, *options, code=2)


def test_impossible_ages_without_a_role_are_not_averaged(check):
    age = np.resize(np.linspace(50, 80, 30), 120)
    age[[3, 70]] = -99
    said = check(people(age=age))
    assert "age has impossible values (2 cells, for example -99 in row 5), which are not used" in said
    assert "age: controls 65." in said


def test_patients_alone_are_told_that_controls_are_missing(check):
    said = check(people().assign(diagnosis="SCZ"), code=2)
    needed = ("In column 'diagnosis', everyone has the label 'SCZ'", "CN=controls.csv")
    assert not [words for words in needed if words not in said]
    assert "--control" not in said


def apart(tmp_path, **changes):
    frame = people()
    controls = frame[frame["diagnosis"] == "CN"].drop(columns="diagnosis")
    patients = frame[frame["diagnosis"] == "AD"].drop(columns="diagnosis").rename(columns={"participant_id": "ID"})
    controls.to_csv(tmp_path / "controls.csv", index=False)
    patients.assign(**changes).to_csv(tmp_path / "patients.csv", index=False)
    return [f"CN={tmp_path / 'controls.csv'}", f"SCZ={tmp_path / 'patients.csv'}"]


def test_controls_and_patients_in_files_of_their_own(tmp_path):
    tables = apart(tmp_path, panss=50.0)
    said = told("check", *tables, "--covariates", "age,sex", "--no-spectrum")
    excluded = "are not in all tables are excluded: panss (patients.csv)"
    expected = ("controls.csv + patients.csv: 120 rows", "60 controls, 60 patients", excluded)
    assert not [words for words in expected if words not in said]
    line = ("--covariates", "age,sex", "--preset", "linear", "--patterns", "2", "--no-report")
    told("fit", *tables, "--out", tmp_path / "run", *line)
    scores = pd.read_csv(tmp_path / "run" / "r_indices.csv", dtype=str)
    assert scores["diagnosis"].value_counts().to_dict() == {"CN": 60, "SCZ": 60}
    told("fit", "--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again", "--no-report")
    pd.testing.assert_frame_equal(scores, pd.read_csv(tmp_path / "again" / "r_indices.csv", dtype=str))


def test_several_tables_that_do_not_go_together(tmp_path):
    one, other = apart(tmp_path)
    assert "each needs a label" in told("check", one.partition("=")[2], other, code=2)
    assert "no groups to compare" in told("check", one, code=2)
    assert "already has a column 'diagnosis'" in told("check", one, apart(tmp_path, diagnosis="SCZ")[1], code=2)
    apart(tmp_path)
    pd.read_csv(tmp_path / "patients.csv").rename(columns=str.upper).to_csv(tmp_path / "patients.csv", index=False)
    assert "have hardly any columns in common" in told("check", one, other, code=2)


def test_patients_in_another_unit_than_controls_are_refused(tmp_path):
    one, other = apart(tmp_path)
    frame = pd.read_csv(tmp_path / "patients.csv")
    frame[REGIONS] *= 1000
    frame.to_csv(tmp_path / "patients.csv", index=False)
    assert "all patients (60 of 120 people) are 1,000 times larger" in told("check", one, other, code=2)


def test_labels_that_mean_controls_are_not_proposed_as_patients(check):
    frame = people()
    labels = frame["diagnosis"].to_numpy(dtype=object).copy()
    control = labels[0]
    labels[:10], labels[10:20] = control.lower(), "Control"
    said = check(frame.assign(diagnosis=labels), "--control", control, code=2)
    assert f"may also be controls; if so, use --control {control},{control.lower()},Control" in said
    assert f"--patients {control.lower()}" not in said
    check(frame.assign(diagnosis=labels), "--control", f"{control},{control.lower()},Control")


def test_tracts_measured_by_what_is_elsewhere_a_quality_pass(check):
    values = np.random.default_rng(0).normal(5, 1, (120, 12))
    tracts = pd.DataFrame(values, columns=[f"tract{number}_qa" for number in range(12)])
    assert "they look like quality measures" in check(people().drop(columns=REGIONS).join(tracts))
    said = check(people(motion=np.linspace(0, 1, 120)))
    assert "Not treated as regions because of their names: motion (quality measure). To include it" in said


def test_what_is_no_problem_is_no_problem_where_a_table_is_refused(check, tmp_path):
    frame = people(mmse=np.arange(120.0) % 13)
    frame["note"] = frame["participant_id"]
    frame[["participant_id", "diagnosis"]].to_csv(tmp_path / "labels.csv", index=False)
    frame.loc[3, "lHip"] = -9
    regions = frame.drop(columns="diagnosis").rename(columns={"participant_id": "subject"})
    said = check(regions, "--join", tmp_path / "labels.csv", code=2)
    assert "Problem: Volumes" in said or "Problem: Impossible" in said or "lHip = -9" in said
    assert "Problem: labels.csv" not in said
    assert "Warning: Not treated as regions because of their names: mmse (score). Use it with --clinical mmse" in said


# People with gaps: whom a joined table does not know, whom a model cannot score, and scores that are no regions.


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
