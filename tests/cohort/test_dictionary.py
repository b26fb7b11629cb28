import json

import numpy as np
import pandas as pd
import pytest

from rindices.cohort.dictionary import (
    Column,
    Dictionary,
    apply_dictionary,
    read_dictionary,
    resolve_levels,
    unit_of,
)
from rindices.errors import InputError

SEX = Column(levels={"0": "male", "1": "female"})


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SIDECAR = {
    "MeasurementToolMetadata": {"Description": "a questionnaire"},
    "GeneratedBy": "hand",
    "age": {"LongName": "Age at scan", "Units": "year", "Minimum": 18, "Maximum": "89", "TermURL": "https://x"},
    "sex": {"Description": "sex", "Levels": {"M": {"Description": "Male", "TermURL": "https://y"}, "F": "Female"}},
    "dx": {"Levels": {"1": "Control", "2.0": "Patient", "-9": "Missing"}},
    "mmse": {"Range": [0, 30], "MissingValues": [-1, "refused"], "Derivative": True},
    "seen": {"Minimum": "2001-01-31", "Levels": {}, "Units": None},
    "hand": {"Levels": ["L", "R"]},
    "cdr": {"Levels": {"0-4": "mild", "5-18": "severe"}},
}


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_a_sidecar_is_read_and_what_it_does_not_need_is_passed_over(tmp_path, head):
    text = json.dumps(SIDECAR, indent=1).replace("\n", "\r\n").encode()
    dictionary = read_dictionary(write(tmp_path, "people.json", head + text))
    assert dict(dictionary) == {
        "age": Column("Age at scan", "year", None, 18.0, 89.0),
        "sex": Column("sex", None, {"M": "Male", "F": "Female"}),
        "dx": Column(levels={"1": "Control", "2": "Patient"}, missing=("-9",)),
        "mmse": Column(minimum=0.0, maximum=30.0, missing=("-1", "refused")),
        "seen": Column(),
        "hand": Column(levels={"L": "L", "R": "R"}),
        "cdr": Column(minimum=0.0, maximum=18.0),
    }
    assert dictionary.categories == ("sex", "dx", "hand")


def test_a_broken_sidecar_is_refused_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"people\.json is not correct JSON: line 3"):
        read_dictionary(write(tmp_path, "people.json", '{\n "age": {"Units": "year"}\n "sex": {}\n}'))
    with pytest.raises(InputError, match="'age' that cannot be used: 'old' is not a number"):
        read_dictionary(write(tmp_path, "people.json", '{"age": {"Maximum": "old"}}'))
    with pytest.raises(InputError, match=r"its range ends \(3\) before it begins \(5\)"):
        read_dictionary(write(tmp_path, "people.json", '{"age": {"Minimum": 5, "Maximum": 3}}'))
    with pytest.raises(InputError, match="should be a JSON object"):
        read_dictionary(write(tmp_path, "people.json", "[1]"))
    with pytest.raises(InputError, match="There is no file"):
        read_dictionary(tmp_path / "none.json")


REDCAP = (
    '"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels",'
    '"Text Validation Min","Text Validation Max"\n'
    'sex,demo,radio,Sex at birth,"0, Male | 1, Female, not pregnant | -9, Missing",,\n'
    "age,demo,text,Age in years,,18,120\n"
    'bmi,demo,calc,BMI,"round([weight]/[height], 1)",,\n'
    "born,demo,text,Birthday,,1900-01-01,today\n"
    "smokes,demo,yesno,Smokes,,,\n"
)


def test_a_redcap_dictionary(tmp_path):
    dictionary = read_dictionary(write(tmp_path, "redcap.csv", REDCAP))
    assert dict(dictionary) == {
        "sex": Column("Sex at birth", None, {"0": "Male", "1": "Female, not pregnant"}, missing=("-9",)),
        "age": Column("Age in years", minimum=18.0, maximum=120.0),
        "bmi": Column("BMI"),
        "born": Column("Birthday"),
        "smokes": Column("Smokes", levels={"1": "Yes", "0": "No"}),
    }


