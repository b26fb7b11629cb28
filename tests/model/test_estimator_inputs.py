import numpy as np
import pandas as pd
import pytest

from rindices import InputError
from rindices.judging.study import check_groups, check_residuals, covariate_table, is_patient, seed_from


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
    found = is_patient(labels)
    assert (found.dtype, found.tolist()) == (bool, [False, True, True, False])


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
    with pytest.raises(ValueError, match=f"but has {found}"):
        is_patient(labels)


def test_no_covariates_is_none():
    assert covariate_table(None, 3) is None
    assert covariate_table(pd.DataFrame(index=range(3)), 3) is None


@pytest.mark.parametrize(
    "ages", [[60, 70], (60.0, 70.0), np.array([60, 70]), np.array([[60.0], [70.0]]), np.array([60, 70], dtype=object)]
)
def test_numbers_become_a_table_of_floats(ages):
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
    ],
)
def test_covariates_that_cannot_be_used_are_named(covariates, message):
    with pytest.raises(ValueError, match=message):
        covariate_table(covariates, 2)


def test_an_integer_is_its_own_seed():
    assert seed_from(5) == 5
    assert type(seed_from(np.int64(5))) is int


def test_regions_without_residuals_are_named():
    check_residuals(np.array([1.0, 5.0]), np.array([0.01, 5.0]), ["a", "b"])
    with pytest.raises(ValueError, match=r"region 'b' completely in controls \(1 such"):
        check_residuals(np.array([1.0, 5.0]), np.array([0.01, 1e-13]), ["a", "b"])


def test_constant_regions_are_counted_and_the_first_named():
    controls = np.array([[1.0, 2.0, 3.0], [5.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match=r"Region 'b' has the same value in all 2 controls \(2 such"):
        check_groups(controls, 30, ["a", "b", "c"])


@pytest.mark.parametrize(("n_controls", "n_patients"), [(1, 30), (30, 1)])
def test_one_person_is_no_group(n_controls, n_patients):
    with pytest.raises(InputError, match="Too few people"):
        check_groups(np.random.default_rng(0).normal(size=(n_controls, 2)), n_patients, ["a", "b"])


def test_covariates_in_another_order_are_refused():
    table = pd.DataFrame({"age": [50.0, 60.0, 70.0]}, index=["a", "b", "c"])
    with pytest.raises(ValueError, match="in different orders"):
        covariate_table(table.iloc[::-1], 3, table.index)
    assert covariate_table(table, 3, table.index)["age"].tolist() == [50.0, 60.0, 70.0]
    assert covariate_table(table["age"].to_numpy()[::-1], 3, table.index)["covariate0"].tolist() == [70.0, 60.0, 50.0]
