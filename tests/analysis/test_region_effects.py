import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from rindices.analysis import dose_response, drivers, group_effects, subgroup_effects, subgroup_sizes
from tests.refusal import refused_with


def people(n_controls=80, n_patients=400, seed=0):
    rng = np.random.default_rng(seed)
    group = np.array(["control"] * n_controls + ["patient"] * n_patients + ["other"] * 30)
    r = pd.DataFrame(rng.uniform(-0.05, 1.05, (len(group), 2)), columns=["r1", "r2"])
    z = rng.standard_normal((len(group), 3))
    z[n_controls:, 0] -= 1.5 * r["r1"][n_controls:]
    return pd.DataFrame(z, columns=["insula", "hippocampus", "cuneus"]), r, group


def test_subgroups_follow_their_rules():
    group = ["control"] * 10 + ["patient"] * 7 + ["other"]
    r1, r2 = [9.0] * 10 + [0.1, -0.2, 0.4, 0.7, 0.71, 0.4, 0.1, 0.1], [9.0] * 10 + [0.39, 0, 0, 0.39, 0.1, 0.4, 0.8, 0]
    table = subgroup_sizes(pd.DataFrame({"r1": r1, "r2": r2}), group, smallest=1)
    assert table[["pattern", "level", "rule", "n", "used"]].values.tolist() == [
        [1, "low", "all < 0.4", 2, True],
        [1, "middle", "0.4 ≤ r1 ≤ 0.7, others < 0.4", 2, True],
        [1, "high", "r1 > 0.7, others < 0.4", 1, True],
        [2, "low", "all < 0.4", 2, True],
        [2, "middle", "0.4 ≤ r2 ≤ 0.7, others < 0.4", 0, False],
        [2, "high", "r2 > 0.7, others < 0.4", 1, True],
    ]
    sizes = subgroup_sizes(pd.DataFrame({"r1": r1}), group, low=0.3, high=0.5)  # one pattern, other limits
    assert sizes[["rule", "n"]].values.tolist() == [["r1 < 0.3", 3], ["0.3 ≤ r1 ≤ 0.5", 2], ["r1 > 0.5", 2]]


def test_effects_are_cohens_d_and_welchs_t():
    z, r, group = people()
    table = subgroup_effects(z.assign(constant=0.0), r, group)
    assert (list(table), len(table)) == (
        ["pattern", "level", "region", "n", "effect", "low", "high", "t", "p", "q"],
        2 * 3 * 4,
    )
    members, controls = z[(group == "patient") & (r["r1"] > 0.7) & (r["r2"] < 0.4)], z[group == "control"]
    found = table[(table["pattern"] == 1) & (table["level"] == "high")].set_index("region")
    assert found.loc["constant", ["effect", "t", "p", "q"]].isna().all()
    own, test, (n, m) = (
        found.loc[list(z)],
        stats.ttest_ind(members, controls, equal_var=False),
        map(len, (members, controls)),
    )
    pooled = ((n - 1) * members.var() + (m - 1) * controls.var()) / (n + m - 2)
    effect = (members.mean() - controls.mean()) / np.sqrt(pooled)
    expected = np.column_stack([np.full(3, n), effect, test.statistic, test.pvalue])
    np.testing.assert_allclose(own[["n", "effect", "t", "p"]].astype(float), expected, rtol=1e-6)
    # With such variances, the exact interval would invert the noncentral t distribution.
    for limit, tail in (("low", 0.975), ("high", 0.025)):
        inside = stats.nct.cdf(test.statistic, test.df, own[limit] * test.statistic / effect)
        np.testing.assert_allclose(inside, tail, atol=0.005)
    assert effect["insula"] < -0.8


def test_low_subgroup_is_listed_for_each_pattern_but_counts_once():
    z, r, group = people()
    table = subgroup_effects(z, r, group)
    low = [table[(table["pattern"] == k) & (table["level"] == "low")].drop(columns="pattern") for k in (1, 2)]
    pd.testing.assert_frame_equal(low[0].reset_index(drop=True), low[1].reset_index(drop=True))
    once = table[(table["pattern"] == 1) | (table["level"] != "low")]
    assert len(once) == (1 + 2 * 2) * 3
    np.testing.assert_allclose(once["q"], stats.false_discovery_control(once["p"]))


