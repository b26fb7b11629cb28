"""Rules for every figure, and figures of the search for the number of patterns."""

import itertools
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.transforms import Bbox

from rindices import plots
from rindices.pages.layout import VERDICT_LOOKS
from rindices.plots.style import PALETTE, PATIENT
from tests.pages.page import missing
from tests.plots.tables import (
    INDICES,
    LONG,
    ODD_NAMES,
    associations,
    changes,
    crossed,
    distances,
    doses,
    labels_of,
    marks,
    people,
    rates,
    selection,
    settings,
    subgroups,
    texts_on_page,
)

# Rules for every figure


AGED = people().assign(age=np.random.default_rng(0).uniform(50, 80, 80))
DISORDERS = crossed(
    pattern=(1, 2), measure=["thickness"], disorder=["schizophrenia", "bipolar disorder", "22q11.2 deletion syndrome"]
).assign(r=0.3, p_corrected=0.2, chance=0.5)
FOLLOWED = crossed(third=(1, 2, 3), time=(0.0, 1.0, 2.0, 4.0)).assign(
    pattern=1,
    n=90,
    at_risk=1234,
    shown=True,
    incidence=lambda table: table["time"] / 10,
    low=lambda table: table["time"] / 12,
    high=lambda table: table["time"] / 8,
)
PLANNED = crossed(people=(30, 60, 120), patterns=(1, 2), strength=(0.5, 1.0)).assign(chance=0.5, low=0.4, high=0.6)
MAPS = pd.DataFrame(
    {"region": [f"{LONG} {place}" for place in range(8)], "first": -0.5, "second": np.linspace(-0.8, 0.4, 8)}
)
EVERY = {
    "agreement_over_settings": lambda: plots.agreement_over_settings(settings()),
    "agreement_over_training": lambda: plots.agreement_over_training(selection()),
    "change_lines": lambda: plots.change_lines(*rates()),
    "disorder_dots": lambda: plots.disorder_dots(DISORDERS),
    "dose_response": lambda: plots.dose_response(doses()),
    "follow_up_curves": lambda: plots.follow_up_curves(FOLLOWED),
    "forest": lambda: plots.forest(associations()),
    "outlier_distances": lambda: plots.outlier_distances(distances()),
    "pattern_dots": lambda: plots.pattern_dots(changes()),
    "pattern_mixture": lambda: plots.pattern_mixture(people(), [0.5, 0.5, 0.5]),
    "power_curves": lambda: plots.power_curves(PLANNED, 60, 80),
    "r_index_distributions": lambda: plots.r_index_distributions(people(n_other=4)),
    "recovery": lambda: plots.recovery(people()[["r1", "r2"]], people()[["r1", "r2"]], [0.9, 0.8]),
    "severity_by_age": lambda: plots.severity_by_age(AGED, "r1", "age"),
    "severity_histogram": lambda: plots.severity_histogram(people(), "r1"),
    "spectrum": lambda: plots.spectrum([9.0, 4.0, 2.0, 1.8], [3.3, 3.1, 2.9, 2.8], 3.3),
    "subgroup_dots": lambda: plots.subgroup_dots(*subgroups()),
    "trajectories": lambda: plots.trajectories(visits(), rates()[1].assign(start=0.2)),
    "two_maps": lambda: plots.two_maps(MAPS, (LONG, "second")),
    "two_scores": lambda: plots.two_scores(AGED["r1"], AGED["r2"], (LONG, "second")),
}
STRIPS = [look.strip.format("age, sex and site") for look in VERDICT_LOOKS.values() if look.strip]


def visits():
    table = rates(n_people=6)[0].rename(columns={"r1_per_year": "r1", "r2_per_year": "r2"})
    table = table.assign(participant_id=[f"p{k}" for k in range(len(table))])
    return pd.concat([table.assign(years=0.0), table.assign(years=2.0)], ignore_index=True)


# Panels that share the label of their row or column.
UNLABELLED = {"r_index_distributions": 2, "pattern_dots": 1, "subgroup_dots": 1}
MANY = {
    "distributions": lambda: plots.r_index_distributions(crowd()),
    "change": lambda: plots.change_lines(*rates(5, 16_000)),
    "distances": lambda: plots.outlier_distances(distances(50_000)),
}


def crowd():
    """Return 50,000 people whose R-indices are distributed as in patients: most are low."""
    table = people(5, n_controls=25_000, n_patients=25_000)
    return table.assign(**table.filter(regex=r"^r\d$") ** 2)


