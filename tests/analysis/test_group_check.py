import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from rindices.analysis import associations, group_balance, group_check

COLUMNS = ["pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q", "n_patients"]
COLUMNS += ["coefficient_patients", "q_patients", "imbalanced", "difference", "adjusted", "explained", "remark"]


def people(age_effect=0.02, older=6.0, seed=1):
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
    r, background, group = people()
    found = group_check(r, background, group)
    assert list(found) == COLUMNS
    controls, both = group == "control", group != "other"
    expected = associations(r[controls], background[controls])
    for name in ("pattern", "variable", "kind", "statistic", "coefficient", "p", "q"):
        assert found[name].tolist() == expected[name].tolist()
    of_patients = associations(r[group == "patient"], background[group == "patient"])
    assert found["coefficient_patients"].tolist() == of_patients["coefficient"].tolist()
    assert found[["n_controls", "n_patients"]].drop_duplicates().to_numpy().tolist() == [[300, 200]]
    balance = group_balance(background[both], group[both] == "patient").set_index("variable")["imbalanced"]
    assert found["imbalanced"].tolist() == [balance[name] for name in found["variable"]]


@pytest.mark.parametrize("name", ["age", "sex", "site"])
def test_explained_share_is_that_of_a_regression(name):
    r, background, group = people()
    both = group != "other"
    patient = (group == "patient")[both].astype(float)
    numbers = pd.get_dummies(background.loc[both, [name]], drop_first=True, dtype=float).to_numpy()
    found = group_check(r, background, group)
    for pattern in (1, 2):
        own = r[f"r{pattern}"][both].to_numpy()
        raw = sm.OLS(own, sm.add_constant(patient)).fit().params[1]
        adjusted = sm.OLS(own, sm.add_constant(np.column_stack([patient, numbers]))).fit().params[1]
        row = found[(found["variable"] == name) & (found["pattern"] == pattern)].iloc[0]
        assert [row.difference, row.adjusted] == pytest.approx([raw, adjusted], rel=1e-8)
        assert row.explained == pytest.approx(1 - adjusted / raw, rel=1e-8, abs=1e-10)


def test_a_pattern_that_may_be_age_is_told():
    found = group_check(*people())
    first = found.iloc[0]
    assert first.explained > 0.1
    assert first.remark == (
        f"In controls, pattern 1 rises with age (r = {first.coefficient:.2f}, q < 0.001), and patients' age is higher: "
        "part of the pattern may reflect age."
    )
    assert (found["remark"][1:] == "").all()
    hidden = group_check(*people(age_effect=-0.02)).iloc[0]
    assert hidden.explained < 0
    assert "pattern 1 falls with age" in hidden.remark
    assert hidden.remark.endswith("patients' age is higher: age may mask part of the pattern.")
    alike = group_check(*people(older=0.0, seed=2)).iloc[0]
    assert not alike.imbalanced
    assert alike.remark.endswith(
        "The groups do not clearly differ in age, so it explains little of the difference between them."
    )


def without_age_in_controls(r, background, group):
    """What a removal leaves where age does more to patients than it does to controls."""
    controls, age = group == "control", background["age"].to_numpy()
    bent = r.assign(r1=r["r1"] + 0.0015 * np.clip(age - 70, 0, None) ** 2)
    slope, level = np.polyfit(age[controls], bent.loc[controls, "r1"], 1)
    return bent.assign(r1=bent["r1"] - level - slope * age)


def test_what_was_removed_cannot_show_in_controls_and_is_looked_for_in_patients():
    r, background, group = people(age_effect=0.0, older=15.0)
    left = without_age_in_controls(r, background, group)
    unaware = group_check(left, background, group).iloc[0]
    assert abs(unaware.coefficient) < 1e-12
    assert unaware.remark.startswith("In patients, but not clearly in controls, pattern 1 rises with age")
    found = group_check(left, background, group, removed=["age"])
    assert found["removed"].tolist() == [True, False, False] * 2
    assert found[["p", "q"]].isna().all(axis=1).tolist() == found["removed"].tolist()
    first = found.iloc[0]
    assert first.coefficient_patients > 0.3
    assert first.remark == (
        f"In patients, pattern 1 rises with age (r = {first.coefficient_patients:.2f}, q < 0.001), and the groups "
        "differ in age. The effect of age in controls was removed. Either the disease is associated with age, or part "
        "of the pattern reflects effects that the correction missed."
    )
    assert found.loc[found["pattern"] == 2, "remark"].tolist() == ["", "", ""]


