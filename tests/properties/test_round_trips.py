"""What is written is read again as it was: tables and models."""

from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rindices import load_model
from rindices.files import write_csv
from rindices.tables import read_table
from tests.properties.models import SHAPES, fitted_models
from tests.properties.strategies import NAMES, NUMBERS

CONTROLS = {chr(number) for number in range(32)} - {"\t", "\n"}
# Cells that mean what they say: the reader takes away spaces at either end, words for missing values are none, all of
# them like numbers would be numbers, and signs that no text has are refused.
WORDS = NAMES.map(lambda word: f"x{word.strip()}").filter(lambda word: not set(word) & CONTROLS)


@st.composite
def tables(draw):
    """People with ids, texts and numbers, some of them missing, under odd names."""
    n_people = draw(st.integers(1, 6))
    first, second, text = draw(st.lists(WORDS, min_size=3, max_size=3, unique=True))
    filled = partial(st.lists, min_size=n_people, max_size=n_people)
    columns = {
        "participant_id": draw(filled(WORDS, unique=True)),
        first: [draw(NUMBERS), *draw(filled(NUMBERS | st.just(np.nan)))[1:]],
        second: draw(filled(st.floats(-1e300, 1e300))),  # rounded up, larger ones are infinite
        text: draw(filled(WORDS)),
    }
    return pd.DataFrame(columns)


@given(tables(), st.integers(1, 17))
def test_a_table_is_read_as_it_was_printed(tmp_path_factory, table, digits):
    path = tmp_path_factory.mktemp("table") / "people.csv"
    write_csv(table, path, index=False, digits=digits)
    printed = table.map(lambda cell: float(f"%.{digits}g" % cell) if isinstance(cell, float) else cell)
    pd.testing.assert_frame_equal(read_table(path), printed, check_dtype=False, check_exact=True)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of groups and trainings that are short
@given(fitted_models(SHAPES))
def test_a_model_comes_back_from_its_file_to_the_bit(tmp_path_factory, fitted):
    model, *people = fitted
    folder = tmp_path_factory.mktemp("model")
    loaded = load_model(model.save(folder / "model.safetensors"))
    assert loaded.get_params() == model.get_params() | {"preset": loaded.preset}
    for name in ("preset_", "contract_", "members_", "left_out_", "step_", "seed_", "verdict_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name), name
    for name in ("agreement_", "correlation_", "feature_names_in_"):
        np.testing.assert_array_equal(getattr(loaded, name, "none"), getattr(model, name, "none"), name)
    jax.tree.map(np.testing.assert_array_equal, loaded.models_, model.models_)
    for method in ("transform", "spread"):
        np.testing.assert_array_equal(getattr(loaded, method)(*people), getattr(model, method)(*people), method)
    loaded.save(folder / "again.safetensors")
    assert (folder / "again.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
