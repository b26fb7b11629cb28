"""Clinical variables with known correlations with the severities, modelled on Table 2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm


class Variable(NamedTuple):
    """The paper's correlations with its R-indices; proportions and numbers of people are our choice."""

    diffuse: float  # with the paper's r1, diffuse cortical atrophy
    medial_temporal: float  # with r2
    share: float | None = None  # of people with the trait, if dichotomous
    n: int | None = None  # number of people measured; None: everybody


VARIABLES = {
    "White matter lesion volumes": Variable(0.415, 0.184),
    "DSST": Variable(-0.055, -0.212, n=92),
    "Apoe-E4 Alleles Carrier": Variable(0.003, 0.212, share=0.45, n=1500),
    "Hypertension": Variable(0.181, -0.006, share=0.45, n=530),
    "CSF-Abeta": Variable(-0.238, -0.302, n=770),
    "CSF-Tau": Variable(0.111, 0.270, n=770),
    "CSF-PTau": Variable(0.059, 0.152, n=770),
    "ADNI-EF": Variable(-0.409, -0.240, n=1000),
    "ADNI-MEM": Variable(-0.453, -0.466, n=1000),
    "ADNI-LAN": Variable(-0.422, -0.281, n=1000),
}


def draw_variables(truth: np.ndarray, seed: int) -> pd.DataFrame:
    """Draw the variables of patients from their severities (medial temporal first, then the diffuse pattern).

    If severities are independent, a weighted sum of severities and noise has the wanted correlations. A dichotomous
    variable is such a sum above a threshold, with weights that compensate for the loss by dichotomising.
    """
    rng = np.random.default_rng([seed, len(truth)])
    standard = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    columns = {}
    for name, wanted in VARIABLES.items():
        weights = np.array([wanted.medial_temporal, wanted.diffuse])
        if wanted.share is not None:
            limit = norm.ppf(1 - wanted.share)
            weights = weights * np.sqrt(wanted.share * (1 - wanted.share)) / norm.pdf(limit)
        values = standard @ weights + np.sqrt(1 - weights @ weights) * rng.standard_normal(len(truth))
        if wanted.share is not None:
            values = (values > limit).astype(float)
        if wanted.n is not None and wanted.n < len(truth):
            values[rng.permutation(len(truth))[wanted.n :]] = np.nan
        columns[name] = values
    return pd.DataFrame(columns)
