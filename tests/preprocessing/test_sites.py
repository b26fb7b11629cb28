from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.preprocessing import UNCORRECTED, SiteHarmonizer
from rindices.preprocessing.sites import _errors_left, shrink
from tests.refusal import refused_with

SIZES = {"Athens": 12, "Bonn": 40, "Cork": 25, "Delft": 80}
CURVES = {"smooth": ["age"], "interactions": [("age", "sex")]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    site = rng.permutation(np.repeat(list(SIZES), list(SIZES.values())))
    age = rng.uniform(40, 80, len(site)) + 8 * (site == "Bonn")
    return pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], len(site)), "site": site})


@pytest.fixture(scope="module")
def volumes(table):
    rng, n_regions = np.random.default_rng(1), 30
    site = table["site"].map({name: k for k, name in enumerate(SIZES)}).to_numpy()
    offsets, scales = rng.normal(0, 15, (4, n_regions)), rng.uniform(0.7, 1.4, (4, n_regions))
    effects = np.outer(table["age"] - 60, rng.normal(-1, 0.5, n_regions)) + np.outer(table["sex"] == "M", [20] * 30)
    return 1000 + effects + offsets[site] + scales[site] * rng.normal(0, 20, (len(table), n_regions))


@pytest.fixture(scope="module")
def fitted(volumes, table):
    return SiteHarmonizer.fit(volumes, table, "site")


def posterior_means(site, prior_offset, prior_variance):
    """Return a site's offset and variance by equations 3.1 of Johnson et al. (2007), from standardised data."""
    n_people = len(site)
    (centre, spread), (mean, squared) = prior_offset, prior_variance
    shape = 2 + mean**2 / squared
    scale = mean * (shape - 1)
    estimates, variance = site.mean(axis=0), site.var(axis=0, ddof=1)
    for _ in range(300):
        offset = (n_people * spread * estimates + variance * centre) / (n_people * spread + variance)
        variance = (scale + ((site - offset) ** 2).sum(axis=0) / 2) / (n_people / 2 + shape - 1)
    return offset, variance


def combat_by_hand(volumes, table):
    """Harmonise as Fortin et al. (2018): one regression with all site indicators, then Johnson's empirical Bayes."""
    sites = sorted(SIZES)
    indicators = np.column_stack([table["site"] == site for site in sites]).astype(float)
    others = np.column_stack([table["age"], table["sex"] == "M"]).astype(float)
    design = np.hstack([indicators, others])
    effects = np.linalg.pinv(design) @ volumes
    mean = indicators.mean(axis=0) @ effects[:4]
    variance, typical = ((volumes - design @ effects) ** 2).mean(axis=0), mean + others @ effects[4:]
    standard = (volumes - typical) / np.sqrt(variance)
    result = standard.copy()
    for site in sites:
        here = (table["site"] == site).to_numpy()
        means, variances = standard[here].mean(axis=0), standard[here].var(axis=0, ddof=1)
        priors = [(values.mean(), values.var(ddof=1)) for values in (means, variances)]
        offset, scale = posterior_means(standard[here], *priors)
        result[here] = (standard[here] - offset) / np.sqrt(scale)
    return result * np.sqrt(variance) + typical


def test_harmonised_regions_are_those_of_combat(fitted, volumes, table):
    np.testing.assert_allclose(fitted.transform(volumes, table), combat_by_hand(volumes, table), rtol=1e-9)


def test_one_region_is_not_shrunk_and_regions_that_vary_alike_keep_their_variance():
    assert np.stack(shrink(np.array([0.7]), np.array([1.3]), 10)).tolist() == [[0.7], [1.3]]
    np.testing.assert_allclose(shrink(np.full(3, 0.5), np.full(3, 1.3), 10), [[0.5] * 3, [1.3] * 3])


def test_units_of_regions_do_not_matter(fitted, volumes, table):
    small = SiteHarmonizer.fit(1e-9 * volumes, table, "site").transform(1e-9 * volumes, table)
    np.testing.assert_allclose(1e9 * small, fitted.transform(volumes, table), rtol=1e-6)


def test_the_way_back_is_exact_and_a_person_does_not_depend_on_company(fitted, volumes, table):
    made = fitted.transform(volumes, table)
    np.testing.assert_allclose(fitted.inverse_transform(made, table), volumes, rtol=1e-12)
    alone = [fitted.transform(volumes[[k]], table.iloc[[k]])[0] for k in (0, 50, 100)]
    np.testing.assert_allclose(alone, made[[0, 50, 100]], rtol=1e-12)


