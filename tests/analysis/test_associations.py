import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from rindices.analysis import associations

COLUMNS = ["people", "pattern", "variable", "level", "kind", "statistic", "n", "coefficient", "low", "high", "p", "q"]
COLUMNS += ["partial", "partial_low", "partial_high", "partial_p", "partial_q", "note"]


def people(n_people=150, seed=0):
    """R-indices of two patterns, clinical variables that follow the first, covariates."""
    rng = np.random.default_rng(seed)
    r = pd.DataFrame(rng.beta(0.8, 2, (n_people, 2)), columns=["r1", "r2"])
    age = 70 + 8 * rng.standard_normal(n_people) + 5 * r["r1"]
    noise = rng.standard_normal((n_people, 4))
    variables = pd.DataFrame(
        {
            "memory": 30 - 8 * r["r1"] - 0.1 * age + 2 * noise[:, 0],
            "carrier": np.where(r["r2"] + 0.3 * noise[:, 1] > 0.4, "yes", "no"),
            "stage": np.array(["A", "B", "C"])[np.digitize(r["r1"] + 0.3 * noise[:, 2], [0.2, 0.5])],
            "smoker": np.where(noise[:, 3] > 0, 5.0, 2.0),
        }
    )
    covariates = pd.DataFrame(
        {"age": age, "sex": rng.choice(["F", "M"], n_people), "site": rng.choice(list("xyz"), n_people)}
    )
    return r, variables, covariates


def row(table, variable, pattern=1):
    return table[(table["variable"] == variable) & (table["pattern"] == pattern)].iloc[0]


def dummies(table):
    return pd.get_dummies(table, drop_first=True, dtype=float).to_numpy()


def test_coefficients_and_p_are_those_of_scipy():
    r, variables, _ = people()
    found = associations(r, variables)
    for pattern, name in ((1, "r1"), (2, "r2")):
        expected, memory = stats.pearsonr(r[name], variables["memory"]), row(found, "memory", pattern)
        assert (memory.kind, memory.statistic, memory.n) == ("continuous", "Pearson r", 150)
        np.testing.assert_allclose([memory.coefficient, memory.p], expected, rtol=1e-8)
        expected = stats.pointbiserialr(variables["carrier"] == "yes", r[name])
        carrier = row(found, "carrier", pattern)
        assert (carrier.kind, carrier.statistic, carrier.level) == ("dichotomous", "point-biserial r", "yes")
        np.testing.assert_allclose([carrier.coefficient, carrier.p], expected, rtol=1e-8)
        groups = [r[name][variables["stage"] == level] for level in "ABC"]
        stage = row(found, "stage", pattern)
        ratio, p = stats.f_oneway(*groups)
        between = sum(len(group) * (group.mean() - r[name].mean()) ** 2 for group in groups)
        assert (stage.kind, stage.statistic, stage.level) == ("categorical", "eta²", "")
        np.testing.assert_allclose(stage.coefficient, between / np.sum((r[name] - r[name].mean()) ** 2), rtol=1e-8)
        np.testing.assert_allclose(stage.coefficient, 2 * ratio / (2 * ratio + 147), rtol=1e-8)
        np.testing.assert_allclose(stage.p, p, rtol=1e-8)


@pytest.mark.parametrize("variable", ["memory", "carrier", "smoker"])
def test_partial_correlation_is_that_of_a_regression(variable):
    r, variables, covariates = people()
    numbers = dummies(variables[[variable]])[:, 0] if variable == "carrier" else variables[variable].to_numpy()
    fit = sm.OLS(r["r1"].to_numpy(), np.column_stack([numbers, sm.add_constant(dummies(covariates))])).fit()
    t, freedom = fit.tvalues[0], fit.df_resid
    found = row(associations(r, variables, covariates), variable)
    assert freedom == 150 - 2 - 4
    np.testing.assert_allclose(found.partial, t / np.sqrt(t**2 + freedom), rtol=1e-8)
    np.testing.assert_allclose(found.partial_p, fit.pvalues[0], rtol=1e-8)


def test_partial_eta_is_that_of_nested_regressions():
    r, variables, covariates = people()
    given = sm.add_constant(dummies(covariates))
    small = sm.OLS(r["r1"].to_numpy(), given).fit()
    large = sm.OLS(r["r1"].to_numpy(), np.column_stack([given, dummies(variables[["stage"]])])).fit()
    found = row(associations(r, variables, covariates), "stage")
    np.testing.assert_allclose(found.partial, (small.ssr - large.ssr) / small.ssr, rtol=1e-8)
    np.testing.assert_allclose(found.partial_p, large.compare_f_test(small)[1], rtol=1e-8)
    assert 0 <= found.partial_low < found.partial < found.partial_high < 1


def test_interval_is_the_jackknife_on_fishers_scale():
    r, variables, _ = people(60)
    x, y = r["r1"].to_numpy(), variables["memory"].to_numpy()
    without = np.arctanh([np.corrcoef(np.delete(x, k), np.delete(y, k))[0, 1] for k in range(60)])
    error = np.sqrt(59 * without.var())
    half = stats.t.ppf(0.975, min(58, 2 * 58 / (stats.kurtosis(without, fisher=False) - 1))) * error
    found = row(associations(r, variables), "memory")
    centre = np.arctanh(found.coefficient)
    np.testing.assert_allclose([found.low, found.high], np.tanh([centre - half, centre + half]), rtol=1e-8)


