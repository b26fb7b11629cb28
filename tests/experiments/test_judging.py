import numpy as np
import pandas as pd
import pytest
from judging import agree, best_look, chosen_looks, judge, together
from scipy.stats import kendalltau

from rindices.scoring.consensus_and_person import find_consensus


@pytest.fixture
def truth():
    return np.random.default_rng(0).random((60, 2))


def members_around(truth, noise, n_models=4, seed=1):
    found = truth + noise * np.random.default_rng(seed).standard_normal((n_models, *truth.shape))
    found[1] = found[1][:, ::-1]  # models number their patterns as they like
    return found


def test_single_models_have_the_mean_and_spread_of_their_concordances(truth):
    members = members_around(truth, 0.3)
    row = judge(members[None], [10], truth)[0]
    own = [
        np.mean([0.5 + 0.5 * kendalltau(truth[:, i], one[:, k]).statistic for i, k in enumerate(order)])
        for one, order in zip(members, ([0, 1], [1, 0], [0, 1], [0, 1]), strict=True)
    ]
    assert (row["single"], row["single_sd"]) == (pytest.approx(np.mean(own)), pytest.approx(np.std(own, ddof=1)))
    assert row["single_se"] == pytest.approx(np.std(own, ddof=1) / 2)


def test_collapsed_and_diverged_models_do_not_count_for_agreement(truth):
    members = np.concatenate(
        [members_around(truth, 0.1), np.full((1, *truth.shape), 0.5), np.full((1, *truth.shape), np.nan)]
    )
    row = judge(members[None], [10], truth)[0]
    assert (row["n_models"], row["n_sound"]) == (6, 4)
    assert row["pattern_agreement"] == judge(members[None, :4], [10], truth)[0]["pattern_agreement"]
    assert row["single"] < judge(members[None, :4], [10], truth)[0]["single"]  # a collapsed model is still a model


def test_agreeing_models_are_averaged_in_one_order(truth):
    members = members_around(truth, 0.1)
    agreed = agree(members)
    assert agreed is not None
    found, straight = find_consensus(members), members.copy()
    straight[1] = straight[1][:, ::-1]
    expected, average = straight[found.kept].mean(axis=0), together(members, agreed)
    turned = expected if found.medoid != 1 else expected[:, ::-1]
    np.testing.assert_allclose(average, turned)


def test_best_look_is_the_one_of_the_highest_agreement_among_those_allowed(truth):
    looks = np.stack([members_around(truth, noise) for noise in (0.01, 0.5, 0.2)])
    assert (best_look(looks, [5, 10, 15], 0)[0], best_look(looks, [5, 10, 15], 10)[0]) == (0, 2)


def test_rows_are_chosen_by_agreement_and_never_by_the_truth():
    table = pd.DataFrame(
        {
            "kind": ["a", "a", "a", "b"],
            "step": [5, 10, 20, 10],
            "pattern_agreement": [0.99, 0.7, 0.8, np.nan],
            "consensus": [0.9, 0.95, 0.6, 0.5],
        }
    )
    assert chosen_looks(table, ["kind"], 10)[["kind", "step", "consensus"]].to_numpy().tolist() == [["a", 20, 0.6]]
