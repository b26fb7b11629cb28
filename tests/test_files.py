import os
import socket
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

from rindices.files import atomic_file, check_folder, check_writable, refuse_same, write_csv
from tests.refusal import refused_with


def write(path, text="new"):
    with atomic_file(path) as beside:
        beside.write_text(text)


def test_a_file_appears_whole_and_its_folders_are_made_and_a_failure_keeps_the_old_one(tmp_path):
    write(tmp_path / "a" / "b.txt", "old")
    refused_with(None, write, tmp_path / "a" / "b.txt", text=None, error=TypeError)
    assert [(path.name, path.read_text()) for path in (tmp_path / "a").iterdir()] == [("b.txt", "old")]


@pytest.mark.skipif(os.name == "nt", reason="links need special privileges there")
def test_circles_of_links_are_the_users_mistake(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    refused_with("does not point to a file", write, tmp_path / "a")


def listening(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # names of sockets must be short


@pytest.mark.skipif(os.name == "nt", reason="Windows has other pipes")
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "behind a link"])
@pytest.mark.parametrize("make", [os.mkfifo, listening] if hasattr(os, "mkfifo") else [])
def test_pipes_and_sockets_are_refused_and_stay(tmp_path, monkeypatch, make, linked):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "special")
    path = tmp_path / ("link.csv" if linked else "special")
    if linked:
        path.symlink_to("special")
    before = path.lstat()
    refused_with(r"not a regular file.\nProvide a file name with `truth`", check_writable, path, "truth")
    refused_with("not a regular file", write, path)
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)


@pytest.mark.skipif(os.name == "nt", reason="links need rights of their own there")
@pytest.mark.parametrize("there", [False, True], ids=["to nothing", "to a file"])
def test_a_link_is_followed_and_stays(tmp_path, there):
    target, second, path = tmp_path / "disk" / "kept.csv", tmp_path / "second", tmp_path / "scores.csv"
    if there:
        write(target, "old")
        target.chmod(0o640)
    second.symlink_to(target)
    path.symlink_to("second")
    write(path)
    assert (os.readlink(path), os.readlink(second)) == ("second", str(target))
    assert (target.read_text(), target.is_symlink(), [file.name for file in target.parent.iterdir()]) == (
        "new",
        False,
        ["kept.csv"],
    )
    assert not there or target.stat().st_mode & 0o777 == 0o640


def test_a_disk_that_takes_no_files_whatever_its_rights_say_is_refused(tmp_path, monkeypatch):
    check_folder(tmp_path / "figures", "figures")
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr("tempfile.TemporaryFile", Mock(side_effect=OSError(28, "No space left on device")))
    refused_with(rf"{tmp_path} is not writable", check_folder, tmp_path / "figures", "figures")


@pytest.mark.parametrize("times", [1, 9])
def test_a_file_that_is_being_read_is_replaced_a_moment_later(tmp_path, monkeypatch, times):
    left, rename = [PermissionError(13, "in use")] * times, Path.replace
    monkeypatch.setattr(Path, "replace", lambda *paths: raised(left.pop()) if left else rename(*paths))
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(PermissionError) if times > 6 else nullcontext():
        write(tmp_path / "scores.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"][: times < 6]


def raised(error):
    raise error


def test_lines_end_in_the_same_way_on_every_system(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "linesep", "\r\n")
    write_csv(pd.DataFrame({"r1": [1]}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b"r1\n1\n"


def test_what_is_read_is_not_written_over(tmp_path):
    read, same = tmp_path / "b.csv", tmp_path / "B.csv"
    write(read)
    os.link(read, same)  # one file with two names, as on case-insensitive disks
    refused_with(r"would overwrite.*\n.*`truth`", refuse_same, same, read, name="truth")
