"""Figures of scores, patterns and associations: what is drawn matches the tables."""

import re

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.plots.patterns_and_associations import ASIDE
from rindices.regions import pair_sides, split_side
from tests.pages.page import missing
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


def bars(axes, along):
    """Return the ends of all intervals along an axis."""
    lines = [line for line in axes.collections if hasattr(line, "get_segments")]
    return sorted(tuple(path[:, along]) for line in lines for path in line.get_segments())


def beside(axes):
    return [text.get_text() for text in axes.texts]


def test_distributions_count_people_with_a_value():
    table = people(2, n_controls=10, n_patients=20, n_other=3)
    table.loc[0, "r2"] = np.nan
    labels = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in plots.r_index_distributions(table).axes]
    assert labels == [[f"Controls\nn = {n}", "Patients\nn = 20", "Others\nn = 3"] for n in (10, 9)]


def test_histogram_is_bounded_and_counts_everybody():
    severities = [*np.zeros(40), *np.linspace(0, 1, 60)[:-1], 7.0]  # one outlier does not stretch the scale
    table = pd.DataFrame({"group": ["control"] * 40 + ["patient"] * 60, "severity1": severities})
    [axes] = plots.severity_histogram(table, "severity1").axes
    controls, patients = axes.patches
    assert row_names(axes) == ["Controls", "Patients"]
    assert 0 == controls.get_data().edges[0] < patients.get_data().edges[-1] < 7  # no bar below 0
    assert not missing(patients.get_gid(), "n = 60", "1 above")
    assert axes.texts[0].get_text().startswith("1: largest change learned")


def test_few_people_are_marks_among_those_of_the_training():
    few, many = people(2, n_controls=2, n_patients=0, n_other=0), people(2, n_controls=30, n_patients=40, n_other=0)
    [alone], [among] = plots.severity_histogram(few, "r2").axes, plots.severity_histogram(few, "r2", many).axes
    assert (len(alone.patches), row_names(among)) == (0, ["Training controls", "Training patients", "Controls"])
    assert sorted(among.collections[-1].get_offsets()[:, 0]) == pytest.approx(sorted(few["r2"]))


def test_mixture_counts_patterns_of_each_person():
    severities = {"severity1": [0.0, 0.9, 0.9, 0.1, 0.0], "severity2": [0.0, 0.9, 0.1, 0.8, 0.9]}
    [axes] = plots.pattern_mixture(
        pd.DataFrame({"group": ["control", *["patient"] * 4], **severities}), [0.2, 0.3]
    ).axes
    assert beside(axes) == ["100", "0", "0", "0", "75", "25"]


def test_recovery_titles_and_shapes():
    scores = people(2)[["r1", "r2"]]
    figure = plots.recovery(scores.set_axis(["s2", "s1"], axis=1), scores, [0.91234, 0.5])
    assert [(axes.get_title(), axes.get_xlabel()) for axes in figure.axes] == [
        ("Pattern 1\nconcordance 0.912", "Known severity s2"),
        ("Pattern 2\nconcordance 0.500", "Known severity s1"),
    ]


def test_means_of_groups_with_their_intervals():
    change, summary = rates(3)
    figure = plots.change_lines(change, summary)
    [axes] = figure.axes
    drawn = {(round(x), y, marker) for x, y, marker, *_ in marks(axes)}
    markers = {"control": "o", "patient": "^", "other": "s"}
    assert drawn == {(row.pattern - 1, row.mean, markers[row.group]) for row in summary.itertuples()}
    assert bars(axes, 1) == sorted(zip(summary["low"], summary["high"], strict=True))
    assert [len(cloud.get_offsets()) for cloud in axes.collections if not hasattr(cloud, "get_segments")] == [40] * 9
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Pattern 1", "Pattern 2", "Pattern 3"]
    assert labels_of(figure) == ["Controls (n = 40)", "Patients (n = 40)", "Others (n = 40)"]


def test_flagged_people_are_crosses():
    table = distances(factor=2.0)
    [axes] = plots.outlier_distances(table).axes
    flagged = table["far_in"] != ""
    crosses = [cloud for cloud in axes.collections if tuple(cloud.get_facecolor().ravel()) in ((), (0, 0, 0, 1))]
    for clouds, people_in_them in ((crosses, table[flagged]), (axes.collections, table)):
        found = np.concatenate([cloud.get_offsets()[:, 0] for cloud in clouds])
        assert sorted(found) == pytest.approx(sorted(people_in_them["distance"]))
    assert row_names(axes) == ["Controls", "Patients", "Others"]
    assert f"{flagged.sum()} of {len(table)} are outliers" in axes.get_xlabel()
    assert (axes.get_xscale(), plots.outlier_distances(distances(factor=100)).axes[0].get_xscale()) == ("linear", "log")


def test_outliers_are_marked_where_they_are_ones():
    table = distances(factor=2.0).assign(size=0.0, farthest=2.0, far_in="")
    table.loc[[3, 7], "far_in"] = ["size", "distance farthest"]
    labels = [re.search(r"^(\w+) .*\n(\d+) ", axes.get_xlabel()) for axes in plots.outlier_distances(table).axes]
    assert [label.groups() for label in labels] == [("Distance", "1"), ("Overall", "1"), ("Most", "1")]


