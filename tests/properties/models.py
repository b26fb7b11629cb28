"""Fitted models of drawn studies: trained for a step or two, all else as users have it."""

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from rindices import SurrealGAN
from rindices.presets import Schedule, fast
from tests.properties.strategies import NAMES, names, studies

N_REGIONS = 12
SHAPES = [(3, 3), (1, 1), (3, 1), (2, 3)]  # patterns and repetitions; few, so that few programs are compiled
QUICK = replace(fast(), schedule=Schedule(8, 1, 2, checkpoint_every=2, whitening=0.0))


@st.composite
def fitted_models(draw, shapes=SHAPES[:2]):
    """A fitted model, and regions and covariates of the people it comes from."""
    study = draw(studies(n_regions=N_REGIONS))
    n_patterns, n_repetitions = draw(st.sampled_from(shapes))
    model = SurrealGAN(
        n_patterns,
        n_repetitions=n_repetitions,
        preset=QUICK,
        inference=draw(st.sampled_from(["consensus", "medoid"])),
        orthogonality=draw(st.none() | st.floats(0, 1e6)),
        latent=draw(st.sampled_from([None, "independent", "correlated"])),
        correction=draw(st.sampled_from([None, study.correction])),
        random_state=draw(st.integers(0, 2**31)),
    )
    regions = study.features
    if draw(st.booleans()):
        taken = {"participant_id", "diagnosis", *study.covariates}
        regions = pd.DataFrame(regions, columns=draw(names(N_REGIONS, NAMES.filter(lambda name: name not in taken))))
    patient = np.arange(study.n_people) >= study.n_controls
    return model.fit(regions, patient, study.covariates), regions, study.covariates