@pytest.mark.parametrize("heading", ["variable", "Column", "Field name", "NAME"])
@pytest.mark.parametrize(
    ("cell", "levels"),
    [
        ("0=male;1=female", {"0": "male", "1": "female"}),
        ("0 = male, tall , 1=female", {"0": "male, tall", "1": "female"}),
        ("0: male, 1: female", {"0": "male", "1": "female"}),
        ("1 - Yes; -1 - No", {"1": "Yes", "-1": "No"}),
        ("M|F", {"M": "M", "F": "F"}),
        ("M, F", {"M": "M", "F": "F"}),
        ("free text, any length", None),
        ("continuous", None),
        ("bmi = weight/height²", None),
        ("", None),
    ],
)
def test_levels_are_understood_in_their_usual_forms(tmp_path, heading, cell, levels):
    path = write(tmp_path, "words.tsv", f"\ufeff{heading}\tUnits\tValues\r\nx\tmm3\t{cell}\r\n")
    assert read_dictionary(path)["x"] == Column(unit="mm3", levels=levels)


def test_ranges_and_missing_codes_of_a_table(tmp_path):
    text = "variable;label;range;missing codes\nmmse;score;0-30;-9=refused, -99\nt;;[-5, 5];\n;a section;;\n"
    dictionary = read_dictionary(write(tmp_path, "words.csv", text))
    assert dictionary["mmse"] == Column("score", minimum=0.0, maximum=30.0, missing=("-9", "-99"))
    assert (dictionary["t"].minimum, dictionary["t"].maximum, len(dictionary)) == (-5.0, 5.0, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b,0=x;1,,", r"Row 3 of words\.csv \(b\) cannot be used: some of its items"),
        ("b,0=x;0=y,,", r"Row 3 of words\.csv \(b\) cannot be used: a code is empty or occurs twice"),
        ("b,,low,", r"Row 3 of words\.csv \(b\) cannot be used: 'low' is not a number"),
        ("a,,,", r"Row 3 of words\.csv \(a\) cannot be used: it was described before"),
        ("b,,", r"Row 3 of words\.csv has 3 cells"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        read_dictionary(write(tmp_path, "words.csv", f"name,levels,min,max\na,,,\n{line}\n"))


def test_a_table_that_is_no_dictionary_is_refused(tmp_path):
    with pytest.raises(InputError, match="none of its columns names the variables"):
        read_dictionary(write(tmp_path, "words.csv", "participant_id,age\n1,61\n"))


def test_codes_of_categories_stay_codes_and_become_text():
    frame = pd.DataFrame({"sex": [0.0, 1.0, np.nan], "dx": ["01", "02", "01"], "n": [1, 2, 3]})
    changed, notes = apply_dictionary(frame, Dictionary({"sex": SEX, "dx": Column(levels={"01": "a", "02": "b"})}))
    assert changed["sex"].tolist()[:2] == ["0", "1"]
    assert changed["sex"].isna().tolist() == [False, False, True]
    assert changed["dx"].tolist() == ["01", "02", "01"]
    assert notes == []
    assert changed["n"].tolist() == [1, 2, 3]
    assert frame["sex"].dtype == np.float64  # the table that was given is as it was


def test_a_value_that_is_no_level_is_refused_with_row_and_levels():
    frame = pd.DataFrame({"sex": ["0", "2", "1", "x"]}, index=[0, 3, 4, 6])  # empty lines in the file
    with pytest.raises(InputError, match=r"row 5 holds '2', and so has 1 more row\.\nLevels: 0 \(male\), 1 \(female\)"):
        apply_dictionary(frame, Dictionary({"sex": SEX}))
    changed, _ = apply_dictionary(frame, Dictionary({"sex": SEX}), checked=["age"])
    assert changed["sex"].tolist() == ["0", "2", "1", "x"]


def test_missing_codes_become_gaps_in_numbers_and_text():
    frame = pd.DataFrame({"a": [1, -9, 3], "b": ["1.5", "refused", "2"], "c": ["x", "?", "y"], "d": [-9.0, 1.0, 2.0]})
    says = Dictionary(
        {"a": Column(missing=("-9",)), "b": Column(missing=("refused",)), "c": Column(missing=("?",)), "z": SEX}
    )
    changed, notes = apply_dictionary(frame, says)
    np.testing.assert_array_equal(changed["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(changed["b"].to_numpy(dtype=float), [1.5, np.nan, 2])
    assert changed["b"].dtype == np.float64
    assert changed["c"].isna().tolist() == [False, True, False]
    assert changed["d"].tolist() == [-9, 1, 2]
    assert notes == []


def test_impossible_values_become_gaps_with_a_note_each_but_not_a_flood():
    ages = np.full(30, 60)
    ages[[2, 5, 6, 7, 20]] = [250, -1, 121, 999, 180]
    frame = pd.DataFrame({"age": ages, "score": np.arange(30.0)}, index=range(1, 31))
    changed, notes = apply_dictionary(
        frame, Dictionary({"age": Column(minimum=0, maximum=120), "score": Column(minimum=1)})
    )
    np.testing.assert_array_equal(changed["age"], np.where((ages < 0) | (ages > 120), np.nan, ages))
    assert np.isnan(changed["score"].iloc[0])
    assert notes == [
        "age = 250 in row 5 is outside 0 to 120: taken as missing.",
        "age = -1 in row 8 is outside 0 to 120: taken as missing.",
        "age = 121 in row 9 is outside 0 to 120: taken as missing.",
        "2 more values of age outside 0 to 120: taken as missing.",
        "score = 0 in row 3 is outside the range from 1: taken as missing.",
    ]
    assert changed.index.equals(frame.index)


def test_limits_belong_to_the_range_and_text_is_left_alone():
    frame = pd.DataFrame({"age": ["18", "89+", "120", "121"]})
    changed, notes = apply_dictionary(frame, Dictionary({"age": Column(minimum=18, maximum=120)}))
    assert changed["age"].tolist()[:3] == ["18", "89+", "120"]
    assert len(notes) == 1


def test_a_range_that_most_values_leave_is_an_error_of_the_dictionary():
    frame = pd.DataFrame({"age": [61.0, 72, 732, 864, 900]})
    with pytest.raises(InputError, match=r"Most values of column 'age' \(3 of 5\) are outside 0 to 120.*row 4 has 732"):
        apply_dictionary(frame, Dictionary({"age": Column(minimum=0, maximum=120)}))


def test_other_capitals_are_told():
    _, notes = apply_dictionary(pd.DataFrame({"Age": [1.0]}), Dictionary({"age": SEX, "sex": SEX}))
    assert notes == ["The dictionary describes 'age', the table has 'Age': not applied to it."]


def test_labels_may_be_named_by_meaning():
    column = Column(levels={"1": "Control", "2": "Mild, stable", "3": "AD", "4": "ad"})
    assert resolve_levels("control", column) == ("1",)
    assert resolve_levels("Mild, stable", column) == ("2",)
    assert resolve_levels("mild, stable ", column) == ("2",)
    assert resolve_levels("AD,1.0", column) == ("3", "4", "1")
    assert resolve_levels(["AD", "unknown"], column) == ("3", "4", "unknown")
    assert resolve_levels(None, column) is None
    assert resolve_levels("a,b", Column()) == ("a", "b")


def test_a_code_comes_before_a_meaning():
    assert resolve_levels("1", Column(levels={"0": "1", "1": "0"})) == ("1",)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (["mm3", "mm^3", "mm³", None], "mm3"),
        (["mL", "cm3", "cc", "millilitres"], "mL"),
        (["mm", "mm3", None, None], None),
        ([None] * 4, None),
    ],
)
def test_the_unit_that_regions_share(units, expected):
    dictionary = Dictionary({f"r{i}": Column(unit=unit) for i, unit in enumerate(units)} | {"age": Column(unit="year")})
    assert unit_of(dictionary, ["r0", "r1", "r2", "r3", "unknown"]) == expected


def test_two_units_of_one_quantity_are_refused():
    dictionary = Dictionary({"a": Column(unit="mm^3"), "b": Column(unit="mm"), "c": Column(unit="mL")})
    with pytest.raises(InputError, match=r"'a' is in mm\^3 and 'c' in mL"):
        unit_of(dictionary, ["a", "b", "c"])


def test_the_later_dictionary_has_the_last_word():
    both = Dictionary({"a": Column("first"), "b": Column("first")}) | {"b": Column("second")}
    assert {name: column.description for name, column in both.items()} == {"a": "first", "b": "second"}