def test_small_groups_are_refused_with_a_note():
    z, r, group = people(n_patients=100)
    sizes, effects = subgroup_sizes(r, group, smallest=12), subgroup_effects(z, r, group, smallest=12)
    small, which = sizes["n"] < 12, ["pattern", "level"]
    assert 0 < small.sum() < 6
    assert sizes["note"].tolist() == np.where(small, "fewer than 12 patients", "").tolist()
    assert {*effects.groupby(which).groups} == {*sizes[~small].groupby(which).groups}
    few = people(n_controls=5)
    assert (subgroup_sizes(*few[1:])["note"] == "fewer than 10 controls").all()
    assert subgroup_effects(*few).empty


@pytest.mark.parametrize("limits", [(0.7, 0.4), (0.0, 0.7), (0.4, 0.4), (float("nan"), 0.7)])
def test_wrong_limits_are_refused(limits):
    _, r, group = people()
    refused_with("positive and increasing", subgroup_sizes, r, group, low=limits[0], high=limits[1])


def test_all_patients_are_compared_with_all_controls_given_covariates():
    rng, group = np.random.default_rng(5), np.repeat(["control", "patient", "other"], [60, 80, 5])
    age = rng.normal(70, 8, 145) + 4 * (group == "patient")
    z = pd.DataFrame(rng.normal(size=(145, 4)), columns=list("abcd"))
    z["a"] -= 0.9 * (group == "patient")
    z["b"] -= 0.2 * (age - 70)  # differs between the groups only through age
    plain, given = group_effects(z, group), group_effects(z, group, pd.DataFrame({"age": age}))
    welch = stats.ttest_ind(z[group == "patient"], z[group == "control"], equal_var=False)
    np.testing.assert_allclose(plain[["t", "p"]], np.column_stack([welch.statistic, welch.pvalue]))
    design = sm.add_constant(np.column_stack([group == "patient", age])[:140].astype(float))
    robust = sm.OLS(z["b"][:140], design).fit(cov_type="HC2")  # each person with their own variance
    assert given["t"][1] == pytest.approx(robust.tvalues.iloc[1], rel=0.02)
    assert plain["q"][1] < 0.05 < given["q"][1]
    assert given["q"][0] < 0.001
    assert given["low"][0] < given["effect"][0] < given["high"][0] < 0
    assert given[["n_controls", "n_patients"]].to_numpy().tolist() == [[60, 80]] * 4
    assert group_effects(z[:65], group[:65]).empty  # only five patients


@pytest.mark.parametrize(("n_controls", "n_patients"), [(400, 40), (40, 400)])
def test_groups_of_unequal_size_and_variance_differ_in_5_percent_without_a_difference(n_controls, n_patients):
    rng, group = np.random.default_rng(6), np.repeat(["control", "patient"], [n_controls, n_patients])
    age = rng.normal(size=len(group))
    z = pd.DataFrame(rng.normal(size=(len(group), 2000)) * np.where(group == "patient", 1.5, 1)[:, None])
    table = group_effects(z + 0.5 * age[:, None], group, pd.DataFrame({"age": age}))
    assert (table["p"] < 0.05).mean() == pytest.approx(0.05, abs=0.015)
    assert ((table["low"] < 0) & (table["high"] > 0)).mean() == pytest.approx(0.95, abs=0.015)


