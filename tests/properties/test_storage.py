"""A model file gives back what was put in, to the bit, whatever the corrections, names and numbers are."""

import jax
import numpy as np
from hypothesis import given

from rindices import load_model
from rindices.preprocessing.storage import arrays_of, describe
from tests.properties.models import SEVERAL, fitted_models, table_of

STORED = ("preset_", "contract_", "members_", "left_out_", "step_", "seed_", "reliability_", "n_features_in_")
ARRAYS = ("agreement_", "correlation_", "feature_names_in_")


@given(fitted_models(SEVERAL))
def test_a_model_comes_back_from_its_file_to_the_bit(tmp_path_factory, fitted):
    model, study = fitted
    folder = tmp_path_factory.mktemp("model")
    loaded = load_model(model.save(folder / "model.safetensors"))
    assert loaded.get_params() == model.get_params() | {"preset": loaded.preset}
    for name in STORED:
        assert getattr(loaded, name) == getattr(model, name), name
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded, name, "none"), getattr(model, name, "none"), name)
    jax.tree.map(np.testing.assert_array_equal, loaded.models_, model.models_)
    assert describe(loaded.preprocessing_) == describe(model.preprocessing_)
    jax.tree.map(np.testing.assert_array_equal, arrays_of(loaded.preprocessing_), arrays_of(model.preprocessing_))
    people = table_of(model, study), study.covariates
    for method in ("transform", "spread"):
        np.testing.assert_array_equal(getattr(loaded, method)(*people), getattr(model, method)(*people), method)
    loaded.save(folder / "again.safetensors")
    assert (folder / "again.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
