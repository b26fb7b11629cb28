"""A small cohort with effects of age, head size and site, which the tests of this folder share."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def covariates():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(50, 80, 60),
            "site": rng.permutation(np.repeat(["A", "B", "C"], 20)),
            "head": rng.normal(1500, 100, 60),
        }
    )


@pytest.fixture
def volumes(covariates):
    rng = np.random.default_rng(1)
    site = covariates["site"].map({"A": 0.0, "B": 40.0, "C": -70.0}).to_numpy()
    signal = np.outer(covariates["age"], [-3, 2, 0, 1]) + np.outer(covariates["head"], [1, 0.5, 2, 0]) + site[:, None]
    return 900 + signal + rng.normal(0, 30, (60, 4))
