import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from rindices import plots

INDICES = ("pattern_agreement", "dimension_correlation", "difference_correlation")
LONG = "Left posterior parahippocampal gyrus v1"


def people(n_patterns=3, n_controls=30, n_patients=50, n_other=0):
    rng = np.random.default_rng(0)
    groups = ["control"] * n_controls + ["patient"] * n_patients + ["other"] * n_other
    scores = {f"r{place}": rng.uniform(size=len(groups)) for place in range(1, n_patterns + 1)}
    spreads = {f"{name}_sd": 0.01 for name in scores}
    return pd.DataFrame({"group": groups, **scores, **spreads})


def changes(n_patterns=2, n_regions=20, name="region {}"):
    rng = np.random.default_rng(1)
    rows = [
        {"region": name.format(region), "pattern": pattern, "change_sd": rng.normal() * pattern}
        for pattern in range(1, n_patterns + 1)
        for region in range(n_regions)
    ]
    table = pd.DataFrame(rows)
    return table.assign(change_percent=table["change_sd"] * 7.0, spread_sd=0.1)


def selection(n_patterns=3):
    steps = [1000, 2000, 3000]
    table = pd.DataFrame({"n_patterns": n_patterns, "orthogonality": 0.8, "step": steps, "n_models": 5})
    table["pattern_agreement"] = [0.6, 0.8, 0.7]
    table["dimension_correlation"] = [0.2, 0.7, 0.6]
    table["difference_correlation"] = [0.1, 0.6, 0.5] if n_patterns > 1 else np.nan
    return table.assign(chosen=[False, True, False])


def settings(numbers=(2, 3, 4), weights=(0.2, 0.8), chosen=(3, 0.8), n_models=10):
    """Two checkpoints for each setting, the second its best; agreement falls with the distance from the chosen."""
    rows = []
    for number in numbers:
        for weight in weights:
            value = 0.95 - 0.05 * abs(number - chosen[0]) - 0.1 * abs(weight - chosen[1])
            row = {"n_patterns": number, "orthogonality": weight, "step": 2000, "n_models": n_models}
            row |= {"best": True, "chosen": (number, weight) == chosen}
            for column, known in zip(
                INDICES, (value, value - 0.1, np.nan if number == 1 else value - 0.2), strict=True
            ):
                row |= {column: known, f"{column}_low": known - 0.03, f"{column}_high": min(known + 0.02, 1)}
            rows += [row, {**row, "step": 1000, "best": False, "chosen": False, INDICES[0]: 0.55}]
    return pd.DataFrame(rows)


KNOWN = people()[["r1", "r2", "r3"]]
FIGURES = {
    "agreement": lambda: plots.agreement_over_training(selection()),
    "settings": lambda: plots.agreement_over_settings(settings()),
    "null": lambda: plots.null_statistics([0.51, 0.52, 0.55], 0.93),
    "distributions": lambda: plots.r_index_distributions(people(n_other=4)),
    "regions": lambda: plots.strongest_regions(changes()),
    "pairs": lambda: plots.r_index_pairs(people()),
    "recovery": lambda: plots.recovery(KNOWN.set_axis(["s2", "s1", "s3"], axis=1), KNOWN, [0.9, 0.8, 0.7]),
}
UNLABELLED = {"distributions": 2, "regions": 1}  # panels that share the label of their row or column


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled_and_svg_repeats(name):
    figure = FIGURES[name]()
    assert isinstance(figure, Figure)
    labels = [axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes]
    assert labels.count("") == UNLABELLED.get(name, 0)
    first = plots.figure_svg(figure)
    assert first == plots.figure_svg(FIGURES[name]())
    assert "<text" in first
    assert "<dc:date>" not in first
    assert re.search(r"font[^;\"]*: [^;\"]*sans-serif", first)


