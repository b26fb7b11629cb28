"""Figures of scores, patterns and associations: what is drawn is what the tables have."""

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.plots.patterns_and_associations import ASIDE
from rindices.regions import pair_sides, split_side
from tests.plots.tables import (
    associations,
    changes,
    distances,
    doses,
    labels_of,
    marks,
    people,
    rates,
    row_names,
    subgroups,
)


def test_distributions_count_people_with_a_value():
    table = people(2, n_controls=10, n_patients=20, n_other=3)
    table.loc[0, "r2"] = np.nan
    labels = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in plots.r_index_distributions(table).axes]
    assert labels[0] == ["Controls\nn = 10", "Patients\nn = 20", "Others\nn = 3"]
    assert labels[1] == ["Controls\nn = 9", "Patients\nn = 20", "Others\nn = 3"]


def test_histogram_is_bounded_and_counts_everybody():
    table = pd.DataFrame({"group": ["control"] * 40 + ["patient"] * 60, "severity1": 0.0})
    table.loc[40:, "severity1"] = np.linspace(0, 1, 60)
    table.loc[99, "severity1"] = 7.0  # one person far away does not stretch the scale
    [axes] = plots.severity_histogram(table, "severity1").axes
    controls, patients = axes.patches
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["Controls", "Patients"]
    assert controls.get_data().edges[0] == 0  # nobody is below
    assert patients.get_data().edges[-1] < 7
    assert not [part for part in ("n = 60", "1 beyond") if part not in patients.get_gid()]
    assert axes.texts[0].get_text().startswith("1: largest change learned")


def test_few_people_are_marks_among_those_of_the_training():
    few, many = people(2, n_controls=2, n_patients=0, n_other=0), people(2, n_controls=30, n_patients=40, n_other=0)
    [alone], [among] = plots.severity_histogram(few, "r2").axes, plots.severity_histogram(few, "r2", many).axes
    assert len(alone.patches) == 0
    labels = [tick.get_text() for tick in among.get_yticklabels()]
    assert labels == ["Training controls", "Training patients", "Controls"]
    assert sorted(among.collections[-1].get_offsets()[:, 0]) == pytest.approx(sorted(few["r2"]))


def test_mixture_counts_patterns_of_each_person():
    table = pd.DataFrame({"group": ["control", "patient", "patient", "patient", "patient"]})
    table["severity1"], table["severity2"] = [0.0, 0.9, 0.9, 0.1, 0.0], [0.0, 0.9, 0.1, 0.8, 0.9]
    [axes] = plots.pattern_mixture(table, [0.2, 0.3]).axes
    assert [text.get_text() for text in axes.texts] == ["100", "0", "0", "0", "75", "25"]


def test_severity_against_age_has_a_line_for_each_group():
    table = people(1, n_controls=30, n_patients=40, n_other=3).assign(age=np.linspace(50, 80, 73))
    [axes] = plots.severity_by_age(table, "r1", "age").axes
    assert (len(axes.collections), len(axes.lines)) == (3, 4)


def test_recovery_titles_and_shapes():
    scores = people(2)[["r1", "r2"]]
    figure = plots.recovery(scores.set_axis(["s2", "s1"], axis=1), scores, [0.91234, 0.5])
    assert [axes.get_title() for axes in figure.axes] == [
        "Pattern 1\nconcordance 0.912",
        "Pattern 2\nconcordance 0.500",
    ]
    assert figure.axes[0].get_xlabel() == "Known severity s2"
    with pytest.raises(ValueError, match="argument"):
        plots.recovery(scores[["r1"]], scores, [0.9, 0.8])


