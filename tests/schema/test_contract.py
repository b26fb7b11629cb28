"""Contracts are learned from the training people and checked against tables of new people."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy.stats import norm

from rindices.cohort import make_cohort, read_people
from rindices.model import plain
from rindices.schema import Contract, CovariateField, CovariateSpec
from rindices.settings import ApplySettings
from tests.refusal import refused_with
from tests.schema.contracts import check_people, contract_of

REGIONS = ["lHip", "rHip", "lAmy", "rAmy", "lEnt"]


def training():
    frame = pd.DataFrame(np.random.default_rng(3).normal(4, 0.4, (90, 5)), columns=REGIONS)
    frame.insert(0, "subject", [f"{number:03d}" for number in range(90)])
    about = {"dx": np.resize(["CN", "AD", "FTD"], 90), "age": np.linspace(50, 86, 90), "iq": 100.0, "wave": 1}
    frame = frame.assign(**about, sex=np.resize([0, 1, 1, 0], 90), centre=np.resize(["Oslo", "Bonn"], 90))
    frame.loc[frame["dx"] == "FTD", REGIONS] += 50  # scored only: must not widen the training range
    return frame


def learned(visit_column=None, **roles):
    visit = {} if visit_column is None else {"visit": visit_column}
    cohort = make_cohort(training(), id="subject", diagnosis="dx", patients="AD", **visit, **roles)
    return contract_of(cohort, id_column="subject", diagnosis_column="dx", visit_column=visit_column)


@pytest.fixture(scope="module")
def contract():
    return learned(covariates="age,sex,centre", exclude="iq,wave")


@pytest.fixture(scope="module")
def sited():
    return learned("wave", covariates="age", site="centre", clinical="iq")


def people(n=8):
    frame = training()
    return frame[frame["dx"] != "FTD"].drop(columns="wave").head(n).reset_index(drop=True)


def test_statistics_are_of_the_training_people(contract):
    learned_from = training().query("dx != 'FTD'")
    regions, ages, share = learned_from[REGIONS], learned_from["age"], 5 / 60
    assert (contract.features, contract.quantile) == (tuple(REGIONS), share)
    # At least five people lie beyond each end, and no person's exact value is stored.
    np.testing.assert_allclose(contract.ranges, regions.quantile([share, 0.5, 1 - share]), rtol=5e-3)
    assert not np.isin(contract.ranges, regions.to_numpy()).any()
    low, high = (round(age, 1) for age in ages.quantile([share, 1 - share], interpolation="nearest"))
    assert min((ages < low).sum(), (ages > high).sum()) >= 4
    assert contract == replace(
        contract,
        covariates=(
            CovariateSpec("age", None, low, high, None, share),
            CovariateSpec("sex", None, 0.0, 1.0, (0.0, 1.0)),
            CovariateSpec("centre", ("Bonn", "Oslo")),
        ),
        ignored_columns=("iq", "wave"),
        control_labels=("CN",),
        patient_labels=("AD",),
    )


@pytest.mark.parametrize("later", [(), ("site_column", "visit_column")])
def test_json_brings_the_contract_back_also_that_of_earlier_versions(contract, later):
    kept = {name: value for name, value in plain(contract).items() if name not in later}
    assert TypeAdapter(Contract).validate_json(json.dumps(kept, default=plain)) == contract


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
        {"quantile": 0.5},
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


def test_good_people_pass_in_the_order_of_the_model(contract, tmp_path):
    reordered = people()[["iq", "centre", "sex", "age", *reversed(REGIONS), "subject"]]
    reordered.assign(education=12, remark="x", extra=1.0, extra2=2.0).to_csv(tmp_path / "new.csv", index=False)
    (result,) = read_people(tmp_path / "new.csv", contract, ApplySettings(exclude="extra*"))
    known = people().set_index("subject")  # ids keep their leading zeros
    assert result.features.to_dict() == known[REGIONS].to_dict()
    assert result.covariates.to_dict() == known[["age", "sex", "centre"]].to_dict()
    assert result.diagnosis.to_dict() == dict.fromkeys(known.index, "n/a")
    assert result.flags.to_dict() == dict.fromkeys(known.index, "")
    assert check_people(people(), contract).diagnosis.iloc[0] == "CN"


@pytest.mark.parametrize(("lowest", "expected"), [(8.0, 9.0), (0.0, 0.0)])
def test_ranges_of_covariates_are_quantiles_with_a_margin(lowest, expected):
    spec = CovariateField("education").learn(np.r_[lowest, np.repeat(np.arange(9.0, 22), 20), 25])
    margin = 0.2 * (21 - expected)
    assert (spec.minimum, spec.maximum, *spec.limits) == pytest.approx((expected, 21, expected - margin, 21 + margin))
    assert CovariateSpec("education", None, lowest, 25.0).limits == (lowest, 25)


def test_people_outside_the_range_are_kept_and_flagged(contract):
    """The range ends 4 sd from the median, on each side those of a normal distribution through the quantiles."""
    frame, (lowest, median, highest) = people(), contract.ranges
    sd = np.array([median - lowest, highest - median]) / norm.isf(contract.quantile)
    low, high = median - 4 * sd[0], median + 4 * sd[1]
    frame.loc[1, ["lHip", "rHip"]] = [1.01 * high[0], 0.99 * low[1]]
    frame.loc[[2, 3], ["lHip", "lEnt"]] = [[0.99 * high[0], 4.0], [4.0, 9.5]]
    frame.loc[[1, 4], "age"] = 91, 40.5
    age = contract.covariates[0]
    assert check_people(frame, contract).flags.tolist()[:5] == [
        "",
        "2 regions outside the training range (lHip, rHip); age 91 outside the training range "
        f"({age.minimum:.4g} to {age.maximum:.4g})",
        "",
        "1 region outside the training range (lEnt)",
        f"age 40.5 outside the training range ({age.minimum:.4g} to {age.maximum:.4g})",
    ]


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize(("factor", "told"), [(1000, "1000"), (0.001, "1000"), (100, "100"), (10, "10")])
def test_another_unit_is_refused(contract, n, factor, told):
    frame = people(n)
    frame[REGIONS] *= factor
    refused_with(
        rf"{told} times {'larger' if factor > 1 else 'smaller'} .*\(they may be in another unit\)",
        check_people,
        frame,
        contract,
    )
    refused_with("the model was trained on values in mL", check_people, frame, replace(contract, unit="mL"))


@pytest.mark.parametrize("factor", [0.6, 1.6, 3.0])
def test_ordinary_differences_are_no_other_unit(contract, factor):
    frame = people()
    frame[REGIONS] *= factor
    assert len(check_people(frame, contract).flags) == 8


def test_one_region_in_another_unit_is_named_and_widely_varying_regions_and_scores_have_none(contract):
    wide = Contract(("a", "b", "c"), (0.0, -2.0, 1.0), (1.0, 0.1, 2.0), (50.0, 2.0, 3.0))
    assert (
        check_people(
            pd.DataFrame({"participant_id": list("uvwxyz"), "a": 10.0, "b": 1.0, "c": 2.1}), wide
        ).flags.tolist()
        == [""] * 6
    )
    frame = people().assign(rAmy=1000 * people()["rAmy"])
    refused_with(r"unit from the others: rAmy\.\nThe values in column 'rAmy' are 1000", check_people, frame, contract)
    assert check_people(frame.head(4), contract).flags.str.contains("rAmy").all()


def test_site_and_visit_are_remembered_and_new_sites_pass_if_asked(contract, sited):
    assert (sited.site_column, sited.visit_column, [spec.name for spec in sited.covariates]) == (
        "centre",
        "wave",
        ["age", "centre"],
    )
    assert "iq" in sited.ignored_columns  # a clinical score of the training table is not an unknown region
    frame, uncorrected = people().assign(centre=["Oslo", "Rom"] * 4), ApplySettings(new_sites="uncorrected")
    result = check_people(frame, sited, uncorrected)
    told = "site Rom is unknown to the model, so its effect was not removed"
    assert [*zip(result.covariates["centre"], result.flags, strict=True)] == [("Oslo", ""), ("Rom", told)] * 4
    refused_with("'sex' was coded", check_people, people().assign(sex=people()["sex"] + 1), contract, uncorrected)


def test_new_people_may_have_visits_and_clinical_scores(contract, sited, tmp_path):
    frame = pd.concat([people().assign(wave=wave) for wave in ("bl", "m06")], ignore_index=True)
    frame.assign(mmse=np.resize([29.0, np.nan], 16)).to_csv(tmp_path / "new.csv", index=False)
    (result,) = read_people(tmp_path / "new.csv", contract, ApplySettings(visit="wave", clinical="mmse"))
    assert result.visit.tolist() == check_people(frame, sited).visit.tolist() == frame["wave"].tolist()
    assert (result.clinical["mmse"].isna().sum(), result.features.index.tolist()) == (8, frame["subject"].tolist())
    assert result.group.tolist() == frame["dx"].map({"CN": "control", "AD": "patient"}).tolist()
    assert check_people(people(), sited).visit is None
    refused_with(r"needs column 'age'[\s\S]*clinical", check_people, people(), contract, ApplySettings(clinical="age"))