def test_curves_and_interactions_are_kept(table):
    rng = np.random.default_rng(6)
    curve = ((table["age"] - 60) ** 2 * (1 + (table["sex"] == "M"))).to_numpy()[:, None]
    shift = 300 * (table["site"] == "Cork").to_numpy()[:, None]
    volumes = 1000 + curve + rng.normal(0, 5, (len(table), 10))
    fitted = [SiteHarmonizer.fit(volumes + shift, table, "site", **curves) for curves in ({}, CURVES)]
    made = [one.transform(volumes + shift, table) for one in fitted]
    errors = [((one - one.mean()) - (volumes - volumes.mean())).std() for one in made]
    assert errors[1] < 5
    assert errors[0] > 4 * errors[1]


# Known, new and unknown sites


def test_people_of_no_known_site_can_stay_as_they_are(fitted, volumes, table):
    np.testing.assert_allclose(fitted.transform(volumes, table.assign(site=UNCORRECTED)), volumes, rtol=1e-12)
    mixed = table.assign(site=table["site"].where(table["site"] != "Bonn", UNCORRECTED))
    others = (table["site"] != "Bonn").to_numpy()
    np.testing.assert_array_equal(fitted.transform(volumes, mixed)[others], fitted.transform(volumes, table)[others])


def test_unknown_sites_are_named_and_can_be_left(fitted, volumes, table):
    strange = table.assign(site=["Essen", *table["site"][1:]])
    said = refused_with(
        r"from Athens, Bonn, Cork, Delft, but 'site' contains 'Essen' \(1 person\)",
        fitted.transform,
        volumes,
        strange,
        error=ValueError,
    )
    assert "(`SurrealGAN.adapt`), exclude these people, or leave them uncorrected with ''" in said
    marked = fitted.leave_new_sites(strange)
    assert (marked["site"].tolist(), strange["site"][0]) == ([UNCORRECTED, *table["site"][1:]], "Essen")
    made = fitted.transform(volumes, marked)
    np.testing.assert_allclose(made[0], volumes[0], rtol=1e-12)
    np.testing.assert_array_equal(made[1:], fitted.transform(volumes, table)[1:])


def test_sites_may_be_numbers(volumes, table, fitted):
    codes = table["site"].map({name: k + 1 for k, name in enumerate(SIZES)})
    numbered = SiteHarmonizer.fit(volumes, table.assign(site=codes.astype(float)), "site")
    assert numbered.sites == ("1", "2", "3", "4")
    expected = fitted.transform(volumes, table)
    for again in (codes, codes.astype(float), codes.astype(str)):
        np.testing.assert_allclose(numbered.transform(volumes, table.assign(site=again)), expected, rtol=1e-12)


def test_no_covariates_but_the_site(volumes, table):
    fitted = SiteHarmonizer.fit(volumes, table[["site"]], "site")
    assert fitted.kept is None
    made = fitted.transform(volumes, table[["site"]])
    before, after = (pd.DataFrame(v).groupby(table["site"].to_numpy()).mean().std() for v in (volumes, made))
    assert (after / before).max() < 0.4


def test_a_site_without_variation_is_harmonised(volumes, table):
    same = volumes.copy()
    same[(table["site"] == "Cork").to_numpy(), 0] = 900.0
    assert np.isfinite(SiteHarmonizer.fit(same, table[["site"]], "site").transform(same, table[["site"]])).all()


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        (["A"] * 20, r"same value in 'site' \(A\), so there is nothing"),
        (["A"] * 16 + ["B"] * 4, r"1 site in 'site' has fewer than 5 controls: B \(4\).*\n.*small.sites\W.*drop"),
        (["A"] * 10 + ["B"] * 3 + ["C"] * 7 + ["D"], r"2 sites in 'site' have fewer than 5 controls: B \(3\), D \(1\)"),
        (["A"] * 10 + [UNCORRECTED] * 10, "Some controls have no site in 'site'"),
    ],
)
def test_sites_that_cannot_be_learned_are_named(sites, message):
    table, volumes = pd.DataFrame({"site": sites}), np.random.default_rng(0).normal(size=(len(sites), 5))
    refused_with(message, SiteHarmonizer.fit, volumes, table, "site", error=ValueError)


def test_sites_count_as_columns(table, volumes):
    few = table.groupby("site").head(5)
    refused_with(
        r"9 coefficients per region, in addition to the means of 4 sites\. .* at least 26 controls, but there are 20",
        SiteHarmonizer.fit,
        volumes[few.index],
        few,
        "site",
        **CURVES,
        error=ValueError,
    )


