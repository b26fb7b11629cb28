"""R-indices are a person's own: who else is in the table, and in what order, does not matter.

They are computed in double precision. Matrix products of other sizes add in another order, which is rounding; errors
are compared with the largest R-index.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.models import N_REGIONS, fitted_models
from tests.properties.strategies import orders

ROUNDING = 1e-9  # of the largest R-index

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of groups and trainings that are short


@given(fitted_models(), st.data())
def test_r_indices_go_with_their_person_and_columns_with_their_names(fitted, data):
    model, regions, covariates = fitted
    everybody = model.transform(regions, covariates)
    assert np.isfinite(everybody).all()
    order, named = data.draw(orders(len(everybody))), isinstance(regions, pd.DataFrame)
    for rows in (order, order[:1], np.repeat(order, 20)):  # the last in more than one block
        found = model.transform(regions.iloc[rows] if named else regions[rows], covariates.iloc[rows])
        np.testing.assert_allclose(found, everybody[rows], rtol=0, atol=ROUNDING * np.abs(everybody).max())
    # Columns are put in order before anything is computed: not a bit may differ.
    turned = regions.iloc[:, data.draw(orders(N_REGIONS))] if named else regions
    mixed = covariates.iloc[:, data.draw(orders(covariates.shape[1]))]
    np.testing.assert_array_equal(model.transform(turned, mixed), everybody)
