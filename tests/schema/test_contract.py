import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from rindices.cohort import check_people, make_cohort, read_people
from rindices.errors import InputError
from rindices.model.header import plain
from rindices.schema.contract import Contract, CovariateSpec
from tests.schema.contracts import contract_of

REGIONS = ["lHip", "rHip", "lAmy", "rAmy", "lEnt"]


def training():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(4, 0.4, (90, 5)), columns=REGIONS)
    frame.insert(0, "subject", [f"{number:03d}" for number in range(90)])
    frame["dx"] = np.resize(["CN", "AD", "FTD"], 90)
    frame["age"] = np.linspace(50, 86, 90)
    frame["sex"] = np.resize([0, 1, 1, 0], 90)
    frame["centre"] = np.resize(["Oslo", "Bonn"], 90)
    frame["iq"] = 100.0
    frame.loc[frame["dx"] == "FTD", REGIONS] += 50  # scored only: must not widen the training range
    return frame


@pytest.fixture(scope="module")
def contract():
    cohort = make_cohort(
        training(), id="subject", diagnosis="dx", patients="AD", covariates="age,sex,centre", exclude="iq"
    )
    return contract_of(cohort, id_column="subject", diagnosis_column="dx")


def people(n=8):
    frame = training()
    return frame[frame["dx"] != "FTD"].head(n).reset_index(drop=True)


def with_cell(row, column, value):
    frame = people()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


def test_statistics_are_of_the_training_people(contract):
    frame = training()
    values = frame.loc[frame["dx"] != "FTD", REGIONS]
    assert contract.features == tuple(REGIONS)
    np.testing.assert_array_equal(contract.feature_minimum, values.min())
    np.testing.assert_array_equal(contract.feature_maximum, values.max())
    np.testing.assert_allclose(contract.feature_median, values.median(), rtol=1e-15)
    ages = frame.loc[frame["dx"] != "FTD", "age"]
    assert contract.covariates == (
        CovariateSpec("age", None, ages.min(), ages.max(), None),
        CovariateSpec("sex", None, 0.0, 1.0, (0.0, 1.0)),
        CovariateSpec("centre", ("Bonn", "Oslo")),
    )
    assert contract.ignored_columns == ("iq",)
    assert (contract.control_labels, contract.patient_labels) == (("CN",), ("AD",))


def test_json_brings_the_contract_back(contract):
    assert TypeAdapter(Contract).validate_json(json.dumps(contract, default=plain)) == contract


@pytest.mark.parametrize(
    "change",
    [
        {"features": "lHip"},
        {"features": [1, 2, 3, 4, 5]},
        {"features": ["a", "a", "b", "c", "d"]},
        {"feature_minimum": [1.0]},
        {"feature_minimum": [float("nan")] * 5},
        {"feature_minimum": [True] * 5},
        {"feature_minimum": [99.0] * 5},
        {"covariates": {}},
        {"covariates": [{"name": "age"}]},
        {"covariates": [{"name": "age", "categories": None, "minimum": 9, "maximum": 1, "codes": None}]},
        {"covariates": [{"name": "age", "categories": None, "minimum": None, "maximum": 1, "codes": None}]},
        {"covariates": [{"name": "lHip", "categories": ["a"], "minimum": None, "maximum": None, "codes": None}]},
        {"id_column": None},
        {"unit": 3},
        {"site_column": "lHip"},
        {"visit_column": "age"},
        {"visit_column": 3},
        {"surplus": 1},
    ],
)
def test_nonsense_json_is_refused(contract, change):
    with pytest.raises(ValidationError):
        TypeAdapter(Contract).validate_json(json.dumps(plain(contract) | change, default=plain))


def test_good_people_pass_in_the_order_of_the_model(contract):
    frame = people()[["iq", "centre", "sex", "age", *reversed(REGIONS), "subject"]].assign(education=12, remark="x")
    result = check_people(frame, contract)
    assert list(result.features.columns) == REGIONS
    np.testing.assert_array_equal(result.features.to_numpy(), people()[REGIONS].to_numpy())
    assert list(result.covariates.columns) == ["age", "sex", "centre"]
    assert result.covariates["sex"].dtype == np.float64
    assert result.diagnosis.tolist() == ["n/a"] * 8
    assert result.flags.tolist() == [""] * 8
    for part in (result.features, result.covariates, result.diagnosis, result.flags):
        assert part.index.tolist() == people()["subject"].tolist()
    assert check_people(people(), contract).diagnosis.iloc[0] == "CN"
    assert check_people(people().assign(extra=1.0, extra2=2.0), contract, exclude="extra*").features.shape == (8, 5)


