import hashlib

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import MIN_PEOPLE, make_cohort, read_cohort
from rindices.cohort.groups import group_separation
from rindices.errors import InputError, counted, did_you_mean, listed
from rindices.schema.fields import MIN_REGIONS

REGIONS = ["lHip", "rHip", "lAmy", "rAmy", "lEnt"]


def table(n_controls=30, n_patients=30, *, labels=("CN", "AD")):
    rng = np.random.default_rng(1)
    n = n_controls + n_patients
    frame = pd.DataFrame(rng.normal(5, 1, (n, len(REGIONS))), columns=REGIONS)
    frame.insert(0, "participant_id", [f"{number:03d}" for number in range(1, n + 1)])
    frame.insert(1, "diagnosis", [labels[0]] * n_controls + [labels[1]] * n_patients)
    frame["age"] = rng.uniform(50, 80, n)
    frame["sex"] = np.tile([0, 1], n)[:n]
    frame["centre"] = np.tile(["Oslo", "Bonn", "Bonn"], n)[:n]
    frame["note"] = "fine"
    return frame


def with_cell(row, column, value, frame=None):
    frame = table() if frame is None else frame
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


def relabelled(*labels, **options):
    frame = table(**options)
    frame["diagnosis"] = np.resize(np.array(labels, dtype=object), len(frame))
    return frame


def test_roles_and_groups_of_a_plain_table():
    cohort = make_cohort(table(), covariates="age,centre")
    assert list(cohort.features.columns) == REGIONS
    assert (cohort.features.dtypes == np.float64).all()
    np.testing.assert_array_equal(cohort.features.to_numpy(), table()[REGIONS].to_numpy())
    assert cohort.features.index.name == "participant_id"
    assert cohort.features.index[0] == "001"
    for part in (cohort.diagnosis, cohort.group, cohort.covariates):
        assert part.index.equals(cohort.features.index)
    assert (cohort.n_controls, cohort.n_patients, cohort.n_other) == (30, 30, 0)
    assert (cohort.control_labels, cohort.patient_labels) == (("CN",), ("AD",))
    assert cohort.covariates["age"].dtype == np.float64
    assert cohort.covariates["centre"].tolist()[:3] == ["Oslo", "Bonn", "Bonn"]
    assert cohort.ignored_columns == ("sex", "note")
    assert cohort.training.all()
    assert cohort.sha256 == ""
    assert make_cohort(table()).covariates.shape == (60, 0)


def test_reading_a_file_keeps_ids_and_records_the_file(tmp_path):
    path = tmp_path / "people.csv"
    table().to_csv(path, index=False, sep=";", decimal=",")
    cohort = read_cohort(path)
    assert cohort.features.index[0] == "001"
    np.testing.assert_array_equal(cohort.features.to_numpy(), table()[REGIONS].to_numpy())
    assert cohort.source == "people.csv"
    assert cohort.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_labels_can_be_merged_and_others_are_counted():
    frame = relabelled("CN", "SMC", "MCI", "AD", "FTD", None, n_controls=60, n_patients=60)
    cohort = make_cohort(frame, control="CN,SMC", patients=["MCI", "AD"])
    expected = np.resize(["control", "control", "patient", "patient", "other", "other"], 120)
    assert cohort.group.tolist() == expected.tolist()
    assert cohort.diagnosis.iloc[5] == "n/a"
    assert (cohort.n_controls, cohort.n_patients, cohort.n_other) == (40, 40, 40)
    assert cohort.training.sum() == 80
    assert cohort.warnings == (
        "40 people are neither control nor patient and are scored but not learned from: FTD (20), no label (20).",
    )


@pytest.mark.parametrize(
    ("labels", "control"),
    [
        (("healthy Control", "AD"), "healthy Control"),
        (("hc", "AD"), "hc"),
        ((0, 1), "0"),
        ((0.0, 1.0), "0"),
        ((-1, 1), "-1"),
        (("0.0", "1.0"), "0"),
    ],
)
def test_usual_names_of_controls_are_recognised(labels, control):
    assert make_cohort(table(labels=labels)).control_labels == (control,)


def test_a_label_named_as_patients_is_not_taken_for_controls():
    cohort = make_cohort(relabelled("CN", "normal"), patients="normal")
    assert (cohort.control_labels, cohort.patient_labels) == (("CN",), ("normal",))


