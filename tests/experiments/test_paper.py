"""Parts of the paper's experiments that need no training; whole scripts are slow tests."""

import json
import os
from dataclasses import replace
from pathlib import Path

import all as driver
import fit_reference
import numpy as np
import pandas as pd
import pytest
import summaries
from cases import Case, draw, whole
from clinical import VARIABLES, draw_variables
from folds import concordances, fold_brains, splits
from judging import chosen_looks, judge
from many_cohorts import Group, train
from page import main as write_page
from scipy.stats import kendalltau
from split_half import half_brains, in_first_half
from tables import scope

import rindices.simulate
from rindices.core.train import TrainingPeople, make_members
from rindices.core.train import train as train_one
from tests.pages.page import missing


def test_folds_hold_out_everybody_once():
    case = Case(20, 33, "basic", 3)
    known = draw(case)
    first, *others = (fold_brains(case, fold, 1.0) for fold in range(5))
    assert sum(len(brains.others) for brains in (first, *others)) == 33
    train, test = splits(33)[0]
    np.testing.assert_array_equal(first.truth[len(first.patients) :], known.truth[test])
    assert (first.scored().shape, len(first.patients)) == ((33, known.regions.shape[1]), len(train))


def test_held_out_people_keep_the_matching_of_those_trained_on():
    truth = np.random.default_rng(0).random((40, 2))
    scores = np.concatenate([truth[:30, ::-1], truth[30:]])  # patterns of held-out people are in the wrong order
    train, test = concordances(truth, scores, 30)
    assert (train, test < 0.8) == (1, True)


def test_halves_share_nobody_and_have_the_same_groups():
    case = Case(30, 50, "mild", 4, 2)
    known = draw(case)
    first = in_first_half(known, case.seed)
    assert np.bincount(known.patient[first]).tolist() == [15, 25]
    one, two = (half_brains(case._replace(part=part)) for part in ("1", "2"))
    assert (len(one.patients) + len(two.patients), len(one.scored())) == (50, 80)
    np.testing.assert_array_equal(one.truth, known.truth[first[known.patient]])


