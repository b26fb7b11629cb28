import json

import numpy as np
import pandas as pd
import pytest

from rindices.cohort.bids import join_by_id, read_source
from rindices.cohort.dictionary import apply_dictionary
from rindices.cohort.tables import read_table
from rindices.errors import InputError

PEOPLE = "participant_id\tage\tsex\tgroup\nsub-01\t61\t0\t1\nsub-02\tn/a\t1\t2\nsub-03\t72.5\t1\t2\n"
VOLUMES = "participant_id\tlHip\trHip\nsub-03\t3.5\t3.4\nsub-01\t4.5\tn/a\nsub-02\t4.0\t3.9\n"
SESSIONS = (
    "participant_id\tsession_id\tlHip\nsub-01\tses-01\t4.5\nsub-01\tses-02\t4.4\nsub-02\tses-01\t4.0\n"
    "sub-03\tses-01\t3.5\nsub-03\tses-02\t3.4\n"
)
SCORES = "participant_id\tsession_id\tmmse\nsub-03\tses-02\t25\nsub-01\tses-01\t30\nsub-03\tses-01\t27\n"


def dataset(folder, people=PEOPLE, sidecar=None, **phenotype):
    """Write a BIDS dataset: tables as text, dictionaries as Python objects."""
    root = folder / "study"
    (root / "phenotype").mkdir(parents=True)
    (root / "participants.tsv").write_bytes(people.encode())
    if sidecar is not None:
        (root / "participants.json").write_text(json.dumps(sidecar))
    for name, content in phenotype.items():
        stem, kind = name.rsplit("_", 1)
        text = content if isinstance(content, str) else json.dumps(content)
        (root / "phenotype" / f"{stem}.{kind}").write_bytes(text.encode())
    return root


def test_a_dataset_is_joined_by_participant_in_the_order_of_the_participants(tmp_path):
    levels = {"sex": {"Levels": {"0": "M", "1": "F"}}, "group": {"Levels": {"1": "Control", "2": "Patient"}}}
    units = {"lHip": {"Units": "mm3"}, "sex": {"Description": "not the main table's word"}}
    root = dataset(tmp_path, sidecar=levels, volumes_tsv=VOLUMES, volumes_json=units)
    (root / "dataset_description.json").write_text('{"Name": "x", "DatasetDOI": "doi:10.0.2.3/dfjj.10"}')
    (root / "phenotype" / "._volumes.tsv").write_bytes(b"\x00\x05")
    for path in (root, root / "participants.tsv", str(root)):
        source = read_source(path, text_columns=("participant_id", "group"))
        frame = source.frame
        assert list(frame.columns) == ["participant_id", "age", "sex", "group", "lHip", "rHip"]
        assert frame["participant_id"].tolist() == ["sub-01", "sub-02", "sub-03"]
        np.testing.assert_array_equal(frame["lHip"], [4.5, 4.0, 3.5])
        np.testing.assert_array_equal(frame["rHip"], [np.nan, 3.9, 3.4])
        np.testing.assert_array_equal(frame["age"], [61, np.nan, 72.5])
        assert frame["group"].tolist() == ["1", "2", "2"]
        assert source.dictionary["sex"].levels == {"0": "M", "1": "F"}
        assert source.dictionary["lHip"].unit == "mm3"
        below = [file.relative_to(root).as_posix() for file in source.files]
        assert below == ["participants.tsv", "participants.json", "phenotype/volumes.tsv", "phenotype/volumes.json"]
        assert source.notes == ()
        assert source.doi == "doi:10.0.2.3/dfjj.10"
    categories, _ = apply_dictionary(frame, source.dictionary)
    assert categories["sex"].tolist() == ["0", "1", "1"]


def test_windows_line_ends_byte_order_marks_and_no_dictionaries(tmp_path):
    odd = ["\ufeff" + text.replace("\n", "\r\n") for text in (PEOPLE, VOLUMES)]
    plain = read_source(dataset(tmp_path / "plain", volumes_tsv=VOLUMES))
    source = read_source(dataset(tmp_path / "odd", odd[0], volumes_tsv=odd[1]))
    pd.testing.assert_frame_equal(source.frame, plain.frame)
    assert source.dictionary is None
    assert source.doi is None