@pytest.mark.parametrize("name", EVERY)
def test_axes_are_labelled_and_svg_repeats(name):
    figure = EVERY[name]()
    assert [axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes].count("") == UNLABELLED.get(name, 0)
    first = plots.figure_svg(figure)
    assert first == plots.figure_svg(EVERY[name]())
    assert missing(first, "<text", "<dc:date>", "<script") == ["<dc:date>", "<script"]
    assert re.search(r"font[^;\"]*: [^;\"]*sans-serif", first)


@pytest.mark.parametrize("name", MANY)
def test_file_stays_small_with_many_people(name):
    svg = plots.figure_svg(MANY[name]())
    assert "<image" in svg
    assert len(svg) < 300_000


HARD = {
    "one pattern": lambda: plots.pattern_dots(changes(8, name=LONG + " {}"), only=3),
    "long names": lambda: plots.pattern_dots(changes(2, name=LONG + " {}")),
    "eight patterns": lambda: plots.r_index_distributions(people(8, n_controls=1400, n_patients=1400, n_other=1000)),
    "one weight": lambda: plots.agreement_over_settings(settings((1, 2, 3), (0.8,))),
    "six weights": lambda: plots.agreement_over_settings(settings(range(1, 11), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6))),
    "one number": lambda: plots.agreement_over_settings(settings((3,), (0.2, 0.4, 0.8))),
    "spectrum": lambda: plots.spectrum(
        [17.4, 15.9, 10.9, *[3.2 - place / 10 for place in range(7)]], [3.3 - place / 10 for place in range(10)], 3.3
    ),
    "distances": lambda: plots.outlier_distances(distances(factor=1000)),
    "regions": lambda: plots.pattern_dots(changes(3, 24, "lh_G_and_S_cingul-Mid-Post_volume_{}")),
    "long forest": lambda: plots.forest(associations(5, 45, names=[*ODD_NAMES, LONG * 3])),
    "short forest": lambda: plots.forest(associations(2, 2, 1)),
    "more doses": lambda: plots.dose_response(doses(5)),
    "one region": lambda: plots.subgroup_dots(*subgroups(5, 1)),
    "change": lambda: plots.change_lines(*rates(5)),
    "mixture of ten": lambda: plots.pattern_mixture(people(n_patterns=10), [0.5] * 10),
}


@pytest.mark.parametrize("name", [*EVERY, *HARD])
def test_no_text_overlaps_or_leaves_the_page_and_warnings_fit_above(name):
    # Boxes of number rows, which their digits do not fill, may share a pixel more.
    figure, most = (EVERY | HARD)[name](), 2 if name == "follow_up_curves" else 1
    found = texts_on_page(figure)
    assert len(found) > 6
    pairs = [(one, two, Bbox.intersection(a, b)) for (one, a), (two, b) in itertools.combinations(found, 2)]
    assert [(one, two) for one, two, shared in pairs if shared is not None and min(shared.size) > most] == []
    frame = figure.bbox.padded(1)
    inside = [frame.contains(*box.min) and frame.contains(*box.max) for _, box in found]
    assert [text for (text, _), fits in zip(found, inside, strict=True) if not fits] == []
    longest = max(STRIPS, key=len)
    plots.strip_above(figure, longest)
    [box] = [box for text, box in texts_on_page(figure) if " ".join(text.split()) == longest]
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.bbox.y1 - 1  # above everything drawn


ODDER = ["<script>", "$x^2_$", "a$b", r"\$a$", "\x00\x1b[31m", "海马", "הִיפּוֹקַמפּוּס", "a\nb", "&amp;"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.pattern_dots(changes(1, len(ODDER)).assign(region=ODDER)),
        lambda: plots.forest(associations(1, len(ODDER), names=ODDER).assign(level=ODDER)),
        lambda: plots.dose_response(doses(1, 2, names=ODDER)),
        lambda: plots.dose_response(doses(1, 6, names=ODDER[-6:])),
        lambda: plots.subgroup_dots(*subgroups(1, len(ODDER), names=ODDER)),
    ],
    ids=["regions", "forest", "doses", "more doses", "subgroups"],
)
def test_odd_names_are_drawn_as_they_are(draw):
    svg = plots.figure_svg(draw())
    assert not re.search("<script|[\x00-\x08\x0b-\x1f]", svg)
    assert re.search(r">\$x\^2_\$(: \$x\^2_\$)?<", svg) or "a b" in svg


