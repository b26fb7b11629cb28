import pytest

from rindices import plots
from tests.plots.tables import distances, labels_of, marks, rates, row_names


def test_means_of_groups_with_their_intervals():
    change, summary = rates(3)
    figure = plots.change_lines(change, summary)
    [axes] = figure.axes
    drawn = {(round(x), y, marker) for x, y, marker, _ in marks(axes)}
    markers = {"control": "o", "patient": "^", "other": "s"}
    assert drawn == {(row["pattern"] - 1, row["mean"], markers[row["group"]]) for row in summary.to_dict("records")}
    bars = [
        tuple(path[:, 1]) for bar in axes.collections if hasattr(bar, "get_segments") for path in bar.get_segments()
    ]
    assert sorted(bars) == sorted(zip(summary["low"], summary["high"], strict=True))
    clouds = [bar.get_offsets() for bar in axes.collections if not hasattr(bar, "get_segments")]
    assert sorted(len(cloud) for cloud in clouds) == [40] * 9
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Pattern 1", "Pattern 2", "Pattern 3"]
    assert labels_of(figure) == ["Controls (n = 40)", "Patients (n = 40)", "Others (n = 40)"]


def test_flagged_people_are_crosses():
    table = distances(factor=2.0)
    figure = plots.outlier_distances(table)
    [axes] = figure.axes
    flagged = table["flags"] != ""
    crosses = [cloud for cloud in axes.collections if tuple(cloud.get_facecolor().ravel()) in ((), (0, 0, 0, 1))]
    found = sorted(float(x) for cloud in crosses for x in cloud.get_offsets()[:, 0])
    assert found == pytest.approx(sorted(table.loc[flagged, "distance"]))
    everybody = sorted(float(x) for cloud in axes.collections for x in cloud.get_offsets()[:, 0])
    assert everybody == pytest.approx(sorted(table["distance"]))
    assert row_names(axes) == ["Controls", "Patients", "Others"]
    assert f"{flagged.sum()} of {len(table)} are outliers" in axes.get_xlabel()
    assert axes.get_xscale() == "linear"
    assert plots.outlier_distances(distances(factor=100)).axes[0].get_xscale() == "log"


def test_outliers_are_marked_where_they_are_ones():
    table = distances(factor=2.0).assign(size=0.0, farthest=2.0, flags="", far_in="")
    table.loc[[3, 7], "far_in"] = ["size", "distance farthest"]
    figure = plots.outlier_distances(table)
    marked = [int(axes.get_xlabel().split("\n")[1].split(" ")[0]) for axes in figure.axes]
    assert marked == [1, 1, 1]
    assert [axes.get_xlabel().split(" ")[0] for axes in figure.axes] == ["Distance", "Size", "Farthest"]