def test_any_other_table_is_what_read_table_gives(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("participant_id,diagnosis,age\n001,1,61\n\n002,2,72\n")
    (tmp_path / "people.json").write_text('{"age": {"Units": "year"}}')  # honoured for .tsv only
    source = read_source(path)
    pd.testing.assert_frame_equal(source.frame, read_table(path))
    assert source[1:] == (None, (path,), (), None, ())


@pytest.mark.parametrize(
    ("text", "honoured"),
    [('{"age": {"Units": "year"}}', True), ('{"version": 1}', False), ('[{"age": 61}]', False), ("{}", False)],
)
def test_a_json_file_beside_a_tsv_file_is_its_dictionary_if_it_looks_like_one(tmp_path, text, honoured):
    path = tmp_path / "people.tsv"
    path.write_text("participant_id\tage\n001\t61\n")
    path.with_suffix(".json").write_text(text)
    source = read_source(path)
    assert (source.dictionary is not None) == honoured
    assert source.files == ((path, path.with_suffix(".json")) if honoured else (path,))


def test_a_folder_without_participants_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"without participants\.tsv, so it is no BIDS dataset"):
        read_source(tmp_path)


def test_broken_dictionaries_and_levels_are_refused(tmp_path):
    root = dataset(tmp_path, sidecar={"sex": {"Levels": {"0": "M"}}}, volumes_tsv=VOLUMES)
    source = read_source(root)
    with pytest.raises(InputError, match="'sex' has levels in its dictionary, but row 3 holds '1'"):
        apply_dictionary(source.frame, source.dictionary)
    (root / "participants.json").write_text('{"sex": }')
    with pytest.raises(InputError, match=r"participants\.json is not correct JSON: line 1"):
        read_source(root)


def test_sessions_of_a_person_need_a_visit_column(tmp_path):
    root = dataset(tmp_path, volumes_tsv=SESSIONS, scores_tsv=SCORES.replace("mmse", "cdr"))
    with pytest.raises(InputError, match=r"phenotype/scores\.tsv has 'sub-03' in rows 2 and 4.*\n.*--visit session_id"):
        read_source(root)


def test_every_session_becomes_a_row_and_tables_meet_in_it(tmp_path):
    root = dataset(tmp_path, volumes_tsv=SESSIONS, scores_tsv=SCORES)
    source = read_source(root, visit_column="session_id")
    frame = source.frame
    assert list(frame.columns) == ["participant_id", "session_id", "age", "sex", "group", "mmse", "lHip"]
    assert (
        list(zip(frame["participant_id"], frame["session_id"], strict=True))
        == [
            ("sub-01", "ses-01"),
            ("sub-01", "ses-02"),
            ("sub-02", "ses-01"),
            ("sub-03", "ses-02"),
            ("sub-03", "ses-01"),
        ]
        or sorted(frame["session_id"]) == ["ses-01"] * 3 + ["ses-02"] * 2
    )
    by_session = frame.set_index(["participant_id", "session_id"])
    assert by_session["lHip"].to_dict() == {
        ("sub-01", "ses-01"): 4.5,
        ("sub-01", "ses-02"): 4.4,
        ("sub-02", "ses-01"): 4.0,
        ("sub-03", "ses-01"): 3.5,
        ("sub-03", "ses-02"): 3.4,
    }
    assert by_session["mmse"].dropna().to_dict() == {
        ("sub-01", "ses-01"): 30.0,
        ("sub-03", "ses-01"): 27.0,
        ("sub-03", "ses-02"): 25.0,
    }
    np.testing.assert_array_equal(by_session.loc["sub-03", "age"], [72.5, 72.5])
    assert any("row numbers are those of the joined table" in note for note in source.notes)


def test_one_session_a_person_is_no_visit(tmp_path):
    one = "participant_id\tsession_id\tmmse\nsub-01\tses-01\t30\nsub-02\tses-02\t28\nsub-03\tses-01\t27\n"
    other = one.replace("mmse", "cdr").replace("ses-02", "ses-01")
    frame = read_source(dataset(tmp_path, mmse_tsv=one, cdr_tsv=other)).frame
    assert "session_id" not in frame.columns
    assert frame["mmse"].tolist() == [30, 28, 27]


def test_sessions_of_the_participants_file_are_joined_by_session(tmp_path):
    people = "participant_id\tsession_id\tage\nsub-01\tses-01\t61\nsub-01\tses-02\t63\nsub-03\tses-01\t72\n"
    root = dataset(tmp_path, people, scores_tsv=SCORES, traits_tsv="participant_id\tapoe\nsub-03\t44\nsub-01\t34\n")
    frame = read_source(root).frame
    np.testing.assert_array_equal(frame["mmse"], [30, np.nan, 27])
    assert frame["apoe"].tolist() == [34, 34, 44]


