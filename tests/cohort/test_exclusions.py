import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices.analysis.groups import flow_table
from rindices.cohort import make_cohort, read_cohort
from rindices.errors import InputError
from rindices.schema.fields import MIN_SITE_CONTROLS

REGIONS = ["lHip", "rHip", "lAmy", "rAmy", "lEnt"]


def table(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(5, 0.5, (120, 5)), columns=REGIONS)
    frame.insert(0, "participant_id", [f"p{number:03d}" for number in range(120)])
    frame.insert(1, "diagnosis", ["CN"] * 60 + ["AD"] * 60)
    frame["age"] = rng.uniform(50, 80, 120)
    frame["icv"] = rng.normal(1.5e6, 1e5, 120)
    frame["place"] = np.resize(["Oslo", "Bonn", "Rome"], 120)
    return frame.assign(**columns)


def with_cells(*cells):
    frame = table()
    for row, column, value in cells:
        frame.loc[row, column] = value
    return frame


def test_people_with_gaps_are_left_out_and_recorded():
    frame = with_cells(
        (3, "lHip", np.nan), (3, "rAmy", np.nan), (5, "age", np.nan), (7, "icv", 0), (8, "lEnt", -9), (5, "icv", 0)
    )
    cohort = make_cohort(frame, covariates="age,icv", drop_missing=True)
    people = cohort.people.set_index("participant_id")
    assert people.loc[["p003", "p005", "p007", "p008"], "reason"].tolist() == [
        *("missing region", "missing covariate", "impossible value", "impossible value")
    ]
    assert people.loc[["p003", "p005", "p007", "p008"], "flags"].tolist() == [
        "lHip is missing, rAmy is missing",
        "age is missing; icv = 0 is impossible",
        "icv = 0 is impossible",
        "lEnt = -9 is impossible",
    ]
    assert people["used"].sum() == len(cohort.features) == 116
    assert people.index[people["used"]].tolist() == cohort.features.index.tolist()
    assert people["distance"].isna().tolist() == (~people["used"]).tolist()
    kept = frame.drop(index=[3, 5, 7, 8])
    np.testing.assert_array_equal(cohort.features, kept[REGIONS])
    np.testing.assert_array_equal(cohort.covariates, kept[["age", "icv"]])
    assert cohort.diagnosis.tolist() == kept["diagnosis"].tolist()
    assert cohort.warnings[0].startswith("4 of 120 rows are left out: impossible value (2), missing ")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("age", -1),
        ("age", 130),
        ("age", np.inf),
        ("icv", 0),
        ("icv", -5),
        ("icv", 12_000),
        ("lHip", 0),
        ("lHip", -np.inf),
    ],
)
def test_impossible_values_are_refused_with_the_way_out(column, value):
    with pytest.raises(InputError, match=rf"{column} = .* in row 9 \(participant p007\)[\s\S]*drop_missing=True"):
        make_cohort(with_cells((7, column, float(value))), covariates="age,icv")