def texts_on_page(figure):
    """Text and box of everything that is written, after the layout has settled."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                hidden |= {tick.label2} | (set() if low <= tick.get_loc() <= high else {tick.label1})
    written = [text for text in figure.findobj(Text) if text not in hidden and text.get_visible()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in written if text.get_text().strip()]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.strongest_regions(changes(8, name=LONG + " {}"), only=3),
        lambda: plots.strongest_regions(changes(2, name=LONG + " {}")),
        lambda: plots.r_index_distributions(people(8, n_controls=1400, n_patients=1400, n_other=1000)),
        lambda: plots.r_index_pairs(people(8)),
        lambda: plots.r_index_pairs(people(2)),
        lambda: plots.agreement_over_training(selection()),
        lambda: plots.agreement_over_settings(settings((1, 2, 3), (0.8,))),
        lambda: plots.agreement_over_settings(settings(range(1, 11), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6))),
        lambda: plots.agreement_over_settings(settings((3,), (0.2, 0.4, 0.8))),
        lambda: plots.null_statistics([0.5 + place / 300 for place in range(19)], 0.93),
    ],
    ids=[
        *("one pattern", "long names", "eight patterns", "pairs of eight", "one pair", "agreement"),
        *("one weight", "six weights", "one number", "null"),
    ],
)
def test_no_text_overlaps_or_leaves_the_page(draw):
    figure = draw()
    found = texts_on_page(figure)
    assert len(found) > 7
    for place, (text, box) in enumerate(found):
        for other, other_box in found[place + 1 :]:
            shared_width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
            shared_height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
            assert shared_width <= 1 or shared_height <= 1, f"{text!r} meets {other!r}"
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text


def test_percentages_stand_right_of_the_bars():
    figure = plots.strongest_regions(changes(1, name=LONG + " {}"))
    boxes = dict(texts_on_page(figure))
    [axes] = figure.axes
    assert all(boxes[text.get_text()].x0 >= axes.bbox.x1 for text in axes.texts)


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


def labels_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


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


def test_distributions_count_people_with_a_value():
    table = people(2, n_controls=10, n_patients=20, n_other=3)
    table.loc[0, "r2"] = np.nan
    figure = plots.r_index_distributions(table)
    labels = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in figure.axes]
    assert labels[0] == ["Controls\nn = 10", "Patients\nn = 20", "Others\nn = 3"]
    assert labels[1] == ["Controls\nn = 9", "Patients\nn = 20", "Others\nn = 3"]


@pytest.mark.parametrize("n_patients", [1, 2])
def test_distributions_of_few_or_equal_values(n_patients):
    table = people(1, n_patients=n_patients).assign(r1=0.5)
    assert plots.figure_svg(plots.r_index_distributions(table))


def test_many_points_become_an_image():
    assert "<image" not in plots.figure_svg(plots.r_index_distributions(people(1)))
    many = plots.figure_svg(plots.r_index_distributions(people(1, n_patients=4000)))
    assert "<image" in many
    assert len(many) < 300_000


def test_patterns_are_ordered_by_number_not_by_letter():
    figure = plots.r_index_distributions(people(11)[["group", "r10", "r2", "r11", "r1"]])
    assert [axes.get_title() for axes in figure.axes] == ["Pattern 1", "Pattern 2", "Pattern 10", "Pattern 11"]


def test_bars_are_the_strongest_changes():
    table = changes(2)
    figure = plots.strongest_regions(table, top=5)
    for pattern, axes in enumerate(figure.axes, start=1):
        rows = [row for row in table.to_dict("records") if row["pattern"] == pattern]
        rows = sorted(rows, key=lambda row: abs(row["change_sd"]))[: -5 - 1 : -1]
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([row["change_sd"] for row in rows])
        assert [tick.get_text() for tick in axes.get_yticklabels()] == [row["region"] for row in rows]
        beside = [f"{row['change_percent']:+.1f} %".replace("-", "−") for row in rows]
        assert [text.get_text() for text in axes.texts] == beside
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_one_pattern_keeps_the_common_scale():
    both, alone = plots.strongest_regions(changes(2)), plots.strongest_regions(changes(2), only=1)
    assert len(alone.axes) == 1
    assert alone.axes[0].get_xlim() == both.axes[0].get_xlim()
    with pytest.raises(ValueError, match=r"among \[1, 2\], found 3"):
        plots.strongest_regions(changes(2), only=3)


def test_no_change_and_no_percent():
    table = changes(1, 3).assign(change_sd=0.0, spread_sd=np.nan, change_percent=np.nan)
    figure = plots.strongest_regions(table)
    assert [text.get_text() for text in figure.axes[0].texts] == ["–"] * 3
    assert plots.figure_svg(figure)


@pytest.mark.parametrize(
    "name", ["<script>", "$x^2_$", "a$b", r"\$a$", "\x00\x1b[31m", "海马", "הִיפּוֹקַמפּוּס", "a\nb", "&amp;"]
)
def test_odd_names_are_drawn_as_they_are(name):
    svg = plots.figure_svg(plots.strongest_regions(changes(1, 2).assign(region=name)))
    assert "<script" not in svg
    assert not re.search("[\x00-\x08\x0b-\x1f]", svg)
    if name == "$x^2_$":
        assert ">$x^2_$<" in svg


def test_pairs():
    assert len(plots.r_index_pairs(people(3)).axes) == 3
    many = plots.r_index_pairs(people(6))
    assert len(many.axes) == 6
    assert many.get_supxlabel() == "The first 4 of 6 patterns"
    with pytest.raises(ValueError, match="at least two patterns"):
        plots.r_index_pairs(people(1))


def test_recovery_titles_and_shapes():
    scores = people(2)[["r1", "r2"]]
    figure = plots.recovery(scores.set_axis(["s2", "s1"], axis=1), scores, [0.91234, 0.5])
    assert [axes.get_title() for axes in figure.axes] == [
        "Pattern 1\nconcordance 0.912",
        "Pattern 2\nconcordance 0.500",
    ]
    assert figure.axes[0].get_xlabel() == "Known severity s2"
    with pytest.raises(ValueError, match="one shape"):
        plots.recovery(scores[["r1"]], scores, [0.9, 0.8])


def test_table_without_r_indices():
    with pytest.raises(ValueError, match="columns r1, r2"):
        plots.r_index_distributions(pd.DataFrame({"group": ["control"]}))


def test_png_is_written_whole_and_repeats(tmp_path):
    figure = plots.r_index_pairs(people(2))
    path = plots.figure_png(figure, tmp_path / "pairs.png")
    first = path.read_bytes()
    assert first.startswith(b"\x89PNG")
    assert plots.figure_png(figure, path).read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == ["pairs.png"]


def test_no_pyplot_and_no_changed_settings():
    code = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from rindices import plots; from matplotlib.figure import Figure; plots.figure_svg(Figure());"
        "assert matplotlib.rcParams.copy() == before; assert 'matplotlib.pyplot' not in sys.modules;"
        "assert not {'jax', 'sklearn', 'rindices.report'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
