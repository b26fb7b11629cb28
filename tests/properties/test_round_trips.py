"""What is written is read again as it was: contracts, presets, corrections, run.toml and tables."""

import json
import tomllib
from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rindices.cohort import read_table
from rindices.cohort.cells import MISSING_TEXT
from rindices.files import write_csv
from rindices.model.header import plain
from rindices.run.folder import read_settings, toml_text
from rindices.schema.contract import Contract, CovariateSpec
from rindices.settings import (
    Correction,
    LearningRates,
    LossWeights,
    Preset,
    Schedule,
    Training,
)
from tests.properties.strategies import NAMES, NUMBERS, names

SIZES = st.floats(0, 1e9)
COUNTS = st.integers(1, 2**63 - 1)  # as TOML has them
CONTROLS = {chr(number) for number in range(32)} - {"\t", "\n"}
# Cells that mean what they say: the reader takes away spaces at either end, and words for missing values; it refuses
# signs that no text has.
WORDS = NAMES.map(str.strip).filter(lambda word: word not in MISSING_TEXT and not set(word) & CONTROLS)


def through_json(value):
    """There and back as a model file has it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    return TypeAdapter(type(value)).validate_json(text, strict=True)


@st.composite
def specs(draw, name):
    """What a model may expect of a covariate."""
    if draw(st.booleans()):
        return CovariateSpec(name, categories=tuple(sorted(draw(names(draw(st.integers(1, 4)))))))
    low, high = sorted(draw(st.tuples(NUMBERS, NUMBERS)))
    return CovariateSpec(name, minimum=low, maximum=high, codes=(low, high) if draw(st.booleans()) else None)


@st.composite
def contracts(draw):
    """What a model may expect of a table; of an imported model little is known."""
    n_regions, n_covariates = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    taken = draw(names(n_regions + n_covariates + 3))
    regions, covariates, columns = taken[:n_regions], taken[n_regions:-3], taken[-3:]
    ranges = [sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS))) for _ in regions]
    if draw(st.booleans()):
        ranges = [[None] * 3] * n_regions
    return Contract(
        tuple(regions),
        *(tuple(values) for values in zip(*ranges, strict=True)),
        covariates=tuple(draw(specs(name)) for name in covariates),
        ignored_columns=tuple(draw(st.lists(NAMES, max_size=3))),
        id_column=columns[0],
        diagnosis_column=columns[1],
        control_labels=tuple(draw(st.lists(NAMES, max_size=3))),
        patient_labels=tuple(draw(st.lists(NAMES, max_size=3))),
        unit=draw(st.none() | NAMES),
        site_column=draw(st.sampled_from([None, *covariates])),
        visit_column=draw(st.sampled_from([None, columns[2]])),
    )


@given(contracts())
def test_a_contract_survives_json(contract):
    assert through_json(contract) == contract


@st.composite
def presets(draw):
    """Any choices, sensible or not."""
    weights, rates = (part(*(draw(SIZES) for _ in part._fields)) for part in (LossWeights, LearningRates))
    training = draw(
        st.builds(
            Training,
            st.sampled_from(["additive", "joint"]),
            st.sampled_from(["joint", "separate"]),
            st.sampled_from(["batch", "person"]),
            SIZES,
            st.none() | SIZES,
            SIZES,
            st.none() | st.tuples(SIZES, SIZES),
            st.sampled_from(["independent", "sampled", "weighted"]),
            SIZES,
        )
    )
    return Preset(
        draw(NAMES), weights, rates, training, draw(st.builds(Schedule, st.none() | COUNTS, *[COUNTS] * 3, SIZES))
    )


@given(presets())
def test_all_choices_survive_json(preset):
    assert through_json(preset) == preset


@given(names(6))
def test_a_correction_survives_json_and_a_run_toml(taken):
    first, second, third, fourth, head, site = taken
    correction = Correction([first, second], [(first, third), (fourth, first)], head, site)
    assert through_json(correction) == correction
    written = tomllib.loads(toml_text({"correction": asdict(correction)}))
    assert Correction(**written["correction"]) == correction


VALUES = st.one_of(
    st.booleans(), COUNTS, NUMBERS, NAMES, st.lists(NAMES, max_size=4), st.lists(COUNTS | st.just(0), max_size=4)
)


@given(
    st.fixed_dictionaries(
        {"table": st.fixed_dictionaries({"id": VALUES, "features": VALUES, "unit": st.none() | VALUES})}
    )
)
def test_settings_survive_a_run_toml(tmp_path_factory, settings):
    """Every text and number comes back; what was not given is not there."""
    path = tmp_path_factory.mktemp("run") / "run.toml"
    path.write_text(toml_text(settings), encoding="utf-8")
    expected = {name: value for name, value in settings["table"].items() if value is not None}
    assert read_settings(path) == {"table": expected}
    assert toml_text({"table": read_settings(path)["table"]}) == toml_text({"table": expected})


@st.composite
def tables(draw):
    """People with ids, texts and numbers, some of them missing, under odd names."""
    n_people = draw(st.integers(1, 6))
    other_names = WORDS.filter(lambda name: name != "participant_id")
    first, second, text = draw(st.lists(other_names, min_size=3, max_size=3, unique=True))
    filled = partial(st.lists, min_size=n_people, max_size=n_people)
    columns = {"participant_id": draw(filled(WORDS, unique=True))}
    columns[first] = [draw(NUMBERS), *draw(filled(NUMBERS | st.just(np.nan)))[1:]]
    columns[second] = draw(filled(st.floats(-1e300, 1e300)))  # rounded up, larger ones are infinite
    columns[text] = [f"x{word}" for word in draw(filled(WORDS))]  # all of them like numbers would be numbers
    return pd.DataFrame(columns), draw(st.integers(1, 17))


@given(tables())
def test_a_table_is_read_as_it_was_printed(tmp_path_factory, drawn):
    table, digits = drawn
    path = tmp_path_factory.mktemp("table") / "people.csv"
    write_csv(table, path, index=False, digits=digits)
    found = read_table(path)
    assert list(found) == list(table)
    for name in table:
        if table[name].dtype.kind == "f":
            printed = [float(f"%.{digits}g" % value) for value in table[name]]
            np.testing.assert_array_equal(found[name].to_numpy(), printed, name)
        else:
            assert found[name].tolist() == table[name].tolist(), name
