import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student_t

from rindices.estimator import SurrealGAN
from rindices.preprocessing import SCALED_SD
from rindices.record import Results, Summary
from rindices.run.scores_and_analyses import change_of
from rindices.scoring.intervals import change_limits
from rindices.scoring.severity_and_reference import DOSES
from rindices.simulate import simulate_cohort

SD = 0.05


def readings(n_people=4000):
    """Return what is read of people who differ by 0.3, in two scans with noise: 0.8 of their severity."""
    rng = np.random.default_rng(0)
    person, first, second = 0.3 * rng.standard_normal((n_people, 1)), *SD * rng.standard_normal((2, n_people, 1))
    return np.stack([0.8 * DOSES + person + noise for noise in (first, second)])


def test_limits_are_those_of_noise_alone_and_in_the_unit_of_severities():
    """What differs between people stays with them; a change of 0.16 that is read stands for 0.2."""
    low, high = change_limits(readings(), np.array([0.0, 0.16]), np.array([0.5, 0.5]), 0.9, 20)
    half = student_t.isf(0.05, 20) * np.sqrt(2) * SD / 0.8
    np.testing.assert_allclose((low[0], high[0]), (-half, half), atol=0.03)
    assert (low[1] + high[1]) / 2 == pytest.approx(0.2, abs=0.03)
    assert high[1] - low[1] > high[0] - low[0]  # the larger a change, the less is known how well readings follow it


@pytest.mark.parametrize("surprise", [-1.9, 1.9])
def test_small_changes_are_inside_where_noise_is_small(surprise):
    """Of the changes that are tried, the outermost likely ones would leave out true ones beside them."""
    scans = readings()[0] + 0.01 * np.random.default_rng(1).standard_normal((2, 4000, 1))
    true = np.linspace(-0.05, 0.05, 18)
    low, high = change_limits(scans, 0.8 * true + surprise * np.sqrt(2) * 0.01, np.full(18, 0.5), 0.95)
    assert ((low < true) & (true < high)).all()
    assert (high - low < 0.12).all()


def test_limits_stay_within_what_can_be():
    low, high = change_limits(readings(), np.array([-0.1, 0.0, 9.0]), np.array([0.0, 1.9, 1.0]), 0.95)
    assert np.isnan([low[2], high[2]]).all()  # no change would be read as that
    assert (low[:2] < high[:2]).all()
    assert (np.abs([low[:2], high[:2]]) <= DOSES[-1]).all()


@pytest.fixture(scope="module")
def model():
    cohort = simulate_cohort("basic", n_controls=150, n_patients=150, n_patterns=2, seed=3).table
    regions = cohort.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    return SurrealGAN(2, n_repetitions=3, preset="linear", random_state=0).fit(regions, cohort["diagnosis"] == "PT")


def seen_twice(model, n_controls, seed=4):
    people = simulate_cohort(
        "basic",
        n_controls=n_controls,
        n_patients=120,
        n_patterns=2,
        n_visits=2,
        progression=0,
        scan_noise=0.3,
        seed=seed,
    ).table
    scaled = model.prepare(people[list(model.feature_names_in_)])
    r_indices = model.transform(scaled)
    columns = {f"r{k + 1}": r_indices[:, k] for k in range(2)}
    columns |= {f"severity{k + 1}": of for k, of in enumerate(model.scale_.severities(r_indices).T)}
    years = people["visit"].map({"bl": 0.0, "m12": 1.0})
    who = people[["participant_id"]].assign(years=years, first_visit=years == 0)
    who["group"] = np.where(people["diagnosis"] == "PT", "patient", "control")
    z_scores, nothing = pd.DataFrame((scaled.values - 1) / SCALED_SD), pd.DataFrame()
    return Results(who.assign(**columns), z_scores, nothing, nothing, nothing)


@pytest.mark.filterwarnings("ignore::rindices.problems.OutsideTraining")
def test_unchanged_people_have_no_change_inside_and_without_repeated_controls_there_is_no_interval(model):
    change = change_of(model, seen_twice(model, 40), Summary(status="done"))["change"]
    patients = change[change["group"] == "patient"]
    shares = []
    for name in ("severity1", "severity2"):
        inside = (patients[f"{name}_change_low"] <= 0) & (patients[f"{name}_change_high"] >= 0)
        shares.append(inside.mean())
        assert ((patients[f"{name}_reliable"] == 0) == inside).all()
        assert (patients[f"{name}_change_high"] - patients[f"{name}_change_low"] > 0.01).all()
    assert np.mean(shares) > 0.9
    patients_only = seen_twice(model, 20)
    patients_only.r_indices["group"] = "patient"
    unknown = change_of(model, patients_only, Summary(status="done"))["change"]
    assert unknown.filter(regex="low|high|reliable").isna().all(axis=None)
