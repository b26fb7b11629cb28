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


def test_histogram_is_bounded_and_counts_everybody():
    table = pd.DataFrame({"group": ["control"] * 40 + ["patient"] * 60, "severity1": 0.0})
    table.loc[40:, "severity1"] = np.linspace(0, 1, 60)
    table.loc[99, "severity1"] = 7.0  # one person far away does not stretch the scale
    [axes] = plots.severity_histogram(table, "severity1").axes
    controls, patients = axes.patches
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["Controls", "Patients"]
    assert controls.get_data().edges[0] == 0  # nobody is below
    assert patients.get_data().edges[-1] < 7
    assert "n = 60" in patients.get_gid()
    assert "1 beyond" in patients.get_gid()
    assert axes.texts[0].get_text().startswith("1: largest change learned")


def test_few_people_are_marks_among_those_of_the_training():
    few, many = people(2, n_controls=2, n_patients=0, n_other=0), people(2, n_controls=30, n_patients=40, n_other=0)
    [alone], [among] = plots.severity_histogram(few, "r2").axes, plots.severity_histogram(few, "r2", many).axes
    assert len(alone.patches) == 0
    labels = [tick.get_text() for tick in among.get_yticklabels()]
    assert labels == ["Training controls", "Training patients", "Controls"]
    assert sorted(among.collections[-1].get_offsets()[:, 0]) == pytest.approx(sorted(few["r2"]))


def test_mixture_counts_patterns_of_each_person():
    table = pd.DataFrame({"group": ["control", "patient", "patient", "patient", "patient"]})
    table["severity1"], table["severity2"] = [0.0, 0.9, 0.9, 0.1, 0.0], [0.0, 0.9, 0.1, 0.8, 0.9]
    [axes] = plots.pattern_mixture(table, [0.2, 0.3]).axes
    assert [text.get_text() for text in axes.texts] == ["100", "0", "0", "0", "75", "25"]


def test_severity_against_age_has_a_line_for_each_group():
    table = people(1, n_controls=30, n_patients=40, n_other=3).assign(age=np.linspace(50, 80, 73))
    [axes] = plots.severity_by_age(table, "r1", "age").axes
    assert len(axes.collections) == 3
    assert len(axes.lines) == 4


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
