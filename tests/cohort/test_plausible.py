import numpy as np
import pandas as pd
import pytest

from rindices.cohort import make_cohort
from rindices.errors import InputError


def table(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(5, 0.5, (120, 5)), columns=["lHip", "rHip", "lAmy", "rAmy", "lEnt"])
    frame.insert(0, "participant_id", [f"p{number:03d}" for number in range(120)])
    frame.insert(1, "diagnosis", ["CN"] * 60 + ["AD"] * 60)
    return frame.assign(**columns)


def test_an_ordinary_table_passes_without_a_word():
    assert make_cohort(table()).warnings == ()


@pytest.mark.parametrize("value", [-999.0, -9.0, -0.5])
def test_negative_sizes_are_refused_by_column_and_row(value):
    frame = table()
    frame.loc[7, "rAmy"] = value
    with pytest.raises(InputError, match=rf"Impossible.*rAmy = {value:g} in row 9 \(participant p007\)"):
        make_cohort(frame)


def test_scores_may_be_negative():
    frame = table(zHip=np.random.default_rng(1).normal(0, 1, 120))
    assert make_cohort(frame).warnings == ()


def test_values_far_out_are_named():
    frame = table()
    frame.loc[100, "lEnt"] = 1e9
    (warning,) = make_cohort(frame).warnings
    assert "row 102" in warning
    assert "people.csv" in warning
    assert "1000000000" not in warning  # warnings are kept in reports: they name rows only
    assert "p100" not in warning


@pytest.mark.parametrize("name", ["mmse", "MMSE_bl", "fiq", "ados_total", "CDR-sb"])
def test_clinical_scores_among_the_regions_are_warned_of(name):
    frame = table(**{name: np.random.default_rng(2).normal(25, 1, 120)})
    assert any(name in warning and "clinical" in warning for warning in make_cohort(frame).warnings)


def test_a_column_that_gives_the_diagnosis_away_is_warned_of():
    rng = np.random.default_rng(3)
    frame = table(score=np.r_[rng.normal(29, 0.5, 60), rng.normal(20, 0.5, 60)])
    assert any("score" in warning and "apart" in warning for warning in make_cohort(frame).warnings)
