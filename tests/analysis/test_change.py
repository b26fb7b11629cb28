"""Change of people and of groups, against least squares, the reliable change index and simulated studies."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression import mixed_linear_model

from rindices.analysis import change_per_year, group_change, scan_noise


def visits(seed=0, n_people=60, slope_sd=0.03):
    """Each person seen up to four times, rows in no order; the first pattern rises in patients."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), rng.integers(1, 5, n_people))
    years, patient = rng.uniform(0, 6, len(person)), person >= n_people // 3
    slopes = 0.05 * patient + slope_sd * rng.standard_normal(n_people)[person]
    r = np.column_stack([slopes * years, 0 * years]) + 0.1 * rng.standard_normal((len(person), 2))
    r += 0.3 * rng.standard_normal((n_people, 2))[person]
    order, group = rng.permutation(len(person)), np.where(patient, "patient", "control")
    table = pd.DataFrame(r, columns=["r1", "r2"])
    return table.iloc[order], np.array([f"P{k}" for k in person])[order], years[order], group[order]


def test_slopes_are_least_squares_and_limits_those_of_known_noise():
    r, ids, years, group = visits()
    noise = np.random.default_rng(1).uniform(0.02, 0.1, r.shape)
    change = change_per_year(r, ids, years, group, noise, freedom=12, level=0.9)
    names, counts = np.unique(ids, return_counts=True)
    assert set(change["participant_id"]) == set(names[counts > 1])
    for row in change.to_dict("records"):
        own = ids == row["participant_id"]
        span = np.ptp(years[own])
        assert (row["n_visits"], row["group"], row["years"]) == (own.sum(), group[own][0], pytest.approx(span))
        for k, name in enumerate(("r1", "r2")):
            weights = 1 / noise[own, k]  # only to ask polyfit's design for the error of the plain slope
            (slope, _), design = np.polyfit(years[own], r[name].to_numpy()[own], 1), np.vander(years[own], 2)
            assert row[f"{name}_per_year"] == pytest.approx(slope, rel=1e-6, abs=1e-9)
            half = stats.t.ppf(0.95, 12) * span * np.sqrt(np.sum((np.linalg.pinv(design)[0] / weights) ** 2))
            limits = row[f"{name}_change_low"], row[f"{name}_change_high"]
            assert limits == pytest.approx((span * slope - half, span * slope + half))
            assert row[f"{name}_reliable"] == (limits[0] > 0) - (limits[1] < 0)
    assert {-1.0, 0.0, 1.0} >= set(change["r1_reliable"]) > {0.0}


def test_of_two_visits_it_is_the_reliable_change_index():
    scores = pd.DataFrame({"severity1": [0.30, 0.41, 0.30, 0.42]})
    found = change_per_year(scores, list("aabb"), [0, 1.5, 0, 1.5], ["patient"] * 4, 0.04)
    needed = 1.96 * np.sqrt(2) * 0.04  # Jacobson and Truax
    assert 0.11 < needed < 0.12
    assert found["severity1_reliable"].tolist() == [0, 1]
    assert found["severity1_change"].tolist() == pytest.approx([0.11, 0.12])
    without = change_per_year(scores, list("aabb"), [0, 1.5, 0, 1.5], ["patient"] * 4)
    assert without.filter(regex="low|high|reliable").isna().all(axis=None)


def test_unknown_times_equal_times_and_single_visits_do_not_count():
    r = pd.DataFrame({"r1": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9]})
    ids, years = ["a", "a", "a", "b", "b", "c", "a"], [0.0, 1.0, np.nan, 2.0, 2.0, 0.0, 3.0]
    change = change_per_year(r, ids, years, ["patient"] * 7)
    assert change[["participant_id", "n_visits", "years"]].to_numpy().tolist() == [["a", 3, 3.0]]
    assert change["r1_per_year"].iloc[0] == pytest.approx(np.polyfit([0, 1, 3], [0.1, 0.2, 0.9], 1)[0])
    summary = group_change(r, ids, years, ["patient"] * 7)
    assert summary["note"].tolist() == ["fewer than 5 people were seen at two different times"]
    assert summary[["mean", "low", "high", "p", "q"]].isna().all(axis=None)
    assert not len(group_change(r, ids, [0.0] * 7, ["patient"] * 7))


def test_group_is_that_of_the_first_visit():
    r = pd.DataFrame({"r1": [0.5, 0.1]}, index=[0, 0])
    change = change_per_year(r, pd.Series(["a", "a"], index=[5, 5]), [3.0, 1.0], ["patient", "control"])
    assert (change["group"].tolist(), change["r1_per_year"].iloc[0]) == (["control"], pytest.approx(0.2))


