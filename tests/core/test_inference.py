import jax
import numpy as np
import pytest

from rindices.core import inference
from tests.core import plain

N_REGIONS, N_PATTERNS = 12, 3
ORDER = np.array([2, 0, 1])
MODELS = [plain.random_parameters(N_REGIONS, N_PATTERNS, seed) for seed in (0, 1)]
BOTH = plain.stacked(MODELS)


BRAINS = np.random.default_rng(3).normal(1, 0.5, (1100, N_REGIONS))  # more people than fit in one block of 1,024
CONTROLS = BRAINS[:20]
SEVERITIES = np.random.default_rng(4).uniform(size=(len(BRAINS), N_PATTERNS))


@pytest.fixture(scope="module")
def scores():
    return inference.r_indices(BOTH, BRAINS)


def close(actual, desired, rtol=1e-10):
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=1e-12)


def test_r_indices_and_mean_changes_are_those_of_the_networks_in_double_precision(scores):
    assert scores.dtype == np.float64
    close(scores, [plain.r_indices(model, BRAINS) for model in MODELS])
    close(inference.decompose(BOTH, BRAINS), np.mean([plain.g1(model.decomposer, BRAINS) for model in MODELS], axis=0))


def test_slopes_are_differences_of_the_mean_score_over_small_changes():
    few, step = BRAINS[:40], 1e-6
    found = inference.slopes(BOTH, few)
    for region in (0, 7):
        moved = step * np.eye(N_REGIONS)[region]
        up, down = (inference.r_indices(BOTH, few + sign * moved).mean(axis=0) for sign in (1, -1))
        np.testing.assert_allclose(found[:, :, region], (up - down) / (2 * step), rtol=1e-4, atol=1e-7)


def test_score_does_not_depend_on_who_else_is_in_the_table(scores):
    for people in ([0], [1099], [5, 1030, 7], range(40), range(1024), range(1000, 1100)):
        np.testing.assert_allclose(inference.r_indices(BOTH, BRAINS[people]), scores[:, people], rtol=0, atol=1e-12)


@pytest.mark.parametrize("composition", ["additive", "joint"])
def test_synthesis_follows_the_composition(composition):
    made = inference.synthesise(BOTH, BRAINS, SEVERITIES, composition)
    close(made, [plain.transformed(model.transformation, BRAINS, SEVERITIES, composition) for model in MODELS])


@pytest.mark.parametrize("composition", ["additive", "joint"])
@pytest.mark.parametrize("severity", [1.0, 0.4])
def test_pattern_changes_are_relative_to_severity_zero(composition, severity):
    found = inference.pattern_changes(BOTH, CONTROLS, severity)
    assert found.shape == (2, N_PATTERNS, N_REGIONS)
    for model, changes in zip(MODELS, found, strict=True):
        zero = plain.transformed(model.transformation, CONTROLS, np.zeros((20, N_PATTERNS)), composition)
        for alone, change in zip(np.eye(N_PATTERNS), changes, strict=True):
            made = plain.transformed(model.transformation, CONTROLS, np.tile(severity * alone, (20, 1)), composition)
            close(change, (made - zero).mean(axis=0))


def test_doses_are_shares_of_the_mean_full_change():
    at = np.array([0.0, 0.3, 1.0, 1.5])
    found = inference.doses(BOTH, CONTROLS, at)
    full = inference.pattern_changes(BOTH, CONTROLS).mean(axis=0)
    for place, severity in enumerate(at):
        changes = inference.pattern_changes(BOTH, CONTROLS, severity)
        close(
            found[..., place],
            [[one @ whole / (whole @ whole) for one, whole in zip(of, full, strict=True)] for of in changes],
        )
    close(found.mean(axis=0)[:, [0, 2]], np.tile([0.0, 1.0], (N_PATTERNS, 1)))


def test_change_at_zero_is_a_share_of_the_change_at_one():
    none, all_of_it = (
        np.linalg.norm((inference.synthesise(BOTH, CONTROLS, z, "additive") - CONTROLS).mean(axis=1), axis=-1)
        for z in (np.zeros((20, N_PATTERNS)), np.ones((20, N_PATTERNS)))
    )
    close(inference.change_at_zero(BOTH, CONTROLS, "additive"), none / all_of_it)


def test_reordered_patterns_permute_everything_that_is_said_of_people_and_leave_the_given_model_alone(scores):
    before = plain.random_parameters(N_REGIONS, N_PATTERNS, seed=0)
    moved = [inference.reorder_patterns(model, ORDER) for model in MODELS]
    assert moved[0].discriminator is MODELS[0].discriminator
    np.testing.assert_array_equal(MODELS[0].decomposer["patterns"]["weight"], before.decomposer["patterns"]["weight"])
    reordered = plain.stacked(moved)
    close(inference.r_indices(reordered, BRAINS), scores[:, :, ORDER])
    close(inference.decompose(reordered, BRAINS), inference.decompose(BOTH, BRAINS)[:, ORDER])
    for composition in ("additive", "joint"):
        made = inference.synthesise(reordered, BRAINS, SEVERITIES[:, ORDER], composition)
        close(made, inference.synthesise(BOTH, BRAINS, SEVERITIES, composition))