@pytest.mark.parametrize(
    "columns",
    [
        {"education": np.r_[0.0, np.resize([12, 14, 16, 9], 119)]},  # no schooling
        {"motion": np.r_[0.0, np.random.default_rng(0).gamma(2, 0.1, 119)]},
        {"score": np.random.default_rng(0).normal(0, 1, 120)},
        {"sex": np.r_[0.0, np.ones(58), 0.0, 0.0, np.ones(59)]},
        {"months": np.random.default_rng(0).uniform(600, 960, 120)},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_ordinary_covariates_are_not_impossible(columns):
    assert make_cohort(table(**columns), covariates=list(columns)).people["used"].all()


def test_age_in_months_is_no_impossible_age():
    frame = table()
    frame["age"] *= 12
    assert make_cohort(frame, covariates="age").people["used"].all()


def test_group_sizes_are_those_after_exclusion():
    frame = table()
    frame.loc[:44, "lHip"] = np.nan
    with pytest.raises(
        InputError, match=r"only 15 people have the label CN\. 45 of 120 rows are left out: missing region"
    ):
        make_cohort(frame, drop_missing=True)


def test_outliers_are_named_and_left_out_only_if_asked():
    frame = with_cells((70, "lHip", 50.0))
    cohort = make_cohort(frame)
    assert cohort.people["used"].all()
    assert cohort.people["flags"].str.contains("lHip = 50").tolist() == [row == 70 for row in range(120)]
    assert any("errors: row 72. What" in warning and "drop_outliers=True" in warning for warning in cohort.warnings)
    dropped = make_cohort(frame, drop_outliers=True)
    assert dropped.people.loc[70, "reason"] == "outlier"
    assert dropped.people.loc[70, "distance"] == cohort.people.loc[70, "distance"] > 10
    assert len(dropped.features) == 119


def test_sites_need_controls():
    frame = table()
    frame.loc[[0, 1, 2, 3, 60], "place"] = "Nice"
    frame.loc[[61], "place"] = "Cork"
    with pytest.raises(InputError) as caught:
        make_cohort(frame, site="place")
    assert "2 sites have fewer (column 'place'): Cork (0 controls of 1 person), Nice (4 controls of 5 people)" in str(
        caught.value
    )
    assert "small_sites='drop'" in str(caught.value)
    cohort = make_cohort(frame, site="place", small_sites="drop")
    assert cohort.people["reason"].value_counts().to_dict() == {"": 114, "site without enough controls": 6}
    assert set(cohort.site) == {"Oslo", "Bonn", "Rome"}
    frame.loc[4, "place"] = "Nice"
    frame.loc[61, "place"] = "Oslo"
    assert (make_cohort(frame, site="place").site == "Nice").sum() == MIN_SITE_CONTROLS + 1


def test_a_site_of_others_only_needs_controls_too():
    frame = table()
    frame.loc[100:, "diagnosis"], frame.loc[100:, "place"] = "FTD", "Cork"
    with pytest.raises(InputError, match=r"Cork \(0 controls of 20 people\)"):
        make_cohort(frame, patients="AD", site="place")
    assert make_cohort(frame, patients="AD", site="place", small_sites="drop").n_other == 0


def test_controls_left_out_do_not_count_for_their_site():
    frame = table()
    frame.loc[:5, "place"] = "Nice"
    frame.loc[:1, "age"] = np.nan
    with pytest.raises(InputError, match=r"Nice \(4 controls of 4 people\)"):
        make_cohort(frame, site="place", covariates="age", drop_missing=True)


def test_clinical_scores_may_have_gaps_and_are_no_regions():
    frame = table(mmse=np.resize([29.0, np.nan, 25.0], 120), apoe=np.resize(["e3", None, "e4"], 120), remark="x")
    cohort = make_cohort(frame, clinical="mmse,apoe")
    assert list(cohort.features) == REGIONS
    assert cohort.clinical["mmse"].dtype == np.float64
    assert cohort.clinical["mmse"].isna().sum() == 40
    assert cohort.clinical["apoe"].dropna().tolist() == frame["apoe"].dropna().tolist()
    assert cohort.ignored_columns == ("age", "icv", "place", "remark")
    assert cohort.clinical.index.equals(cohort.features.index)
    assert list(make_cohort(frame, clinical="?m*,apo*").clinical) == ["mmse", "apoe"]
    assert make_cohort(table()).clinical.shape == (120, 0)


def test_clinical_scores_of_mixed_cells_are_refused():
    frame = table(mmse=["29"] * 119 + ["refused"])
    with pytest.raises(
        InputError, match=r"'mmse' \(clinical score\).*row 121 \(participant p119\) has the text 'refused'"
    ):
        make_cohort(frame, clinical="mmse")
    with pytest.raises(InputError, match=r"Infinite values: mmse"):
        make_cohort(table(mmse=[np.inf] + [29.0] * 119), clinical="mmse")


def test_doubtful_clinical_columns_are_warned_of():
    frame = table(mmse=np.r_[np.full(3, -9999.0), np.resize([25.0, 28.0], 117)], empty=np.nan)
    warnings = make_cohort(frame, clinical="mmse,empty").warnings
    assert any("3 people have mmse = -9999" in warning for warning in warnings)
    assert any("without a single value: empty" in warning for warning in warnings)
    assert make_cohort(table(score=np.resize([90.0, 99.0, 105.0], 120)), clinical="score").warnings == ()


def test_the_record_adds_up(tmp_path):
    frame = with_cells((3, "lHip", np.nan), (7, "icv", 0), (90, "rHip", 60.0))
    frame.loc[:2, "place"] = "Nice"
    frame.to_csv(tmp_path / "people.csv", index=False)
    cohort = read_cohort(
        tmp_path / "people.csv",
        covariates="icv",
        site="place",
        small_sites="drop",
        drop_missing=True,
        drop_outliers=True,
    )
    flow = flow_table(cohort.people)
    assert flow.iloc[0].tolist() == ["all", "all", 120, 1, 1, 1, 3, 114]
    assert flow.columns.tolist()[3:-1] == [
        *("missing region", "impossible value", "outlier", "site without enough controls")
    ]


@pytest.mark.skipif("RINDICES_DATA" not in os.environ, reason="RINDICES_DATA does not name the folder of real tables")
def test_a_real_table_works_as_it_is():
    path = Path(os.environ["RINDICES_DATA"], "abide1_volumes.csv")
    roles = {"control": "CN", "patients": "ASD", "covariates": "age,sex,icv", "site": "site"}
    roles |= {"clinical": "fiq,ados_total,srs_total"}
    with pytest.raises(InputError, match=r"icv = 0 in row 437 .*\n.*\n.*drop_missing=True"):
        read_cohort(path, **roles)
    cohort = read_cohort(path, **roles, drop_missing=True)
    raw = pd.read_csv(path)
    assert len(cohort.people) == len(raw) == 1097
    assert not cohort.people.loc[raw["icv"] == 0, "used"].any()
    assert (cohort.people["reason"] != "").mean() < 0.02
    assert cohort.features.shape[1] == 164
    assert cohort.site.nunique() == 20
    assert (cohort.people["flags"] != "").mean() < 0.05
    assert not any("FS_" in warning for warning in cohort.warnings)