def test_interval_of_eta_is_near_the_noncentral_f_where_scores_are_normal():
    rng, stage = np.random.default_rng(3), np.repeat(list("ABC"), 200)
    r = pd.DataFrame({"r1": np.repeat([0, 0.3, 0.6], 200) + rng.standard_normal(600)})
    found = row(associations(r, pd.DataFrame({"stage": stage})), "stage")
    ratio = found.coefficient / (1 - found.coefficient) * 597 / 2
    for share, tail in ((found.low, 0.975), (found.high, 0.025)):
        assert stats.ncf.cdf(ratio, 2, 597, 600 * share / (1 - share)) == pytest.approx(tail, abs=0.015)
    nothing = row(associations(r, pd.DataFrame({"stage": np.tile(list("ABC"), 200)})), "stage")
    assert nothing.low == 0
    assert nothing.p > 0.025


def test_missing_values_are_left_out_of_their_variable_and_of_the_partial_only():
    r, variables, covariates = people()
    variables.loc[:9, "memory"] = [np.nan, np.inf] * 5
    variables.loc[5:12, "stage"] = None
    covariates.loc[100:, "sex"] = None
    found = associations(r, variables, covariates)
    assert [row(found, name).n for name in variables] == [140, 150, 142, 150]
    alone = associations(r[10:], variables[["memory"]][10:])
    np.testing.assert_allclose(row(found, "memory").coefficient, row(alone, "memory").coefficient)
    fewer = associations(r[10:100], variables[["memory"]][10:100], covariates[10:100])
    np.testing.assert_allclose(row(found, "memory").partial, row(fewer, "memory").partial)
    assert row(found, "memory").note == "partial coefficient from 90 people only, because the others lack a covariate"


def test_people_are_matched_by_position():
    r, variables, covariates = people()
    expected, repeated = associations(r, variables, covariates), pd.Index(np.arange(150) // 3)
    moved = associations(r.set_index(repeated), variables.set_index(repeated[::-1]), covariates)
    pd.testing.assert_frame_equal(moved, expected)


def test_false_discovery_rate_counts_all_rows_with_p():
    r, variables, covariates = people()
    variables["constant"] = 1.0
    found = associations(r, variables, covariates)
    known = found["p"].notna()
    assert known.sum() == 8
    np.testing.assert_allclose(found["q"][known], stats.false_discovery_control(found["p"][known]))
    np.testing.assert_allclose(found["partial_q"][known], stats.false_discovery_control(found["partial_p"][known]))
    assert found["q"][~known].isna().all()


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        ([1.0] * 20, "continuous", "everyone has the same value"),
        (["a"] * 20, "categorical", "everyone has the same value"),
        ([1.0, 2, 3] * 3 + [np.nan] * 11, "continuous", "fewer than 10 people have a value"),
        ([np.nan] * 20, "continuous", "fewer than 10 people have a value"),
        ([None] * 20, "categorical", "fewer than 10 people have a value"),
        (list("aaaaaaaaabbbbbbbbbcc"), "categorical", "a category has fewer than 3 people"),
        ([0.0] * 18 + [1.0] * 2, "dichotomous", "a category has fewer than 3 people"),
        ([f"P{k}" for k in range(20)], "categorical", "a category has fewer than 3 people"),
    ],
)
def test_what_cannot_be_tested_is_told(values, kind, note):
    r = pd.DataFrame({"r1": np.linspace(0, 1, 20)})
    found = associations(r, pd.DataFrame({"x": pd.Series(values)}), pd.DataFrame({"age": np.arange(20.0) % 7})).iloc[0]
    assert (found.kind, found.note, found.level) == (kind, note, "")
    assert found[["coefficient", "low", "high", "p", "q", "partial", "partial_p"]].isna().all()


def test_partial_that_cannot_be_had_is_told():
    r, variables, covariates = people(40)
    same = row(associations(r, covariates[["age"]], covariates), "age")
    assert same.note == "no partial coefficient: the covariates explain this variable completely"
    assert np.isfinite(same.coefficient)
    assert np.isnan([same.partial, same.partial_p, same.partial_low]).all()
    unknown = row(associations(r, variables, pd.DataFrame({"age": [np.nan] * 35 + [1.0, 2, 3, 4, 5]})), "memory")
    assert unknown.note == "no partial coefficient: fewer than 10 people have a value"
    many = pd.DataFrame(np.random.default_rng(0).standard_normal((40, 35)))
    assert row(associations(r, variables, many), "memory").note.endswith("too few people for the covariates")
    twice = pd.concat([covariates, covariates.add_suffix("2")], axis=1)
    pd.testing.assert_frame_equal(associations(r, variables, twice), associations(r, variables, covariates))


def test_perfect_and_constant_r_indices():
    r = pd.DataFrame({"r1": np.linspace(0, 1, 30), "r2": 0.5})
    variables = pd.DataFrame({"same": 3 - 2 * r["r1"], "stage": list("ABC") * 10})
    found = associations(r, variables)
    same = row(found, "same")
    assert (same.low, same.high) == pytest.approx((-1, -1))
    assert same.p < 1e-100
    for name in variables:
        constant = row(found, name, 2)
        assert np.isnan([constant.coefficient, constant.p]).all()
        assert constant.note == "the severity does not vary"


def test_kinds_of_values():
    r = pd.DataFrame({"r1": np.linspace(0, 1, 12)})
    variables = pd.DataFrame(
        {
            "truth": [True, False] * 6,
            "integers": pd.array([1, 2, None, 3] * 3, dtype="Int64"),
            "two": pd.Series([10.0, 2.0] * 6, dtype=object),
            "categories": pd.Categorical([1, 2, 3] * 4),
            "later": ["b", "a"] * 6,
        }
    )
    variables.loc[2, "later"] = None
    found = associations(r, variables).set_index("variable")
    assert found["kind"].tolist() == ["dichotomous", "continuous", "dichotomous", "categorical", "dichotomous"]
    assert found["level"].tolist() == ["True", "", "10", "", "b"]
    assert found["note"].tolist() == ["", "fewer than 10 people have a value", "", "", ""]
