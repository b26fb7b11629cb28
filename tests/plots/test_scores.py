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


def overview(people_shown, training=None):
    changes = pd.DataFrame({"region": ["lHip", "rHip", "lAmy", "Bst"] * 2, "pattern": np.repeat([1, 2], 4)})
    changes["change_sd"] = [-2.0, -1.5, 1.0, 0.1, 0.1, 0.2, 3.0, -0.4]
    names = {"lHip": "left hippocampus", "rHip": "right hippocampus", "lAmy": "left amygdala"}
    return plots.pattern_overview(changes, people_shown, names, training, brains=False)


def test_overview_names_the_strongest_regions_of_each_pattern():
    figure = overview(people(2, n_controls=30, n_patients=40, n_other=0))
    words = [text.get_text() for text in figure.texts]
    first, second = words.index("Pattern 1"), words.index("Pattern 2")
    assert words[first + 1 : second][1::3] == ["hippocampus", "left amygdala", "Bst"]
    assert words[first + 1 : second][2::3] == ["L −2.00, R −1.50 · Hip", "+1.00 · lAmy", "+0.10"]
    assert words[second + 1 :][1::3] == ["left amygdala", "Bst", "hippocampus"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["Controls", "Patients"]


def test_few_people_get_no_density():
    few, many = people(2, n_controls=2, n_patients=0, n_other=0), people(2, n_controls=30, n_patients=40, n_other=0)
    alone, among = overview(few), overview(few, many)
    assert [len(axes.collections) for axes in alone.axes] == [1, 1]  # marks only
    for axes, column in zip(among.axes, ("r1", "r2"), strict=True):
        labels = [tick.get_text() for tick in axes.get_yticklabels()]
        assert labels == ["Training controls", "Training patients", "Controls"]
        marks = axes.collections[-1].get_offsets()[:, 0]
        assert sorted(marks) == pytest.approx(sorted(few[column]))


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
