"""Tables that lie, tried as a new user would: messages name what is wrong and the command that helps."""

import numpy as np
import pandas as pd
import pytest
from openpyxl import Workbook
from typer.testing import CliRunner

from rindices.cli import app
from rindices.cli.console_and_exits import set_output
from rindices.run.check_table import check_table
from rindices.settings import TableSettings
from rindices.tables import read_source
from tests.cohort.people import REGIONS, table


@pytest.fixture
def check(tmp_path):
    """Return a function that writes a table and checks it: the exit code and what was said."""

    def run(frame, *options, name="people.csv"):
        if frame is not None:
            frame.to_csv(tmp_path / name, index=False)
        result = CliRunner().invoke(app, ["check", str(tmp_path / name), "--no-spectrum", *options])
        set_output()
        return result.exit_code, result.output

    return run


def people(**columns):
    return table(**columns).drop(columns=["icv", "place", "note"])


def test_a_repeated_id_with_a_score_is_refused_and_named(check, tmp_path):
    frame = people(panss=np.linspace(30, 90, 120)).astype({"participant_id": object})
    frame["participant_id"] = "person-" + frame["participant_id"]
    frame.loc[9, "participant_id"] = "person-004"
    code, said = check(frame, "--clinical", "panss", "--report", str(tmp_path / "check.html"))
    assert code == 2
    assert "'person-004' occurs in rows 6 and 11" in said
    assert "person-004" not in (tmp_path / "check.html").read_text(encoding="utf-8")
    assert "person-004" not in check_table(tmp_path / "people.csv", TableSettings(clinical="panss")).model_dump_json()


def test_visits_that_are_seen_are_proposed(check):
    frame = pd.concat([people().assign(session=1), people().assign(session=2)])
    code, said = check(frame)
    assert (code, "--visit session" in said, check(frame, "--visit", "session")[0]) == (2, True, 0)


@pytest.mark.parametrize("word", ["#N/A", "NULL", "n.a.", "#NV", "<NA>"])
def test_words_of_spreadsheets_are_missing_values(check, word):
    frame = people().astype(dict.fromkeys(REGIONS, object))
    frame.loc[3, "lHip"] = frame.loc[70, "rAmy"] = word
    code, said = check(frame)
    assert (code, "2 rows have missing regions" in said) == (0, True)


def test_an_error_that_means_missing_is_a_gap_in_a_workbook(tmp_path):
    book = Workbook()
    for row in (["participant_id", "lHip"], ["a", 3.1], ["b", "#N/A"]):
        book.active.append(row)
    book.save(tmp_path / "people.xlsx")
    assert read_source(tmp_path / "people.xlsx").frame["lHip"].isna().tolist() == [False, True]


def test_text_in_a_region_is_neither_missing_nor_a_code(check):
    frame = people()
    code, said = check(frame.assign(lHip=frame["lHip"].map("{:.2f} mL".format)))
    assert (code, "119 more cells have text" in said) == (2, True)
    assert "Missing values" not in said
    assert "judging by" not in said


def test_words_for_missing_values_are_proposed_before_a_column_is_given_up(check):
    frame = people().astype(dict.fromkeys(REGIONS, object))
    frame.loc[3, "lHip"] = "failed"
    code, said = check(frame)
    assert code == 2
    assert said.index("--missing failed") < said.index("--exclude lHip")
    assert check(frame, "--missing", "failed")[0] == 0


def test_a_score_that_is_constant_in_controls_is_offered_as_one(check):
    values = np.where(np.arange(120) < 60, 30.0, np.linspace(31, 99, 120))
    code, said = check(people(symptoms=values))
    assert code == 2
    assert said.index("--clinical symptoms") < said.index("--exclude symptoms")
    code, said = check(people(panss=values))
    assert (code, "Use it with --clinical panss" in said) == (0, True)


def test_spellings_of_controls_are_taken_in_with_the_command_that_is_said(check):
    frame = people()
    frame.loc[:19, "diagnosis"], frame.loc[20:29, "diagnosis"], frame.loc[100:, "diagnosis"] = "cn", "Control", "ad"
    code, said = check(frame, "--control", "CN", "--patients", "AD")
    assert code == 0
    assert "cn, Control may denote controls: to include them, use --control CN,cn,Control" in said
    assert "ad may denote patients: to include them, use --patients AD,ad" in said
    code, said = check(frame, "--control", "CN,cn,Control", "--patients", "AD,ad")
    assert "60 controls, 60 patients" in said


@pytest.mark.parametrize("options", [(), ("--covariates", "age")])
def test_ages_of_one_group_in_months_are_refused(check, options):
    frame = people()
    code, said = check(
        frame.assign(age=np.linspace(50, 80, 120) * np.where(frame["diagnosis"] == "AD", 12, 1)), *options
    )
    assert (code, "'age' is above 120 in all patients and in no one else" in said) == (2, True), said


def test_impossible_ages_without_a_role_are_not_averaged(check):
    age = np.resize(np.linspace(50, 80, 30), 120)
    age[[3, 70]] = -99
    code, said = check(people(age=age))
    assert code == 0
    assert "age has impossible values (2 cells, for example -99 in row 5), which are not used" in said
    assert "age: controls 65." in said


