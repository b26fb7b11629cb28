"""R-indices are a person's own: who else is in the table, and in what order, does not matter.

They are computed in double precision. Matrix products of other sizes add in another order, which is rounding; weights
of these models are made up and larger than trained ones, so errors are compared with the largest R-index.
"""

import jax
import numpy as np
import pandas as pd
from hypothesis import assume, given
from hypothesis import strategies as st

from rindices.core import inference
from rindices.judging.selection import consensus, judge
from tests.core import plain
from tests.judging.test_selection import POINT, make_study, together
from tests.made_up import N_PATIENTS, N_REGIONS
from tests.properties.models import fitted_models, table_of
from tests.properties.strategies import SEEDS, orders

ROUNDING = 1e-9  # of the largest R-index


def rows_of(table, rows):
    """Some people of a table or array."""
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


@given(fitted_models(), SEEDS)
def test_r_indices_go_with_their_person(fitted, seed):
    model, study = fitted
    table, rng = table_of(model, study), np.random.default_rng(seed)
    everybody = model.transform(table, study.covariates)
    assert np.isfinite(everybody).all()
    order = rng.permutation(study.n_people)
    for rows in (order, order[:1], np.repeat(order, 20)):  # the last in more than one block
        found = model.transform(rows_of(table, rows), study.covariates.iloc[rows])
        np.testing.assert_allclose(found, everybody[rows], rtol=0, atol=ROUNDING * np.abs(everybody).max())


@given(fitted_models(), st.data())
def test_columns_are_matched_by_their_names(fitted, data):
    """To the bit: they are put in order before anything is computed."""
    model, study = fitted
    table = table_of(model, study)
    expected = model.transform(table, study.covariates)
    covariates = study.covariates.iloc[:, data.draw(orders(study.covariates.shape[1]))]
    np.testing.assert_array_equal(model.transform(table, covariates), expected)
    assume(hasattr(model, "feature_names_in_"))
    found = model.transform(table.iloc[:, data.draw(orders(N_REGIONS))], covariates)
    np.testing.assert_array_equal(found, expected)


@given(st.integers(2, 4), st.data())
def test_the_consensus_of_one_model_in_several_orders_is_that_model(n_models, data):
    """Weights and all, to the bit, whatever the order of patterns of each repetition was."""
    one = plain.random_parameters(N_REGIONS, 3, seed=data.draw(st.integers(0, 99)))
    brains = np.random.default_rng(data.draw(SEEDS)).normal(1, 0.5, (N_PATIENTS, N_REGIONS))
    scores = plain.r_indices(one, brains)
    mixes = [data.draw(orders(3)) for _ in range(n_models)]
    models = plain.stacked([inference.reorder_patterns(one, order) for order in mixes])
    chunks, execution = together([np.stack([scores[:, order] for order in mixes])], models=models)
    selected = consensus(judge(make_study(), POINT, n_models, chunks, execution), chunks, execution)
    assert sorted(selected.members) == list(range(n_models))
    medoid = inference.reorder_patterns(one, mixes[selected.members[0]])
    jax.tree.map(lambda many, same: np.testing.assert_array_equal(many, [same] * n_models), selected.models, medoid)
