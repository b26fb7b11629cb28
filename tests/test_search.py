from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from rindices import SurrealGAN, SurrealGANSearch, load_model, simulate_cohort
from rindices.judging.selection import FIRST_REPETITIONS, MOST_REPLACED, Swept, basis_of, choose, explain
from rindices.presets import Training
from rindices.problems import counted
from rindices.settings import AUTO
from rindices.training.chunks import Point
from tests.made_up import judged

# Repetitions of forty steps seldom agree.
pytestmark = pytest.mark.filterwarnings("ignore:Excluded repetitions:UserWarning")


@pytest.fixture(scope="module")
def covariates(small_table):
    return pd.DataFrame({"age": np.random.default_rng(2).uniform(50, 80, len(small_table))})


@pytest.fixture(scope="module")
def unfitted(quick_preset):
    """Return a search from random weights, which trains every number of patterns."""
    preset = replace(quick_preset, training=Training(start="random"))
    return SurrealGANSearch(range(2, 4), [0.2, 0.8], n_repetitions=4, preset=preset, random_state=0)


@pytest.fixture(scope="module")
def progress():
    return []


@pytest.fixture(scope="module")
def fitted(unfitted, small_table, small_labels, covariates, progress):
    return clone(unfitted).fit(small_table, small_labels, covariates, progress=progress.append)


