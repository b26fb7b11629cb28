"""Controls whom nobody has seen: against refits without them, and against simulated scores."""

import numpy as np
import pandas as pd
import pytest

from rindices.preprocessing import Preprocessing
from rindices.preprocessing.covariates import design_of, leverage_of
from rindices.scoring.severity_and_reference import HeldOut, _within, leave_one_out, split_variance

PERSON, REPETITION = 0.10, 0.06  # sd of made-up scores


def test_leaving_one_out_is_estimating_without_that_person():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(60, 9, 40), "sex": rng.choice(["F", "M"], 40)})
    volumes = 100 + rng.standard_normal((40, 3)) + np.outer(table["age"] - 60, [0.3, -0.1, 0.0])
    nobody, controls = np.zeros(40, bool), Preprocessing.fit(volumes, table).transform(volumes, table)
    found = leave_one_out(controls, leverage_of(design_of(table, nobody, None), nobody))
    columns = np.column_stack([np.ones(40), table["age"], table["sex"] == "M"]).astype(float)
    for person in range(40):
        others = np.arange(40) != person
        left = volumes - columns @ np.linalg.lstsq(columns[others], volumes[others], rcond=None)[0]
        np.testing.assert_allclose(found[person], 1 + 0.1 * left[person] / left[others].std(axis=0), atol=1e-10)
    assert found.std() > controls.std()


def held_out_scores(scores, held_out, n_repetitions):
    """Return the R-indices of the controls that it was learned from."""
    return HeldOut.of(scores, held_out, n_repetitions).scores(scores, np.arange(scores.shape[1]))


def made_up(n_repetitions, n_people=4000, seed=0):
    """Scores of controls by repetitions with means of their own; each leaves out another fifth."""
    rng = np.random.default_rng(seed)
    person = PERSON * rng.standard_normal((n_people, 2)) * [1, 2]
    scores = 0.1 + person + REPETITION * rng.standard_normal((n_repetitions, n_people, 2))
    fold = np.stack([rng.permutation(n_people) % 5 for _ in range(-(-n_repetitions // 5))])
    held_out = np.stack([fold[k // 5] == k % 5 for k in range(n_repetitions)])
    return scores + 0.2 * rng.standard_normal((n_repetitions, 1, 1)), held_out, person


@pytest.mark.parametrize("n_repetitions", [10, 20])
def test_held_out_scores_vary_as_the_consensus_would(n_repetitions):
    scores, held_out, person = made_up(n_repetitions)
    variances = split_variance(scores - scores.mean(axis=1, keepdims=True), held_out)
    np.testing.assert_allclose(variances.person, [PERSON**2, (2 * PERSON) ** 2], rtol=0.08)
    np.testing.assert_allclose(variances.repetition, REPETITION**2, rtol=0.08)
    found = held_out_scores(scores, held_out, n_repetitions)
    expected = np.sqrt(np.array([PERSON, 2 * PERSON]) ** 2 + REPETITION**2 / n_repetitions)
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.05)
    few = np.stack([scores[held_out[:, k], k].mean(axis=0) for k in range(scores.shape[1])])
    assert few[:, 0].std() > 1.2 * expected[0]  # what a plain mean would give
    assert np.corrcoef(found[:, 1], person[:, 1])[0, 1] > 0.95


def test_where_nobody_has_two_scores_repetitions_that_saw_a_person_say_how_much_they_differ():
    scores, held_out, _ = made_up(5)
    assert (held_out.sum(axis=0) == 1).all()
    centred = scores - scores.mean(axis=1, keepdims=True)
    variances = split_variance(centred, held_out, np.ones_like(held_out))
    np.testing.assert_allclose(variances.person, [PERSON**2, (2 * PERSON) ** 2], rtol=0.08)
    np.testing.assert_allclose(variances.repetition, REPETITION**2, rtol=0.08)
    assert (split_variance(centred, held_out).repetition == 0).all()


def test_what_a_repetition_has_seen_does_not_count_and_who_was_always_seen_is_stretched():
    scores, held_out, _ = made_up(3)
    unseen = held_out.any(axis=0)
    found = held_out_scores(np.where(held_out[..., None], scores, 0.1 + 0.1 * (scores - 0.1)), held_out, 3)
    np.testing.assert_allclose(found[unseen], held_out_scores(scores, held_out, 3)[unseen])
    np.testing.assert_allclose(found[~unseen].std(axis=0), found[unseen].std(axis=0))


def test_without_held_out_controls_scores_are_the_consensus():
    scores, held_out, _ = made_up(3)
    np.testing.assert_allclose(held_out_scores(scores, 0 * held_out > 0, 3), scores.mean(axis=0))


@pytest.mark.parametrize("n_repetitions", [3, 10])  # with three, some controls were seen by all
def test_later_scans_of_a_control_are_scored_as_the_first(n_repetitions):
    scores, held_out, _ = made_up(n_repetitions)
    unseen, some = HeldOut.of(scores, held_out, n_repetitions), np.array([5, 5, 17, 3])
    np.testing.assert_allclose(
        unseen.scores(scores[:, some], some), held_out_scores(scores, held_out, n_repetitions)[some]
    )
    assert (unseen.scores(scores[:, some] + 0.01, some) - unseen.scores(scores[:, some], some) > 0).all()


def test_people_who_are_scored_once_say_nothing_of_repetitions():
    scores, known = np.random.default_rng(3).normal(size=(3, 2, 4)), np.arange(6).reshape(3, 2) % 2 == 0
    known[0, 1] = True  # the second person: by one repetition only
    np.testing.assert_allclose(_within(scores, known), scores[:, 0].var(axis=0, ddof=1))


def test_a_single_control_that_all_have_seen_is_not_stretched():
    scores, held_out = np.random.default_rng(0).normal(0.1, 0.05, (4, 9, 1)), np.zeros((4, 9), bool)
    held_out[np.arange(8) // 2, np.arange(8)] = True
    again = HeldOut.of(scores, held_out, 4).scores(scores[:, [8]] + 0.01, np.array([8]))
    assert again == pytest.approx(scores[:, held_out.any(axis=0)].mean() + 0.01, abs=0.05)