def test_reading_keeps_ids_as_text(contract, tmp_path):
    people().to_csv(tmp_path / "new.csv", index=False)
    assert read_people(tmp_path / "new.csv", contract).features.index[0] == "000"


def test_people_outside_the_range_are_kept_and_flagged(contract):
    frame = people()
    low, high = np.array(contract.feature_minimum), np.array(contract.feature_maximum)
    frame.loc[1, ["lHip", "rHip"]] = [high[0] + 0.11 * (high - low)[0], low[1] - 0.11 * (high - low)[1]]
    frame.loc[1, "age"] = 91
    frame.loc[2, "lHip"] = high[0] + 0.09 * (high - low)[0]
    frame.loc[3, "lEnt"] = 99.0
    frame.loc[4, "age"] = 40.5
    oldest = f"{contract.covariates[0].maximum:.4g}"
    assert check_people(frame, contract).flags.tolist()[:5] == [
        "",
        f"2 regions outside the training range (lHip, rHip); age 91 above {oldest}",
        "",
        "1 region outside the training range (lEnt)",
        "age 40.5 below 50",
    ]


ERRORS = [
    (people().drop(columns="subject"), r"no column 'subject'[\s\S]*as in the training table"),
    (people().drop(columns="lHip"), r"needs 5 regions, but the table lacks 1: lHip"),
    (people().rename(columns={"lHip": "Lhip"}), r"lacks 1: lHip\. Did you mean 'Lhip'\?"),
    (people().assign(lPut=1.0), r"1 column of numbers that the model does not know: lPut\.[\s\S]*--exclude lPut"),
    (people().drop(columns="age"), r"no column 'age'.*a covariate of the model"),
    (with_cell(2, "centre", "Rom"), r"'centre' was coded Bonn, Oslo in training, but this table has Bonn, Oslo, Rom"),
    (people().assign(sex=people()["sex"] + 1), r"'sex' was coded 0, 1 in training, but this table has 1, 2"),
    (people().assign(sex="F"), r"'sex' was a number in training \(0 and 1\), but this table has text: F"),
    (people().assign(centre=np.arange(8) % 2), r"'centre' was coded Bonn, Oslo in training, but this table has 0, 1"),
    (people().assign(age="old"), r"'age' was a number in training \(50 to 85\.\d+\)"),
    (with_cell(2, "age", None), r"Missing values in 1 covariate column: age"),
    (with_cell(2, "centre", None), r"Missing values in 1 covariate column: centre"),
    (
        with_cell(2, "lHip", None),
        r"Missing values in 1 region column: lHip \(1 person\)[\s\S]*row 4 \(participant 003\)",
    ),
    (with_cell(2, "lHip", np.inf), r"Impossible values in 1 region column"),
    (with_cell(2, "lHip", "x"), r"'lHip' \(region\).*row 4 \(participant 003\) has the text 'x'"),
    (with_cell(2, "subject", "000"), r"'000' occurs in rows 2 and 4"),
    (people().iloc[:0], r"no people"),
]


@pytest.mark.parametrize(("frame", "message"), ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_every_mistake_is_explained(contract, frame, message):
    with pytest.raises(InputError, match=message) as caught:
        check_people(frame, contract)
    assert 1 <= len(str(caught.value).splitlines()) <= 4


def test_a_needed_region_cannot_be_excluded(contract):
    with pytest.raises(InputError, match=r"The model needs column 'lHip'"):
        check_people(people(), contract, exclude="lHip")
    with pytest.raises(InputError, match=r"'lPut' \(from --exclude\) is not a column"):
        check_people(people(), contract, exclude="lPut")


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (1000, r"1000 times larger than in training \(mL there, mm3 here\?\)"),
        (0.001, r"1000 times smaller than in training \(mm3 there, mL here\?\)"),
        (100, r"100 times larger .*\(cm2 there, mm2 here\?\)"),
        (10, r"10 times larger .*\(cm there, mm here\?\)"),
    ],
)
def test_another_unit_is_refused(contract, n, factor, message):
    frame = people(n)
    frame[REGIONS] *= factor
    with pytest.raises(InputError, match=message):
        check_people(frame, contract)