def test_patterns_are_ordered_by_mean_change_largest_first(scores):
    sizes = np.abs(inference.pattern_changes(BOTH, CONTROLS)).mean(axis=(0, 2))
    by_size = sorted(range(N_PATTERNS), key=lambda i: -sizes[i])
    worst = plain.stacked([inference.reorder_patterns(model, by_size[::-1]) for model in MODELS])
    ordered, order = inference.order_by_change(worst, CONTROLS)
    close(inference.r_indices(ordered, BRAINS), scores[:, :, by_size])
    assert order.tolist() == list(range(N_PATTERNS))[::-1]


BESIDE = [plain.random_parameters(N_REGIONS, N_PATTERNS, seed, linear=True) for seed in (0, 1)]
ALONE = [plain.random_parameters(N_REGIONS, N_PATTERNS, seed, networks=False, linear=True) for seed in (0, 1)]


def linear_reading(model):
    reading = model.linear["reading"]
    return reading["bias"] + (BRAINS - 1) @ reading["weight"]


def linear_change(model):
    change = model.linear["change"]
    return SEVERITIES ** change["exponent"] @ change["map"]


def test_a_linear_model_beside_the_networks_has_its_share_of_the_r_index():
    for model, of_model in zip(BESIDE, inference.r_indices(plain.stacked(BESIDE), BRAINS), strict=True):
        share = model.linear["reading"]["share"]
        close(of_model, (1 - share) * plain.r_indices(model, BRAINS) + share * linear_reading(model))
    networks = inference.r_indices(inference.without_linear(plain.stacked(BESIDE)), BRAINS)
    close(networks, [plain.r_indices(model, BRAINS) for model in BESIDE])


def test_a_linear_model_alone_reads_and_changes_brains():
    models = plain.stacked(ALONE)
    close(
        inference.r_indices(models, BRAINS),
        [model.linear["reading"]["share"] * linear_reading(model) for model in ALONE],
    )
    for model, found in zip(ALONE, inference.synthesise(models, BRAINS, SEVERITIES, "additive"), strict=True):
        close(found, BRAINS + model.linear["change"]["share"] * linear_change(model))


@pytest.mark.parametrize("members", [BESIDE, ALONE], ids=["beside networks", "alone"])
def test_patterns_of_linear_models_are_reordered_with_those_of_the_networks(members):
    models = plain.stacked(members)
    moved = inference.reorder_patterns(models, ORDER)
    close(inference.r_indices(moved, BRAINS), inference.r_indices(models, BRAINS)[..., ORDER])
    close(
        inference.synthesise(moved, BRAINS, SEVERITIES[:, ORDER], "additive"),
        inference.synthesise(models, BRAINS, SEVERITIES, "additive"),
    )
    for name in ("map", "exponent"):
        np.testing.assert_array_equal(moved.linear["change"][name], models.linear["change"][name][:, ORDER])
    one = inference.reorder_patterns(members[0], ORDER)  # one model is handled as several are
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[0]), one, moved)


@pytest.mark.parametrize("composition", ["additive", "joint", "one_pass"])
def test_the_linear_change_stands_in_where_f_changes_brains_at_severity_zero(composition):
    untouched, full = (np.full((len(BRAINS), N_PATTERNS), severity) for severity in (0.0, 1.0))
    f = inference.without_linear(plain.stacked(BESIDE))
    steps = [inference.synthesise(f, BRAINS, z, composition).mean(axis=1) for z in (untouched, full)]
    at_zero, at_one = (np.linalg.norm(step - BRAINS.mean(axis=0), axis=1) for step in steps)
    assert (at_zero / at_one).mean() > inference.MOST_AT_ZERO  # weights are random
    mended = inference.from_zero(plain.stacked(BESIDE), BRAINS, composition)
    assert inference.linear_makes_people(mended)
    made = inference.synthesise(mended, BRAINS, SEVERITIES, composition)
    close(made, [BRAINS + linear_change(model) for model in BESIDE])
    close(inference.r_indices(mended, BRAINS), inference.r_indices(plain.stacked(BESIDE), BRAINS))


def test_f_makes_people_where_it_leaves_brains_alone_at_severity_zero(monkeypatch):
    monkeypatch.setattr(inference, "MOST_AT_ZERO", np.inf)
    kept = inference.from_zero(plain.stacked(BESIDE), BRAINS, "additive")
    f = inference.without_linear(plain.stacked(BESIDE))
    close(*(inference.synthesise(models, BRAINS, SEVERITIES, "additive") for models in (kept, f)))
    assert not inference.linear_makes_people(kept)
    for models in (f, plain.stacked(ALONE)):
        assert inference.from_zero(models, BRAINS, "additive") is models
        assert not inference.linear_makes_people(models)
