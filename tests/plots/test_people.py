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
    counts = table.assign(far=flagged).groupby("group")["far"].agg(["sum", "size"])
    expected = [f"{counts['sum'][key]} of {counts['size'][key]} flagged" for key in ("control", "patient", "other")]
    assert [name.split("\n")[1] for name in row_names(axes)] == expected
    assert axes.get_xscale() == "linear"
    assert plots.outlier_distances(distances(factor=100)).axes[0].get_xscale() == "log"