def test_a_missing_visit_column_is_told(tmp_path):
    with pytest.raises(InputError, match=r"participants\.tsv has no column 'session' \(from --visit\)"):
        read_source(dataset(tmp_path, volumes_tsv=SESSIONS), visit_column="session")


def test_a_column_in_two_files_must_not_differ(tmp_path):
    same = "participant_id\tage\nsub-01\t61.0\nsub-02\t55\nsub-03\t72.5\n"
    frame = read_source(dataset(tmp_path / "same", a_tsv=same)).frame
    assert frame["age"].tolist() == [61, 55, 72.5]  # a gap is no contradiction
    differing = {"a_tsv": "participant_id\tx\nsub-01\t1\n", "b_tsv": "participant_id\tx\nsub-01\t2\n"}
    with pytest.raises(InputError, match=r"Column 'x' is in phenotype/a\.tsv and in phenotype/b\.tsv.*row 2.* 1 and 2"):
        read_source(dataset(tmp_path / "differing", **differing))


def test_further_tables_are_joined(tmp_path):
    main, scores = tmp_path / "volumes.csv", tmp_path / "scores.tsv"
    main.write_text("id,lHip\n001,4.5\n\n002,4.0\n003,3.5\n")
    scores.write_text("id\tmmse\tapoe\n003\t25\te4\n001\t30\te3\n009\t29\te3\n")
    (tmp_path / "scores.json").write_text('{"mmse": {"Maximum": 30}}')
    source = read_source(main, text_columns=("id",), id_column="id", join=[scores])
    np.testing.assert_array_equal(source.frame["mmse"], [30, np.nan, 25])
    assert source.frame["apoe"].isna().tolist() == [False, True, False]
    assert source.frame.index.tolist() == [0, 2, 3]  # rows of the main table's file
    assert source.dictionary["mmse"].maximum == 30
    assert source.files == (main, scores, tmp_path / "scores.json")
    assert source.notes == (
        "1 row of scores.tsv left out: the main table has nobody with that id.",
        "1 row of the main table not found in scores.tsv: gaps in its columns.",
    )
    assert not any("009" in note or "002" in note for note in source.notes)


MAIN = pd.DataFrame({"id": ["a", "a", "b"], "visit": [1.0, 2.0, 1.0], "x": [1.0, 2.0, 3.0]})


def test_visits_are_joined_however_they_are_written():
    other = pd.DataFrame({"id": ["a", "b", "a"], "visit": ["2.0", "1", "1"], "y": ["second", "b", "first"]})
    joined, notes = join_by_id(MAIN, other, "id", "visit", source="y.csv")
    assert joined["y"].tolist() == ["first", "second", "b"]
    assert list(joined.columns) == ["id", "visit", "x", "y"]
    assert notes == []
    assert list(MAIN.columns) == ["id", "visit", "x"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"ID": ["a"], "y": [1.0]}, r"joined by the column 'id', but y\.csv has none\. Did you mean 'ID'"),
        ({"id": ["a", None], "visit": [1, 2]}, r"Every row of y\.csv needs a value in 'id' and 'visit', but row 3"),
        (
            {"id": ["a", "a"], "visit": [1, 1]},
            r"y\.csv has 'a' and '1' in rows 2 and 3.*\nKeep one row a person and visit",
        ),
        ({"id": ["a", "a"], "y": [1, 1]}, r"y\.csv has 'a' in rows 2 and 3.*\nKeep one row a person\."),
        (
            {"id": ["sub-a", "sub-c"], "y": [1, 1]},
            r"Nobody in y\.csv has an id.*'sub-a' and 'sub-c', the main table 'a'",
        ),
        ({"id": ["b"], "x": [4.0]}, r"Column 'x' is in the main table and in y\.csv.*row 4 of the main table 3 and 4"),
    ],
)
def test_tables_that_do_not_fit_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        join_by_id(MAIN, pd.DataFrame(other), "id", "visit", source="y.csv")


def test_a_join_is_what_pandas_merges():
    rng = np.random.default_rng(0)
    ids = [f"p{number}" for number in rng.permutation(200)]
    left = pd.DataFrame({"id": ids[:150], "a": rng.normal(size=150)})
    right = pd.DataFrame({"id": rng.permutation(ids[50:]), "b": rng.normal(size=150)})
    joined, notes = join_by_id(left, right, "id", source="b")
    pd.testing.assert_frame_equal(joined, left.merge(right, how="left", on="id"), check_dtype=False)
    assert [note.split()[0] for note in notes] == ["50", "50"]
