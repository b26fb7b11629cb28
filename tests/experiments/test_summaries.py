import numpy as np
import pandas as pd
import pytest
import summaries


@pytest.fixture
def looks():
    """Two λ at two looks of one kind, two cohorts; accuracy falls as agreement rises in the second cohort."""
    rows = []
    for seed, sign in ((1, 1), (2, -1)):
        for orthogonality, step, level in ((0.1, 10, 0.1), (0.1, 20, 0.2), (0.8, 10, 0.3), (0.8, 20, 0.4)):
            accuracy = 0.7 + sign * level / 10
            row = {"kind": "basic", "seed": seed, "orthogonality": orthogonality, "step": step}
            row |= {"pattern_agreement": 0.5 + level, "single": accuracy, "consensus": accuracy + 0.01}
            rows.append(row | {"single_sd": 0.02, "single_se": 0.01, "agreement_error": 0.01})
    return pd.DataFrame(rows)


def test_loss_is_against_the_best_weight_at_its_own_chosen_look(looks):
    found = summaries.accuracy(looks, 0).loc["basic"]
    # Cohort 1: λ 0.8 is chosen and best. Cohort 2: λ 0.8 at 20 is chosen (0.67); λ 0.1 at its look 20 has 0.69.
    assert (found["loss"], found["largest_loss"]) == (pytest.approx((0 + 0.02) / 2), pytest.approx(0.02))
    assert (found["consensus"], found["orthogonality"]) == (pytest.approx((0.75 + 0.67) / 2), "0.8, 0.8")


def test_upper_bound_takes_the_best_number_of_components_of_each_cohort():
    fits = pd.DataFrame(
        [("basic", seed, "nmf", n, 0, value) for seed, n, value in ((1, 3, 0.6), (1, 5, 0.8), (2, 3, 0.7), (2, 5, 0.6))]
        + [("basic", 1, "nmf", 3, 1, 0.9), ("basic", 1, "ridge", 3, 0, 0.95)],
        columns=["kind", "seed", "method", "n_components", "start", "concordance"],
    )
    assert summaries.upper_bounds(fits).loc["basic", "nmf"] == pytest.approx((0.8 + 0.7) / 2)
    of_cohorts = ((0.6 + 0.9) / 2, 0.7)  # means of their starts
    assert summaries.baselines(fits).loc["basic", "nmf"] == pytest.approx(sum(of_cohorts) / 2)


def test_one_pattern_is_never_chosen():
    rows = [
        (2, 1, 1, 0.99),
        (2, 1, 2, 0.9),
        (2, 1, 3, 0.8),
        (3, 1, 1, 0.99),
        (3, 1, 2, 0.9),
        (3, 1, 3, 0.8),
        (0, 1, 2, 0.5),
    ]
    table = pd.DataFrame(rows, columns=["true_patterns", "seed", "n_patterns", "pattern_agreement"])
    assert (summaries.chosen_patterns(table)["n_patterns"].tolist(), summaries.share_right(table)) == ([2, 2, 2], 0.5)


def test_spread_of_a_consensus_is_over_draws_within_a_cohort():
    rows = [
        ("models", kind, 1, 2, draw, value, np.nan)
        for kind, draw, value in (("basic", 0, 0.9), ("basic", 1, 0.8), ("mild", 0, 0.5), ("mild", 1, 0.5))
    ]
    names = ["question", "kind", "seed", "n_models", "draw", "concordance", "agreement_of_two"]
    found = summaries.enough_models(pd.DataFrame(rows, columns=names)).loc[2]
    assert found["spread over draws"] == pytest.approx(np.std([0.9, 0.8], ddof=1) / 2)
    assert found["worst draw"] == pytest.approx((0.8 + 0.5) / 2)
