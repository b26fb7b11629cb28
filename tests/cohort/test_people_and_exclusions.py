"""Who is in a cohort, which column is what, and who is left out; refusals are in tests/bad_input."""

import hashlib
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices import make_cohort, read_cohort
from rindices.cohort.comparability import group_separation
from rindices.cohort.exclusions_and_outliers import find_outliers
from rindices.schema import MIN_SITE_CONTROLS
from rindices.simulate import KINDS, simulate_cohort
from rindices.tables import Column, Dictionary
from tests.cohort.people import REGIONS, table
from tests.refusal import refused_with


def relabelled(*labels, **columns):
    return table(diagnosis=np.resize(np.array(labels, dtype=object), 120), **columns)


def test_roles_and_groups_of_a_plain_table(tmp_path):
    path = tmp_path / "people.csv"
    table().to_csv(path, index=False, sep=";", decimal=",")
    cohort = read_cohort(path, covariates="age,place")
    known = table().set_index("participant_id")  # ids keep their leading zeros
    groups = known["diagnosis"].map({"CN": "control", "AD": "patient"})
    expected = known[REGIONS], known[["age", "place"]], known["diagnosis"], groups
    found = cohort.features, cohort.covariates, cohort.diagnosis, cohort.group
    assert [part.to_dict() for part in found] == [part.to_dict() for part in expected]
    assert (cohort.n_controls, cohort.n_patients, cohort.n_other, cohort.training.all()) == (60, 60, 0, True)
    assert (cohort.control_labels, cohort.patient_labels, cohort.ignored_columns, cohort.source, cohort.sha256) == (
        ("CN",),
        ("AD",),
        ("sex", "icv", "note"),
        "people.csv",
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    plain = make_cohort(table(participant_id=np.arange(120.0)).set_index("participant_id"))  # ids in the index
    assert (plain.covariates.shape, plain.warnings, [*plain.features.index[:2]]) == ((120, 0), (), ["0", "1"])


def test_labels_can_be_merged_and_others_are_counted():
    cohort = make_cohort(relabelled("CN", "SMC", "MCI", "AD", "FTD", None), control="CN,SMC", patients=["MCI", "AD"])
    expected = np.resize(["control", "control", "patient", "patient", "other", "other"], 120)
    assert (cohort.group.tolist(), cohort.diagnosis.iloc[5], cohort.training.sum()) == (expected.tolist(), "n/a", 80)
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
        ({"covariates": "age"}, REGIONS),  # even if a file has that name
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


NICE = [(slice(0, 3), "place", "Nice"), (60, "place", "Nice")]
ERRORS = [
    (table(), {"covariates": "diagnosis"}, r"'diagnosis' is the diagnosis, so it cannot also be a covariate"),
    (
        table(),
        {"clinical": "lHip", "features": REGIONS},
        r"'lHip' is a clinical score.*cannot also be named with `features`",
    ),
    (table(), {"visit": "place", "site": "place"}, r"'place' is the visit, so it cannot also be the site"),
    (
        table((4, "note", None)),
        {"visit": "note"},
        r"Every row needs a visit.*'note' is empty in row 6",
    ),
    (table(), {"features": [*REGIONS, "note"]}, r"'note'.*contains the text 'fine'"),
    (table((4, "place", "NA")), {"site": "place"}, r"covariate column: place.*\n.*drop_missing=True"),
    (table((0, "mmse", np.inf), mmse=29.0), {"clinical": "mmse"}, r"These values are infinite: mmse"),
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
    # Sites and groups need people after exclusion
    (
        table(*NICE, (61, "place", "Cork")),
        {"site": "place"},
        r"Cork \(0 controls among 1 person\), Nice \(4 controls among 5 people\)",
    ),
    (
        table((slice(100, None), "diagnosis", "FTD"), (slice(100, None), "place", "Cork")),
        {"site": "place", "patients": "AD"},
        r"Cork \(0 controls among 20 people\)",
    ),
    (
        table((slice(0, 5), "place", "Nice"), (slice(0, 1), "age", np.nan)),
        {"site": "place", "covariates": "age", "drop_missing": True},
        r"Nice \(4 controls among 4 people\)",  # people left out do not count
    ),
    (
        table((slice(0, 44), "lHip", np.nan)),
        {"site": "place", "drop_missing": True, "complete_only": True},
        r"only 15 people have the label CN\. 45 of 120 rows are excluded: missing region",
    ),
]


@pytest.mark.parametrize(("frame", "options", "message"), ERRORS, ids=[message[:40] for *_, message in ERRORS])
def test_mistakes_that_no_file_shows_or_that_need_several_options(frame, options, message):
    refused_with(message, make_cohort, frame, **options)


def test_gaps_name_all_columns_and_the_row_of_the_file(tmp_path):
    values = {"iq": np.linspace(80, 120, 120), "score": np.linspace(3, 4, 120)}
    frame = table((2, "iq", np.nan), (7, "iq", np.nan), (slice(5, None), "score", np.nan), **values)
    header, rest = frame.to_csv(index=False).split("\n", 1)
    (tmp_path / "people.csv").write_text(f"{header}\n\n{rest}")  # an empty line shifts all rows below it
    assert list(read_cohort(tmp_path / "people.csv").features) == REGIONS  # recognised as scores by name
    assert refused_with("Missing values", read_cohort, tmp_path / "people.csv", features=[*REGIONS, "iq", "score"]) == (
        "Missing values in 2 region columns: iq (2 people), score (115 people). "
        "The first is in column 'iq', row 5 (participant 002).\n"
        "Fill in the cells, exclude these people with drop_missing=True, name them with clinical=['iq', 'score'] "
        "if they are scores, not regions, or exclude the columns with exclude=['iq', 'score']."
    )


RNG = np.random.default_rng(3)  # for tables drawn at collection, always in the same order


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"zHip": RNG.normal(0, 1, 120)}, {}, []),  # z scores may be negative
        *(({name: RNG.normal(25, 1, 120)}, {}, [name, "clinical"]) for name in ("MMSE_bl", "fiq", "CDR-sb")),
        ({"thing": np.r_[RNG.normal(29, 0.5, 60), RNG.normal(20, 0.5, 60)]}, {}, ["thing", "on its own"]),
        (
            {"place": ["a"] * 58 + ["b"] * 62},
            {"covariates": "place,sex"},
            ["place alone distinguishes controls from patients"],
        ),
        (
            {"age": [*np.linspace(50, 70, 60), *np.linspace(60, 89, 60)]},
            {"covariates": "age"},
            ["In 39 of 60 patients, age lies outside the controls' range, so its effect has to be extrapolated."],
        ),
        (
            {"mmse": np.r_[np.full(3, -9999.0), np.resize([25.0, 28.0], 117)]},
            {"clinical": "mmse"},
            ["3 people have mmse = -9999"],
        ),
        ({"empty": np.nan}, {"clinical": "empty"}, ["contain no values: empty"]),
        ({"score": np.resize([90.0, 99.0, 105.0], 120)}, {"clinical": "score"}, []),
    ],
)
def test_doubtful_columns_are_warned_of(columns, options, words):
    warnings = make_cohort(table(**columns), **options).warnings
    assert [all(word in warning for word in words) for warning in warnings] == [True] * bool(words)


