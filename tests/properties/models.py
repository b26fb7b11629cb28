"""Fitted models that were never trained: their weights are made up, all else is drawn."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from rindices import SurrealGAN
from rindices.judging.agreement import Agreement
from rindices.preprocessing import Preprocessing
from rindices.schema.contract import Contract
from rindices.settings import adjusted, get_preset
from tests import made_up
from tests.properties.strategies import NAMES, NUMBERS, names, studies

N_REGIONS = made_up.N_REGIONS
SHARES = st.floats(0, 1)
# Patterns and repetitions that are used; few of them, so that few programs are compiled.
FEW, SEVERAL = [(3, 3), (1, 1)], [(3, 3), (1, 1), (3, 1), (2, 3)]


@st.composite
def agreements(draw):
    """Any agreement, unknown ones too."""
    return Agreement(*(draw(st.one_of(SHARES, st.just(float("nan")))) for _ in Agreement._fields))


@st.composite
def fitted_models(draw, shapes=FEW):
    """A fitted model and the study it could come from."""
    study = draw(studies(n_regions=N_REGIONS))
    n_patterns, n_members = draw(st.sampled_from(shapes))
    model = SurrealGAN(
        n_patterns,
        n_repetitions=draw(st.integers(n_members, 10)),
        preset=draw(st.sampled_from(["fast", "paper", "official"])),
        inference=draw(st.sampled_from(["consensus", "medoid"])),
        orthogonality=draw(st.none() | st.floats(0, 1e6)),
        max_steps=draw(st.none() | st.integers(1, 10**9)),
        latent=draw(st.sampled_from([None, "independent", "correlated"])),
        correction=draw(st.sampled_from([None, study.correction])),
        random_state=draw(st.integers(0, 2**31)),
    )
    controls = slice(study.n_controls)
    model.preprocessing_ = Preprocessing.fit(study.features[controls], study.covariates[controls], model.correction)
    taken = {"participant_id", "diagnosis", *study.covariates}
    regions = draw(names(N_REGIONS, NAMES.filter(lambda name: name not in taken)))
    model.contract_ = Contract.of_people(pd.DataFrame(study.features, columns=regions), study.covariates)
    model.models_ = made_up.weights(n_members, n_patterns, seed=draw(st.integers(0, 99)))
    model.preset_ = adjusted(get_preset(model.preset), model.orthogonality, model.max_steps, model.latent)
    model.seed_, model.step_ = model.random_state, draw(st.integers(1, 10**9))
    model.members_ = draw(st.permutations(range(model.n_repetitions)))[:n_members]
    left_out = [member for member in range(model.n_repetitions) if member not in model.members_]
    model.left_out_ = {member: draw(NAMES) for member in left_out}
    model.agreement_ = draw(agreements())
    model.reliability_ = draw(st.sampled_from([None, True, False])), draw(NAMES)
    correlation = np.array([[draw(NUMBERS) for _ in range(n_patterns)] for _ in range(n_patterns)])
    model.correlation_ = draw(st.sampled_from([None, correlation]))
    model.n_features_in_ = N_REGIONS
    if draw(st.booleans()):
        model.feature_names_in_ = np.array(regions, dtype=object)
    return model, study


def table_of(model, study):
    """Regions of everybody as the model wants them: with names, where it has some."""
    named = getattr(model, "feature_names_in_", None)
    return study.features if named is None else pd.DataFrame(study.features, columns=named)
