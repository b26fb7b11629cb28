import numpy as np
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


def test_one_wild_rate_does_not_set_the_scale():
    change, summary = rates(2, 100)
    change["r1_per_year"] = change["r1_per_year"].clip(-0.04, 0.04)
    change["r2_per_year"] = change["r2_per_year"].clip(-0.04, 0.04)
    assert plots.change_lines(change, summary).axes[0].get_xlabel() == ""
    change.loc[0, ["r1_per_year", "r2_per_year"]] = 90.0
    [axes] = plots.change_lines(change, summary).axes
    assert axes.get_ylim()[1] < 1
    assert axes.get_xlabel() == "1 person lies beyond the scale"


def test_one_group_and_unknown_intervals():
    change, summary = rates(1, 2, ("patient",))
    assert plots.figure_svg(plots.change_lines(change, summary.assign(low=np.nan, high=np.nan)))
    with pytest.raises(ValueError, match="at least one group"):
        plots.change_lines(change, summary.iloc[:0])


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
    counts = table.assign(far=flagged).groupby("group")["far"].agg(["sum", "size"])
    expected = [f"{counts['sum'][key]} of {counts['size'][key]} flagged" for key in ("control", "patient", "other")]
    assert [name.split("\n")[1] for name in row_names(axes)] == expected
    assert axes.get_xscale() == "linear"
    assert plots.outlier_distances(distances(factor=100)).axes[0].get_xscale() == "log"


def test_reason_alone_marks_and_other_reasons_do_not():
    table = distances().assign(flags=np.nan)
    table.loc[:4, "reason"] = "outlier"
    table.loc[5:9, "reason"] = "site without enough controls"
    labels = row_names(plots.outlier_distances(table.assign(group="patient")).axes[0])
    assert labels == ["Patients\n5 of 300 flagged"]


def test_people_without_a_distance_are_not_drawn():
    table = distances()
    table.loc[table["group"] == "other", "distance"] = np.nan
    assert len(row_names(plots.outlier_distances(table).axes[0])) == 2
    with pytest.raises(ValueError, match="at least one person"):
        plots.outlier_distances(table.assign(distance=np.nan))
