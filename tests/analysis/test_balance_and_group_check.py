"""Balance of background variables between the groups, the flow of people, and the check of groups by pattern."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from rindices.analysis import associations, balance_warnings, group_balance, group_check
from rindices.analysis.balance import corrected_p, flow_table
from tests.refusal import refused_with


def matched(seed=0, n_controls=120, n_patients=80):
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


def balance_of(values, patient, **kind):
    return group_balance(pd.DataFrame({"x": pd.Series(values, **kind)}), patient).iloc[0]


@pytest.mark.parametrize("name", ["age", "volume", "sex", "site", "carrier"])
def test_numbers_are_compared_in_pooled_sd_by_welch_and_categories_by_chi_square(name):
    variables, patient = matched()
    found, values = group_balance(variables, patient).set_index("variable").loc[name], variables[name]
    if name in ("age", "volume"):
        groups = values[patient], values[~patient]
        test, pooled = (
            stats.ttest_ind(*groups, equal_var=False),
            np.hypot(*[one.std() for one in groups]) / math.sqrt(2),
        )
        kind, difference = "number", (groups[0].mean() - groups[1].mean()) / pooled
    else:
        test = stats.chi2_contingency(pd.crosstab(values, patient), correction=False)
        kind, difference = "category", math.sqrt(test.statistic / len(patient))
    assert (found.kind, found.difference, found.p) == (kind, pytest.approx(difference), pytest.approx(test.pvalue))


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
    assert (found.variable.tolist(), found.kind.tolist()) == (list(variables), ["number"] * 3 + ["category"] * 3)
    assert found.controls.tolist() + found.patients.tolist()[3:5] == [
        "62.0 ± 2.0",
        "1450000 ± 50000",
        "2.510 ± 0.010",
        "F 67 %, M 33 %",
        "False 67 %, True 33 %",
        "3 categories",
        "F 33 %, M 67 %",
        "False 100 %, True 0 %",
    ]


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
    assert balance_of(values, [0, 1, 0, 1]).kind == kind


def test_missing_and_infinite_values_are_left_out_of_their_variable_only():
    variables, patient = matched()
    holes = variables.copy()
    holes.loc[[0, 3, 150], "age"] = [np.nan, np.inf, np.nan]
    holes.loc[[5, 160, 170], "sex"] = None
    found = group_balance(holes, patient).set_index("variable").drop(columns="p_corrected")
    for name, left_out in {"age": [0, 3, 150], "sex": [5, 160, 170], "site": []}.items():
        known = ~np.isin(np.arange(200), left_out)
        alone = group_balance(variables.loc[known, [name]], patient[known]).set_index("variable").loc[name]
        pd.testing.assert_series_equal(found.loc[name], alone[found.columns])


@pytest.mark.parametrize("values", [[1.0, 2, 3, np.nan, np.nan, np.nan], ["A", "B", "C", None, None, None]])
def test_variable_known_in_one_group_only_cannot_be_compared(values):
    found = balance_of(values, [0, 0, 0, 1, 1, 1])
    assert np.isnan([found.difference, found.p]).all()
    assert (found.n_controls, found.n_patients, found.patients, found.imbalanced) == (3, 0, "no values", False)


def test_number_constant_in_one_group_is_still_compared():
    found = balance_of([5.0, 5, 5, 5, 6, 7, 8], np.arange(7) > 3)
    # Only the patients' error counts.
    assert [found.difference, found.p] == pytest.approx([2 / math.sqrt(0.5), 2 * stats.t.sf(2 / math.sqrt(1 / 3), 2)])


def test_imbalance_needs_both_certainty_and_size():
    found = group_balance(*matched()).set_index("variable").imbalanced
    assert found.to_dict() == {"age": True, "sex": True, "site": False, "volume": False, "carrier": False}
    many = np.arange(40_000) % 2 == 1
    small = balance_of(np.random.default_rng(0).standard_normal(40_000) + 0.06 * many, many)
    few = balance_of([1.0, 2, 3, 2, 3, 4.5], [0, 0, 0, 1, 1, 1])
    assert (small.p < 1e-3, 0 < small.difference < 0.1, small.imbalanced) == (True, True, False)
    assert (few.difference > 0.5, few.imbalanced) == (True, False)


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
    refused_with(message, group_balance, pd.DataFrame({"age": [1, 2, 3]}), patient)


def test_many_variables_are_no_more_often_called_different_than_one():
    rng, patient = np.random.default_rng(0), np.arange(60) >= 30
    found = [
        corrected_p(pd.DataFrame(rng.normal(size=(60, 15))), patient, seed=seed).min() <= 0.05 for seed in range(40)
    ]
    assert np.mean(found) <= 0.15  # 2 of 40 expected; a share of 0.54 if each variable had its own p


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
    assert corrected_p(people, patient).max() < 0.01
    of_age, of_site = corrected_p(people, patient, site)
    assert of_site < 0.01 < 0.05 < of_age


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
    found = group_balance(
        people, patient, regions=regions.mask(patient[:, None] & (rng.random((80, 10)) < 0.2))
    ).set_index("variable")
    assert (found.index[-1], found["imbalanced"].tolist(), found["p_corrected"].isna().tolist()) == (
        "number of missing regions",
        [False, False, False, True],
        [False, True, True, False],
    )
    assert group_balance(people[["unknown"]], patient)["p_corrected"].isna().all()


COLUMNS = ["site", "group", "read", "missing region", "impossible value", "outlier", "left the study", "used"]
# A record as read from a file, in which a gap is no reason. One site has the name that stands for all of them.
RECORD = pd.DataFrame(
    [
        ("Oslo", "control", True, np.nan),
        ("Oslo", "control", False, "outlier"),
        ("Oslo", "patient", True, ""),
        ("all", "control", False, "left the study"),
        ("all", "patient", False, "missing region"),
        ("7", "control", True, ""),
        ("7", "patient", False, "impossible value"),
        ("7", "patient", False, "missing region"),
        ("7", "other", True, ""),
    ],
    columns=["site", "group", "used", "reason"],
)
FLOW = [
    ["all", "all", 9, 2, 1, 1, 1, 4],
    ["all", "control", 4, 0, 0, 1, 1, 2],
    ["all", "patient", 4, 2, 1, 0, 0, 1],
    ["all", "other", 1, 0, 0, 0, 0, 1],
    ["7", "all", 4, 1, 1, 0, 0, 2],
    ["7", "control", 1, 0, 0, 0, 0, 1],
    ["7", "patient", 2, 1, 1, 0, 0, 0],
    ["7", "other", 1, 0, 0, 0, 0, 1],
    ["Oslo", "all", 3, 0, 0, 1, 0, 2],
    ["Oslo", "control", 2, 0, 0, 1, 0, 1],
    ["Oslo", "patient", 1, 0, 0, 0, 0, 1],
    ["Oslo", "other", 0, 0, 0, 0, 0, 0],
    ["all", "all", 2, 1, 0, 0, 1, 0],
    ["all", "control", 1, 0, 0, 0, 1, 0],
    ["all", "patient", 1, 1, 0, 0, 0, 0],
    ["all", "other", 0, 0, 0, 0, 0, 0],
]


@pytest.mark.parametrize(
    ("record", "n_rows"),
    [(RECORD, 16), (RECORD.drop(columns="site"), 4), (RECORD[RECORD["group"] != "other"].drop(columns="site"), 3)],
    ids=["sites", "no sites", "two groups"],
)
def test_flow_counts_people_by_site_and_group_with_reasons_in_the_order_of_exclusion(record, n_rows):
    expected = pd.DataFrame(FLOW[:n_rows], columns=COLUMNS)
    if n_rows == 3:  # without the one other person
        expected.loc[0, ["read", "used"]] -= 1
    pd.testing.assert_frame_equal(flow_table(record), expected, check_dtype=False)


def aged(age_effect=0.02, older=6.0, seed=1):
    """r1 rises with age in everybody and with disease, r2 with disease only; patients are older."""
    rng = np.random.default_rng(seed)
    group = np.array(["control"] * 300 + ["patient"] * 200 + ["other"] * 20)
    patient = group == "patient"
    background = pd.DataFrame(
        {
            "age": rng.normal(70, 8, len(group)) + older * patient,
            "sex": np.where(rng.uniform(size=len(group)) < 0.5, "F", "M"),
            "site": rng.choice(list("ABC"), len(group)),
        }
    )
    r = 0.1 * rng.standard_normal((len(group), 2)) + patient[:, None] * rng.uniform(0.2, 0.8, (len(group), 2))
    r[:, 0] += age_effect * (background["age"] - 70)
    return pd.DataFrame(r, columns=["r1", "r2"]), background, group


def test_associations_are_those_of_controls_and_balance_that_of_both():
    r, background, group = aged()
    found = group_check(r, background, group)
    assert list(found) == [
        *("pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q", "n_patients"),
        *("coefficient_patients", "q_patients", "imbalanced", "difference", "adjusted", "explained", "remark"),
    ]
    controls, patients = (associations(r[group == name], background[group == name]) for name in ("control", "patient"))
    shared = ["pattern", "variable", "kind", "statistic", "coefficient", "p", "q"]
    pd.testing.assert_frame_equal(found[shared], controls[shared])
    assert found["coefficient_patients"].tolist() == patients["coefficient"].tolist()
    assert found[["n_controls", "n_patients"]].drop_duplicates().to_numpy().tolist() == [[300, 200]]
    both = group != "other"
    balance = group_balance(background[both], group[both] == "patient").set_index("variable")["imbalanced"]
    assert found["imbalanced"].tolist() == [balance[name] for name in found["variable"]]


@pytest.mark.parametrize("name", ["age", "sex", "site"])
@pytest.mark.parametrize("pattern", [1, 2])
def test_explained_share_is_that_of_a_regression(name, pattern):
    r, background, group = aged()
    found = group_check(r, background, group).set_index(["pattern", "variable"]).loc[(pattern, name)]
    both, patient = group != "other", (group == "patient").astype(float)
    numbers = pd.get_dummies(background[name], drop_first=True, dtype=float)
    designs = patient[:, None], np.column_stack([patient, background[name] if name == "age" else numbers])
    raw, adjusted = (sm.OLS(r[f"r{pattern}"][both], sm.add_constant(x[both])).fit().params.iloc[1] for x in designs)
    assert [found.difference, found.adjusted, found.explained] == pytest.approx(
        [raw, adjusted, 1 - adjusted / raw], rel=1e-8, abs=1e-10
    )


ALIKE = " The groups do not clearly differ in age, so age explains little of the difference between them."


@pytest.mark.parametrize(
    ("made", "removed", "explained", "remark"),
    [
        (
            {},
            [],
            (0.1, 1),
            "In controls, the severity of pattern 1 rises with age (r = {coefficient:.2f}, q < 0.001), and age is "
            "higher in patients: part of the pattern may reflect age.",
        ),
        (
            {"age_effect": -0.02},
            [],
            (-1, 0),
            "In controls, the severity of pattern 1 falls with age (r = {coefficient:.2f}, q < 0.001), and age is "
            "higher in patients: age may mask part of the pattern.",
        ),
        # What is associated with severities is reported even if the groups are alike.
        (
            {"older": 0.0, "seed": 2},
            [],
            (-0.1, 0.1),
            "In controls, the severity of pattern 1 rises with age (r = {coefficient:.2f}, q < 0.001), so the pattern "
            "does "
            f"not reflect disease alone.{ALIKE}",
        ),
        (
            {"older": 0.0, "seed": 2},
            ["age"],
            (-0.1, 0.1),
            "In patients, the severity of pattern 1 rises with age (r = {coefficient_patients:.2f}, q < 0.001): the "
            "disease "
            f"may be associated with age.{ALIKE}",
        ),
    ],
    ids=["higher", "masked", "alike", "removed"],
)
def test_a_pattern_that_may_be_age_is_told(made, removed, explained, remark):
    found = group_check(*aged(**made), removed=removed)
    first = found.iloc[0]
    assert found["remark"].tolist() == [remark.format_map(first), *[""] * 5]
    assert first.imbalanced == ("older" not in made)
    assert explained[0] < first.explained < explained[1]


def test_what_was_removed_cannot_show_in_controls_and_is_looked_for_in_patients():
    """Age affects patients more than controls."""
    r, background, group = aged(age_effect=0.0, older=15.0)
    controls, age = group == "control", background["age"].to_numpy()
    bent = r["r1"] + 0.0015 * np.clip(age - 70, 0, None) ** 2
    slope, level = np.polyfit(age[controls], bent[controls], 1)
    left = r.assign(r1=bent - level - slope * age)
    unaware = group_check(left, background, group).iloc[0]
    assert abs(unaware.coefficient) < 1e-12
    assert unaware.remark.startswith(
        "In patients, but not clearly in controls, the severity of pattern 1 rises with age"
    )
    found = group_check(left, background, group, removed=["age"])
    assert found["removed"].tolist() == [True, False, False] * 2
    assert found[["p", "q"]].isna().all(axis=1).tolist() == found["removed"].tolist()
    first = found.iloc[0]
    assert first.remark == (
        f"In patients, the severity of pattern 1 rises with age (r = {first.coefficient_patients:.2f}, q < 0.001), "
        f"and the "
        "groups differ in age. The effect of age in controls was removed. Either the disease is associated with age, "
        "or part of the pattern reflects effects that the correction missed."
    )
    assert found.loc[found["pattern"] == 2, "remark"].tolist() == ["", "", ""]


@pytest.mark.parametrize(("of_controls", "of_patients"), [(["A", "B", "C"], ["A", "B"]), (["A", "B"], ["B", "C"])])
def test_coefficients_of_another_kind_are_not_put_side_by_side(of_controls, of_patients):
    r, background, group = aged()
    site = np.where(group == "control", np.resize(of_controls, len(group)), np.resize(of_patients, len(group)))
    r["r1"] += site == "B"
    found = group_check(r, background.assign(site=site), group, removed=["site"])
    row = found[(found["variable"] == "site") & (found["pattern"] == 1)].iloc[0]
    assert row[["coefficient_patients", "q_patients"]].isna().all()
    assert row.remark.startswith("In patients, the severity of pattern 1 is ")
    assert found.loc[found["variable"] == "age", "coefficient_patients"].notna().all()


def test_tests_that_are_not_made_are_not_corrected_for_and_what_is_known_not_tested_again():
    r, background, group = aged()
    found = group_check(r, background, group, removed=["age", "site"], imbalanced=["sex"])
    assert (
        found.loc[found["variable"] == "sex", "q"].tolist() == group_check(r, background[["sex"]], group)["q"].tolist()
    )
    assert found["imbalanced"].tolist() == [False, True, False] * 2


def test_remarks_on_categories():
    r, background, group = aged(age_effect=0.0)
    rng = np.random.default_rng(1)
    often = rng.uniform(size=len(group)) < np.where(group == "patient", 0.7, 0.4)
    others = {"sex": np.where(often, "M", "F"), "site": np.where(often, "A", rng.choice(["B", "C"], len(group)))}
    found = group_check(r.assign(r1=r["r1"] + 0.1 * often), background.assign(**others), group)
    sex, site = (found[found["variable"] == name].iloc[0] for name in ("sex", "site"))
    assert [sex.remark, site.remark] == [
        f"In controls, the severity of pattern 1 is higher in those whose sex is M (r = {sex.coefficient:.2f}, "
        "q < 0.001), and M is more common among patients: part of the pattern may reflect sex.",
        f"In controls, the severity of pattern 1 varies with site (eta² = {site.coefficient:.2f}, q < 0.001), and the "
        f"groups "
        "differ in site: part of the pattern may reflect site.",
    ]


def test_trifles_and_chance_give_no_remark():
    rng, group = np.random.default_rng(0), np.repeat(["control", "patient"], 20_000)
    age = rng.normal(70, 8, len(group)) + 4 * (group == "patient")
    r = pd.DataFrame({"r1": rng.standard_normal(len(group)) + 0.008 * age})
    found = group_check(r, pd.DataFrame({"age": age}), group).iloc[0]
    assert (found.q < 1e-6, 0 < found.coefficient < 0.1, found.remark) == (True, True, "")


def test_what_cannot_be_told_is_missing():
    r, background, group = aged()
    background["scanner"] = np.where(group == "patient", "new", "old")
    background["unknown"] = np.where(group == "control", np.nan, background["age"])
    r["r2"] = np.random.default_rng(0).standard_normal(520)  # no group difference to explain
    assert group_check(r, background, group)["explained"].isna().tolist() == [
        *([name in ("scanner", "unknown") for name in background]),
        *[True] * 5,
    ]
