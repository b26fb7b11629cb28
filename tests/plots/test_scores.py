import numpy as np
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


def test_pairs():
    assert len(plots.r_index_pairs(people(3)).axes) == 3
    many = plots.r_index_pairs(people(6))
    assert len(many.axes) == 6
    assert many.get_supxlabel() == "The first 4 of 6 patterns"


def test_recovery_titles_and_shapes():
    scores = people(2)[["r1", "r2"]]
    figure = plots.recovery(scores.set_axis(["s2", "s1"], axis=1), scores, [0.91234, 0.5])
    assert [axes.get_title() for axes in figure.axes] == [
        "Pattern 1\nconcordance 0.912",
        "Pattern 2\nconcordance 0.500",
    ]
    assert figure.axes[0].get_xlabel() == "Known severity s2"
    with pytest.raises(ValueError, match="argument"):
        plots.recovery(scores[["r1"]], scores, [0.9, 0.8])