@pytest.mark.parametrize("control", ["0", "0.0", 0, [0], ["0"]])
def test_numbers_as_labels_can_be_asked_for(control):
    assert make_cohort(table(labels=(0.0, 1.0)), control=control, patients="1").n_controls == 30


def test_features_by_name_pattern_file_and_exclusion(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# hippocampus first\nrHip\n\nlHip\nlAmy\nrAmy\n")

    def columns(**options):
        return list(make_cohort(table(), **options).features.columns)

    assert columns(features=f"@{names}") == ["rHip", "lHip", "lAmy", "rAmy"]
    assert columns(features=str(names)) == columns(features=names) == columns(features=["rHip", "lHip", "lAmy", "rAmy"])
    assert columns(features="r*, l*") == ["rHip", "rAmy", "lHip", "lAmy", "lEnt"]
    assert columns(features="*") == REGIONS
    assert columns(features="*", exclude="?Ent") == columns(exclude="lEnt") == REGIONS[:4]
    assert "age" in columns(features=["age", *REGIONS])


def test_a_file_called_like_a_column_does_not_hide_it(tmp_path, monkeypatch):
    (tmp_path / "age").write_text("sex\n")
    monkeypatch.chdir(tmp_path)
    assert list(make_cohort(table(), covariates="age").covariates.columns) == ["age"]


def test_usual_names_of_other_things_are_no_regions():
    frame = table().assign(ICV=1500.0, eTIV=1500.0, Scanner=3, Visit=1, **{"Unnamed: 0": range(60)}, educ=12.0)
    assert list(make_cohort(frame).features.columns) == REGIONS


def test_ids_in_the_index_and_whole_numbers_as_ids():
    frame = table()
    frame["participant_id"] = np.arange(60.0)
    assert make_cohort(frame.set_index("participant_id")).features.index.tolist()[:2] == ["0", "1"]


def test_site_is_kept_as_text():
    frame = table().assign(place=np.resize([1, 2, 3], 60))
    cohort = make_cohort(frame, site="place")
    assert cohort.site.tolist()[:3] == ["1", "2", "3"]
    assert "place" not in cohort.ignored_columns
    assert cohort.covariates["place"].tolist()[:3] == ["1", "2", "3"]
    assert list(make_cohort(frame, site="place", covariates="place,age").covariates) == ["place", "age"]
    assert list(make_cohort(frame, site="place", covariates="age").covariates) == ["age", "place"]
    assert make_cohort(frame.rename(columns={"place": "site"}), covariates="site").covariates["site"].iloc[0] == "1"


ERRORS = [
    (table().drop(columns="participant_id"), {}, r"no column 'participant_id'.*people's ids[\s\S]*id='COLUMN'"),
    (table().rename(columns={"diagnosis": "Diagnosis"}), {}, r"no column 'diagnosis'.*Did you mean 'Diagnosis'\?"),
    (table(), {"covariates": "agee"}, r"no column 'agee'.*a covariate\. Did you mean 'age'\?"),
    (table(), {"site": "hospital"}, r"no column 'hospital'.*the site"),
    (table(), {"features": "lHip,lhipp"}, r"'lhipp' \(from `features`\) is not a column.*Did you mean 'lHip'"),
    (table(), {"features": "x*"}, r"'x\*' \(from `features`\) matches no column"),
    (table(), {"exclude": "ofer"}, r"'ofer' \(from `exclude`\) is not a column"),
    (table(), {"features": "@absent.txt"}, r"list of columns absent\.txt cannot be read"),
    (table(), {"features": ["age", *REGIONS], "covariates": "age"}, r"'age' is a covariate.*`features` too"),
    (table(), {"exclude": "age", "covariates": "age"}, r"'age' is a covariate.*`exclude` too"),
    (table(), {"covariates": "diagnosis"}, r"'diagnosis' is the diagnosis, so it cannot be a covariate"),
    (table(), {"clinical": "age", "covariates": "age"}, r"'age' is a covariate, so it cannot be a clinical score too"),
    (table(), {"clinical": "lHip", "features": REGIONS}, r"'lHip' is a clinical score.*`features` too"),
    (table(), {"clinical": "mmse"}, r"'mmse' \(from `clinical`\) is not a column"),
    (table(), {"visit": "session"}, r"no column 'session'.*the visit"),
    (table(), {"visit": "centre", "site": "centre"}, r"'centre' is the visit, so it cannot be the site"),
    (
        with_cell(4, "note", None),
        {"visit": "note"},
        r"Every row needs a visit, but column 'note' is empty in 1 row: row 6",
    ),
    (table(), {"small_sites": "keep"}, r"`small_sites` should be refuse or drop, found 'keep'"),
    (table(), {"diagnosis": "participant_id"}, r"is the people's id, so it cannot be the diagnosis too"),
    (with_cell(4, "participant_id", "002"), {}, r"'002' occurs in rows 3 and 6"),
    (with_cell(4, "participant_id", "002"), {}, r"002[\s\S]*visit='COLUMN'"),
    (with_cell(3, "participant_id", "002"), {"visit": "sex"}, r"'002' has the visit '1'.*rows 3 and 5"),
    (with_cell(4, "participant_id", " "), {}, r"'participant_id' is empty in 1 row: row 6"),
    (
        with_cell(4, "rHip", None),
        {},
        r"Missing values in 1 region column: rHip \(1 person\)\. .*row 6 \(participant 005\)",
    ),
    (with_cell(4, "rHip", np.inf), {}, r"Impossible values.*rHip = inf in row 6[\s\S]*exclude=\['rHip'\]"),
    (
        with_cell(4, "rHip", "3,5"),
        {},
        r"'rHip'.*row 6 \(participant 005\) has the text '3,5'[\s\S]*decimal point only",
    ),
    (with_cell(9, "rHip", "?", with_cell(4, "rHip", "x")), {}, r"'x', and 1 more cell has text"),
    (table(), {"features": [*REGIONS, "note"]}, r"'note'.*has the text 'fine'"),
    (with_cell(4, "age", None), {"covariates": "age"}, r"Missing values in 1 covariate column: age"),
    (with_cell(4, "age", "old"), {"covariates": "age"}, r"'age' \(covariate\).*the text 'old'"),
    (with_cell(4, "centre", "NA"), {"covariates": "centre"}, r"Missing values in 1 covariate column: centre"),
    (
        with_cell(4, "centre", "NA"),
        {"site": "centre"},
        r"Missing values in 1 covariate column: centre.*\n.*drop_missing=True",
    ),
    (
        with_cell(40, "centre", "Rom"),
        {"covariates": "centre"},
        r"1 category without a single control: Rom \(1 person\)",
    ),
    (
        with_cell(40, "centre", "Rom"),
        {"site": "centre"},
        r"at least 5 controls.*1 site has fewer.*Rom \(0 controls of 1",
    ),
    (table().assign(sex=[1] * 30 + [1, 0] * 15), {"covariates": "sex"}, r"'sex' cannot be learned.*same value \(1\)"),
    (
        table().assign(sex=[1] * 30 + [0] * 30),
        {"covariates": "sex"},
        r"cannot be told from 'sex'.*controls: 1; patients: 0",
    ),
    (table().assign(rHip=0.0), {}, r"1 region does not: rHip[\s\S]*everybody has the value 0"),
    (
        table().assign(rHip=[0.1] * 30 + list(range(1, 31))),
        {},
        r"every control has the value 0\.1[\s\S]*exclude=\['rHip'\]",
    ),
    (table()[["participant_id", "diagnosis", *REGIONS[:3]]], {}, r"At least 4 regions are needed; found 3: lHip"),
    (table(n_controls=19), {}, r"At least 20 controls are needed, but only 19 people have the label CN"),
    (table(n_patients=19), {}, r"At least 20 patients are needed, but only 19 people have the label AD"),
    (relabelled("CN"), {}, r"no patients.*'CN'"),
    (relabelled(None), {}, r"Nobody has a label"),
    (relabelled("A", "B"), {}, r"none of them is a usual name[\s\S]*A \(30\), B \(30\)[\s\S]*control='LABEL'"),
    (relabelled("CN", "HC", "AD"), {}, r"'CN', 'HC' could all be the controls[\s\S]*control='LABEL'"),
    (relabelled("CN", "MCI", "AD", None), {}, r"2 labels besides[\s\S]*no label \(15\)[\s\S]*patients=\['MCI', 'AD'\]"),
    (
        table(),
        {"control": "cn"},
        r"'cn' \(from `control`\) does not occur.*Did you mean 'CN'\?\nLabels found: CN \(30\)",
    ),
    (table(), {"patients": "AD,MCI"}, r"'MCI' \(from `patients`\) does not occur"),
    (table(), {"control": "CN", "patients": "CN"}, r"'CN' is in both `control` and `patients`"),
    (table(), {"control": " , "}, r"`control` names no label"),
    (table().iloc[:0], {}, r"no people"),
    (pd.concat([table(), table()[["age"]]], axis=1), {}, r"Column names must differ, but there are several 'age'"),
]


@pytest.mark.parametrize(("frame", "options", "message"), ERRORS, ids=[message[:40] for *_, message in ERRORS])
def test_every_mistake_is_explained(frame, options, message):
    with pytest.raises(InputError, match=message) as caught:
        make_cohort(frame, **options)
    assert 1 <= len(str(caught.value).splitlines()) <= 4
    assert str(caught.value).count("  ") == 0


def test_gaps_name_all_columns_and_the_row_of_the_file(tmp_path):
    frame = table().assign(iq=100.0, score=3.0)
    frame.loc[[2, 7], "iq"] = np.nan
    frame.loc[5:, "score"] = np.nan
    path = tmp_path / "people.csv"
    lines = frame.to_csv(index=False).splitlines()
    path.write_text("\n".join([*lines[:2], "", *lines[2:]]))  # an empty line shifts everybody below it
    with pytest.raises(InputError) as caught:
        read_cohort(path)
    assert str(caught.value) == (
        "Missing values in 2 region columns: iq (2 people), score (55 people). "
        "The first is in column 'iq', row 5 (participant 003).\n"
        "Fill in the cells, leave these people out with drop_missing=True, leave the columns out with "
        "exclude=['iq', 'score'], or name them with clinical=['iq', 'score'] if they are scores and no regions."
    )


def test_text_columns_are_ignored_and_empty_ones_named():
    cohort = make_cohort(table().assign(remark=None, code="07"))
    assert cohort.ignored_columns == ("age", "sex", "centre", "note", "remark", "code")
    assert cohort.warnings == ("Columns without a single value are left out: remark.",)


def test_patients_outside_the_range_of_the_controls_are_counted():
    frame = table()
    frame["age"] = [*np.linspace(50, 70, 30), *np.linspace(60, 89, 30)]
    assert make_cohort(frame, covariates="age").warnings == (
        "19 of 30 patients have age outside the controls' range: its effect is extrapolated there.",
    )


def test_a_covariate_that_separates_the_groups_is_warned_of():
    frame = table().assign(place=["a"] * 29 + ["b"] + ["b"] * 30, age=[*range(40, 70), *range(60, 90)])
    warnings = make_cohort(frame, covariates="place,sex").warnings
    assert [warning[:35] for warning in warnings] == ["place tells controls and patients apart nearly"[:35]]


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0, 2.5, -2.5, 4.0])
def test_separation_by_numbers_is_the_area_under_the_curve(shift):
    rng = np.random.default_rng(2)
    controls, patients = rng.normal(0, 1, 80).round(1), rng.normal(shift, 1, 50).round(1)
    greater = (patients[:, None] > controls).mean() + 0.5 * (patients[:, None] == controls).mean()
    assert group_separation(controls, patients) == (greater >= 0.95 or greater <= 0.05)


def test_separation_by_categories_beats_the_larger_group():
    def groups(*counts):
        return np.repeat(["a", "b"], counts).astype(object)

    assert group_separation(groups(30, 1), groups(1, 30))
    assert not group_separation(groups(30, 5), groups(5, 30))
    # 96 % right, but always guessing "patient" is right in 96 % as well
    assert not group_separation(groups(2, 2), groups(48, 48))


def test_constants_and_phrases():
    assert (MIN_PEOPLE, MIN_REGIONS) == (20, 4)
    assert listed("abc", 2) == "a, b and 1 more"
    assert counted(1, "person", "people") == "1 person"
    assert did_you_mean("xyz", ["age"]) == ""