def test_patients_alone_are_told_that_controls_are_missing(check):
    code, said = check(people().assign(diagnosis="SCZ"))
    assert code == 2
    assert "In column 'diagnosis', everyone has the label 'SCZ'" in said
    assert "CN=controls.csv" in said
    assert "--control" not in said


def apart(tmp_path, **changes):
    frame = people()
    controls = frame[frame["diagnosis"] == "CN"].drop(columns="diagnosis")
    patients = frame[frame["diagnosis"] == "AD"].drop(columns="diagnosis").rename(columns={"participant_id": "ID"})
    controls.to_csv(tmp_path / "controls.csv", index=False)
    patients.assign(**changes).to_csv(tmp_path / "patients.csv", index=False)
    return [f"CN={tmp_path / 'controls.csv'}", f"SCZ={tmp_path / 'patients.csv'}"]


def run(*words):
    quick = ["--no-spectrum"] if words[0] == "check" else []
    result = CliRunner().invoke(app, [*(str(word) for word in words), *quick])
    set_output()
    return result.exit_code, result.output


def test_controls_and_patients_in_files_of_their_own(tmp_path):
    tables = apart(tmp_path, panss=50.0)
    code, said = run("check", *tables, "--covariates", "age,sex")
    assert code == 0, said
    assert "controls.csv + patients.csv: 120 rows" in said
    assert "60 controls, 60 patients" in said
    assert "are not in all tables are excluded: panss (patients.csv)" in said
    line = ("--covariates", "age,sex", "--preset", "linear", "--patterns", "2", "--no-report")
    code, said = run("fit", *tables, "--out", tmp_path / "run", *line)
    assert code == 0, said
    scores = pd.read_csv(tmp_path / "run" / "r_indices.csv", dtype=str)
    assert scores["diagnosis"].value_counts().to_dict() == {"CN": 60, "SCZ": 60}
    again = run("fit", "--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again", "--no-report")
    assert again[0] == 0, again[1]
    pd.testing.assert_frame_equal(scores, pd.read_csv(tmp_path / "again" / "r_indices.csv", dtype=str))


def test_several_tables_that_do_not_go_together(tmp_path):
    one, other = apart(tmp_path)
    assert "each needs a label" in run("check", one.partition("=")[2], other)[1]
    assert "no groups to compare" in run("check", one)[1]
    assert "already has a column 'diagnosis'" in run("check", one, apart(tmp_path, diagnosis="SCZ")[1])[1]
    apart(tmp_path)
    pd.read_csv(tmp_path / "patients.csv").rename(columns=str.upper).to_csv(tmp_path / "patients.csv", index=False)
    assert "have hardly any columns in common" in run("check", one, other)[1]


def test_patients_in_another_unit_than_controls_are_refused(tmp_path):
    one, other = apart(tmp_path)
    frame = pd.read_csv(tmp_path / "patients.csv")
    frame[REGIONS] *= 1000
    frame.to_csv(tmp_path / "patients.csv", index=False)
    code, said = run("check", one, other)
    assert (code, "all patients (60 of 120 people) are 1,000 times larger" in said) == (2, True)


def test_labels_that_mean_controls_are_not_proposed_as_patients(check):
    frame = people()
    labels = frame["diagnosis"].to_numpy(dtype=object).copy()
    control = labels[0]
    labels[:10], labels[10:20] = control.lower(), "Control"
    code, said = check(frame.assign(diagnosis=labels), "--control", control)
    assert code == 2
    assert f"may also be controls; if so, use --control {control},{control.lower()},Control" in " ".join(said.split())
    assert f"--patients {control.lower()}" not in said
    assert check(frame.assign(diagnosis=labels), "--control", f"{control},{control.lower()},Control")[0] == 0


def test_tracts_measured_by_what_is_elsewhere_a_quality_pass(check):
    values = np.random.default_rng(0).normal(5, 1, (120, 12))
    tracts = pd.DataFrame(values, columns=[f"tract{number}_qa" for number in range(12)])
    code, said = check(people().drop(columns=REGIONS).join(tracts))
    assert (code, "they look like quality measures" in said) == (0, True)
    code, said = check(people(motion=np.linspace(0, 1, 120)))
    assert (
        code,
        "Not treated as regions because of their names: motion (quality measure). To include it" in said,
    ) == (0, True)


def test_what_is_no_problem_is_no_problem_where_a_table_is_refused(check, tmp_path):
    frame = people(mmse=np.arange(120.0) % 13)
    frame["note"] = frame["participant_id"]
    frame[["participant_id", "diagnosis"]].to_csv(tmp_path / "labels.csv", index=False)
    frame.loc[3, "lHip"] = -9
    regions = frame.drop(columns="diagnosis").rename(columns={"participant_id": "subject"})
    code, said = check(regions, "--join", str(tmp_path / "labels.csv"))
    assert code == 2
    assert "Problem: Volumes" in said or "Problem: Impossible" in said or "lHip = -9" in said
    assert "Problem: labels.csv" not in said
    assert "Warning: Not treated as regions because of their names: mmse (score). Use it with --clinical mmse" in said
