import pytest

from rindices.errors import InputError
from rindices.files import atomic_file, check_writable, refuse_same
from rindices.run_folder import check_free, new_folder


def write(path, text="new"):
    with atomic_file(path) as beside:
        beside.write_text(text)


def replace_run(out, text):
    with new_folder(out) as folder:
        (folder / "patterns.csv").write_text("")
        (folder / "summary.json").write_text(text)


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


def test_a_folder_with_anything_of_the_users_is_never_replaced(tmp_path):
    (tmp_path / "summary.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(InputError, match=r"notes\.txt"):
        check_free(tmp_path, overwrite=True)


def test_a_run_is_replaced_only_when_the_new_one_is_complete(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "summary.json").write_text("old")
    with pytest.raises(TypeError):
        replace_run(out, None)
    assert (out / "summary.json").read_text() == "old"
    replace_run(out, "new")
    assert (out / "summary.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_old_run_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    out = tmp_path / "run"
    out.mkdir()
    (out / "summary.json").write_text("old")
    rename = type(out).rename

    def fail_for_the_new(self, target):
        if self.name.endswith(".partial"):
            raise OSError("no space left")
        return rename(self, target)

    monkeypatch.setattr(type(out), "rename", fail_for_the_new)
    with pytest.raises(OSError, match="no space"):
        replace_run(out, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (out / "summary.json").read_text() == "old"
