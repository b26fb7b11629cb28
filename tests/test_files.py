import pytest

from rindices.errors import InputError
from rindices.files import atomic_file, check_writable, refuse_same


def write(path, text="new"):
    with atomic_file(path) as beside:
        beside.write_text(text)


def test_a_file_appears_whole_and_its_folders_are_made(tmp_path):
    write(tmp_path / "a" / "b.txt")
    assert (tmp_path / "a" / "b.txt").read_text() == "new"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path):
    (tmp_path / "b.txt").write_text("old")
    with pytest.raises(TypeError):
        write(tmp_path / "b.txt", text=None)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_folders_and_files_in_the_way_are_the_users_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a folder"):
        write(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        check_writable(tmp_path / "file" / "below.csv")


def test_what_is_read_is_not_written_over(tmp_path):
    with pytest.raises(InputError, match="would replace"):
        refuse_same(tmp_path / "x" / ".." / "a.csv", tmp_path / "b.csv", tmp_path / "a.csv")