def shifted(by):
    rng = np.random.default_rng(2)
    controls, patients = rng.normal(0, 1, 80).round(1), rng.normal(by, 1, 50).round(1)
    auc = stats.mannwhitneyu(patients, controls).statistic / (80 * 50)
    return controls, patients, auc >= 0.95 or auc <= 0.05


def categories(counts, of_patients, separate):
    return *(np.repeat(["a", "b"], n).astype(object) for n in (counts, of_patients)), separate


@pytest.mark.parametrize(
    ("controls", "patients", "separate"),
    [
        *(shifted(by) for by in (0.0, 1.0, 2.0, 2.5, -2.5, 4.0)),
        categories((30, 1), (1, 30), True),
        categories((30, 5), (5, 30), False),
        categories((2, 2), (48, 48), False),  # 96 % right, but so is always guessing "patient"
    ],
)
def test_separation_is_by_the_area_under_the_curve_or_beats_the_larger_group(controls, patients, separate):
    assert group_separation(controls, patients) == separate


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
    assert (cohort.control_labels, cohort.patient_labels, cohort.unit, cohort.people.loc[3, "reason"]) == (
        ("1",),
        ("2",),
        "mm3",
        "missing covariate",
    )
    # Sex is a category, not a slope; scanner_type is a category, not a region.
    assert ({*cohort.covariates["sex"]}, list(cohort.features)) == ({"0", "1"}, REGIONS)
    named = make_cohort(coded(), dictionary=SAYS, control="control", patients="patient")
    assert named.group.drop("003").tolist() == cohort.group.tolist()
    asked = {"dictionary": SAYS, "features": [*REGIONS, "scanner_type"]}
    refused_with("'scanner_type' is a category according to the data dictionary", make_cohort, coded(), **asked)
    typed = {"dictionary": SAYS, "control": "control", "patients": "patient,pateint"}
    refused_with(r"'pateint', listed in .*Did you mean 'patient'", make_cohort, coded(), **typed)


