import json
import math
import os
import platform
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager

import pytest
from rindices.run.folder import (
    DONE,
    FAILED,
    RESULTS,
    UNFINISHED,
    check_free,
    discard,
    held,
    is_complete,
    locked,
    read_settings,
    status_of,
    toml_text,
    write_json,
    write_text,
)

from rindices.errors import InputError

SETTINGS = {
    "command": {"line": "rindices fit table.csv"},
    "table": {"path": "table.csv", "sha256": "abc", "covariates": ["age", "sex"], "unit": None},
    "training": {"n_patterns": [2, 3], "preset": "fast", "max_steps": None},
    "versions": {"jax": "0.8.0"},
    "device": {"platform": "cpu"},
}


def altered(**sections):
    return {name: values | sections.get(name, {}) for name, values in SETTINGS.items()}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def begin(out, settings=SETTINGS, **options):
    with held(out, settings, **options) as goes_on:
        return goes_on


def finish(out, status=DONE):
    write_json(out / "summary.json", {"status": status})


def fill(out):
    for name in RESULTS:
        (out / name).write_text("")


# Whose folder is it?


def test_new_and_empty_folders_and_those_of_runs_are_free(out):
    check_free(out)
    assert not out.exists()
    out.mkdir()
    check_free(out)
    begin(out)
    for name in ("model.safetensors", "r_indices.csv", "report.html", ".r_indices.csv.123.partial"):
        (out / name).write_text("")
    check_free(out)


def test_files_of_others_are_named_and_kept(out):
    begin(out)
    for name in ("thesis.docx", ".hidden", "data.partial"):
        (out / name).write_text("mine")
    with pytest.raises(
        InputError, match=r"already holds other files: \.hidden, data\.partial, thesis\.docx\.\n.*--out"
    ):
        check_free(out)
    assert (out / "thesis.docx").read_text() == "mine"


def test_file_in_the_place_of_the_folder_is_refused(out):
    out.write_text("")
    with pytest.raises(InputError, match="is a file, but a folder is needed"):
        check_free(out)
    with pytest.raises(InputError, match="is a file, so"):
        check_free(out / "below")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written")
def test_folder_that_cannot_be_written_is_refused(out):
    out.mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be written to"):
        check_free(out)


# Which run is it?


def test_new_run_says_what_it_is_and_that_it_is_not_finished(out):
    assert status_of(out) is None
    with held(out, SETTINGS) as goes_on:
        assert not goes_on
        assert status_of(out) == UNFINISHED
        assert read_settings(out / "run.toml")["training"] == {"n_patterns": [2, 3], "preset": "fast"}


def test_same_run_goes_on_and_keeps_its_journal(out):
    begin(out)
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    (out / "run.toml").write_text((out / "run.toml").read_text() + "# a mark\n")
    for name in ("r_indices.csv", ".r_indices.csv.99.partial"):
        (out / name).write_text("half")
    assert begin(out)
    assert (out / "journal" / "data-3-abc.safetensors").read_text() == "chunk"
    assert "# a mark" in (out / "run.toml").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]


def test_run_that_failed_goes_on_as_one_that_is_not_finished(out):
    begin(out)
    finish(out, FAILED)
    with held(out, SETTINGS) as goes_on:
        assert goes_on
        assert status_of(out) == UNFINISHED


def test_the_same_table_elsewhere_by_another_command_is_the_same_run(out):
    begin(out)
    assert begin(out, altered(table={"path": "moved/table.csv"}, command={"line": "other"}))


OTHERS = {
    "sha256: abc then, xyz now": {"table": {"sha256": "xyz"}},
    r"n_patterns: 2, 3 then, 2, 3, 4, 5 and 1 more now": {"training": {"n_patterns": [2, 3, 4, 5, 6]}},
    "max_steps: not given then, 100 now": {"training": {"max_steps": 100}},
    "preset: fast then, not given now": {"training": {"preset": None}},
    "seed: not given then, 3 now": {"training": {"seed": 3}},
    "jax: 0.8.0 then, 0.9.0 now": {"versions": {"jax": "0.9.0"}},
    "platform: cpu then, gpu now": {"device": {"platform": "gpu"}},
}


@pytest.mark.parametrize(("difference", "change"), OTHERS.items())
def test_other_runs_are_refused_with_their_differences(out, difference, change):
    begin(out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with pytest.raises(InputError) as error:
        begin(out, altered(**change))
    lines = str(error.value).splitlines()
    assert lines[0] == f"The folder {out} holds another run:"
    assert lines[1:-1] == [f"  {difference}"]
    assert "--overwrite" in lines[-1]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    with pytest.raises(InputError, match="holds another run"):
        is_complete(out, altered(**change))


def test_all_differences_are_listed_and_long_ones_cut(out):
    begin(out)
    with pytest.raises(InputError) as error:
        begin(out, altered(table={"sha256": "x" * 100}, training={"preset": "paper"}))
    assert "  preset: fast then, paper now" in str(error.value)
    assert f"  sha256: abc then, {'x' * 57}... now" in str(error.value)


def test_overwriting_removes_the_other_run_and_its_journal(out):
    begin(out)
    finish(out)
    (out / "model.safetensors").write_text("old")
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    new = altered(training={"preset": "paper"})
    assert not begin(out, new, overwrite=True)
    assert status_of(out) == UNFINISHED
    assert read_settings(out / "run.toml")["training"]["preset"] == "paper"
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]
    assert not (out / "journal" / "data-3-abc.safetensors").exists()


