"""Misleading tables, tried as a new user would: messages name what is wrong and the command that helps."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort, read_cohort, read_people
from rindices.run.check_table import check_table
from rindices.settings import ApplySettings, TableSettings
from tests.cohort.people import REGIONS, table
from tests.pages.page import missing
from tests.refusal import refused_with
from tests.schema.contracts import check_people, contract_of
from tests.test_cli import told


@pytest.fixture
def check(tmp_path):
    """Return a function that writes and checks a table; the check must end with `code`, and its output is returned."""

    def checked(frame, *options, code=0):
        frame.to_csv(tmp_path / "people.csv", index=False)
        return told("check", tmp_path / "people.csv", "--no-spectrum", *options, code=code)

    return checked


def people(*cells, **columns):
    return table(*cells, **columns).drop(columns=["icv", "place", "note"])


CN, AGE = (slice(0, 20), "diagnosis", "cn"), np.resize(np.linspace(50, 80, 30), 120)
SYMPTOMS = np.where(np.arange(120) < 60, 30.0, np.linspace(31, 99, 120))
SPELT = people(CN, (slice(20, 30), "diagnosis", "Control"), (slice(100, 120), "diagnosis", "ad"))
TWICE = pd.concat([people().assign(session=1), people().assign(session=2)])
TRACTS = pd.DataFrame(np.random.default_rng(0).normal(5, 1, (120, 12)), columns=[f"tract{k}_qa" for k in range(12)])


@pytest.mark.parametrize(
    ("frame", "options", "code", "says", "silent"),
    [
        *(
            (people((3, "lHip", word), (70, "rAmy", word)), (), 0, ["2 rows lack values"], [])
            for word in ("#N/A", "NULL", "n.a.", "#NV", "<NA>")
        ),
        (
            people(lHip=table()["lHip"].map("{:.2f} mL".format)),
            (),
            2,
            ["119 more cells contain text"],
            ["Missing values", "judging by"],
        ),
        (people((3, "lHip", "failed")), (), 2, ["--missing failed", "--exclude lHip"], []),
        (people((3, "lHip", "failed")), ("--missing", "failed"), 0, [], []),
        (people(symptoms=SYMPTOMS), (), 2, ["--clinical symptoms", "--exclude symptoms"], []),
        (people(panss=SYMPTOMS), (), 0, ["Use it as a clinical score with --clinical panss"], []),
        (
            SPELT,
            ("--control", "CN", "--patients", "AD"),
            0,
            [
                "cn, Control may denote controls: to include these people, use --control CN,cn,Control",
                "ad may denote patients: to include these people, use --patients AD,ad",
            ],
            [],
        ),
        (SPELT, ("--control", "CN,cn,Control", "--patients", "AD,ad"), 0, ["60 controls, 60 patients"], []),
        (
            SPELT,
            ("--control", "CN"),
            2,
            ["may also denote controls; if so, use --control CN,cn,Control"],
            ["--patients cn"],
        ),
        (
            people((3, "age", -99), (70, "age", -99), age=AGE),
            (),
            0,
            [
                "age: controls 65.",
                "2 people have age = -99, which looks like a code for a missing value and is not used",
            ],
            [],
        ),
        (
            people(diagnosis="SCZ"),
            (),
            2,
            ["In column 'diagnosis', everyone has the label 'SCZ'", "CN=controls.csv"],
            ["--control"],
        ),
        (people().drop(columns=REGIONS).join(TRACTS), (), 0, ["they look like quality measures"], []),
        (
            people(motion=np.linspace(0, 1, 120)),
            (),
            0,
            ["Judging by its name, motion is not a region (quality measure). To use it as a region"],
            [],
        ),
        (TWICE, (), 2, ["--visit session"], []),
        (TWICE, ("--visit", "session"), 0, [], []),
    ],
)
def test_what_is_wrong_is_named_with_the_command_that_helps(check, frame, options, code, says, silent):
    said = check(frame, *options, code=code)
    assert missing(said, *says, *silent) == silent
    assert sorted(says, key=said.index) == says  # the better remedy is proposed first


def test_a_repeated_id_with_a_score_is_refused_and_named(check, tmp_path):
    frame = people((9, "participant_id", "004"), panss=np.linspace(30, 90, 120))
    frame["participant_id"] = "person-" + frame["participant_id"]
    page = tmp_path / "check.html"
    assert "'person-004' occurs in rows 6 and 11" in check(frame, "--clinical", "panss", "--report", page, code=2)
    document = check_table(tmp_path / "people.csv", TableSettings(clinical="panss")).model_dump_json()
    assert not [text for text in (page.read_text(encoding="utf-8"), document) if "person-004" in text]


def test_what_is_no_problem_is_no_problem_where_a_table_is_refused(check, tmp_path):
    frame = people((3, "lHip", -9), mmse=np.arange(120.0) % 13, note=table()["participant_id"])
    frame[["participant_id", "diagnosis"]].to_csv(tmp_path / "labels.csv", index=False)
    regions = frame.drop(columns="diagnosis").rename(columns={"participant_id": "subject"})
    said = check(regions, "--join", tmp_path / "labels.csv", code=2)
    warning = (
        "Warning: Judging by its name, mmse is not a region (score). Use it as a clinical score with --clinical mmse"
    )
    assert missing(said, "lHip = -9", warning, "Problem: labels.csv") == ["Problem: labels.csv"]


def test_controls_and_patients_in_files_of_their_own(tmp_path):
    groups = dict(iter(people().drop(columns="diagnosis").groupby(people()["diagnosis"])))
    groups["CN"].to_csv(tmp_path / "controls.csv", index=False)
    patients = groups["AD"].rename(columns={"participant_id": "ID"})
    patients.assign(panss=50.0).to_csv(tmp_path / "patients.csv", index=False)
    tables = [f"CN={tmp_path / 'controls.csv'}", f"SCZ={tmp_path / 'patients.csv'}"]
    assert not missing(
        told("check", *tables, "--covariates", "age,sex", "--no-spectrum"),
        "controls.csv + patients.csv: 120 rows",
        "60 controls, 60 patients",
        "are not in all tables are excluded: panss (patients.csv)",
    )
    told(
        *("fit", *tables, "--out", tmp_path / "run", "--covariates", "age,sex", "--preset", "linear"),
        *("--patterns", "2", "--no-report"),
    )
    scores = pd.read_csv(tmp_path / "run" / "r_indices.csv")
    assert scores["diagnosis"].value_counts().to_dict() == {"CN": 60, "SCZ": 60}
    told("fit", "--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again", "--no-report")
    pd.testing.assert_frame_equal(scores, pd.read_csv(tmp_path / "again" / "r_indices.csv"))


# People with gaps: absent from a joined table, or not to be scored by a model; and scores that are not regions.


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
    """Write two tables of the same people, three of them missing from the second; return their paths."""
    clinic().drop(columns=["age", "icv"]).to_csv(tmp_path / "volumes.csv", index=False)
    clinic().drop([4, 5, 70])[["participant_id", "age", "icv"]].to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "volumes.csv", tmp_path / "people.csv"


@pytest.mark.parametrize("join", [str, lambda path: path, lambda path: [path]])
def test_people_whom_a_joined_table_does_not_know(tables, join):
    cohort = read_cohort(tables[0], join=join(tables[1]), drop_missing=True, **ROLES)
    assert cohort.people.loc[~cohort.people["used"], "participant_id"].tolist() == ["004", "005", "070"]
    cohort = read_cohort(tables[0], join=join(tables[1]), clinical="MMST,age,icv")
    assert cohort.clinical["age"].isna().sum() == 3


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
        ({"lHip": ["low", *[5.0] * 119]}, DROP, r"'lHip' .*row 2 \(participant 000\) contains the text 'low'"),
        (
            {"icv": 1.5},
            ApplySettings(),
            r"icv = 1.5 in row 2[\s\S]*'icv' was numeric during training \(mostly 1\d{6} to 1\d{6}\)",
        ),
        ({"icv": 1.5}, DROP, r"No one is left to score, because everyone was excluded: impossible value \(120\)"),
        ({"rAmy": -9999.0}, ApplySettings(), r"rAmy = -9999[\s\S]*`missing`"),
        ({}, ApplySettings(missing="nobody=0"), r"'nobody' \(from `missing`\) is not a column"),
    ],
)
def test_new_people_who_do_not_fit(contract, change, settings, told):
    refused_with(told, check_people, clinic(**change), contract, settings)


def test_a_second_row_of_headings_is_said_also_where_people_come_some_at_a_time(contract, tmp_path):
    described = pd.DataFrame([{name: f"what {name} is" for name in clinic()}])
    pd.concat([described, clinic().astype(object)]).to_csv(tmp_path / "people.csv", index=False)
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
    asked, remedies = (
        {"complete_only": True, "features": [*REGIONS, column]},
        rf"drop_missing=True.*exclude=\['{column}'\]",
    )
    assert (
        f"name it with clinical=['{column}'] if it is a score"
        in refused_with(remedies, make_cohort, table(**{column: values}), **asked)
    ) == offered


def test_codes_for_missing_values():
    scores = np.where(np.arange(120) % 8, np.resize([29, 27, 24], 120), -9999)
    frame, message = (
        clinic((2, "rAmy", -9999), MMST=scores),
        r"rAmy = -9999 in row 4[\s\S]*declare codes for missing values with `missing`",
    )
    refused_with(message, make_cohort, frame, **ROLES)
    suspected, named = (make_cohort(clinic(MMST=scores), **ROLES, missing=codes) for codes in ((), "-9999"))
    assert suspected.clinical["MMST"].isna().sum() == 15  # kept out until it is confirmed
    assert ["MMST = -9999, which looks like a code" in "".join(one.warnings) for one in (suspected, named)] == [
        True,
        False,
    ]
    pd.testing.assert_frame_equal(named.clinical, suspected.clinical)
    cohort = make_cohort(clinic((5, "icv", 0)), **ROLES, missing="-9999,icv=0", drop_missing=True)
    assert cohort.people.loc[~cohort.people["used"], "reason"].tolist() == ["missing covariate"]
