import numpy as np
import pandas as pd

from rindices.analysis import drivers


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
        assert own["rank"].tolist() == [1, 2, 3]
        assert own["region"].tolist() == ["abcdefgh"[k] for k in order]
        np.testing.assert_array_equal(own["change_sd"], changes[person, pattern - 1, order])
        np.testing.assert_array_equal(own["z"], z.to_numpy()[person, order])
    assert table.loc[table["participant_id"] == "P1", "visit"].tolist() == [2] * 6