def test_each_region_is_a_line_with_its_name():
    table = doses(2, 3, names=["a", "b", "c"])
    figure = plots.dose_response(table)
    for pattern, axes in enumerate(figure.axes, start=1):
        lines = [list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 5]
        rows = table[table["pattern"] == pattern]
        # The region farthest from zero comes first.
        assert lines == [rows.loc[rows["region"] == name, "mean"].tolist() for name in "cba"]
        assert beside(axes) == ["c", "b", "a"]
        assert bars(axes, 1) == sorted(zip(rows["mean_low"], rows["mean_high"], strict=True))
        assert axes.get_title(loc="left") == f"Pattern {pattern} (20 to 100 people per point)"
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_subgroups_of_the_strongest_regions():
    effects, sizes = subgroups(2, 20, names=[])
    figure, markers = plots.subgroup_dots(effects, sizes, top=4), {"low": "o", "middle": "s", "high": "^"}
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = effects[effects["pattern"] == pattern]
        names = list(rows["effect"].abs().groupby(rows["region"]).max().nlargest(4).index)
        assert row_names(axes) == names
        expected = {
            (row.effect, names.index(row.region), markers[row.level], row.q >= 0.05)
            for row in rows[rows["region"].isin(names)].itertuples()
        }
        assert {(x, round(y), marker, hollow) for x, y, marker, hollow, _ in marks(axes)} == expected
    sizes = [axes.get_title(loc="right") for axes in figure.axes]
    assert sizes == [f"1,234 low, 1,234 middle, {last}" for last in ("1,234 high", "3 high (not tested)")]
    assert labels_of(figure) == [f"patients, {level} severity" for level in markers]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_rows_are_the_strongest_changes():
    table = changes(2)
    figure = plots.pattern_dots(table, top=5)
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = table[table["pattern"] == pattern].sort_values("change_sd", key=abs, ascending=False)[:5]
        drawn = [(x, y) for x, y, *_ in marks(axes) if np.isfinite(x)]
        assert drawn == list(zip(rows["change_sd"], range(5), strict=True))
        assert row_names(axes) == rows["region"].tolist()
        assert beside(axes) == [f"{value:+.1f} %".replace("-", "−") for value in rows["change_percent"]]
        ends = [path[:, 0] for bar in axes.collections for path in bar.get_segments()]
        assert np.array(ends) == pytest.approx(np.add.outer(rows["change_sd"].to_numpy(), [-0.1, 0.1]))
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert not figure.legends


def sided():
    """Return two pairs, a region without its counterpart, and one without a side; the strongest is on the right."""
    regions = ["Left-Hip", "Right-Hip", "Left-Amy", "Right-Amy", "Left-Put", "Stem"]
    table = pd.DataFrame({"region": regions, "change_sd": [-0.5, -2.0, -1.0, 0.25, -1.5, 0.1]})
    return table.assign(pattern=1, spread_sd=0.05, change_percent=10 * table["change_sd"])


def test_twins_share_a_row_and_are_never_parted():
    [axes] = plots.pattern_dots(sided()).axes
    assert row_names(axes) == ["Hip", "Left-Put", "Amy", "Stem"]
    assert {(x, round(y, 3), marker) for x, y, marker, *_ in marks(axes) if np.isfinite(x)} == {
        (-0.5, 0 - ASIDE, "<"),
        (-2.0, 0 + ASIDE, ">"),
        (-1.5, 1, "o"),
        (-1.0, 2 - ASIDE, "<"),
        (0.25, 2 + ASIDE, ">"),
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
        places = pd.factorize(rows["variable"])[0]
        drawn = sorted((x, round(y), hollow) for x, y, _, hollow, _ in marks(axes))
        assert drawn == sorted(zip(rows["coefficient"], places, rows["q"] >= 0.05, strict=True))
        assert bars(axes, 0) == sorted(zip(rows["low"], rows["high"], strict=True))
    assert shares.get_xlim() == pytest.approx((0, 1), abs=0.05)
    low, high = correlations.get_xlim()
    assert -low == high > table["high"].max()


def test_people_and_values_that_count_as_one_are_named():
    table = associations(2, 3, 0, names=["mmse", "apoe4", "sex"])
    table["level"] = [np.nan, np.nan, 1.0, 1.0, np.nan, np.nan]
    table.loc[4:, "n"] = [1190, 1200]
    other = table.assign(people="everybody", n=9999)
    [axes] = plots.forest(pd.concat([table, other])).axes
    assert (row_names(axes), beside(axes)) == (["mmse", "apoe4: 1", "sex"], ["n", "120", "120", "≤ 1,200"])
    [axes] = plots.forest(other.assign(level=["", "", "", "", "F", "F"]), people="everybody").axes
    assert row_names(axes) == ["mmse", "apoe4", "sex: F"]
    assert "all participants" in axes.get_xlabel()


def test_forty_strongest_of_many_in_the_order_of_the_table():
    table = associations(2, 60, 0)
    figure = plots.forest(table)
    strength = table["coefficient"].abs().groupby(table["variable"], sort=False).max()
    names = [name.strip().replace(r"\$", "$") for name in row_names(figure.axes[0])]
    assert names == strength[strength.rank() > 20].index.tolist()  # 40 of 60
    assert "40 most strongly associated of 60" in figure.get_supxlabel()


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
    assert pair_sides([right, "Brain stem", left]) == {left: ("left", base), right: ("right", base)}


@pytest.mark.parametrize(
    "name", ["Brain stem", "lingual", "rostral", "lateral", "Lingual", "L", "l_", "R1", "roi_r_3", ""]
)
def test_names_without_a_side(name):
    assert split_side(name) == ("", name)


def test_pairs_need_both_sides_and_one_meaning():
    others = ["lHip", "lAmy"], ["lHip", "rHip", "Hip"], ["lHip", "L_Hip", "rHip"], ["lHip", "rHip", "rHip"]
    assert [pair_sides(names) for names in others] == [{}] * 4
