"""Whatever is written in a figure lies within it, in every plot function and under every warning."""

import itertools

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.pages.layout import VERDICT_LOOKS
from tests.plots import tables
from tests.plots.tables import LONG, people, texts_on_page

RNG = np.random.default_rng(0)
AGED = people().assign(age=RNG.uniform(50, 80, 80))
STEPS = [(third, time) for third in (1, 2, 3) for time in (0.0, 1.0, 2.0, 4.0)]
EVERY = {
    "agreement_over_settings": lambda: plots.agreement_over_settings(tables.settings()),
    "agreement_over_training": lambda: plots.agreement_over_training(tables.selection()),
    "change_lines": lambda: plots.change_lines(*tables.rates()),
    "disorder_dots": lambda: plots.disorder_dots(disorders()),
    "dose_response": lambda: plots.dose_response(tables.doses()),
    "follow_up_curves": lambda: plots.follow_up_curves(followed()),
    "forest": lambda: plots.forest(tables.associations()),
    "outlier_distances": lambda: plots.outlier_distances(tables.distances()),
    "pattern_dots": lambda: plots.pattern_dots(tables.changes(name=LONG + " {}"), only=1),
    "pattern_mixture": lambda: plots.pattern_mixture(people(), [0.5, 0.5, 0.5]),
    "power_curves": lambda: plots.power_curves(planned(), 60, 80),
    "r_index_distributions": lambda: plots.r_index_distributions(people(n_other=4)),
    "recovery": lambda: plots.recovery(people()[["r1", "r2"]], people()[["r1", "r2"]], [0.9, 0.8]),
    "severity_by_age": lambda: plots.severity_by_age(AGED, "r1", "age"),
    "severity_histogram": lambda: plots.severity_histogram(people(), "r1"),
    "spectrum": lambda: plots.spectrum([9.0, 4.0, 2.0, 1.8], [3.3, 3.1, 2.9, 2.8], 3.3),
    "subgroup_dots": lambda: plots.subgroup_dots(*tables.subgroups()),
    "trajectories": lambda: plots.trajectories(visits(), tables.rates()[1].assign(start=0.2)),
    "two_maps": lambda: plots.two_maps(maps(), (LONG, "second")),
    "two_scores": lambda: plots.two_scores(AGED["r1"], AGED["r2"], (LONG, "second")),
}
STRIPS = [look.strip.format("age, sex and site") for look in VERDICT_LOOKS.values() if look.strip]


def disorders():
    names = ["schizophrenia", "bipolar disorder", "22q11.2 deletion syndrome"]
    rows = [(pattern, "thickness", name, 0.3) for pattern in (1, 2) for name in names]
    return pd.DataFrame(rows, columns=["pattern", "measure", "disorder", "r"]).assign(p_corrected=0.2, chance=0.5)


def followed():
    table = pd.DataFrame(STEPS, columns=["third", "time"]).assign(pattern=1, n=90, at_risk=1234, shown=True)
    return table.assign(incidence=table["time"] / 10, low=table["time"] / 12, high=table["time"] / 8)


def planned():
    rows = [(people, patterns, strength) for people in (30, 60, 120) for patterns in (1, 2) for strength in (0.5, 1.0)]
    return pd.DataFrame(rows, columns=["people", "patterns", "strength"]).assign(chance=0.5, low=0.4, high=0.6)


def visits():
    table = tables.rates(n_people=6)[0].rename(columns={"r1_per_year": "r1", "r2_per_year": "r2"})
    table = table.assign(participant_id=[f"p{k}" for k in range(len(table))])
    return pd.concat([table.assign(years=0.0), table.assign(years=2.0)], ignore_index=True)


def maps():
    return pd.DataFrame({"region": [f"{LONG} {k}" for k in range(8)], "first": -0.5, "second": RNG.normal(size=8)})


def test_every_plot_function_is_drawn_here():
    assert {*EVERY} == {*plots.__all__} - {"figure_png", "figure_svg", "strip_above"}


@pytest.mark.parametrize("name", EVERY)
def test_text_lies_within_the_frame(name):
    figure = EVERY[name]()
    for text, box in texts_on_page(figure):
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= figure.bbox.y1 + 1, text


@pytest.mark.parametrize("name", [*EVERY, "mixture of ten"])
def test_no_text_lies_over_another(name):
    many = people(n_patterns=10) if name not in EVERY else None
    figure = EVERY[name]() if many is None else plots.pattern_mixture(many, [0.5] * 10)
    boxes = [(text, box.padded(-1)) for text, box in texts_on_page(figure)]
    assert [(one, two) for (one, a), (two, b) in itertools.combinations(boxes, 2) if a.overlaps(b)] == []


@pytest.mark.parametrize("name", EVERY)
def test_warnings_are_as_wide_as_their_figure_at_most(name):
    figure, longest = EVERY[name](), max(STRIPS, key=len)
    plots.strip_above(figure, longest)
    [box] = [box for text, box in texts_on_page(figure) if " ".join(text.split()) == longest]
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.bbox.y1 - 1  # above all that is drawn