def test_what_goes_with_severities_of_patients_is_reported_though_the_groups_are_alike():
    r, background, group = people(older=0.0, seed=2)
    for removed in ([], ["age"]):
        found = group_check(r, background, group, removed=removed).iloc[0]
        assert not found.imbalanced
        assert (
            f"pattern 1 rises with age (r = {found.coefficient_patients if removed else found.coefficient:.2f}, q"
            in found.remark
        )
    patients_only = r.assign(r1=r["r1"] - 0.02 * (background["age"] - 70) * (group == "control"))
    told = group_check(patients_only, background, group).iloc[0].remark
    assert told.startswith("In patients, but not clearly in controls, pattern 1 rises with age")


def test_what_is_known_of_the_balance_is_not_tested_again():
    r, background, group = people()
    assert group_check(r, background, group, imbalanced=["sex"])["imbalanced"].tolist() == [False, True, False] * 2


@pytest.mark.parametrize(("of_controls", "of_patients"), [(["A", "B", "C"], ["A", "B"]), (["A", "B"], ["B", "C"])])
def test_coefficients_of_another_kind_are_not_put_side_by_side(of_controls, of_patients):
    r, background, group = people()
    site = np.where(group == "control", np.resize(of_controls, len(group)), np.resize(of_patients, len(group)))
    r["r1"] += site == "B"
    found = group_check(r, background.assign(site=site), group, removed=["site"])
    row = found[(found["variable"] == "site") & (found["pattern"] == 1)].iloc[0]
    assert np.isnan(row.coefficient_patients)
    assert np.isnan(row.q_patients)
    assert row.remark.startswith("In patients, pattern 1 is ")
    assert found.loc[found["variable"] == "age", "coefficient_patients"].notna().all()


def test_tests_that_are_not_made_are_not_corrected_for():
    r, background, group = people()
    found = group_check(r, background, group, removed=["age", "site"])
    alone = group_check(r, background[["sex"]], group)
    assert found.loc[found["variable"] == "sex", "q"].tolist() == alone["q"].tolist()


def test_remarks_on_categories():
    r, background, group = people(age_effect=0.0)
    rng = np.random.default_rng(1)
    often = rng.uniform(size=len(group)) < np.where(group == "patient", 0.7, 0.4)
    background["sex"] = np.where(often, "M", "F")
    background["site"] = np.where(often, "A", rng.choice(["B", "C"], len(group)))
    found = group_check(r.assign(r1=r["r1"] + 0.1 * often), background, group)
    sex, site = (found[(found["pattern"] == 1) & (found["variable"] == name)].iloc[0] for name in ("sex", "site"))
    assert sex.remark == (
        f"In controls, pattern 1 is stronger if sex is M (r = {sex.coefficient:.2f}, q < 0.001), and that is more "
        "frequent among patients: part of the pattern may reflect sex."
    )
    assert site.remark == (
        f"In controls, pattern 1 varies with site (eta² = {site.coefficient:.2f}, q < 0.001), and the groups differ "
        "in site: part of the pattern may reflect site."
    )


def test_trifles_and_chance_give_no_remark():
    rng, group = np.random.default_rng(0), np.repeat(["control", "patient"], 20_000)
    age = rng.normal(70, 8, len(group)) + 4 * (group == "patient")
    r = pd.DataFrame({"r1": rng.standard_normal(len(group)) + 0.008 * age})
    found = group_check(r, pd.DataFrame({"age": age}), group).iloc[0]
    assert found.q < 1e-6
    assert 0 < found.coefficient < 0.1
    assert found.remark == ""


def test_what_cannot_be_told_is_missing():
    r, background, group = people()
    background["scanner"] = np.where(group == "patient", "new", "old")
    background["unknown"] = np.where(group == "control", np.nan, background["age"])
    found = group_check(r, background, group).set_index(["pattern", "variable"])
    assert found["explained"].isna().groupby("variable").all().to_dict() == {
        "age": False,
        "scanner": True,
        "sex": False,
        "site": False,
        "unknown": True,
    }
    alike = group_check(pd.DataFrame({"r1": np.random.default_rng(0).standard_normal(520)}), background, group)
    assert alike["explained"].isna().all()
