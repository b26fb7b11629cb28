import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from rindices.analysis import dose_response, drivers, group_effects, subgroup_effects, subgroup_sizes
from rindices.problems import InputError


def people(n_controls=80, n_patients=400, seed=0):
    rng = np.random.default_rng(seed)
    group = np.array(["control"] * n_controls + ["patient"] * n_patients + ["other"] * 30)
    r = pd.DataFrame(rng.uniform(-0.05, 1.05, (len(group), 2)), columns=["r1", "r2"])
    z = rng.standard_normal((len(group), 3))
    z[n_controls:, 0] -= 1.5 * r["r1"][n_controls:]
    return pd.DataFrame(z, columns=["insula", "hippocampus", "cuneus"]), r, group


def test_subgroups_follow_their_rules():
    _, r, group = people()
    table, patients = subgroup_sizes(r, group), r[group == "patient"]
    rules = ["all < 0.4", "0.4 ≤ r{} ≤ 0.7, others < 0.4", "r{} > 0.7, others < 0.4"]
    assert table["rule"].tolist() == [rule.format(k) for k in (1, 2) for rule in rules]
    assert (table["level"].tolist(), table["pattern"].tolist()) == (["low", "middle", "high"] * 2, [1] * 3 + [2] * 3)
    expected = []
    for own, other in (("r1", "r2"), ("r2", "r1")):
        alone = patients[patients[other] < 0.4][own]
        expected += [(alone < 0.4).sum(), ((alone >= 0.4) & (alone <= 0.7)).sum(), (alone > 0.7).sum()]
    assert table["n"].tolist() == expected
    assert table["used"].all()


def test_effects_are_cohens_d_and_welchs_t():
    z, r, group = people()
    table = subgroup_effects(z, r, group)
    assert list(table) == ["pattern", "level", "region", "n", "effect", "low", "high", "t", "p", "q"]
    assert len(table) == 2 * 3 * 3
    members = (group == "patient") & (r["r1"] > 0.7) & (r["r2"] < 0.4)
    found = table[(table["pattern"] == 1) & (table["level"] == "high")].set_index("region")
    for region in z:
        own, controls = z[region][members], z[region][group == "control"]
        n, m = len(own), len(controls)
        pooled = np.sqrt(((n - 1) * own.var() + (m - 1) * controls.var()) / (n + m - 2))
        expected = stats.ttest_ind(own, controls, equal_var=False)
        assert (found.n[region], found.effect[region]) == (n, pytest.approx((own.mean() - controls.mean()) / pooled))
        assert (found.t[region], found.p[region]) == pytest.approx((expected.statistic, expected.pvalue))
        # With such variances, the exact interval would invert the noncentral t distribution.
        error = found.effect[region] / expected.statistic
        for limit, tail in ((found.low[region], 0.975), (found.high[region], 0.025)):
            assert stats.nct.cdf(expected.statistic, expected.df, limit / error) == pytest.approx(tail, abs=0.005)
    assert found.effect["insula"] < -0.8


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
    sizes = subgroup_sizes(r, group, smallest=12)
    small = sizes["n"] < 12
    assert 0 < small.sum() < 6
    assert (sizes["used"] == ~small).all()
    assert (sizes["note"][small] == "fewer than 12 patients").all()
    compared = {tuple(row) for row in subgroup_effects(z, r, group, smallest=12)[["pattern", "level"]].to_numpy()}
    assert compared == {tuple(row) for row in sizes.loc[~small, ["pattern", "level"]].to_numpy()}
    few = people(n_controls=5)
    assert (subgroup_sizes(*few[1:])["note"] == "fewer than 10 controls").all()
    assert subgroup_effects(*few).empty


