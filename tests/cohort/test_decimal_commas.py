"""Numbers as a German clinic writes them: read where only one thing can be meant, otherwise refused and never lost."""

import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort, read_cohort, read_table
from rindices.errors import InputError
from tests.cohort.test_workbooks import book

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


def with_commas(frame, *names):
    """Write numbers of columns as text with a decimal comma."""
    return frame.assign(**{name: frame[name].map(lambda value: str(value).replace(".", ",")) for name in names})


def written(folder, kind, frame):
    """Write a table as one of the kinds of files in which a decimal comma is text."""
    path = folder / f"people{kind}"
    if kind == ".xlsx":
        return book(path, list(frame.columns), *frame.astype(object).to_numpy().tolist())
    frame.to_parquet(path) if kind == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", [".csv", ".xlsx", ".parquet"])
def test_decimal_commas_as_text_are_the_numbers_of_a_table_with_semicolons(tmp_path, kind):
    clinic().to_csv(tmp_path / "semicolons.csv", sep=";", decimal=",", index=False)
    path = written(tmp_path, kind, with_commas(clinic(), *REGIONS, "Alter", "tiv"))
    pd.testing.assert_frame_equal(read_table(path), read_table(tmp_path / "semicolons.csv"), check_index_type=False)
    cohort = read_cohort(path, covariates="Alter,tiv", clinical="MMST")
    assert list(cohort.features) == REGIONS
    np.testing.assert_array_equal(cohort.covariates["Alter"], clinic()["Alter"])


def test_numbers_beside_decimal_commas_in_one_column_of_a_workbook(tmp_path):
    rows = [["a", 1.023], ["b", "70,5"], ["c", 61], ["d", None]]
    frame = read_table(book(tmp_path / "a.xlsx", ["participant_id", "v"], *rows))
    np.testing.assert_array_equal(frame["v"], [1.023, 70.5, 61, np.nan])


@pytest.mark.parametrize(
    "cells", [["3,410", "3,520"], ["3,410", "70,5", "1,234.5"], ["61,5", "70.5"], [3425.1, 3373.6, "3,410"]]
)
def test_what_may_mean_something_else_stays_text(tmp_path, cells):
    rows = [[f"p{number}", cell] for number, cell in enumerate(cells)]
    found = read_table(book(tmp_path / "a.xlsx", ["participant_id", "v"], *rows))["v"]
    assert found.tolist() == list(map(str, cells))


@pytest.mark.parametrize("regions", [REGIONS, [*REGIONS[:-1], "words"]])
def test_pairs_beside_decimal_points_are_no_numbers(tmp_path, regions):
    frame = clinic().assign(words=["n.d.", *clinic()["region7"][1:]])[["participant_id", "diagnosis", *regions]]
    pairs = [f"{first},{second}" for first in range(1, 6) for second in range(1, 5)]
    frame = frame.assign(pairs=np.resize(pairs, 80), volume=[f"3,{number}" for number in range(400, 480)])
    found = read_table(written(tmp_path, ".csv", frame))
    assert found["pairs"].tolist() == frame["pairs"].tolist()
    assert found["volume"].tolist() == frame["volume"].tolist()


@pytest.mark.parametrize("kind", [".csv", ".xlsx", ".parquet"])
def test_genotypes_are_no_numbers(tmp_path, kind):
    frame = clinic()[["participant_id", "diagnosis", "MMST"]].assign(gene=np.resize(["2,3", "3,3", "3,4", "4,4"], 80))
    assert read_table(written(tmp_path, kind, frame))["gene"].tolist() == frame["gene"].tolist()


def test_points_of_thousands_are_refused_in_a_workbook_with_decimal_commas(tmp_path):
    rows = [["a", "70,5"], ["b", "71,5"], ["c", "1.023"]]
    with pytest.raises(InputError, match=r"'v' has '1.023' in row 4.*thousands"):
        read_table(book(tmp_path / "a.xlsx", ["participant_id", "v"], *rows))


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
