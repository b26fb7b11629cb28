import numpy as np
import pandas as pd
import pytest

from rindices import plots
from tests.plots.tables import people


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


def test_pairs_of_many_people_are_a_sample_that_says_so():
    figure = plots.r_index_pairs(people(2, n_controls=20, n_patients=1500))
    assert [len(cloud.get_offsets()) for cloud in figure.axes[0].collections] == [20, 1000]
    assert figure.get_supxlabel() == "At random 1,000 people of a larger group"
    assert plots.r_index_pairs(people(2, n_patients=1000)).get_supxlabel() == ""


def test_density_of_many_people_is_that_of_all():
    table = people(1, n_controls=1, n_patients=6000)
    many, few = (plots.r_index_distributions(rows).axes[0] for rows in (table, table.head(2000)))
    widths = [max(path.get_paths()[0].vertices[:, 1]) for axes in (many, few) for path in axes.collections[:1]]
    assert widths[0] == pytest.approx(widths[1], abs=0.02)


def test_table_without_r_indices():
    with pytest.raises(ValueError, match="columns r1, r2"):
        plots.r_index_distributions(pd.DataFrame({"group": ["control"]}))
