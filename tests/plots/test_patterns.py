import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.plots.patterns_and_associations import ASIDE
from tests.plots.tables import changes, marks, row_names


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
    assert row_names(axes) == ["Hip"]
    assert len([x for x, *_ in marks(axes) if np.isfinite(x)]) == 2