def test_half_written_files_are_removed_and_files_of_others_are_not(out):
    begin(out)
    halves = [out / ".model.safetensors.5.partial", out / "journal" / ".data-3-abc.safetensors.5.partial"]
    (out / "thesis.docx").write_text("mine")
    for overwrite in (False, True):
        for half in halves:
            half.write_text("half")
        begin(out, overwrite=overwrite)
        assert not any(half.exists() for half in halves)
    assert (out / "thesis.docx").read_text() == "mine"


def test_run_without_its_settings_is_refused(out):
    begin(out)
    (out / "run.toml").unlink()
    with pytest.raises(InputError, match=r"without its run\.toml.\nReplace it with --overwrite"):
        begin(out)
    assert not begin(out, overwrite=True)


def test_settings_that_cannot_be_read_are_refused(out):
    begin(out)
    for text in (b"a = ", b"\xff\xfe"):
        (out / "run.toml").write_bytes(text)
        with pytest.raises(InputError, match="cannot be read as the settings of a run"):
            begin(out)
    with pytest.raises(InputError, match="There is no file"):
        read_settings(out / "none.toml")


# How far did it get?


def test_status_is_that_of_the_summary(out):
    assert status_of(out) is None
    out.mkdir()
    assert status_of(out) is None
    write_text(out / "run.toml", "")
    assert status_of(out) == UNFINISHED
    for status in (UNFINISHED, FAILED, DONE):
        finish(out, status)
        assert status_of(out) == status


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "\xff"])
def test_summary_that_cannot_be_read_is_that_of_an_unfinished_run(out, damage):
    out.mkdir()
    (out / "summary.json").write_bytes(damage.encode("latin-1"))
    assert status_of(out) == UNFINISHED


def test_only_a_finished_run_is_complete(out):
    assert not is_complete(out, SETTINGS)
    begin(out)
    assert not is_complete(out, SETTINGS)
    finish(out, FAILED)
    assert not is_complete(out, SETTINGS)
    finish(out)
    fill(out)
    assert is_complete(out, SETTINGS)


def test_finished_run_without_all_of_its_results_is_not_complete(out):
    begin(out)
    finish(out)
    fill(out)
    for name in ("r_indices.csv", "people.csv"):
        (out / name).unlink()
    with pytest.raises(
        InputError, match=r"2 of its results are no longer there: r_indices\.csv, people\.csv\.\n.*--ov"
    ):
        is_complete(out, SETTINGS)


def test_finished_run_stays_complete_on_another_machine(out):
    """Only a run that goes on there could mix bits of two machines."""
    begin(out)
    elsewhere = altered(versions={"jax": "0.9.0"}, device={"platform": "gpu"})
    with pytest.raises(InputError, match="holds another run"):
        is_complete(out, elsewhere)
    finish(out)
    fill(out)
    assert is_complete(out, elsewhere)
    with pytest.raises(InputError, match=r"preset: fast then, paper now"):
        is_complete(out, elsewhere | {"training": {"n_patterns": [2, 3], "preset": "paper"}})


# Who is at work in it?

HOLD = """
import sys
from pathlib import Path
from rindices.run.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(out):
    """Let another process hold the folder; it ends at the latest with the test."""
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_second_process_is_refused_and_told_who_holds_the_folder(out):
    with another_process(out) as process:
        with pytest.raises(InputError) as error:
            begin(out)
        assert f"Another process ({process.pid} on {platform.node()}, since 20" in str(error.value)
        assert not (out / "run.toml").exists()
        process.stdin.close()
        process.wait(600)
        assert process.returncode == 0
        assert not begin(out)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_lock_of_a_killed_process_is_recovered(out):
    with another_process(out) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(600)
    assert (out / "journal" / "lock").exists()
    assert json.loads((out / "journal" / "holder.json").read_text())["process"] == process.pid
    with locked(out):
        assert json.loads((out / "journal" / "holder.json").read_text())["process"] == os.getpid()


def test_same_process_cannot_hold_a_folder_twice(out):
    with locked(out):
        (out / "journal" / "holder.json").write_text("not JSON")
        with pytest.raises(InputError, match=f"Another process is at work in {out}"), locked(out):
            pass
    with locked(out):
        pass


def test_folder_is_given_back_after_an_error(out):
    with pytest.raises(RuntimeError), held(out, SETTINGS):
        raise RuntimeError
    assert begin(out)


def test_run_that_never_began_leaves_nothing(out):
    begin(out)
    discard(out)
    assert not out.exists()
    begin(out)
    (out / "thesis.docx").write_text("mine")
    discard(out)
    assert [path.name for path in out.iterdir()] == ["thesis.docx"]


def test_finished_run_needs_no_journal(out):
    begin(out)
    finish(out)
    discard(out, only_journal=True)
    assert sorted(path.name for path in out.iterdir()) == ["run.toml", "summary.json"]
    assert status_of(out) == DONE


# What it says.


def test_toml_is_read_as_it_was_written():
    values = {
        "text": 'a "quoted" \\ name\twith\nlines, ä 脳 and \x1f',
        "whole": 3,
        "real": 0.1,
        "tiny": 1e-7,
        "large": 1e22,
        "yes": True,
        "list": ["a", "b"],
        "tuple": (2, 3),
        "empty": [],
    }
    text = toml_text({"first": values | {"nothing": None}, "second": {}})
    assert tomllib.loads(text) == {"first": values | {"tuple": [2, 3]}, "second": {}}
    assert "# nothing: not given" in text


def test_json_holds_no_more_than_every_reader_knows(out):
    data = {"a": math.nan, "b": [1.5, -math.inf, (2, None)], "c": {3: "ä", "d": True}}
    write_json(out / "summary.json", data)
    text = (out / "summary.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"a": None, "b": [1.5, None, [2, None]], "c": {"3": "ä", "d": True}}
    assert "ä" in text
    assert text.endswith("\n")
    assert [path.name for path in out.iterdir()] == ["summary.json"]