def same_bits(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_chosen_setting_is_a_plain_fit_of_it(fitted, unfitted, small_table, small_labels, covariates, tmp_path):
    shared = {name: getattr(unfitted, name) for name in ("n_repetitions", "preset", "random_state")}
    best, plain = fitted.best_estimator_, SurrealGAN(**fitted.best_params_, **shared)
    plain.fit(small_table, small_labels, covariates)
    same_bits(best.models_, plain.models_)
    assert (best.preset_, best.get_params()) == (plain.preset_, plain.get_params())
    assert fitted.best_score_ == plain.agreement_.pattern_agreement
    for one in (best, load_model(fitted.save(tmp_path / "model.safetensors"))):
        same_bits(one.transform(small_table, covariates), fitted.transform(small_table, covariates))
    assert (fitted.n_features_in_, [*fitted.feature_names_in_]) == (small_table.shape[1], [*small_table])
    assert [*fitted.get_feature_names_out()] == [f"r{k}" for k in range(1, fitted.best_params_["n_patterns"] + 1)]


def test_results_have_a_row_a_setting_and_history_a_row_a_checkpoint(fitted):
    results, of = fitted.results_, fitted.best_params_
    tried = list(zip(results["n_patterns"], results["orthogonality"], strict=True))
    assert tried == [one for one in [(2, 0.2), (2, 0.8), (3, 0.2), (3, 0.8)] if one in tried]
    assert {(2, 0.8), (3, 0.8), (of["n_patterns"], 0.2)} <= {*tried}
    assert set(results["n_repetitions"][~results["chosen"]]) <= {FIRST_REPETITIONS, 4}
    assert results["n_repetitions"].sum() == fitted.models_trained_
    [chosen] = results[results["chosen"]].to_dict("records")
    assert 4 <= chosen["n_repetitions"] <= 4 + MOST_REPLACED
    assert [chosen[name] for name in (*of, "pattern_agreement")] == [*of.values(), fitted.best_score_]
    assert ("misfit" in results, len(fitted.history_)) == (True, 2 * len(results))
    best = fitted.history_[fitted.history_["best"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(best.drop(columns="best"), results.drop(columns="n_repetitions"))


def test_progress_tells_of_all_stages(fitted, progress):
    last = {one.stage: one for one in progress}
    assert [*last] == [
        "Preparing the regions",
        "Comparing patients and controls",
        "First stage, all settings",
        "First stage, other weights",
        "All repetitions of the best setting",
        *["Replacing failed repetitions"] * int(fitted.results_["n_repetitions"].max() > 4),
        "Combining the repetitions",
        "Testing whether the patterns replicate in other people",
    ]
    assert [one.done for one in last.values()] == [one.total for one in last.values()]
    assert sum(one.total for one in last.values()) == 40 * fitted.models_trained_


def test_verdict_comes_with_a_reason_and_what_it_rests_on(fitted):
    message, evidence = str(fitted.verdict_.message), fitted.verdict_.evidence
    # Nothing replicates after forty steps from random weights.
    assert fitted.best_estimator_.verdict_ == (fitted.verdict_.state, message) == ("not reproducible", message)
    assert evidence.p == fitted.spectrum_.p == 1 / 200  # none of 199 permutations reaches the data
    assert (evidence.found_again, evidence.repetitions) == (fitted.spectrum_.found_again, fitted.best_score_)
    assert min(evidence.with_linear, evidence.repetitions) < 0.6
    collapsed = fitted.results_["n_models"][fitted.results_["chosen"]].item() == 0
    assert ("Training failed" if collapsed else "Train longer") in message


# With a linear start: the number of patterns is estimated before training.


@pytest.fixture(scope="module")
def two_patterns():
    """Return regions and groups of 60 controls and 90 patients; each of two patterns shrinks six of twelve regions."""
    rng, patient = np.random.default_rng(7), np.repeat([0, 1], [60, 90])
    severities = rng.uniform(size=(150, 2)) * patient[:, None]
    volumes = 5000 * (1 + 0.1 * rng.standard_normal((150, 12)) - 0.4 * severities @ np.repeat(np.eye(2), 6, axis=1))
    return pd.DataFrame(volumes, columns=[f"region{i}" for i in range(12)]), patient


@pytest.fixture(scope="module")
def counted_search(two_patterns):
    return SurrealGANSearch(n_repetitions=2, preset="linear", random_state=0).fit(*two_patterns)


def test_as_many_patterns_are_trained_as_people_show_who_were_left_out(counted_search):
    trained, state = counted_search.results_["n_patterns"].tolist(), counted_search.verdict_.state
    assert (counted_search.n_patterns, trained, state) == (AUTO, [2], "reproducible")
    assert counted_search.spectrum_.found_again == counted_search.best_params_["n_patterns"] == 2
    assert (
        counted_search.reason_ == "2 patterns: held-out patients also vary more than held-out controls in 2 directions."
    )


def test_groups_without_a_difference_are_called_so():
    cohort = simulate_cohort("null", n_controls=60, n_patients=60, seed=1).table
    search = SurrealGANSearch(n_repetitions=2, preset="linear", random_state=0)
    verdict = search.fit(cohort.iloc[:, 4:28], cohort["diagnosis"] == "PT").verdict_
    assert (verdict.state, verdict.reliable, "AUC" in str(verdict.message)) == ("no difference", False, True)
    assert verdict.evidence.p == search.spectrum_.p > 0.05
    assert (verdict.evidence.halves, {*search.results_["n_patterns"]}) == (None, {1, 2})  # nothing that could replicate


def test_linear_models_are_saved_and_score_the_same(counted_search, two_patterns, tmp_path):
    regions, best = two_patterns[0], counted_search.best_estimator_
    loaded = load_model(counted_search.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.transform(regions), counted_search.transform(regions))
    np.testing.assert_array_equal(loaded.spread(regions), best.spread(regions))
    assert (loaded.preset_.name, loaded.step_, loaded.verdict_) == ("linear", 0, best.verdict_)


@pytest.mark.parametrize(("asked", "nearest"), [(range(3, 6), 3), (np.array([1, 4]), 1), ((1, 2, 3), 2)])
def test_of_a_range_the_number_nearest_to_the_count_is_trained(two_patterns, asked, nearest):
    search = SurrealGANSearch(asked, n_repetitions=2, preset="linear", random_state=0).fit(*two_patterns)
    assert search.results_["n_patterns"].tolist() == [nearest] == [search.best_params_["n_patterns"]]
    ending = "also vary more than held-out controls in 2 directions, and {} is the nearest of the requested numbers"
    assert (search.models_trained_, search.reason_) == (
        2,
        f"{counted(nearest, 'pattern')}: held-out patients {ending.format(nearest)}.",
    )
    assert clone(search).set_params(n_patterns=(1, 2), exhaustive=True).fit(*two_patterns).results_[
        "n_patterns"
    ].tolist() == [1, 2]


def test_training_from_a_linear_start_is_a_plain_fit(quick_preset, two_patterns):
    shared = {"n_repetitions": 2, "preset": quick_preset, "random_state": 0}
    search = SurrealGANSearch(**shared).fit(*two_patterns)
    assert search.best_params_["n_patterns"] == 2
    same_bits(search.best_estimator_.models_, SurrealGAN(**search.best_params_, **shared).fit(*two_patterns).models_)


def swept_of(*settings, n_repetitions=10):
    return Swept(
        list(settings),
        choose([one for one in settings if one.n_repetitions == n_repetitions]),
        3,
        n_repetitions,
        [],
    )


def told(swept):
    """Return why a setting was chosen when every requested number of patterns was trained."""
    asked = sorted({one.point.n_patterns for one in swept.judged})
    return explain(swept, basis_of(swept, asked, None), asked, None)


BEST = judged(0.9, 3, distance=3.0)


CLEARLY, AGREEMENT = (
    "3 patterns: no other number fits the patients clearly better, ",
    "the agreement between repetitions is",
)
UNKNOWN = [judged(np.nan, m, n_models=1, n_repetitions=1) for m in (2, 3)]
SOME = swept_of(judged(0.9, 2), judged(0.7, 3, n_repetitions=3))


@pytest.mark.parametrize(
    ("swept", "start", "end"),
    [
        (
            swept_of(judged(0.55, 1, distance=3.0), judged(0.99, 2, distance=9.0), BEST, judged(0.8, 4, distance=3.0)),
            f"{CLEARLY}and {AGREEMENT} 0.900. 1 setting with fewer patterns fitted the patients clearly worse",
            " and 1 setting with fewer patterns showed too little agreement.",
        ),
        (
            swept_of(judged(0.9, 2, distance=3.0), BEST),
            "3 patterns",
            "also fitted the patients and showed enough agreement, but repetitions agreed equally well on more "
            "patterns.",
        ),
        (
            swept_of(judged(0.9, 2, distance=9.0), judged(0.55, 3, distance=3.0)),
            "2 patterns: no setting both fits the patients and reaches an agreement of 0.6 or",
            f"Of the settings trained in full, this one is shown because its repetitions agree best; {AGREEMENT} 0.900",
        ),
        (
            swept_of(judged(0.9, weight=0.4), judged(0.8)),
            "3 patterns with orthogonality 0.4: of 2 weights, this one gave the best agreement after 3 repetitions; ",
            "",
        ),
        (
            swept_of(*[judged(value, m) for m, value in ((1, 0.9), (2, 0.8), (3, 0.7))]),
            f"2 patterns: {AGREEMENT} 0.800, the highest for any number above one; ",
            "this preset chooses by agreement alone.",
        ),
        (swept_of(judged(0.55, 2), judged(0.5)), "2 patterns: no setting reaches an agreement of 0.6", ""),
        (
            swept_of(
                BEST,
                *[judged(0.9, m, distance=distance, n_repetitions=3) for m, distance in ((1, 9.0), (2, 9.0), (4, 1.5))],
            ),
            CLEARLY,
            "3 of 4 settings were dropped after 3 repetitions",
        ),
        (swept_of(BEST), "3 patterns: specified in advance, not ", "chosen from the data."),
        (
            replace(SOME, untried=[Point(3, 0.2)] * 2),
            "2",
            "dropped, other orthogonality weights were not tried (2 settings).",
        ),
        (Swept(UNKNOWN, UNKNOWN[0], 1, 1, []), "2", "arbitrary"),
    ],
)
def test_reason_names_the_figures_what_fewer_patterns_lack_and_what_was_given_up(swept, start, end):
    """Where some settings were dropped, only those trained in full are compared."""
    assert told(swept).startswith(start)
    assert end in told(swept)


def test_models_that_were_not_trained_are_counted():
    swept = replace(SOME, untried=[Point(3, 0.2), Point(3, 0.4)])
    assert (swept.models_trained, swept.models_exhaustive) == (13, 40)


def test_where_the_groups_do_not_differ_no_number_is_supported(counted_search):
    nothing, both = counted_search.spectrum_._replace(p=0.4), swept_of(BEST, judged(0.95, 4, distance=3.0))
    assert basis_of(both, [3, 4], None) == "fit"
    assert basis_of(both, [3, 4], nothing) == basis_of(swept_of(BEST), "auto", nothing) == "unsupported"
    assert basis_of(swept_of(BEST), "auto", counted_search.spectrum_) == "counted"
    assert "the data do not support any number of patterns" in explain(both, "unsupported", [3, 4], nothing)
    assert explain(swept_of(BEST), "unsupported", "auto", nothing).endswith("so the smallest number was used.")
