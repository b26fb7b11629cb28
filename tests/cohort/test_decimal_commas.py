"""Numbers as a German clinic writes them are refused and never lost."""

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort
from rindices.errors import InputError

REGIONS = [f"region{number}" for number in range(8)]


def clinic():
    """80 people with age, head size and a score; region0 has three decimals and could be thousands."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(5000, 400, (80, 8)).round(1), columns=REGIONS)
    frame["region0"] = (frame["region0"] / 1000).round(3)
    frame.insert(0, "participant_id", [f"p{number:02d}" for number in range(80)])
    frame.insert(1, "diagnosis", np.repeat(["CN", "AD"], 40))
    return frame.assign(
        Alter=rng.uniform(55, 85, 80).round(1),
        tiv=rng.normal(1.5e6, 1e5, 80).round(1),
        MMST=np.resize([29, 27, 24], 80),
    )


def german(value):
    return f"{value:,.1f}".translate({ord(","): ".", ord("."): ","})


@pytest.mark.parametrize("role", ["covariates", "clinical"])
@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        (german, r"'tiv' \(\w+ ?\w*\) should hold numbers, but row 2 \(participant p00\) .*thousands: \d+\.\d\."),
        (lambda value: f"{value} mm3", r"'tiv' .*row 2 \(participant p00\) .* mm3'.*without its unit: \d+\.\d\."),
        (lambda value: str(value).replace(".", ","), r"'tiv' .*Write decimals with a point: \d+\.\d\."),
    ],
)
def test_numbers_in_another_spelling_are_no_categories(role, spelled, message):
    frame = clinic()
    frame["tiv"] = frame["tiv"].map(spelled)
    with pytest.raises(InputError, match=message):
        make_cohort(frame, **{role: "tiv"})


@pytest.mark.parametrize("levels", [["<65", ">=65"], ["1,5", "3,0"], ["1 mm", "1.2 mm", "2 mm"], ["01", "02"]])
def test_categories_that_look_like_numbers_stay_categories(levels):
    cohort = make_cohort(clinic().assign(kind=np.resize(levels, 80)), covariates="kind")
    assert set(cohort.covariates["kind"]) == {*levels}


def test_codes_of_numbers_stay_numbers():
    assert (
        make_cohort(clinic().assign(sex=np.resize(["1", "2"], 80)), covariates="sex").covariates["sex"].dtype.kind
        == "f"
    )


def test_many_lost_regions_are_refused_and_few_are_told():
    few, many = (
        clinic().assign(**{name: clinic()[name].map(german) for name in names})
        for names in (REGIONS[1:3], REGIONS[1:5])
    )
    assert any(
        "Left out, because they hold text: region1, region2." in warning for warning in make_cohort(few).warnings
    )
    with pytest.raises(
        InputError, match=r"Of 10 columns .* 4 cannot be read.*'region1' and 3 more.*\n.*\n.*--exclude region1"
    ):
        make_cohort(many)
    assert len(make_cohort(many, exclude="region[1-4],tiv").features.columns) == 6
    with pytest.raises(InputError, match=r"'region1' \(region\) should hold numbers"):
        make_cohort(few, features="region*")