def test_a_dictionary_in_a_file_and_a_joined_table(tmp_path):
    paths = [tmp_path / name for name in ("people.csv", "scores.csv", "dictionary.csv")]
    coded().to_csv(paths[0], index=False)
    SCORES.to_csv(paths[1], index=False)
    paths[2].write_text("column,levels\ndiagnosis,1=Control;2=Patient\nscanner_type,1=A;2=B\n")
    cohort = read_cohort(paths[0], join=[paths[1]], dictionary=str(paths[2]), clinical="mmse")
    assert cohort.clinical["mmse"].tolist() == list(range(119, -1, -1))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert cohort.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()


# Who is left out, and why; refusals are in tests/bad_input.


def test_people_with_gaps_are_left_out_and_recorded():
    gaps = (3, "lHip", np.nan), (3, "rAmy", np.nan), (5, "age", np.nan), (7, "icv", 0), (8, "lEnt", -9), (5, "icv", 0)
    frame = table(*gaps)
    cohort = make_cohort(frame, covariates="age,icv", drop_missing=True)
    people, kept = cohort.people, frame.drop(index=[3, 5, 7, 8]).set_index("participant_id")
    assert people.loc[[3, 5, 7, 8], ["reason", "flags"]].to_numpy().tolist() == [
        ["missing region", "lHip is missing, rAmy is missing"],
        ["missing covariate", "age is missing; icv = 0 is impossible"],
        ["impossible value", "icv = 0 is impossible"],
        ["impossible value", "lEnt = -9 is impossible"],
    ]
    assert people["distance"].notna().equals(people["used"])
    found = cohort.features, cohort.covariates, cohort.diagnosis
    expected = kept[REGIONS], kept[["age", "icv"]], kept["diagnosis"]
    assert [part.to_dict() for part in found] == [part.to_dict() for part in expected]
    assert cohort.warnings[0].startswith("4 of 120 rows are excluded: impossible value (2), missing ")


