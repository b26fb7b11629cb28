import json
import re

import numpy as np
import pandas as pd
import pytest

from rindices.problems import InputError
from rindices.tables.dictionary import Column, Dictionary, apply_dictionary, read_dictionary, unit_of
from tests.tables.test_tables import write

SEX = Column(levels={"0": "male", "1": "female"})
SIDECAR = {
    "MeasurementToolMetadata": {"Description": "a questionnaire"},
    "GeneratedBy": "hand",
    "age": {"LongName": "Age at scan", "Units": "year", "Minimum": 18, "Maximum": "89", "TermURL": "https://x"},
    "sex": {"Description": "sex", "Levels": {"M": {"Description": "Male", "TermURL": "https://y"}, "F": "Female"}},
    "dx": {"levels": {"1": "Control", "2.0": "Patient", "-9": "Missing"}},
    "mmse": {"MissingValues": [-1, "refused"], "Derivative": True},
    "seen": {"Minimum": "2001-01-31", "Levels": {}, "Units": None},
}
REDCAP = (
    '"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels",'
    '"Text Validation Min","Text Validation Max"\n'
    'sex,demo,radio,Sex at birth,"0, Male | 1, Female, not pregnant | -9, Missing",,\n'
    "age,demo,text,Age in years,,18,120\n"
    'bmi,demo,calc,BMI,"round([weight]/[height], 1)",,\n'
    "born,demo,text,Birthday,,1900-01-01,today\n"
    "smokes,demo,yesno,Smokes,,,\n"
)
PLAIN = (
    "Column\tlabel\tUnits\tlevels\tmin\tmax\tmissing codes\nx\tscore\tmm3\t0=a;1=b, c\t\t\t-9=refused, -99\n"
    "y\t\t\t\t0\t1.5\t\n"
)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "people.json",
            b"\xef\xbb\xbf" + json.dumps(SIDECAR, indent=1).replace("\n", "\r\n").encode(),
            {
                "age": Column("Age at scan", "year"),
                "sex": Column("sex", None, {"M": "Male", "F": "Female"}),
                "dx": Column(levels={"1": "Control", "2": "Patient"}, missing=("-9",)),
                "mmse": Column(missing=("-1", "refused")),
                "seen": Column(),
            },
        ),
        (
            "redcap.csv",
            REDCAP,
            {
                "sex": Column("Sex at birth", None, {"0": "Male", "1": "Female, not pregnant"}, missing=("-9",)),
                "age": Column("Age in years"),
                "bmi": Column("BMI"),
                "born": Column("Birthday"),
                "smokes": Column("Smokes", levels={"1": "Yes", "0": "No"}),
            },
        ),
        (
            "plain.tsv",
            PLAIN,
            {
                "x": Column("score", "mm3", {"0": "a", "1": "b, c"}, missing=("-9", "-99")),
                "y": Column(),
            },
        ),
    ],
)
def test_dictionaries_of_three_kinds(tmp_path, name, content, expected):
    dictionary = read_dictionary(write(tmp_path, name, content))
    assert dictionary == expected
    assert dictionary.categories == tuple(name for name, column in expected.items() if column.levels)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{\n "age": {"Units": "year"}\n "sex": {}\n}', r"a\.json cannot be read as JSON: .* line 3"),
        ("a.json", "[1]", "should be a JSON object"),
        ("a.csv", "participant_id,age\n1,61\n", "no column contains the variable names"),
        ("a.csv", "name,levels\na,\nb,0=x;1\n", r"Row 3 of a\.csv \(b\) cannot be used: '0=x;1'[\s\S]*0=male;1=female"),
        ("a.csv", "name,levels\na,\nb,0=x;0=y\n", r"Row 3 of a\.csv \(b\) cannot be used: '0=x;0=y'"),
        ("a.csv", "name,levels\na,\nb,continuous\n", r"Row 3 of a\.csv \(b\) cannot be used: 'continuous'"),
        ("a.csv", "name,min\na,\n\na,\n", r"Row 4 of a\.csv describes 'a' a second time"),
    ],
)
def test_what_is_no_dictionary_is_refused(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read_dictionary(write(tmp_path, name, content))


def test_codes_of_categories_stay_codes_and_become_text():
    frame = pd.DataFrame({"sex": [0.0, 1.0, -9], "dx": ["01", "02", "01"], "n": [1, 2, 3]})
    sex = Column(levels=SEX.levels, missing=("-9",))
    changed, notes, _ = apply_dictionary(frame, Dictionary({"sex": sex, "dx": Column(levels={"01": "a", "02": "b"})}))
    assert (changed["sex"].fillna("gap").tolist(), changed["dx"].tolist()) == (["0", "1", "gap"], ["01", "02", "01"])
    assert (changed["n"].tolist(), notes) == ([1, 2, 3], [])
    assert frame["sex"].dtype == np.float64  # the table that was given is as it was


def test_a_value_that_is_no_level_is_told_with_row_and_levels():
    frame = pd.DataFrame({"sex": ["0", "2", "1", "x"]}, index=[0, 3, 4, 6])  # empty lines in the file
    changed, _, (problem,) = apply_dictionary(frame, Dictionary({"sex": SEX}))
    assert re.search(r"row 5 contains '2', and 1 more row .*\nLevels: 0 \(male\), 1 \(female\)", problem.what)
    assert (problem.where, changed["sex"].tolist()) == (("sex",), ["0", "2", "1", "x"])


def test_missing_codes_become_gaps_in_numbers_and_text():
    frame = pd.DataFrame({"a": [1, -9, 3], "b": ["1.5", "refused", "2"], "c": ["x", "?", "y"], "d": [-9.0, 1.0, 2.0]})
    says = {"a": Column(missing=("-9",)), "b": Column(missing=("refused",)), "c": Column(missing=("?",)), "z": SEX}
    changed, notes, _ = apply_dictionary(frame, Dictionary(says))
    np.testing.assert_array_equal(changed[["a", "b"]].to_numpy(dtype=float), [[1, 1.5], [np.nan, np.nan], [3, 2]])
    assert (changed["b"].dtype, changed["c"].fillna("gap").tolist()) == (np.float64, ["x", "gap", "y"])
    assert (changed["d"].tolist(), notes) == ([-9, 1, 2], [])


def test_other_capitals_are_told():
    _, notes, _ = apply_dictionary(pd.DataFrame({"Age": [1.0]}), Dictionary({"age": SEX, "sex": SEX}))
    assert notes == ["The dictionary describes 'age', but the table has 'Age', so the entry is not applied."]


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (["mm3", "mm3", "mm3", None], "mm3"),
        (["mm", "mm3", None, None], None),
        ([None] * 4, None),
    ],
)
def test_the_unit_that_regions_share(units, expected):
    dictionary = Dictionary({f"r{i}": Column(unit=unit) for i, unit in enumerate(units)} | {"age": Column(unit="year")})
    assert unit_of(dictionary, ["r0", "r1", "r2", "r3", "unknown"]) == expected
