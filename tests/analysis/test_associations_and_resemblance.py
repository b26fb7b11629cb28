import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from rindices.analysis.associations_and_resemblance import _FOLDER, associations, desikan_map, resemblance
from rindices.analysis.statistics import (
    correlation,
    explained_variance,
    share_limits,
)


def people(n_people=150, seed=0):
    """R-indices of two patterns, clinical variables most of which depend on them, and covariates."""
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
    return (
        r,
        variables,
        pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], n_people), "site": rng.choice(list("xyz"), n_people)}),
    )


def row(table, variable, pattern=1):
    return table[(table["variable"] == variable) & (table["pattern"] == pattern)].iloc[0]


def dummies(table):
    return pd.get_dummies(table, drop_first=True, dtype=float).to_numpy()


@pytest.mark.parametrize("pattern", [1, 2])
def test_coefficients_and_p_are_those_of_scipy(pattern):
    r, variables, _ = people()
    found, own = associations(r, variables).query(f"pattern == {pattern}").set_index("variable"), r[f"r{pattern}"]
    groups = [own[variables["stage"] == level] for level in "ABC"]
    between = sum(len(group) * (group.mean() - own.mean()) ** 2 for group in groups)
    expected = {
        "memory": ("continuous", "Pearson r", "", *stats.pearsonr(own, variables["memory"])),
        "carrier": (
            "dichotomous",
            "point-biserial r",
            "yes",
            *stats.pointbiserialr(variables["carrier"] == "yes", own),
        ),
        "stage": ("categorical", "eta²", "", between / np.sum((own - own.mean()) ** 2), stats.f_oneway(*groups).pvalue),
    }
    for name, (*kind, coefficient, p) in expected.items():
        assert found.loc[name, ["kind", "statistic", "level"]].tolist() == kind
        np.testing.assert_allclose(found.loc[name, ["coefficient", "p"]].astype(float), [coefficient, p], rtol=1e-8)


@pytest.mark.parametrize("variable", ["memory", "carrier", "smoker", "stage"])
def test_partial_coefficients_are_those_of_nested_regressions(variable):
    r, variables, covariates = people()
    numbers = dummies(variables[[variable]]) if variable in ("carrier", "stage") else variables[[variable]]
    given = sm.add_constant(dummies(covariates))
    small, large = (sm.OLS(r["r1"].to_numpy(), x).fit() for x in (given, np.column_stack([numbers, given])))
    found, share = row(associations(r, variables, covariates), variable), (small.ssr - large.ssr) / small.ssr
    expected = share if variable == "stage" else np.sign(large.params[0]) * np.sqrt(share)
    np.testing.assert_allclose([found.partial, found.partial_p], [expected, large.compare_f_test(small)[1]], rtol=1e-8)
    assert -1 < found.partial_low < found.partial < found.partial_high < 1


def test_interval_is_the_jackknife_on_fishers_scale():
    r, variables, _ = people(60)
    x, y = r["r1"].to_numpy(), variables["memory"].to_numpy()
    without = np.arctanh([np.corrcoef(np.delete(x, k), np.delete(y, k))[0, 1] for k in range(60)])
    freedom = min(58, 2 * 58 / (stats.kurtosis(without, fisher=False) - 1))
    limits = stats.t.interval(0.95, freedom, np.arctanh(stats.pearsonr(x, y)[0]), np.sqrt(59 * without.var()))
    np.testing.assert_allclose(
        row(associations(r, variables), "memory")[["low", "high"]].astype(float), np.tanh(limits)
    )


@pytest.mark.parametrize(("n_people", "n_rare"), [(60, 3), (100, 5)])
def test_a_rare_category_does_not_narrow_the_interval(n_people, n_rare):
    rng, rare = np.random.default_rng(2), (np.arange(n_people) < n_rare) - n_rare / n_people
    severities = rng.beta(0.6, 4, (n_people, 1000))
    found = correlation(severities - severities.mean(axis=0), rare)
    assert ((found.low <= 0) & (found.high >= 0)).mean() > 0.94


