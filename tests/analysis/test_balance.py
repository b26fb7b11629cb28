"""The test of all background variables together: its error rate, sites, what counts more, and gaps."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices.analysis import balance_warnings, group_balance
from rindices.analysis.balance import corrected_p
from rindices.problems import InputError


def people(seed=0, n_controls=120, n_patients=80):
    rng, n_people = np.random.default_rng(seed), n_controls + n_patients
    patient = np.arange(n_people) >= n_controls
    return pd.DataFrame(
        {
            "age": rng.normal(70, 8, n_people) - 9 * patient,
            "sex": np.where(rng.uniform(size=n_people) < 0.3 + 0.3 * patient, "F", "M"),
            "site": rng.choice(list("ABCDEFG"), n_people),
            "volume": rng.normal(1.4e6, 1e5, n_people),
            "carrier": rng.integers(2, size=n_people),
        }
    ), patient


def row(values, patient, **kind):
    return group_balance(pd.DataFrame({"x": pd.Series(values, **kind)}), patient).iloc[0]


def test_numbers_are_compared_in_pooled_sd_and_by_welch():
    variables, patient = people()
    found = group_balance(variables, patient).set_index("variable")
    for name in ("age", "volume"):
        controls, patients = variables[name][~patient], variables[name][patient]
        pooled = math.sqrt((controls.std() ** 2 + patients.std() ** 2) / 2)
        assert found.kind[name] == "number"
        assert found.difference[name] == pytest.approx((patients.mean() - controls.mean()) / pooled)
        assert found.p[name] == pytest.approx(stats.ttest_ind(patients, controls, equal_var=False).pvalue)
    assert found.difference["age"] < -0.8
    assert found.controls["age"] == f"{variables.age[~patient].mean():.1f} ± {variables.age[~patient].std():.1f}"


@pytest.mark.parametrize("name", ["sex", "site", "carrier"])
def test_categories_are_compared_by_chi_square(name):
    variables, patient = people()
    found = group_balance(variables, patient).set_index("variable").loc[name]
    test = stats.chi2_contingency(pd.crosstab(variables[name], patient), correction=False)
    assert (found.kind, found.difference) == ("category", pytest.approx(math.sqrt(test.statistic / len(patient))))
    assert found.p == pytest.approx(test.pvalue)


def test_table_reads_well():
    variables = pd.DataFrame(
        {
            "age": [60.0, 62, 64, 70, 72, 74],
            "volume": [1.40e6, 1.45e6, 1.50e6, 1.3e6, 1.4e6, 1.5e6],
            "thickness": [2.50, 2.51, 2.52, 2.4, 2.5, 2.6],
            "sex": list("FFMFMM"),
            "smoker": [True, False, False, False, False, False],
            "site": list("ABCDEA"),
        }
    )
    found = group_balance(variables, [0, 0, 0, 1, 1, 1])
    assert found.variable.tolist() == list(variables)
    assert found.controls.tolist() == [
        "62.0 ± 2.0",
        "1450000 ± 50000",
        "2.510 ± 0.010",
        "F 67 %, M 33 %",
        "False 67 %, True 33 %",
        "3 categories",
    ]
    assert found.patients.tolist()[3:5] == ["F 33 %, M 67 %", "False 100 %, True 0 %"]
    assert found.kind.tolist() == ["number"] * 3 + ["category"] * 3


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 0, 1], "category"),
        ([0, 1, 2, 1], "number"),
        ([True, False, True, True], "category"),
        (list("AABB"), "category"),
        (pd.array([1, 2, None, 3], dtype="Int64"), "number"),
        (pd.array([True, None, False, True], dtype="boolean"), "category"),
        (pd.Series([1.5, None, 2.5, 3.5], dtype=object), "number"),
        (pd.Categorical([1, 2, 3, 1]), "category"),
    ],
)
def test_kinds_of_variables(values, kind):
    assert row(values, [0, 1, 0, 1]).kind == kind


def test_missing_and_infinite_values_are_left_out_of_their_variable_only():
    variables, patient = people()
    holes = variables.copy()
    holes.loc[[0, 3, 150], "age"] = [np.nan, np.inf, np.nan]
    holes.loc[[5, 160, 170], "sex"] = None
    found = group_balance(holes, patient).set_index("variable")
    for name, (n_controls, n_patients) in {"age": (118, 79), "sex": (119, 78), "site": (120, 80)}.items():
        known = np.isfinite(holes[name]) if name == "age" else holes[name].notna()
        alone = group_balance(variables.loc[known, [name]], patient[known]).iloc[0]
        assert (found.n_controls[name], found.n_patients[name]) == (n_controls, n_patients)
        assert (found.difference[name], found.p[name]) == (alone.difference, alone.p)


@pytest.mark.parametrize("values", [[1.0, 2, 3, np.nan, np.nan, np.nan], ["A", "B", "C", None, None, None]])
def test_variable_known_in_one_group_only_cannot_be_compared(values):
    found = row(values, [0, 0, 0, 1, 1, 1])
    assert np.isnan([found.difference, found.p]).all()
    assert (found.n_controls, found.n_patients, found.patients) == (3, 0, "no values")
    assert not found.imbalanced


def test_number_constant_in_one_group_is_still_compared():
    values, patient = np.array([5.0, 5, 5, 5, 6, 7, 8]), np.array([0, 0, 0, 0, 1, 1, 1])
    found = row(values, patient)
    assert found.difference == pytest.approx(2 / math.sqrt(0.5))
    assert found.p == pytest.approx(2 * stats.t.sf(2 / math.sqrt(1 / 3), 2))  # only the patients' error counts


def test_imbalance_needs_both_certainty_and_size():
    variables, patient = people()
    found = group_balance(variables, patient).set_index("variable").imbalanced
    assert found.to_dict() == {"age": True, "sex": True, "site": False, "volume": False, "carrier": False}
    many = np.arange(40_000) % 2 == 1
    small = row(np.random.default_rng(0).standard_normal(40_000) + 0.06 * many, many)
    assert small.p < 1e-3
    assert 0 < small.difference < 0.1
    assert not small.imbalanced
    few = row([1.0, 2, 3, 2, 3, 4.5], [0, 0, 0, 1, 1, 1])
    assert few.difference > 0.5
    assert not few.imbalanced


def test_warnings_name_the_imbalanced_variables_in_words():
    variables = pd.DataFrame({"age": [70, 72, 74] * 4 + [60, 62, 64] * 4, "sex": list("F" * 12 + "M" * 12), "x": 1})
    patient = np.arange(24) >= 12
    assert balance_warnings(group_balance(variables, patient)) == [
        "Patients and controls differ in age (62.0 ± 1.7 versus 72.0 ± 1.7, difference 5.86 sd), so apparent "
        "disease effects may be due to age. Match the groups: using age as a covariate removes only the effect that it "
        "has in controls.",
        "Patients and controls differ in sex (F 0 %, M 100 % versus F 100 %, M 0 %, Cramér's V 1.00), so apparent "
        "disease effects may be due to sex. Match the groups: using sex as a covariate removes only the effect that it "
        "has in controls.",
    ]
    assert balance_warnings(group_balance(variables[["x"]], patient)) == []


@pytest.mark.parametrize(
    ("patient", "message"),
    [
        ([True, False], "one value for each of the 3 people"),
        ([0, 1, 2], "contains '2'"),
        (["0", "1", "1"], "contains '0'"),
    ],
)
def test_wrong_groups_are_told(patient, message):
    with pytest.raises(InputError, match=message):
        group_balance(pd.DataFrame({"age": [1, 2, 3]}), patient)


def test_many_variables_are_no_more_often_called_different_than_one():
    rng, patient = np.random.default_rng(0), np.arange(60) >= 30
    found = [corrected_p(pd.DataFrame(rng.normal(size=(60, 15))), patient, seed=seed).min() for seed in range(40)]
    assert np.mean(np.array(found) <= 0.05) <= 0.15  # one in 40 expected beyond that; 0.54 if each had its own p


def test_p_of_one_variable_is_that_of_a_permutation_test():
    rng, patient = np.random.default_rng(1), np.arange(40) >= 20
    value = rng.normal(size=40) + 0.6 * patient
    own = abs(value[patient].mean() - value[~patient].mean())
    shuffled = [rng.permutation(patient) for _ in range(4000)]
    expected = np.mean([abs(value[one].mean() - value[~one].mean()) >= own for one in shuffled])
    assert corrected_p(pd.DataFrame({"x": value}), patient)[0] == pytest.approx(expected, abs=0.03)


def test_a_difference_between_sites_is_that_of_the_site():
    rng, site = np.random.default_rng(2), pd.Series(np.repeat(["A", "B"], 100))
    patient = np.arange(200) % 100 < np.where(site == "A", 30, 70)
    people = pd.DataFrame({"age": rng.normal(size=200) + 2 * (site == "B"), "site": site})
    alone, within = corrected_p(people, patient), corrected_p(people, patient, site)
    assert alone.max() < 0.01
    assert within[0] > 0.05
    assert within[1] < 0.01


def test_what_regions_go_with_counts_more():
    rng, patient = np.random.default_rng(3), np.arange(200) >= 100
    age = rng.normal(size=200) + 0.35 * patient
    people = pd.DataFrame({"age": age} | {f"x{k}": rng.normal(size=200) for k in range(19)})
    regions = age[:, None] + rng.normal(size=(200, 10)) - 2 * patient[:, None]
    assert corrected_p(people, patient, regions=regions)[0] < corrected_p(people, patient)[0] / 2


def test_gaps_are_among_the_variables_and_what_cannot_be_compared_has_no_p():
    rng, patient = np.random.default_rng(4), np.arange(80) >= 40
    regions = pd.DataFrame(rng.normal(size=(80, 10)))
    people = pd.DataFrame({"age": rng.normal(size=80), "same": 1.0, "unknown": np.nan})
    assert group_balance(people, patient, regions=regions)["variable"].tolist() == list(people)
    gaps = regions.mask(patient[:, None] & (rng.random((80, 10)) < 0.2))
    found = group_balance(people, patient, regions=gaps).set_index("variable")
    assert (found.index[-1], found["imbalanced"].tolist()) == ("number of missing regions", [False, False, False, True])
    assert found["p_corrected"].isna().tolist() == [False, True, True, False]
    assert group_balance(people[["unknown"]], patient)["p_corrected"].isna().all()
