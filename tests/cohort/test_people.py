"""Who is in a cohort, and which column is what; what is refused is told in tests/bad_input."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices import make_cohort, read_cohort
from rindices.cohort.comparability import group_separation
from rindices.tables import Column, Dictionary
from tests.cohort.people import REGIONS, table
from tests.refusal import refused_with


def relabelled(*labels, **columns):
    return table(diagnosis=np.resize(np.array(labels, dtype=object), 120), **columns)


def test_roles_and_groups_of_a_plain_table(tmp_path):
    path = tmp_path / "people.csv"
    table().to_csv(path, index=False, sep=";", decimal=",")
    cohort = read_cohort(path, covariates="age,place")
    known = table().set_index("participant_id")  # ids keep their zeros
    groups = known["diagnosis"].map({"CN": "control", "AD": "patient"})
    for part, expected in (
        (cohort.features, known[REGIONS]),
        (cohort.covariates, known[["age", "place"]]),
        (cohort.diagnosis, known["diagnosis"]),
        (cohort.group, groups),
    ):
        assert part.to_dict() == expected.to_dict()
    assert (cohort.n_controls, cohort.n_patients, cohort.n_other, cohort.training.all()) == (60, 60, 0, True)
    labels = cohort.control_labels, cohort.patient_labels
    assert (*labels, cohort.ignored_columns) == (("CN",), ("AD",), ("sex", "icv", "note"))
    assert (cohort.source, cohort.sha256) == ("people.csv", hashlib.sha256(path.read_bytes()).hexdigest())
    plain = make_cohort(table(participant_id=np.arange(120.0)).set_index("participant_id"))  # ids in the index
    assert (plain.covariates.shape, plain.warnings, [*plain.features.index[:2]]) == ((120, 0), (), ["0", "1"])


def test_labels_can_be_merged_and_others_are_counted():
    cohort = make_cohort(relabelled("CN", "SMC", "MCI", "AD", "FTD", None), control="CN,SMC", patients=["MCI", "AD"])
    expected = np.resize(["control", "control", "patient", "patient", "other", "other"], 120)
    assert (cohort.group.tolist(), cohort.diagnosis.iloc[5]) == (expected.tolist(), "n/a")
    assert (cohort.n_controls, cohort.n_patients, cohort.n_other, cohort.training.sum()) == (40, 40, 40, 80)
    assert cohort.warnings == (
        "40 people are neither controls nor patients and are scored but not used for training: FTD (20), no label "
        "(20).",
    )


@pytest.mark.parametrize(
    ("labels", "options", "control"),
    [
        (("healthy Control", "AD"), {}, "healthy Control"),
        (("hc", "AD"), {}, "hc"),
        ((0, 1), {}, "0"),
        ((0.0, 1.0), {}, "0"),
        ((-1, 1), {}, "-1"),
        (("0.0", "1.0"), {}, "0"),
        (("CN", "normal"), {"patients": "normal"}, "CN"),
        *(((0.0, 1.0), {"control": control, "patients": "1"}, "0") for control in ("0", "0.0", 0, [0], ["0"])),
    ],
)
def test_usual_names_of_controls_are_recognised_and_others_can_be_asked_for(labels, options, control):
    cohort = make_cohort(relabelled(*labels), **options)
    assert (cohort.control_labels, cohort.n_controls) == ((control,), 60)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"features": "@names.txt"}, ["rHip", "lHip", "lAmy", "rAmy"]),
        ({"features": "names.txt"}, ["rHip", "lHip", "lAmy", "rAmy"]),
        ({"features": ["rHip", "lHip", "lAmy", "rAmy"]}, ["rHip", "lHip", "lAmy", "rAmy"]),
        ({"features": pd.Index(REGIONS[::-1]), "control": np.array(["CN"])}, REGIONS[::-1]),
        ({"features": "r*, l*"}, ["rHip", "rAmy", "lHip", "lAmy", "lEnt"]),
        ({"features": "*"}, REGIONS),
        ({"features": "*", "exclude": "?Ent"}, REGIONS[:4]),
        ({"exclude": "lEnt"}, REGIONS[:4]),
        ({"features": ["age", *REGIONS]}, ["age", *REGIONS]),
        ({"covariates": np.array(["age"])}, REGIONS),
        ({"covariates": "age"}, REGIONS),  # though there is a file of that name
    ],
)
def test_features_by_name_pattern_file_and_exclusion(tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("# hippocampus first\nrHip\n\nlHip\nlAmy\nrAmy\n")
    (tmp_path / "age").write_text("sex\n")
    cohort = make_cohort(table(), **options)
    assert (list(cohort.features), list(cohort.covariates)) == (expected, ["age"] * ("covariates" in options))


def test_usual_names_of_other_things_and_columns_of_text_are_no_regions():
    others = {"ICV": 1500.0, "eTIV": 1500.0, "Scanner": 3, "Visit": 1, "Unnamed: 0": range(120), "educ": 12.0}
    cohort = make_cohort(table(**others, remark=None, code="07"))
    assert (list(cohort.features), cohort.ignored_columns[5:], *cohort.warnings) == (
        REGIONS,
        (*others, "remark", "code"),
        "Columns without any values are excluded: remark.",
    )


@pytest.mark.parametrize(
    ("covariates", "names"), [("", ["centre"]), ("centre,age", ["centre", "age"]), ("age", ["age", "centre"])]
)
def test_site_is_kept_as_text(covariates, names):
    cohort = make_cohort(table(centre=np.resize([1, 2, 3], 120)), site="centre", covariates=covariates)
    assert cohort.site.tolist()[:3] == cohort.covariates["centre"].tolist()[:3] == ["1", "2", "3"]
    assert ("centre" in cohort.ignored_columns, list(cohort.covariates)) == (False, names)
    assert make_cohort(table(site=np.resize([1, 2, 3], 120)), covariates="site").covariates["site"].iloc[0] == "1"


ERRORS = [
    (table(), {"covariates": "diagnosis"}, r"'diagnosis' is the diagnosis, so it cannot also be a covariate"),
    (table(), {"clinical": "lHip", "features": REGIONS}, r"'lHip' is a clinical score.*cannot also be in `features`"),
    (table(), {"visit": "place", "site": "place"}, r"'place' is the visit, so it cannot also be the site"),
    (
        table((4, "note", None)),
        {"visit": "note"},
        r"Every row needs a visit.*'note' is empty in row 6",
    ),
    (table(), {"features": [*REGIONS, "note"]}, r"'note'.*has the text 'fine'"),
    (table((4, "place", "NA")), {"site": "place"}, r"covariate column: place.*\n.*drop_missing=True"),
    (table((0, "mmse", np.inf), mmse=29.0), {"clinical": "mmse"}, r"Infinite values: mmse"),
    (  # commas everywhere: the cells are wrong, not the columns, and none of these is a score
        table(
            (0, "a_thickness", "n.a."),
            serial=np.arange(7000.0, 7120.0),
            **{f"{name}_thickness": [f"2,{place:03d}" for place in range(100, 220)] for name in "abcdefgh"},
        ),
        {},
        r"(?s)no decimal comma.*clinical=\['serial'\].*exclude=\['serial'\]",
    ),
    (table().iloc[:0], {}, r"no people"),
    (pd.concat([table(), table()[["age"]]], axis=1), {}, r"Column names must be unique, but these are repeated: 'age'"),
]


@pytest.mark.parametrize(("frame", "options", "message"), ERRORS, ids=[message[:40] for *_, message in ERRORS])
def test_mistakes_that_no_file_shows_or_that_need_several_options(frame, options, message):
    refused_with(message, make_cohort, frame, **options)


def test_gaps_name_all_columns_and_the_row_of_the_file(tmp_path):
    values = {"iq": np.linspace(80, 120, 120), "score": np.linspace(3, 4, 120)}
    frame = table((2, "iq", np.nan), (7, "iq", np.nan), (slice(5, None), "score", np.nan), **values)
    header, rest = frame.to_csv(index=False).split("\n", 1)
    (tmp_path / "people.csv").write_text(f"{header}\n\n{rest}")  # an empty line shifts everybody below it
    assert list(read_cohort(tmp_path / "people.csv").features) == REGIONS  # these are scores by their names
    assert refused_with("", read_cohort, tmp_path / "people.csv", features=[*REGIONS, "iq", "score"]) == (
        "Missing values in 2 region columns: iq (2 people), score (115 people). "
        "The first is in column 'iq', row 5 (participant 002).\n"
        "Fill in the cells, exclude these people with drop_missing=True, name them with clinical=['iq', 'score'] "
        "if they are scores, not regions, or exclude the columns with exclude=['iq', 'score']."
    )


RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("columns", "covariates", "words"),
    [
        ({"zHip": RNG.normal(0, 1, 120)}, "", []),  # scores may be negative
        *(({name: RNG.normal(25, 1, 120)}, "", [name, "clinical"]) for name in ("MMSE_bl", "fiq", "CDR-sb")),
        ({"thing": np.r_[RNG.normal(29, 0.5, 60), RNG.normal(20, 0.5, 60)]}, "", ["thing", "alone separates"]),
        ({"place": ["a"] * 58 + ["b"] * 62}, "place,sex", ["place distinguishes controls from patients"]),
        (
            {"age": [*np.linspace(50, 70, 60), *np.linspace(60, 89, 60)]},
            "age",
            ["39 of 60 patients have age outside the controls' range, so its effect has to be extrapolated."],
        ),
    ],
)
def test_doubtful_columns_are_warned_of(columns, covariates, words):
    warnings = make_cohort(table(**columns), covariates=covariates).warnings
    assert [all(word in warning for word in words) for warning in warnings] == [True] * bool(words)


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0, 2.5, -2.5, 4.0])
def test_separation_by_numbers_is_the_area_under_the_curve(shift):
    rng = np.random.default_rng(2)
    controls, patients = rng.normal(0, 1, 80).round(1), rng.normal(shift, 1, 50).round(1)
    greater = stats.mannwhitneyu(patients, controls).statistic / (80 * 50)
    assert group_separation(controls, patients) == (greater >= 0.95 or greater <= 0.05)


@pytest.mark.parametrize(
    ("controls", "patients", "separate"),
    [
        ((30, 1), (1, 30), True),
        ((30, 5), (5, 30), False),
        ((2, 2), (48, 48), False),  # 96 % right, but always guessing "patient" is right in 96 % as well
    ],
)
def test_separation_by_categories_beats_the_larger_group(controls, patients, separate):
    groups = [np.repeat(["a", "b"], counts).astype(object) for counts in (controls, patients)]
    assert group_separation(*groups) == separate


SAYS = Dictionary(
    {
        "diagnosis": Column(levels={"1": "Control", "2": "Patient"}),
        "sex": Column(levels={"0": "male", "1": "female"}, missing=("-9",)),
        "scanner_type": Column(levels={"1": "A", "2": "B"}),
        **{name: Column(unit="mm3") for name in REGIONS},
    }
)
SCORES = pd.DataFrame({"participant_id": table()["participant_id"][::-1], "mmse": np.arange(120.0)})


def coded(*cells):
    return table(*cells, diagnosis=np.repeat([1, 2], 60), scanner_type=np.resize([1, 1, 2], 120))


def test_a_dictionary_explains_labels_codes_units_and_gaps():
    cohort = make_cohort(coded((3, "sex", -9)), dictionary=SAYS, covariates="sex,age", drop_missing=True)
    assert (cohort.control_labels, cohort.patient_labels, cohort.unit) == (("1",), ("2",), "mm3")
    # The sex is a category, not a slope; scanner_type is a category, not a region.
    assert ({*cohort.covariates["sex"]}, list(cohort.features)) == ({"0", "1"}, REGIONS)
    assert cohort.people.loc[3, "reason"] == "missing covariate"
    named = make_cohort(coded(), dictionary=SAYS, control="control", patients="patient")
    assert named.group.drop("003").tolist() == cohort.group.tolist()
    asked = {"dictionary": SAYS, "features": [*REGIONS, "scanner_type"]}
    refused_with("'scanner_type' is a category according to the data dictionary", make_cohort, coded(), **asked)


def test_a_bids_folder_is_read_with_its_dictionaries(tmp_path):
    (tmp_path / "phenotype").mkdir()
    coded().to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    (tmp_path / "participants.json").write_text(json.dumps({"diagnosis": {"Levels": {"1": "Control", "2": "Patient"}}}))
    digests = set()
    for change in (0, 1):
        scores = SCORES.assign(mmse=SCORES["mmse"] + change)
        scores.to_csv(tmp_path / "phenotype" / "mmse.tsv", sep="\t", index=False)
        cohort = read_cohort(tmp_path, clinical="mmse", covariates="age", exclude="scanner_type")
        assert cohort.clinical["mmse"].tolist() == scores["mmse"].tolist()[::-1]
        digests.add(cohort.sha256)
    assert (cohort.n_controls, cohort.n_patients, cohort.source, len(digests)) == (60, 60, tmp_path.name, 2)


def test_a_dictionary_in_a_file_and_a_joined_table(tmp_path):
    paths = [tmp_path / name for name in ("people.csv", "scores.csv", "dictionary.csv")]
    coded().to_csv(paths[0], index=False)
    SCORES.to_csv(paths[1], index=False)
    paths[2].write_text("column,levels\ndiagnosis,1=Control;2=Patient\nscanner_type,1=A;2=B\n")
    cohort = read_cohort(paths[0], join=[paths[1]], dictionary=str(paths[2]), clinical="mmse")
    assert cohort.clinical["mmse"].tolist() == list(range(119, -1, -1))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert cohort.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()


def test_covariates_are_compared_by_a_triangle_of_their_columns(monkeypatch):
    """In forty thousand controls, a rank of all their rows for each of twenty covariates takes minutes."""
    rows, rank = [], np.linalg.matrix_rank
    monkeypatch.setattr(np.linalg, "matrix_rank", lambda x, **options: (rows.append(len(x)), rank(x, **options))[1])
    frame = table()
    cohort = make_cohort(frame.assign(months=12 * frame["age"]), covariates="age,sex,months")
    assert any("months adds no information to age, sex" in str(one) for one in cohort.messages)
    assert max(rows) == 4