def test_largest_changes_come_first():
    rng = np.random.default_rng(0)
    changes, z = rng.standard_normal((5, 2, 8)), rng.standard_normal((5, 8))
    z = pd.DataFrame(z, columns=list("abcdefgh"), index=[0] * 5)
    table = drivers(changes, z, [f"P{k}" for k in range(5)], visit=[1, 2, 1, 1, 1], n=3)
    expected = [
        (f"P{k}", 1 + (k == 1), pattern + 1, place + 1, "abcdefgh"[region], own[region], z.iloc[k, region])
        for k in range(5)
        for pattern, own in enumerate(changes[k])
        for place, region in enumerate(np.argsort(-abs(own))[:3])
    ]
    names = ["participant_id", "visit", "pattern", "rank", "region", "change_sd", "z"]
    pd.testing.assert_frame_equal(table, pd.DataFrame(expected, columns=names), check_dtype=False)
    changes[0, 0, 2:], changes[1, 1] = 1e-4, 0  # regions that a sparse pattern hardly changes
    assert drivers(changes, z, range(5), n=3).groupby(["participant_id", "pattern"]).size().tolist()[:3] == [2, 3, 3]


@pytest.mark.parametrize("name", ["given", "one"])  # any name will do
@pytest.mark.parametrize("values", [np.arange(100.0), np.tile(["A", "B", "C", "D"], 25)])
def test_who_lacks_a_covariate_is_excluded_and_no_category(values, name):
    z, group = pd.DataFrame({"insula": np.random.default_rng(0).normal(size=100)}), np.tile(["control", "patient"], 50)
    covariate = pd.DataFrame({name: pd.Series(values).where(np.arange(100) < 80)})
    pd.testing.assert_frame_equal(
        group_effects(z, group, covariate), group_effects(z[:80], group[:80], covariate[:80].set_axis(["age"], axis=1))
    )


def scored(seed=0):
    rng, group = np.random.default_rng(seed), np.array(["control"] * 50 + ["patient"] * 300)
    r = pd.DataFrame(rng.uniform(-0.1, 1.1, (350, 2)), columns=["r1", "r2"])
    z = pd.DataFrame(rng.standard_normal((350, 3)), columns=["insula", "hippocampus", "cuneus"])
    z["insula"] -= 2 * r["r1"]
    return (
        z,
        r,
        group,
        pd.DataFrame(
            {"region": list(z) * 2, "pattern": [1] * 3 + [2] * 3, "change_sd": [-2.0, 0.1, -0.5, 0.2, -1.0, 0.3]}
        ),
    )


def test_means_of_the_strongest_regions_by_severity():
    z, r, group, patterns = scored()
    table = dose_response(z, r, group, patterns, n_regions=2)
    strongest = table.groupby("pattern")["region"].unique().map(list)
    assert (strongest.tolist(), len(table)) == ([["insula", "cuneus"], ["hippocampus", "cuneus"]], 2 * 2 * 6)
    insula = table[(table["pattern"] == 1) & (table["region"] == "insula")].reset_index(drop=True)
    assert insula["n"].sum() == 300
    own, bins = r["r1"].where(group == "patient"), [(-9, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1), (1, 9)]
    for row, (low, high) in zip(insula.itertuples(), bins, strict=True):
        values, severities = (part[(own >= low) & (own < high)] for part in (z["insula"], own))
        interval = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert (row.n, row.severity, row.mean, row.mean_low, row.mean_high) == pytest.approx(
            (len(values), severities.mean(), values.mean(), *interval)
        )
    np.testing.assert_allclose(insula[["low", "high"]].T, [[0, 0.2, 0.4, 0.6, 0.8, 1], [0.2, 0.4, 0.6, 0.8, 1, 2]])


def test_small_bins_are_left_out_and_tables_of_other_people_or_regions_refused():
    z, r, group, patterns = scored()
    refused_with("one row for each of the 350 people, but it has 349", dose_response, z[1:], r, group, patterns)
    refused_with("insula", dose_response, z.drop(columns="insula"), r, group, patterns, error=KeyError)
    r["r1"] = np.where(np.arange(350) < 346, 0.1, 0.9)
    table, nobody = (dose_response(z, r, who, patterns) for who in (group, np.full(350, "control")))
    assert (set(table.loc[table["pattern"] == 1, "low"]), nobody.empty, list(nobody)) == ({0.0}, True, list(table))