def test_means_of_groups_with_their_intervals():
    change, summary = rates(3)
    figure = plots.change_lines(change, summary)
    [axes] = figure.axes
    drawn = {(round(x), y, marker) for x, y, marker, _ in marks(axes)}
    markers = {"control": "o", "patient": "^", "other": "s"}
    assert drawn == {(row["pattern"] - 1, row["mean"], markers[row["group"]]) for row in summary.to_dict("records")}
    assert sorted(
        [tuple(path[:, 1]) for bar in axes.collections if hasattr(bar, "get_segments") for path in bar.get_segments()]
    ) == sorted(zip(summary["low"], summary["high"], strict=True))
    clouds = [bar.get_offsets() for bar in axes.collections if not hasattr(bar, "get_segments")]
    assert sorted(len(cloud) for cloud in clouds) == [40] * 9
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Pattern 1", "Pattern 2", "Pattern 3"]
    assert labels_of(figure) == ["Controls (n = 40)", "Patients (n = 40)", "Others (n = 40)"]


def test_flagged_people_are_crosses():
    table = distances(factor=2.0)
    [axes] = plots.outlier_distances(table).axes
    flagged = table["far_in"] != ""
    crosses = [cloud for cloud in axes.collections if tuple(cloud.get_facecolor().ravel()) in ((), (0, 0, 0, 1))]
    found = sorted(float(x) for cloud in crosses for x in cloud.get_offsets()[:, 0])
    assert found == pytest.approx(sorted(table.loc[flagged, "distance"]))
    everybody = sorted(float(x) for cloud in axes.collections for x in cloud.get_offsets()[:, 0])
    assert everybody == pytest.approx(sorted(table["distance"]))
    assert row_names(axes) == ["Controls", "Patients", "Others"]
    assert f"{flagged.sum()} of {len(table)} are outliers" in axes.get_xlabel()
    assert (axes.get_xscale(), plots.outlier_distances(distances(factor=100)).axes[0].get_xscale()) == ("linear", "log")


def test_outliers_are_marked_where_they_are_ones():
    table = distances(factor=2.0).assign(size=0.0, farthest=2.0, far_in="")
    table.loc[[3, 7], "far_in"] = ["size", "distance farthest"]
    figure = plots.outlier_distances(table)
    assert [int(axes.get_xlabel().split("\n")[1].split(" ")[0]) for axes in figure.axes] == [1, 1, 1]
    assert [axes.get_xlabel().split(" ")[0] for axes in figure.axes] == ["Distance", "Size", "Farthest"]


def test_each_region_is_a_line_with_its_name():
    table = doses(2, 3, names=["a", "b", "c"])
    figure = plots.dose_response(table)
    for pattern, axes in enumerate(figure.axes, start=1):
        lines = [list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 5]
        rows = table[table["pattern"] == pattern]
        # The farthest from zero comes first.
        assert lines == [rows.loc[rows["region"] == name, "mean"].tolist() for name in "cba"]
        assert [text.get_text() for text in axes.texts] == ["c", "b", "a"]
        bars = sorted(tuple(path[:, 1]) for bar in axes.collections for path in bar.get_segments())
        assert bars == sorted(zip(rows["mean_low"], rows["mean_high"], strict=True))
        assert axes.get_title(loc="left") == f"Pattern {pattern} (20 to 100 people per point)"
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_subgroups_of_the_strongest_regions():
    effects, sizes = subgroups(2, 20, names=[])
    figure = plots.subgroup_dots(effects, sizes, top=4)
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = effects[effects["pattern"] == pattern]
        reach = {name: max(abs(rows.loc[rows["region"] == name, "effect"])) for name in set(rows["region"])}
        names = sorted(reach, key=reach.get)[:-5:-1]
        assert row_names(axes) == names
        markers = {"low": "o", "middle": "s", "high": "^"}
        expected = {
            (row.effect, names.index(row.region), markers[row.level], row.q >= 0.05)
            for row in rows[rows["region"].isin(names)].itertuples()
        }
        assert {(x, round(y), marker, hollow) for x, y, marker, hollow in marks(axes)} == expected
    assert figure.axes[0].get_title(loc="right") == "1,234 low, 1,234 middle, 1,234 high"
    assert figure.axes[1].get_title(loc="right") == "1,234 low, 1,234 middle, 3 high (not tested)"
    assert labels_of(figure) == [f"patients, {level} severity" for level in ("low", "middle", "high")]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


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


def test_twins_share_a_row_and_are_never_parted():
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
    assert "all participants" in axes.get_xlabel()


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