@pytest.mark.parametrize(
    ("name", "values", "n_impossible"),
    [
        ("age", np.r_[130, -1, np.inf, np.linspace(50, 80, 117)], 3),
        ("icv", np.r_[0, -5, 12_000, np.linspace(1.2e6, 1.8e6, 117)], 3),
        ("lHip", np.r_[0, -np.inf, RNG.normal(5, 0.5, 118)], 2),
        ("age", RNG.uniform(600, 960, 120), 0),  # in months
        ("education", np.r_[0.0, np.resize([12, 14, 16, 9], 119)], 0),  # no schooling
        ("motion", np.r_[0.0, RNG.gamma(2, 0.1, 119)], 0),
        ("score", RNG.normal(0, 1, 120), 0),
        ("sex", np.r_[0.0, np.ones(58), 0.0, 0.0, np.ones(59)], 0),
        ("months", RNG.uniform(600, 960, 120), 0),
    ],
)
def test_impossible_values_are_told_from_ordinary_ones(name, values, n_impossible):
    people = make_cohort(
        table(**{name: values}), covariates=([] if name in REGIONS else [name]), drop_missing=True
    ).people
    assert people["reason"].tolist() == ["impossible value"] * n_impossible + [""] * (120 - n_impossible)


def test_outliers_are_named_and_left_out_only_if_asked():
    frame = table((70, "lHip", 50.0))
    cohort = make_cohort(frame)
    flagged = cohort.people["flags"].str.contains("lHip = 50")
    assert (cohort.people["used"].all(), flagged.to_numpy().nonzero()[0].tolist()) == (True, [70])
    (warning,) = cohort.warnings
    expected = {
        "errors in the table: row 72. Check": True,
        "drop_outliers=True": True,
        "50": False,
        "participant": False,
    }
    assert {part: part in warning for part in expected} == expected  # warnings are for reports: rows only
    dropped = make_cohort(frame, drop_outliers=True)
    assert (dropped.people.loc[70, "reason"], len(dropped.features)) == ("outlier", 119)
    assert dropped.people.loc[70, "distance"] == cohort.people.loc[70, "distance"] > 10


def test_sites_without_enough_controls_are_left_out_if_asked():
    cohort = make_cohort(table(*NICE, (61, "place", "Cork")), site="place", small_sites="drop")
    reasons = cohort.people["reason"].value_counts().to_dict()
    assert (reasons, {*cohort.site}) == ({"": 114, "site without enough controls": 6}, {"Oslo", "Bonn", "Rome"})
    assert (make_cohort(table(*NICE, (4, "place", "Nice")), site="place").site == "Nice").sum() == MIN_SITE_CONTROLS + 1


def test_clinical_scores_may_have_gaps_and_are_no_regions():
    frame = table(mmse=np.resize([29.0, np.nan, 25.0], 120), apoe=np.resize(["e3", None, "e4"], 120))
    cohort = make_cohort(frame, clinical="?m*,apo*")
    known = frame.set_index("participant_id")[["mmse", "apoe"]]
    assert cohort.clinical.astype(object).fillna("gap").to_dict() == known.astype(object).fillna("gap").to_dict()
    assert (list(cohort.features), cohort.clinical["mmse"].dtype) == (REGIONS, np.float64)
    assert make_cohort(table()).clinical.shape == (120, 0)


def test_people_may_lack_a_fifth_of_their_regions():
    frame = table((3, "lHip", np.nan), *((5, name, np.nan) for name in ("lHip", "rHip", "lAmy")))
    refused_with(r"Missing values in 3 region columns: lHip \(1 person\)", make_cohort, frame)
    cohort = make_cohort(frame, drop_missing=True)
    found = (
        cohort.people.loc[[3, 5], "used"].tolist(),
        cohort.people.loc[3, "flags"],
        cohort.features.isna().sum().sum(),
    )
    assert found == ([True, False], "values missing in 1 region (lHip)", 1)
    told = "1 row lacks values for some regions (lHip), with at most 1 of 5 regions missing in any row."
    assert not [part for part in (told, "complete_only=True") if part not in "".join(cohort.warnings)]


drawn = cache(simulate_cohort)


def simulated(kind="basic", seed=0):
    table = drawn(kind, seed=seed).table
    regions = [name for name in table if name not in ("participant_id", "diagnosis", "age", "sex")]
    return (
        table[regions].to_numpy(float).copy(),
        regions,
        np.where(table["diagnosis"] == "CN", "control", "patient").astype(object),
    )


