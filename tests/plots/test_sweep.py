import numpy as np
import pytest

from rindices import plots
from rindices.plots.style import PATIENT
from tests.plots.tables import INDICES, labels_of, selection, settings


def test_agreement_marks_and_names_the_chosen_checkpoint():
    figure = plots.agreement_over_training(selection())
    upper, lower = figure.axes
    assert "0.5 = chance" in upper.get_ylabel()
    assert "(0 = chance" in lower.get_ylabel()
    assert "chosen: step 2,000" in [text.get_text() for text in figure.legends[0].get_texts()]
    marked = [line for line in upper.lines if len(np.atleast_1d(line.get_xdata())) == 1]
    assert [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in marked] == [(2000, 0.8)]


def single_points(axes):
    """Return the markers drawn on their own: place, value, marker, size, and whether hollow."""
    lines = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    found = [(line.get_xdata()[0], line.get_ydata()[0], line.get_marker(), line) for line in lines]
    return [(*place, line.get_markersize(), line.get_markerfacecolor() in ("white", "none")) for *place, line in found]


def test_settings_are_drawn_at_their_best_with_intervals():
    table = settings().assign(misfit=np.arange(12.0))
    figure, best = plots.agreement_over_settings(table), table[table["best"]]
    first, misfit, *others = figure.axes
    assert {y for _, y, *_ in single_points(misfit)} == {*best["misfit"]}
    for axes, column in zip([first, *others], INDICES, strict=True):
        points = {(round(x), y) for x, y, *_ in single_points(axes)}
        assert points == set(zip(best["n_patterns"], best[column], strict=True))
        bars = sorted(tuple(path[:, 1]) for bar in axes.collections for path in bar.get_segments())
        expected = sorted(zip(best[f"{column}_low"], best[f"{column}_high"], strict=True))
        assert np.asarray(bars) == pytest.approx(np.asarray(expected))
    places = sorted({x for x, *_ in single_points(figure.axes[0])})
    assert len(places) == 6
    assert min(np.diff(places)) > 0.05


def test_chosen_setting_has_a_ring_and_a_label():
    figure = plots.agreement_over_settings(settings())
    assert "chosen: 3 patterns, orthogonality 0.8" in labels_of(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["chosen"]
    for axes, value in zip(figure.axes, (0.95, 0.85, 0.75), strict=True):
        [(x, y)] = [(x, y) for x, y, _, size, hollow in single_points(axes) if hollow and size > 10]
        assert (round(x), y) == (3, pytest.approx(value))
    assert "small and hollow: fewer models" not in labels_of(figure)


def test_directions_beyond_chance_are_told_from_the_others():
    values, band = [9.0, 4.0, 3.2, 1.8], [3.3, 3.1, 2.9, 2.8]
    figure = plots.spectrum(values, band, 3.3)
    [axes] = figure.axes
    limit, line, beyond, within = axes.lines
    assert (list(limit.get_ydata()), list(line.get_ydata())) == ([3.3, 3.3], values)
    assert [(list(dots.get_xdata()), list(dots.get_ydata())) for dots in (beyond, within)] == [
        ([1, 2], [9.0, 4.0]),
        ([3, 4], [3.2, 1.8]),
    ]
    assert (beyond.get_markerfacecolor(), within.get_markerfacecolor()) == (PATIENT, "white")
    [area] = axes.collections
    assert max(area.get_paths()[0].vertices[:, 1]) == 3.3
    assert (labels_of(figure), axes.get_ylim()[0]) == (["permuted groups", "limit: 3.3", "beyond chance"], 0)
