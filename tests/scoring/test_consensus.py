import numpy as np

from rindices.judging import agreement_and_misfit as agreement
from rindices.scoring.consensus_and_person import aligned, find_consensus
from tests.judging.test_agreement import noisy, severities


def test_medoid_agrees_best_with_the_others():
    members = np.stack([noisy(severities(), sd, seed) for seed, sd in enumerate([0.2, 0.3, 0.05, 0.3])])
    agreements = np.array([[agreement.compare(a, b)[0] for b in members] for a in members])
    means, found = (agreements.sum(axis=1) - 1) / 3, find_consensus(members)
    assert found.medoid == means.argmax() == 2
    np.testing.assert_allclose(found.agreement_with_medoid, agreements[2])


def test_outlier_is_left_out_and_the_rest_is_brought_to_one_order():
    orders = np.array([[0, 1, 2], [2, 0, 1], [1, 0, 2], [0, 2, 1]])
    members = np.stack([noisy(severities(), 0.02, seed)[:, order] for seed, order in enumerate(orders)])
    members[1] = severities(seed=7)
    found = find_consensus(members)
    assert found.kept.tolist() == [0, 2, 3]
    assert found.agreement_with_medoid[1] < 0.7
    in_order = aligned(members, found)
    assert in_order.shape == (3, 60, 3)
    assert np.abs(in_order - members[found.medoid]).max() < 0.2


def test_members_that_all_agree_a_little_are_all_kept():
    members = np.stack([noisy(severities(200), 0.5, seed) for seed in range(5)])
    assert find_consensus(members).kept.tolist() == [0, 1, 2, 3, 4]


def test_consensus_of_one_and_of_two_members():
    one = find_consensus(severities()[None])
    assert (one.medoid, one.kept.tolist(), one.orders.tolist()) == (0, [0], [[0, 1, 2]])
    two = find_consensus(np.stack([severities(), severities()[:, [1, 2, 0]]]))
    assert (two.medoid, two.kept.tolist(), two.orders.tolist()) == (0, [0, 1], [[0, 1, 2], [2, 0, 1]])
    assert find_consensus(np.stack([severities(), severities(seed=1)])).kept.tolist() == [0, 1]


def test_consensus_takes_pairs_that_are_already_known():
    members = np.stack([noisy(severities(), 0.2, seed) for seed in range(3)])
    pairs = agreement.pairwise(members)
    pairs[..., 0] = [[np.nan, 0.6, 0.7], [0.6, np.nan, 0.9], [0.7, 0.9, np.nan]]
    pairs[0, :, 1:] = 1.0  # correlations do not decide
    assert find_consensus(members, pairs).medoid == 2
