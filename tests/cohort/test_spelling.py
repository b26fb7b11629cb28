import pandas as pd
import pytest

from rindices.cohort.spelling import spelled_numbers, spelling_hint


@pytest.mark.parametrize(
    "cells",
    [
        [f"A{number}" for number in range(40)],
        [f"011_S_{number:04d}" for number in range(40)],
        [f"{number:03d}" for number in range(40)],
        [f"2021-03-{number:02d}" for number in range(1, 30)],
        [f"{number}.03.2021" for number in range(1, 30)],
        [f"{number}/3/21" for number in range(1, 30)],
        [f"12:{number:02d}" for number in range(40)],
        ["1.5T", "3T"] * 20,
        ["7.1.1", "5.3.0"] * 20,
        ["60-70", "70-80"] * 20,
        ["F", "M"],
        [],
    ],
)
def test_codes_dates_and_categories_were_not_meant_as_numbers(cells):
    assert spelled_numbers(pd.Series(cells, dtype=object)) == ""


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["998,2", "1.234,5"], "without separators of thousands: 1234.5."),
        (["998.2", "1,234.5"], "without separators of thousands: 1234.5."),
        (["1\u202f234,5", "2 345,0"], "without separators of thousands: 1234.5."),
        (["1.234.567"], "without separators of thousands: 1234567."),
        (["1.234,5 mL"], "without its unit: 1234.5."),
        (["<0.41"] * 30, "in place of limits"),
        (["3.1 \u00b1 0.2", "3.3 \u00b1 0.1"], "digits and a decimal point only"),
        (["\u22121.5", "\u22122"], "digits and a decimal point only"),
    ],
)
def test_columns_that_were_meant_as_numbers(cells, hint):
    assert hint in spelled_numbers(pd.Series(cells, dtype=object))


def test_a_cell_with_points_of_thousands_and_a_decimal_comma():
    assert spelling_hint("12.345,6") == "Write numbers without separators of thousands: 12345.6."