def test_balanced_visits_have_the_mean_of_slopes_and_welchs_test():
    """Where everybody comes at the same times, the mixed model is a t test of slopes."""
    rng, n_people = np.random.default_rng(2), 60
    ids, years = np.repeat(np.arange(n_people), 3), np.tile([0.0, 1.0, 2.0], n_people)
    group = np.where(ids < 25, "control", "patient")
    spread = np.where(ids < 25, 0.02, 0.06)  # patients vary more
    y = 0.3 * rng.standard_normal(n_people)[ids] + 0.1 * rng.standard_normal(n_people)[ids] * years * (
        group == "patient"
    )
    scores = pd.DataFrame({"severity1": y + spread * rng.standard_normal(len(ids)), "severity2": rng.random(len(ids))})
    found = group_change(scores, ids, years, group).set_index(["group", "pattern"])
    slopes = change_per_year(scores, ids, years, group).groupby("group")["severity1_per_year"].apply(np.asarray)
    for name in ("control", "patient"):
        row = found.loc[(name, 1)]
        assert (row["n"], row["n_visits"]) == ((25, 75) if name == "control" else (35, 105))
        assert row["mean"] == pytest.approx(slopes[name].mean(), abs=1e-6)
    row, test = (
        found.loc[("patients minus controls", 1)],
        stats.ttest_ind(*slopes[["patient", "control"]], equal_var=False),
    )
    assert row["mean"] == pytest.approx(slopes["patient"].mean() - slopes["control"].mean(), abs=1e-6)
    assert (row["low"], row["high"]) == pytest.approx(tuple(test.confidence_interval()), rel=0.05)
    p = found.loc["patients minus controls"]["p"].to_numpy()
    np.testing.assert_allclose(found.loc["patients minus controls"]["q"], stats.false_discovery_control(p))


def test_intervals_of_unbalanced_groups_hold_the_truth():
    inside = []
    for seed in range(8):
        found = group_change(*visits(seed, 45)).set_index(["group", "pattern"]).loc["patients minus controls"]
        inside += [found["low"][1] <= 0.05 <= found["high"][1], found["low"][2] <= 0 <= found["high"][2]]
    assert stats.binomtest(sum(inside), len(inside), 0.95).pvalue > 0.001


def test_with_two_visits_slopes_of_single_people_are_tested_and_a_failed_fit_is_told(monkeypatch):
    r, ids, years, group = visits()
    twice = pd.Series(ids).groupby(ids).cumcount().to_numpy() < 2
    found = group_change(r[twice], ids[twice], years[twice], group[twice])
    assert (set(found["random_effects"]), set(found["note"])) == ({"slopes by person"}, {""})
    slopes = change_per_year(r[twice], ids[twice], years[twice], group[twice]).groupby("group")["r1_per_year"]
    own = found[(found["group"] == "patient") & (found["pattern"] == 1)].iloc[0]
    assert own["p"] == pytest.approx(stats.ttest_1samp(slopes.get_group("patient"), 0).pvalue)
    both = found[(found["group"] == "patients minus controls") & (found["pattern"] == 1)].iloc[0]
    test = stats.ttest_ind(*map(slopes.get_group, ("patient", "control")), equal_var=False)
    assert both["p"] == pytest.approx(test.pvalue)
    fit = mixed_linear_model.MixedLM.fit

    def unconverged(model, **rest):
        done = fit(model, **rest)
        done.converged = False
        return done

    monkeypatch.setattr(mixed_linear_model.MixedLM, "fit", unconverged)
    found = group_change(r, ids, years, group).set_index("group").loc["patient"]
    assert found["note"].iloc[0] == "the model with a slope for each person did not converge"
    assert found["mean"].notna().all()
    assert group_change(0 * r, ids, years, group)["note"].iloc[0] == "the severity does not vary within people"


def repeated(n_people, times, seed=0, n_regions=4, drift=0.0):
    """Scans of controls with noise that is correlated between regions."""
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.uniform(0.2, 1, (n_regions, n_regions)))
    ids, years = np.repeat(np.arange(n_people), len(times)), np.tile(times, n_people)
    people = 5 * rng.standard_normal((n_people, n_regions))[ids] + drift * years[:, None]
    return pd.DataFrame(people + rng.standard_normal((len(ids), n_regions)) @ factor.T), ids, years, factor @ factor.T


@pytest.mark.parametrize("times", [[0.0, 0.5], [0.0, 0.3, 1.0, 0.7]])
def test_scan_noise_is_the_covariance_within_controls(times):
    regions, ids, years, expected = repeated(3000 // len(times), times, drift=3.0)
    found = scan_noise(regions, ids, years, np.repeat("control", len(ids)))
    assert (found.n_controls, found.freedom) == (len(set(ids)), len(ids) - len(set(ids)) - 1)
    np.testing.assert_allclose(found.vectors.T @ found.vectors / found.freedom, expected, atol=0.08 * expected.max())


def test_scans_within_a_year_are_noise_and_later_ones_only_where_these_are_few():
    regions, ids, years, _ = repeated(30, [0.0, 1.0, 3.0])
    regions = regions + 10 * (years == 3.0)[:, None] * np.random.default_rng(1).standard_normal((len(ids), 1))
    control = np.repeat("control", len(ids))
    soon = scan_noise(regions, ids, years, control)
    assert (soon.years, soon.freedom) == (1.0, 29)
    few = np.isin(ids, range(8)) | (years != 1.0)  # seven contrasts within a year
    later = scan_noise(regions[few], ids[few], years[few], control[few])
    assert later.years == 3.0
    assert np.var(later.vectors) > 5 * np.var(soon.vectors)
    assert scan_noise(regions, ids, years, np.where(ids < 25, "patient", "control"))[1:3] == (9, 5)
    assert scan_noise(regions, ids, years, np.where(ids < 28, "patient", "control")).freedom == 0
    nobody = scan_noise(regions, ids, years, np.repeat("patient", len(ids)))
    assert (nobody.n_controls, nobody.freedom) == (0, 0)


def test_no_warning_reaches_the_user():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group_change(*visits(3, 30))
