import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices.analysis import dose_response
from rindices.problems import InputError


def people(seed=0):
    rng, group = np.random.default_rng(seed), np.array(["control"] * 50 + ["patient"] * 300)
    r = pd.DataFrame(rng.uniform(-0.1, 1.1, (350, 2)), columns=["r1", "r2"])
    z = pd.DataFrame(rng.standard_normal((350, 3)), columns=["insula", "hippocampus", "cuneus"])
    z["insula"] -= 2 * r["r1"]
    patterns = pd.DataFrame(
        {"region": list(z) * 2, "pattern": [1] * 3 + [2] * 3, "change_sd": [-2.0, 0.1, -0.5, 0.2, -1.0, 0.3]}
    )
    return z, r, group, patterns


def test_means_of_the_strongest_regions_by_severity():
    z, r, group, patterns = people()
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
    z, r, group, patterns = people()
    r["r1"] = np.where(np.arange(350) < 346, 0.1, 0.9)
    table = dose_response(z, r, group, patterns)
    assert set(table.loc[table["pattern"] == 1, "low"]) == {0.0}
    nobody = dose_response(z, r, np.full(350, "control"), patterns)
    assert nobody.empty
    assert list(nobody) == list(table)


def test_tables_of_other_people_or_regions_are_refused():
    z, *others = people()
    with pytest.raises(InputError):
        dose_response(z[1:], *others)
    with pytest.raises(KeyError, match="insula"):
        dose_response(z.drop(columns="insula"), *others)
