"""The pieces of the paper's experiments that need no training; whole scripts are slow tests."""

import json
import os
from pathlib import Path

import all as driver
import numpy as np
import pandas as pd
import pytest
from cases import Case, draw
from clinical import VARIABLES, draw_variables
from folds import concordances, fold_brains, splits
from many_cohorts import Brains, Group, Trained
from page import main as write_page
from paper_preset import Store, brains_of, restored
from split_half import half_brains, in_first_half
from tables import Results

from rindices.presets import paper

PAPER = Path(driver.__file__).with_name("paper_figures.csv")


def test_results_go_on_where_they_stopped(tmp_path):
    path = tmp_path / "table.csv"
    Results(path, ["seed"]).add([{"seed": 1, "value": 0.5}])
    again = Results(path, ["seed"])
    assert again.has(seed=1)
    assert not again.has(seed=2)
    again.add([{"seed": 2, "value": 0.25}])
    assert pd.read_csv(path)["value"].tolist() == [0.5, 0.25]


def test_small_results_are_marked_and_never_mixed_with_full_ones(tmp_path):
    path = tmp_path / "table.csv"
    small = Results(path, ["seed"], comparable=False)
    small.add([{"seed": 1}])
    small.describe(seeds=(1,))
    assert not pd.read_csv(path)["comparable"].any()
    assert json.loads(path.with_suffix(".json").read_text())["comparable"] is False
    with pytest.raises(SystemExit, match="--small"):
        Results(path, ["seed"])


def test_folds_hold_out_everybody_once():
    case = Case(20, 33, "basic", 3)
    known = draw(case)
    held_out = [fold_brains(case, fold) for fold in range(5)]
    assert sum(len(brains.others) for brains in held_out) == 33
    first = held_out[0]
    train, test = splits(33)[0]
    np.testing.assert_array_equal(first.truth[len(first.patients) :], known.truth[test])
    assert first.scored().shape == (33, known.regions.shape[1])
    assert len(first.patients) == len(train)


def test_held_out_people_keep_the_matching_of_those_trained_on():
    truth = np.random.default_rng(0).random((40, 2))
    scores = truth[:, ::-1].copy()
    scores[30:] = truth[30:]  # in the wrong order for those held out
    train, test = concordances(truth, scores, 30)
    assert train == 1
    assert test < 0.8


def test_halves_share_nobody_and_have_the_same_groups():
    case = Case(30, 50, "mild", 4, 2)
    known = draw(case)
    first = in_first_half(known, case.seed)
    assert (first & known.patient).sum() == 25
    assert (first & ~known.patient).sum() == 15
    one, two = (half_brains(case._replace(part=part)) for part in ("1", "2"))
    assert len(one.patients) + len(two.patients) == 50
    np.testing.assert_array_equal(one.truth, known.truth[first[known.patient]])
    assert len(one.scored()) == 80


def test_stored_r_indices_are_what_was_trained(tmp_path):
    rng = np.random.default_rng(0)
    r_indices = rng.normal(0.5, 0.3, (2, 1, 1, 3, 20, 2))
    r_indices[1, 0, 0, 2, 5] = np.nan  # a model that diverged
    steps = np.full((2, 1, 1, 3), 10)
    trained = Trained(r_indices, 1.0, None, {"change": steps / 10}, steps)
    case = Case(10, 20, "basic", 3, 2)
    people = Brains(rng.random((10, 4)), rng.random((20, 4)), None, rng.random((20, 2)))
    store = Store(tmp_path / "part")
    store.keep("paper", Group(2, [case], [3], [paper().weights], 3), [people], [5, 10], trained)
    found = restored(np.load(tmp_path / "part.npz"), "paper")
    good = np.isfinite(r_indices).all(axis=(-2, -1))
    np.testing.assert_allclose(found[good], r_indices[good], atol=1e-4)
    assert np.isnan(found[~good]).all()
    table = pd.read_csv(tmp_path / "part.csv")
    assert (len(table), table["orthogonality"].unique().tolist()) == (6, [0.4])


def test_harder_people_vary_more_and_have_the_same_disease():
    case = Case(60, 90, "basic", 3)
    known, harder = draw(case), brains_of(case._replace(part="harder"))
    np.testing.assert_array_equal(harder.truth, known.truth)
    assert harder.controls.std() == pytest.approx(0.1)  # the scale is that of the controls, so disease is smaller in it
    assert np.abs(harder.patients.mean(axis=0) - 1).max() < np.abs(brains_of(case).patients.mean(axis=0) - 1).max()


def test_clinical_variables_have_the_correlations_of_table_2():
    truth = np.random.default_rng(0).random((200_000, 2))
    drawn = draw_variables(truth, 1)
    for name, wanted in VARIABLES.items():
        there = drawn[name].notna().to_numpy()
        if there.sum() < 200_000:
            assert there.sum() == wanted.n
            drawn_all = draw_variables(truth[:1000], 1)
            assert drawn_all[name].notna().sum() == min(wanted.n, 1000)
            continue
        assert np.corrcoef(truth[:, 0], drawn[name])[0, 1] == pytest.approx(wanted.medial_temporal, abs=0.01)
        assert np.corrcoef(truth[:, 1], drawn[name])[0, 1] == pytest.approx(wanted.diffuse, abs=0.01)


def test_every_stage_has_a_script_and_writes_its_own_tables():
    runs = [run for stage in driver.STAGES.values() for run in stage.runs]
    assert all(Path(driver.__file__).with_name(f"{run.script}.py").exists() for run in runs)
    assert len({run.table for run in runs}) == len(runs)
    assert all(stage.seconds <= 480 for stage in driver.STAGES.values())


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
    assert all(f"`{name}.csv`" in text for name in written)
    assert "Smoke run" in text
