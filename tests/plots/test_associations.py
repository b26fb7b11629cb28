import numpy as np
import pandas as pd
import pytest

from rindices import plots
from tests.plots.tables import associations, marks, row_names


def test_marks_are_the_coefficients_and_filled_where_significant():
    table = associations(3, 6, 2)
    correlations, shares = plots.forest(table).axes
    for axes, kind in ((correlations, "continuous"), (shares, "categorical")):
        rows = table[table["kind"] == kind]
        drawn = {(x, round(y), hollow) for x, y, _, hollow in marks(axes)}
        names = list(dict.fromkeys(rows["variable"]))
        expected = {(row.coefficient, names.index(row.variable), row.q >= 0.05) for row in rows.itertuples()}
        assert drawn == expected
        assert len(marks(axes)) == len(rows)
        segments = sorted(tuple(path[:, 0]) for bar in axes.collections for path in bar.get_segments())
        assert segments == sorted(zip(rows["low"], rows["high"], strict=True))
    assert shares.get_xlim() == pytest.approx((0, 1), abs=0.05)
    low, high = correlations.get_xlim()
    assert low == -high
    assert high > table["high"].max()


def test_people_and_values_that_count_as_one_are_named():
    table = associations(2, 3, 0, names=["mmse", "apoe4", "sex"])
    table["level"] = [np.nan, np.nan, 1.0, 1.0, np.nan, np.nan]
    table.loc[4:, "n"] = [1190, 1200]
    other = table.assign(people="everybody", n=9999)
    [axes] = plots.forest(pd.concat([table, other])).axes
    assert row_names(axes) == ["mmse", "apoe4: 1", "sex"]
    assert [text.get_text() for text in axes.texts] == ["n", "120", "120", "≤ 1,200"]
    [axes] = plots.forest(other.assign(level=["", "", "", "", "F", "F"]), people="everybody").axes
    assert row_names(axes) == ["mmse", "apoe4", "sex: F"]
    assert "everybody" in axes.get_xlabel()


def test_forty_strongest_of_many_in_the_order_of_the_table():
    table = associations(2, 60, 0)
    figure = plots.forest(table)
    strength = table.assign(size=table["coefficient"].abs()).groupby("variable", sort=False)["size"].max()
    kept = set(strength.sort_values().index[-40:])
    names = row_names(figure.axes[0])
    assert len(names) == 40
    assert [name.strip().replace(r"\$", "$") for name in names] == [name for name in strength.index if name in kept]
    assert "40 strongest of 60" in figure.get_supxlabel()
    assert figure.get_size_inches()[1] > 10