def test_one_pattern_and_other_limits():
    z, r, group = people()
    sizes = subgroup_sizes(r[["r1"]], group, low=0.3, high=0.5)
    assert (sizes["rule"].tolist(), sizes["n"].sum()) == (["r1 < 0.3", "0.3 ≤ r1 ≤ 0.5", "r1 > 0.5"], 400)
    constant = subgroup_effects(z.assign(cuneus=0.0), r, group).set_index("region").loc["cuneus"]
    assert constant[["effect", "t", "p", "q"]].isna().all(axis=None)


@pytest.mark.parametrize("limits", [(0.7, 0.4), (0.0, 0.7), (0.4, 0.4), (float("nan"), 0.7)])
def test_wrong_limits_are_refused(limits):
    _, r, group = people()
    with pytest.raises(InputError):
        subgroup_sizes(r, group, low=limits[0], high=limits[1])


def test_all_patients_are_compared_with_all_controls_given_covariates():
    rng, group = np.random.default_rng(5), np.repeat(["control", "patient", "other"], [60, 80, 5])
    age = rng.normal(70, 8, 145) + 4 * (group == "patient")
    z = pd.DataFrame(rng.normal(size=(145, 4)), columns=list("abcd"))
    z["a"] -= 0.9 * (group == "patient")
    z["b"] -= 0.2 * (age - 70)  # differs between the groups by age alone
    plain, given = group_effects(z, group), group_effects(z, group, pd.DataFrame({"age": age}))
    patients, controls = z[group == "patient"], z[group == "control"]
    welch = stats.ttest_ind(patients, controls, equal_var=False)
    np.testing.assert_allclose(plain[["t", "p"]], np.column_stack([welch.statistic, welch.pvalue]))
    design = sm.add_constant(pd.DataFrame({"patient": group == "patient", "age": age})[:140] * 1.0)
    robust = sm.OLS(z["b"][:140], design).fit(cov_type="HC2")  # each person with a variance of his own
    assert given["t"][1] == pytest.approx(robust.tvalues["patient"], rel=0.02)
    left = (np.eye(140) - design.to_numpy() @ np.linalg.pinv(design))[:, :140]  # by hand, after Satterthwaite
    own = [(group[:140] == name) for name in ("control", "patient")]
    freedom = [np.diag(left)[who].sum() for who in own]
    weights = np.linalg.pinv(design)[1] ** 2
    errors = [weights[w].sum() * ((left @ z["b"][:140])[w] ** 2).sum() / f for w, f in zip(own, freedom, strict=True)]
    of_t = sum(errors) ** 2 / sum(error**2 / f for error, f in zip(errors, freedom, strict=True))
    assert given["p"][1] == pytest.approx(2 * stats.t.sf(abs(given["t"][1]), of_t))
    assert plain["q"][1] < 0.05 < given["q"][1]
    assert given["q"][0] < 0.001
    assert given["low"][0] < given["effect"][0] < given["high"][0] < 0
    assert given[["n_controls", "n_patients"]].to_numpy().tolist() == [[60, 80]] * 4
    assert group_effects(z[:65], group[:65]).empty  # five patients


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
    changes = rng.standard_normal((5, 2, 8))
    z = pd.DataFrame(rng.standard_normal((5, 8)), columns=list("abcdefgh"), index=[0] * 5)
    table = drivers(changes, z, [f"P{k}" for k in range(5)], visit=[1, 2, 1, 1, 1], n=3)
    assert list(table) == ["participant_id", "visit", "pattern", "rank", "region", "change_sd", "z"]
    assert len(table) == 5 * 2 * 3
    for (name, pattern), own in table.groupby(["participant_id", "pattern"]):
        person = int(name[1:])
        order = sorted(range(8), key=lambda k, row=changes[person, pattern - 1]: -abs(row[k]))[:3]
        assert (own["rank"].tolist(), own["region"].tolist()) == ([1, 2, 3], ["abcdefgh"[k] for k in order])
        np.testing.assert_array_equal(own["change_sd"], changes[person, pattern - 1, order])
        np.testing.assert_array_equal(own["z"], z.to_numpy()[person, order])
    assert table.loc[table["participant_id"] == "P1", "visit"].tolist() == [2] * 6
    changes[0, 0, 2:], changes[1, 1] = 1e-4, 0  # a sparse pattern did not change the others
    assert drivers(changes, z, range(5), n=3).groupby(["participant_id", "pattern"]).size().tolist()[:3] == [2, 3, 3]


