import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices.analysis import change_per_year


def visits(seed=0, n_people=60):
    """Each person seen up to four times, rows in no order."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), rng.integers(1, 5, n_people))
    years = rng.uniform(0, 6, len(person))
    r = np.column_stack([0.05 * years, 0 * years]) + 0.1 * rng.standard_normal((len(person), 2))
    order = rng.permutation(len(person))
    group = np.where(person < 20, "control", "patient")
    table = pd.DataFrame(r, columns=["r1", "r2"])
    return table.iloc[order], np.array([f"P{k}" for k in person])[order], years[order], group[order]


def test_slopes_are_least_squares():
    r, ids, years, group = visits()
    change = change_per_year(r, ids, years, group).change
    assert list(change) == ["participant_id", "group", "n_visits", "years", "r1_per_year", "r2_per_year"]
    names, counts = np.unique(ids, return_counts=True)
    assert set(change["participant_id"]) == set(names[counts > 1])
    for row in change.itertuples():
        own = ids == row.participant_id
        assert row.n_visits == own.sum()
        assert row.years == pytest.approx(np.ptp(years[own]))
        assert row.group == group[own][0]
        for name in ("r1", "r2"):
            expected = np.polyfit(years[own], r[name].to_numpy()[own], 1)[0]
            assert getattr(row, f"{name}_per_year") == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_summary_is_a_t_test_of_each_group_and_welchs_of_both():
    change, summary = change_per_year(*visits())
    assert list(summary) == ["group", "pattern", "n", "mean", "low", "high", "p"]
    groups = ["control", "patient", "patients less controls"]
    assert summary[["group", "pattern"]].to_numpy().tolist() == [[group, k] for group in groups for k in (1, 2)]
    long_enough = change[change["years"] >= 0.5]
    assert 0 < len(long_enough) < len(change)
    for row in summary.itertuples():
        rates = long_enough.groupby("group")[f"r{row.pattern}_per_year"].apply(np.asarray)
        if row.group in rates:
            own = rates[row.group]
            test, mean, n = stats.ttest_1samp(own, 0), own.mean(), len(own)
        else:
            test = stats.ttest_ind(rates["patient"], rates["control"], equal_var=False)
            mean, n = rates["patient"].mean() - rates["control"].mean(), len(long_enough)
        assert (row.n, row.mean, row.p) == pytest.approx((n, mean, test.pvalue))
        assert (row.low, row.high) == pytest.approx(tuple(test.confidence_interval()))


@pytest.mark.parametrize(("second", "n"), [(64.1, 1), (64.096, 1), (64.0, 0)])  # by date, half years differ a little
def test_half_a_year_counts_whatever_its_months(second, n):
    r = pd.DataFrame({"r1": [0.1, 0.2]})
    assert second - 63.6 < 0.5
    summary = change_per_year(r, ["a", "a"], [63.6, second], ["patient"] * 2).change_summary
    assert summary["n"].tolist() == [n]
    assert summary["mean"].notna().tolist() == [n == 1]


def test_a_group_seen_over_weeks_only_says_so_and_is_not_compared():
    r, ids, years, group = visits()
    years = np.where(group == "control", years / 100, years)
    change, summary = change_per_year(r, ids, years, group)
    assert (change["group"] == "control").any()
    controls = summary[summary["group"] == "control"]
    assert controls["n"].tolist() == [0, 0]
    assert controls[["mean", "low", "high", "p"]].isna().all(axis=None)
    assert summary["group"].unique().tolist() == ["control", "patient"]


def test_unknown_times_equal_times_and_single_visits_do_not_count():
    r = pd.DataFrame({"r1": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9]})
    ids = ["a", "a", "a", "b", "b", "c", "a"]
    years = [0.0, 1.0, np.nan, 2.0, 2.0, 0.0, 3.0]
    change, summary = change_per_year(r, ids, years, ["patient"] * 7)
    assert change[["participant_id", "n_visits", "years"]].to_numpy().tolist() == [["a", 3, 3.0]]
    assert change["r1_per_year"].iloc[0] == pytest.approx(np.polyfit([0, 1, 3], [0.1, 0.2, 0.9], 1)[0])
    assert summary["mean"].iloc[0] == pytest.approx(change["r1_per_year"].iloc[0])
    assert summary[["low", "high", "p"]].isna().all(axis=None)


def test_group_is_that_of_the_first_visit():
    r = pd.DataFrame({"r1": [0.5, 0.1]}, index=[0, 0])
    change = change_per_year(r, pd.Series(["a", "a"], index=[5, 5]), [3.0, 1.0], ["patient", "control"]).change
    assert change["group"].tolist() == ["control"]
    assert change["r1_per_year"].iloc[0] == pytest.approx(0.2)
