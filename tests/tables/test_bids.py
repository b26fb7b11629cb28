import json

import numpy as np
import pandas as pd
import pytest

from rindices.problems import InputError
from rindices.tables.source import join_by_id, read_source
from rindices.tables.table import read_table

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


@pytest.mark.parametrize("whole", [True, False])
def test_a_dataset_is_joined_by_participant_in_the_order_of_the_participants(tmp_path, whole):
    levels = {"sex": {"Levels": {"0": "M", "1": "F"}}, "group": {"Levels": {"1": "Control", "2": "Patient"}}}
    units = {"lHip": {"Units": "mm3"}, "sex": {"Description": "not the main table's word"}}
    root = dataset(tmp_path, sidecar=levels, volumes_tsv="\ufeff" + VOLUMES.replace("\n", "\r\n"), volumes_json=units)
    (root / "dataset_description.json").write_text('{"Name": "x", "DatasetDOI": "doi:10.0.2.3/dfjj.10"}')
    (root / "phenotype" / "._volumes.tsv").write_bytes(b"\x00\x05")
    for path in (root, root / "participants.tsv", str(root)):
        source = read_source(path, text_columns=("participant_id", "group"), whole=whole)
        frame = source.frame
        assert list(frame.columns) == ["participant_id", "age", "sex", "group", "lHip", "rHip"]
        np.testing.assert_array_equal(frame[["lHip", "rHip"]], [[4.5, np.nan], [4.0, 3.9], [3.5, 3.4]])
        assert frame[["participant_id", "group"]].sum().tolist() == ["sub-01sub-02sub-03", "122"]
        assert (source.dictionary["sex"].levels, source.dictionary["lHip"].unit) == ({"0": "M", "1": "F"}, "mm3")
        below = [file.relative_to(root).as_posix() for file in source.files]
        assert below == ["participants.tsv", "participants.json", "phenotype/volumes.tsv", "phenotype/volumes.json"]
        assert (source.table, source.notes, source.doi) == (None, (), "doi:10.0.2.3/dfjj.10")


def test_any_other_table_is_read_now_or_later(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("participant_id,diagnosis,age\n001,1,61\n\n002,2,72\n")
    (tmp_path / "people.json").write_text('{"age": {"Units": "year"}}')  # honoured for .tsv only
    source = read_source(path)
    pd.testing.assert_frame_equal(source.frame, read_table(path))
    assert source[1:] == (None, {}, (path,), (), None, "participant_id")
    later = read_source(path, whole=False)
    assert (later.frame.empty, later.files) == (True, (path,))
    assert pd.concat(later.table.batches())["age"].tolist() == ["61", "72"]
    assert read_source(path, whole=False, join=[path]).table is None


@pytest.mark.parametrize(("text", "honoured"), [('{"age": {"Units": "year"}}', True), ('[{"age": 61}]', False)])
def test_a_json_file_beside_a_tsv_file_is_its_dictionary_if_it_looks_like_one(tmp_path, text, honoured):
    path = tmp_path / "people.tsv"
    path.write_text("participant_id\tage\n001\t61\n")
    path.with_suffix(".json").write_text(text)
    source = read_source(path)
    assert bool(source.dictionary) == honoured
    assert source.files == ((path, path.with_suffix(".json")) if honoured else (path,))


@pytest.mark.parametrize(
    ("visit", "message"),
    [
        (None, r"phenotype/scores\.tsv has 'sub-03' in rows 2 and 4.*\n.*visit='session_id'"),
        ("session", r"participants\.tsv has no column 'session' \(from `visit`\)"),
    ],
)
def test_sessions_of_a_person_need_a_visit_column(tmp_path, visit, message):
    with pytest.raises(InputError, match=message):
        read_source(dataset(tmp_path, scores_tsv=SCORES), visit_column=visit)


def test_every_session_becomes_a_row_and_tables_meet_in_it(tmp_path):
    source = read_source(dataset(tmp_path, volumes_tsv=SESSIONS, scores_tsv=SCORES), visit_column="session_id")
    assert list(source.frame.columns) == ["participant_id", "session_id", "age", "sex", "group", "mmse", "lHip"]
    rows = source.frame.set_index(["participant_id", "session_id"]).sort_index()[["age", "mmse", "lHip"]]
    nan = np.nan
    expected = [[61, 30, 4.5], [61, nan, 4.4], [nan, nan, 4.0], [72.5, 27, 3.5], [72.5, 25, 3.4]]
    np.testing.assert_array_equal(rows, expected)
    assert any("rows are numbered as in the joined table" in note for note in source.notes)


def test_sessions_of_the_participants_file_are_joined_by_session(tmp_path):
    people = "participant_id\tsession_id\tage\nsub-01\tses-01\t61\nsub-01\tses-02\t63\nsub-03\tses-01\t72\n"
    root = dataset(tmp_path, people, scores_tsv=SCORES, traits_tsv="participant_id\tapoe\nsub-03\t44\nsub-01\t34\n")
    np.testing.assert_array_equal(read_source(root).frame[["mmse", "apoe"]], [[30, 34], [np.nan, 34], [27, 44]])


def test_a_column_may_be_in_two_files(tmp_path):
    same = "participant_id\tage\nsub-01\t61.0\nsub-02\t55\nsub-03\t72.5\n"
    frame = read_source(dataset(tmp_path / "same", a_tsv=same)).frame
    assert frame["age"].tolist() == [61, 55, 72.5]  # a gap is no contradiction


def test_further_tables_are_joined(tmp_path):
    main, scores = tmp_path / "volumes.csv", tmp_path / "scores.tsv"
    main.write_text("id,lHip\n001,4.5\n\n002,4.0\n003,3.5\n")
    scores.write_text("id\tmmse\tapoe\n003\t25\te4\n001\t30\te3\n009\t29\te3\n")
    (tmp_path / "scores.json").write_text('{"mmse": {"Units": "points"}}')
    source = read_source(main, text_columns=("id",), id_column="id", join=[scores])
    np.testing.assert_array_equal(source.frame["mmse"], [30, np.nan, 25])
    assert source.frame.index.tolist() == [0, 2, 3]  # rows of the main table's file
    assert (source.dictionary["mmse"].unit, source.files) == ("points", (main, scores, tmp_path / "scores.json"))
    assert tuple(map(str, source.notes)) == (
        "1 row of scores.tsv excluded, because these ids are not in the main table (participants 009).",
        "1 row of the main table not found in scores.tsv; values from that table are missing for them "
        "(participants 002).",
    )


MAIN = pd.DataFrame({"id": ["a", "a", "b"], "visit": [1.0, 2.0, 1.0], "x": [1.0, 2.0, 3.0]})


def test_visits_are_joined_however_they_are_written():
    other = pd.DataFrame({"id": ["a", "b", "a"], "visit": ["2.0", "1", "1"], "y": ["second", "b", "first"]})
    joined, notes = join_by_id(MAIN, other, "id", "visit", source="y.csv")
    assert (joined["y"].tolist(), list(joined.columns)) == (["first", "second", "b"], ["id", "visit", "x", "y"])
    assert notes == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"id": ["a", None], "visit": [1, 2]},
            r"Every row of y\.csv needs a value in 'id' and 'visit', but one is missing in row 3",
        ),
        ({"id": ["a", "a"], "visit": [1, 1]}, r"has 'a' and '1' in rows 2 and 3.*\nKeep one row per person and visit"),
    ],
)
def test_tables_that_do_not_fit_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        join_by_id(MAIN, pd.DataFrame(other), "id", "visit", source="y.csv")