def test_missing_values_are_left_out_of_their_variable_and_of_the_partial_only():
    r, variables, covariates = people()
    variables.loc[:9, "memory"] = [np.nan, np.inf] * 5
    variables.loc[5:12, "stage"] = None
    covariates.loc[100:, "sex"] = None
    found, repeated = associations(r, variables, covariates), pd.Index(np.arange(150) // 3)
    assert [row(found, name).n for name in variables] == [140, 150, 142, 150]
    memory = variables[["memory"]]
    own, alone = row(found, "memory"), row(associations(r[10:], memory[10:]), "memory")
    fewer = row(associations(r[10:100], memory[10:100], covariates[10:100]), "memory")
    np.testing.assert_allclose([own.coefficient, own.partial], [alone.coefficient, fewer.partial])
    assert own.note == "partial coefficient based on only 90 people, because covariates are missing for the others"
    moved = associations(r.set_index(repeated), variables.set_index(repeated[::-1]), covariates)
    pd.testing.assert_frame_equal(moved, found)  # people are matched by position


def test_false_discovery_rate_counts_all_rows_with_p():
    r, variables, covariates = people()
    found = associations(r, variables.assign(constant=1.0), covariates)
    assert found["p"].notna().sum() == 8
    for p, q in (("p", "q"), ("partial_p", "partial_q")):
        np.testing.assert_allclose(found[q].dropna(), stats.false_discovery_control(found[p].dropna()))


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
    assert (same.note, np.isfinite(same.coefficient)) == (
        "no partial coefficient: the covariates explain this variable completely",
        True,
    )
    assert np.isnan([same.partial, same.partial_p, same.partial_low]).all()
    for table, why in (
        (pd.DataFrame({"age": [np.nan] * 35 + [1.0, 2, 3, 4, 5]}), "fewer than 10 people have a value"),
        (pd.DataFrame(np.random.default_rng(0).standard_normal((40, 35))), "too few people for the covariates"),
    ):
        assert row(associations(r, variables, table), "memory").note == f"no partial coefficient: {why}"
    pd.testing.assert_frame_equal(
        associations(r, variables, covariates.join(covariates.add_suffix("2"))), associations(r, variables, covariates)
    )


def test_perfect_and_constant_r_indices():
    r = pd.DataFrame({"r1": np.linspace(0, 1, 30), "r2": 0.5})
    found = associations(r, pd.DataFrame({"same": 3 - 2 * r["r1"], "stage": list("ABC") * 10}))
    same, constant = row(found, "same"), found[found["pattern"] == 2]
    assert (same.low, same.high, same.p < 1e-100) == (pytest.approx(-1), pytest.approx(-1), True)
    assert (
        constant[["note", "coefficient", "p"]].fillna(9).values.tolist() == [["the severity does not vary", 9, 9]] * 2
    )


def test_kinds_of_values():
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
    found = associations(pd.DataFrame({"r1": np.linspace(0, 1, 12)}), variables).set_index("variable")
    assert found[["kind", "level", "note"]].to_numpy().tolist() == [
        ["dichotomous", "True", ""],
        ["continuous", "", "fewer than 10 people have a value"],
        ["dichotomous", "10", ""],
        ["categorical", "", ""],
        ["dichotomous", "b", ""],
    ]


ENIGMA = pd.read_csv(_FOLDER / "enigma.csv")
POSITIONS = pd.read_csv(_FOLDER / "desikan_positions.csv").set_index("region")
SHARES = pd.read_csv(_FOLDER / "destrieux_to_desikan.csv")


def as_patterns(maps, measure):
    """Return maps by side and region as a table of patterns under FreeSurfer's names."""
    return pd.DataFrame(
        {"pattern": number, "region": f"{side[0]}h_{region}_{measure}", "change_sd": value}
        for number, own in enumerate(maps, start=1)
        for (side, region), value in own.items()
    )


def enigma(disorder, measure):
    return ENIGMA[(ENIGMA["disorder"] == disorder) & (ENIGMA["measure"] == measure)].set_index(["side", "region"])["d"]


def test_a_disorder_s_own_map_is_recognised_by_its_measure():
    assert set(ENIGMA[ENIGMA["measure"] != "subcortex"].groupby(["measure", "disorder"]).size()) == {68}
    own = [enigma("schizophrenia", "thickness")]
    table, area = (resemblance(as_patterns(own, measure), n_spins=300) for measure in ("thickness", "area"))
    assert ({*table["measure"]}, {*area["measure"]}) == ({"thickness"}, {"area"})
    best = table.sort_values("r").iloc[-1]
    assert best[["disorder", "r", "beyond"]].tolist() == ["schizophrenia", pytest.approx(1), pytest.approx(1)]
    assert best["p_corrected"] < 0.025
    assert (table["p_corrected"] >= table["p"]).all()
    assert area.set_index("disorder").loc["schizophrenia", "r"] < 0.9


def test_correlations_are_those_of_numpy_and_beyond_is_a_partial_correlation():
    own = enigma("autism", "thickness").sort_index() + np.random.default_rng(1).normal(0, 0.1, 68)
    found = resemblance(as_patterns([own], "thickness"), n_spins=20).set_index("disorder").loc["depression, adults"]
    wide = ENIGMA[ENIGMA["measure"] == "thickness"].pivot(index=["side", "region"], columns="disorder", values="d")
    one, mean = wide["depression, adults"], stats.zscore(wide).mean(axis=1)
    inverse = np.linalg.inv(np.corrcoef([own, one, mean]))
    beyond = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert (found["r"], found["beyond"]) == (pytest.approx(own.corr(one)), pytest.approx(beyond))


def test_smooth_maps_without_relation_are_rarely_recognised():
    # Linear and quadratic functions of position are as smooth as cortical maps.
    rng, maps = np.random.default_rng(0), []
    for _ in range(60):
        turned = POSITIONS.to_numpy() @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        own = turned @ rng.normal(size=3) + (turned**2) @ rng.normal(size=3) + rng.normal(0, 0.3, 34)
        maps.append(pd.concat(dict.fromkeys(("left", "right"), pd.Series(own, POSITIONS.index))))
    assert (
        resemblance(as_patterns(maps, "thickness"), n_spins=500).groupby("pattern")["p_corrected"].min() < 0.025
    ).sum() <= 6  # 2 or 3 expected


def test_destrieux_is_converted_by_shares_of_area():
    assert SHARES.groupby("region")["share"].sum().between(0.9, 1.01).all()
    assert {*SHARES["region"]} == {*POSITIONS.index}
    parts, own = pd.Series(1.0, SHARES["part"].unique()).cumsum(), SHARES[SHARES["region"] == "insula"]
    found = desikan_map(parts.rename("lh_{}_thickness".format), "thickness")
    assert found["left", "insula"] == pytest.approx(np.average(own["part"].map(parts), weights=own["share"]))


def test_other_parcellations_and_averages_of_both_sides_follow_the_map_they_were_made_from():
    true = enigma("schizophrenia", "thickness")
    destrieux = {
        f"{side[0]}h_{part}_thickness": np.average(true[side][own["region"]], weights=own["share"])
        for part, own in SHARES.groupby("part")
        for side in ("left", "right")
    }
    for changes in (
        destrieux,
        {f"{region}_thickness": value for region, value in true.groupby("region").mean().items()},
    ):
        best = (
            resemblance(pd.DataFrame({"pattern": 1, "region": [*changes], "change_sd": changes.values()}), n_spins=200)
            .sort_values("r")
            .iloc[-1]
        )
        assert (best["disorder"], best["r"] > 0.85, best["p_corrected"] < 0.05) == ("schizophrenia", True, True)
    dkt = true.drop(["bankssts", "frontalpole", "temporalpole"], level="region")
    assert set(resemblance(as_patterns([dkt], "thickness"), n_spins=50)["n_regions"]) == {62}


@pytest.mark.parametrize("thalamus", ["Thalamus", "Thalamus-Proper"])  # in FreeSurfer 7, and in earlier versions
def test_subcortex_is_description_without_a_test(thalamus):
    own = enigma("schizophrenia", "subcortex")
    names = [f"{side.capitalize()}-{region.replace('Thalamus-Proper', thalamus)}" for side, region in own.index]
    table = resemblance(pd.DataFrame({"pattern": 1, "region": names, "change_sd": own.to_numpy()}))
    assert ({*table["measure"]}, {*table["n_regions"]}, table["p"].isna().all()) == ({"subcortex"}, {16}, True)
    assert table.loc[table["disorder"] == "schizophrenia", "r"].item() == pytest.approx(1)


VOLUMES, LEFT = ([f"lh_{name}_{measure}" for name in POSITIONS.index] for measure in ("volume", "thickness"))


@pytest.mark.parametrize("names", [["rHip", "lHip"], ["region_1"], VOLUMES, LEFT])  # one side, the same everywhere
def test_other_regions_and_volumes_have_no_map(names):
    assert resemblance(pd.DataFrame({"pattern": 1, "region": names, "change_sd": 1.0})).empty


# A small version of experiments/calibrate_associations.py, with made-up, skewed R-indices.


@pytest.mark.parametrize(("between", "within"), [(2, 27), (4, 395), (2, 49_997)])
def test_limits_of_a_share_invert_the_noncentral_f(between, within):
    size, ratio = between + within + 1, stats.f.isf(1e-4, between, within) * np.array([1.0, 3.0])
    for shares, tail in zip(share_limits(ratio, between, within), (0.975, 0.025), strict=True):
        np.testing.assert_allclose(stats.ncf.cdf(ratio, between, within, size * shares / (1 - shares)), tail, atol=1e-6)
    low, high = share_limits(stats.f.ppf([0.01, 0.5, 0.97], between, within), between, within)
    assert (low.tolist(), (high > 0).tolist()) == ([0, 0, 0], [False, True, True])


@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_intervals_of_explained_variance_hold_the_truth_in_95_percent(noise):
    """Most R-indices are near 0, and they differ between the categories."""
    rng, n_people = np.random.default_rng(9), 20_000
    r = rng.beta(0.7, 2.5, n_people) + 0.05 * rng.standard_normal(n_people)
    drawn = rng.standard_normal(n_people) if noise == "normal" else rng.exponential(size=n_people) - 1
    score = 0.5 * (r - r.mean()) / r.std() + np.sqrt(0.75) * drawn
    categories = (np.searchsorted(np.quantile(score, [0.6, 0.85]), score)[:, None] == [1, 2]).astype(float)

    def estimate(chosen):
        return explained_variance(r[chosen, None] - r[chosen].mean(), categories[chosen])

    truth = estimate(np.arange(n_people)).value[0]
    found = [estimate(rng.integers(n_people, size=150)) for _ in range(500)]
    held = np.mean([each.low[0] <= truth <= each.high[0] for each in found])
    assert 0.925 <= held <= 0.975  # 0.95 ± 2.5 standard errors; limits by the noncentral F fall below
