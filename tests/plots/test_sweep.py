import numpy as np
import pandas as pd
import pytest

from rindices import plots
from tests.plots.tables import INDICES, labels_of, selection, settings


def test_agreement_marks_and_names_the_chosen_checkpoint():
    figure = plots.agreement_over_training(selection())
    upper, lower = figure.axes
    assert "0.5 = chance" in upper.get_ylabel()
    assert "(0 = chance" in lower.get_ylabel()
    assert "chosen: step 2,000" in [text.get_text() for text in figure.legends[0].get_texts()]
    marked = [line for line in upper.lines if len(np.atleast_1d(line.get_xdata())) == 1]
    assert [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in marked] == [(2000, 0.8)]


def test_agreement_draws_the_chosen_setting_only():
    other = selection().assign(orthogonality=0.4, chosen=False, pattern_agreement=0.55)
    figure = plots.agreement_over_training(pd.concat([other, selection()], ignore_index=True))
    assert list(figure.axes[0].lines[0].get_ydata()) == [0.6, 0.8, 0.7]


def test_agreement_without_values_is_still_a_figure():
    table = selection(1)
    table[["pattern_agreement", "dimension_correlation"]] = np.nan
    assert plots.figure_svg(plots.agreement_over_training(table))


def single_points(axes):
    """Return the markers drawn on their own: place, value, marker, size, and whether hollow."""
    lines = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    found = [(line.get_xdata()[0], line.get_ydata()[0], line.get_marker(), line) for line in lines]
    return [(*place, line.get_markersize(), line.get_markerfacecolor() in ("white", "none")) for *place, line in found]


def test_settings_are_drawn_at_their_best_with_intervals():
    table = settings()
    figure = plots.agreement_over_settings(table)
    best = table[table["best"]]
    for axes, column in zip(figure.axes, INDICES, strict=True):
        points = {(round(x), y) for x, y, *_ in single_points(axes)}
        assert points == set(zip(best["n_patterns"], best[column], strict=True))
        bars = sorted(tuple(path[:, 1]) for bar in axes.collections for path in bar.get_segments())
        expected = sorted(zip(best[f"{column}_low"], best[f"{column}_high"], strict=True))
        assert np.asarray(bars) == pytest.approx(np.asarray(expected))
    places = sorted({x for x, *_ in single_points(figure.axes[0])})
    assert len(places) == 6
    assert min(np.diff(places)) > 0.05


def test_settings_differ_in_colour_marker_and_line():
    figure = plots.agreement_over_settings(settings(weights=(0.05, 0.1, 0.2, 0.4, 0.8, 1.6)))
    handles = figure.legends[0].legend_handles[:6]
    assert len({handle.get_color() for handle in handles}) == 6
    assert len({handle.get_marker() for handle in handles}) == 6
    assert len({str((handle.get_linestyle(), handle._unscaled_dash_pattern)) for handle in handles}) == 6
    assert labels_of(figure)[0] == "orthogonality 0.05"


def test_chosen_setting_has_a_ring_and_a_label():
    figure = plots.agreement_over_settings(settings())
    assert "chosen: 3 patterns, orthogonality 0.8" in labels_of(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["chosen"]
    for axes, value in zip(figure.axes, (0.95, 0.85, 0.75), strict=True):
        [(x, y)] = [(x, y) for x, y, _, size, hollow in single_points(axes) if hollow and size > 10]
        assert (round(x), y) == (3, pytest.approx(value))
    assert "small and hollow: fewer models" not in labels_of(figure)


def test_settings_with_fewer_models_are_small_and_hollow():
    table = settings(weights=(0.8,))
    table.loc[table["n_patterns"] == 4, "n_models"] = 3
    figure = plots.agreement_over_settings(table)
    sizes = {round(x): (size, hollow) for x, _, _, size, hollow in single_points(figure.axes[0]) if size < 10}
    assert sizes[4][0] < sizes[2][0] == sizes[3][0]
    assert [sizes[number][1] for number in (2, 3, 4)] == [False, False, True]
    assert "small and hollow: fewer models" in labels_of(figure)


def test_one_pattern_is_hollow_unless_alone():
    note = "M = 1 is never chosen by agreement"
    figure = plots.agreement_over_settings(settings((1, 2, 3), (0.8,)))
    hollow = {round(x): hollow for x, _, _, size, hollow in single_points(figure.axes[0]) if size < 10}
    assert hollow == {1: True, 2: False, 3: False}
    assert note in labels_of(figure)
    [line] = [line for line in figure.axes[0].lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 1][:1]
    assert list(line.get_xdata()) == [2, 3]
    alone = plots.agreement_over_settings(settings((1,), (0.2, 0.8), (1, 0.8)))
    assert not any(hollow for _, _, _, size, hollow in single_points(alone.axes[0]) if size < 10)
    assert note not in labels_of(alone)
    assert "chosen: 1 pattern, orthogonality 0.8" in labels_of(alone)


def test_settings_without_intervals_or_values():
    table = settings()
    table[[name for name in table.columns if name.endswith(("_low", "_high"))]] = np.nan
    assert plots.figure_svg(plots.agreement_over_settings(table))
    table[list(INDICES)] = np.nan
    assert plots.figure_svg(plots.agreement_over_settings(table))


def test_wide_interval_does_not_flatten_the_panel():
    table = settings()
    table["pattern_agreement_low"] = -2.0
    assert plots.agreement_over_settings(table).axes[0].get_ylim()[0] > 0.1


def test_null_statistics_are_dots_and_the_data_a_line():
    values = [0.53, 0.51, 0.5101, 0.56]
    figure = plots.null_statistics(values, 0.93)
    [axes] = figure.axes
    dots, data, _ = axes.lines
    assert sorted(dots.get_xdata()) == sorted(values)
    assert list(dots.get_ydata()) == [1, 2, 1, 1]
    assert list(data.get_xdata()) == [0.93, 0.93]
    assert labels_of(figure) == ["4 cohorts without disease", "these data: 0.930"]
    assert axes.get_xlim()[0] < 0.5
    assert axes.get_xlim()[1] > 0.93
    with pytest.raises(ValueError, match="at least one cohort"):
        plots.null_statistics([], 0.93)
