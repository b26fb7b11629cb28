import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.decomposition import NMF, FactorAnalysis, LatentDirichletAllocation

from rindices.baselines import METHODS, Baseline, DiscriminantNMF, OrthonormalProjectiveNMF
from rindices.errors import InputError


@pytest.fixture(scope="module")
def cohort():
    """80 controls and 80 patients in shuffled order; each of three patterns shrinks four of twelve regions."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], 80))
    truth = np.where(y[:, None] == 1, rng.uniform(size=(160, 3)), 0)
    scaled = rng.standard_normal((160, 12)) - 5 * truth @ np.repeat(np.eye(3), 4, axis=1)
    volumes = pd.DataFrame(1000 + 100 * scaled, columns=[f"region{i}" for i in range(12)])
    return volumes, y, truth[y == 1]


def plain_z(volumes, y):
    controls = volumes.to_numpy()[y == 0]
    return (volumes.to_numpy() - controls.mean(axis=0)) / controls.std(axis=0)


@pytest.mark.parametrize("method", METHODS)
def test_known_severities_are_found(cohort, method):
    volumes, y, truth = cohort
    components = Baseline(method, random_state=0).fit(volumes, y).transform(volumes)[y == 1]
    table = np.abs(spearmanr(truth, components).statistic[:3, 3:])
    # Shares of components and narrow classes tell little of severities; rotated factors mix them.
    least = {"nmf": 0.8, "opnmf": 0.8, "fa": 0.4, "lda": 0.4, "dnmf": 0.2}[method]
    assert table.max(axis=1).min() > least


def test_preparation_follows_the_paper(cohort):
    volumes, y, _ = cohort
    z = plain_z(volumes, y)
    atrophy = np.where(z < 0, -z, 0)
    patients = y == 1
    share = (volumes - volumes.min()) / (volumes.max() - volumes.min())
    expected = {
        "nmf": NMF(3, random_state=0, max_iter=5000).fit(atrophy[patients]).transform(atrophy),
        "lda": LatentDirichletAllocation(3, random_state=0, max_iter=300, evaluate_every=5, max_doc_update_iter=20)
        .fit(np.round(10 * atrophy[patients]))
        .transform(np.round(10 * atrophy)),
        "fa": FactorAnalysis(3, random_state=0).fit(z[patients]).transform(z),
        "opnmf": OrthonormalProjectiveNMF(3, random_state=0).fit(atrophy[patients]).transform(atrophy),
        "dnmf": DiscriminantNMF(3, random_state=0).fit(share.to_numpy(), y).transform(share.to_numpy()),
    }
    assert set(expected) == set(METHODS)
    for method, components in expected.items():
        found = Baseline(method, random_state=0).fit(volumes, y).transform(volumes)
        np.testing.assert_allclose(found, components, rtol=1e-6, atol=1e-8, err_msg=method)


@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter_and_new_people_may_be_beyond_the_range(cohort, method):
    volumes, y, _ = cohort
    model = Baseline(method, 2, random_state=0).fit(volumes, y)
    again = clone(model).fit(volumes / 1000, y)
    np.testing.assert_allclose(again.transform(volumes / 1000), model.transform(volumes), rtol=1e-4, atol=1e-6)
    assert np.isfinite(model.transform(volumes * 0)).all()
    assert np.isfinite(model.transform(volumes * 10)).all()


def test_components_have_names_and_tables_go_through(cohort):
    volumes, y, _ = cohort
    model = Baseline("opnmf", 2, random_state=0).set_output(transform="pandas").fit(volumes, y)
    assert list(model.transform(volumes)) == ["baseline0", "baseline1"]
    np.testing.assert_array_equal(model.fit_transform(volumes, y), model.transform(volumes))


def test_wrong_input_is_refused(cohort):
    volumes, y, _ = cohort
    with pytest.raises(InputError, match=r"found 'opnfm'. Did you mean 'opnmf'"):
        Baseline("opnfm").fit(volumes, y)
    with pytest.raises(InputError, match=r"0 for controls and 1 for patients, both; found 1\."):
        Baseline().fit(volumes, np.ones(160, int))
    with pytest.raises(InputError, match="Region 'region3' has the same value in all controls"):
        Baseline().fit(volumes.assign(region3=np.where(y == 1, volumes["region3"], 5.0)), y)
    with pytest.raises(InputError, match="Region 2 has the same value in everybody"):
        Baseline("dnmf").fit(np.where(np.arange(12) == 2, 1.0, volumes.to_numpy()), y)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_cohort_of_usual_size_takes_seconds(method):
    from time import process_time

    from rindices.simulate import simulate_cohort

    table = simulate_cohort("basic", seed=0).table
    regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    start = process_time()  # other programs on the machine do not count
    Baseline(method, random_state=0).fit(regions, table["diagnosis"] == "PT")
    assert process_time() - start < 120