def test_a_site_that_is_learned_later_is_corrected_as_in_the_training(volumes, table):
    rng, there = np.random.default_rng(5), (table["site"] == "Delft").to_numpy()
    known = SiteHarmonizer.fit(volumes[~there], table[~there], "site")
    later = known.with_new_sites(volumes[there], table[there])
    assert later.sites == ("Athens", "Bonn", "Cork", "Delft")
    np.testing.assert_array_equal(
        later.transform(volumes[~there], table[~there]), known.transform(volumes[~there], table[~there])
    )
    away = (volumes[there] - known.mean - known.kept.effect(table[there])) / known.sd
    variances = away.var(axis=0, ddof=1)
    expected = posterior_means(
        away, (away.mean(axis=0).mean(), away.mean(axis=0).var(ddof=1)), (variances.mean(), variances.var(ddof=1))
    )
    np.testing.assert_allclose([later.offsets[-1], later.scales[-1] ** 2], expected, rtol=1e-6)
    np.testing.assert_allclose(later.errors, 1 / np.sqrt([*SIZES.values()]))
    one_each = table.drop_duplicates("site").set_index("site", drop=False).loc[list(SIZES)]
    shared, offsets, scales = later.errors_left(one_each)
    assert ((shared == later.errors) & (offsets > 0).all(axis=1) & (scales > 0).all(axis=1)).all()
    old = replace(known, errors=None).with_new_sites(volumes[there], table[there])  # from a file without errors
    assert (old.errors_left(one_each).shared > 0).tolist() == [False, False, False, True]
    few = rng.permutation(np.flatnonzero(there))[:10]
    known.with_new_sites(volumes[few], table.iloc[few])  # without a warning
    with pytest.warns(UserWarning, match=r"Controls from new sites: Delft \(7\)"):
        known.with_new_sites(volumes[few[:7]], table.iloc[few[:7]], few_controls=True)


def test_errors_left_follow_from_what_estimates_were_shrunk_by():
    """Before shrinkage, regional estimates have a variance of s = 0.1 (offsets) or 0.05 (log scales)."""
    left = []
    for spread, sampling in ((0.1, 0.2**2), (0.05, 0.2**2 / 2)):  # log scales have half the variance
        kept = spread / (spread + sampling)
        left.append((kept, (1 - kept) ** 2 * (spread - sampling), kept**2 * sampling, kept * np.sqrt(spread)))
    side = np.array([-1.0, 1.0, -1.0, 1.0])
    shared, offsets, scales = _errors_left(0.2, left[0][3] * side, np.exp(left[1][3] * side))
    assert shared == 0.2  # what all regions share is not shrunk
    np.testing.assert_allclose([offsets, scales], np.outer([left[0][1], left[1][1] + left[1][2]], side**2), rtol=1e-3)


@pytest.mark.parametrize("common", [0.0, 0.7])
def test_errors_of_a_new_site_are_those_that_its_controls_leave(common):
    """Over many sites, they match what is left of scales and of a shift of all regions, and bound that of offsets."""
    rng, n_regions, n_local = np.random.default_rng(8), 60, 12
    known = SiteHarmonizer.fit(rng.standard_normal((400, n_regions)), pd.DataFrame({"site": ["A", "B"] * 200}), "site")
    left, told = [], []
    for _ in range(150):
        shift, scale = 0.4 * rng.standard_normal(n_regions), np.exp(0.15 * rng.standard_normal(n_regions))
        table = pd.DataFrame({"site": ["C"] * n_local})
        people = np.sqrt(1 - common) * rng.standard_normal((n_local, n_regions))
        people = people + np.sqrt(common) * rng.standard_normal((n_local, 1))
        later = known.with_new_sites(shift + scale * people, table)
        shared, offsets, scales = later.errors_left(table.iloc[:1])
        away, of_scale = later.offsets[-1] - shift, np.log(later.scales[-1] / scale)
        left.append([np.mean(away**2), np.mean(of_scale**2), np.mean(away) ** 2])
        told.append(
            [np.mean(shared**2 + offsets), np.mean(scales), shared[0] ** 2 * (common + (1 - common) / n_regions)]
        )
    told, left = np.mean(told, axis=0), np.mean(left, axis=0)
    assert told[0] > left[0]
    np.testing.assert_allclose(told[1 + (common > 0) :], left[1 + (common > 0) :], rtol=0.25)


@pytest.mark.parametrize(
    ("site", "number", "told"),
    [
        ("Bonn", 20, "already includes site Bonn"),
        ("Graz", 3, "Graz .3."),
        ("Graz", 9, "at least 10 controls"),
    ],
)
def test_sites_that_cannot_be_learned_are_refused(fitted, volumes, table, site, number, told):
    refused_with(told, fitted.with_new_sites, volumes[:number], table[:number].assign(site=site))
