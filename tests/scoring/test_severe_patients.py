"""Cohorts in which nearly all patients are severe are recognised, and have no intervals."""

import numpy as np
import pytest

from rindices import SurrealGAN, simulate_cohort
from rindices.estimator import MOST_SEVERE, severe_patients
from rindices.run.scores_and_analyses import unknown_of


@pytest.mark.filterwarnings("ignore:Repetitions left out")
@pytest.mark.parametrize(("severities", "withheld"), [("uniform", False), ("severe", True)])
def test_intervals_are_withheld_where_nearly_all_patients_are_severe(severities, withheld):
    table = simulate_cohort("basic", n_controls=150, n_patients=250, n_patterns=2, severities=severities, seed=1).table
    regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    model = SurrealGAN(2, n_repetitions=3, preset="linear", random_state=0)
    study = model._training_set(regions, table["diagnosis"] == "PT").study
    assert (severe_patients(study, 2) > MOST_SEVERE) is withheld
    low, _ = model.fit(regions, table["diagnosis"] == "PT").intervals(regions)
    assert np.isnan(low).all() == withheld
    assert any("nearly all patients have much of the patterns" in words for words in unknown_of(model)) is withheld