def test_patterns_differ_in_colour_and_marker_and_are_listed_in_rows():
    handles = plots.forest(associations(7, 2)).legends[0].legend_handles
    assert len({(handle.get_color(), handle.get_marker()) for handle in handles}) == 7
    # Columns are filled first: read by row, these are 1 to 5, then 6 and 7.
    assert [handle.get_label()[-1] for handle in handles] == ["1", "6", "2", "7", "3", "4", "5"]


def test_no_pyplot_and_no_changed_settings():
    code = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from rindices import plots; from matplotlib.figure import Figure; plots.figure_svg(Figure());"
        "assert matplotlib.rcParams.copy() == before; assert 'matplotlib.pyplot' not in sys.modules;"
        "assert not {'jax', 'sklearn', 'rindices.pages.report'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def seen(colour, matrix):
    """Return a colour in CIELAB as seen with a kind of colour blindness."""
    part = np.array([*bytes.fromhex(colour[1:])]) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(matrix @ linear, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes, 2009: no green cones, no red cones; then normal vision.
SIGHTS = [
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    np.eye(3),
]


@pytest.mark.parametrize("page", [0, 1], ids=["light", "dark"])
def test_no_two_meanings_share_a_colour(page):
    colours = {name: two[page] for name, two in PALETTE.items()}
    assert len(set(colours.values())) == len(colours)
    kinds = (("control", "patient", "other"), ("lower", "higher"), ("pattern1", "pattern2", "pattern3", "pattern4"))
    for sight, kind in itertools.product(SIGHTS, kinds):
        for one, other in itertools.combinations(kind, 2):
            assert np.linalg.norm(seen(colours[one], sight) - seen(colours[other], sight)) > 10, (one, other)


def test_every_plot_function_is_drawn_here():
    assert {*EVERY} == {*plots.__all__} - {"figure_png", "figure_svg", "strip_above"}


def test_agreement_marks_and_names_the_chosen_checkpoint():
    figure = plots.agreement_over_training(selection())
    upper, lower = figure.axes
    assert not missing(upper.get_ylabel() + lower.get_ylabel(), "0.5 = chance", "(0 = chance")
    assert "chosen: step 2,000" in labels_of(figure)
    assert [one for one in [line.get_xydata().tolist() for line in upper.lines] if len(one) == 1] == [[[2000, 0.8]]]


def test_settings_are_drawn_at_their_best_with_intervals_and_the_chosen_one_has_a_ring():
    table = settings().assign(misfit=np.arange(12.0))
    figure, best = plots.agreement_over_settings(table), table[table["best"]]
    first, misfit, *others = figure.axes
    assert {y for _, y, *_ in marks(misfit, most=1)} == {*best["misfit"]}
    for axes, column in zip([first, *others], INDICES, strict=True):
        points = marks(axes, most=1)
        assert {(round(x), y) for x, y, *_ in points} == set(zip(best["n_patterns"], best[column], strict=True))
        rings = [[round(x), y] for x, y, _, hollow, size in points if hollow and size > 10]
        assert rings == best.loc[best["chosen"], ["n_patterns", column]].to_numpy().tolist()
        bars = [path[:, 1] for bar in axes.collections for path in bar.get_segments()]
        expected = best[[f"{column}_low", f"{column}_high"]].to_numpy()
        assert np.sort(bars, axis=0) == pytest.approx(np.sort(expected, axis=0))
    places = np.unique([x for x, *_ in marks(first, most=1)])
    assert (len(places), min(np.diff(places)) > 0.05) == (6, True)
    unsaid = ["small and hollow: fewer models"]
    assert missing(labels_of(figure), "chosen: 3 patterns, orthogonality 0.8", *unsaid) == unsaid
    assert [text.get_text() for text in first.texts] == ["chosen"]


def test_directions_beyond_chance_are_told_from_the_others():
    values = [9.0, 4.0, 3.2, 1.8]
    figure = plots.spectrum(values, [3.3, 3.1, 2.9, 2.8], 3.3)
    [axes] = figure.axes
    limit, line, beyond, within = axes.lines
    assert [list(one.get_ydata()) for one in (limit, line)] == [[3.3, 3.3], values]
    assert [(dots.get_xydata().tolist(), dots.get_markerfacecolor()) for dots in (beyond, within)] == [
        ([[1, 9.0], [2, 4.0]], PATIENT),
        ([[3, 3.2], [4, 1.8]], "white"),
    ]
    [area] = axes.collections
    assert max(area.get_paths()[0].vertices[:, 1]) == 3.3
    assert (labels_of(figure), axes.get_ylim()[0]) == (["permuted groups", "limit: 3.3", "beyond chance"], 0)
