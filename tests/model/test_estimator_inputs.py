import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rindices import SurrealGAN
from rindices.judging.study import check_groups, check_residuals, covariate_table, is_patient
from rindices.preprocessing import Preprocessing
from tests.refusal import refused_with


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 1, 0]),
        np.array([0.0, 1.0, 1.0, 0.0]),
        np.array([False, True, True, False]),
        np.array([0, 1, 1, 0], dtype=object),
        np.array([False, True, True, False], dtype=object),
    ],
)
def test_patients_are_1(labels):
    np.testing.assert_array_equal(is_patient(labels), np.array([False, True, True, False]), strict=True)


@pytest.mark.parametrize(("low", "high"), [(1, 2), (-1, 1), (0, 2), (0.5, 1.0)])
def test_of_other_numbers_the_higher_marks_patients(low, high):
    with pytest.warns(UserWarning, match=f"y contains {low} and {high}.*{high} as patients"):
        assert is_patient(np.array([high, low, low])).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (np.array(["CN", "AD"]), "2 class.*'CN', 'AD'"),
        (np.array(["0", "1"], dtype=object), "2 class.*'0', '1'"),
        (np.array([0, "AD"], dtype=object), "2 class.*0, 'AD'"),
        (np.array([0, 1, None], dtype=object), "3 class"),
        (np.array([0, 1, 2]), "3 class.*0, 1, 2"),
        (np.arange(9), "9 class.*4, [.]{3}[.]"),
        (np.ones(4), "1 class.*: 1.0"),
    ],
)
def test_other_labels_are_refused_and_shown(labels, found):
    refused_with(f"but has {found}", is_patient, labels, error=ValueError)


@pytest.mark.parametrize(
    "ages", [[60, 70], (60.0, 70.0), np.array([60, 70]), np.array([[60.0], [70.0]]), np.array([60, 70], dtype=object)]
)
def test_numbers_become_a_table_of_floats_and_nothing_none(ages):
    assert (covariate_table(None, 3), covariate_table(pd.DataFrame(index=range(3)), 3)) == (None, None)
    pd.testing.assert_frame_equal(covariate_table(ages, 2), pd.DataFrame({"covariate0": [60.0, 70.0]}))


@pytest.mark.parametrize(
    "mixed",
    [
        [[60, "F"], [70, "M"]],
        np.array([[60, "F"], [70, "M"]], dtype=object),
        pd.DataFrame({0: [60, 70], 1: ["F", "M"]}, dtype=object),
    ],
)
def test_a_number_beside_text_stays_a_number(mixed):
    number, text = covariate_table(mixed, 2).items()
    assert (number[1].dtype, text[1].tolist()) == (float, ["F", "M"])


def test_a_table_keeps_its_names_and_loses_its_index():
    given = pd.DataFrame({"age": [60, 70], 7: [True, False], "site": pd.Categorical(["A", "B"])}, index=["p1", "p2"])
    table = covariate_table(given, 2)
    assert (list(table.columns), list(table.index), table["7"].tolist()) == (["age", "7", "site"], [0, 1], [1.0, 0.0])
    assert (list(given.index), list(covariate_table(given["age"], 2).columns)) == (["p1", "p2"], ["age"])


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        ([1.0, 2.0, 3.0], r"covariates should have as many rows as X \(2\), but have 3"),
        (pd.DataFrame({"age": [60.0, 61.0], "sex": ["F", None]}), "Covariate 'sex' is missing in row 1"),
        ([60.0, np.nan], "Covariate 'covariate0' is missing in row 1"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]), "Covariate '1' is listed twice"),
        ({"age": [1, 2], "sex": [0, 1]}, r"a table, but got a dictionary: use pandas"),
        *(
            (pd.DataFrame({"age": ages}), r"'age' is missing or infinite in row [01]")
            for ages in ([60.0, np.inf], [np.inf] * 2)
        ),
    ],
)
def test_covariates_that_cannot_be_used_are_named(covariates, message):
    refused_with(message, covariate_table, covariates, 2, error=ValueError)


FLAT = np.array([[1.0, 2.0, 3.0], [5.0, 2.0, 3.0]] * 2)


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (
            check_residuals,
            (np.array([1.0, 5.0]), np.array([0.01, 1e-13])),
            r"completely explain region 'b' in controls \(1 region affected",
        ),
        (check_groups, (FLAT, 30), r"Region 'b' has the same value in all 4 controls \(2 regions affected"),
        *(
            (check_groups, (np.arange(3.0 * controls).reshape(-1, 3), patients), "at least 4 controls and 2 patients")
            for controls, patients in ((1, 30), (30, 1), (3, 30))
        ),
    ],
)
def test_groups_and_regions_that_cannot_be_used_are_named(check, given, message):
    refused_with(message, check, *given, ["a", "b", "c"], error=ValueError)


def test_covariates_in_another_order_are_refused():
    table = pd.DataFrame({"age": [50.0, 60.0, 70.0]}, index=["a", "b", "c"])
    refused_with("in different orders", covariate_table, table.iloc[::-1], 3, table.index, error=ValueError)
    assert covariate_table(table, 3, table.index)["age"].tolist() == [50.0, 60.0, 70.0]
    assert covariate_table(table["age"].to_numpy()[::-1], 3, table.index)["covariate0"].tolist() == [70.0, 60.0, 50.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("edcba", "The rows of y and X are in different orders: sort both the same way"),
        ("abcde", "Too few people"),  # same order, so a later check fails
        (range(5), "Too few people"),
    ],
)
def test_diagnoses_in_another_order_are_refused(rows, message):
    regions = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 3)), index=list("abcde"))
    refused_with(message, SurrealGAN().fit, regions.rename(columns=str), pd.Series([0, 0, 0, 1, 1], index=list(rows)))


def test_a_pyarrow_table_of_covariates_is_a_table():
    table = pd.DataFrame({"age": [60.0, 70.0], "sex": ["F", "M"]})
    pd.testing.assert_frame_equal(
        covariate_table(pa.Table.from_pandas(table), 2, pd.RangeIndex(2)[::-1]), table.astype({"sex": object})
    )


_CODES = pd.Series([False, True] * 20)


@pytest.mark.parametrize(
    ("given", "later"),
    [
        (_CODES.astype(str), _CODES),  # a table from a file, new people from pandas
        (_CODES, _CODES.astype(str)),
        (_CODES.astype("bool[pyarrow]"), _CODES),
        (_CODES, _CODES.astype("boolean")),
        (_CODES.astype("category"), _CODES),
        (_CODES.astype(int).astype("category"), _CODES.astype(int)),
        (_CODES.astype(int).astype("category"), _CODES.astype(int).astype(str)),
        (_CODES.astype(float).astype("category"), _CODES.astype(int)),
        (_CODES.astype(int).astype(str), _CODES.astype(float)),
        (_CODES.astype(int), _CODES),
        (_CODES.astype(int), _CODES.astype("bool[pyarrow]")),
        (pd.to_datetime(_CODES.map({False: "2020-01-01", True: "2021-01-01"})),) * 2,
    ],
)
def test_a_category_is_the_same_however_it_is_typed(given, later):
    regions = np.random.default_rng(0).normal(5, 1, (40, 3)) + _CODES.to_numpy()[:, None]
    trained, new = (covariate_table(codes.to_frame("smoker"), 40) for codes in (given, later))
    corrected = Preprocessing.fit(regions, trained).transform(regions, new)
    np.testing.assert_allclose(corrected[_CODES].mean(axis=0), corrected[~_CODES].mean(axis=0))