def test_a_covariate_may_have_any_name():
    rng = np.random.default_rng(0)
    patient = np.repeat([0, 1], 50)
    z, age = pd.DataFrame({"insula": rng.normal(size=100) - patient}), rng.normal(size=100) - patient
    group = np.where(patient, "patient", "control")
    one, other = (group_effects(z, group, pd.DataFrame({name: age})) for name in ("one", "age"))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("values", [np.arange(100.0), np.tile(["A", "B", "C", "D"], 25)])
def test_who_lacks_a_covariate_is_excluded_and_no_category(values):
    z, group = (
        pd.DataFrame({"insula": np.random.default_rng(0).normal(size=100)}),
        np.array(["control", "patient"] * 50),
    )
    covariate = pd.DataFrame({"given": pd.Series(values).where(np.arange(100) < 80)})
    known = [of[:80] for of in (z, group, covariate)]
    pd.testing.assert_frame_equal(group_effects(z, group, covariate), group_effects(*known))


def scored(seed=0):
    rng, group = np.random.default_rng(seed), np.array(["control"] * 50 + ["patient"] * 300)
    r = pd.DataFrame(rng.uniform(-0.1, 1.1, (350, 2)), columns=["r1", "r2"])
    z = pd.DataFrame(rng.standard_normal((350, 3)), columns=["insula", "hippocampus", "cuneus"])
    z["insula"] -= 2 * r["r1"]
    patterns = pd.DataFrame(
        {"region": list(z) * 2, "pattern": [1] * 3 + [2] * 3, "change_sd": [-2.0, 0.1, -0.5, 0.2, -1.0, 0.3]}
    )
    return z, r, group, patterns


def test_means_of_the_strongest_regions_by_severity():
    z, r, group, patterns = scored()
    table = dose_response(z, r, group, patterns, n_regions=2)
    assert list(dict.fromkeys(table["region"][table["pattern"] == 1])) == ["insula", "cuneus"]
    assert list(dict.fromkeys(table["region"][table["pattern"] == 2])) == ["hippocampus", "cuneus"]
    assert len(table) == 2 * 2 * 6
    patients = group == "patient"
    own = r["r1"][patients]
    insula = table[(table["pattern"] == 1) & (table["region"] == "insula")].reset_index(drop=True)
    assert insula["n"].sum() == 300
    for place, (low, high) in enumerate([(-9, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1), (1, 9)]):
        values, row = z["insula"][patients][(own >= low) & (own < high)], insula.iloc[place]
        interval = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert (row.n, row.severity) == (len(values), pytest.approx(own[(own >= low) & (own < high)].mean()))
        assert (row["mean"], (row.mean_low, row.mean_high)) == (pytest.approx(values.mean()), pytest.approx(interval))
    np.testing.assert_allclose(insula[["low", "high"]].T, [[0, 0.2, 0.4, 0.6, 0.8, 1], [0.2, 0.4, 0.6, 0.8, 1, 2]])


def test_small_bins_are_left_out():
    z, r, group, patterns = scored()
    r["r1"] = np.where(np.arange(350) < 346, 0.1, 0.9)
    table = dose_response(z, r, group, patterns)
    assert set(table.loc[table["pattern"] == 1, "low"]) == {0.0}
    nobody = dose_response(z, r, np.full(350, "control"), patterns)
    assert nobody.empty
    assert list(nobody) == list(table)


def test_tables_of_other_people_or_regions_are_refused():
    z, *others = scored()
    with pytest.raises(InputError):
        dose_response(z[1:], *others)
    with pytest.raises(KeyError, match="insula"):
        dose_response(z.drop(columns="insula"), *others)
