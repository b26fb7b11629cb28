import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.spatial.distance import pdist
from scipy.special import expit
from typer.testing import CliRunner

from rindices.cli import app
from rindices.judging import spectrum
from rindices.problems import InputError
from rindices.run import first_look_and_power


def asked(*words):
    return CliRunner().invoke(app, ["power", *map(str, words)])


def test_larger_studies_and_stronger_patterns_are_found_more_often():
    small, large = first_look_and_power.chances(40, 40, 68), first_look_and_power.chances(320, 320, 68)
    assert (large["chance"] >= small["chance"] - 0.1).all()
    assert large["chance"].mean() > small["chance"].mean() + 0.1
    assert (large["error"] < small["error"] + 0.02).all()
    assert small.groupby("strength")["chance"].mean().is_monotonic_increasing
    assert (small["low"] <= small["chance"]).all()
    assert (small["chance"] <= small["high"]).all()


@pytest.mark.parametrize("sizes", [(60, 80, 68), (100, 300, 100)])
def test_chances_are_those_of_a_weighted_logistic_regression_on_the_sizes(sizes):
    grid = first_look_and_power._grid()
    away = np.log2(grid[["controls", "patients", "regions"]].to_numpy() / np.array(sizes))
    weight = np.exp(-2 * (away**2).sum(axis=1))
    for row in first_look_and_power.chances(*sizes).query("0.03 < chance < 0.97").itertuples():
        own = (grid["patterns"] == row.patterns) & (grid["strength"] == row.strength) & (weight > 1e-6)
        counts = np.column_stack([grid["found"], grid["studies"] - grid["found"]])[own]
        model = sm.GLM(counts, sm.add_constant(away[own]), sm.families.Binomial(), var_weights=weight[own])
        assert row.chance == pytest.approx(expit(model.fit().params[0]), abs=0.02)


def test_the_command_says_it_and_draws_it(tmp_path):
    result = asked("--controls", 60, "--patients", 80, "--figure", tmp_path / "power.svg")
    assert result.exit_code == 0, result.output
    row = first_look_and_power.chances(60, 80, 68).iloc[0]
    assert f"1 pattern of 0.5 sd: {100 * row['chance']:.0f} %" in result.output
    assert "3 patterns of 2 sd" in result.output
    assert "Probability of finding all patterns" in (tmp_path / "power.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [["--controls", 5], ["--patients", 50_000], ["--regions", 1]])
def test_sizes_that_were_not_simulated_are_refused(words):
    result = asked(*words)
    assert result.exit_code == 2
    assert "--like" in result.output or "--regions" in result.output


def test_a_table_of_another_training_is_refused(monkeypatch):
    first_look_and_power._grid.cache_clear()
    monkeypatch.setattr(spectrum, "LEVEL", 0.01)
    with pytest.raises(InputError, match="another version of the training procedure"):
        first_look_and_power.chances(60, 80)
    assert first_look_and_power.in_words(60, 80, 68) == ""
    monkeypatch.undo()
    first_look_and_power._grid.cache_clear()
    assert "simulated studies of this size" in first_look_and_power.in_words(60, 80, 68)


def test_a_strong_pattern_is_found_and_no_pattern_is_not():
    rng = np.random.default_rng(0)
    strong = first_look_and_power.simulated_study(rng.normal(size=(160, 20)), None, 80, 1, 3.0, 0)
    assert strong.found
    assert strong.error < 0.2
    nothing = [
        first_look_and_power.simulated_study(rng.normal(size=(160, 20)), None, 80, 1, 1e-9, seed).found
        for seed in range(8)
    ]
    assert sum(nothing) <= 2


def test_no_person_of_a_study_like_own_controls_is_the_copy_of_another_and_they_vary_as_the_controls_do(monkeypatch):
    rng, studies = np.random.default_rng(1), []
    own = rng.normal(size=(400, 30)) + 2 * rng.normal(size=(400, 1))
    found = first_look_and_power.SimulatedStudy(True, 0.1, 0.9)
    monkeypatch.setattr(first_look_and_power, "simulated_study", lambda people, *_: studies.append(people) or found)
    first_look_and_power.like(own, None, 300, 300)
    assert pdist(studies[0]).min() > 2  # copies with noise of 0.1 sd: 0.8
    assert np.mean([np.cov(people.T) for people in studies], axis=0) == pytest.approx(np.cov(own.T), abs=0.5)


def test_own_controls_are_simulated_on(tmp_path, monkeypatch):
    monkeypatch.setattr(first_look_and_power, "LIKE", 2)
    rng = np.random.default_rng(0)
    healthy = pd.DataFrame(rng.normal(5, 1, (90, 12)), columns=[f"region{k}" for k in range(12)])
    healthy.assign(age=rng.normal(60, 5, 90)).to_csv(tmp_path / "healthy.csv", index=False)
    result = asked("--controls", 40, "--patients", 40, "--like", tmp_path / "healthy.csv")
    assert result.exit_code == 0, result.output
    assert not [part for part in ("40 controls, 40 patients, 12 regions", "2 studies") if part not in result.output]
    healthy.assign(diagnosis=["CN", "AD"] * 45).to_csv(tmp_path / "all.csv", index=False)
    assert (
        "healthy people in --like, but column 'diagnosis' has 2 labels" in asked("--like", tmp_path / "all.csv").output
    )
    both = asked("--like", tmp_path / "healthy.csv", "--figure", tmp_path / "power.png")
    assert both.exit_code == 2
    assert "--figure" in both.output