def test_the_distance_is_the_root_mean_square_of_robust_deviations():
    block = np.random.default_rng(5).normal(0, 1, (200, 6))
    group = np.repeat(np.array(["control", "patient"], dtype=object), 100)
    spread = stats.median_abs_deviation(block[:100], scale="normal")
    expected = np.sqrt((((block - np.median(block[:100], axis=0)) / spread) ** 2).mean(axis=1))
    np.testing.assert_allclose(find_outliers(block, list("abcdef"), group)[0]["distance"], expected, rtol=1e-4)


def normal_people(n, n_regions, common, seed):
    rng, group = np.random.default_rng(seed), np.resize(np.array(["control", "patient"], dtype=object), n)
    return rng.normal(5, 0.4, (n, n_regions)) + common * rng.normal(0, 0.4, (n, 1)), range(n_regions), group


@pytest.mark.parametrize(
    ("made", "n_cohorts"),
    [
        *((partial(simulated, kind), 2) for kind in KINDS),
        *((partial(normal_people, *size), 10) for size in ((60, 5, 0), (60, 20, 1), (400, 10, 0), (500, 60, 1))),
    ],
)
def test_clean_people_are_hardly_ever_flagged_however_ill(made, n_cohorts):
    cohorts = [made(seed=seed) for seed in range(n_cohorts)]
    assert np.mean([len(find_outliers(*cohort)[1]) / len(cohort[0]) for cohort in cohorts]) < 0.005


@pytest.mark.parametrize(
    ("factor", "whole"),
    [(10, False), (1 / 1000, False), (1000, True), (1 / 1000, True), (0.6, True)],
    ids=["one region × 10", "one region ÷ 1000", "mm3 for mL", "mL for mm3", "all regions 40 % smaller"],
)
def test_gross_errors_are_found(factor, whole):
    rng = np.random.default_rng(1)
    block, regions, group = simulated()
    who = rng.permutation(len(block))[:30]
    block[who, slice(None) if whole else rng.integers(len(regions), size=len(who))] *= factor
    marked = np.isin(np.arange(len(block)), list(find_outliers(block, regions, group)[1]))
    assert marked[who].mean() >= 0.85
    assert np.delete(marked, who).mean() < 0.005


def test_an_outlier_is_one_by_the_measure_that_stands_out():
    """If few, others are compared with controls only; an absent small furrow is not an error."""
    block, regions, group = simulated("null")
    block, regions = np.column_stack([block, np.random.default_rng(0).gamma(4, 0.1, len(block))]), [*regions, "furrow"]
    group[:2] = "other"
    block[3] *= 0.55
    block[8, 5] = np.median(block[:, 5]) + 14 * np.std(block[:, 5])
    block[1] *= 0.6
    block[5, -1] = 0.0
    measures, found, far_in = find_outliers(block, regions, group)
    assert {0, 5}.isdisjoint(found)
    assert {person: ("size" in far_in[person], "farthest" in far_in[person]) for person in (3, 8)} == {
        3: (True, False),
        8: (False, True),
    }
    assert (measures["size"][3], measures["farthest"].idxmax()) == (pytest.approx(-45, abs=12), 8)
    assert "smaller than usual" in found[1].text


def test_a_region_that_disease_changes_much_is_no_score():
    table = simulate_cohort("basic", seed=0).table  # the demonstration's cohort
    leak = (table["diagnosis"] == "PT") + np.random.default_rng(6).normal(5, 0.2, len(table))
    usual = make_cohort(table)
    leaking = make_cohort(table.assign(x1=leak), features=[*usual.features.columns, "x1"])
    told = [text for one in (usual, leaking) for text in one.warnings if "separates controls" in text]
    assert [text[text.index("almost") : text.index(" If")] for text in told] == ["almost completely on its own: x1."]