def test_clinical_variables_have_the_correlations_of_table_2():
    truth = np.random.default_rng(0).random((200_000, 2))
    drawn = draw_variables(truth, 1)
    for name, wanted in VARIABLES.items():
        n_known = drawn[name].notna().sum()
        if n_known < 200_000:
            assert (n_known, draw_variables(truth[:1000], 1)[name].notna().sum()) == (wanted.n, min(wanted.n, 1000))
        else:
            found = np.corrcoef(truth.T, drawn[name])[2, :2]
            assert found == pytest.approx([wanted.medial_temporal, wanted.diffuse], abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("stage", sorted(driver.STAGES))
def test_stages_run_and_go_into_the_page(stage, tmp_path):
    controls = Path(os.environ.get("RINDICES_DATA", tmp_path)) / "ixi_gm_volumes.csv"
    if not controls.exists() and all(run.needs_controls for run in driver.STAGES[stage].runs):
        pytest.skip("needs ixi_gm_volumes.csv in the folder RINDICES_DATA")
    arguments = ["--small", "--stage", *map(str, (*driver.STAGES[stage].after, stage)), "--out", str(tmp_path)]
    driver.main(arguments + (["--controls", str(controls)] if controls.exists() else []))
    write_page(["--results", str(tmp_path), "--out", str(tmp_path / "page.md")])
    written = [run.table for run in driver.STAGES[stage].runs if controls.exists() or not run.needs_controls]
    text = (tmp_path / "page.md").read_text() + (tmp_path / "reproduction.md").read_text()
    assert not missing(text, "Smoke run", *(f"`{name}.csv`" for name in written))


# Many cohorts trained in one program give the same as each alone through the package's own training


PRESET, CASES = scope(small=True).preset, [Case(40, 45, "basic", 3), Case(35, 50, "mild", 4)]


@pytest.fixture(scope="module")
def brains():
    first, second = (whole(case) for case in CASES)
    return [first, second._replace(others=first.patients)]


@pytest.mark.slow
def test_cohorts_together_train_as_each_alone(brains):
    weightings = [PRESET.weights, PRESET.weights._replace(orthogonality=0.1)]
    trained, steps = train(Group(3, CASES, [3, 4], weightings, 2), brains, 50, PRESET), PRESET.schedule
    for place, (case, one) in enumerate(zip(CASES, brains, strict=True)):
        members = make_members(case.seed, [weightings[1]] * 2, [PRESET.rates] * 2, case.n_controls, n_folds=steps.folds)
        people, small = TrainingPeople(one.controls, one.patients, one.whitening), replace(steps, batch_size=32)
        first = next(train_one(people, members, PRESET.training, small, n_patterns=3))
        together = trained.of_cohort(place, case.n_patients)[0, 1]
        np.testing.assert_allclose(together, first.r_indices, atol=1e-3)  # rounding grows from step to step
    own = trained.of_cohort(1, 95)[-1]
    assert np.isfinite(own).all()
    assert np.abs(own[..., 50:, :]).max() > 0  # the other people are scored, too


# Judging models and choosing checkpoints


TRUTH = np.random.default_rng(0).random((60, 2))


def members_around(noise, n_models=4, seed=1):
    found = TRUTH + noise * np.random.default_rng(seed).standard_normal((n_models, *TRUTH.shape))
    found[1] = found[1][:, ::-1]  # models number their patterns arbitrarily
    return found


def test_single_models_have_the_mean_and_spread_of_their_concordances():
    members = members_around(0.3)
    row = judge(members[None], [10], TRUTH)[0]
    own = [
        np.mean([0.5 + 0.5 * kendalltau(TRUTH[:, i], one[:, k]).statistic for i, k in enumerate(order)])
        for one, order in zip(members, ([0, 1], [1, 0], [0, 1], [0, 1]), strict=True)
    ]
    spread = np.std(own, ddof=1)
    assert [row[name] for name in ("single", "single_sd", "single_se")] == pytest.approx(
        [np.mean(own), spread, spread / 2]
    )


def test_collapsed_and_diverged_models_do_not_count_for_agreement():
    sound = members_around(0.1)
    members = np.concatenate([sound, np.full((1, *TRUTH.shape), 0.5), np.full((1, *TRUTH.shape), np.nan)])
    [row], [expected] = (judge(those[None], [10], TRUTH) for those in (members, sound))
    assert (row["n_models"], row["n_sound"], row["pattern_agreement"]) == (6, 4, expected["pattern_agreement"])
    assert row["single"] < expected["single"]  # collapsed models count here


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


# Summaries over many cohorts


@pytest.fixture
def looks():
    """Two λ, each at two checkpoints, in two cohorts; in the second cohort, accuracy falls as agreement rises."""
    one = pd.DataFrame({"orthogonality": [0.1, 0.1, 0.8, 0.8], "step": [10, 20, 10, 20]})
    level, always = np.array([0.1, 0.2, 0.3, 0.4]), {"single_sd": 0.02, "single_se": 0.01, "agreement_error": 0.01}
    one = one.assign(kind="basic", pattern_agreement=0.5 + level, **always)
    both = pd.concat([one.assign(seed=seed, single=0.7 + sign * level / 10) for seed, sign in ((1, 1), (2, -1))])
    return both.assign(consensus=both["single"] + 0.01).reset_index(drop=True)


def test_loss_is_against_the_best_weight_at_its_own_chosen_look(looks):
    found = summaries.accuracy(looks, 0).loc["basic"]
    # Cohort 1: λ 0.8 is chosen and best. Cohort 2: λ 0.8 at 20 is chosen (0.67); λ 0.1 at its look 20 has 0.69.
    assert (found["loss"], found["largest_loss"]) == (pytest.approx((0 + 0.02) / 2), pytest.approx(0.02))
    assert (found["consensus"], found["orthogonality"]) == (pytest.approx((0.75 + 0.67) / 2), "0.8, 0.8")


# The reference population, made by a script


SHIPPED = Path(rindices.simulate.__file__).with_name("reference_population.json")


def test_shipped_file_comes_from_the_script():
    source = Path(os.environ.get("RINDICES_DATA", "none")) / "ixi_gm_volumes.csv"
    if not source.exists():
        pytest.skip("RINDICES_DATA names no folder with ixi_gm_volumes.csv, the table the population was fitted to")
    fitted, shipped = fit_reference.fit(pd.read_csv(source)), json.loads(SHIPPED.read_text())
    assert shipped.keys() == fitted.keys()
    for made in (fitted, shipped):
        made["correlation_upper"] = [*np.concatenate(made["correlation_upper"])]
    for key, value in fitted.items():
        if isinstance(value, np.ndarray | list) and not isinstance(value[0], str):
            np.testing.assert_allclose(shipped[key], value, atol=1e-3, err_msg=key)
        else:
            assert shipped[key] == value
