"""The whole method is tested by recovery of a known truth."""

from dataclasses import replace

import numpy as np
import pytest

from rindices import SurrealGAN, simulate_cohort
from rindices.core.inference import pattern_changes, r_indices
from rindices.core.train import make_members, train
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.judging.selection import sweep
from rindices.judging.study import Study
from rindices.preprocessing import ControlScaler
from rindices.presets import LearningRates, LossWeights, Schedule, Training, adjusted, blind, fast, linear
from rindices.scoring.consensus_and_person import consensus
from rindices.training.chunks import Point, Settings
from rindices.training.execution import Execution

N_STEPS = 9_000
# The fastest way to learn an easy cohort from random weights, though not the best for hard ones.
QUICK = replace(
    adjusted(blind(), latent="independent"),
    weights=LossWeights(change=6.0, decomposition=40.0, reconstruction=40.0),
    schedule=Schedule(min_steps=N_STEPS, max_steps=N_STEPS, checkpoint_every=N_STEPS // 3),
)


def trained(kind, preset, n_repetitions, correlation=None):
    """Simulate a cohort and train; return the cohort, names of regions, scaled people, sweep and consensus."""
    cohort = simulate_cohort(kind, n_controls=300, n_patients=600, seed=1, severity_correlation=correlation)
    regions = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    patient, volumes = (cohort.table["diagnosis"] == "PT").to_numpy(), regions.to_numpy(float)
    scaled = ControlScaler.fit(volumes[~patient]).transform(volumes)
    study, execution = Study(scaled, patient, Settings(preset, seed=0)), Execution()
    swept = sweep(study, [Point(3, preset.weights.orthogonality)], n_repetitions, execution)
    return cohort, list(regions), study.people(), swept, consensus(swept.chosen, swept.chunks, execution)


def best_order(truth, scores):
    """Return the component that correlates most with each true severity."""
    n_patterns = truth.shape[1]
    return np.abs(np.corrcoef(truth.T, scores.T)[:n_patterns, n_patterns:]).argmax(axis=1)


@pytest.fixture(scope="module")
def basic():
    return trained("basic", QUICK, n_repetitions=2)


def truth_and_scores(cohort, people, selected):
    """Return the patients' true severities and their R-indices."""
    return cohort.truth[["s1", "s2", "s3"]].to_numpy(), r_indices(selected.models, people.patients).mean(axis=0)


def test_severities_are_found_again(basic):
    """Five trainings reached 0.901 to 0.911; non-negative matrix factorisation reaches 0.78 and chance 0.5."""
    cohort, _, people, swept, selected = basic
    truth, scores = truth_and_scores(cohort, people, selected)
    assert pattern_concordance(truth, scores) > 0.85
    assert pattern_concordance(truth, people.patients[:, :3]) < 0.75
    assert swept.chosen.value > 0.75


@pytest.mark.parametrize(
    ("preset", "n_repetitions", "concordance", "agreement"),
    [(linear(), 2, 0.85, 0.9), pytest.param(fast(), 4, 0.88, 0.0, marks=pytest.mark.slow)],
    ids=["linear", "fast"],
)
def test_linear_models_and_the_default_preset_find_severities_again(preset, n_repetitions, concordance, agreement):
    cohort, _, people, swept, selected = trained("basic", preset, n_repetitions)
    assert pattern_concordance(*truth_and_scores(cohort, people, selected)) > concordance
    assert swept.chosen.value > agreement


def test_severities_and_their_intervals_hold_the_truth_where_patterns_are_absent_in_half_of_the_patients():
    """Severities are off by 0.09, R-indices by 0.27; intervals are judged in the model's unit, known from the truth."""
    cohort = simulate_cohort("basic", n_controls=300, n_patients=600, seed=1, severities="absent")
    regions = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    patient = (cohort.table["diagnosis"] == "PT").to_numpy()
    model = SurrealGAN(3, n_repetitions=4, preset="linear", random_state=0).fit(regions, patient)
    assert len(model.members_) >= 3
    truth, people = cohort.truth[["s1", "s2", "s3"]].to_numpy(), model.prepare(regions[patient])
    order = best_order(truth, model.transform(people))
    assert sorted(order) == [0, 1, 2]
    found = np.array([model.transform(people), model.severities(people), *model.intervals(people)])[:, :, order]
    of_rank, of_severity = np.sqrt(((found[:2] - truth) ** 2).mean(axis=(1, 2)))
    assert of_severity < 0.5 * of_rank
    truth = truth * (found[1] * truth).sum(axis=0) / (truth**2).sum(axis=0)
    assert 0.92 < ((found[2] <= truth) & (truth <= found[3])).mean() < 0.98


def test_patterns_shrink_the_regions_that_were_diseased(basic):
    cohort, regions, people, _, selected = basic
    order = best_order(*truth_and_scores(cohort, people, selected))
    changes = pattern_changes(selected.models, people.controls).mean(axis=0)
    for change, diseased in zip(changes[order], cohort.patterns.values(), strict=True):
        assert len({regions[j] for j in np.argsort(change)[: len(diseased)]} & set(diseased)) >= 0.7 * len(diseased)


@pytest.mark.slow
def test_without_disease_trainings_do_not_agree():
    *_, swept, _ = trained("null", QUICK, n_repetitions=4)
    assert max(one.agreement.pattern_agreement for one in swept.chosen.checkpoints) < 0.65


@pytest.mark.slow
def test_losses_of_a_model_do_not_depend_on_its_company(basic):
    """At a realistic size, over the first 20 steps, a model trains alike alone and with three others."""
    people = basic[2]

    def losses(n_members):
        members = make_members(0, [LossWeights()] * n_members, [LearningRates()] * n_members, len(people.controls))
        schedule = {"batch_size": 32, "checkpoint_every": 1, "min_steps": 0, "max_steps": 20}
        looks = train(people, members, Training(start="random"), Schedule(**schedule), n_patterns=3)
        return np.array([[values[0] for values in look.losses.values()] for look in looks])

    np.testing.assert_allclose(losses(1), losses(4), rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "low", "high"), [(0.6, 0.35, 0.75), (0.0, -0.25, 0.25)])
def test_correlation_of_severities_is_learned(correlation, low, high):
    """This takes twice the steps: at first, correlated severities are hard to distinguish from fewer patterns."""
    preset = adjusted(QUICK, latent="correlated", max_steps=2 * N_STEPS)
    cohort, _, people, _, selected = trained("basic", preset, n_repetitions=2, correlation=correlation)
    assert low < selected.correlation[np.triu_indices(3, k=1)].mean() < high
    assert pattern_concordance(*truth_and_scores(cohort, people, selected)) > 0.85
