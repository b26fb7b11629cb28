import numpy as np
import pandas as pd
import pytest

from rindices.cohort import read_cohort
from rindices.estimator import SurrealGAN, load_model
from rindices.presets import Correction
from rindices.problems import InputError
from rindices.record import Summary
from rindices.run.apply_table import people_for
from rindices.run.fit_table import fit_table
from rindices.run.scores_and_analyses import analyse, results_of, scores_of
from rindices.run.write_results import separation
from rindices.settings import ApplySettings, OutputSettings, SearchSettings, TableSettings
from rindices.simulate import simulate_cohort
from tests.longevity.freeze import COHORT, FROZEN


def told_apart(tmp_path, kind, n_controls, n_patients, **changes):
    """Return how well the groups of a simulated cohort of two sites can be told apart."""
    table = simulate_cohort(kind, n_controls=n_controls, n_patients=n_patients, seed=0).table
    site = np.where(np.arange(len(table)) % 3, "A", "B")
    table.assign(**{"site": site} | changes).to_csv(tmp_path / "people.csv", index=False)
    settings = TableSettings(covariates="age,sex", site="site")
    return separation(read_cohort(tmp_path / "people.csv", settings), Correction(site="site"))


def test_groups_are_told_apart_in_people_that_nothing_was_learned_from(tmp_path):
    ill = told_apart(tmp_path, "mild", 492, 900)
    assert ill.low < ill.auc < ill.high
    assert ill.low > 0.8
    nobody = told_apart(tmp_path, "null", 300, 300)
    assert nobody.low < 0.5 < nobody.high
    assert nobody.high - nobody.low > 1.2 * 4 * 1.96 * 0.0118  # of a rank test of a rule that is given, at chance


def test_no_figure_where_a_site_is_too_small_to_be_left_out_in_part(tmp_path):
    assert told_apart(tmp_path, "basic", 100, 100, site=np.where(np.arange(200) < 11, "B", "A")) is None


@pytest.mark.filterwarnings("ignore:Excluded repetitions")
def test_all_visits_of_a_control_are_scored_by_repetitions_that_did_not_learn_from_it(tmp_path, quick_preset):
    """A second visit with the very regions of the first gets the very score of the first."""
    first = simulate_cohort("basic", n_controls=40, n_patients=40, seed=0).table.iloc[:, :16].assign(visit="bl")
    pd.concat([first, first.assign(visit="m12")]).to_csv(tmp_path / "visits.csv", index=False)
    cohort = read_cohort(tmp_path / "visits.csv", TableSettings(covariates="sex", exclude="age", visit="visit"))
    used, model = cohort.training, SurrealGAN(2, n_repetitions=5, preset=quick_preset, random_state=0)
    model.fit(cohort.features[used], cohort.group[used] == "patient", cohort.covariates[used])
    scores = scores_of(model, cohort)
    assert not np.allclose(model.r_indices_, np.nan_to_num(model.held_out_r_indices_, nan=9))
    both = [scores[scores["visit"] == visit].set_index("participant_id") for visit in ("bl", "m12")]
    for name in ("r1", "r2"):
        np.testing.assert_allclose(both[0][name], both[1][name].reindex(both[0].index), atol=1e-9)


def test_a_value_that_could_be_a_code_does_not_end_a_run_after_training(tmp_path):
    """Where a region is skewed, 999 lies beyond the quantiles that a model keeps, and not beyond the table's values."""
    people = simulate_cohort("basic", n_controls=60, n_patients=80, seed=4).table.iloc[:, [*range(20)]]
    skewed = np.round(np.exp(np.random.default_rng(1).normal(5.3, 0.4, len(people))))
    skewed[[5, 9, 80, 120]] = 1300, 999, 999, 1300
    others = people["diagnosis"].where(np.arange(len(people)) != 80, "MCI")  # one of the two is only scored
    people.assign(roi_lesions=skewed, diagnosis=others).to_csv(tmp_path / "people.csv", index=False)
    table, search = (
        TableSettings(covariates="age,sex", patients="PT"),
        SearchSettings(1, n_repetitions=3, preset="linear"),
    )
    run = fit_table(tmp_path / "people.csv", tmp_path / "run", table, search, OutputSettings(report=False)).folder
    assert pd.read_csv(run / "r_indices.csv")["severity1"].notna().sum() == len(people)
    apart = load_model(run / "model.safetensors")
    with pytest.raises(InputError, match="roi_lesions = 999"):  # of anybody else, it may well be a code
        apart.transform(pd.read_csv(tmp_path / "people.csv")[[*apart.feature_names_in_]])


def test_maps_at_a_severity_are_that_share_of_the_largest_change(tmp_path):
    """Repetitions read fewer extremes than they put in, so that an R-index is not what f was given."""
    simulate_cohort("mild", n_controls=100, n_patients=120, seed=1).save(tmp_path / "people.csv")
    search, table = SearchSettings(3, n_repetitions=4, preset="linear"), TableSettings(covariates="age,sex")
    run = fit_table(tmp_path / "people.csv", tmp_path / "run", table, search, OutputSettings(report=False))
    maps = pd.read_csv(run.folder / "analysis" / "severities.csv").pivot_table(
        index="region", columns=["pattern", "severity"], values="change_sd"
    )
    for pattern in (1, 2, 3):
        largest = maps[pattern, 1.0]
        shares = [float(maps[pattern, share] @ largest / (largest @ largest)) for share in (0.25, 0.5, 0.75)]
        np.testing.assert_allclose(shares, [0.25, 0.5, 0.75], atol=0.02)
    scores = pd.read_csv(run.folder / "r_indices.csv")
    for pattern in (1, 2, 3):
        own, low, high = (scores[f"severity{pattern}{end}"] for end in ("", "_low", "_high"))
        assert ((low <= own) & (own <= high)).all()


def test_a_region_that_nobody_has_is_neither_a_finding_nor_a_reason(tmp_path):
    """And in a single person, one that is missing there is no reason."""
    gone, model = ["lAmy", "rAmy"], FROZEN / "linear" / "model.safetensors"
    table = pd.read_csv(COHORT).drop(columns=gone)
    table.loc[0, "lHip"] = None
    table.to_csv(tmp_path / "people.csv", index=False)
    (people,) = people_for(model, tmp_path / "people.csv", ApplySettings(), whole=True)
    fitted = load_model(model)
    tables = analyse(fitted, results_of(fitted, people), Summary(status="done", applied=True, covariates=("age",)))
    for name in ("group_effects", "subgroups", "dose_response", "drivers"):
        assert not set(tables[name]["region"]) & set(gone), name
    own = tables["drivers"][tables["drivers"]["participant_id"] == table["participant_id"][0]]
    assert "lHip" in set(tables["drivers"]["region"])
    assert "lHip" not in set(own["region"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([{"control": "CN"}], r"`table` should be TableSettings\(\.\.\.\), but got dict"),
        ([SearchSettings()], r"`table` should be TableSettings\(\.\.\.\), but got SearchSettings"),
        ([None, {"preset": "linear"}], r"`search` should be SearchSettings\(\.\.\.\), but got dict"),
    ],
)
def test_settings_in_the_wrong_place_are_refused(tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        fit_table("people.csv", tmp_path / "run", *settings)
