"""Files being written are private, cannot be redirected by others, and are not left behind."""

import os
import secrets
import stat
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest

from rindices import files
from rindices.cli import console_and_exits
from rindices.core import devices
from rindices.files import atomic_file, private_folder
from tests.refusal import refused_with
from tests.test_files import write

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
NOBODY = 2**22 + 1  # no process has this id


def rights(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(params=[0o022, 0o002, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("given", [None, 0o600, 0o640, 0o444, 0o664], ids=str)
def test_a_file_is_private_until_it_is_whole_and_keeps_the_rights_that_its_owner_gave(tmp_path, umask, given):
    path = tmp_path / ("x" * 240 + ".csv")  # long names must fit
    if given:
        path.touch()
        path.chmod(given)
    with atomic_file(path) as beside:
        assert rights(beside) == 0o600
        beside.write_text("r1")
        assert (rights(beside), path.exists()) == (0o600, given is not None)
    assert (rights(path), path.read_text()) == (given or 0o666 & ~umask, "r1")


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


def test_names_cannot_be_foreseen_and_links_are_not_followed(victim, monkeypatch):
    path = victim.with_name("scores.csv")
    with atomic_file(path) as first, atomic_file(path) as second:
        assert first != second
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0" * 16)
    other = victim.with_name("other.csv")
    with atomic_file(other) as beside:
        beside.write_text("new")
        other.symlink_to(victim)  # comes while the file is written
    assert (other.read_text(), other.is_symlink()) == ("new", False)
    beside.symlink_to(victim)
    refused_with(".", write, other, error=FileExistsError)


def test_a_link_of_somebody_else_in_the_place_of_a_result_is_refused(victim, monkeypatch):
    path = victim.with_name("scores.csv")
    path.symlink_to(victim)
    monkeypatch.setattr(os, "getuid", lambda: path.lstat().st_uid + 1)
    refused_with("created by another user", write, path)
    assert path.is_symlink()


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    left = f".scores.csv.{files._HERE}-{NOBODY}-0123456789abcdef.partial"
    kept = [
        left.replace(str(NOBODY), str(os.getppid())),
        left.replace(files._HERE, "0" * 8),
        left.replace("s.", "t.", 1),
    ]
    for name in (left, *kept):
        (tmp_path / name).touch()
    write(tmp_path / "scores.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"scores.csv", *kept}


def test_a_folder_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"rindices-{files._HERE}-{NOBODY}-abcdefgh"
    write(left / "people.csv")
    with suppress(ZeroDivisionError), private_folder() as folder:
        write(folder / "people.csv")
        assert (rights(folder), [*tmp_path.iterdir()]) == (0o700, [folder])
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_at_once_leaves_nothing_half_written(tmp_path, monkeypatch):
    """As when a job reaches its time limit while a thread is writing."""
    ended, writes, stop = [], threading.Event(), threading.Event()
    monkeypatch.setattr(os, "_exit", ended.append)

    def thread():
        with suppress(FileNotFoundError), atomic_file(tmp_path / "scores.csv") as beside:
            beside.write_text("half")
            writes.set()
            stop.wait(600)

    with ThreadPoolExecutor() as pool:
        pool.submit(thread)
        assert writes.wait(600)
        console_and_exits._stop("Repeat.")
        assert (ended, list(tmp_path.iterdir())) == ([130], [])
        stop.set()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the folder of compiled programs (whose contents would be run) in an empty cache."""
    if any(of.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH for of in tmp_path.resolve().parents):
        pytest.skip("in the temporary folder of this machine everybody can rename what is another's")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return devices._cache_folder()


def usable(folder):
    """Return whether compiled programs would be cached in a folder."""
    settings = {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(devices, "_SETTINGS", SimpleNamespace(jax_compilation_cache_dir=None))
        patch.setattr(devices, "jax", SimpleNamespace(config=SimpleNamespace(update=settings.__setitem__)))
        devices.prepare()
    return settings.get("jax_compilation_cache_dir") == str(folder)


@pytest.mark.usefixtures("umask")
def test_compiled_programs_are_in_a_private_folder(cache):
    assert usable(cache)
    write(cache / "program")
    assert usable(cache)
    assert (rights(cache), rights(cache.parent), (cache / "program").exists()) == (0o700, 0o700, True)


@pytest.mark.parametrize("level", ["folder", "parent"])
def test_programs_that_others_could_have_put_there_are_removed(cache, level):
    write(cache / "program")
    (cache if level == "folder" else cache.parent).chmod(0o775)
    assert (usable(cache), rights(cache), list(cache.iterdir())) == (True, 0o700, [])


def test_folders_of_others_are_not_used_and_links_not_followed(cache, tmp_path, monkeypatch):
    cache.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert not usable(cache)
    for mode, used in ((0o777, False), (0o1777, True)):  # as in /tmp: nobody can rename other users' files
        tmp_path.chmod(mode)
        assert usable(cache) == used
    cache.symlink_to(cache.rename(tmp_path / "elsewhere"))
    assert not usable(cache)


def test_without_a_private_folder_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as in a container whose user id has no name
    for name, home in (("XDG_CACHE_HOME", str(tmp_path / "file")), ("XDG_CACHE_HOME", "relative"), ("HOME", None)):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv(name, home) if home else monkeypatch.delenv(name)
        assert not usable(devices._cache_folder())
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