@pytest.mark.parametrize("factor", [0.6, 1.6, 3.0])
def test_ordinary_differences_are_no_other_unit(contract, factor):
    frame = people()
    frame[REGIONS] *= factor
    assert len(check_people(frame, contract).flags) == 8


def test_one_region_in_another_unit_is_named(contract):
    frame = people()
    frame["rAmy"] *= 1000
    with pytest.raises(
        InputError, match=r"1 region looks as if in another unit, unlike the others: rAmy\.\nColumn 'rAmy' is 1000"
    ):
        check_people(frame, contract)
    assert check_people(frame.head(4), contract).flags.str.contains("rAmy").all()


def test_widely_varying_regions_and_scores_have_no_unit():
    wide = Contract(("a", "b", "c"), (0.0, -2.0, 1.0), (1.0, 0.1, 2.0), (50.0, 2.0, 3.0))
    frame = pd.DataFrame({"participant_id": list("uvwxyz"), "a": 10.0, "b": 1.0, "c": 2.1})
    assert check_people(frame, wide).flags.tolist() == [""] * 6


def test_the_unit_is_named_where_known(contract):
    known = replace(contract, unit="mL")
    frame = people()
    frame[REGIONS] *= 1000
    with pytest.raises(InputError, match=r"the model was trained on values in mL"):
        check_people(frame, known)


def sited():
    cohort = make_cohort(
        training().assign(wave=1),
        id="subject",
        diagnosis="dx",
        patients="AD",
        covariates="age",
        site="centre",
        visit="wave",
        clinical="iq",
    )
    return contract_of(cohort, id_column="subject", diagnosis_column="dx", visit_column="wave")


def test_contracts_of_earlier_versions_are_read(contract):
    old = {name: value for name, value in plain(contract).items() if name not in ("site_column", "visit_column")}
    assert TypeAdapter(Contract).validate_json(json.dumps(old, default=plain)) == contract


def test_site_and_visit_are_remembered():
    known = sited()
    assert (known.site_column, known.visit_column) == ("centre", "wave")
    assert [spec.name for spec in known.covariates] == ["age", "centre"]
    assert "iq" in known.ignored_columns  # a clinical score of the training table is no unknown region


def test_people_of_new_sites_pass_only_if_asked():
    frame = with_cell(2, "centre", "Rom")
    with pytest.raises(InputError, match="'centre' was coded Bonn, Oslo"):
        check_people(frame, sited())
    result = check_people(frame, sited(), new_sites="uncorrected")
    assert result.covariates["centre"].iloc[2] == "Rom"
    assert result.flags.tolist() == [
        *("", "", "site Rom is not one of the model's: not corrected for site", "", "", "", "", "")
    ]
    with pytest.raises(InputError, match="'sex' was coded"):
        check_people(people().assign(sex=people()["sex"] + 1), contract_with_sex(), new_sites="uncorrected")
    with pytest.raises(InputError, match="--new-sites should be refuse or uncorrected, found 'keep'"):
        check_people(people(), sited(), new_sites="keep")


def contract_with_sex():
    cohort = make_cohort(training(), id="subject", diagnosis="dx", patients="AD", covariates="sex", exclude="iq")
    return contract_of(cohort, id_column="subject", diagnosis_column="dx")


def test_new_people_may_have_visits_and_clinical_scores(contract, tmp_path):
    frame = pd.concat([people().assign(wave="bl"), people().assign(wave="m06")], ignore_index=True)
    frame["mmse"] = np.resize([29.0, np.nan], 16)
    with pytest.raises(InputError, match=r"occurs in rows 2 and 10[\s\S]*--visit COLUMN"):
        check_people(frame, contract, clinical="mmse")
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = read_people(tmp_path / "new.csv", contract, visit="wave", clinical="mmse")
    assert result.visit.tolist() == frame["wave"].tolist()
    assert result.clinical["mmse"].isna().sum() == 8
    assert result.features.index.tolist() == frame["subject"].tolist()
    assert result.group.tolist() == np.where(frame["dx"] == "CN", "control", "patient").tolist()
    by_contract = check_people(frame.drop(columns="mmse"), sited())
    assert by_contract.visit.tolist() == frame["wave"].tolist()
    assert check_people(people(), sited()).visit is None
    with pytest.raises(InputError, match=r"needs column 'age', so it cannot be a clinical score"):
        check_people(people(), contract, clinical="age")
