import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.plots.patterns_and_associations import ASIDE
from rindices.regions import pair_sides, split_side
from tests.plots.tables import associations, changes, marks, row_names


def shown_percent(value):
    return f"{value:+.1f}".replace("-", "−")


def beside(axes):
    return [text.get_text() for text in axes.texts]


def test_rows_are_the_strongest_changes():
    table = changes(2)
    figure = plots.pattern_dots(table, top=5)
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = [row for row in table.to_dict("records") if row["pattern"] == pattern]
        rows = sorted(rows, key=lambda row: abs(row["change_sd"]))[: -5 - 1 : -1]
        drawn = [(x, y) for x, y, *_ in marks(axes) if np.isfinite(x)]
        assert drawn == [(row["change_sd"], place) for place, row in enumerate(rows)]
        assert row_names(axes) == [row["region"] for row in rows]
        assert beside(axes) == [f"{shown_percent(row['change_percent'])} %" for row in rows]
        segments = [tuple(path[:, 0]) for bar in axes.collections for path in bar.get_segments()]
        expected = [(row["change_sd"] - 0.1, row["change_sd"] + 0.1) for row in rows]
        assert np.asarray(segments) == pytest.approx(np.asarray(expected))
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert not figure.legends


def sided():
    """Return two pairs, a region whose twin is missing, and one without a side; the strongest is a right one."""
    changes_sd = {
        "Left-Hip": -0.5,
        "Right-Hip": -2.0,
        "Left-Amy": -1.0,
        "Right-Amy": 0.25,
        "Left-Put": -1.5,
        "Stem": 0.1,
    }
    rows = [{"region": name, "change_sd": value} for name, value in changes_sd.items()]
    table = pd.DataFrame(rows).assign(pattern=1, spread_sd=0.05)
    return table.assign(change_percent=table["change_sd"] * 10)


def test_twins_share_a_row():
    [axes] = plots.pattern_dots(sided()).axes
    assert row_names(axes) == ["Hip", "Left-Put", "Amy", "Stem"]
    drawn = {(x, round(y, 3), marker) for x, y, marker, _ in marks(axes) if np.isfinite(x)}
    left, right = ("<", -ASIDE), (">", ASIDE)
    assert drawn == {
        (-0.5, 0 + left[1], left[0]),
        (-2.0, 0 + right[1], right[0]),
        (-1.5, 1, "o"),
        (-1.0, 2 + left[1], left[0]),
        (0.25, 2 + right[1], right[0]),
        (0.1, 3, "o"),
    }
    assert beside(axes) == ["left / right", "−5.0 / −20.0 %", "−15.0 %", "−10.0 / +2.5 %", "+1.0 %"]
    between = [line for line in axes.lines if line.get_linestyle() == "-" and line.get_color() != "black"]
    assert sorted(tuple(line.get_xdata()) for line in between) == [(-1.0, 0.25), (-0.5, -2.0)]


def test_top_counts_rows_and_never_parts_twins():
    [axes] = plots.pattern_dots(sided(), top=1).axes
    assert (row_names(axes), len([x for x, *_ in marks(axes) if np.isfinite(x)])) == (["Hip"], 2)


def test_marks_are_the_coefficients_and_filled_where_significant():
    table = associations(3, 6, 2)
    correlations, shares = plots.forest(table).axes
    for axes, kind in ((correlations, "continuous"), (shares, "categorical")):
        rows = table[table["kind"] == kind]
        drawn = {(x, round(y), hollow) for x, y, _, hollow in marks(axes)}
        names = list(dict.fromkeys(rows["variable"]))
        assert drawn == {(row.coefficient, names.index(row.variable), row.q >= 0.05) for row in rows.itertuples()}
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
    kept, names = set(strength.sort_values().index[-40:]), row_names(figure.axes[0])
    assert len(names) == 40
    assert [name.strip().replace(r"\$", "$") for name in names] == [name for name in strength.index if name in kept]
    assert "40 strongest of 60" in figure.get_supxlabel()
    assert figure.get_size_inches()[1] > 10


@pytest.mark.parametrize(
    ("left", "right", "base"),
    [
        ("lHip", "rHip", "Hip"),
        ("lh_G_cuneus_volume", "rh_G_cuneus_volume", "G_cuneus_volume"),
        ("lhCortexVol", "rhCortexVol", "CortexVol"),
        ("Left-Amygdala", "Right-Amygdala", "Amygdala"),
        ("Left ACgG anterior cingulate gyrus", "Right ACgG anterior cingulate gyrus", "ACgG anterior cingulate gyrus"),
        ("Thalamus_L", "Thalamus_R", "Thalamus"),
        ("L_Thalamus", "R_Thalamus", "Thalamus"),
        ("Thalamus (left)", "Thalamus (right)", "Thalamus"),
        ("Hippocampus_L_volume", "Hippocampus_R_volume", "Hippocampus_volume"),
        ("ctx-lh-insula", "ctx-rh-insula", "ctx-insula"),
        ("ctx_lh_G_cuneus", "ctx_rh_G_cuneus", "ctx_G_cuneus"),
        ("LEFT.PUTAMEN", "RIGHT.PUTAMEN", "PUTAMEN"),
        ("leftPutamen", "rightPutamen", "Putamen"),
    ],
)
def test_sides_of_names(left, right, base):
    assert (split_side(left), split_side(right)) == (("left", base), ("right", base))
    assert pair_sides([right, "Brain stem", left]) == {left: ("left", base), right: ("right", base)}


@pytest.mark.parametrize(
    "name", ["Brain stem", "lingual", "rostral", "lateral", "Lingual", "L", "l_", "R1", "roi_r_3", ""]
)
def test_names_without_a_side(name):
    assert split_side(name) == ("", name)


def test_pairs_need_both_sides_and_one_meaning():
    assert (pair_sides(["lHip", "lAmy"]), pair_sides(["lHip", "rHip", "Hip"])) == ({}, {})
    assert (pair_sides(["lHip", "L_Hip", "rHip"]), pair_sides(["lHip", "rHip", "rHip"])) == ({}, {})
